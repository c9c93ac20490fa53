"""Tombstones: records of forgotten entries without content, used to recognise and mask forgotten statements.

A tombstone has the id of the entry, the message that stated it, and a keyed digest of its words, regardless of case,
white space and punctuation; without the key of the root nobody can test a guess. A statement is a text, a line, a
sentence, what follows the first colon of either, or a text in the arguments of a tool call.
"""

import json
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from ricordo import messages
from ricordo.clock import format_rfc3339
from ricordo.errors import FileMissing, InvalidMessage
from ricordo.language.sentences import split_sentences
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import decode_json, dumps, loads
from ricordo.storage import ABSENT, FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.history.repetition import FORGOTTEN_MARK, repeats_any, repeats_partly
from ricordo.workspace.layout import TOMBSTONES

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue, Message, Part

__all__ = [
    "ForgottenStatements",
    "Tombstone",
    "Tombstones",
    "collect_texts",
    "content_digest",
    "create_tombstone",
    "find_repetitions",
    "find_tombstone",
    "parse_tombstones",
    "read_tombstones",
]


_WORD_BREAK = lazy_compile(r"[\s\u2014]+")
_SENTENCE_MARKS = lazy_compile("[.,;:!?\u2026\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f\u00a1\u00bf]+")
_OPENING_MARKS = "\"'`([{\u00a1\u00bf\u00ab\u00bb\u2018\u201a\u201c\u201e\u300c\u300e\uff08"
_CLOSING_MARKS = (
    ".,;:!?\u2026\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f)]}\u00ab\u00bb\u201c\u201d\u300d\u300f\uff09`"
)
_CLOSING_QUOTES = "\"'\u2019"


@dataclass(frozen=True, kw_only=True)
class Tombstone:
    """One forgotten entry: its id, the digest of its content, and the message that stated it, if any.

    `at` is when it was forgotten, as RFC 3339 in UTC, and `by` who forgot it; both are empty if unknown.
    """

    id: str
    digest: str
    session: str = ""
    message: str = ""
    at: str = ""
    by: str = ""

    @property
    def origin(self) -> str:
        """A phrase that says when and by whom it was forgotten, with a leading space; empty if unknown."""
        return f" at {self.at} by {self.by}" if self.at else ""

    def to_line(self) -> bytes:
        """Return the line of this tombstone for the tombstone file."""
        values = {name: value for name, value in asdict(self).items() if value or name in {"id", "digest"}}
        return json.dumps(values).encode() + b"\n"


@dataclass(frozen=True, kw_only=True)
class Tombstones:
    """The tombstones in this version of a workspace's file; `messages` are (session, id) pairs."""

    ids: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()
    messages: frozenset[tuple[str, str]] = frozenset()
    rows: tuple[Tombstone, ...] = ()
    data: bytes = b""
    version: str = ABSENT

    def render_with(self, tombstones: Iterable[Tombstone]) -> bytes:
        """Return the file content with these tombstones appended."""
        start = self.data if not self.data or self.data.endswith(b"\n") else self.data + b"\n"
        return start + b"".join(tombstone.to_line() for tombstone in tombstones)


def content_digest(content: str, key: bytes) -> str:
    """Return 32 hex digits that are equal for texts with the same words, regardless of case and punctuation.

    All other characters attached to a word belong to it: symbols, signs, and points between digits. A text of only
    punctuation is used unchanged.
    """
    folded = unicodedata.normalize("NFC", content).casefold()
    words = [word for piece in _WORD_BREAK.split(folded) if (word := _strip_marks(piece))]
    normalized = " ".join(words) or folded.strip()
    return blake2b(normalized.encode("utf-8", "surrogatepass"), key=key, digest_size=16).hexdigest()


def _strip_marks(piece: str) -> str:
    """Return a word without surrounding punctuation; empty if it is only punctuation."""
    if _SENTENCE_MARKS.fullmatch(piece):
        return ""
    word = piece.lstrip(_OPENING_MARKS)
    end = len(word)
    # a quotation mark after a digit is a unit: 5' is not 5"
    while end and (
        word[end - 1] in _CLOSING_MARKS or (word[end - 1] in _CLOSING_QUOTES and not word[end - 2].isdigit())
    ):
        end -= 1
    return word[:end] or piece


def create_tombstone(entry: Entry, key: bytes, *, at: datetime, by: str) -> Tombstone:
    """Return the tombstone of an entry that is being forgotten now."""
    message = entry.source.messages[0] if entry.source.messages else ""
    return Tombstone(
        id=entry.id,
        digest=content_digest(entry.content, key),
        session=entry.source.session or "",
        message=message,
        at=format_rfc3339(at),
        by=by,
    )


def find_tombstone(entry: Entry, tombstones: Tombstones, key: bytes) -> Tombstone | None:
    """Return the tombstone that marks an entry as forgotten, or None.

    It has the same id, or the same words and is older than the forgetting. An entry without a time counts as older, and
    so does every entry if the time of forgetting is unknown.
    """
    digest = content_digest(entry.content, key) if tombstones.digests else ""
    if entry.id not in tombstones.ids and digest not in tombstones.digests:
        return None
    time = format_rfc3339(entry.time) if entry.time else ""
    for row in tombstones.rows:
        if row.id == entry.id or (row.digest == digest and (not row.at or time <= row.at)):
            return row
    return None


async def read_tombstones(files: FileStore, path: str = TOMBSTONES) -> Tombstones:
    """Return the tombstones of the workspace, or of the file at `path`; lines that can't be read are skipped."""
    try:
        stored = await files.read(path)
    except FileMissing:
        return Tombstones()
    return parse_tombstones(stored.data, stored.version)


@lru_cache(maxsize=8)
def parse_tombstones(data: bytes, version: str = ABSENT) -> Tombstones:
    """Parse a tombstone file; lines that can't be read are skipped."""
    rows = [row for line in data.split(b"\n") if line.strip() and (row := _parse_line(line))]
    return Tombstones(
        ids=frozenset(row.id for row in rows),
        digests=frozenset(row.digest for row in rows if row.digest),
        messages=frozenset((row.session, row.message) for row in rows if row.message),
        rows=tuple(rows),
        data=data,
        version=version,
    )


def _parse_line(line: bytes) -> Tombstone | None:
    try:
        value = decode_json(line)
        fields = {name: str(value.get(name, "")) for name in ("session", "message", "at", "by")}
        return Tombstone(id=str(value["id"]), digest=str(value["digest"]), **fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


_LIST_ITEM = lazy_compile(r"\s*(?:[-*+>\u2022]|\d{1,3}[.)])\s+")
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
    def from_tombstones(cls, tombstones: Tombstones, key: bytes) -> "ForgottenStatements":
        """Create the matcher for these tombstones."""
        return cls(tombstones.digests, tombstones.messages, key)

    def __bool__(self) -> bool:
        """Return whether anything was forgotten."""
        return bool(self.digests or self.messages)

    def contains(self, text: str) -> bool:
        """Return whether `text`, which may contain tool call arguments, contains a forgotten statement."""
        return bool(self.digests) and _contains_cached(text, self.digests, self.key)

    def find(self, text: str) -> list[str]:
        """Return the forgotten statements in `text`."""
        return [
            statement for statement in _iter_statements(text) if content_digest(statement, self.key) in self.digests
        ]

    def find_in_file(self, data: bytes) -> set[str]:
        """Return the forgotten statements in a file: in the strings of JSON, else in its lines.

        JSON punctuation around a statement is not part of it.
        """
        statements = {each for text in _iter_file_texts(data.decode("utf-8", "replace")) for each in self.find(text)}
        stripped = {each.strip(_JSON_CHARACTERS) for each in statements}
        return {each for each in stripped if each in statements or len(each) >= _MIN_BARE_CHARS}

    def mask(self, text: str) -> str:
        """Return `text` with each forgotten statement replaced by a mark."""
        return _mask_spans(text, lambda said: content_digest(said, self.key) in self.digests) if self.digests else text

    def mask_json(self, value: "JsonValue") -> "JsonValue":
        """Return a JSON value with the forgotten statements in its texts replaced by marks."""
        return _map_texts(value, self.mask)

    def mask_message(self, message: "Message", session: str = "") -> "Message":
        """Return the message with its forgotten statements replaced by marks.

        All texts of a message are replaced if it is known to contain one in `session` but none is recognised.
        """
        parts = tuple(_map_part(part, self.mask) for part in message.parts)
        if parts == message.parts and (session, message.id) in self.messages:
            parts = tuple(_map_part(part, lambda text: FORGOTTEN_MARK if text.strip() else text) for part in parts)
        return message if parts == message.parts else replace(message, parts=parts)


def find_repetitions(texts: Sequence[str], contents: Sequence[str], *, fuzzy: bool = False) -> list[str]:
    """Return the statements in `texts` that repeat one of `contents`, even reworded, each once.

    With `fuzzy` the texts are from the same exchange as the forgotten entry, and fewer common words are enough.
    """
    repetitions: dict[str, None] = {}
    for text in texts:
        if not (repeats_any(text, contents) or (fuzzy and repeats_partly(text, contents))):
            continue
        if "\n" not in text and repeats_any(text, contents) and len(split_sentences(text)) == 1:
            repetitions[text] = None
        for start, end in _iter_sentences(text):
            sentence = text[start:end]
            if (
                repeats_any(sentence, contents)
                or (fuzzy and repeats_partly(sentence, contents))
                or _is_sentence_of_any(sentence, contents)
            ):
                repetitions[sentence] = None
    return list(repetitions)


def collect_texts(message: "Message") -> list[str]:
    """Return all texts of a message: its content, the strings in call arguments, and tool results."""
    calls = [text for call in message.tool_calls for text in _json_texts(call.arguments)]
    return [text for text in (message.text, *calls, *(each.text for each in message.tool_results)) if text.strip()]


def _is_sentence_of_any(sentence: str, contents: Sequence[str]) -> bool:
    """Return whether `sentence` is one of several sentences in one of `contents`."""
    stripped = _LIST_ITEM.sub("", sentence, count=1).strip()
    return len(stripped.split()) > 2 and any(
        stripped in content and stripped != content.strip() for content in contents
    )


@lru_cache(maxsize=_CACHE_SIZE)
def _contains_cached(text: str, digests: frozenset[str], key: bytes) -> bool:
    return any(content_digest(statement, key) in digests for statement in _iter_statements(text))


def _iter_statements(text: str) -> Iterator[str]:
    yield from (text[start:end] for start, end in _iter_spans(text))
    for line in text.split("\n"):
        at = line.find("{")
        for inner in _json_texts(line[at:]) if at >= 0 else ():
            # arguments of a tool call are JSON inside JSON
            yield from (
                _iter_statements(inner)
                if inner.startswith("{")
                else (inner[start:end] for start, end in _iter_spans(inner))
            )


def _iter_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of non-empty statements in `text`, larger ones first."""
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
    spans: list[tuple[int, int]] = []
    for start, end in _iter_spans(text):
        if not any(start < other_end and end > other for other, other_end in spans) and is_forgotten(text[start:end]):
            spans.append((start, end))
    for start, end in sorted(spans, reverse=True):
        blank = " " if text[start : start + 1].isspace() else ""
        text = f"{text[:start]}{blank}{FORGOTTEN_MARK}{text[end:]}"
    return text


def _map_part(part: "Part", change: Callable[[str], str]) -> "Part":
    match part:
        case messages.Text():
            return replace(part, text=change(part.text))
        case messages.ToolCall():
            try:
                value = loads(part.arguments)
            except InvalidMessage:
                return replace(part, arguments=change(part.arguments))
            changed = _map_texts(value, change)
            return part if changed == value else replace(part, arguments=dumps(changed))
        case messages.ToolResult():
            return replace(
                part,
                parts=tuple(replace(e, text=change(e.text)) if isinstance(e, messages.Text) else e for e in part.parts),
            )
        case _:
            return part


def _map_texts(value: "JsonValue", change: Callable[[str], str]) -> "JsonValue":
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
    """Yield the texts of a file: the strings of its JSON or JSON lines, and other lines unchanged."""
    if texts := _json_texts(content):
        yield from _iter_nested_texts(texts)
    else:
        for line in content.split("\n"):
            yield from _iter_nested_texts(_json_texts(line) or [line])


def _iter_nested_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts, replacing each one that is JSON by the strings in it."""
    for text in texts:
        inner = _json_texts(text) if text.lstrip().startswith(("{", "[")) else ()
        yield from _iter_nested_texts(inner) if inner else (text,)


def _json_texts(arguments: str) -> Collection[str]:
    """Return the strings in a JSON text; none if it is not JSON."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    try:
        _map_texts(loads(arguments), note)
    except InvalidMessage:
        return ()
    return texts
