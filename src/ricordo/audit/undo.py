"""Undo: reverse one write, also when others followed it, unless they changed the same lines.

An undo is a change set itself, so it can be undone. Entries that were appended to a ledger are removed from it, from
curated memory, see `retract_append`, and from session files and profiles. A ledger that would keep nothing but its heading
is deleted.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from ricordo.audit.find import matches_id
from ricordo.audit.history import UNREADABLE_ACT, HistoryItem, iter_appends, is_by_person, find_undone_ids
from ricordo.audit.listing import add_topic_list_edits
from ricordo.audit.profile_edits import build_profile_edits
from ricordo.audit.retraction import retract_append
from ricordo.audit.room import add_room_edits
from ricordo.audit.session_edits import build_session_edits
from ricordo.consolidation.config import ConsolidationConfig
from ricordo.consolidation.consolidate import CONSOLIDATE_ACT
from ricordo.errors import ChangeNotFound, FileMissing, UndoRefused
from ricordo.files import ABSENT, FileStore
from ricordo.workspace.changes import CURATION_LOCK, Change, ChangeSets, Edit, FileChange
from ricordo.workspace.entry_codec import LocatedEntry, remove_entries
from ricordo.workspace.layout import LEDGERS, TOMBSTONES, is_memory, is_profile, ledger_date
from ricordo.workspace.merge import merge_lines
from ricordo.workspace.profile_merge import merge_profile_documents
from ricordo.workspace.tombstones import parse_tombstones, read_tombstones

__all__ = ["resolve_history_item", "undo_change"]

_UNDO_LOCK = "undo"


async def undo_change(
    files: FileStore,
    changes: ChangeSets,
    item: HistoryItem,
    *,
    who: str,
    config: ConsolidationConfig | None = None,
) -> Change:
    """Reverse the write `item` and return the change set of the undo.

    Lines that then exceed the bounds of `config` move from MEMORY.md to topics; lines of a person are restored as they
    were. Raises: UndoRefused if it was undone already, or later changes changed the same lines; StorageBusy if a
    consolidation does not end in time; IndexTooLarge if MEMORY.md grew meanwhile and no line can move.
    """
    bounds = config or ConsolidationConfig()

    async def plan() -> list[Edit]:
        records = await changes.list_changes()
        undone = find_undone_ids(records)
        if item.id in undone:
            raise UndoRefused(f"The change {item.id} is undone already.")
        if item.entries:
            standing = await _find_remaining_entries(files, item)
            if not standing:
                raise UndoRefused(f"Nothing of the write {item.id} stands in a ledger any more.")
            runs = (change.id for change in records if change.act == CONSOLIDATE_ACT and change.id not in undone)
            edits = await retract_append(files, standing, last_run=next(runs, ""))
            taken = [found.entry for found in standing]
            edits += await build_session_edits(files, [entry.content for entry in taken], item.entries)
            edits += await build_profile_edits(files, taken, by_hand=False)
            return await add_room_edits(files, await add_topic_list_edits(files, edits, bounds), bounds)
        try:
            reversals = [
                await _reverse_file(files, changes, changed) for changed in (await changes.get_change(item.id)).files
            ]
        except FileMissing as error:
            raise UndoRefused(
                f"The change {item.id} can't be undone: what it replaced was erased, or is kept no longer."
            ) from error
        # where nothing was written since, every byte is as it was before
        exact = all(edit.data == before for edit, before in reversals)
        edits = await _drop_forgotten(files, [edit for edit, _ in reversals])
        edits = edits if exact else await add_topic_list_edits(files, edits, bounds)
        return await add_room_edits(files, edits, bounds, must=exact)

    # one undo at a time, as the records say what is undone; and none during a forget or a consolidation, which would
    # write what they have read before
    async with files.lock(_UNDO_LOCK), files.lock(CURATION_LOCK):
        return await changes.rebase(plan, act="undo", who=who, undoes=item.id)


def resolve_history_item(items: Sequence[HistoryItem], change_id: str | None) -> HistoryItem:
    """Return the newest open act of a person for None, else the one with this id, or the id of an entry it added.

    Six or more characters at the beginning or the end of an id are enough if they are unique. An undo, and what an
    agent or background work did, has to be named. Raises: ChangeNotFound if there is none, or more than one.
    """
    if change_id is None:
        open_items = (item for item in items if item.act == UNREADABLE_ACT or (is_by_person(item) and not item.undone))
        newest = next(open_items, None)
        if newest is None:
            raise ChangeNotFound("There is nothing to undo.")
        if newest.act == UNREADABLE_ACT:
            raise ChangeNotFound(
                f"The record of the change {newest.id} can't be read, so your last act is not known: name the change to"
                " undo by its id, which `ricordo history` shows."
            )
        return newest
    named = [item for item in items if change_id in {item.id, *item.entries}]
    if not named:
        named = [item for item in items if any(matches_id(change_id, one) for one in (item.id, *item.entries))]
        if len(named) > 1:
            raise ChangeNotFound(f"{len(named)} changes have ids that begin or end with {change_id}: write more of it.")
    if not named:
        raise ChangeNotFound(f"There is no change {change_id}: `ricordo history` shows the ids.")
    return named[0]


async def _find_remaining_entries(files: FileStore, item: HistoryItem) -> list[LocatedEntry]:
    """Return the entries of an append that are still in ledgers."""
    wanted = frozenset(item.entries)
    paths = item.paths or [info.path for info in await files.list(LEDGERS) if ledger_date(info.path)]
    return [
        found
        for path in paths
        async for block in iter_appends(files, path)
        for found in block
        if found.entry.id in wanted
    ]


async def _drop_forgotten(files: FileStore, edits: list[Edit]) -> list[Edit]:
    """Return the edits without entries that are forgotten: only undoing the forget itself restores those."""
    stones = next((edit for edit in edits if edit.path == TOMBSTONES), None)
    gone = parse_tombstones(stones.data or b"").ids if stones else (await read_tombstones(files)).ids
    kept = []
    for edit in edits:
        names = {name for name in gone if edit.data and is_memory(edit.path) and f"^{name}".encode() in edit.data}
        kept.append(replace(edit, data=remove_entries(edit.data, edit.path, names)) if names and edit.data else edit)
    return kept


async def _reverse_file(files: FileStore, changes: ChangeSets, changed: FileChange) -> tuple[Edit, bytes | None]:
    """Return the edit that reverses a change of one file, and the content of the file before that change."""
    try:
        stored = await files.read(changed.path)
        ours, version = stored.data, stored.version
    except FileMissing:
        ours, version = b"", ABSENT
    before = await changes.read_content(changed.before)
    if version == changed.after:
        return Edit(path=changed.path, expected=version, data=before), before
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
    return Edit(path=changed.path, expected=version, data=result), before


def _common_first_lines(ours: bytes, theirs: bytes) -> bytes:
    """Return the whole lines that both files begin with: what two creations of a file agree on."""
    pairs = zip(ours.splitlines(keepends=True), theirs.splitlines(keepends=True), strict=False)
    return b"".join(line for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
