"""The tokens of a text, a message or a request, estimated, or counted if the extra `tokens` is installed.

The estimate is a weighted sum of runs of one class of characters (words, numbers, punctuation, blanks) and, beyond
Latin, of code units by script. The weights were fitted to the `o200k_base` vocabulary and raised by 3 %, since
overestimating costs less than overflowing the window; `docs/design/tokens.md` describes the method. The count of a
value that never changes is cached as long as the value lives.

Invariants: the time is linear in the length of the text, and Python code does not loop over characters. The estimate of
a non-empty text is at least 1. Nothing opens a connection: a missing tokenizer is replaced by the estimate.
"""

import string
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from weakref import ref

from ricordo import messages
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import dumps

if TYPE_CHECKING:
    from ricordo.messages import (
        JsonValue,
        Message,
        Part,
        ToolSpec,
    )

__all__ = [
    "BLOCKS",
    "DEFAULT_VOCABULARY",
    "CountCache",
    "Estimator",
    "RequestEstimate",
    "TokenCounter",
    "VocabularyCounter",
    "count_blocks",
    "count_latin",
    "estimate_message",
    "estimate_request",
    "estimate_text",
    "load_token_counter",
]


_BEYOND_LATIN_1 = lazy_compile("[^\x00-\xff]+")
_LATIN_1 = [chr(code) for code in range(256)]
BLOCKS: dict[str, tuple[tuple[int, int], ...]] = {
    "latin_extended": ((0x01, 0x02),),
    "latin_additional": ((0x1E, 0x1E),),
    "greek": ((0x03, 0x03),),
    "cyrillic": ((0x04, 0x04),),
    "hebrew": ((0x05, 0x05),),
    "arabic": ((0x06, 0x08),),
    "indic": ((0x09, 0x0D),),
    "thai": ((0x0E, 0x0F),),
    "punctuation": ((0x20, 0x23),),
    "kana": ((0x30, 0x30),),
    "han": ((0x34, 0x9F),),
    "hangul": ((0x11, 0x11), (0xAC, 0xD7)),
    "surrogates": ((0xD8, 0xDF),),
    "fullwidth": ((0xFF, 0xFF),),
}
"""The scripts by the first and last high byte of their UTF-16 code units; emoji are two surrogates each."""


def _class_table(**members: Callable[[str], bool]) -> bytes:
    """Return a table that maps a Latin-1 byte to the letter of its class, or to a blank."""
    classes = (next((name for name, is_member in members.items() if is_member(char)), " ") for char in _LATIN_1)
    return "".join(classes).encode()


def _member_bytes(is_member: Callable[[str], bool]) -> bytes:
    return "".join(filter(is_member, _LATIN_1)).encode("latin-1")


def _is_blank(char: str) -> bool:
    return char in " \t\r\x0b\x0c\xa0"


def _is_mark(char: str) -> bool:
    return char != "\x00" and not char.isalnum() and not char.isspace()


_WORDS = _class_table(w=str.isalpha)
_CASES = _class_table(a=lambda char: char.isalpha() and not char.isupper(), A=str.isupper)
_NUMBERS = _class_table(n=string.digits.__contains__)
_MARKS = _class_table(m=_is_mark)
_LINES = _class_table(l="\n".__contains__)
_BLANKS = _class_table(x=lambda char: not _is_blank(char))
_LETTERS = _member_bytes(str.isalpha)
_DIGITS = _member_bytes(string.digits.__contains__)
_PUNCTUATION = _member_bytes(_is_mark)
_ACCENTED = _member_bytes(lambda char: ord(char) > 127)


def count_latin(text: str) -> tuple[dict[str, int], str]:
    """Count the features of the Latin-1 characters of `text`, and return them with the other characters, joined.

    The features are runs of letters, digits, punctuation, line breaks, two and more blanks, and foreign characters;
    letters, digits, punctuation, accented characters; changes from lower to upper case and pairs of upper case; NULs.
    """
    foreign = [] if text.isascii() else _BEYOND_LATIN_1.findall(text)
    data = (_BEYOND_LATIN_1.sub("\x00", text) if foreign else text).encode("latin-1")
    cases = data.translate(_CASES)
    blanks = data.translate(_BLANKS)
    counts = {
        "words": _count_runs(data.translate(_WORDS), b"w"),
        "letters": _count_bytes(data, _LETTERS),
        "humps": cases.count(b"aA"),
        "capitals": cases.count(b"AA"),
        "numbers": _count_runs(data.translate(_NUMBERS), b"n"),
        "digits": _count_bytes(data, _DIGITS),
        "mark_runs": _count_runs(data.translate(_MARKS), b"m"),
        "marks": _count_bytes(data, _PUNCTUATION),
        "line_runs": _count_runs(data.translate(_LINES), b"l"),
        "blank_runs": blanks.count(b"x  ") + blanks.startswith(b"  "),
        "accented": _count_bytes(data, _ACCENTED),
        "foreign_runs": len(foreign),
        "nuls": data.count(b"\x00") - len(foreign),
    }
    return counts, "".join(foreign)


def count_blocks(text: str) -> dict[str, int]:
    """Count the UTF-16 code units of `text` by script, with other scripts as `other`; empty for an empty text."""
    if not text:
        return {}
    high = text.encode("utf-16-le", "surrogatepass")[1::2]
    counts = {name: _count_bytes(high, _BLOCK_BYTES[name]) for name in BLOCKS}
    return counts | {"other": len(high) - sum(counts.values())}


_BLOCK_BYTES = {
    name: b"".join(bytes(range(first, last + 1)) for first, last in ranges) for name, ranges in BLOCKS.items()
}


def _count_runs(classes: bytes, letter: bytes) -> int:
    return classes.count(b" " + letter) + classes.startswith(letter)


def _count_bytes(data: bytes, members: bytes) -> int:
    return len(data) - len(data.translate(None, members))


_T = TypeVar("_T")


class CountCache(Generic[_T]):
    """Caches counts of values of one kind; safe to call from many threads."""

    def __init__(self, count: Callable[[_T], int]) -> None:
        """Use `count` to count each value the first time."""
        self._count = count
        self._counts: dict[int, tuple[ref[_T], int]] = {}

    def __call__(self, value: _T) -> int:
        """Return the count of a value that will never change."""
        key = id(value)
        cached = self._counts.get(key)
        if cached is None or cached[0]() is not value:
            # the id can be reused by another value only after this callback
            cached = ref(value, lambda _: self._counts.pop(key, None)), self._count(value)
            self._counts[key] = cached
        return cached[1]


_WEIGHTS = {
    "words": 38,
    "letters": 15,
    "humps": 100,
    "capitals": 12,
    "numbers": 148,
    "digits": 34,
    "mark_runs": 36,
    "marks": 18,
    "line_runs": 105,
    "blank_runs": 122,
    "accented": 97,
    "foreign_runs": 49,
    "nuls": 50,
    "latin_extended": 85,
    "latin_additional": 25,
    "greek": 33,
    "cyrillic": 25,
    "hebrew": 46,
    "arabic": 41,
    "indic": 41,
    "thai": 41,
    "punctuation": 61,
    "kana": 66,
    "han": 81,
    "hangul": 58,
    "surrogates": 76,
    "fullwidth": 82,
    "other": 100,
}
_MESSAGE_FRAME = 4
"""Tokens around each message: its delimiters and role, as in common chat templates."""
_CALL_FRAME = 8
"""Tokens around a tool call or a tool result: its kind, id and keys."""
_MEDIA_TOKENS = 1_200
"""Tokens of a picture or file, whose size is unknown here: near the most that providers charge for one picture."""


class TokenCounter(Protocol):
    """Counts tokens."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`, 0 for an empty one."""
        ...


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """The built-in counter: script-aware, without a vocabulary."""

    def count(self, text: str) -> int:
        """Return the estimate for `text`, 0 for an empty one."""
        return estimate_text(text)


@dataclass(frozen=True, kw_only=True)
class RequestEstimate:
    """The expected tokens of one request to a model, part by part."""

    system: int = 0
    memory: int = 0
    tools: int = 0
    messages: int = 0
    reminder: int = 0
    reserved: int = 0

    @property
    def input(self) -> int:
        """The tokens sent, to compare with the input that the provider reports."""
        return self.system + self.memory + self.tools + self.messages + self.reminder

    @property
    def total(self) -> int:
        """The tokens that must fit into the window: the input and the reserved output."""
        return self.input + self.reserved


_ESTIMATOR = Estimator()


def estimate_text(text: str) -> int:
    """Estimate the tokens of `text`, rounded up; 0 only for an empty text. The time is linear in its length."""
    if not text:
        return 0
    latin, foreign = count_latin(text)
    counts = latin | count_blocks(foreign)
    hundredths = sum(_WEIGHTS[name] * count for name, count in counts.items())
    return max(1, -(-hundredths // 100))


def estimate_message(message: "Message", *, counter: TokenCounter = _ESTIMATOR) -> int:
    """Estimate the tokens of `message` with its frame; never 0. The built-in counter counts a message only once."""
    return _message_counts(message) if counter is _ESTIMATOR else _count_message(message, counter)


def estimate_request(
    messages: "Iterable[Message]",
    *,
    system: str = "",
    memory: str = "",
    tools: "Sequence[ToolSpec]" = (),
    reminder: "Message | None" = None,
    reserved_output: int = 0,
    counter: TokenCounter = _ESTIMATOR,
) -> RequestEstimate:
    """Estimate a whole request, with everything that is sent.

    `memory` is the text injected in addition to the system prompt and the messages, `reminder` the message sent after
    them with this request only; `reserved_output` are the tokens reserved for the reply.
    """
    return RequestEstimate(
        system=_count_with_frame(system, counter),
        memory=_count_with_frame(memory, counter),
        tools=sum(_tool_counts(tool) if counter is _ESTIMATOR else _count_tool(tool, counter) for tool in tools),
        messages=sum(estimate_message(message, counter=counter) for message in messages),
        reminder=estimate_message(reminder, counter=counter) if reminder else 0,
        reserved=reserved_output,
    )


def _count_message(message: "Message", counter: TokenCounter = _ESTIMATOR) -> int:
    return (
        _MESSAGE_FRAME + counter.count(message.name or "") + sum(_count_part(part, counter) for part in message.parts)
    )


def _count_part(part: "Part", counter: TokenCounter) -> int:
    match part:
        case messages.Text() | messages.Thinking():
            return counter.count(part.text)
        case messages.Media():
            return _MEDIA_TOKENS + counter.count(part.name or "") + counter.count(part.description or "")
        case messages.ToolCall():
            return _CALL_FRAME + counter.count(part.name) + counter.count(part.arguments)
        case messages.ToolResult():
            return _CALL_FRAME + counter.count(part.name or "") + sum(_count_part(item, counter) for item in part.parts)
        case messages.Unknown():
            return counter.count(part.raw)


def _count_with_frame(text: str, counter: TokenCounter) -> int:
    return _MESSAGE_FRAME + counter.count(text) if text else 0


def _count_tool(tool: "ToolSpec", counter: TokenCounter = _ESTIMATOR) -> int:
    document: JsonValue = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return _CALL_FRAME + counter.count(dumps(document))


_message_counts = CountCache(_count_message)
_tool_counts = CountCache(_count_tool)


DEFAULT_VOCABULARY = "o200k_base"
"""The vocabulary of OpenAI's current models."""


@dataclass(frozen=True, kw_only=True)
class VocabularyCounter:
    """Counts with the vocabulary of one model family; the spelling of a control token counts as plain text."""

    vocabulary: str
    tokenizer: TokenCounter

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`; a lone surrogate counts as the replacement character."""
        try:
            return self.tokenizer.count(text)
        except (TypeError, UnicodeError):
            return self.tokenizer.count(text.encode("utf-8", "replace").decode())


def load_token_counter(vocabulary: str = DEFAULT_VOCABULARY) -> TokenCounter:
    """Return a counter for `vocabulary`: exact if the extra `tokens` is installed and has it, else the estimate."""
    tokenizer = _load_tokenizer(vocabulary)
    return Estimator() if tokenizer is None else VocabularyCounter(vocabulary=vocabulary, tokenizer=tokenizer)


def _load_tokenizer(vocabulary: str) -> TokenCounter | None:
    try:
        import quicktok

        tokenizer: TokenCounter = quicktok.get_encoding(vocabulary)
        tokenizer.count("ready?")
    except (ImportError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError):
        return None
    return tokenizer
