"""Find values next to a secret's name, in many languages: assignments, JSON pairs, flags, form fields, sentences.

Names are searched in a lower-cased view with one byte for each character, so positions are the same in both.

Invariant: each step examines at most one value, and examines a rejected value again only if it is short, so the work is
linear in the text.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from ricordo.guard.heuristics import NameStrength, ValueForm, find_in_sentence, is_secret_value
from ricordo.guard.key_rules import SecretSpan
from ricordo.language.packs import pack_phrases, pack_words
from ricordo.lazy import dataclass, lazy_compile

__all__ = [
    "find_foreign_names",
    "find_keyword_secrets",
    "foreign_name_strength",
    "name_strength",
]


_FOREIGN_NAMES = (
    (NameStrength.STRONG, lazy_compile(lambda: pack_phrases("strong_secret_name"), re.IGNORECASE)),
    (NameStrength.MEDIUM, lazy_compile(lambda: pack_phrases("medium_secret_name"), re.IGNORECASE)),
)
# One search for all names: each begins with a letter that is rare in its languages, so most texts are searched
# quickly.
_FOREIGN_HINT = lazy_compile(lambda: pack_phrases("secret_name_hint"))


@cache
def _ascii_hints() -> tuple[bytes, ...]:
    return tuple(hint.encode() for hint in pack_phrases("secret_name_ascii").split("|"))


def find_foreign_names(text: str, low: bytes) -> list[tuple[int, int, NameStrength]]:
    """Return the positions of names in other languages in `text`, in order; `low` is its lower-cased view in bytes."""
    plain = any(hint in low for hint in _ascii_hints())
    if not plain and (text.isascii() or _FOREIGN_HINT.search(text) is None):
        return []
    return sorted(
        (match.start(), match.end(), strength)
        for strength, pattern in _FOREIGN_NAMES
        for match in pattern.finditer(text)
    )


def foreign_name_strength(name: str) -> NameStrength | None:
    """Return how clearly all of `name` denotes a secret in another language; None if it does not."""
    return next((strength for strength, pattern in _FOREIGN_NAMES if pattern.fullmatch(name)), None)


# Every text with a name contains one of these; each starts the patterns next to it.
_KEYWORDS: dict[bytes, tuple[NameStrength, re.Pattern[bytes]]] = {
    b"passw": (NameStrength.STRONG, lazy_compile(rb"passw(?:or[dt]|r?d)")),
    b"passphrase": (NameStrength.STRONG, lazy_compile(rb"passphrase")),
    b"passcode": (NameStrength.STRONG, lazy_compile(rb"passcode")),
    b"pwd": (NameStrength.STRONG, lazy_compile(rb"pwd")),
    b"key": (
        NameStrength.MEDIUM,
        lazy_compile(
            rb"key(?:(?<=(?:api|app)key)|(?<=(?:api|app)[_\-. ]key)|(?<=(?:auth)key)|(?<=(?:auth)[_\-. ]key)"
            rb"|(?<=(?:admin)key)|(?<=(?:admin)[_\-. ]key)|(?<=(?:access|secret|master)key)"
            rb"|(?<=(?:access|secret|master)[_\-. ]key)|(?<=(?:private|signing|account|service)key)"
            rb"|(?<=(?:private|signing|account|service)[_\-. ]key)|(?<=encryptionkey)|(?<=encryption[_\-. ]key))"
        ),
    ),
    b"credential": (NameStrength.MEDIUM, lazy_compile(rb"credentials?")),
    b"_seed": (NameStrength.MEDIUM, lazy_compile(rb"(?:signing|master|wallet|private|secret|account|key)_seed")),
    b"_auth": (NameStrength.MEDIUM, lazy_compile(rb"_auth")),
    b"secret": (NameStrength.WEAK, lazy_compile(rb"secret")),
    b"token": (NameStrength.WEAK, lazy_compile(rb"token")),
    b"pass": (NameStrength.WEAK, lazy_compile(rb"pass(?![cpw])")),
    # within the letters and digits of an id it is no name, and an id comes with every entry
    b"pw": (NameStrength.WEAK, lazy_compile(rb"pw(?!d)(?!(?<=[0-9]pw)[a-z0-9]{3})")),
}
_NAME_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_COMPONENT = lazy_compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_BEFORE_SIGN = (
    # the plural counts only in environment variables, since many texts count tokens
    r"(?-i:S(?==))?(?:_?\d{1,2})?(?:[ \t][(\[][^()\[\]\n]{1,40}[)\]](?=[ \t]?[:=]))?"
    r"(?:[_-](?:prod|production|dev|staging|live|test|new|old|value|confirmation))?"
    r"(?P<close>\\{0,8}[\"'`])?\]?[*_]{0,2}[ \t\u3000]{0,8}"
    r"(?:(?::[ \t]?)?(?:str|string|String|SecretStr|&str|Optional\[str\])(?:[ \t]?\|[ \t]?None)?[ \t]{0,4}(?==))?"
)
_VALUE_OPENING = (
    r"[*_]{0,2}\s{0,2}[ \t]{0,40}(?P<prefix>[rbufRBUF]{1,2}(?=[\"']))?(?P<open>\\{0,8}[\"'`“„「『]|«[ \u00a0\u202f]?)?"
)


def _sign_pattern(sign_body: str, more: str = "") -> str:
    """Return the pattern between a name and its value, with the words for "is" and `more`."""
    return (
        rf"(?P<sign>:=|=>|={{1,3}}|[:=：＝]|\|[ \t]"
        rf"|(?:(?<=[\s*_\"'`])(?:{sign_body})(?![^\W_])(?:[ \t](?:{pack_phrases('secret_is_now')})(?!\w))?"
        rf"|(?:{pack_phrases('secret_is_joined')}){more})[ \t]?[:：]?|—|–|->|→"
    )


def _all_is_words() -> str:
    return f"{pack_phrases('secret_is')}|{pack_phrases('secret_is_foreign')}"


def _after_foreign_name() -> str:
    # only before plain characters, where this pattern does not know the words in between and after
    sign = _sign_pattern(_all_is_words(), f"|{pack_phrases('secret_is_plain')}")
    return f"{_BEFORE_SIGN}{sign}){_VALUE_OPENING}"


def _after_purpose() -> str:
    return (
        rf"[ \t](?:{pack_phrases('secret_purpose')})(?!\w)"
        rf"(?:[\"'`][\w.@-]{{1,40}}[\"'`]|[^.,;:=\n\"'|<>(){{}}]|\.(?=\w)|(?<=\w)['’](?=\w)){{0,40}}?[ \t]?"
        rf"{_sign_pattern(_all_is_words())}){_VALUE_OPENING}"
    )


# Letters of scripts without spaces between words, and of Korean, which joins its particles to words.
_WIDE_LETTERS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff66-\uff9f"
_AFTER_NAME = lazy_compile(
    lambda: f"{_BEFORE_SIGN}{_sign_pattern(pack_phrases('secret_is'))}|(?<=[ \\t])(?=[^\\s\\-=:|])){_VALUE_OPENING}",
    re.IGNORECASE,
)
_AFTER_FOREIGN_NAME = lazy_compile(_after_foreign_name, re.IGNORECASE)
_AFTER_PURPOSE = lazy_compile(_after_purpose, re.IGNORECASE)
_BARE_WORD = lazy_compile(
    rf"(?:[^\s\"'`,;&<>(){{}}\[\]|\\，。；、！？）】」』”“»{_WIDE_LETTERS}]"
    rf"|\\(?![nrtbfu\"'\\{_WIDE_LETTERS}])|&(?![A-Za-z_]\w*=|amp;)(?=\S))+"
)
_REACHABLE = lazy_compile(r"[\w.$]*")
_LINE_VALUE = lazy_compile(r"[^\s\"'`\\]+")
_ENVIRONMENT = lazy_compile(r"(?:^|\n|\\n|[\s\"'])[ \t]*[A-Z0-9_]*\Z")
_CLOSING_QUOTES = {"“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_USER_BEFORE = lazy_compile(
    lambda: (
        rf"(?<!\w)(?:{pack_phrases('user_name')})[ \t]{{0,2}}[:=]?[ \t]{{1,2}}[\"'`]?[\w.@+-]{{1,64}}[\"'`]?"
        rf"[ \t]{{0,2}}[,;/|]?[ \t]{{0,2}}(?:(?:{pack_phrases('user_and')})[ \t])?\Z"
    ),
    re.IGNORECASE,
)
_WORD_BESIDE = lazy_compile(r"[ \t]{1,2}[\"'`]?(?P<value>[^\s\"'`,;]{4,128})")
_MAX_USER_DISTANCE = 112
_UNITS = lazy_compile(lambda: rf"[ \t]+(?:{pack_phrases('secret_unit')})", re.IGNORECASE)
_MAX_REREAD = 512
_MAX_QUOTATION = 1_024


@dataclass(frozen=True, kw_only=True)
class _Keyword:
    """The keyword in a name and its strength without other words; with `is_short` the keyword needs other words."""

    start: int
    end: int
    strength: NameStrength
    is_short: bool


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A possible secret: its position, its form, and where the search continues if it is not a secret."""

    start: int
    end: int
    form: ValueForm


def name_strength(name: str) -> NameStrength | None:
    """Return how clearly all of `name` denotes a secret (`DB_PASSWORD`, `clientSecret`); None if it does not."""
    lower = name.encode("ascii", "replace").lower()
    for keyword in _find_keywords(lower):
        rest = _AFTER_NAME.match(name + "=", keyword.end)
        if rest is not None and rest.start("sign") == len(name):
            strength = _keyword_strength(name, keyword)
            if strength is not None:
                return strength
    return foreign_name_strength(name)


def find_keyword_secrets(text: str, lower: bytes) -> Iterator[SecretSpan]:
    """Yield the values of secret names in `text`; `lower` is its lower-cased view, one byte for each character."""
    position = 0
    for name in _find_keywords(lower):
        if name.start < position:
            continue
        strength = _keyword_strength(text, name)
        if strength is not None:
            span, position = _find_value_span(text, name.end, name.start, strength, _AFTER_NAME)
            if span is not None:
                yield span
    position = 0
    for start, end, strength in find_foreign_names(text, lower):
        if start >= position:
            span, position = _find_value_span(text, end, start, strength, _AFTER_FOREIGN_NAME)
            if span is not None:
                yield span


@cache
def _keywords() -> Mapping[bytes, tuple[NameStrength, re.Pattern[bytes]]]:
    foreign = (word.encode() for word in sorted(pack_words("secret_identifier")))
    return {**_KEYWORDS, **{word: (NameStrength.STRONG, lazy_compile(word)) for word in foreign}}


def _find_keywords(lower: bytes) -> list[_Keyword]:
    """Return the keywords in `lower`, in the order of their ends."""
    return sorted(
        (
            _Keyword(start=match.start(), end=match.end(), strength=strength, is_short=hint in {b"pass", b"pw"})
            for hint, (strength, pattern) in _keywords().items()
            if hint in lower
            for match in pattern.finditer(lower)
        ),
        key=lambda name: name.start,
    )


def _find_value_span(
    text: str, position: int, name_start: int, strength: NameStrength, after: re.Pattern[str]
) -> tuple[SecretSpan | None, int]:
    """Return the secret after the name that ends at `position`, and where the search continues.

    `after` matches the text between name and value.
    """
    sign = after.match(text, position)
    plain = after is _AFTER_NAME
    if sign is None or (not sign["sign"] and not _is_flag(text, name_start)):
        # "the password for staging is …"
        sign, plain = _AFTER_PURPOSE.match(text, position), False
    if sign is None:
        if strength is NameStrength.STRONG:
            return _find_after_user(text, name_start, position) or find_in_sentence(
                text, name_start, position
            ), position
        return _find_after_user(text, name_start, position) if text[
            name_start:position
        ].lower() == "pass" else None, position
    value = _parse_value(text, name_start, sign, strength, plain=plain)
    if value is None:
        return None, sign.start("sign")
    if is_secret_value(text[value.start : value.end], strength, value.form):
        type_ = "password" if strength is NameStrength.STRONG else "credential"
        return SecretSpan(start=value.start, end=value.end, type=type_, rank=1), value.end
    short = value.end - value.start <= _MAX_REREAD
    span = find_in_sentence(text, name_start, position) if strength is NameStrength.STRONG else None
    return span, position if short else value.end


def _find_after_user(text: str, name_start: int, position: int) -> SecretSpan | None:
    """Return the secret after a name without a sign, as in "user bob, password …"."""
    value = _WORD_BESIDE.match(text, position)
    if value is None or _USER_BEFORE.search(text[max(0, name_start - _MAX_USER_DISTANCE) : name_start]) is None:
        return None
    word = value["value"].rstrip(".:?)")
    if not any(map(str.isdigit, word)) or not is_secret_value(word, NameStrength.STRONG, ValueForm.PROSE):
        return None
    return SecretSpan(start=value.start("value"), end=value.start("value") + len(word), type="password", rank=1)


def _keyword_strength(text: str, name: _Keyword) -> NameStrength | None:
    """Return the strength of the whole name around `name`, using the words before the keyword."""
    if name.strength is NameStrength.STRONG:
        return NameStrength.STRONG
    before = _name_before(text, name.start)
    if name.strength is NameStrength.MEDIUM:
        return NameStrength.MEDIUM
    words = _COMPONENT.findall(before)
    if name.is_short:
        camel = text[name.start].isupper() and not before[-1:].isupper()
        return _short_name_strength(text, name, words) if camel or not before[-1:].isalpha() else None
    if words and (words[-1].lower() in pack_words("harmless_name") or "public" in before.lower()):
        return None
    return NameStrength.MEDIUM if words else NameStrength.WEAK


def _short_name_strength(text: str, name: _Keyword, words: list[str]) -> NameStrength | None:
    """Return the strength of `pass` or `pw`, which count in a longer name, as a quoted key, or after a user's name."""
    quoted = text[name.start - 1 : name.start] in {'"', "'"} and text[name.end : name.end + 1] in {'"', "'"}
    if words or quoted:
        return NameStrength.STRONG
    line = text[max(0, name.start - 80) : name.start].lower()
    return NameStrength.MEDIUM if name.end - name.start == 2 or "user" in line or "login" in line else None


def _name_before(text: str, position: int) -> str:
    """Return the part of the name before `position`, at most 64 characters."""
    window = text[max(0, position - 64) : position]
    return window[len(window.rstrip(_NAME_CHARACTERS)) :]


def _parse_value(
    text: str, name_start: int, sign: re.Match[str], strength: NameStrength, *, plain: bool
) -> _Candidate | None:
    """Return the candidate after `sign`: the quoted text, else the rest of an environment line, else the next word.

    `plain` means that the name also occurs in code, so its value can be a single word.
    """
    sign_text, opening = sign["sign"], sign["open"]
    if opening is not None:
        end = _find_closing_quote(text, sign.end(), opening)
        if end is not None:
            return _Candidate(start=sign.end(), end=end, form=ValueForm.QUOTED)
    if _is_environment(text, name_start, sign_text, sign):
        return _parse_line_value(text, sign.end())
    if sign_text.startswith("|") and strength is not NameStrength.STRONG:
        return None
    return _parse_bare_value(text, name_start, sign, plain=plain)


def _parse_bare_value(text: str, name_start: int, sign: re.Match[str], *, plain: bool) -> _Candidate | None:
    """Return the word after `sign`, without the punctuation that ends a sentence.

    None for a number with a unit, or the beginning of a call or an index. The word ends where Chinese, Japanese or
    Korean text begins.
    """
    match = _BARE_WORD.match(text, sign.end())
    if match is None:
        return None
    word = match.group().rstrip(".,:?")
    end = match.start() + len(word)
    form = _bare_form(text, name_start, sign, end, plain=plain)
    if form is ValueForm.PROSE and word.isdigit() and _UNITS.match(text, end):
        return None
    if form is not ValueForm.LITERAL and text[end : end + 1] in {"(", "["} and _REACHABLE.fullmatch(word):
        return None
    return _Candidate(start=match.start(), end=end, form=form)


def _bare_form(text: str, name_start: int, sign: re.Match[str], end: int, *, plain: bool) -> ValueForm:
    sign_text = sign["sign"]
    if sign["open"] is not None:
        return ValueForm.QUOTED
    if sign_text and sign_text[0] not in ":=：＝-":
        return ValueForm.PROSE
    name_from = name_start - len(_name_before(text, name_start))
    in_a_list = sign_text == "=" and text[max(0, name_from - 1) : name_from] in {"&", "?", ";"}
    in_settings = plain and sign_text in {":", "："} and _is_whole_line_word(text, sign.end(), end)
    return ValueForm.LITERAL if in_a_list or in_settings else ValueForm.BARE


def _is_whole_line_word(text: str, start: int, end: int) -> bool:
    """Return whether the rest of the line is one lower-case word, as in a settings file."""
    word = text[start:end]
    return len(word) >= 6 and word.isalpha() and word.islower() and (end == len(text) or text[end] in "\r\n")


def _is_flag(text: str, name_start: int) -> bool:
    """Return whether the name is a long option: `--password hunter2`."""
    return _name_before(text, name_start).startswith("--")


def _is_environment(text: str, name_start: int, sign_text: str, sign: re.Match[str]) -> bool:
    """Return whether the name is in capitals at the start of a word, with `=` and no spaces: `DB_PASSWORD=...`."""
    if sign_text != "=" or sign.start("sign") != sign.end() - 1 or not text[name_start].isupper():
        return False
    name = text[name_start : sign.start("sign")]
    return name.isupper() and _ENVIRONMENT.search(text[max(0, name_start - 80) : name_start]) is not None


def _parse_line_value(text: str, start: int) -> _Candidate | None:
    match = _LINE_VALUE.match(text, start)
    if match is None:
        return None
    end = start + len(match.group().rstrip(";,"))
    calls = re.match(r"[A-Za-z_][\w.]*\(", match.group())
    return None if calls else _Candidate(start=start, end=end, form=ValueForm.LITERAL)


def _find_closing_quote(text: str, start: int, opening: str) -> int | None:
    """Return the end of the quotation after `opening`, within 1,024 characters and on the same line."""
    closing = _CLOSING_QUOTES.get(opening[:1], opening)
    end = text.find(closing, start, start + _MAX_QUOTATION)
    while end > start and len(opening) == 1 and text[end - 1] == "\\" and opening in "\"'":
        end = text.find(closing, end + 1, start + _MAX_QUOTATION)
    if end < 0 or "\n" in text[start:end]:
        return None
    return start + len(text[start:end].rstrip("\u00a0\u202f ")) if closing == "»" else end
