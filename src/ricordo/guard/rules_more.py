"""Key shapes of further services: storage, delivery, shops, monitoring, wallets and developers' tools."""

from itertools import chain

from ricordo.guard.rule import Rule, keys

__all__ = ["MORE_RULES"]

_END = "(?![A-Za-z0-9])"
_HEX_END = "(?![0-9A-Za-z])"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"

_MODELS = (
    keys("openai-key", "sess-", r"[A-Za-z0-9]{40}" + _END, bounded=True),
    keys("helicone-key", "sk-helicone-", r"[A-Za-z0-9-]{20,}", bounded=True),
    keys("llamacloud-key", "llx-", r"[A-Za-z0-9]{40,}", bounded=True),
    keys("wandb-key", "wandb_v1_", r"[A-Za-z0-9_]{40,}"),
    keys("anyscale-key", "esecret_", r"[A-Za-z0-9]{26,}", bounded=True),
    keys("runpod-key", "rpa_", r"[A-Z0-9]{30,}[A-Za-z0-9]{0,16}", bounded=True),
    keys("friendli-token", "flp_", r"[A-Za-z0-9]{40,}", bounded=True),
)

_CLOUD = (
    keys("dropbox-token", "sl.", r"(?:u\.)?[A-Za-z0-9_-]{120,}", bounded=True),
    keys("aiven-token", "AVNS_", r"[A-Za-z0-9_-]{19,}", bounded=True),
    keys("artifactory-key", "AKCp", r"[A-Za-z0-9]{60,72}" + _END, bounded=True),
    keys("artifactory-key", "cmVmd", r"[A-Za-z0-9]{59}" + _END, bounded=True),
    keys("clickhouse-key", "4b1d", r"[A-Za-z0-9]{38}" + _END, bounded=True),
    keys("cockroach-key", "CCDB1_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40}", bounded=True),
    keys("neon-key", "napi_", r"[a-z0-9]{60,}", bounded=True),
    keys("xata-key", "xau_", r"[A-Za-z0-9]{30,}", bounded=True),
    keys("scaleway-key-id", "SCW", r"[A-Z0-9]{17}" + _END, bounded=True),
    keys("tencent-key-id", "AKID", r"[A-Za-z0-9]{32}" + _END, bounded=True),
    keys("volcengine-key-id", "AKLT", r"[A-Za-z0-9_-]{40,}", bounded=True),
    keys("yandex-key", "YC", r"[A-Za-z0-9_-]{38}(?![A-Za-z0-9_-])", bounded=True),
    keys("yandex-token", "y0_", r"[A-Za-z0-9_-]{50,}", bounded=True),
    keys("yandex-token", "t1.9eu", r"[A-Za-z0-9_=-]{20,}\.[A-Za-z0-9_=-]{80,}", bounded=True),
    keys("deno-token", "ddp_ ddo_ ddw_", r"[A-Za-z0-9]{36}" + _END, bounded=True),
    keys("dbt-token", "dbtc_ dbtu_", r"[A-Za-z0-9_-]{36,}=?", bounded=True),
    keys("databricks-secret", "dose", r"[0-9a-f]{32}" + _HEX_END, bounded=True),
    keys("octopus-key", "API-", r"[A-Z0-9]{25,32}" + _END, bounded=True),
    keys("harness-token", "pat. sat.", r"[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}" + _END, bounded=True),
    keys("infracost-key", "ico-", r"[A-Za-z0-9]{32}" + _END, bounded=True),
    keys("prefect-key", "pnu_ pnb_", r"[a-z0-9]{36}" + _END, bounded=True),
    keys("fcm-key", "AAAA", r"[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}", bounded=True),
    keys("mws-key", "amzn.mws.", _UUID),
    keys("amazon-oauth-secret", "amzn1.oa2-cs.v1.", r"[0-9a-f]{64}"),
)

_CODE = (
    keys("sourcegraph-token", "sgp_", r"(?:[0-9a-f]{16}_)?[0-9a-f]{40}" + _HEX_END, bounded=True),
    keys("snyk-token", "snyk_uat. snyk_sat.", r"[0-9a-f]{8}\.[A-Za-z0-9_.-]{40,}"),
    keys("openvsx-token", "ovsxp_ ovsxat_", r"[A-Za-z0-9-]{30,}", bounded=True),
    keys("packagist-token", "packagist_uut_ packagist_oat_ packagist_ort_", r"[0-9a-f]{60,}"),
    keys("launchdarkly-key", "api- sdk- mob-", _UUID + _HEX_END, bounded=True),
    keys("readme-key", "rdme_", r"[a-z0-9]{60,}", bounded=True),
    keys("settlemint-token", "sm_pat_ sm_aat_ sm_sat_", r"[A-Za-z0-9]{16}" + _END, bounded=True),
    keys("ngrok-token", "2", r"[A-Za-z0-9]{26}_[A-Za-z0-9]{21}" + _END, bounded=True),
    keys(
        "1password-key", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}", bounded=True
    ),
    keys("trello-token", "ATTA", r"[0-9a-f]{64}(?:[0-9A-Fa-f]{8})?" + _END, bounded=True),
    keys("clickup-token", "pk_", r"\d{5,12}_[A-Z0-9]{32}" + _END, bounded=True),
    keys("asana-token", "1/ 2/", r"\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}" + _HEX_END, bounded=True),
    keys("adafruit-key", "aio_", r"[A-Za-z0-9]{28}" + _END, bounded=True),
    keys("adobe-secret", "p8e-", r"[A-Za-z0-9]{32}" + _END, bounded=True),
)

_TRADE = (
    keys("duffel-token", "duffel_test_ duffel_live_", r"[A-Za-z0-9_=-]{43}"),
    keys("easypost-key", "EZAK EZTK", r"[A-Za-z0-9]{54}" + _END, bounded=True),
    keys("shippo-token", "shippo_live_ shippo_test_", r"[0-9a-f]{40}"),
    keys("plaid-token", "access-sandbox- access-development- access-production-", _UUID),
    keys("square-token", "EAAA", r"[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])", bounded=True),
    keys("facebook-token", "EAA", r"[A-Za-z0-9]{90,}", bounded=True),
    keys("paddle-key", "pdl_live_apikey_ pdl_sdbx_apikey_", r"[A-Za-z0-9_]{40,}"),
    keys("polar-token", "polar_oat_ polar_pat_", r"[A-Za-z0-9]{30,}"),
    keys("stytch-secret", "secret-live- secret-test-", r"[A-Za-z0-9_=-]{30,}"),
    keys("woocommerce-key", "ck_ cs_", r"[0-9a-f]{40}" + _HEX_END, bounded=True),
    keys("mailersend-key", "mlsn.", r"[0-9a-f]{64}", bounded=True),
    keys("telnyx-key", "KEY", r"[0-9A-F]{32}_[A-Za-z0-9]{20,}", bounded=True),
    keys("frameio-token", "fio-u-", r"[A-Za-z0-9_=-]{60,}"),
    keys("mapbox-secret", "sk.eyJ", r"[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}", bounded=True),
    keys("intra42-secret", "s-s4t2ud- s-s4t2af-", r"[0-9a-f]{64}"),
)

_MONITORING = (
    keys("honeycomb-key", "hcaik_ hcaic_ hcbik_", r"[a-z0-9]{40,}", bounded=True),
    keys("axiom-token", "xaat- xapt-", _UUID, bounded=True),
    keys("elastic-key", "essu_", r"[A-Za-z0-9+/=]{50,}", bounded=True),
    keys("grafana-token", "eyJrIjoi", r"[A-Za-z0-9]{60,}={0,2}", bounded=True),
    keys("scalingo-token", "tk-us-", r"[A-Za-z0-9_-]{48}"),
)

_WALLETS = (
    keys("wallet-key", "xprv yprv zprv tprv", _BASE58 + r"{100,112}" + _END, bounded=True),
    keys("nostr-key", "nsec1", r"[02-9ac-hj-np-z]{58}" + _END, bounded=True),
)

MORE_RULES: tuple[Rule, ...] = tuple(
    rule for theme in (_MODELS, _CLOUD, _CODE, _TRADE, _MONITORING, _WALLETS) for rule in chain(*theme)
)
