"""The cursor of a session: how far its messages were extracted, and the block that may be half written.

A cursor that can't be read is not one that has extracted nothing: `ricordo.flush.recovery` makes it anew from what
memory holds of the session.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.messages.jsontext import decode_json
from ricordo.messages.types import JsonValue

__all__ = ["ExtractionCursor", "load_cursor", "save_cursor"]

_MAX_DONE_IDS = 32
_MAX_OFFSET = 2**62


@dataclass(frozen=True, kw_only=True)
class ExtractionCursor:
    """`done` are the last messages that were extracted, newest last; there are several, as one may be erased.

    With `next` set, which is `done` as it will be, `block` is on its way to the ledger at `path`, which had `offset`
    bytes before. The message `anchor` stands at byte `place` of the log; what comes before is not needed again.
    `damaged` says that the file holds no cursor, `rebuilt` that some messages after `done` may have been extracted.
    """

    file_path: str
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

    def advance(self, messages: Sequence[str], *, place: int, anchor: str) -> "ExtractionCursor":
        """Return the cursor on its way past `messages`."""
        return replace(self, next=(*self.done, *messages)[-_MAX_DONE_IDS:], place=place, anchor=anchor, rebuilt=False)

    def complete(self) -> "ExtractionCursor":
        """Return the cursor after its block was written."""
        return ExtractionCursor(
            file_path=self.file_path, done=self.next, place=self.place, anchor=self.anchor, version=self.version
        )


async def load_cursor(files: FileStore, at: str) -> ExtractionCursor:
    """Return the cursor kept at `file_path`; a missing one has extracted nothing, an unreadable one is `damaged`."""
    try:
        stored = await files.read(at)
    except FileMissing:
        return ExtractionCursor(file_path=at)
    try:
        return _decode_cursor(at, stored.version, decode_json(stored.data))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ExtractionCursor(file_path=at, version=stored.version, damaged=True)


async def save_cursor(files: FileStore, cursor: ExtractionCursor) -> ExtractionCursor:
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
    return replace(cursor, version=await files.replace(cursor.file_path, data, expected=cursor.version), damaged=False)


def _decode_cursor(at: str, version: str, value: Mapping[str, JsonValue]) -> ExtractionCursor:
    return ExtractionCursor(
        file_path=at,
        version=version,
        done=_parse_ids(value["done"]),
        next=_parse_ids(value["next"]),
        path=str(value["path"]),
        block=str(value["block"]),
        offset=_parse_offset(value["offset"]),
        place=_parse_offset(value["place"]),
        anchor=str(value["anchor"]),
        rebuilt=bool(value["rebuilt"]),
    )


def _parse_ids(value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("ids are a list")
    return tuple(str(name) for name in value)


def _parse_offset(value: JsonValue) -> int:
    if not isinstance(value, int) or not 0 <= value < _MAX_OFFSET:
        raise TypeError("an offset is a number")
    return value
