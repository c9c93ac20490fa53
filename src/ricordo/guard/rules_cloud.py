"""Key shapes of clouds, hosting, databases, secret stores and monitoring."""

from itertools import chain

from ricordo.guard.rule import KeyRule, key_rules

__all__ = ["CLOUD_RULES"]

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
