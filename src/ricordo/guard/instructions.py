"""Find text that gives orders to an assistant: instructions in a page, a file, a mail or a tool's output.

Such text is recognised by kinds, not by sentences: words of a few sorts that stand near one another. "Ignore" is an
order to a reader of recipes, too; "ignore" near "your previous instructions" is one to an assistant. The words are in
`ricordo.language.packs.others`. Text that hides words, in invisible letters, in lookalikes, in code or in markup, is
read as an assistant could read it.

Invariants: pure, and linear in the text. Repeats in patterns are bounded.
"""

import re
import unicodedata
from base64 import b64decode
from binascii import Error as DecodingError
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import Literal, TypeAlias, get_args
from urllib.parse import unquote

from ricordo.guard.fence import LOOKALIKES, escape_tags, is_invisible
from ricordo.language import split_words
from ricordo.language.packs import PatternTable
from ricordo.language.packs.others import OrderKind, order_pattern
from ricordo.lazy import lazy_compile

__all__ = ["INSTRUCTION_REASONS", "InstructionKind", "find_instruction"]


InstructionKind: TypeAlias = Literal[
    "hidden", "override", "turns", "limits", "authority", "consent", "secrecy", "exfiltration", "memory", "steering",
    "obedience", "address",
]  # fmt: skip
"""The kinds of orders, the most telling first."""
INSTRUCTION_REASONS: dict[InstructionKind, str] = {
    "hidden": "it hides words to an assistant in its letters or markup",
    "override": "it tells an assistant to set its instructions aside",
    "turns": "it imitates messages of a system or an assistant",
    "limits": "it gives an assistant another role or takes its limits away",
    "authority": "it pretends to come from the system or its developers",
    "consent": "it claims that the user has agreed, or that nobody has to be asked",
    "secrecy": "it tells an assistant to keep something from the user",
    "exfiltration": "it tells an assistant to send private data away",
    "memory": "it tells an assistant what to remember about the user",
    "steering": "it tells an assistant what to say or do when the user asks later",
    "obedience": "it tells an assistant to follow the orders of a text",
    "address": "it gives orders to an assistant that reads it",
}
"""Why a text of each kind waits, in words for people."""
MAX_CHARS = 20_000
"""Of a longer text only so many characters are read, from both ends."""
_WINDOW_SENTENCES = 3
_PLAIN = lazy_compile(r"[\t\n -~]*")
_HIDDEN_WORDS = 5
_SENTENCE_END = lazy_compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_TAG_CHARACTERS = lazy_compile("(?<!\U0001f3f4)[\U000e0020-\U000e007e]{3,}")
_BASE64 = lazy_compile(r"(?<![\w+/=])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/=])")
_HEX = lazy_compile(r"(?<!\w)(?:[0-9a-fA-F]{2}[ :]?){16,}(?!\w)")
_ESCAPES = lazy_compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}){6,}")
_PERCENT = lazy_compile(r"(?:%[0-9a-fA-F]{2}[\w.-]{0,8}){6,}")
_COMMENT = lazy_compile(r"<!--(.{1,2000}?)-->|^\[//\]: ?# ?[(\"'](.{1,2000}?)[)\"']\s*$", re.DOTALL | re.MULTILINE)
_UNSEEN_ELEMENT = lazy_compile(
    r"<(?P<name>[a-z]{1,10})\b[^<>]{0,200}?(?:display:\s?none|visibility:\s?hidden|font-size:\s?0|opacity:\s?0(?![.\d])"
    r"|color\s?[:=]\s?[\"']?(?:white|#fff\w{0,3}|transparent)|\bhidden\b|size=[\"']?0)[^<>]{0,200}>(?P<content>.{1,2000}?)</(?P=name)>",
    re.IGNORECASE | re.DOTALL,
)
_TARGET = lazy_compile(
    r"(?:https?|ftp)://[^\s)>\"']+|[\w.+-]+@[\w-]+\.[\w.-]+|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"
)
_OPEN_VALUE = r"""https?://[^\s)>"'?]{1,200}\?(?:[^\s)>"'=&]{1,60}=[^\s)>"'=&]{0,60}&){0,5}[^\s)>"'=&]{1,60}=(?:%s)"""
_PLACEHOLDER = r"""[A-Z_]{4,}\b|[\[{<]|[^\x00-\x7f]|(?=[\s)>"'\]&]|\Z)"""
_OPEN_LINK = lazy_compile(_OPEN_VALUE % _PLACEHOLDER)
_OPEN_PICTURE = lazy_compile(
    r"!\[[^\]\n]{0,80}\]\(" + _OPEN_VALUE % _PLACEHOLDER + r"|<img[^<>]{1,200}" + _OPEN_VALUE % _PLACEHOLDER
)
"""Links and pictures with a value that is to be filled in."""
_SECRET_FILE = lazy_compile(
    r"(?<![\w.])\.env(?![\w.]\w)|id_(?:rsa|ed25519)|\.ssh/|\.aws/|\.netrc|/etc/(?:passwd|shadow)"
)
_PAIR_DISTANCE = 90
_TOKEN_OF_MODEL = lazy_compile(
    r"&lt;\|?\s?\|?(?:im_start|im_end|system|start_header_id|end|user|assistant)|&#x5B;", re.IGNORECASE
)
_Signal: TypeAlias = OrderKind | Literal["address", "system_label", "wish_of_user"]
_Span: TypeAlias = tuple[int, int]


@cache
def _patterns() -> PatternTable[_Signal]:
    label = order_pattern("system_turn")
    return PatternTable(
        {
            **{kind: order_pattern(kind) for kind in get_args(OrderKind)},
            "address": _address_source(),
            "system_label": rf"(?:^|\n|[.!?。！？\]>]\s?)[\W_]{{0,6}}(?:{label})[\W_]{{0,3}}[:：\]\*)】\-–]",
            "wish_of_user": rf"(?:{order_pattern('the_user')})\s?(?:{order_pattern('user_wish')})",
        }
    )


def _address_source() -> str:
    """Return the pattern of words that speak to a program that reads them."""
    lead, reader, tail = (order_pattern(kind) for kind in ("address_lead", "ai_reader", "address_tail"))
    opening = r"(?:^|\n|[.!?。！？]\s|<!--\s?|[\"“„«(]\s?)"
    return rf"(?:{lead})[\s,]{{0,2}}(?:{reader})|(?:{reader})\s?(?:{tail})|{opening}(?:{reader})\s?[:：,，]"


@cache
def _turn_line(kind: OrderKind) -> re.Pattern[str]:
    return re.compile(rf"^[\W_]{{0,6}}(?:{order_pattern(kind)})\s?[:：]", re.IGNORECASE | re.MULTILINE)


def find_instruction(text: str) -> InstructionKind | None:
    """Return the kind of the orders to an assistant that a text gives; None if it gives none."""
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS // 2]}\n{text[-MAX_CHARS // 2 :]}"
    kinds, plain = _find_kinds(text), _show_letters(text)
    if (plain != text and _find_kinds(plain) - kinds) or _hides_sentence(text):
        return "hidden"
    if any(_patterns()["ai_reader"].search(part) or _find_kinds(part) for part in _find_unseen(text)):
        return "hidden"
    return next((kind for kind in get_args(InstructionKind) if kind in kinds), None)


def _show_letters(text: str) -> str:
    """Return the text without invisible characters, and with plain letters in the place of lookalikes in words."""
    if _PLAIN.fullmatch(text):
        return text
    visible = "".join(char for char in text if char in "\n\t" or not is_invisible(char) or _is_mark(char))
    return re.sub(r"\S+", lambda word: _fold_word(word.group()), visible)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Me"}


def _fold_word(word: str) -> str:
    """Return a word of ASCII letters and lookalikes in ASCII; any other word stays."""
    if word.isascii() or not any(char.isascii() and char.isalpha() for char in word):
        return word
    return "".join(LOOKALIKES.get(char, char) for char in unicodedata.normalize("NFKC", word).casefold())


def _find_unseen(text: str) -> Iterator[str]:
    """Yield what a person who looks at the text does not read: comments, unseen elements, coded and tag letters."""
    for comment in _COMMENT.finditer(text):
        yield comment[1] or comment[2]
    for element in _UNSEEN_ELEMENT.finditer(text):
        yield element["content"]
    for match in _TAG_CHARACTERS.finditer(text):
        yield "ai: " + "".join(chr(ord(char) - 0xE0000) for char in match.group())
    yield from filter(None, (_decode(text) for text in _coded_parts(text)))


def _hides_sentence(text: str) -> bool:
    """Return whether an element that nobody sees, or letters that nobody sees, hold more than a few words."""
    elements = (element["content"] for element in _UNSEEN_ELEMENT.finditer(text))
    return any(len(split_words(content)) >= _HIDDEN_WORDS for content in elements) or bool(_TAG_CHARACTERS.search(text))


def _coded_parts(text: str) -> Iterator[bytes]:
    for match in _BASE64.finditer(text):
        with_padding = match.group() + "=" * (-len(match.group()) % 4)
        try:
            yield b64decode(with_padding)
        except (DecodingError, ValueError):
            continue
    for match in _HEX.finditer(text):
        yield bytes.fromhex(re.sub(r"[ :]", "", match.group()))
    for match in _ESCAPES.finditer(text):
        yield re.sub(r"\\u(\w{4})|\\x(\w{2})", lambda part: chr(int(part[1] or part[2], 16)), match.group()).encode(
            "utf-8", "replace"
        )
    for match in _PERCENT.finditer(text):
        yield unquote(match.group()).encode()
    if "&#" in text:
        yield unescape(text).encode("utf-8", "replace")


def _decode(data: bytes) -> str:
    """Return the text of coded bytes; empty if they are no sentence."""
    text = data.decode("utf-8", "replace")
    letters = sum(char.isalpha() or char.isspace() for char in text)
    return text if " " in text.strip() and letters >= 0.8 * len(text) else ""


def _find_kinds(text: str) -> set[InstructionKind]:
    reading = _Reading(text)
    kinds: set[InstructionKind] = {"turns"} if _imitates_turns(text, reading) else set()
    if (
        any(reading.spans(signal) for signal in _FIRST_SIGNALS)
        or _OPEN_PICTURE.search(text)
        or _SECRET_FILE.search(text)
    ):
        for window in _windows(text):
            kinds |= _find_kinds_of_window(reading, window)
    return kinds


_FIRST_SIGNALS: tuple[_Signal, ...] = (
    "ai_reader", "the_user", "standing_order", "private_noun", "memory_save", "answer_noun", "tool_result", "decode",
    "role_turn", "no_limits",
)  # fmt: skip
"""Each kind of order needs one of these."""


class _Reading:
    """The signals of a text, each searched for once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._possible = _patterns().find_possible(text)
        self._spans: dict[_Signal, list[_Span]] = {}

    def spans(self, signal: _Signal) -> list[_Span]:
        """Return where a signal stands, in order."""
        if signal not in self._possible:
            return []
        if signal not in self._spans:
            self._spans[signal] = [match.span() for match in _patterns()[signal].finditer(self.text)]
        return self._spans[signal]

    def has(self, signal: _Signal, window: _Span) -> bool:
        """Return whether a signal begins within a window."""
        spans = self.spans(signal)
        index = bisect_left(spans, (window[0], 0))
        return index < len(spans) and spans[index][0] < window[1]

    def near(self, first: OrderKind, second: OrderKind, window: _Span) -> _Span | None:
        """Return the place around the first two signals of a window that are near each other."""
        for start, end in self.spans(first):
            for other_start, other_end in self.spans(second) if window[0] <= start < window[1] else ():
                apart = max(other_start - end, start - other_end)
                if 0 <= apart <= _PAIR_DISTANCE and window[0] <= other_start < window[1]:
                    return max(window[0], min(start, other_start) - _MARGIN), max(end, other_end) + _MARGIN
        return None


_MARGIN = 40


def _windows(text: str) -> list[_Span]:
    """Return the place of each run of three sentences; that of the whole of a shorter text."""
    starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text) if match.end() < len(text))]
    ends = [*starts[_WINDOW_SENTENCES:], len(text)]
    return list(zip(starts, ends, strict=False))


def _imitates_turns(text: str, reading: _Reading) -> bool:
    """Return whether a text has tokens of a model's template, a tag of a host with orders, or lines of two roles."""
    if _turn_line("assistant_turn").search(text) and any(
        _turn_line(kind).search(text) for kind in ("system_turn", "user_turn")
    ):
        return True
    escaped = escape_tags(text, frozenset())
    if escaped == text:
        return False
    signals: tuple[_Signal, ...] = ("ai_reader", "no_limits", "obey", "set_aside")
    return _TOKEN_OF_MODEL.search(escaped) is not None or any(reading.spans(signal) for signal in signals)


def _find_kinds_of_window(reading: _Reading, window: _Span) -> set[InstructionKind]:
    def has(signal: _Signal) -> bool:
        return reading.has(signal, window)

    text, kinds, reader = reading.text[slice(*window)], set[InstructionKind](), has("ai_reader")
    aside = reading.near("set_aside", "standing_order", window)
    if aside and (reader or reading.has("prior", aside)):
        kinds.add("override")
    if (has("no_limits") and (reader or has("role_turn") or has("assistant_turn"))) or (has("role_turn") and reader):
        kinds.add("limits")
    if has("obey") and reader:
        kinds.add("obedience")
    if has("system_label") and (reader or has("obey") or has("no_asking")):
        kinds.add("authority")
    if has("conceal") and (has("the_user") or reader):
        kinds.add("secrecy")
    if has("decode") and has("do_it") and (_BASE64.search(text) or _HEX.search(text)):
        kinds.add("hidden")
    if (
        has("when_asked")
        and has("steer")
        and (has("the_user") or has("address") or reading.near("ai_reader", "steer", window))
    ):
        kinds.add("steering")
    if has("memory_save") or (has("wish_of_user") and has("remember_order")):
        kinds.add("memory")
    if has("address"):
        kinds.add("address")
    if _claims_consent(reading, window):
        kinds.add("consent")
    if _carries_off(reading, window, text):
        kinds.add("exfiltration")
    return kinds


def _claims_consent(reading: _Reading, window: _Span) -> bool:
    def has(signal: _Signal) -> bool:
        return reading.has(signal, window)

    if not has("no_asking"):
        return has("address") and reading.near("the_user", "has_agreed", window) is not None
    if has("the_user") and (has("free_act") or reading.near("the_user", "has_agreed", window)):
        return True
    return (has("ai_reader") or has("tool_result")) and (has("address") or has("free_act") or has("has_agreed"))


def _carries_off(reading: _Reading, window: _Span, text: str) -> bool:
    """Return whether a text asks to send what is private away, or to fill it into a link."""
    private = reading.has("private_noun", window) or _SECRET_FILE.search(text) is not None
    if _OPEN_PICTURE.search(text) or (
        (private or reading.has("answer_noun", window)) and _OPEN_LINK.search(text) is not None
    ):
        return True
    has_target = _TARGET.search(text) is not None or reading.has("conceal", window)
    return private and has_target and reading.has("send_away", window)
