"""Gather the input of a run: curated memory, ledgers and unread entries, without forgotten entries.

Without a usable cursor, entries that a person deleted are found in the history: a document has an entry after one
change set, and no longer has it before the next one or in its current version.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.importance import MERGED_FIELD, field_ids
from ricordo.curation.memory_document import parse_memory_document
from ricordo.curation.placement import empty_sections, filled_sections
from ricordo.curation.proposal import ConsolidationInput
from ricordo.curation.run_state import (
    ConsolidationCursor,
    LedgerPosition,
    find_unread_entries,
    id_digest,
    line_digests,
    load_cursor,
)
from ricordo.curation.types import CandidateEntry
from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.guard.redact import Redactor
from ricordo.lazy import dataclass
from ricordo.storage import FileStore, compute_version
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.history.change_sets import Change, ChangeSets
from ricordo.workspace.history.tombstones import Tombstones, find_tombstone, read_tombstones
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, TOPICS, WORKSPACE, is_ledger, is_profile, ledger_date
from ricordo.workspace.ledger import find_ledger_copies
from ricordo.workspace.markdown import has_any_id
from ricordo.workspace.profile import locate_facts
from ricordo.workspace.redaction import redact_entry

__all__ = ["CONSOLIDATE_ACT", "GatheredInput", "Gatherer", "find_deleted_by_hand"]


async def find_deleted_by_hand(changes: ChangeSets, documents: Mapping[str, bytes], *, undone: bool) -> frozenset[str]:
    """Return the ids of entries whose bullet a person deleted, and of the entries merged into them.

    `documents` are the current MEMORY.md and topics. With `undone`, entries that an undo removed are included. A
    missing MEMORY.md is ignored, and so is a version whose bytes are gone. Entries that came back since are left out.
    """
    last_ids: dict[str, frozenset[str]] = {}
    deleted_ids: set[str] = set()
    for change in reversed(await changes.list_changes()):
        versions = await _read_versions(changes, change)
        for path, (before, _) in versions.items():
            if path in last_ids and before is not None and (before or path != MEMORY_PATH):
                deleted_ids |= last_ids[path] - before
        ids_before = _union(before for before, _ in versions.values())
        ids_after = _union(after for _, after in versions.values())
        deleted_ids -= ids_after
        if undone and change.undoes is not None:
            deleted_ids |= ids_before - ids_after
        last_ids |= {path: after for path, (_, after) in versions.items() if after is not None}
    current_ids = {path: await run_sync(_parse_ids, path, data) for path, data in documents.items()}
    for path, ids in last_ids.items():
        if path in current_ids or path != MEMORY_PATH:
            deleted_ids |= ids - current_ids.get(path, frozenset())
    return frozenset(deleted_ids - _union(current_ids.values()))


async def _read_versions(
    changes: ChangeSets, change: Change
) -> dict[str, tuple[frozenset[str] | None, frozenset[str] | None]]:
    """Return the ids in each curated document before and after the change; None where unknown."""
    ids_by_path = {}
    for changed in change.files:
        if changed.path == MEMORY_PATH or changed.path.startswith(f"{TOPICS}/"):
            before = await _read_version(changes, changed.path, changed.before)
            ids_by_path[changed.path] = (before, await _read_version(changes, changed.path, changed.after))
    return ids_by_path


async def _read_version(changes: ChangeSets, path: str, version: str) -> frozenset[str] | None:
    try:
        data = await changes.read_content(version)
    except (FileMissing, DocumentInvalid):
        return None
    return await run_sync(_parse_ids, path, data or b"")


def _parse_ids(path: str, data: bytes) -> frozenset[str]:
    entries = [located.entry for located in parse_entries(data, path)]
    return frozenset(name for entry in entries for name in (entry.id, *field_ids(entry, MERGED_FIELD)))


def _union(id_sets: Iterable[frozenset[str] | None]) -> frozenset[str]:
    return frozenset[str]().union(*(ids for ids in id_sets if ids is not None))


CONSOLIDATE_ACT = "consolidate"
"""The act of a run in the history."""


@dataclass(frozen=True, kw_only=True)
class GatheredInput:
    """The input of a run, the versions of its documents, and the cursor before and after it.

    `unreadable` are existing ledgers that can't be read. `read` counts the entries that were not read before, `waiting`
    those that remain for the next run.
    """

    material: ConsolidationInput
    versions: Mapping[str, str]
    cursor: ConsolidationCursor
    next: ConsolidationCursor
    tombstones: str
    unreadable: frozenset[str]
    read: int
    waiting: int


@dataclass(frozen=True, kw_only=True)
class Gatherer:
    """Reads curated memory, the ledgers and the tombstones; `key` recognises forgotten entries.

    `uses_profile` says that prompts show the profile, so that curated memory need not repeat it.
    """

    files: FileStore
    changes: ChangeSets
    redactor: Redactor
    key: bytes
    config: ConsolidationConfig
    clock: Clock
    uses_profile: bool = True

    async def gather(self, *, again: bool = False, deep: bool = False) -> GatheredInput:
        """Return the input; with `again` entries that earlier runs read are included, `deep` marks it as a dream's.

        Raises: StorageError if curated memory, or the tombstone file, exists and can't be read.
        """
        documents, versions = await self._read_documents()
        ledgers, unreadable = await self._read_ledgers(versions)
        cursor = await load_cursor(self.files)
        rebuild = again or (MEMORY_PATH not in documents and not await self._was_undone())
        tombstones = await read_tombstones(self.files)
        seen = frozenset[str]() if rebuild else cursor.bullet_digests
        deleted = frozenset[str]()
        if rebuild or not cursor.ledgers:
            deleted = await find_deleted_by_hand(self.changes, documents, undone=not again)
        live_ledgers = {path: data for path, data in ledgers.items() if is_ledger(path)}
        unread = {
            path: await run_sync(find_unread_entries, path, data, cursor, seen) for path, data in live_ledgers.items()
        }
        batch, waiting = _take_batch(unread, self.config.batch_entries)
        edited = await run_sync(_find_edited, batch, live_ledgers, cursor)
        profiles = await self._read_profiles(versions)
        facts = [one.entry for path, data in profiles.items() for one in await run_sync(locate_facts, data, path)]
        fact_ids = await find_ledger_copies(self.files, facts) if facts else {}
        # what the profile said at the last run may have been replaced since
        stated_ids = fact_ids.keys() | cursor.stated
        return GatheredInput(
            material=ConsolidationInput(
                documents=documents,
                ledgers=ledgers,
                fresh=[
                    await self._make_candidate(one, edited=one.offset in edited.get(one.path, ()))
                    for one in batch
                    if one.entry.id not in deleted and not self._is_forgotten(one, tombstones)
                    # what comes from elsewhere is neither shown to a model nor compared, until a person confirms it
                    if not one.entry.is_external
                ],
                forgotten=tombstones.ids,
                held=await self._find_filled_sections(documents.get(MEMORY_PATH, b"")),
                deep=deep,
                profiles=profiles,
                stated=[
                    await self._make_candidate(one, edited=False)
                    for path, data in ledgers.items()
                    if stated_ids
                    for one in await run_sync(partial(parse_entries, data, path, only=has_any_id(stated_ids)))
                    if one.entry.id in stated_ids and not self._is_forgotten(one, tombstones)
                ],
                uncurated=[
                    await self._make_candidate(one, edited=False)
                    for path, data in live_ledgers.items()
                    if cursor.uncurated and not rebuild
                    for one in await run_sync(partial(parse_entries, data, path, only=has_any_id(cursor.uncurated)))
                    if one.entry.id in cursor.uncurated
                    and one.entry.state == "active"
                    and not one.entry.is_external
                    and not self._is_forgotten(one, tombstones)
                ],
                fact_ids=fact_ids,
                today=self.clock.today(),
            ),
            versions=versions,
            cursor=cursor,
            next=replace(cursor, ledgers=await run_sync(_next_positions, live_ledgers, cursor, seen, batch)),
            tombstones=tombstones.version,
            unreadable=unreadable,
            read=len(batch),
            waiting=waiting,
        )

    async def _read_documents(self) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return MEMORY.md and the topics that exist; an unreadable one ends the run."""
        paths = [MEMORY_PATH, *(info.path for info in await self.files.list(TOPICS) if info.path.endswith(".md"))]
        documents, versions = {}, {}
        for path in paths:
            try:
                stored = await self.files.read(path)
            except FileMissing:
                continue
            documents[path], versions[path] = stored.data, stored.version
        return documents, versions

    async def _read_profiles(self, versions: dict[str, str]) -> dict[str, bytes]:
        """Return the readable profiles of the root, none if no prompt shows them."""
        profiles: dict[str, bytes] = {}
        if not self.uses_profile:
            return profiles
        for path in [info.path for info in await self.files.list(WORKSPACE) if is_profile(info.path)]:
            with suppress(FileMissing, StorageError):
                stored = await self.files.read(path)
                profiles[path], versions[path] = stored.data, stored.version
        return profiles

    async def _read_ledgers(self, versions: dict[str, str]) -> tuple[dict[str, bytes], frozenset[str]]:
        """Return the readable ledgers, and the paths of the unreadable ones, which are skipped."""
        ledgers: dict[str, bytes] = {}
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
            ledgers[info.path], versions[info.path] = stored.data, stored.version
        return ledgers, frozenset(unreadable)

    async def _was_undone(self) -> bool:
        """Tell whether MEMORY.md is missing because a person undid the run that created it."""
        records = await self.changes.list_changes()
        last = next((one for one in records if any(changed.path == MEMORY_PATH for changed in one.files)), None)
        if last is None or last.undoes is None:
            return False
        return any(one.id == last.undoes and one.action == CONSOLIDATE_ACT for one in records)

    async def _find_filled_sections(self, memory: bytes) -> frozenset[str]:
        """Return the sections in which the last run left a memory; empty unless a generated section is empty."""
        document = await run_sync(parse_memory_document, memory, MEMORY_PATH)
        if not empty_sections(document):
            return frozenset()
        for change in await self.changes.list_changes():
            after = next(
                (one.after for one in change.files if one.path == MEMORY_PATH and change.action == CONSOLIDATE_ACT),
                None,
            )
            if after is not None:
                with suppress(FileMissing, DocumentInvalid):
                    content = await self.changes.read_content(after) or b""
                    return filled_sections(await run_sync(parse_memory_document, content, MEMORY_PATH))
                break
        return frozenset()

    def _is_forgotten(self, located: LocatedEntry, tombstones: Tombstones) -> bool:
        """Tell whether an entry was forgotten; false if the same words were saved again since."""
        return find_tombstone(located.entry, tombstones, self.key) is not None

    async def _make_candidate(self, located: LocatedEntry, *, edited: bool) -> CandidateEntry:
        entry = redact_entry(located.entry, self.redactor)
        if located.long_path is None:
            return CandidateEntry(entry=entry, edited=edited)
        file_info = await self.files.info(f"{WORKSPACE}/{located.long_path}")
        return CandidateEntry(entry=entry, long=located.long_path if file_info else None, edited=edited)


def _find_edited(
    batch: list[LocatedEntry], ledgers: Mapping[str, bytes], cursor: ConsolidationCursor
) -> dict[str, set[int]]:
    """Return the offsets, by ledger, of the bullets that changed since they were read."""
    ids, seen = cursor.id_digests, cursor.bullet_digests
    offsets: dict[str, set[int]] = {}
    for one in batch:
        line = line_digests([ledgers[one.path][one.offset : one.offset + one.length]])
        if id_digest(one.entry.id) in ids and not line <= seen:
            offsets.setdefault(one.path, set()).add(one.offset)
    return offsets


def _take_batch(unread: Mapping[str, list[LocatedEntry]], max_entries: int) -> tuple[list[LocatedEntry], int]:
    """Return the first unread entries, the oldest ledgers first, and the number of remaining ones."""
    entries = [one for path in sorted(unread) for one in unread[path]]
    return entries[:max_entries], len(entries[max_entries:])


def _next_positions(
    ledgers: Mapping[str, bytes], cursor: ConsolidationCursor, seen: frozenset[str], batch: list[LocatedEntry]
) -> dict[str, LedgerPosition]:
    """Return the position of each ledger after the batch; bullets that were read before stay read."""
    batch_offsets: dict[str, set[int]] = {}
    for one in batch:
        batch_offsets.setdefault(one.path, set()).add(one.offset)
    positions = {}
    for path, data in ledgers.items():
        previous = cursor.ledgers.get(path)
        is_unchanged = previous and previous.offset == len(data) and previous.digest == compute_version(data)
        if previous and is_unchanged and path not in batch_offsets and previous.lines <= seen:
            positions[path] = previous
            continue
        lines, ids, offset = _digest_lines(path, data, seen, batch_offsets.get(path, set()))
        if previous:
            lines, ids = lines | (previous.lines & seen), ids | previous.ids
        positions[path] = LedgerPosition(offset=offset, digest=compute_version(data[:offset]), lines=lines, ids=ids)
    return positions


def _digest_lines(
    path: str, data: bytes, seen: frozenset[str], batch_offsets: set[int]
) -> tuple[frozenset[str], frozenset[str], int]:
    """Return the digests of the read bullets and of their ids, and the offset of the first unread bullet."""
    lines: frozenset[str] = frozenset()
    ids: set[str] = set()
    offset = len(data)
    for located in parse_entries(data, path):
        digest = line_digests([data[located.offset : located.offset + located.length]])
        if located.offset in batch_offsets or digest <= seen:
            lines |= digest
            ids.add(id_digest(located.entry.id))
        else:
            offset = min(offset, located.offset)
    return lines, frozenset(ids), offset
