"""Key shapes of clouds, hosting, databases, secret stores and monitoring."""

from itertools import chain

from ricordo.guard.rule import Rule, keys

__all__ = ["CLOUD_RULES"]

_HEX = "(?![A-Za-z0-9])"

CLOUD_RULES: tuple[Rule, ...] = tuple(
    chain(
        keys("aws-key-id", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])", bounded=True),
        keys("aws-bedrock-key", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}", bounded=True),
        keys("aws-bedrock-key", "bedrock-api-key-", r"[A-Za-z0-9+/=_-]{40,}"),
        keys("google-oauth-secret", "GOCSPX-", r"[A-Za-z0-9_-]{28,}"),
        keys("google-oauth-token", "ya29.", r"[A-Za-z0-9_.-]{30,}", bounded=True),
        keys("google-oauth-token", "1//0", r"[A-Za-z0-9_-]{60,}", bounded=True),
        keys("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
        keys("databricks-token", "dapi", r"[0-9a-f]{32}(?:-\d)?" + _HEX, bounded=True),
        keys("alibaba-key-id", "LTAI", r"[A-Za-z0-9]{20}" + _HEX, bounded=True),
        keys("vault-token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,}", bounded=True),
        keys("age-secret-key", "AGE-SECRET-KEY-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
        keys("age-secret-key", "AGE-SECRET-KEY-PQ-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58,}"),
        keys(
            "doppler-token",
            "dp.pt. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.",
            r"[A-Za-z0-9]{40,44}",
            bounded=True,
        ),
        keys("doppler-token", "dp.st.", r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}", bounded=True),
        keys("fly-token", "fm1r_ fm1a_ fm2_ fo1_", r"[A-Za-z0-9+/=_-]{40,}", bounded=True),
        keys("cloudflare-origin-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{146}", bounded=True),
        keys("cloudflare-token", "cfut_ cfat_ cfk_", r"[A-Za-z0-9_-]{40,}", bounded=True),
        keys("supabase-token", "sbp_", r"[0-9a-f]{40}" + _HEX, bounded=True),
        keys("supabase-token", "sb_secret_", r"[A-Za-z0-9_-]{28,}"),
        keys("netlify-token", "nfp_ nfc_ nfo_", r"[A-Za-z0-9]{36,}", bounded=True),
        keys("vercel-token", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", r"[A-Za-z0-9_]{24,}", bounded=True),
        keys("render-key", "rnd_", r"[A-Za-z0-9]{28,}", bounded=True),
        keys("heroku-key", "HRKU-", r"[A-Za-z0-9_-]{36,}"),
        keys("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{32,64}"),
        keys("tailscale-key", "tskey-", r"[a-z]{3,12}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
        keys("pulumi-token", "pul-", r"[0-9a-f]{40}" + _HEX, bounded=True),
        keys("openshift-token", "sha256~", r"[A-Za-z0-9_-]{43,}", bounded=True),
        keys("1password-token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{200,}"),
        keys("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}", bounded=True),
        keys("grafana-token", "glc_eyJ", r"[A-Za-z0-9+/=]{32,}"),
        keys("newrelic-key", "NRAK-", r"[A-Z0-9]{27}"),
        keys("sentry-token", "sntryu_", r"[0-9a-f]{64}"),
        keys("sentry-token", "sntrys_eyJ", r"[A-Za-z0-9+/=_-]{60,}"),
        keys("dynatrace-token", "dt0c01. dt0s16. dt0s01.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
        keys("yandex-key", "AQVN", r"[A-Za-z0-9_-]{35,38}" + _HEX, bounded=True),
    )
)
