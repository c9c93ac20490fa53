"""The lines of a journal of compactions: one JSON object each, for a compaction or for its undoing. Pure.

A message that the transcript holds just so is its id alone, with the id of its parent where the window's copy has one;
any other message stands whole.

Invariants: `read(line(record))` gives the record back; a line that can't be read, such as one torn by a crash, is
reported and hides no other; of several lines on one handle the last one counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias, get_args

from ricordo.clock import rfc3339
from ricordo.compaction import Act
from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Message, codec
from ricordo.messages.jsontext import dumps, integer, loads, record, text
from ricordo.workspace.transcript import BrokenLine

__all__ = ["Compaction", "Journal", "Kept", "Noted", "Reference", "line", "read", "undone_line"]

_VERSION = 1
_FIRST_YEAR, _LAST_YEAR = 1, 9999
_ACTS: dict[str, Act] = {act: act for act in get_args(Act)}


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """One compaction: its handle, what it did, when and why.

    `first` and `last` are the ids of the first and the last of the `messages` that it took away. The tokens are those
    of the window's messages, without the system prompt. Of one that was undone just now, `missing` tells how many of
    the messages could not be brought back, as they can't be found any more; else it is 0.
    """

    handle: str
    act: Act
    at: datetime
    reason: str
    first: str
    last: str
    messages: int
    tokens_before: int
    tokens_after: int
    undone: bool = False
    missing: int = 0


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A message as the transcript holds it, and the parent that the window's copy names."""

    id: str
    parent: str | None = None


Kept: TypeAlias = Reference | Message


@dataclass(frozen=True, kw_only=True)
class Noted:
    """What brings a window back: `before` in its order, the places in it of what went (`gone`), and the ids of what
    took their place (`put`)."""

    compaction: Compaction
    before: tuple[Kept, ...]
    gone: tuple[int, ...]
    put: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Journal:
    """What a journal holds: compactions by when they were made last, the oldest first, and the broken lines.

    `torn` tells that the last line is among the latter, so that what happened last is not known.
    """

    noted: tuple[Noted, ...] = ()
    broken: tuple[BrokenLine, ...] = ()
    torn: bool = False


def line(noted: Noted) -> bytes:
    """Write a compaction as one line."""
    made = noted.compaction
    return _ended(
        {
            "v": _VERSION,
            "handle": made.handle,
            "act": made.act,
            "at": rfc3339(made.at),
            "reason": made.reason,
            "first": made.first,
            "last": made.last,
            "messages": made.messages,
            "tokens": [made.tokens_before, made.tokens_after],
            "gone": [[start, end] for start, end in _runs(noted.gone)],
            "put": list(noted.put),
            "before": [_kept_json(each) for each in noted.before],
        }
    )


def undone_line(handle: str, at: datetime) -> bytes:
    """Write as one line that a compaction was undone."""
    return _ended({"v": _VERSION, "undone": handle, "at": rfc3339(at)})


def read(data: bytes) -> Journal:
    """Read all lines of a journal."""
    found: dict[str, Noted] = {}
    broken: list[BrokenLine] = []
    torn = False
    for number, each in enumerate(data.split(b"\n"), start=1):
        try:
            if each.strip():
                _take(record(loads(each), "The line"), found)
                torn = False
        except (InvalidMessage, ValueError) as error:
            broken.append(BrokenLine(line=number, reason=str(error)))
            torn = True
    return Journal(noted=tuple(found.values()), broken=tuple(broken), torn=torn)


def _take(fields: dict[str, JsonValue], found: dict[str, Noted]) -> None:
    if "undone" in fields:
        undone = text(fields["undone"], "undone")
        if undone in found:
            known = found[undone]
            found[undone] = replace(known, compaction=replace(known.compaction, undone=True))
        return
    noted = _noted(fields)
    # made again after it was undone, it is the newest
    found.pop(noted.compaction.handle, None)
    found[noted.compaction.handle] = noted


def _noted(fields: dict[str, JsonValue]) -> Noted:
    before = tuple(_kept(each) for each in _list(fields.get("before"), "before"))
    gone = _places(fields.get("gone"), len(before))
    act = _ACTS.get(text(fields.get("act"), "act"))
    if act is None:
        raise InvalidMessage("act: nothing that is known.")
    tokens = _pair(fields.get("tokens"), "tokens")
    made = Compaction(
        handle=text(fields.get("handle"), "handle"),
        act=act,
        at=_moment(fields.get("at")),
        reason=text(fields.get("reason", ""), "reason"),
        first=text(fields.get("first", ""), "first"),
        last=text(fields.get("last", ""), "last"),
        messages=integer(fields.get("messages"), "messages"),
        tokens_before=tokens[0],
        tokens_after=tokens[1],
    )
    put = tuple(text(each, "put") for each in _list(fields.get("put"), "put"))
    return Noted(compaction=made, before=before, gone=gone, put=put)


def _places(value: JsonValue, most: int) -> tuple[int, ...]:
    """Return the places of all runs, each below `most`; nothing is built of a number before it is known to be one."""
    found: list[int] = []
    least = 0
    for run in _list(value, "gone"):
        start, end = _pair(run, "gone")
        if not least <= start < end <= most:
            raise InvalidMessage("gone: a place that the window did not have, or one out of order.")
        found.extend(range(start, end))
        least = end
    return tuple(found)


def _moment(value: JsonValue) -> datetime:
    found = datetime.fromisoformat(text(value, "at"))
    if found.tzinfo is None or not _FIRST_YEAR < found.year < _LAST_YEAR:
        raise InvalidMessage("at: a moment that every time zone has a name for is needed.")
    return found


def _kept_json(kept: Kept) -> JsonValue:
    if isinstance(kept, Message):
        return loads(codec.encode(kept))
    return kept.id if kept.parent is None else [kept.id, kept.parent]


def _kept(value: JsonValue) -> Kept:
    match value:
        case str():
            return Reference(id=value)
        case [str() as named, str() as parent]:
            return Reference(id=named, parent=parent)
        case dict():
            return codec.decode(dumps(value))
    raise InvalidMessage("before: a message, or its id, is needed.")


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the places as runs, each from its start to before its end."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _pair(value: JsonValue, where: str) -> tuple[int, int]:
    found = _list(value, where)
    if len(found) != 2:
        raise InvalidMessage(f"{where}: two numbers are needed.")
    return integer(found[0], where), integer(found[1], where)


def _list(value: JsonValue, where: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise InvalidMessage(f"{where}: a list is needed.")
    return value


def _ended(fields: dict[str, JsonValue]) -> bytes:
    return (dumps(fields) + "\n").encode()
