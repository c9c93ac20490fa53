"""The labelled set for secrets known by their name or their place: every positive is marked, no negative is touched."""

import base64

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ricordo.guard import Redactor, has_secret
from ricordo.messages import JsonValue

pytestmark = pytest.mark.req("FC-SECRET")

REDACTOR = Redactor(bytes(range(32)))
SWORD, HUNTER, MIXED = "sword" + "fish", "hunter" + "2", "9f8e7d6c" + "5b4a3f2e"
JUMBLE = "xKqRt" + "VbnM"
BASIC = base64.b64encode(f"me:{HUNTER}".encode()).decode()

# A text and the secret in it.
POSITIVE: list[tuple[str, str]] = [
    (f"my password is {HUNTER}", HUNTER),
    (f"The database password is {HUNTER}.", HUNTER),
    (f"password was `{SWORD}`", SWORD),
    (f"Password: {HUNTER}", HUNTER),
    (f"**Password:** {HUNTER}", HUNTER),
    (f"- **Password**: `{SWORD}`", SWORD),
    (f"| password | {HUNTER} |", HUNTER),
    (f"user: bob, pass: {HUNTER}", HUNTER),
    (f"pw: {HUNTER}", HUNTER),
    (f"password: {SWORD}\nport: 1", SWORD),
    (f"password = '{SWORD}'", SWORD),
    (f'password = "correct {SWORD} battery staple"', f"correct {SWORD} battery staple"),
    (f"the passphrase is correct-{SWORD}-battery-staple", f"correct-{SWORD}-battery-staple"),
    (f'password: str = "{SWORD}"', SWORD),
    (f'const dbPassword: string = "{SWORD}";', SWORD),
    (f'var apiKey = "{MIXED}"', MIXED),
    (f'if (password == "{SWORD}") {{', SWORD),
    (f"DB_PASSWORD={SWORD}", SWORD),
    (f"export DB_PASSWORD={SWORD}&x(1)", f"{SWORD}&x(1)"),
    (f"  - POSTGRES_PASSWORD={SWORD}", SWORD),
    (f"export FOO_TOKEN={MIXED}", MIXED),
    (f"API_KEY: {MIXED}", MIXED),
    (f"api-key={MIXED}", MIXED),
    (f"X-Api-Key: {MIXED}", MIXED),
    (f"aws_secret_access_key = wJalr/{MIXED}+K7MDENG", f"wJalr/{MIXED}+K7MDENG"),
    (f'"client_secret": "{MIXED}"', MIXED),
    (f'{{"user":"bob","password":"{SWORD}","n":1}}', SWORD),
    (f'\\"password\\": \\"{SWORD}\\"', SWORD),
    (f'"{{\\\\\\"token\\\\\\": \\\\\\"{MIXED}\\\\\\"}}"', MIXED),
    (f'os.environ["API_TOKEN"] = "{MIXED}"', MIXED),
    (f'connect(user="bob", password="{SWORD}")', SWORD),
    (f"mysql --password {HUNTER} -h db", HUNTER),
    (f"tool --password={HUNTER}", HUNTER),
    (f"tool --api-key {MIXED}", MIXED),
    (f"curl -u bob:{HUNTER} https://example.org", HUNTER),
    (f"sshpass -p {HUNTER} ssh host", HUNTER),
    (f"machine example.org login bob password {SWORD}", SWORD),
    (f"//registry.example.org/:_authToken={MIXED}", MIXED),
    (f"postgres://bob:{SWORD}@db:5432/shop", SWORD),
    (f"redis://:{SWORD}@cache", SWORD),
    (f"见 mongodb+srv://bob:{HUNTER}@db，然后", HUNTER),
    (f"https://bob:p@{HUNTER}@example.org/x", f"p@{HUNTER}"),
    (f"Server=db;User Id=sa;Password={SWORD};", SWORD),
    (f"https://example.org/?a=1&token={MIXED}&b=2", MIXED),
    (f"Authorization: Bearer {MIXED}", MIXED),
    (f'"Authorization": "Bearer {MIXED}"', MIXED),
    (f"curl -H 'authorization: bearer {MIXED}' x", MIXED),
    (f"Authorization: Basic {BASIC}", BASIC),
    (f"he sent Bearer {MIXED}{MIXED} with it", f"{MIXED}{MIXED}"),
    (f"DefaultEndpointsProtocol=https;AccountKey={MIXED * 5}abcdef==;", f"{MIXED * 5}abcdef=="),
    (f"https://hooks.slack.com/services/T0{'A' * 8}/B0{'B' * 8}/{MIXED}{MIXED[:8]}", f"{MIXED}{MIXED[:8]}"),
    (f"https://discord.com/api/webhooks/{'1234567890' * 2}/{MIXED * 4}abcd", f"{MIXED * 4}abcd"),
    (f"https://x.blob.core.windows.net/c?sv=1&sig={MIXED * 3}%3D", MIXED * 3),
    (f"<password>{SWORD}</password>", SWORD),
    (f"密码是{HUNTER}", HUNTER),
    (f"数据库密码：{HUNTER}。", HUNTER),
    (f"パスワードは{HUNTER}です", HUNTER),
    (f"비밀번호: {HUNTER}", HUNTER),
    (f"пароль: {HUNTER}", HUNTER),
    (f"la contraseña es {HUNTER}", HUNTER),
    (f"das Passwort ist {HUNTER}", HUNTER),
    (f"the api key is {MIXED}", MIXED),
    (f"SECRET_KEY = 'django-insecure-{MIXED}'", f"django-insecure-{MIXED}"),
    (f"webhook_secret: {MIXED}", MIXED),
    (f"refreshToken: '{MIXED}'", MIXED),
    (f"Password: correct-{SWORD}-battery", f"correct-{SWORD}-battery"),
    (f"it runs on db1 and the db password: correct-{SWORD}", f"correct-{SWORD}"),
    (f"the password is correct-{SWORD}.", f"correct-{SWORD}"),
    (f"password=correct-{SWORD}", f"correct-{SWORD}"),
    (f"Kennwort: rote-{SWORD}", f"rote-{SWORD}"),
    (f"secret: correct-{SWORD}-battery", f"correct-{SWORD}-battery"),
    (f"the password is {JUMBLE}, tell nobody", JUMBLE),
    (f"my token is ab-{HUNTER}", f"ab-{HUNTER}"),
]

NEGATIVE: list[str] = [
    "the token limit is 4096",
    "password reset flow",
    "max_tokens: 4096",
    "max_tokens=8192, temperature=0.7",
    "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased')",
    "tokenizer.pad_token = tokenizer.eos_token",
    'eos_token = "<|endoftext|>"',
    '"next_page_token": "CAUQAA123456"',
    "secret = load_secret()",
    "token = get_token()",
    "token = await fetch_token(user)",
    "const token = req.headers.authorization",
    "token = tokens[0]",
    'token = response.json()["token"]',
    "password = os.environ['X']",
    'password = os.environ["DB_PASSWORD"]',
    'api_key = os.getenv("OPENAI_API_KEY")',
    '"api_key": "OPENAI_API_KEY"',
    "apiKey: process.env.API_KEY",
    "password = config.password",
    "password=password",
    "api_key=api_key, token=token",
    "password = getpass.getpass()",
    'password = input("Password: ")',
    "if password == user.password:",
    "async def login(user: str, password: str) -> Token:",
    "def f(token: str, secret: bytes) -> None:",
    "password: Optional[str] = None",
    "password: string",
    "token: null",
    "the password is wrong",
    "password: required",
    "token: optional",
    "secret: see the vault",
    "password: read-only",
    "the password is top-notch",
    "the password is up-to-date",
    "password: user-supplied",
    "the token is RS256-signed",
    "the token is 24h-valid",
    "token: some-service-name",
    "credentials: HTTPAuth",
    "def refresh(self, credentials: OpenAIChatCredentials) -> None:",
    "secret: none",
    "token: identifier",
    "password: <your password>",
    "password: ${DB_PASSWORD}",
    'password = "${VAR}"',
    "password: $DB_PASSWORD",
    "password: {{ vault_password }}",
    "password: %DB_PASSWORD%",
    "DB_PASSWORD=$(pass show db)",
    "API_KEY=xxxxxxxxxxxxxxxx",
    "API_KEY=<key>",
    "API_KEY=your-api-key-here",
    "OPENAI_API_KEY=sk-...",
    "password: ********",
    "password: changeme",
    "password: example",
    "token: op://vault/item/field",
    "private_key: ~/.ssh/id_ed25519",
    "private_key = /etc/ssl/private/server.key",
    "ssl_key: server.pem",
    "PWD=/home/bob/project",
    "the password is required",
    "the password is stored in the vault",
    "your password is too short",
    "password is case-sensitive",
    "password is at least 8 characters",
    "password is 12 characters long",
    "password is base64-encoded",
    '{"password": "Password is required"}',
    '{"password": "must be at least 8 characters"}',
    "password_hash = hash_password(plain)",
    "the token is valid for 24 hours",
    "we keep the token in the browser",
    "the secret is in Vault",
    "the secret to success is patience",
    "pass: 12, fail: 3",
    "all tests pass: 100%",
    "primary_key=True",
    "sort key: name",
    "cache_key = f'user:{user_id}'",
    '"key": "value"',
    "public_key: 1",
    "token_count: 12345678",
    "keyboard shortcuts: Ctrl+K",
    "use --password to set it",
    "--password PASSWORD  the password",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    'curl -H "Authorization: Bearer ${TOKEN}"',
    "Authorization: Basic authentication is used",
    "bearer of good news",
    "https://user:password@example.org/x",
    "https://user:${PASSWORD}@example.org/",
    "http://localhost:8080/@scope/package",
    "git@github.com:owner/repository.git",
    "docker://registry/image:tag@sha256:" + "ab12" * 16,
    "docker run -u 1000:1000 image",
    "commit 4f3a2b1c5d6e7f8091a2b3c4d5e6f708192a3b4c",
    "sha256:" + "0a1b2c3d" * 8,
    "id 550e8400-e29b-41d4-a716-446655440000",
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 20,
    "integrity sha512-" + "Ab3/" * 21 + "==",
    "task-management-system-with-long-kebab-name",
    "sk-fading-circle sk-circle-fade-dot",
    "test_a_torn_line_hides_no_earlier_entry_of_the_ledger",
    "https://example.org/a/very/long/path/with-some-words/and_more?q=1#fragment",
    "publicKeyToken=6595b64144ccf1df",
    "jsonnet_token = r'[a-z0-9_]+(?:x|y)'",
    "the source of a token is `argv[token.index2]`",
    "记住密码重置流程",
    "密码长度至少八位",
    "パスワードを忘れた場合",
    "eyJ is how a token of three parts begins",
    "AKIA is a prefix of access key ids",
    "ghp_ and github_pat_ are prefixes",
    "[secret:openai-key:3f9a2c71]",
    "password = [secret:password:3f9a2c71]",
    "https://[secret:github-token:3f9a2c71]@github.com/x",
]


@pytest.mark.parametrize(("text", "secret"), POSITIVE, ids=[str(number) for number in range(len(POSITIVE))])
def test_a_secret_known_by_its_name_or_place_is_marked_and_nothing_around_it(text: str, secret: str) -> None:
    redacted = REDACTOR.redact(text)
    assert secret not in redacted.text
    assert len(redacted.marks) == 1
    mark = redacted.marks[0]
    before, after = redacted.text[: mark.start], redacted.text[mark.end :]
    assert text.startswith(before)
    assert text.endswith(after)
    assert secret in text[len(before) : len(text) - len(after)]
    assert len(text) - len(before) - len(after) - len(secret) <= 24
    assert has_secret(text)


@pytest.mark.parametrize("text", NEGATIVE, ids=[str(number) for number in range(len(NEGATIVE))])
def test_harmless_text_comes_back_as_the_same_object(text: str) -> None:
    redacted = REDACTOR.redact(text)
    assert redacted.text is text
    assert redacted.marks == ()
    assert not has_secret(text)


@given(around=st.tuples(st.text(max_size=30), st.text(max_size=30)), case=st.sampled_from(POSITIVE))
@settings(max_examples=300, deadline=None)
def test_lines_before_and_after_do_not_hide_a_named_secret(around: tuple[str, str], case: tuple[str, str]) -> None:
    text, secret = case
    assume(secret not in around[0] + around[1])
    redacted = REDACTOR.redact(f"{around[0]}\n{text}\n{around[1]}")
    assert secret not in redacted.text


FRAGMENTS = ["password", "=", ": ", '"', "\\", "://", "@", "[secret:", "]", "\n", "token=", "a", " is "]
KEYS = ["sk-" + MIXED * 3, "SK" + MIXED * 2, "ghp_" + MIXED * 3, "-----BEGIN PRIVATE KEY-----"]
PIECES = st.sampled_from([*(text for text, _ in POSITIVE), *NEGATIVE, *FRAGMENTS, *KEYS])


@given(pieces=st.lists(PIECES | st.text(max_size=6), max_size=8))
@settings(max_examples=max(300, settings().max_examples), deadline=None)
def test_redacting_twice_changes_nothing(pieces: list[str]) -> None:
    once = REDACTOR.redact("".join(pieces))
    twice = REDACTOR.redact(once.text)
    assert twice.text is once.text
    assert not twice.marks
    for mark in once.marks:
        assert once.text[mark.start : mark.end] == f"[secret:{mark.type}:{mark.digest}]"


HOSTILE = ["a", "sk-", "-----BEGIN", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----" + "A" * 20, "://"]
HOSTILE += ["://a:", "password", "password=", 'password="', 'password="\\"', "token=", "token: a", "eyJ", "[secret:"]
HOSTILE += ["eyJaaaaaaaaaaaaa.", "Bearer ", "curl ", "curl -u ", "authorization: bearer ", "ghp_", "password is ", "\n"]
HOSTILE += ["&", "0123456789:AA", "yourkey", "密码是", "a@", "://a:b@", "password\\", "login ", "SG.aaaaaaaaaaaaaaaa."]
HOSTILE += ["ghp_" + MIXED * 3 + " ", "password=" + HUNTER + " ", "SK" + MIXED * 2]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_text_comes_to_an_end(piece: str) -> None:
    # in time that grows with the square it would take half a minute
    once = REDACTOR.redact(piece * (60_000 // len(piece)))
    assert has_secret(once.text) is False


def test_equal_secrets_have_equal_marks_and_other_keys_make_other_marks() -> None:
    text = f"password = '{SWORD}'\nlater: my password is `{SWORD}`"
    first, second = REDACTOR.redact(text).marks
    assert first.digest == second.digest
    assert Redactor(bytes(32)).redact(text).marks[0].digest != first.digest
    assert REDACTOR.redact(f"password = '{SWORD}s'").marks[0].digest != first.digest


def test_neither_a_mark_nor_the_redactor_shows_a_value_or_the_key() -> None:
    key = bytes(range(32))
    shown = f"{REDACTOR.redact(f'password = {HUNTER}')!r} {REDACTOR!r} {getattr(REDACTOR, '__dict__', '')}"
    assert HUNTER not in shown
    assert repr(key) not in shown
    assert key.hex() not in shown


def test_a_key_of_the_wrong_length_is_refused() -> None:
    for length in (0, 16, 31, 33, 64):
        with pytest.raises(ValueError, match="32 bytes"):
            Redactor(bytes(length))


def test_overlapping_secrets_leave_together() -> None:
    token = "ghp_" + MIXED * 3
    assert [mark.type for mark in REDACTOR.redact(f"https://bob:{token}@github.com").marks] == ["github-token"]
    cleaned = REDACTOR.redact(f'password = "{SWORD}-{token}-{HUNTER}"')
    assert cleaned.text == f'password = "{cleaned.text[12:-1]}"'
    assert len(cleaned.marks) == 1


def test_json_values_are_cleaned_by_shape_and_by_the_name_beside_them() -> None:
    token = "ghp_" + MIXED * 3
    value: dict[str, JsonValue] = {
        "password": SWORD,
        "api_key": "abcdef" + "ghijkl",
        "nested": [{"clientSecret": MIXED}, f"see {token}", 7, None, True],
        token: "a key of a dictionary",
        "passwords": "many",
        "max_tokens": 4096,
        "token_type": "bearer",
        "db_password": ["one" + HUNTER, "two" + HUNTER],
        "Password": "${FROM_ENV}",
    }
    cleaned = REDACTOR.clean_json(value)
    shown = repr(cleaned)
    for secret in (SWORD, "abcdefghijkl", MIXED, token, HUNTER):
        assert secret not in shown
    assert isinstance(cleaned, dict)
    assert list(cleaned)[:3] == ["password", "api_key", "nested"]
    assert cleaned["max_tokens"] == 4096
    assert cleaned["token_type"] == "bearer"
    assert cleaned["passwords"] == "many"
    assert cleaned["Password"] == "${FROM_ENV}"
    assert REDACTOR.clean_json(cleaned) == cleaned
    assert value["password"] == SWORD


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from([text for text, _ in POSITIVE]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["password", "api_key", "token", "note"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(value=JSON)
@settings(max_examples=300, deadline=None)
def test_cleaning_json_twice_changes_nothing(value: JsonValue) -> None:
    once = REDACTOR.clean_json(value)
    assert REDACTOR.clean_json(once) == once
