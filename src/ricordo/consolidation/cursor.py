"""The cursor: which lines of the ledgers have been read, told by their content and never by a time of modification.

For each ledger it keeps how far it was read, the digest of that much, and a short digest of every bullet in it and of
its id. A file that was only touched or copied gives nothing new; in one that was edited the edited lines are new and no
other, and their ids tell that they were read before.
It is no part of a change set: an undone run leaves its entries read, and so is not done again.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from ricordo.clock import rfc3339
from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore, version_of
from ricordo.messages.jsontext import decoded
from ricordo.messages.types import JsonValue
from ricordo.workspace.entry_codec import Located, parse_entries
from ricordo.workspace.layout import LEDGERS

__all__ = ["CURSOR", "Cursor", "Position", "id_digest", "line_digests", "load_cursor", "save_cursor", "unread"]

CURSOR = f"{LEDGERS}/.consolidation_state"

_DIGITS = 8


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far one ledger was read: bytes, their digest, and the digests of the bullets in them and of their ids."""

    offset: int
    digest: str
    lines: frozenset[str]
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """What was read at the last run, which was at `at`; nothing, at no time, for a root that was never consolidated."""

    at: datetime | None = None
    ledgers: Mapping[str, Position] = field(default_factory=dict)
    version: str = ABSENT

    @property
    def seen(self) -> frozenset[str]:
        """The digests of all bullets that were read."""
        return frozenset[str]().union(*(position.lines for position in self.ledgers.values()))

    @property
    def ids(self) -> frozenset[str]:
        """The digests of the ids of all bullets that were read."""
        return frozenset[str]().union(*(position.ids for position in self.ledgers.values()))


def id_digest(entry_id: str) -> str:
    """Return the short digest of an id, 32 bits of BLAKE2b in hex."""
    return blake2b(entry_id.encode("utf-8", "surrogatepass"), digest_size=_DIGITS // 2).hexdigest()


def line_digests(bullets: Iterable[bytes]) -> frozenset[str]:
    """Return the short digest of each bullet, 32 bits of BLAKE2b in hex."""
    return frozenset(blake2b(bullet.rstrip(), digest_size=_DIGITS // 2).hexdigest() for bullet in bullets)


def unread(path: str, data: bytes, cursor: Cursor, seen: frozenset[str]) -> list[Located]:
    """Return the entries of a ledger that no run has read, in its order; `seen` are the digests that count as read."""
    position = cursor.ledgers.get(path)
    whole = position is not None and position.offset == len(data) and position.digest == version_of(data)
    if whole and position is not None and position.lines <= seen:
        return []
    return [
        found
        for found in parse_entries(data, path)
        if not line_digests([data[found.offset : found.offset + found.length]]) <= seen
    ]


async def load_cursor(files: FileStore) -> Cursor:
    """Return the cursor of the workspace; a missing or damaged one has read nothing."""
    try:
        stored = await files.read(CURSOR)
    except FileMissing:
        return Cursor()
    try:
        return _decoded(stored.data, stored.version)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Cursor(version=stored.version)


async def save_cursor(files: FileStore, cursor: Cursor) -> None:
    """Replace the cursor durably. Raises `VersionConflict`."""
    rows = {
        path: {
            "offset": position.offset,
            "digest": position.digest,
            "lines": "".join(sorted(position.lines)),
            "ids": "".join(sorted(position.ids)),
        }
        for path, position in sorted(cursor.ledgers.items())
    }
    value = {"at": rfc3339(cursor.at) if cursor.at else None, "ledgers": rows}
    await files.replace(CURSOR, json.dumps(value, indent=0).encode() + b"\n", expected=cursor.version)


def _decoded(data: bytes, version: str) -> Cursor:
    value = decoded(data)
    at = value["at"]
    return Cursor(
        at=datetime.fromisoformat(at) if at else None,
        ledgers={str(path): _position(row) for path, row in value["ledgers"].items()},
        version=version,
    )


def _position(row: Mapping[str, JsonValue]) -> Position:
    offset = row["offset"]
    if not isinstance(offset, int):
        raise TypeError("a position is a number of bytes")
    return Position(
        offset=offset, digest=str(row["digest"]), lines=_parted(row["lines"]), ids=_parted(row.get("ids", ""))
    )


def _parted(digests: JsonValue) -> frozenset[str]:
    if not isinstance(digests, str) or len(digests) % _DIGITS:
        raise TypeError("digests are of equal length")
    return frozenset(digests[start : start + _DIGITS] for start in range(0, len(digests), _DIGITS))
