"""Forgotten: recognise and hide statements that were forgotten, by the digests of tombstones. Pure.

A statement is a text, a line of it, a sentence of a line, what follows the first colon of either, or a text in the
arguments of a tool call. Forgetting keeps a digest of each statement that says the same, also in other words, see
`find_repetitions`. So a statement is recognised without its text being kept, and the rest of a message is not changed.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ricordo.errors import InvalidMessage
from ricordo.language.sentences import split_sentences
from ricordo.messages.jsontext import dumps, loads
from ricordo.messages.types import JsonValue, Message, Part, Text, ToolCall, ToolResult
from ricordo.workspace.striking import FORGOTTEN_MARK, repeats_any, repeats_partly
from ricordo.workspace.tombstones import Tombstones, content_digest

__all__ = ["ForgottenStatements", "find_repetitions", "collect_texts"]

_LIST_ITEM = re.compile(r"\s*(?:[-*+>\u2022]|\d{1,3}[.)])\s+")
_CACHE_SIZE = 4096
_JSON_CHARACTERS = ' \t"{}[],:\\'
_MIN_BARE_CHARS = 8


@dataclass(frozen=True)
class ForgottenStatements:
    """Recognises forgotten statements by digests under `key`; `messages` are (session, id) pairs that contain some."""

    digests: frozenset[str] = frozenset()
    messages: frozenset[tuple[str, str]] = frozenset()
    key: bytes = b""

    @classmethod
    def from_tombstones(cls, stones: Tombstones, key: bytes) -> "ForgottenStatements":
        """Return what recognises the statements of these tombstones."""
        return cls(stones.digests, stones.messages, key)

    def __bool__(self) -> bool:
        """Tell whether anything was forgotten."""
        return bool(self.digests or self.messages)

    def contains(self, text: str) -> bool:
        """Tell whether `text`, which may contain arguments of tool calls, contains a forgotten statement."""
        return bool(self.digests) and _contains_cached(text, self.digests, self.key)

    def find(self, text: str) -> list[str]:
        """Return the statements of `text` that were forgotten."""
        return [said for said in _iter_statements(text) if content_digest(said, self.key) in self.digests]

    def find_in_file(self, data: bytes) -> set[str]:
        """Return the forgotten statements in the content of a file: in the texts of JSON, else in its lines.

        Signs of JSON around a statement are no part of it.
        """
        said = {each for text in _iter_file_texts(data.decode("utf-8", "replace")) for each in self.find(text)}
        bare = {each.strip(_JSON_CHARACTERS) for each in said}
        return {each for each in bare if each in said or len(each) >= _MIN_BARE_CHARS}

    def mask(self, text: str) -> str:
        """Return `text` with each forgotten statement replaced by a mark."""
        return _mask_spans(text, lambda said: content_digest(said, self.key) in self.digests) if self.digests else text

    def mask_json(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with the forgotten statements in its texts replaced by marks."""
        return _map_texts(value, self.mask)

    def mask_message(self, message: Message, session: str = "") -> Message:
        """Return the message with its forgotten statements replaced by marks.

        All texts of a message are replaced if it is known to contain one in `session` and none is recognised.
        """
        parts = tuple(_map_part(part, self.mask) for part in message.parts)
        if parts == message.parts and (session, message.id) in self.messages:
            parts = tuple(_map_part(part, lambda text: FORGOTTEN_MARK if text.strip() else text) for part in parts)
        return message if parts == message.parts else replace(message, parts=parts)


def find_repetitions(texts: Sequence[str], contents: Sequence[str], *, near: bool = False) -> list[str]:
    """Return the statements of `texts` that repeat one of `contents`, also in other words, each once.

    With `near` the texts are from the same exchange as what is forgotten, and fewer common words are enough.
    """
    found: dict[str, None] = {}
    for text in texts:
        if not (repeats_any(text, contents) or (near and repeats_partly(text, contents))):
            continue
        if "\n" not in text and repeats_any(text, contents) and len(split_sentences(text)) == 1:
            found[text] = None
        for start, end in _iter_sentences(text):
            said = text[start:end]
            if (
                repeats_any(said, contents)
                or (near and repeats_partly(said, contents))
                or _is_sentence_of_any(said, contents)
            ):
                found[said] = None
    return list(found)


def collect_texts(message: Message) -> list[str]:
    """Return all texts of a message: its own, those in the arguments of its calls, and those of tool results."""
    calls = [text for call in message.tool_calls for text in _json_texts(call.arguments)]
    return [text for text in (message.text, *calls, *(each.text for each in message.tool_results)) if text.strip()]


def _is_sentence_of_any(said: str, contents: Sequence[str]) -> bool:
    """Tell whether `said` is a sentence of one of `contents` that has several."""
    bare = _LIST_ITEM.sub("", said, count=1).strip()
    return len(bare.split()) > 2 and any(bare in content and bare != content.strip() for content in contents)


@lru_cache(maxsize=_CACHE_SIZE)
def _contains_cached(text: str, digests: frozenset[str], key: bytes) -> bool:
    return any(content_digest(said, key) in digests for said in _iter_statements(text))


def _iter_statements(text: str) -> Iterator[str]:
    yield from (text[start:end] for start, end in _iter_spans(text))
    for line in text.split("\n"):
        at = line.find("{")
        for inner in _json_texts(line[at:]) if at >= 0 else ():
            # arguments of a tool are JSON in JSON
            yield from (
                _iter_statements(inner)
                if inner.startswith("{")
                else (inner[start:end] for start, end in _iter_spans(inner))
            )


def _iter_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of statements in `text`, larger ones first; none is empty."""
    if not text.strip():
        return
    yield 0, len(text)
    at = 0
    for line in text.split("\n"):
        if line.strip():
            yield from _iter_span_variants(text, at, at + len(line))
        at += len(line) + 1
    for start, end in _iter_sentences(text):
        yield from _iter_span_variants(text, start, end)


def _iter_span_variants(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    yield start, end
    item = _LIST_ITEM.match(text, start, end)
    if item and text[item.end() : end].strip():
        start = item.end()
        yield start, end
    colon = text.find(":", start, end)
    if colon >= 0 and text[colon + 1 : end].strip():
        yield colon + 1, end


def _iter_sentences(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for line in text.split("\n"):
        for each in split_sentences(line):
            if line[each.start : each.end].strip():
                yield at + each.start, at + each.end
        at += len(line) + 1


def _mask_spans(text: str, is_forgotten: Callable[[str], bool]) -> str:
    gone: list[tuple[int, int]] = []
    for start, end in _iter_spans(text):
        if not any(start < other_end and end > other for other, other_end in gone) and is_forgotten(text[start:end]):
            gone.append((start, end))
    for start, end in sorted(gone, reverse=True):
        blank = " " if text[start : start + 1].isspace() else ""
        text = f"{text[:start]}{blank}{FORGOTTEN_MARK}{text[end:]}"
    return text


def _map_part(part: Part, change: Callable[[str], str]) -> Part:
    match part:
        case Text():
            return replace(part, text=change(part.text))
        case ToolCall():
            try:
                value = loads(part.arguments)
            except InvalidMessage:
                return replace(part, arguments=change(part.arguments))
            changed = _map_texts(value, change)
            return part if changed == value else replace(part, arguments=dumps(changed))
        case ToolResult():
            return replace(
                part, parts=tuple(replace(e, text=change(e.text)) if isinstance(e, Text) else e for e in part.parts)
            )
        case _:
            return part


def _map_texts(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    match value:
        case str():
            return change(value)
        case list():
            return [_map_texts(each, change) for each in value]
        case dict():
            return {key: _map_texts(each, change) for key, each in value.items()}
        case _:
            return value


def _iter_file_texts(content: str) -> Iterator[str]:
    """Yield the texts of a file: those of its JSON or of its lines of JSON, and other lines as they are."""
    if texts := _json_texts(content):
        yield from _iter_nested_texts(texts)
    else:
        for line in content.split("\n"):
            yield from _iter_nested_texts(_json_texts(line) or [line])


def _iter_nested_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts, and of those that are JSON the texts in them."""
    for text in texts:
        inner = _json_texts(text) if text.lstrip().startswith(("{", "[")) else ()
        yield from _iter_nested_texts(inner) if inner else (text,)


def _json_texts(arguments: str) -> Collection[str]:
    """Return the texts in a JSON text; none when it is not JSON."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    try:
        _map_texts(loads(arguments), note)
    except InvalidMessage:
        return ()
    return found
