"""The cursor of a session: how far its messages were extracted, and the block that may be half written.

A cursor that can't be read is not one that has extracted nothing: `ricordo.flush.recovery` makes it anew from what
memory holds of the session.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.messages.jsontext import decoded
from ricordo.messages.types import JsonValue

__all__ = ["Cursor", "load_cursor", "save_cursor"]

_KEPT = 32
_LARGEST = 2**62


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """`done` are the last messages that were extracted, newest last; there are several, as one may be erased.

    With `next` set, which is `done` as it will be, `block` is on its way to the ledger at `path`, which had `offset`
    bytes before. The message `anchor` stands at byte `place` of the log; what comes before is not needed again.
    `damaged` says that the file holds no cursor, `rebuilt` that some messages after `done` may have been extracted.
    """

    at: str
    done: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    path: str = ""
    block: str = ""
    offset: int = 0
    place: int = 0
    anchor: str = ""
    rebuilt: bool = False
    damaged: bool = False
    version: str = ABSENT

    def position(self, messages: Iterable[str]) -> int:
        """Return how many of these ids, in the order of the log, were extracted."""
        done = frozenset(self.done)
        return max((number for number, name in enumerate(messages, start=1) if name in done), default=0)

    def moved(self, messages: Sequence[str], *, place: int, anchor: str) -> "Cursor":
        """Return the cursor on its way past `messages`."""
        return replace(self, next=(*self.done, *messages)[-_KEPT:], place=place, anchor=anchor, rebuilt=False)

    def settled(self) -> "Cursor":
        """Return the cursor after its block was written."""
        return Cursor(at=self.at, done=self.next, place=self.place, anchor=self.anchor, version=self.version)


async def load_cursor(files: FileStore, at: str) -> Cursor:
    """Return the cursor kept at `at`; a missing one has extracted nothing, an unreadable one is `damaged`."""
    try:
        stored = await files.read(at)
    except FileMissing:
        return Cursor(at=at)
    try:
        return _decoded(at, stored.version, decoded(stored.data))
    except (ValueError, TypeError, KeyError, AttributeError):
        return Cursor(at=at, version=stored.version, damaged=True)


async def save_cursor(files: FileStore, cursor: Cursor) -> Cursor:
    """Replace the cursor durably and return it with its new version. Raises `VersionConflict`."""
    value = {
        "done": cursor.done,
        "next": cursor.next,
        "path": cursor.path,
        "block": cursor.block,
        "offset": cursor.offset,
        "place": cursor.place,
        "anchor": cursor.anchor,
        "rebuilt": cursor.rebuilt,
    }
    data = json.dumps(value).encode() + b"\n"
    return replace(cursor, version=await files.replace(cursor.at, data, expected=cursor.version), damaged=False)


def _decoded(at: str, version: str, value: Mapping[str, JsonValue]) -> Cursor:
    return Cursor(
        at=at,
        version=version,
        done=_names(value["done"]),
        next=_names(value["next"]),
        path=str(value["path"]),
        block=str(value["block"]),
        offset=_number(value["offset"]),
        place=_number(value["place"]),
        anchor=str(value["anchor"]),
        rebuilt=bool(value["rebuilt"]),
    )


def _names(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("ids are a list")
    return tuple(str(name) for name in value)


def _number(value: JsonValue) -> int:
    if not isinstance(value, int) or not 0 <= value < _LARGEST:
        raise TypeError("an offset is a number")
    return value
