"""Key shapes of code hosts, package registries, chat, mail, payment and work services."""

from itertools import chain

from ricordo.guard.rule import KeyRule, key_rules

__all__ = ["SERVICE_RULES"]

_END = "(?![A-Za-z0-9])"

_CODE_AND_PACKAGES = (
    key_rules("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,}"),
    key_rules("github-token", "ghs_", r"[A-Za-z0-9_.-]{60,}"),
    key_rules("github-token", "github_pat_", r"[A-Za-z0-9_]{50,}"),
    key_rules(
        "gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent- gloas-", r"[A-Za-z0-9_.=-]{20,}"
    ),
    key_rules("atlassian-token", "ATATT3 ATCTT3", r"[A-Za-z0-9_=-]{60,}"),
    key_rules("bitbucket-token", "ATBB", r"[A-Za-z0-9]{24,}={0,1}(?:[0-9A-F]{8})?", bounded=True),
    key_rules("npm-token", "npm_", r"[A-Za-z0-9]{36}" + _END, bounded=True),
    key_rules("pypi-token", "pypi-AgE", r"[A-Za-z0-9_-]{50,}"),
    key_rules("rubygems-key", "rubygems_", r"[0-9a-f]{48}"),
    key_rules("crates-token", "cio", r"[A-Za-z0-9]{32}" + _END, bounded=True),
    key_rules("nuget-key", "oy2", r"[a-z0-9]{43}" + _END, bounded=True),
    key_rules("clojars-token", "CLOJARS_", r"[a-z0-9]{60}"),
    key_rules("docker-token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{27,}"),
    key_rules("sonar-token", "sqp_ squ_ sqa_", r"[0-9a-f]{40}" + _END, bounded=True),
    key_rules("buildkite-token", "bkua_", r"[0-9a-f]{40}" + _END, bounded=True),
    key_rules("circleci-token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    key_rules("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
)

_CHAT_AND_MAIL = (
    key_rules("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe-", r"[A-Za-z0-9%/+=-]{16,}"),
    key_rules("slack-token", "xoxe.xoxb- xoxe.xoxp-", r"[A-Za-z0-9-]{20,}"),
    key_rules("slack-token", "xapp-", r"\d-[A-Z0-9]{6,}-\d{6,}-[0-9a-f]{20,}"),
    key_rules("twilio-key", "SK", r"[0-9a-f]{32}" + _END, bounded=True),
    key_rules("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}", bounded=True),
    key_rules("mailgun-key", "key-", r"[0-9a-f]{32}" + _END, bounded=True),
    key_rules("brevo-key", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    key_rules("resend-key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + _END, bounded=True),
)

_PAYMENT = (
    key_rules("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_ sk_org_", r"[A-Za-z0-9_]{16,}"),
    key_rules("webhook-secret", "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    key_rules("square-token", "sq0atp- sq0csp-", r"[A-Za-z0-9_-]{22,}"),
    key_rules("braintree-token", "access_token$production$", r"[a-z0-9]{16}\$[0-9a-f]{32}"),
    key_rules("shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_", r"[0-9A-Fa-f]{32}"),
    key_rules("flutterwave-key", "FLWSECK_TEST- FLWSECK-", r"[0-9A-Za-z]{12,}-X"),
)

_WORK = (
    key_rules("linear-key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,}"),
    key_rules("notion-token", "ntn_", r"[A-Za-z0-9]{40,}", bounded=True),
    key_rules("notion-token", "secret_", r"[A-Za-z0-9]{43}" + _END, bounded=True),
    key_rules("figma-token", "figd_ figu_", r"[A-Za-z0-9_-]{38,}"),
    key_rules("hubspot-token", "pat-na1- pat-na2- pat-eu1-", r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    key_rules("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}", bounded=True),
    key_rules("contentful-token", "CFPAT-", r"[A-Za-z0-9_-]{43}"),
    key_rules("typeform-token", "tfp_", r"[A-Za-z0-9_.=-]{59}", bounded=True),
    key_rules("posthog-key", "phx_", r"[A-Za-z0-9]{40,}", bounded=True),
)

SERVICE_RULES: tuple[KeyRule, ...] = tuple(
    rule for theme in (_CODE_AND_PACKAGES, _CHAT_AND_MAIL, _PAYMENT, _WORK) for rule in chain(*theme)
)
