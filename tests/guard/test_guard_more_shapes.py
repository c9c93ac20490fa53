"""Key shapes of further services. All keys are made here, at run time, from parts."""

import random
import string

import pytest

from ricordo.guard import Redactor, has_secret

pytestmark = pytest.mark.req("FC-SECRET")

REDACTOR = Redactor(bytes(range(32)))
ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
DIGITS = string.digits
HEX = "0123456789abcdef"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
UUID = ((HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12))

Part = str | tuple[str, int]
SHAPES: list[tuple[str, tuple[Part, ...]]] = [
    ("openai-key", ("sess-", (ALNUM, 40))),
    ("helicone-key", ("sk-helicone-", (LOWER, 7), "-", (LOWER, 7), "-", (LOWER, 7))),
    ("llamacloud-key", ("llx-", (ALNUM, 48))),
    ("wandb-key", ("wandb_v1_", (ALNUM, 77))),
    ("anyscale-key", ("esecret_", (LOWER, 28))),
    ("runpod-key", ("rpa_", (UPPER, 40), (LOWER, 6))),
    ("dropbox-token", ("sl.", "u.", (URLSAFE, 140))),
    ("aiven-token", ("AVNS_", (URLSAFE, 19))),
    ("artifactory-key", ("AKCp", (ALNUM, 69))),
    ("artifactory-key", ("cmVmd", (ALNUM, 59))),
    ("clickhouse-key", ("4b1d", (ALNUM, 38))),
    ("cockroach-key", ("CCDB1_", (ALNUM, 22), "_", (ALNUM, 40))),
    ("neon-key", ("napi_", (LOWER, 64))),
    ("xata-key", ("xau_", (ALNUM, 32))),
    ("scaleway-key-id", ("SCW", (UPPER, 17))),
    ("tencent-key-id", ("AKID", (ALNUM, 32))),
    ("yandex-key", ("YC", (URLSAFE, 38))),
    ("deno-token", ("ddp_", (ALNUM, 36))),
    ("dbt-token", ("dbtc_", (URLSAFE, 40))),
    ("octopus-key", ("API-", (UPPER, 26))),
    ("harness-token", ("pat.", (URLSAFE, 22), ".", (HEX, 24), ".", (ALNUM, 20))),
    ("infracost-key", ("ico-", (ALNUM, 32))),
    ("prefect-key", ("pnu_", (LOWER, 36))),
    ("fcm-key", ("AAAA", (URLSAFE, 7), ":APA91b", (URLSAFE, 134))),
    ("mws-key", ("amzn.mws.", *UUID)),
    ("amazon-oauth-secret", ("amzn1.oa2-cs.v1.", (HEX, 64))),
    ("sourcegraph-token", ("sgp_", (HEX, 16), "_", (HEX, 40))),
    ("snyk-token", ("snyk_uat.", (HEX, 8), ".", (URLSAFE, 60))),
    ("openvsx-token", ("ovsxp_", (ALNUM, 36))),
    ("packagist-token", ("packagist_uut_", (HEX, 68))),
    ("launchdarkly-key", ("sdk-", *UUID)),
    ("readme-key", ("rdme_", (LOWER, 70))),
    ("settlemint-token", ("sm_pat_", (ALNUM, 16))),
    ("ngrok-token", ("2", (ALNUM, 26), "_", (ALNUM, 21))),
    ("1password-key", ("A3-", (UPPER, 6), "-", (UPPER, 11), "-", (UPPER, 5), "-", (UPPER, 5), "-", (UPPER, 5))),
    ("trello-token", ("ATTA", (HEX, 64))),
    ("clickup-token", ("pk_", (DIGITS, 8), "_", (UPPER, 32))),
    ("asana-token", ("1/", (DIGITS, 16), ":", (HEX, 32))),
    ("adafruit-key", ("aio_", (ALNUM, 28))),
    ("adobe-secret", ("p8e-", (ALNUM, 32))),
    ("duffel-token", ("duffel_test_", (URLSAFE, 43))),
    ("easypost-key", ("EZAK", (ALNUM, 54))),
    ("shippo-token", ("shippo_live_", (HEX, 40))),
    ("plaid-token", ("access-production-", *UUID)),
    ("square-token", ("EAAA", (URLSAFE, 60))),
    ("facebook-token", ("EAA", (ALNUM, 180))),
    ("paddle-key", ("pdl_live_apikey_", (LOWER, 26), "_", (ALNUM, 22), "_", (ALNUM, 3))),
    ("polar-token", ("polar_oat_", (ALNUM, 43))),
    ("stytch-secret", ("secret-live-", (URLSAFE, 36))),
    ("woocommerce-key", ("ck_", (HEX, 40))),
    ("mailersend-key", ("mlsn.", (HEX, 64))),
    ("telnyx-key", ("KEY", ("0123456789ABCDEF", 32), "_", (ALNUM, 22))),
    ("mapbox-secret", ("sk.eyJ", (ALNUM, 60), ".", (URLSAFE, 22))),
    ("honeycomb-key", ("hcaik_", (LOWER, 58))),
    ("axiom-token", ("xaat-", *UUID)),
    ("elastic-key", ("essu_", (ALNUM, 70))),
    ("grafana-token", ("eyJrIjoi", (ALNUM, 80))),
    ("wallet-key", ("xprv", (BASE58, 107))),
    ("nostr-key", ("nsec1", ("023456789acdefghjklmnpqrstuvwxyz", 58))),
]
IDS = [f"{number}-{type_}" for number, (type_, _) in enumerate(SHAPES)]
AROUND = ["{}", "Use {} for this.", '{{"a": "{}"}}', "请使用{}这个", "\\n{}\\n", "https://example.org/?q={}&x=1"]


def make(parts: tuple[Part, ...], source: random.Random) -> str:
    """Return a key of this shape, which ends with a letter or a digit."""
    made = "".join(part if isinstance(part, str) else "".join(source.choices(part[0], k=part[1])) for part in parts)
    return made if made[-1].isalnum() else f"{made[:-1]}7"


@pytest.mark.parametrize(("type_", "parts"), SHAPES, ids=IDS)
def test_a_key_of_a_further_service_is_marked_with_its_type_wherever_it_stands(
    type_: str, parts: tuple[Part, ...]
) -> None:
    for seed, around in enumerate(AROUND):
        key = make(parts, random.Random(seed))
        redacted = REDACTOR.redact(around.format(key))
        assert [mark.type for mark in redacted.marks] == [type_], key
        assert key not in redacted.text
        assert redacted.text.startswith(around.format("\0").partition("\0")[0])


@pytest.mark.parametrize(
    "text",
    [
        "pat.read and sat.write",
        "API-REFERENCE-OF-THE-SERVICE",
        "AAAA records point to an IPv6 address",
        "ck_editor_configuration_for_the_new_pages",
        "sdk-6ba7b810",
        "2Ab_version_of_the_file_that_is_long_enough",
        "xprv is the prefix of an extended private key",
        "AKID and AKIA are prefixes of key ids",
        "sl.wikipedia.org/wiki/Seznam_vseh_mest_in_naselij",
        "https://example.org/live_streams_of_the_conference_2026_in_the_main_hall",
    ],
)
def test_what_only_begins_like_such_a_key_stays(text: str) -> None:
    assert not has_secret(text)
