"""Decide whether the value next to a secret's name is a secret, or a placeholder, a reference, code or prose.

And find secrets in sentences, tables and commands without a sign next to their name, and session cookies: "log in with
password …", "use … as the password", a column of a table, `zip -P …`. In a sentence, only values that look unlike any
word count.

Invariant: decisions use the words and the form of the value, never its entropy, so they can be explained. Well-known
values (`changeme`, `password`, `example`) protect nothing and are not marked.
"""

import enum
import re
from collections.abc import Iterator

from ricordo.guard.key_rules import SecretSpan
from ricordo.language.packs import pack_phrases, pack_words
from ricordo.lazy import lazy_compile

__all__ = [
    "PHRASE_FINDERS",
    "PREPOSED",
    "NameStrength",
    "ValueForm",
    "find_in_sentence",
    "is_placeholder",
    "is_secret_value",
    "is_unlike_word",
    "is_word_passphrase",
]


class NameStrength(enum.IntEnum):
    """How clearly a name denotes a secret: WEAK `token`, MEDIUM `api_key` or `client_secret`, STRONG `password`."""

    WEAK = 1
    MEDIUM = 2
    STRONG = 3


class ValueForm(enum.Enum):
    """The form in which a value follows its name.

    LITERAL is always a value (an environment line, a query string); QUOTED is in quotes; BARE may be a variable; PROSE
    follows "is" in a sentence or is in a table.
    """

    LITERAL = "literal"
    QUOTED = "quoted"
    BARE = "bare"
    PROSE = "prose"


_TEMPLATE = lazy_compile(
    r"<[^<>]*>|\$\{[^{}]*\}|\$\([^()]*\)|\$\{\{.*\}\}|\$[A-Za-z_][A-Za-z0-9_.:]*|\{\{.*\}\}|\{[^{}]*\}|%[A-Za-z_]+%"
    r"|%\([A-Za-z_]+\)?s?|%[sdr]|\[[^\[\]]*\]|\([^()]*\)|[xX*.\-_#?•●∙…0]+|!.*|@[\w./-]+|ENC\[.*",
    re.DOTALL,
)
_REFERENCE = lazy_compile(
    r"(?:os\.(?:environ|getenv)|process\.env|import\.meta|env[.:\[(/]|secrets?[.:/]|vault:|op://|ssm:|arn:|keyring"
    r"|file:|https?://|projects/|[~.]{0,2}/[\w.~-]|[A-Za-z]:\\)"
)
_KEY_FILE = lazy_compile(r"[\w./\\~-]*\.(?:pem|key|json|ya?ml|toml|txt|env|crt|p12|pfx)\Z")
_INSTRUCTION = lazy_compile(lambda: pack_phrases("secret_instruction"))
_SAMPLE = lazy_compile(
    r"EXAMPLE|(?i:your[-_ ]|placeholder|redacted|changeme|x{6}|\*{4}|<[a-z _-]+>|\.\.\.|…|insert[-_ ])"
)
_NOT_ALPHANUMERIC = lazy_compile(r"[^a-z0-9]+")


def is_placeholder(value: str) -> bool:
    """Return whether `value` only represents a secret: a template, a reference, a mask or a known dummy."""
    text = value.strip()
    if not text or _TEMPLATE.fullmatch(text) or _REFERENCE.match(text) or _KEY_FILE.match(text):
        return True
    if _SAMPLE.search(text):
        return True
    if not text.isascii() and text.casefold().rstrip(".!") in pack_words("dummy_secret"):
        return True
    words = _NOT_ALPHANUMERIC.sub("", text.lower())
    if text.isascii() and not words:
        return len(text) < 4
    return words in pack_words("dummy_secret") or (len(words) <= 64 and _INSTRUCTION.fullmatch(words) is not None)


_IDENTIFIER = lazy_compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)*\Z", re.ASCII)
_SNAKE = lazy_compile(r"[a-z]+(?:_[a-z0-9]+)+\Z")
_CODE_WORD = lazy_compile(
    r"passw|token|secret|key|cred|user|config|setting|args?\b|arg\d|env|input|value|self|this|request|response"
    r"|default|param|option|result|data|var|string|field|line|item|model|version|encoded|type",
    re.IGNORECASE,
)
_PATTERN = lazy_compile(r"[\[\](){}<>^|\\]")
_NUMBERS = lazy_compile(r"^[\d.,:%/+\-–TZ]+\Z")
_VERSION = lazy_compile(r"^[vV]?\d+(?:\.\d+)+[a-z0-9.-]*\Z")
_CONSTANT = lazy_compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
_WORDS = lazy_compile(r"[^\W\d_]+(?:[-_.:/'’ ][^\W\d_]+)*[!.]?\Z")
_RULE_LIST = lazy_compile(r"[a-z_]+(?::[\w,]+)?(?:\|[a-z_]+(?::[\w,]+)?)+\Z")
_NUMBERED = lazy_compile(r"\d{1,3}[-–][^\W\d_]+\Z")
_LETTERS = lazy_compile(r"[A-Za-z]+\Z")
_HAS_DIGIT = lazy_compile(r"\d")
_HAS_LETTER = lazy_compile(r"[^\W\d_]")
_SENTENCE = lazy_compile(lambda: rf"\b(?:{pack_phrases('sentence_word')})\b", re.IGNORECASE)
_DESCRIPTIVE = lazy_compile(lambda: rf"\w+[-–](?:{pack_phrases('compound_end')})\Z", re.IGNORECASE)
_PARTICIPLE = lazy_compile(lambda: rf"\w+(?:{pack_phrases('descriptive_ending')})\Z")
_CASED = lazy_compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONSONANTS = lazy_compile(r"[bcdfghjklmnpqrstvwxz]{6}")
_MIN_PASSPHRASE = 10
_MAX_JUMBLED_PART = 2.5
_MIN_LENGTHS = {NameStrength.WEAK: 8, NameStrength.MEDIUM: 6, NameStrength.STRONG: 4}


def is_secret_value(value: str, strength: NameStrength, form: ValueForm) -> bool:
    """Return whether `value`, found next to a secret's name in this `form`, is the secret itself."""
    if is_placeholder(value) or _CONSTANT.match(value) or _RULE_LIST.match(value) or _NUMBERED.match(value):
        return False
    if form is ValueForm.QUOTED and strength is NameStrength.STRONG:
        return len(value) >= 3 and not (" " in value and _SENTENCE.search(value))
    if len(value) < _MIN_LENGTHS[strength] or any(char.isspace() for char in value):
        return False
    if _WORDS.match(value):
        return _is_word_secret(value, strength, form)
    if strength is not NameStrength.STRONG and any(shape.search(value) for shape in (_PATTERN, _NUMBERS, _VERSION)):
        return False
    decide = {ValueForm.PROSE: _is_prose_secret, ValueForm.BARE: _is_bare_secret}.get(form)
    return decide is None or decide(value, strength)


def is_word_passphrase(value: str) -> bool:
    """Return whether `value`, four or more words after the name of a passphrase, is one.

    No word of a passphrase belongs to a sentence.
    """
    words = value.split(" ")
    if value != value.lower() or len({*words}) < len(words):
        return False
    return not any(
        word in pack_words("not_passphrase") or word in pack_words("compound_part") or _PARTICIPLE.match(word)
        for word in words
    )


def _is_word_secret(value: str, strength: NameStrength, form: ValueForm) -> bool:
    """Return whether a value of letters only is a passphrase, not a word of the sentence or a variable."""
    if form in {ValueForm.PROSE, ValueForm.BARE}:
        return _is_passphrase(value, strength) or _is_jumbled(value)
    if strength is NameStrength.STRONG:
        return True
    return len(value) >= (10 if strength is NameStrength.MEDIUM else 20) and _LETTERS.match(value) is not None


def _is_passphrase(value: str, strength: NameStrength) -> bool:
    """Return whether words joined by hyphens are a passphrase, not a compound: `correct-horse`, not `read-only`.

    Three words are required if the name is not that of a password.
    """
    parts = value.lower().split("-")
    if len(parts) < (2 if strength is NameStrength.STRONG else 3) or len(value) < _MIN_PASSPHRASE:
        return False
    if value != value.lower() and len(parts) < 3:
        # German writes such compounds with capitals
        return False
    plain = all(len(part) >= 3 and part.isalpha() and part not in pack_words("compound_part") for part in parts)
    return plain and not _DESCRIPTIVE.match(value) and not _PARTICIPLE.match(parts[-1])


def _is_jumbled(value: str) -> bool:
    """Return whether letters are neither a word nor a name in camel case: `xKqRtVbnM`, `qwrtzpsd`."""
    if not value.isalpha() or not value.isascii() or len(value) < 8 or value.isupper() or _CODE_WORD.search(value):
        return False
    parts = _CASED.findall(value)
    return len(value) < _MAX_JUMBLED_PART * len(parts) or _CONSONANTS.search(value) is not None


def _is_prose_secret(value: str, strength: NameStrength) -> bool:
    if _DESCRIPTIVE.match(value) or _VERSION.match(value):
        return False
    if strength is NameStrength.STRONG:
        return not _NUMBERS.match(value) or value.isdigit()
    last = value.lower().rpartition("-")[2]
    if last != value.lower() and (last in pack_words("compound_part") or _PARTICIPLE.match(last)):
        return False
    return _HAS_DIGIT.search(value) is not None and _HAS_LETTER.search(value) is not None


def _is_bare_secret(value: str, strength: NameStrength) -> bool:
    if _IDENTIFIER.match(value) and ("." in value or ":" in value or "->" in value or _CODE_WORD.search(value)):
        return False
    if strength is NameStrength.STRONG:
        return True
    last = value.lower().rpartition("-")[2]
    if last != value.lower() and (last in pack_words("compound_part") or _PARTICIPLE.match(last)):
        return False
    return _HAS_DIGIT.search(value) is not None and _HAS_LETTER.search(value) is not None and not _SNAKE.match(value)


_VALUE_WORD = r"[\"'`“]?(?P<value>[^\s\"'`“”<>|]{6,64})"
PREPOSED = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('secret_lead')})[ \t]{{1,2}}(?:(?:{pack_phrases('secret_article')})[ \t])?\Z"
        r"|(?:\A|\n)[ \t]{0,8}\Z"
    ),
    re.IGNORECASE,
)
"""The text before a name whose value is the next word."""
_CHANGED_TO = lazy_compile(lambda: rf"(?:{pack_phrases('secret_changed')}){_VALUE_WORD}", re.IGNORECASE)
_NEXT_WORD = lazy_compile(r"[ \t]{1,2}(?:-[ \t])?" + _VALUE_WORD)
_USED_AS = lazy_compile(
    lambda: rf"(?<!\w)(?:{pack_phrases('use')})[ \t]{{1,2}}{_VALUE_WORD}[\"'`”]?(?:{pack_phrases('use_as')})\Z",
    re.IGNORECASE,
)
_TABBED_CELL = lazy_compile(r"\t(?P<value>[^\s\"'`()]{6,64})[ \t]*(?=[\t\r\n]|\Z)")
_MAX_DISTANCE = 112
_SYMBOLS = frozenset("!#$%^&*~")
_DIGITS = lazy_compile(r"\d+")
_ENDINGS = ".,:;?)]"
_COOKIES = lazy_compile(rb"cookie:[ \t]{0,4}|curl\b[^\r\n]{0,200}?[ \t](?:-b|--cookie)[ \t=][\"']?")
_COOKIE_PAIRS = lazy_compile(r"[^\r\n]{1,4096}")
_COOKIE = lazy_compile(r"(?:\A|;[ \t]?)(?P<name>[\w.-]{1,64})=(?P<value>[^;,\s\"']{16,4096})")
_SESSION = lazy_compile(
    r"sess|sid\Z|sid[._]|auth|token|jwt|remember|login|csrf|xsrf|secret|identity|credential|\Asso", re.IGNORECASE
)
_LONG_COOKIE = 24
_BLOCK_OPENING = lazy_compile(rb": [|>][+-]?\d?[ \t]{0,4}\r?\n")
_BLOCK_NAME = lazy_compile(
    lambda: rf"(?:passw(?:or[dt]|d)|passphrase|{pack_phrases('secret_block_name')}|secret|token|api_?key)[\"']?\Z",
    re.IGNORECASE,
)
_BLOCK = lazy_compile(r"[ \t]{1,16}(?P<value>[^\s\"'`]{6,256})[ \t]{0,4}(?=\r|\n|\Z)")
_SEPARATOR = lazy_compile(rb"\n[ \t]{0,8}[|:-][|: \t]{0,4}--[-:| \t\r]{0,512}(?=\n|\Z)")
_MAX_ROW = 2_000
_COLUMN = lazy_compile(
    lambda: rf"\W{{0,4}}(?:\w{{1,20}}[ _-])?(?:{pack_phrases('secret_column')})\W{{0,4}}", re.IGNORECASE
)
_MAX_ROWS = 200
_SHORT_NAME = lazy_compile(rb"pass[ \t]?[:=][ \t]?")
_LOGIN = lazy_compile(rb"credentials?(?:[ \t]are|[ \t]is|:)[ \t]{1,2}[\"'`]?[\w.@-]{2,40}[:/]")
_VALUE = lazy_compile(_VALUE_WORD)
_CODE_OPENING = lazy_compile(rb"getenv\(|environ\.get\(")
_CODE = lazy_compile(r"[\"'](?P<name>\w{1,64})[\"'],[ \t]{0,2}[\"'](?P<value>[^\"'\n]{6,256})[\"']")
_COMMANDS: dict[bytes, re.Pattern[str]] = {
    b"zip -": lazy_compile(r"(?<!\w)zip\b[^\n|;]{0,100}?[ \t]-P[ \t]?" + _VALUE_WORD),
    b"7z": lazy_compile(r"(?<!\w)7z[ar]?[ \t][^\n|;]{0,100}?[ \t]-p[\"']?(?P<value>[^\s\"']{4,64})"),
    b"openssl": lazy_compile(
        r"(?<!\w)openssl\b[^\n|;]{0,200}?[ \t](?:-k[ \t]|-pass(?:in|out)?[ \t]pass:)[\"']?(?P<value>[^\s\"']{4,128})"
    ),
    b"sudo -s": lazy_compile(
        r"(?:echo[ \t](?:-n[ \t])?|printf[ \t](?:[\"']?%s(?:\\n)?[\"']?[ \t])?)"
        r"[\"']?(?P<value>[^\s\"'|]{4,64})[\"']?[ \t]{0,2}\|[ \t]{0,2}sudo[ \t]-S"
    ),
    b"net use": lazy_compile(
        r"(?<!\w)net[ \t]use[ \t][^\n]{0,100}?[ \t](?P<value>[^\s/\\*][^\s\\]{4,64})[ \t]/user:", re.IGNORECASE
    ),
}


def is_unlike_word(value: str) -> bool:
    """Return whether a word of a sentence is no word, name or version: it has a symbol, or digits in two places."""
    if (
        not any(char.isalpha() for char in value)
        or "://" in value
        or not is_secret_value(value, NameStrength.STRONG, ValueForm.PROSE)
    ):
        return False
    digits = _DIGITS.findall(value)
    has_symbol = not _SYMBOLS.isdisjoint(value[:-1]) or value[-1:] in _SYMBOLS - {"!"}
    return bool(digits) and (has_symbol or (len(digits) > 1 and value.lower() != value and len(value) >= 8))


def _is_code_like(value: str) -> bool:
    """Return whether a cell next to the name of a password has letters and digits, unlike a word."""
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and "_" not in value
    return mixed and is_secret_value(value, NameStrength.STRONG, ValueForm.PROSE)


def find_in_sentence(text: str, start: int, end: int) -> SecretSpan | None:
    """Return the secret in the sentence around the name of a password from `start` to `end`."""
    before = text[max(0, start - _MAX_DISTANCE) : start]
    match = _CHANGED_TO.match(text, end)
    if match is None and PREPOSED.search(before):
        match = _NEXT_WORD.match(text, end)
    if match is not None and (span := _sentence_span(match, 0)) is not None:
        return span
    if (cell := _TABBED_CELL.match(text, end)) and before[-1:] in {"", "\n", "\t"} and _is_code_like(cell["value"]):
        return SecretSpan(start=cell.start("value"), end=cell.end("value"), type="password", rank=1)
    usage_match = _USED_AS.search(before)
    return None if usage_match is None else _sentence_span(usage_match, start - len(before))


def _sentence_span(match: re.Match[str], offset: int) -> SecretSpan | None:
    value = match["value"].rstrip(_ENDINGS)
    if not is_unlike_word(value):
        return None
    start = offset + match.start("value")
    return SecretSpan(start=start, end=start + len(value), type="password", rank=1)


def _lower_bytes(text: str) -> bytes:
    """Return the lower-cased view of a text, one byte for each character, for a quick search of literals."""
    return text.encode("ascii", "replace").lower()


def _find_cookies(text: str) -> Iterator[SecretSpan]:
    for opening in _COOKIES.finditer(_lower_bytes(text)):
        header = _COOKIE_PAIRS.match(text, opening.end())
        for cookie in _COOKIE.finditer(header.group()) if header else ():
            value = cookie["value"]
            is_random = any(map(str.isdigit, value)) or (len(value) >= _LONG_COOKIE and value.isalpha())
            if is_random and _SESSION.search(cookie["name"]) and not is_placeholder(value):
                start = opening.end() + cookie.start("value")
                yield SecretSpan(start=start, end=start + len(value), type="credential", rank=1)


def _find_blocks(text: str) -> Iterator[SecretSpan]:
    for opening in _BLOCK_OPENING.finditer(_lower_bytes(text)):
        match = _BLOCK.match(text, opening.end())
        has_name = match and _BLOCK_NAME.search(text[max(0, opening.start() - 20) : opening.start()])
        if match and has_name and is_secret_value(match["value"], NameStrength.STRONG, ValueForm.PROSE):
            yield SecretSpan(start=match.start("value"), end=match.end("value"), type="password", rank=1)


def _find_columns(text: str) -> Iterator[SecretSpan]:
    """Yield the cells below the heading of a column of passwords in a Markdown table."""
    for separator in _SEPARATOR.finditer(_lower_bytes(text)):
        position = separator.start()
        header = text[max(text.rfind("\n", 0, position) + 1, position - _MAX_ROW) : position]
        columns = [
            position
            for position, cell in enumerate(header.strip().strip("|").split("|"))
            if _COLUMN.fullmatch(cell.strip())
        ]
        start = separator.end() + 1
        for _ in range(_MAX_ROWS if columns else 0):
            end = text.find("\n", start)
            line = text[start : end if end >= 0 else len(text)]
            if "|" not in line:
                break
            yield from _find_cells(line, start, columns)
            start += len(line) + 1


def _find_cells(line: str, start: int, columns: list[int]) -> Iterator[SecretSpan]:
    opening = len(line) - len(line.lstrip(" \t|")) if line.lstrip().startswith("|") else 0
    position = start + opening
    for number, cell in enumerate(line[opening:].split("|")):
        value = cell.strip(" \t`*\r")
        if (
            number in columns
            and is_secret_value(value, NameStrength.STRONG, ValueForm.PROSE)
            and any(map(str.isdigit, value))
        ):
            first = position + cell.index(value)
            yield SecretSpan(start=first, end=first + len(value), type="password", rank=1)
        position += len(cell) + 1


def _find_short_names(text: str) -> Iterator[SecretSpan]:
    yield from _find_values_after(_SHORT_NAME, text)


def _find_login(text: str) -> Iterator[SecretSpan]:
    yield from _find_values_after(_LOGIN, text)


def _find_values_after(opening: re.Pattern[bytes], text: str) -> Iterator[SecretSpan]:
    for match in opening.finditer(_lower_bytes(text)):
        before = text[match.start() - 1] if match.start() else " "
        value = _VALUE.match(text, match.end())
        span = _sentence_span(value, 0) if value and not (before.isalnum() or before in "_-") else None
        if span:
            yield span


def _find_defaults(text: str) -> Iterator[SecretSpan]:
    for opening in _CODE_OPENING.finditer(_lower_bytes(text)):
        match = _CODE.match(text, opening.end())
        if match is None:
            continue
        name = match["name"].lower()
        is_secret_name = any(word in name for word in ("passw", "pwd", "secret", "token", "api_key", "passphrase"))
        if is_secret_name and is_secret_value(match["value"], NameStrength.MEDIUM, ValueForm.QUOTED):
            yield SecretSpan(start=match.start("value"), end=match.end("value"), type="credential", rank=1)


def _find_commands(text: str) -> Iterator[SecretSpan]:
    lower = _lower_bytes(text)
    for hint, pattern in _COMMANDS.items():
        for match in pattern.finditer(text) if hint in lower else ():
            if is_secret_value(match["value"], NameStrength.STRONG, ValueForm.LITERAL):
                yield SecretSpan(start=match.start("value"), end=match.end("value"), type="password", rank=1)


PHRASE_FINDERS = (
    (b"cookie", _find_cookies),
    (b" -b ", _find_cookies),
    *((hint, _find_blocks) for hint in (b": |", b": >")),
    *((hint, _find_columns) for hint in (b"|--", b"| --", b"|:-", b"| :-")),
    (b"pass", _find_short_names),
    (b"credential", _find_login),
    (b"environ.get(", _find_defaults),
    (b"getenv(", _find_defaults),
    *((hint, _find_commands) for hint in _COMMANDS),
)
"""Finders of secrets, each with a literal that must be in the lower-cased text."""
