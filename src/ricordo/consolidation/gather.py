"""Gather: read what a run works on, and nothing that was forgotten."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from anyio.to_thread import run_sync

from ricordo.consolidation.by_hand import taken_out
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.cursor import Cursor, Position, id_digest, line_digests, load_cursor, unread
from ricordo.consolidation.placing import emptied, held_sections
from ricordo.consolidation.plan import Material
from ricordo.consolidation.sheet import parse_sheet
from ricordo.consolidation.types import Fresh
from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.files import FileStore, version_of
from ricordo.guard.redact import Redactor
from ricordo.workspace.changes import ChangeSets
from ricordo.workspace.entry_codec import Located, parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY, TOPICS, WORKSPACE, is_ledger, ledger_date
from ricordo.workspace.redaction import redacted_entry
from ricordo.workspace.tombstones import Tombstones, read_tombstones, tombstone_of

__all__ = ["ACT", "Gathered", "Gatherer"]

ACT = "consolidate"
"""What a run is called in the history."""


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

    async def gather(self, *, again: bool = False, deep: bool = False) -> Gathered:
        """Return what there is to do; with `again` what earlier runs read is read again, with `deep` what is curated.

        Raises: StorageError if curated memory, or what was forgotten, is there and can't be read.
        """
        documents, versions = await self._documents()
        ledgers, unreadable = await self._ledgers(versions)
        cursor = await load_cursor(self.files)
        anew = again or (MEMORY not in documents and not await self._taken_back())
        stones = await read_tombstones(self.files)
        seen = frozenset[str]() if anew else cursor.seen
        deleted = frozenset[str]()
        if anew or not cursor.ledgers:
            deleted = await taken_out(self.changes, documents, undone=not again)
        live = {path: data for path, data in ledgers.items() if is_ledger(path)}
        found = {path: await run_sync(unread, path, data, cursor, seen) for path, data in live.items()}
        batch, waiting = _batch(found, self.config.batch_entries)
        edited = await run_sync(_edited, batch, live, cursor)
        return Gathered(
            material=Material(
                documents=documents,
                ledgers=ledgers,
                fresh=[
                    await self._fresh(one, edited=one.offset in edited.get(one.path, ()))
                    for one in batch
                    if one.entry.id not in deleted and not self._is_forgotten(one, stones)
                ],
                forgotten=stones.ids,
                held=await self._held(documents.get(MEMORY, b"")),
                deep=deep,
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
        records = await self.changes.records()
        last = next((one for one in records if any(changed.path == MEMORY for changed in one.files)), None)
        if last is None or last.undoes is None:
            return False
        return any(one.id == last.undoes and one.act == ACT for one in records)

    async def _held(self, memory: bytes) -> frozenset[str]:
        """Return the sections in which the last run left a memory; looked for only where one of ours is empty."""
        sheet = await run_sync(parse_sheet, memory, MEMORY)
        if not emptied(sheet):
            return frozenset()
        for change in await self.changes.records():
            after = next((one.after for one in change.files if one.path == MEMORY and change.act == ACT), None)
            if after is not None:
                with suppress(FileMissing, DocumentInvalid):
                    left = await self.changes.content(after) or b""
                    return held_sections(await run_sync(parse_sheet, left, MEMORY))
                break
        return frozenset()

    def _is_forgotten(self, found: Located, stones: Tombstones) -> bool:
        """Tell whether an entry was forgotten; one that was saved again since, in the same words, was not."""
        return tombstone_of(found.entry, stones, self.key) is not None

    async def _fresh(self, found: Located, *, edited: bool) -> Fresh:
        entry = redacted_entry(found.entry, self.redactor)
        if found.long is None:
            return Fresh(entry=entry, edited=edited)
        there = await self.files.info(f"{WORKSPACE}/{found.long}")
        return Fresh(entry=entry, long=found.long if there else None, edited=edited)


def _edited(batch: list[Located], ledgers: Mapping[str, bytes], cursor: Cursor) -> dict[str, set[int]]:
    """Return the offsets, by ledger, of the bullets that were read before and read otherwise now."""
    ids, seen = cursor.ids, cursor.seen
    found: dict[str, set[int]] = {}
    for one in batch:
        line = line_digests([ledgers[one.path][one.offset : one.offset + one.length]])
        if id_digest(one.entry.id) in ids and not line <= seen:
            found.setdefault(one.path, set()).add(one.offset)
    return found


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
        lines, ids, offset = _read_lines(path, data, seen, taken.get(path, set()))
        if before:
            lines, ids = lines | (before.lines & seen), ids | before.ids
        positions[path] = Position(offset=offset, digest=version_of(data[:offset]), lines=lines, ids=ids)
    return positions


def _read_lines(
    path: str, data: bytes, seen: frozenset[str], taken: set[int]
) -> tuple[frozenset[str], frozenset[str], int]:
    """Return the digests of the bullets that are read now, of their ids, and the bytes before the first that is not."""
    lines: frozenset[str] = frozenset()
    ids: set[str] = set()
    offset = len(data)
    for found in parse_entries(data, path):
        digest = line_digests([data[found.offset : found.offset + found.length]])
        if found.offset in taken or digest <= seen:
            lines |= digest
            ids.add(id_digest(found.entry.id))
        else:
            offset = min(offset, found.offset)
    return lines, frozenset(ids), offset
