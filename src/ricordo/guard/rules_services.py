"""Key shapes of code hosts, package registries, chat, mail, payment and work services."""

from itertools import chain

from ricordo.guard.rule import Rule, keys

__all__ = ["SERVICE_RULES"]

_END = "(?![A-Za-z0-9])"

_CODE_AND_PACKAGES = (
    keys("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,}"),
    keys("github-token", "ghs_", r"[A-Za-z0-9_.-]{60,}"),
    keys("github-token", "github_pat_", r"[A-Za-z0-9_]{50,}"),
    keys("gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glft- glsoat- glagent- gloas-", r"[A-Za-z0-9_.=-]{20,}"),
    keys("atlassian-token", "ATATT3 ATCTT3", r"[A-Za-z0-9_=-]{60,}"),
    keys("bitbucket-token", "ATBB", r"[A-Za-z0-9]{24,}={0,1}(?:[0-9A-F]{8})?", bounded=True),
    keys("npm-token", "npm_", r"[A-Za-z0-9]{36}" + _END, bounded=True),
    keys("pypi-token", "pypi-AgE", r"[A-Za-z0-9_-]{50,}"),
    keys("rubygems-key", "rubygems_", r"[0-9a-f]{48}"),
    keys("crates-token", "cio", r"[A-Za-z0-9]{32}" + _END, bounded=True),
    keys("nuget-key", "oy2", r"[a-z0-9]{43}" + _END, bounded=True),
    keys("clojars-token", "CLOJARS_", r"[a-z0-9]{60}"),
    keys("docker-token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{27,}"),
    keys("sonar-token", "sqp_ squ_ sqa_", r"[0-9a-f]{40}" + _END, bounded=True),
    keys("buildkite-token", "bkua_", r"[0-9a-f]{40}" + _END, bounded=True),
    keys("circleci-token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9]{22}_[0-9a-f]{40}"),
    keys("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
)

_CHAT_AND_MAIL = (
    keys("slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe-", r"[A-Za-z0-9%/+=-]{16,}"),
    keys("slack-token", "xoxe.xoxb- xoxe.xoxp-", r"[A-Za-z0-9-]{20,}"),
    keys("slack-token", "xapp-", r"\d-[A-Z0-9]{6,}-\d{6,}-[0-9a-f]{20,}"),
    keys("twilio-key", "SK", r"[0-9a-f]{32}" + _END, bounded=True),
    keys("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}", bounded=True),
    keys("mailgun-key", "key-", r"[0-9a-f]{32}" + _END, bounded=True),
    keys("brevo-key", "xkeysib- xsmtpsib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    keys("resend-key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + _END, bounded=True),
)

_PAYMENT = (
    keys("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_ sk_org_", r"[A-Za-z0-9_]{16,}"),
    keys("webhook-secret", "whsec_", r"[A-Za-z0-9+/]{24,}={0,2}"),
    keys("square-token", "sq0atp- sq0csp-", r"[A-Za-z0-9_-]{22,}"),
    keys("braintree-token", "access_token$production$", r"[a-z0-9]{16}\$[0-9a-f]{32}"),
    keys("shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_", r"[0-9A-Fa-f]{32}"),
    keys("flutterwave-key", "FLWSECK_TEST- FLWSECK-", r"[0-9A-Za-z]{12,}-X"),
)

_WORK = (
    keys("linear-key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,}"),
    keys("notion-token", "ntn_", r"[A-Za-z0-9]{40,}", bounded=True),
    keys("notion-token", "secret_", r"[A-Za-z0-9]{43}" + _END, bounded=True),
    keys("figma-token", "figd_ figu_", r"[A-Za-z0-9_-]{38,}"),
    keys("hubspot-token", "pat-na1- pat-na2- pat-eu1-", r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    keys("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}", bounded=True),
    keys("contentful-token", "CFPAT-", r"[A-Za-z0-9_-]{43}"),
    keys("typeform-token", "tfp_", r"[A-Za-z0-9_.=-]{59}", bounded=True),
    keys("posthog-key", "phx_", r"[A-Za-z0-9]{40,}", bounded=True),
)

SERVICE_RULES: tuple[Rule, ...] = tuple(
    rule for theme in (_CODE_AND_PACKAGES, _CHAT_AND_MAIL, _PAYMENT, _WORK) for rule in chain(*theme)
)
