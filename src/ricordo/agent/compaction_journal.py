"""The journal of compactions: one JSON object per line, for a compaction or its undo. Pure.

A message that is in the transcript is stored as its id; any other message is stored in full.

Invariants: `parse_journal(render_record(record))` returns the record. A line that can't be read is reported and does
not affect other lines. If several lines have one handle, the last counts.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from ricordo.clock import format_rfc3339
from ricordo.context import Act
from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, codec
from ricordo.messages.json_text import dumps, loads, require_integer, require_object, require_text
from ricordo.workspace.transcript import BrokenLine

__all__ = [
    "Compaction",
    "CompactionRecord",
    "Journal",
    "JournalMessage",
    "MessageReference",
    "parse_journal",
    "render_record",
    "render_undo",
]


_VERSION = 1
_FIRST_YEAR, _LAST_YEAR = 1, 9999


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """One compaction: its handle, action, time and reason.

    `first_id` and `last` are the ids of the first and last of the removed `messages`. The tokens are those of the
    window's messages, without the system prompt. After an undo, `missing` is the number of messages that could not be
    restored because they no longer exist; otherwise it is 0.
    """

    handle: str
    action: Act
    at: datetime
    reason: str
    first_id: str
    last: str
    messages: int
    tokens_before: int
    tokens_after: int
    is_undone: bool = False
    missing: int = 0


@dataclass(frozen=True, kw_only=True)
class MessageReference:
    """A message in the transcript, by id, and the parent id of the window's copy."""

    id: str
    parent: str | None = None


JournalMessage: TypeAlias = MessageReference | Message


@dataclass(frozen=True, kw_only=True)
class CompactionRecord:
    """The data to restore a window: its messages `before`, in order, the positions of the removed messages in it
    (`removed_places`), and the ids of their replacements (`inserted_ids`).
    """

    compaction: Compaction
    before: tuple[JournalMessage, ...]
    removed_places: tuple[int, ...]
    inserted_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Journal:
    """The contents of a journal: compactions by the time they were last made, oldest first, and broken lines.

    `is_torn` is True if the last line is broken, so that the latest change is unknown.
    """

    records: tuple[CompactionRecord, ...] = ()
    broken_lines: tuple[BrokenLine, ...] = ()
    is_torn: bool = False


def render_record(record: CompactionRecord) -> bytes:
    """Encode a compaction as one line."""
    compaction = record.compaction
    return _encode_line(
        {
            "v": _VERSION,
            "handle": compaction.handle,
            "act": compaction.action,
            "at": format_rfc3339(compaction.at),
            "reason": compaction.reason,
            "first": compaction.first_id,
            "last": compaction.last,
            "messages": compaction.messages,
            "tokens": [compaction.tokens_before, compaction.tokens_after],
            "gone": [[start, end] for start, end in _to_runs(record.removed_places)],
            "put": list(record.inserted_ids),
            "before": [_message_to_json(each) for each in record.before],
        }
    )


def render_undo(handle: str, at: datetime) -> bytes:
    """Encode the undo of a compaction as one line."""
    return _encode_line({"v": _VERSION, "undone": handle, "at": format_rfc3339(at)})


def parse_journal(data: bytes) -> Journal:
    """Parse all lines of a journal."""
    records: dict[str, CompactionRecord] = {}
    broken: list[BrokenLine] = []
    torn = False
    for number, each in enumerate(data.split(b"\n"), start=1):
        try:
            if each.strip():
                _apply_line(require_object(loads(each), "The line"), records)
                torn = False
        except (InvalidMessage, ValueError) as error:
            broken.append(BrokenLine(line=number, reason=str(error)))
            torn = True
    return Journal(records=tuple(records.values()), broken_lines=tuple(broken), is_torn=torn)


def _apply_line(fields: dict[str, JsonValue], records: dict[str, CompactionRecord]) -> None:
    if "undone" in fields:
        handle = require_text(fields["undone"], "undone")
        if handle in records:
            existing = records[handle]
            records[handle] = replace(existing, compaction=replace(existing.compaction, is_undone=True))
        return
    record = _parse_record(fields)
    # A compaction that was made again after its undo is the newest.
    records.pop(record.compaction.handle, None)
    records[record.compaction.handle] = record


def _parse_record(fields: dict[str, JsonValue]) -> CompactionRecord:
    before = tuple(_parse_message(each) for each in _check_list(fields.get("before"), "before"))
    removed_places = _parse_places(fields.get("gone"), len(before))
    tokens = _parse_pair(fields.get("tokens"), "tokens")
    compaction = Compaction(
        handle=require_text(fields.get("handle"), "handle"),
        action=require_text(fields.get("act"), "act"),
        at=_parse_time(fields.get("at")),
        reason=require_text(fields.get("reason", ""), "reason"),
        first_id=require_text(fields.get("first", ""), "first"),
        last=require_text(fields.get("last", ""), "last"),
        messages=require_integer(fields.get("messages"), "messages"),
        tokens_before=tokens[0],
        tokens_after=tokens[1],
    )
    inserted_ids = tuple(require_text(each, "put") for each in _check_list(fields.get("put"), "put"))
    return CompactionRecord(
        compaction=compaction, before=before, removed_places=removed_places, inserted_ids=inserted_ids
    )


def _parse_places(value: JsonValue, length: int) -> tuple[int, ...]:
    """Return the positions of all runs, each below `length`; numbers are checked before a range is built."""
    places: list[int] = []
    previous_end = 0
    for run in _check_list(value, "gone"):
        start, end = _parse_pair(run, "gone")
        if not previous_end <= start < end <= length:
            raise InvalidMessage("gone: a place that the window did not have, or one out of order.")
        places.extend(range(start, end))
        previous_end = end
    return tuple(places)


def _parse_time(value: JsonValue) -> datetime:
    time = datetime.fromisoformat(require_text(value, "at"))
    if time.tzinfo is None or not _FIRST_YEAR < time.year < _LAST_YEAR:
        raise InvalidMessage("at: a moment that every time zone has a name for is needed.")
    return time


def _message_to_json(message: JournalMessage) -> JsonValue:
    if isinstance(message, Message):
        return loads(codec.encode_message(message))
    return message.id if message.parent is None else [message.id, message.parent]


def _parse_message(value: JsonValue) -> JournalMessage:
    match value:
        case str():
            return MessageReference(id=value)
        case [str() as named, str() as parent]:
            return MessageReference(id=named, parent=parent)
        case dict():
            return codec.decode_message(dumps(value))
    raise InvalidMessage("before: a message, or its id, is needed.")


def _to_runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the positions as runs, each with its start (inclusive) and end (exclusive)."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _parse_pair(value: JsonValue, field: str) -> tuple[int, int]:
    items = _check_list(value, field)
    if len(items) != 2:
        raise InvalidMessage(f"{field}: two numbers are needed.")
    return require_integer(items[0], field), require_integer(items[1], field)


def _check_list(value: JsonValue, field: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise InvalidMessage(f"{field}: a list is needed.")
    return value


def _encode_line(fields: dict[str, JsonValue]) -> bytes:
    return (dumps(fields) + "\n").encode()
