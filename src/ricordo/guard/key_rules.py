"""The shapes of providers' keys: a literal prefix, then a pattern.

Invariant: every match of a rule starts with its literal prefix and holds at least `MIN_RUN` consecutive characters of
`RUN_CHARACTERS`. So a literal search is a sound filter, and text without long runs skips all rules at once.
"""

import re
from collections.abc import Iterator
from itertools import chain

from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "CLOUD_RULES",
    "MIN_RUN",
    "MODEL_RULES",
    "MORE_RULES",
    "RUN_CHARACTERS",
    "SERVICE_RULES",
    "KeyRule",
    "SecretSpan",
    "is_word_start",
    "key_rules",
]


MIN_RUN = 16
RUN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+/=~:$"
# Text that may precede a key although it ends in a letter or digit: a JSON escape, a percent escape, a colour code.
_ESCAPE_BEFORE = lazy_compile(r"(?:\\[nrtbf]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}|\[[0-9;]{0,12}m)\Z")
_WORD_CHARACTER = lazy_compile(r"[A-Za-z0-9]")


@dataclass(frozen=True, kw_only=True)
class SecretSpan:
    """A secret in a text: `start` and `end` are positions in it; a higher `rank` is a more specific rule."""

    start: int
    end: int
    type: str
    rank: int = 2


@dataclass(frozen=True, kw_only=True)
class KeyRule:
    """The shape of one kind of key.

    `type` is the word in the mark, `prefix` the literal prefix, `prefix_bytes` the same as bytes, `pattern` the whole
    shape. `at_word_start` is for prefixes that also occur inside words; these rules match only at the start of a word.
    """

    type: str
    prefix: str
    prefix_bytes: bytes
    pattern: re.Pattern[str]
    at_word_start: bool

    def find(self, text: str) -> Iterator[re.Match[str]]:
        """Yield all matches in `text`, left to right; an `at_word_start` rule only matches at the start of a word."""
        for match in self.pattern.finditer(text):
            if not self.at_word_start or is_word_start(text, match.start()):
                yield match


def is_word_start(text: str, position: int) -> bool:
    """Return whether no ASCII letter or digit precedes `position`, ignoring one that belongs to an escape."""
    if position == 0 or not _WORD_CHARACTER.match(text, position - 1):
        return True
    return _ESCAPE_BEFORE.search(text[max(0, position - 16) : position]) is not None


def key_rules(type_: str, prefixes: str, body: str, *, bounded: bool = False) -> tuple[KeyRule, ...]:
    """Return one rule for each of the space-separated `prefixes`, followed by the regular expression `body`."""
    return tuple(
        KeyRule(
            type=type_,
            prefix=prefix,
            prefix_bytes=prefix.encode(),
            pattern=lazy_compile(re.escape(prefix) + body),
            at_word_start=bounded,
        )
        for prefix in prefixes.split()
    )


MODEL_RULES: tuple[KeyRule, ...] = tuple(
    chain(
        key_rules("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{20,}"),
        key_rules("openrouter-key", "sk-or-", r"[A-Za-z0-9_-]{32,}", bounded=True),
        key_rules("langfuse-key", "sk-lf-", r"[A-Za-z0-9-]{30,}", bounded=True),
        key_rules("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{20,}"),
        key_rules("openai-key", "sk-", r"[A-Za-z0-9]{20,}", bounded=True),
        key_rules("elevenlabs-key", "sk_", r"[0-9a-f]{48}(?![A-Za-z0-9])", bounded=True),
        key_rules("google-key", "AIza", r"[A-Za-z0-9_-]{35,}", bounded=True),
        key_rules("google-key", "AQ.Ab", r"[A-Za-z0-9_-]{40,}", bounded=True),
        key_rules("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,}", bounded=True),
        key_rules("groq-key", "gsk_", r"[A-Za-z0-9]{40,}", bounded=True),
        key_rules("xai-key", "xai-", r"[A-Za-z0-9]{60,}", bounded=True),
        key_rules("replicate-token", "r8_", r"[A-Za-z0-9]{35,}", bounded=True),
        key_rules("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}", bounded=True),
        key_rules("together-key", "tgp_v1_", r"[A-Za-z0-9_-]{40,}"),
        key_rules("fireworks-key", "fw_", r"[A-Za-z0-9]{22,24}(?![A-Za-z0-9_])", bounded=True),
        key_rules("cerebras-key", "csk-", r"[a-z0-9]{40,}", bounded=True),
        key_rules("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{50,}"),
        key_rules("voyage-key", "pa-", r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", bounded=True),
        key_rules("jina-key", "jina_", r"[A-Za-z0-9_-]{50,}", bounded=True),
        key_rules("tavily-key", "tvly-", r"[A-Za-z0-9-]{28,}", bounded=True),
        key_rules("firecrawl-key", "fc-", r"[0-9a-f]{32}(?![A-Za-z0-9])", bounded=True),
        key_rules("pinecone-key", "pcsk_", r"[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,}"),
        key_rules("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
        key_rules("e2b-key", "e2b_", r"[0-9a-f]{40}(?![A-Za-z0-9])", bounded=True),
    )
)


_HEX_KEY_END = "(?![A-Za-z0-9])"
CLOUD_RULES: tuple[KeyRule, ...] = tuple(
    chain(
        key_rules("aws-key-id", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])", bounded=True),
        key_rules("aws-bedrock-key", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}", bounded=True),
        key_rules("aws-bedrock-key", "bedrock-api-key-", r"[A-Za-z0-9+/=_-]{40,}"),
        key_rules("google-oauth-secret", "GOCSPX-", r"[A-Za-z0-9_-]{28,}"),
        key_rules("google-oauth-token", "ya29.", r"[A-Za-z0-9_.-]{30,}", bounded=True),
        key_rules("google-oauth-token", "1//0", r"[A-Za-z0-9_-]{60,}", bounded=True),
        key_rules("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
        key_rules("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d)?" + _HEX_KEY_END, bounded=True),
        key_rules("alibaba-key-id", "LTAI", r"[A-Za-z0-9]{20}" + _HEX_KEY_END, bounded=True),
        key_rules("vault-token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,}", bounded=True),
        key_rules("age-secret-key", "AGE-SECRET-KEY-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
        key_rules("age-secret-key", "AGE-SECRET-KEY-PQ-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58,}"),
        key_rules(
            "doppler-token",
            "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.",
            r"[A-Za-z0-9]{40,44}",
            bounded=True,
        ),
        key_rules("doppler-token", "dp.st.", r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}", bounded=True),
        key_rules("fly-token", "fm1r_ fm1a_ fm2_ fo1_", r"[A-Za-z0-9+/=_-]{40,}", bounded=True),
        key_rules("cloudflare-origin-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}", bounded=True),
        key_rules("cloudflare-token", "cfut_ cfat_ cfk_", r"[A-Za-z0-9_-]{40,}", bounded=True),
        key_rules("supabase-token", "sbp_", r"[0-9a-f]{40}" + _HEX_KEY_END, bounded=True),
        key_rules("supabase-token", "sb_secret_", r"[A-Za-z0-9_-]{28,}"),
        key_rules("netlify-token", "nfp_ nfc_ nfo_", r"[A-Za-z0-9]{36,}", bounded=True),
        key_rules("vercel-token", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", r"[A-Za-z0-9_]{24,}", bounded=True),
        key_rules("render-key", "rnd_", r"[A-Za-z0-9]{28,}", bounded=True),
        key_rules("heroku-key", "HRKU-", r"[A-Za-z0-9_-]{36,}"),
        key_rules("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{32,64}"),
        key_rules("tailscale-key", "tskey-", r"[a-z]{3,12}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
        key_rules("pulumi-token", "pul-", r"[0-9a-f]{40}" + _HEX_KEY_END, bounded=True),
        key_rules("openshift-token", "sha256~", r"[A-Za-z0-9_-]{43,}", bounded=True),
        key_rules("1password-token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{200,}"),
        key_rules("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}", bounded=True),
        key_rules("grafana-token", "glc_eyJ", r"[A-Za-z0-9+/=]{32,}"),
        key_rules("newrelic-key", "NRAK-", r"[A-Z0-9]{27}"),
        key_rules("sentry-token", "sntryu_", r"[0-9a-f]{64}"),
        key_rules("sentry-token", "sntrys_eyJ", r"[A-Za-z0-9+/=_-]{60,}"),
        key_rules("dynatrace-token", "dt0c01. dt0s16. dt0s01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
        key_rules("yandex-key", "AQVN", r"[A-Za-z0-9_-]{35,38}" + _HEX_KEY_END, bounded=True),
    )
)


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


_HEX_END = "(?![0-9A-Za-z])"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
_MORE_MODELS = (
    key_rules("openai-key", "sess-", r"[A-Za-z0-9]{40}" + _END, bounded=True),
    key_rules("helicone-key", "sk-helicone-", r"[A-Za-z0-9-]{20,}", bounded=True),
    key_rules("llamacloud-key", "llx-", r"[A-Za-z0-9]{40,}", bounded=True),
    key_rules("wandb-key", "wandb_v1_", r"[A-Za-z0-9_]{40,}"),
    key_rules("anyscale-key", "esecret_", r"[A-Za-z0-9]{26,}", bounded=True),
    key_rules("runpod-key", "rpa_", r"[A-Z0-9]{30,}[A-Za-z0-9]{0,16}", bounded=True),
    key_rules("friendli-token", "flp_", r"[A-Za-z0-9]{40,}", bounded=True),
)
_MORE_CLOUD = (
    key_rules("dropbox-token", "sl.", r"(?:u\.)?[A-Za-z0-9_-]{120,}", bounded=True),
    key_rules("aiven-token", "AVNS_", r"[A-Za-z0-9_-]{19,}", bounded=True),
    key_rules("artifactory-key", "AKCp", r"[A-Za-z0-9]{60,72}" + _END, bounded=True),
    key_rules("artifactory-key", "cmVmd", r"[A-Za-z0-9]{59}" + _END, bounded=True),
    key_rules("clickhouse-key", "4b1d", r"[A-Za-z0-9]{38}" + _END, bounded=True),
    key_rules("cockroach-key", "CCDB1_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40}", bounded=True),
    key_rules("neon-key", "napi_", r"[a-z0-9]{60,}", bounded=True),
    key_rules("xata-key", "xau_", r"[A-Za-z0-9]{30,}", bounded=True),
    key_rules("scaleway-key-id", "SCW", r"[A-Z0-9]{17}" + _END, bounded=True),
    key_rules("tencent-key-id", "AKID", r"[A-Za-z0-9]{32}" + _END, bounded=True),
    key_rules("volcengine-key-id", "AKLT", r"[A-Za-z0-9_-]{40,}", bounded=True),
    key_rules("yandex-key", "YC", r"[A-Za-z0-9_-]{38}(?![A-Za-z0-9_-])", bounded=True),
    key_rules("yandex-token", "y0_", r"[A-Za-z0-9_-]{50,}", bounded=True),
    key_rules("yandex-token", "t1.9eu", r"[A-Za-z0-9_=-]{20,}\.[A-Za-z0-9_=-]{80,}", bounded=True),
    key_rules("deno-token", "ddp_ ddo_ ddw_", r"[A-Za-z0-9]{36}" + _END, bounded=True),
    key_rules("dbt-token", "dbtc_ dbtu_", r"[A-Za-z0-9_-]{36,}=?", bounded=True),
    key_rules("databricks-secret", "dose", r"[0-9a-f]{32}" + _HEX_END, bounded=True),
    key_rules("octopus-key", "API-", r"[A-Z0-9]{25,32}" + _END, bounded=True),
    key_rules("harness-token", "pat. sat.", r"[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}" + _END, bounded=True),
    key_rules("infracost-key", "ico-", r"[A-Za-z0-9]{32}" + _END, bounded=True),
    key_rules("prefect-key", "pnu_ pnb_", r"[a-z0-9]{36}" + _END, bounded=True),
    key_rules("fcm-key", "AAAA", r"[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}", bounded=True),
    key_rules("mws-key", "amzn.mws.", _UUID),
    key_rules("amazon-oauth-secret", "amzn1.oa2-cs.v1.", r"[0-9a-f]{64}"),
)
_MORE_CODE = (
    key_rules("sourcegraph-token", "sgp_", r"(?:[0-9a-f]{16}_)?[0-9a-f]{40}" + _HEX_END, bounded=True),
    key_rules("snyk-token", "snyk_uat. snyk_sat.", r"[0-9a-f]{8}\.[A-Za-z0-9_.-]{40,}"),
    key_rules("openvsx-token", "ovsxp_ ovsxat_", r"[A-Za-z0-9-]{30,}", bounded=True),
    key_rules("packagist-token", "packagist_uut_ packagist_oat_ packagist_ort_", r"[0-9a-f]{60,}"),
    key_rules("launchdarkly-key", "api- sdk- mob-", _UUID + _HEX_END, bounded=True),
    key_rules("readme-key", "rdme_", r"[a-z0-9]{60,}", bounded=True),
    key_rules("settlemint-token", "sm_pat_ sm_aat_ sm_sat_", r"[A-Za-z0-9]{16}" + _END, bounded=True),
    key_rules("ngrok-token", "2", r"[A-Za-z0-9]{26}_[A-Za-z0-9]{21}" + _END, bounded=True),
    key_rules(
        "1password-key", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}", bounded=True
    ),
    key_rules("trello-token", "ATTA", r"[0-9a-f]{64}(?:[0-9A-Fa-f]{8})?" + _END, bounded=True),
    key_rules("clickup-token", "pk_", r"\d{5,12}_[A-Z0-9]{32}" + _END, bounded=True),
    key_rules("asana-token", "1/ 2/", r"\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}" + _HEX_END, bounded=True),
    key_rules("adafruit-key", "aio_", r"[A-Za-z0-9]{28}" + _END, bounded=True),
    key_rules("adobe-secret", "p8e-", r"[A-Za-z0-9]{32}" + _END, bounded=True),
)
_TRADE = (
    key_rules("duffel-token", "duffel_test_ duffel_live_", r"[A-Za-z0-9_=-]{43}"),
    key_rules("easypost-key", "EZAK EZTK", r"[A-Za-z0-9]{54}" + _END, bounded=True),
    key_rules("shippo-token", "shippo_live_ shippo_test_", r"[0-9a-f]{40}"),
    key_rules("plaid-token", "access-sandbox- access-development- access-production-", _UUID),
    key_rules("square-token", "EAAA", r"[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])", bounded=True),
    key_rules("facebook-token", "EAA", r"[A-Za-z0-9]{90,}", bounded=True),
    key_rules("paddle-key", "pdl_live_apikey_ pdl_sdbx_apikey_", r"[A-Za-z0-9_]{40,}"),
    key_rules("polar-token", "polar_oat_ polar_pat_", r"[A-Za-z0-9]{30,}"),
    key_rules("stytch-secret", "secret-live- secret-test-", r"[A-Za-z0-9_=-]{30,}"),
    key_rules("woocommerce-key", "ck_ cs_", r"[0-9a-f]{40}" + _HEX_END, bounded=True),
    key_rules("mailersend-key", "mlsn.", r"[0-9a-f]{64}", bounded=True),
    key_rules("telnyx-key", "KEY", r"[0-9A-F]{32}_[A-Za-z0-9]{20,}", bounded=True),
    key_rules("frameio-token", "fio-u-", r"[A-Za-z0-9_=-]{60,}"),
    key_rules("mapbox-secret", "sk.eyJ", r"[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}", bounded=True),
    key_rules("intra42-secret", "s-s4t2ud- s-s4t2af-", r"[0-9a-f]{64}"),
)
_MONITORING = (
    key_rules("honeycomb-key", "hcaik_ hcaic_ hcbik_", r"[a-z0-9]{40,}", bounded=True),
    key_rules("axiom-token", "xaat- xapt-", _UUID, bounded=True),
    key_rules("elastic-key", "essu_", r"[A-Za-z0-9+/=]{50,}", bounded=True),
    key_rules("grafana-token", "eyJrIjoi", r"[A-Za-z0-9]{60,}={0,2}", bounded=True),
    key_rules("scalingo-token", "tk-us-", r"[A-Za-z0-9_-]{48}"),
)
_WALLETS = (
    key_rules("wallet-key", "xprv yprv zprv tprv", _BASE58 + r"{100,112}" + _END, bounded=True),
    key_rules("nostr-key", "nsec1", r"[02-9ac-hj-np-z]{58}" + _END, bounded=True),
)
MORE_RULES: tuple[KeyRule, ...] = tuple(
    rule for theme in (_MORE_MODELS, _MORE_CLOUD, _MORE_CODE, _TRADE, _MONITORING, _WALLETS) for rule in chain(*theme)
)
