"""Find secrets in sentences, tables and commands without a sign next to their name, and session cookies.

Examples are "log in with password …", "use … as the password", a column of a table, `zip -P …`. In a sentence, only
values that look unlike any word count.

Invariant: repeats in patterns are bounded, so a search is linear in the text.
"""

import re
from collections.abc import Iterator

from ricordo.guard.heuristics import NameStrength, ValueForm, is_placeholder, is_secret_value
from ricordo.guard.key_rules import SecretSpan
from ricordo.language.packs import pack_phrases
from ricordo.lazy import lazy_compile

__all__ = ["PHRASE_FINDERS", "PREPOSED", "find_in_sentence", "is_unlike_word"]


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
