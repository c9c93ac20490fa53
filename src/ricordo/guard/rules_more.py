"""Key shapes of further services: storage, delivery, shops, monitoring, wallets and developers' tools."""

from itertools import chain

from ricordo.guard.rule import KeyRule, key_rules

__all__ = ["MORE_RULES"]

_END = "(?![A-Za-z0-9])"
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
