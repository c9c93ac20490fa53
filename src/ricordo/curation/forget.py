"""Forget: remove an entry from memory at once, in one change set that can be undone.

It removes the entry from every document that holds it, deletes the file of a long entry, and removes its text from
topic lists, session files and profiles. It adds tombstones without content, so extraction does not learn the statement
again and answers do not quote it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from ricordo.concurrency import compute
from ricordo.curation.cascade import add_room_edits, add_topic_list_edits, build_profile_edits, build_session_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.contradictions import remove_links
from ricordo.curation.rewording import find_dependent_lines, restore_own_words
from ricordo.curation.run_state import PROPOSAL_PATH
from ricordo.curation.undo import withdraw_announced, without_curated
from ricordo.errors import EntryNotFound
from ricordo.lazy import dataclass, lazy_compile
from ricordo.storage import FileStore
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, remove_entries
from ricordo.workspace.history.change_sets import CURATION_LOCK, Change, ChangeSets, Edit
from ricordo.workspace.history.copies import RecordCopies, find_copies
from ricordo.workspace.history.repetition import ContentIndex, is_repetition
from ricordo.workspace.history.tombstones import Tombstone, content_digest, create_tombstone, read_tombstones
from ricordo.workspace.layout import MEMORY_PATH, TOMBSTONES, TOPICS, TRASH, WORKSPACE, ledger_date
from ricordo.workspace.ledger import (
    find_entries,
    find_entry,
    find_extracted_or_similar,
    is_curated,
    read_all_entries,
)
from ricordo.workspace.markdown import has_any_id

__all__ = [
    "ForgottenEntry",
    "build_removal_edits",
    "forget",
    "forget_copies",
    "forget_entries",
    "has_backups",
    "plan_forgetting",
]


_AT_ONCE = 20_000
"""The number of bytes that can be read and rewritten in some milliseconds."""
_BACKUP_PATTERN = lazy_compile(r"\.broken-\d+$")
_TombstoneFactory: TypeAlias = Callable[[Entry], Tombstone]


@dataclass(frozen=True, kw_only=True)
class ForgottenEntry:
    """The forgotten entry, the `path` of the first document that held it, and the change set, which can be undone."""

    entry: Entry
    path: str
    change: Change


async def forget(
    files: FileStore, changes: ChangeSets, entry_id: str, *, key: bytes, who: str, why: str = "",
    config: ConsolidationConfig | None = None,
) -> ForgottenEntry:  # fmt: skip
    """Remove one entry as `forget_entries` does. Raises: EntryNotFound; StorageBusy."""
    located = await find_entry(files, entry_id)
    change = await forget_entries(files, changes, [located.entry.id], key=key, who=who, why=why, config=config)
    return ForgottenEntry(entry=located.entry, path=located.path, change=change)


async def forget_entries(
    files: FileStore, changes: ChangeSets, entry_ids: Collection[str], *, key: bytes, who: str, why: str = "",
    config: ConsolidationConfig | None = None, facts: Sequence[LocatedEntry] = (),
    part_of: str = "", backups: bool = False,
) -> Change:  # fmt: skip
    """Remove entries, by their full ids, and `facts` of profiles from every document, and return the one change set.

    Tombstones are added. Lines that a consolidation had merged with them get their original text back, which may be
    longer. Lines that then exceed the bounds of `config` move from MEMORY.md to topics. Entries that are forgotten
    meanwhile are left out. With `backups`, the trash and the documents that were set aside as unreadable are removed
    too. The change is undone together with the change `part_of`. Raises: EntryNotFound if none is left, unless there
    are backups; StorageBusy if a consolidation does not end in time.
    """
    bounds = config or ConsolidationConfig()
    make_tombstone = partial(create_tombstone, key=key, at=changes.clock.now(), by=who)
    fact_entries = [one.entry for one in facts]

    async def plan() -> list[Edit]:
        located_entries = await _locate_entries(files, entry_ids)
        removed = await _plan_backups(files) if backups else []
        if not located_entries and not facts:
            if removed:
                return removed
            raise EntryNotFound(f"The memory {', '.join(entry_ids)} was forgotten meanwhile.")
        edits = await plan_forgetting(
            files, located_entries, fact_entries, key=key, make_tombstone=make_tombstone, bounds=bounds
        )
        return [*edits, *removed]

    # the lock orders this with other writers: earlier writes are found here, and later writers skip the entries
    async with files.lock(CURATION_LOCK):
        return await changes.rebase(plan, act="forget", who=who, why=why, part_of=part_of)


async def has_backups(files: FileStore) -> bool:
    """Return whether a place has anything in its trash, or documents that were set aside as unreadable."""
    return bool(await _plan_backups(files))


async def _plan_backups(files: FileStore) -> list[Edit]:
    paths = [info.path for info in await files.list(WORKSPACE) if _BACKUP_PATTERN.search(info.path)]
    paths += [info.path for info in await files.list(TRASH)]
    return [Edit(path=path, expected_hash=(await files.read(path)).version, data=None) for path in paths]


async def plan_forgetting(
    files: FileStore,
    located_entries: list[LocatedEntry],
    others: Sequence[Entry],
    *,
    key: bytes,
    make_tombstone: _TombstoneFactory,
    bounds: ConsolidationConfig,
    user: str | None = None,
    mentioned: bool = False,
    exact: bool = False,
) -> list[Edit]:
    """Return the edits that remove these entries, `others`, and the learned entries that say the same.

    `others` are facts of a profile, or entries of another root. With a `user`, learned entries of other users stay.
    With `mentioned`, there are none if nothing here mentions the entries. With `exact`, other entries and facts stay.
    """
    entries = [*others, *(one.entry for one in located_entries)]
    copies = await find_copies(files, entries, key=key)
    duplicates = [] if exact else await _find_same_statements(files, entries, copies.near, key)
    duplicates = [one for one in duplicates if user is None or _belongs_to(one.entry, user)]
    if duplicates:
        located_entries = located_entries + duplicates
        entries += [one.entry for one in duplicates]
        copies = await find_copies(files, entries, key=key)
    edits = await build_removal_edits(files, located_entries, bounds) if located_entries else []
    edits += await _build_record_edits(files, entries, copies, make_tombstone, exact=exact)
    if mentioned and len(edits) == 1 and not copies.tombstones:
        return []
    return await add_room_edits(files, edits, bounds, best_effort=True) if located_entries else edits


def _belongs_to(entry: Entry, user: str) -> bool:
    return entry.scope is None or entry.scope.user in {None, user}


async def _locate_entries(files: FileStore, ids: Collection[str]) -> list[LocatedEntry]:
    """Return the places of the entries with these full ids."""
    if len(ids) > 1:
        return [one for one in await read_all_entries(files, only=has_any_id(ids)) if one.entry.id in ids]
    return [one for name in ids for one in await find_entries(files, name) if one.entry.id == name]


async def forget_copies(
    files: FileStore, changes: ChangeSets, entries: Sequence[Entry], *, key: bytes, who: str, why: str = "",
    user: str = "", always: bool = False, part_of: str = "", config: ConsolidationConfig | None = None,
) -> Change | None:  # fmt: skip
    """Remove what says the same as `entries` of another root from this root, add tombstones, and return the change set.

    The records of this root lose their words, and so do its profiles; entries of `user`, or of no user, that were
    learned from the same statement are removed. Returns None if nothing here mentions them, unless `always`: then the
    statement is not learned here later. The change is undone together with the change `part_of`. Raises: StorageBusy.
    """
    bounds = config or ConsolidationConfig()
    make_tombstone = partial(create_tombstone, key=key, at=changes.clock.now(), by=who)

    async def plan() -> list[Edit]:
        return await plan_forgetting(
            files, [], entries, key=key, make_tombstone=make_tombstone, bounds=bounds, user=user, mentioned=not always
        )

    async with files.lock(CURATION_LOCK):
        edits = await plan()
        if not edits:
            return None
        return await changes.rebase(plan, act="forget", who=who, why=why, part_of=part_of, planned=edits)


async def _find_same_statements(
    files: FileStore, entries: Sequence[Entry], message_ids: Collection[tuple[str, str]], key: bytes
) -> list[LocatedEntry]:
    """Return entries with other ids that say the same: in the same words, or learned from one of the messages
    `message_ids`.

    An entry that a person saved again is not included.
    """
    contents = [entry.content for entry in entries]
    digests, statements, ids = {content_digest(content, key) for content in contents}, ContentIndex(contents), set()
    for one in await find_extracted_or_similar(files, contents):
        content, source = one.entry.content, one.entry.source
        is_near = one.entry.by == "flush" and any(
            (source.session or "", name) in message_ids for name in source.messages
        )
        is_same = one.entry.by != "user" and content_digest(content, key) in digests
        if is_same or (is_near and any(is_repetition(content, each) for each in statements.candidates(content))):
            ids.add(one.entry.id)
    ids -= {entry.id for entry in entries}
    return sorted(await _locate_entries(files, ids), key=lambda one: one.entry.id)


async def build_removal_edits(
    files: FileStore, located_entries: Sequence[LocatedEntry], config: ConsolidationConfig
) -> list[Edit]:
    """Return the edits that remove these entries from curated memory, the ledgers and the files of long entries."""
    edits = []
    for path in dict.fromkeys(located.path for located in located_entries):
        stored = await files.read(path)
        without = without_curated if is_curated(path) else remove_entries
        remove = partial(without, stored.data, path, {located.entry.id for located in located_entries})
        remaining = await compute(remove, size=len(stored.data), at_once=_AT_ONCE)
        edits.append(Edit(path=path, expected_hash=stored.version, data=remaining))
    edits = await _restore_own_words(files, edits, {located.entry.id for located in located_entries})
    edits = await add_topic_list_edits(files, edits, config)
    long_paths = dict.fromkeys(f"{WORKSPACE}/{located.long_path}" for located in located_entries if located.long_path)
    # the pending proposal of a model may contain the entry
    long_paths |= {PROPOSAL_PATH: None}
    long_files = [(long, await files.read(long)) for long in long_paths if await files.info(long)]
    return [*edits, *(Edit(path=long, expected_hash=stored.version, data=None) for long, stored in long_files)]


async def _build_record_edits(
    files: FileStore, entries: Sequence[Entry], copies: RecordCopies, make_tombstone: _TombstoneFactory, *, exact: bool
) -> list[Edit]:
    """Return the edits of session files, profiles, evicted results and the tombstone file."""
    tombstones = await read_tombstones(files)
    new_tombstones = [*map(make_tombstone, entries), *copies.tombstones]
    edits = [
        Edit(
            path=TOMBSTONES,
            expected_hash=tombstones.version,
            data=tombstones.render_with(dict.fromkeys(new_tombstones)),
        )
    ]
    contents = [*dict.fromkeys(entry.content for entry in entries)]
    sessions = {session for session, _ in copies.near} | {entry.source.session or "" for entry in entries} - {""}
    edits += await build_session_edits(files, contents, {entry.id for entry in entries}, sessions=sessions)
    edits += await build_profile_edits(files, entries, by_hand=not exact, message_ids=copies.near)
    return [*edits, *copies.edits]


async def _restore_own_words(files: FileStore, edits: list[Edit], removed_ids: Collection[str]) -> list[Edit]:
    """Return the edits, with further ones for curated lines that use the text of the entries `removed_ids` or link to
    them.
    """
    edits_by_path = {edit.path: edit for edit in edits}
    topics = [info.path for info in await files.list(TOPICS) if info.path.endswith(".md")]
    for path in [MEMORY_PATH, *topics]:
        edit = edits_by_path.get(path)
        if edit is None and await files.info(path):
            stored = await files.read(path)
            edit = Edit(path=path, expected_hash=stored.version, data=stored.data)
        linked = edit.data if edit and edit.data else b""
        rest = withdraw_announced(remove_links(linked, path, removed_ids), path, removed_ids)
        if edit and rest != linked:
            edit = edits_by_path[path] = replace(edit, data=rest)
        names = find_dependent_lines(edit.data, path, removed_ids) if edit and edit.data else frozenset[str]()
        if edit and edit.data and names:
            ledgers = [one for name in names for one in await find_entries(files, name) if ledger_date(one.path)]
            originals = {one.entry.id: one.entry.content for one in ledgers}
            edits_by_path[path] = replace(edit, data=restore_own_words(edit.data, path, removed_ids, originals))
    return list(edits_by_path.values())
