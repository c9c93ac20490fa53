"""Gather: read what a run works on, and nothing that was forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from anyio.to_thread import run_sync

from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.cursor import Cursor, Position, line_digests, load_cursor, unread
from ricordo.consolidation.plan import Material
from ricordo.consolidation.types import Fresh
from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore, version_of
from ricordo.guard.redact import Redactor
from ricordo.workspace.changes import Change, ChangeSets
from ricordo.workspace.entry_codec import Located, parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY, TOPICS, WORKSPACE, is_ledger, ledger_date
from ricordo.workspace.redaction import redacted_entry
from ricordo.workspace.tombstones import Tombstones, content_digest, read_tombstones

__all__ = ["Gathered", "Gatherer"]


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """The material of a run, the versions it was read at, and the cursor as it will be after it.

    `unreadable` are ledgers that are there and can't be read. `read` counts the entries that were not read before,
    `waiting` those that are left for the next run.
    """

    material: Material
    versions: Mapping[str, str]
    cursor: Cursor
    next: Cursor
    stones: str
    unreadable: frozenset[str]
    read: int
    waiting: int


@dataclass(frozen=True, kw_only=True)
class Gatherer:
    """Reads curated memory, the ledgers and what was forgotten; `key` recognises the latter."""

    files: FileStore
    changes: ChangeSets
    redactor: Redactor
    key: bytes
    config: ConsolidationConfig

    async def gather(self, *, again: bool = False) -> Gathered:
        """Return what there is to do; with `again` what earlier runs read is read again.

        Raises: StorageError if curated memory, or what was forgotten, is there and can't be read.
        """
        documents, versions = await self._documents()
        ledgers, unreadable = await self._ledgers(versions)
        cursor = await load_cursor(self.files)
        anew = again or (MEMORY not in documents and not await self._taken_back())
        stones = await read_tombstones(self.files)
        seen = frozenset[str]() if anew else cursor.seen
        live = {path: data for path, data in ledgers.items() if is_ledger(path)}
        found = {path: await run_sync(unread, path, data, cursor, seen) for path, data in live.items()}
        batch, waiting = _batch(found, self.config.batch_entries)
        return Gathered(
            material=Material(
                documents=documents,
                ledgers=ledgers,
                fresh=[await self._fresh(one) for one in batch if not self._is_forgotten(one, stones)],
                forgotten=stones.ids,
            ),
            versions=versions,
            cursor=cursor,
            next=replace(cursor, ledgers=await run_sync(_positions, live, cursor, seen, batch)),
            stones=stones.version,
            unreadable=unreadable,
            read=len(batch),
            waiting=waiting,
        )

    async def _documents(self) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return MEMORY.md and the topics that exist; one of them that can't be read ends the run."""
        paths = [MEMORY, *(info.path for info in await self.files.list(TOPICS) if info.path.endswith(".md"))]
        documents, versions = {}, {}
        for path in paths:
            try:
                stored = await self.files.read(path)
            except FileMissing:
                continue
            documents[path], versions[path] = stored.data, stored.version
        return documents, versions

    async def _ledgers(self, versions: dict[str, str]) -> tuple[dict[str, bytes], frozenset[str]]:
        """Return the ledgers, and the paths of those that can't be read: they stay unread, and stop no other."""
        found: dict[str, bytes] = {}
        unreadable: set[str] = set()
        for info in await self.files.list(LEDGERS):
            if ledger_date(info.path) is None:
                continue
            try:
                stored = await self.files.read(info.path)
            except FileMissing:
                continue
            except StorageError:
                unreadable.add(info.path)
                continue
            found[info.path], versions[info.path] = stored.data, stored.version
        return found, frozenset(unreadable)

    async def _taken_back(self) -> bool:
        """Tell whether MEMORY.md is missing because a person took back the run that had made it."""
        for change in await self.changes.records():
            if any(changed.path == MEMORY for changed in change.files):
                return await self._undoes_a_run(change)
        return False

    async def _undoes_a_run(self, change: Change) -> bool:
        if change.undoes is None:
            return False
        return any(one.id == change.undoes and one.act == "consolidate" for one in await self.changes.records())

    def _is_forgotten(self, found: Located, stones: Tombstones) -> bool:
        entry = found.entry
        return entry.id in stones.ids or (
            bool(stones.digests) and content_digest(entry.content, self.key) in stones.digests
        )

    async def _fresh(self, found: Located) -> Fresh:
        entry = redacted_entry(found.entry, self.redactor)
        if found.long is None:
            return Fresh(entry=entry)
        there = await self.files.info(f"{WORKSPACE}/{found.long}")
        return Fresh(entry=entry, long=found.long if there else None)


def _batch(found: Mapping[str, list[Located]], most: int) -> tuple[list[Located], int]:
    """Return the first unread entries, the oldest ledgers first, and how many are left."""
    ordered = [one for path in sorted(found) for one in found[path]]
    return ordered[:most], len(ordered[most:])


def _positions(
    ledgers: Mapping[str, bytes], cursor: Cursor, seen: frozenset[str], batch: list[Located]
) -> dict[str, Position]:
    """Return how far each ledger is read once the batch is done; what was read of it before stays read."""
    taken: dict[str, set[int]] = {}
    for one in batch:
        taken.setdefault(one.path, set()).add(one.offset)
    positions = {}
    for path, data in ledgers.items():
        before = cursor.ledgers.get(path)
        same = before and before.offset == len(data) and before.digest == version_of(data)
        if before and same and path not in taken and before.lines <= seen:
            positions[path] = before
            continue
        lines, offset = _read_lines(path, data, seen, taken.get(path, set()))
        kept = before.lines & seen if before else frozenset[str]()
        positions[path] = Position(offset=offset, digest=version_of(data[:offset]), lines=lines | kept)
    return positions


def _read_lines(path: str, data: bytes, seen: frozenset[str], taken: set[int]) -> tuple[frozenset[str], int]:
    """Return the digests of the bullets that are read now, and the bytes there are before the first that is not."""
    lines: frozenset[str] = frozenset()
    offset = len(data)
    for found in parse_entries(data, path):
        digest = line_digests([data[found.offset : found.offset + found.length]])
        if found.offset in taken or digest <= seen:
            lines |= digest
        else:
            offset = min(offset, found.offset)
    return lines, offset
