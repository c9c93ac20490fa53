"""Every key shape is found wherever it stands. All keys are made here, at run time, from parts."""

import json
import random
import string

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ricordo.guard import Redactor, has_secret

pytestmark = pytest.mark.req("FC-SECRET")

REDACTOR = Redactor(bytes(range(32)))
ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
B64 = ALNUM + "+/"

# Type, then parts: a literal, or (alphabet, length) for what is random.
Part = str | tuple[str, int]
SHAPES: list[tuple[str, tuple[Part, ...]]] = [
    ("openai-key", ("sk-", (ALNUM, 20), "T3Blbk" + "FJ", (ALNUM, 20))),
    ("openai-key", ("sk-", (HEX, 32))),
    ("openai-key", ("sk-proj-", (URLSAFE, 74), "T3Blbk" + "FJ", (URLSAFE, 74))),
    ("openai-key", ("sk-svcacct-", (URLSAFE, 100))),
    ("openai-key", ("sk-admin-", (URLSAFE, 100))),
    ("anthropic-key", ("sk-ant-", "api03-", (URLSAFE, 93), "AA")),
    ("anthropic-key", ("sk-ant-", "oat01-", (URLSAFE, 86))),
    ("openrouter-key", ("sk-or-", "v1-", (HEX, 64))),
    ("google-key", ("AIza", "Sy", (URLSAFE, 33))),
    ("google-key", ("AQ.", "Ab8RN6", (URLSAFE, 44))),
    ("google-oauth-secret", ("GOCSPX-", (URLSAFE, 28))),
    ("google-oauth-token", ("ya29.", "a0", (URLSAFE, 120))),
    ("aws-key-id", ("AKIA", (UPPER, 16))),
    ("aws-key-id", ("ASIA", (UPPER, 16))),
    ("github-token", ("ghp_", (ALNUM, 36))),
    ("github-token", ("gho_", (ALNUM, 36))),
    ("github-token", ("ghu_", (ALNUM, 36))),
    ("github-token", ("ghs_", (ALNUM, 36))),
    ("github-token", ("ghr_", (ALNUM, 76))),
    ("github-token", ("github_pat_", (ALNUM, 22), "_", (ALNUM, 59))),
    ("gitlab-token", ("glpat-", (URLSAFE, 20))),
    ("slack-token", ("xoxb-", (string.digits, 12), "-", (string.digits, 12), "-", (ALNUM, 24))),
    ("slack-token", ("xoxp-", (string.digits, 11), "-", (string.digits, 11), "-", (HEX, 32))),
    ("slack-token", ("xapp-1-", (UPPER, 11), "-", (string.digits, 13), "-", (HEX, 64))),
    ("stripe-key", ("sk_live_", (ALNUM, 24))),
    ("stripe-key", ("rk_live_", (ALNUM, 99))),
    ("webhook-secret", ("whsec_", (ALNUM, 32))),
    ("npm-token", ("npm_", (ALNUM, 36))),
    ("pypi-token", ("pypi-", "AgEIcHlwaS5vcmc", (URLSAFE, 120))),
    ("huggingface-token", ("hf_", (string.ascii_letters, 34))),
    ("groq-key", ("gsk_", (ALNUM, 52))),
    ("xai-key", ("xai-", (ALNUM, 80))),
    ("replicate-token", ("r8_", (ALNUM, 37))),
    ("perplexity-key", ("pplx-", (ALNUM, 48))),
    ("nvidia-key", ("nvapi-", (URLSAFE, 64))),
    ("twilio-key", ("SK", (HEX, 32))),
    ("sendgrid-key", ("SG.", (URLSAFE, 22), ".", (URLSAFE, 43))),
    ("mailgun-key", ("key-", (HEX, 32))),
    ("mailgun-key", ((HEX, 32), "-", (HEX, 8), "-", (HEX, 8))),
    ("mailchimp-key", ((HEX, 32), "-us", "14")),
    ("telegram-token", ((string.digits[1:], 10), ":AA", (URLSAFE[:-2], 33))),
    ("discord-token", ("M", (ALNUM, 25), ".G", (ALNUM, 5), ".", (ALNUM, 38))),
    ("digitalocean-token", ("dop_v1_", (HEX, 64))),
    ("databricks-token", ("dapi", (HEX, 32))),
    ("linear-key", ("lin_api_", (ALNUM, 40))),
    ("notion-token", ("ntn_", (ALNUM, 46))),
    ("notion-token", ("secret_", (ALNUM, 43))),
    ("vault-token", ("hvs.", (URLSAFE, 90))),
    ("age-secret-key", ("AGE-SECRET-KEY-", "1", (BECH32, 58))),
    ("shopify-token", ("shpat_", (HEX, 32))),
    ("doppler-token", ("dp.pt.", (ALNUM, 43))),
    ("doppler-token", ("dp.st.", "dev.", (ALNUM, 43))),
    ("fly-token", ("fm2_", (B64, 120))),
    ("cloudflare-origin-key", ("v1.0-", (HEX, 24), "-", (HEX, 146))),
    ("cloudflare-token", ("cfut_", (ALNUM, 48))),
    ("azure-client-secret", ((ALNUM, 3), "8Q~", (ALNUM, 34))),
    ("azure-ai-key", ((ALNUM, 52), "JQQJ99", (ALNUM, 26))),
    ("atlassian-token", ("ATATT3", (URLSAFE, 186))),
    ("figma-token", ("figd_", (URLSAFE, 40))),
    ("postman-key", ("PMAK-", (HEX, 24), "-", (HEX, 34))),
    ("newrelic-key", ("NRAK-", (UPPER, 27))),
    ("grafana-token", ("glsa_", (ALNUM, 32), "_", (HEX, 8))),
    ("supabase-token", ("sbp_", (HEX, 40))),
    ("docker-token", ("dckr_pat_", (URLSAFE, 27))),
    ("tailscale-key", ("tskey-", "auth-", (ALNUM, 12), "-", (ALNUM, 32))),
    ("terraform-token", ((ALNUM, 14), ".atlasv1.", (ALNUM, 67))),
    ("airtable-token", ("pat", (ALNUM, 14), ".", (HEX, 64))),
    ("brevo-key", ("xkeysib-", (HEX, 64), "-", (ALNUM, 16))),
    ("resend-key", ("re_", (ALNUM, 8), "_", (ALNUM, 24))),
    ("jwt", ("eyJ", (URLSAFE, 33), ".eyJ", (URLSAFE, 60), ".", (URLSAFE, 43))),
]
IDS = [f"{number}-{type_}" for number, (type_, _) in enumerate(SHAPES)]
EVERY_SHAPE = pytest.mark.parametrize(("type_", "parts"), SHAPES, ids=IDS)


def make(parts: tuple[Part, ...], source: random.Random) -> str:
    """A key of this shape; its random parts hold at least eight different characters when they are long enough."""
    made = ""
    for part in parts:
        if isinstance(part, str):
            made += part
            continue
        alphabet, length = part
        varied = source.sample(alphabet, min(8, length, len(alphabet)))
        varied += source.choices(alphabet, k=length - len(varied))
        source.shuffle(varied)
        varied[-1] = source.choice([mark for mark in alphabet if mark.isalnum()])
        made += "".join(varied)
    return made


@EVERY_SHAPE
def test_every_key_shape_is_marked_with_its_type(type_: str, parts: tuple[Part, ...]) -> None:
    for seed in range(20):
        key = make(parts, random.Random(seed))
        redacted = REDACTOR.redact(key)
        assert [mark.type for mark in redacted.marks] == [type_], key
        assert redacted.text == f"[secret:{type_}:{redacted.marks[0].digest}]"


@EVERY_SHAPE
@pytest.mark.parametrize(
    "around",
    [
        "Use {} for this.",
        "`{}`",
        "```python\nclient = Client('{}')\n```",
        "| name | {} |",
        "请使用{}这个密钥",
        "鍵は{}です",
        "line one\n{}\nline three",
        "({})",
        "https://example.org/?q={}&x=1",
        "EXPORT=1 THE_VALUE={} run",
        "\\n{}\\n",
        "\\u0022{}\\u0022",
        "x%20{}%20y",
        "\x1b[32m{}\x1b[0m",
        "“{}”，然后",
        "<b>{}</b>",
    ],
)
def test_every_key_shape_is_found_in_markdown_code_json_and_beside_other_scripts(
    type_: str, parts: tuple[Part, ...], around: str
) -> None:
    key = make(parts, random.Random(7))
    cleaned = REDACTOR.clean(around.replace("{}", key))
    assert key not in cleaned
    assert "[secret:" in cleaned
    assert around.partition("{}")[0] in cleaned


@EVERY_SHAPE
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_surrounding_text_hides_a_key(type_: str, parts: tuple[Part, ...], data: st.DataObject) -> None:
    key = make(parts, random.Random(data.draw(st.integers(0, 10**6))))
    before, after = data.draw(st.text(max_size=40)), data.draw(st.text(max_size=40))
    assume(not (before[-1:].isascii() and (before[-1:].isalnum() or before[-1:] in {*"_-.~=+/"})))
    assume(not (after[:1].isascii() and (after[:1].isalnum() or after[:1] in {*"_-.~=+/"})))
    text = before + key + after
    redacted = REDACTOR.redact(text)
    assert key not in redacted.text
    assert redacted.marks
    assert REDACTOR.redact(redacted.text).text is redacted.text


def test_a_key_inside_nested_json_text_is_found_and_the_json_stays_valid() -> None:
    for _, parts in SHAPES:
        key = make(parts, random.Random(3))
        nested = json.dumps({"outer": json.dumps({"text": f"one\n{key}\nécole", "n": 1})})
        cleaned = REDACTOR.clean(nested)
        assert key not in cleaned
        assert json.loads(json.loads(cleaned)["outer"])["n"] == 1


def test_a_key_of_a_manual_is_left_alone() -> None:
    for sample in (
        "AKIA" + "IOSFODNN7" + "EXAMPLE",
        "sk-" + "x" * 40,
        "ghp_" + "X" * 36,
        "sk-ant-" + "your-key-here-" * 2,
    ):
        assert not has_secret(sample)


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP "])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\\n", "\\\\n", " ", "\n    ", '\\n" +\n"', "\n> "])
@pytest.mark.parametrize("closed", [True, False])
def test_a_private_key_block_leaves_as_a_whole(kind: str, ending: str, closed: bool) -> None:
    source = random.Random(11)
    lines = ["".join(source.choices(B64, k=64)) for _ in range(12)]
    block = " BLOCK" if kind == "PGP " else ""
    whole = [f"-----BEGIN {kind}PRIVATE KEY{block}-----", *lines, "QmFzZTY0" + "=="]
    if closed:
        whole.append(f"-----END {kind}PRIVATE KEY{block}-----")
    text = "before " + ending.join(whole) + "\n\nAnd then we talked about the extraordinary weather."
    redacted = REDACTOR.redact(text)
    assert [mark.type for mark in redacted.marks] == ["private-key"]
    assert not any(line in redacted.text for line in [*lines, "QmFzZTY0"])
    assert redacted.text.startswith("before [secret:private-key:")
    assert redacted.text.endswith("weather.")
    assert "talked about the" in redacted.text


def test_a_private_key_in_a_service_account_file_is_removed_and_the_rest_stays() -> None:
    body = "\n".join("".join(random.Random(5).choices(B64, k=64)) for _ in range(20))
    account = {
        "type": "service_account",
        "private_key": f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n",
        "client_email": "me@example.org",
    }
    cleaned = json.loads(REDACTOR.clean(json.dumps(account)))
    assert cleaned["private_key"].startswith("[secret:private-key:")
    assert body[:20] not in json.dumps(cleaned)
    assert cleaned["client_email"] == "me@example.org"


def test_key_markers_without_key_material_are_left_alone() -> None:
    for text in (
        "A PEM file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----.",
        "-----BEGIN PUBLIC KEY-----\n" + "A1b2" * 16 + "\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\n" + "A1b2" * 16 + "\n-----END CERTIFICATE-----",
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    ):
        assert not has_secret(text)
