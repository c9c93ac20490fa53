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

from ricordo.clock import format_rfc3339
from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore, compute_version
from ricordo.messages.jsontext import decode_json
from ricordo.messages.types import JsonValue
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.layout import LEDGERS

__all__ = [
    "CURSOR_PATH",
    "ConsolidationCursor",
    "LedgerPosition",
    "id_digest",
    "line_digests",
    "load_cursor",
    "save_cursor",
    "find_unread_entries",
]

CURSOR_PATH = f"{LEDGERS}/.consolidation_state"

_DIGEST_LENGTH = 8


@dataclass(frozen=True, kw_only=True)
class LedgerPosition:
    """How far one ledger was read: bytes, their digest, and the digests of the bullets in them and of their ids."""

    offset: int
    digest: str
    lines: frozenset[str]
    ids: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ConsolidationCursor:
    """What was read at the last run, which was at `at`; nothing, at no time, for a root that was never consolidated."""

    at: datetime | None = None
    ledgers: Mapping[str, LedgerPosition] = field(default_factory=dict)
    version: str = ABSENT

    @property
    def bullet_digests(self) -> frozenset[str]:
        """The digests of all bullets that were read."""
        return frozenset[str]().union(*(position.lines for position in self.ledgers.values()))

    @property
    def id_digests(self) -> frozenset[str]:
        """The digests of the ids of all bullets that were read."""
        return frozenset[str]().union(*(position.ids for position in self.ledgers.values()))


def id_digest(entry_id: str) -> str:
    """Return the short digest of an id, 32 bits of BLAKE2b in hex."""
    return blake2b(entry_id.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2).hexdigest()


def line_digests(bullets: Iterable[bytes]) -> frozenset[str]:
    """Return the short digest of each bullet, 32 bits of BLAKE2b in hex."""
    return frozenset(blake2b(bullet.rstrip(), digest_size=_DIGEST_LENGTH // 2).hexdigest() for bullet in bullets)


def find_unread_entries(
    path: str, data: bytes, cursor: ConsolidationCursor, seen: frozenset[str]
) -> list[LocatedEntry]:
    """Return the entries of a ledger that no run has read, in its order; `bullet_digests` are the digests that count as read."""
    position = cursor.ledgers.get(path)
    whole = position is not None and position.offset == len(data) and position.digest == compute_version(data)
    if whole and position is not None and position.lines <= seen:
        return []
    return [
        found
        for found in parse_entries(data, path)
        if not line_digests([data[found.offset : found.offset + found.length]]) <= seen
    ]


async def load_cursor(files: FileStore) -> ConsolidationCursor:
    """Return the cursor of the workspace; a missing or damaged one has read nothing."""
    try:
        stored = await files.read(CURSOR_PATH)
    except FileMissing:
        return ConsolidationCursor()
    try:
        return _parse_cursor(stored.data, stored.version)
    except (ValueError, TypeError, KeyError, AttributeError):
        return ConsolidationCursor(version=stored.version)


async def save_cursor(files: FileStore, cursor: ConsolidationCursor) -> None:
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
    value = {"at": format_rfc3339(cursor.at) if cursor.at else None, "ledgers": rows}
    await files.replace(CURSOR_PATH, json.dumps(value, indent=0).encode() + b"\n", expected=cursor.version)


def _parse_cursor(data: bytes, version: str) -> ConsolidationCursor:
    value = decode_json(data)
    at = value["at"]
    return ConsolidationCursor(
        at=datetime.fromisoformat(at) if at else None,
        ledgers={str(path): _parse_position(row) for path, row in value["ledgers"].items()},
        version=version,
    )


def _parse_position(row: Mapping[str, JsonValue]) -> LedgerPosition:
    offset = row["offset"]
    if not isinstance(offset, int):
        raise TypeError("a position is a number of bytes")
    return LedgerPosition(
        offset=offset,
        digest=str(row["digest"]),
        lines=_split_digests(row["lines"]),
        ids=_split_digests(row.get("ids", "")),
    )


def _split_digests(digests: JsonValue) -> frozenset[str]:
    if not isinstance(digests, str) or len(digests) % _DIGEST_LENGTH:
        raise TypeError("digests are of equal length")
    return frozenset(digests[start : start + _DIGEST_LENGTH] for start in range(0, len(digests), _DIGEST_LENGTH))
