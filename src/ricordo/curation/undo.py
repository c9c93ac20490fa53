"""Undo: reverse one write, even after later writes, unless they changed the same lines.

An undo is a change set itself, so it can be undone. Entries that were appended are removed from ledgers, curated
memory, session files and profiles; entries that a consolidation had merged into them are decided again without them.

Invariant: lines that a person wrote are not changed; if a person edited one of the lines, the whole undo is refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import takewhile

from anyio.to_thread import run_sync

from ricordo.curation.cascade import add_room_edits, add_topic_list_edits, build_profile_edits, build_session_edits
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.consolidator import CONSOLIDATE_ACT
from ricordo.curation.importance import MERGED_FIELD, REPLACED_FIELD, field_ids
from ricordo.curation.imported import find_imported, find_imported_entries
from ricordo.curation.memory_document import parse_memory_document
from ricordo.curation.placement import SECTIONS, fits_bounds, is_movable
from ricordo.curation.proposal import ConsolidationInput, find_faults, propose
from ricordo.curation.rewording import find_dependent_lines, is_reworded, restore_own_words
from ricordo.curation.topics import update_description
from ricordo.curation.types import CandidateEntry
from ricordo.errors import ChangeNotFound, FileMissing, StorageError, UndoRefused
from ricordo.guard import has_secret
from ricordo.lazy import dataclass
from ricordo.storage import ABSENT, FileStore, StoredFile
from ricordo.workspace.entry import SUCCESSOR_FIELD, Entry, EntryState, reopen
from ricordo.workspace.entry_codec import (
    LocatedEntry,
    collect_again,
    parse_entries,
    remove_entries,
    render_entry,
)
from ricordo.workspace.history.change_sets import (
    CURATION_LOCK,
    IMPORT_ACT,
    Change,
    ChangeSets,
    Edit,
    FileChange,
    iter_replaced_memory,
)
from ricordo.workspace.history.log import UNREADABLE_ACT, HistoryItem, find_undone_ids, is_by_person, iter_appends
from ricordo.workspace.history.tombstones import parse_tombstones, read_tombstones
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, TOMBSTONES, WORKSPACE, is_memory, is_profile, ledger_date
from ricordo.workspace.ledger import is_curated, matches_id
from ricordo.workspace.markdown import find_marked_ids, has_any_id
from ricordo.workspace.merge import merge_lines, merge_profile_documents

__all__ = ["resolve_history_item", "retract_append", "undo_change", "withdraw_announced", "without_curated"]


_UNBOUNDED = 1_000_000_000
_OWN_SECTIONS = (*SECTIONS.values(), "Notes")


@dataclass(frozen=True, kw_only=True)
class _Retraction:
    """The documents after the removal, by path, and the entries to decide about again."""

    documents: Mapping[str, bytes]
    reopened: Sequence[CandidateEntry] = ()
    changed: frozenset[str] = field(default_factory=frozenset)

    def select_documents(self, *, curated: bool) -> dict[str, bytes]:
        """Return the documents of curated memory, or the ledgers."""
        if curated:
            return {path: data for path, data in self.documents.items() if is_curated(path)}
        return {path: data for path, data in self.documents.items() if ledger_date(path) is not None}


async def retract_append(
    files: FileStore, block: Sequence[LocatedEntry], *, last_run: str, keeps_touched: bool = False
) -> list[Edit]:
    """Return the edits that remove the entries of one append from all of memory.

    With `keeps_touched` the entries stay that a person reworded or pinned in curated memory. Raises: UndoRefused if
    there is such an entry otherwise, or if the checks of a consolidation fail for the remaining documents; then the
    consolidation `last_run` must be undone first.
    """
    stored = await _read_documents(files)
    old = {path: one.data for path, one in stored.items()}
    removed = {located.entry.id: located for located in block}
    occurrences = await run_sync(_locate_entries, old, removed)
    touched = _find_touched(occurrences, removed)
    if keeps_touched:
        rows = [row for each in occurrences.values() for row in each]
        touched |= {row.entry.id: row.path for row in rows if row.entry.pinned}
    for name, path in touched.items():
        if not keeps_touched:
            raise UndoRefused(
                f"The memory {name} was edited in {path} or in its ledger: `ricordo forget {name}` takes it out of"
                " everything."
            )
        del removed[name]
        occurrences = {path: [row for row in rows if row.entry.id != name] for path, rows in occurrences.items()}
    retraction = await run_sync(_retract_entries, old, removed, occurrences)
    retraction = replace(retraction, reopened=await _restore_curated(files, retraction.reopened))
    after = await run_sync(_reconsolidate, retraction, last_run)
    empty_ledgers = {
        path for path, data in after.items() if path in occurrences and not is_curated(path) and _is_empty_ledger(data)
    }
    after |= dict.fromkeys(empty_ledgers)
    versions = {path: one.version for path, one in stored.items()}
    edits = [
        Edit(path=path, expected_hash=versions.get(path, ABSENT), data=data)
        for path, data in after.items()
        if data != old.get(path)
    ]
    long_paths = {
        f"{WORKSPACE}/{located.long_path}" for rows in occurrences.values() for located in rows if located.long_path
    }
    long_files = [(path, await files.read(path)) for path in sorted(long_paths) if await files.info(path)]
    return [*edits, *(Edit(path=path, expected_hash=long.version, data=None) for path, long in long_files)]


async def _read_documents(files: FileStore) -> dict[str, StoredFile]:
    """Return the memory documents by path, without ledgers that can't be read."""
    paths = [info.path for info in await files.list(LEDGERS) if is_memory(info.path)]
    documents = {}
    for path in [MEMORY_PATH, *(path for path in paths if not path.startswith(f"{LEDGERS}/long/"))]:
        try:
            documents[path] = await files.read(path)
        except FileMissing:
            continue
        except StorageError:
            if is_curated(path):
                raise
    return documents


def _locate_entries(
    documents: Mapping[str, bytes], removed: Mapping[str, LocatedEntry]
) -> dict[str, list[LocatedEntry]]:
    """Return the occurrences of the entries, by document."""
    marks = [f"^{name}".encode() for name in removed]
    rows = {
        path: [item for item in parse_entries(data, path, only=has_any_id(removed)) if item.entry.id in removed]
        for path, data in documents.items()
        if any(mark in data for mark in marks)
    }
    return {path: located for path, located in rows.items() if located}


def _find_touched(
    occurrences: Mapping[str, Sequence[LocatedEntry]], removed: Mapping[str, LocatedEntry]
) -> dict[str, str]:
    """Return the ids of entries that a person changed in curated memory, with the path of the document."""
    touched = dict[str, str]()
    written = {
        located.entry.id: located.entry
        for path, rows in occurrences.items()
        if not is_curated(path)
        for located in rows
    }
    for path, rows in occurrences.items():
        for located in rows:
            name = located.entry.id
            ledger_entry = written.get(name, removed[name].entry)
            # a line that a consolidation reworded is no edit of a person
            curated_entry = (
                replace(located.entry, content=ledger_entry.content) if is_reworded(located.entry) else located.entry
            )
            if is_curated(path) and _person_fields(curated_entry) != _person_fields(ledger_entry):
                touched[name] = path
    return touched


def _person_fields(entry: Entry) -> tuple[str, bool, str | None]:
    return entry.content, entry.pinned, entry.rule


def _retract_entries(
    old: Mapping[str, bytes], removed: Mapping[str, LocatedEntry], occurrences: Mapping[str, Sequence[LocatedEntry]]
) -> _Retraction:
    """Return the documents without the entries; entries that they had superseded are active again."""
    cut = {
        path: without_curated(data, path, removed) if is_curated(path) else remove_entries(data, path, removed)
        for path, data in old.items()
        if path in occurrences
    }
    documents = _restore_own_words({**old, **cut}, removed)
    curated_entries = [
        located.entry for path, data in documents.items() if is_curated(path) for located in parse_entries(data, path)
    ]
    still_cited_ids = {name for entry in curated_entries for name in _cited_ids(entry)}
    restored: dict[str, CandidateEntry] = {}
    for path, data in documents.items():
        if ledger_date(path) is not None or is_curated(path):
            documents[path], reopened = _reopen_superseded(data, path, removed, still_cited_ids)
            restored |= reopened if ledger_date(path) is not None else {}
    cited_ids = {
        name
        for path, rows in occurrences.items()
        if is_curated(path)
        for located in rows
        for name in _cited_ids(located.entry)
    }
    restored_ids = cited_ids - removed.keys() - still_cited_ids - restored.keys()
    restored |= {one.entry.id: one for one in _iter_active(documents, restored_ids)}
    curated_ids = {entry.id for entry in curated_entries}
    to_place = [one for name, one in restored.items() if name not in curated_ids and not has_secret(one.entry.content)]
    return _Retraction(documents=documents, reopened=to_place, changed=frozenset(cut))


def _restore_own_words(documents: dict[str, bytes], removed_ids: Collection[str]) -> dict[str, bytes]:
    """Return the documents in which reworded lines that depend on the entries have their original text again."""
    dependent_ids = {
        path: find_dependent_lines(data, path, removed_ids) for path, data in documents.items() if is_curated(path)
    }
    names = frozenset[str]().union(*dependent_ids.values())
    if not names:
        return documents
    ledgers = {path: data for path, data in documents.items() if ledger_date(path) is not None}
    originals = {
        located.entry.id: located.entry.content
        for path, data in ledgers.items()
        if any(f"^{name}".encode() in data for name in names)
        for located in parse_entries(data, path, only=has_any_id(names))
        if located.entry.id in names
    }
    restored = {
        path: restore_own_words(documents[path], path, removed_ids, originals)
        for path, ids in dependent_ids.items()
        if ids
    }
    return {**documents, **restored}


def without_curated(data: bytes, path: str, removed_ids: Collection[str]) -> bytes:
    """Return a curated document without the entries, and without generated sections that held no other entries."""
    document = parse_memory_document(data, path)
    emptied = {part.section for part in document.parts if part.entry and part.entry.id in removed_ids}
    document = document.without(removed_ids)
    for title in emptied.intersection(_OWN_SECTIONS) if path == MEMORY_PATH else ():
        document = document.without_section(title)
    return document.data if path == MEMORY_PATH else update_description(path, data, document.data)


def _cited_ids(entry: Entry) -> set[str]:
    """Return the ids of the other entries that a curated entry replaces."""
    superseded_ids = {entry.supersedes} if entry.supersedes else set()
    return {*field_ids(entry, MERGED_FIELD), *field_ids(entry, REPLACED_FIELD), *superseded_ids}


def withdraw_announced(data: bytes, path: str, removed_ids: Collection[str]) -> bytes:
    """Return a document in which no active entry has one of the removed ones as its announced successor."""
    states: tuple[EntryState, ...] = ("active",)
    return _reopen_superseded(data, path, removed_ids, (), states)[0]


def _reopen_superseded(
    data: bytes,
    path: str,
    removed_ids: Collection[str],
    still_cited_ids: Collection[str],
    states: Collection[EntryState] = ("active", "superseded"),
) -> tuple[bytes, dict[str, CandidateEntry]]:
    """Return the document in which the removed entries supersede none, now or later, and those by id."""
    if not any(f"[{SUCCESSOR_FIELD}:: {name}]".encode() in data for name in removed_ids):
        return data, {}
    reopened: dict[str, CandidateEntry] = {}
    for located in reversed(parse_entries(data, path)):
        entry = located.entry
        successors = field_ids(entry, SUCCESSOR_FIELD)
        is_cited = entry.id in still_cited_ids or entry.state not in states
        if is_cited or not any(name in removed_ids for name in successors):
            continue
        active = reopen(entry)
        bullet = render_entry(active, long=located.long_path).encode("utf-8", "surrogatepass")
        data = data[: located.offset] + bullet + data[located.offset + located.length :]
        reopened[entry.id] = CandidateEntry(entry=active, long=located.long_path)
    return collect_again(data), reopened


def _iter_active(documents: Mapping[str, bytes], names: Collection[str]) -> Iterable[CandidateEntry]:
    """Yield the active entries with these ids in the ledgers."""
    for path, data in documents.items():
        if ledger_date(path) is not None and any(f"^{name}".encode() in data for name in names):
            for located in parse_entries(data, path, only=has_any_id(names)):
                if located.entry.id in names and located.entry.state == "active":
                    yield CandidateEntry(entry=located.entry, long=located.long_path)


async def _restore_curated(files: FileStore, reopened: Sequence[CandidateEntry]) -> list[CandidateEntry]:
    """Return the last version of each entry in curated memory, with what was merged into it; else the entry itself."""
    versions = dict[str, CandidateEntry]()
    missing = {one.entry.id: one for one in reopened}
    if not missing:
        return []
    async for path, data in iter_replaced_memory(files):
        names = missing.keys() & find_marked_ids(data) if is_curated(path) else frozenset[str]()
        for located in await run_sync(partial(parse_entries, data, path, only=has_any_id(names))) if names else ():
            one = missing.get(located.entry.id)
            if one is not None and located.entry.state == "active":
                source = replace(located.entry.source, quote=one.entry.source.quote)
                entry = replace(located.entry, source=source)
                versions[entry.id] = CandidateEntry(entry=entry, long=located.long_path)
                del missing[entry.id]
        if not missing:
            break
    return [versions.get(one.entry.id, one) for one in reopened]


def _reconsolidate(retraction: _Retraction, last_run: str) -> dict[str, bytes | None]:
    """Return all documents with the reopened entries placed. Raises `UndoRefused`."""
    after: dict[str, bytes | None] = dict(retraction.documents)
    if not retraction.reopened and not any(map(is_curated, retraction.changed)):
        return after
    material = ConsolidationInput(
        documents=retraction.select_documents(curated=True),
        ledgers=retraction.select_documents(curated=False),
        fresh=retraction.reopened,
    )
    memory = material.documents.get(MEMORY_PATH, b"")
    # lines of a root with wider bounds must not move because of an undo
    config = ConsolidationConfig()
    movable_entries = [
        part.entry for part in parse_memory_document(memory, MEMORY_PATH).parts if part.entry and is_movable(part)
    ]
    longest = max((len(entry.content) for entry in movable_entries), default=0)
    config = replace(config, index_characters=max(config.index_characters, longest))
    if not fits_bounds(memory, config):
        config = replace(config, max_lines=_UNBOUNDED, max_bytes=_UNBOUNDED, max_memory_tokens=_UNBOUNDED)
    proposal = propose(material, config)
    faults = find_faults(material, proposal, config)
    if faults:
        raise UndoRefused(f"Curated memory rests on it, and {faults[0]}: undo the consolidation {last_run} first.")
    return after | dict(proposal.documents)


def _is_empty_ledger(document: bytes | None) -> bool:
    """Tell whether a ledger holds nothing but its heading."""
    content = (document or b"").strip()
    return content.startswith(b"# ") and b"\n" not in content


_UNDO_LOCK = "undo"


async def undo_change(
    files: FileStore,
    changes: ChangeSets,
    item: HistoryItem,
    *,
    who: str,
    config: ConsolidationConfig | None = None,
    part_of: str = "",
) -> Change:
    """Reverse the write `item` and return the change set of the undo, which belongs to the undo `part_of`.

    Lines that then exceed the bounds of `config` move from MEMORY.md to topics; lines that a person wrote are restored
    unchanged. Raises: UndoRefused if it was undone already, or later changes changed the same lines; StorageBusy if a
    consolidation does not end in time; IndexTooLarge if MEMORY.md grew meanwhile and no line can move.
    """
    bounds = config or ConsolidationConfig()

    async def plan() -> list[Edit]:
        records = await changes.list_changes()
        undone = find_undone_ids(records)
        if item.id in undone:
            raise UndoRefused(f"The change {item.id} is undone already.")
        if item.entries or item.action == IMPORT_ACT:
            runs = (change.id for change in records if change.action == CONSOLIDATE_ACT and change.id not in undone)
            edits = await _plan_retraction(files, item, last_run=next(runs, ""))
            return await add_room_edits(files, await add_topic_list_edits(files, edits, bounds), bounds)
        try:
            reversals = [
                await _reverse_file(files, changes, changed) for changed in (await changes.get_change(item.id)).files
            ]
        except FileMissing as error:
            raise UndoRefused(
                f"The change {item.id} can't be undone: what it replaced was erased, or is kept no longer."
            ) from error
        # without later writes, every byte is the same as before the change
        exact = all(edit.data == before for edit, before in reversals)
        edits = await _drop_forgotten(files, [edit for edit, _ in reversals])
        edits = edits if exact else await add_topic_list_edits(files, edits, bounds)
        return await add_room_edits(files, edits, bounds, best_effort=exact)

    # one undo at a time, because the records say what is undone; and none during a forget or a consolidation, which
    # would write what they read before the undo
    async with files.lock(_UNDO_LOCK), files.lock(CURATION_LOCK):
        return await changes.rebase(plan, act="undo", who=who, undoes=item.id, part_of=part_of)


async def _plan_retraction(files: FileStore, item: HistoryItem, *, last_run: str) -> list[Edit]:
    """Return the edits that remove what `item` appended: entries, and the messages of an import. Raises `UndoRefused`.

    Entries of an import that a person changed since stay.
    """
    is_import = item.action == IMPORT_ACT
    if is_import:
        imported = await find_imported(files, item.id)
        learned = [entry.id for entry in await find_imported_entries(files, imported.ids)]
        item = replace(item, entries=tuple(dict.fromkeys((*item.entries, *learned))), paths=())
    remaining = await _find_remaining_entries(files, item) if item.entries else []
    # what an import brought may all lie in another place
    if not remaining and not (is_import and (imported.edits or not item.entries)):
        raise UndoRefused(f"Nothing of the write {item.id} stands in a ledger any more.")
    edits = [*imported.edits] if is_import else []
    if remaining:
        entries = [located.entry for located in remaining]
        edits += await retract_append(files, remaining, last_run=last_run, keeps_touched=is_import)
        edits += await build_session_edits(files, [entry.content for entry in entries], item.entries)
        edits += await build_profile_edits(files, entries, by_hand=False)
    return edits


def resolve_history_item(items: Sequence[HistoryItem], change_id: str | None) -> HistoryItem:
    """Return the item with this id, or with an entry of this id; for None the newest act of a person not undone yet.

    Six or more characters at the beginning or the end of an id are enough if they are unique. An undo, and acts of an
    agent or a background job, must be named. Raises: ChangeNotFound if no item matches, or more than one.
    """
    if change_id is None:
        open_items = (
            item for item in items if item.action == UNREADABLE_ACT or (is_by_person(item) and not item.is_undone)
        )
        newest = next(open_items, None)
        if newest is None:
            raise ChangeNotFound("There is nothing to undo.")
        if newest.action == UNREADABLE_ACT:
            raise ChangeNotFound(
                f"The record of the change {newest.id} can't be read, so your last act is not known: name the change to"
                " undo by its id, which `ricordo history` shows."
            )
        return newest
    matches = [item for item in items if change_id in {item.id, *item.entries}]
    if not matches:
        matches = [item for item in items if any(matches_id(change_id, one) for one in (item.id, *item.entries))]
        if len(matches) > 1:
            raise ChangeNotFound(
                f"{len(matches)} changes have ids that begin or end with {change_id}: write more of it."
            )
    if not matches:
        raise ChangeNotFound(f"There is no change {change_id}: `ricordo history` shows the ids.")
    return matches[0]


async def _find_remaining_entries(files: FileStore, item: HistoryItem) -> list[LocatedEntry]:
    """Return the entries of an append that are still in ledgers."""
    entry_ids = frozenset(item.entries)
    paths = item.paths or [info.path for info in await files.list(LEDGERS) if ledger_date(info.path)]
    return [
        located
        for path in paths
        async for block in iter_appends(files, path, only=has_any_id(entry_ids))
        for located in block
        if located.entry.id in entry_ids
    ]


async def _drop_forgotten(files: FileStore, edits: list[Edit]) -> list[Edit]:
    """Return the edits without forgotten entries: only undoing the forget itself restores those."""
    tombstones = next((edit for edit in edits if edit.path == TOMBSTONES), None)
    forgotten_ids = parse_tombstones(tombstones.data or b"").ids if tombstones else (await read_tombstones(files)).ids
    remaining_edits = []
    for edit in edits:
        names = forgotten_ids & find_marked_ids(edit.data) if edit.data and is_memory(edit.path) else frozenset[str]()
        remaining_edits.append(
            replace(edit, data=remove_entries(edit.data, edit.path, names)) if names and edit.data else edit
        )
    return remaining_edits


async def _reverse_file(files: FileStore, changes: ChangeSets, changed: FileChange) -> tuple[Edit, bytes | None]:
    """Return the edit that reverses a change of one file, and the content of the file before that change."""
    try:
        stored = await files.read(changed.path)
        ours, version = stored.data, stored.version
    except FileMissing:
        ours, version = b"", ABSENT
    before = await changes.read_content(changed.before)
    if version == changed.after:
        return Edit(path=changed.path, expected_hash=version, data=before), before
    theirs = before or b""
    base = await changes.read_content(changed.after)
    if base is None:
        base = _common_first_lines(ours, theirs)
    result = (
        merge_profile_documents(base, ours, theirs) if is_profile(changed.path) else merge_lines(base, ours, theirs)
    )
    if result is None:
        raise UndoRefused(
            f"{changed.path} was changed again in the same lines: edit it by hand, or undo that first, by its id, which"
            " `ricordo history` shows."
        )
    return Edit(path=changed.path, expected_hash=version, data=result), before


def _common_first_lines(ours: bytes, theirs: bytes) -> bytes:
    """Return the whole lines that both files begin with: the common part of two creations of a file."""
    pairs = zip(ours.splitlines(keepends=True), theirs.splitlines(keepends=True), strict=False)
    return b"".join(line for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
