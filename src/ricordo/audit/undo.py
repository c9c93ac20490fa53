"""Undo: take back one write, also when others came after it, unless they touched the same lines.

An undo is a change set itself, so it can be undone. A block that was appended to a ledger is cut out of it; a file that
would be left with nothing but its heading was created by that block and goes with it.
"""

from collections.abc import Sequence
from itertools import takewhile

from ricordo.audit.history import HistoryItem, blocks
from ricordo.errors import ChangeNotFound, FileMissing, UndoRefused
from ricordo.files import ABSENT, FileStore
from ricordo.workspace.changes import Change, ChangeSets, Edit, FileChange
from ricordo.workspace.entry_codec import Located, without_entries
from ricordo.workspace.layout import WORKSPACE
from ricordo.workspace.merge import merged

__all__ = ["chosen_item", "undo"]


async def undo(files: FileStore, changes: ChangeSets, item: HistoryItem, *, who: str) -> Change:
    """Take back the write `item` and return the change set that did it.

    Raises: UndoRefused if it is undone already, or later changes touched the same lines.
    """
    if item.undone:
        raise UndoRefused(f"The change {item.id} is undone already.")

    async def plan() -> list[Edit]:
        block = [found async for found in blocks(files) if found[0].entry.id == item.id]
        if block:
            return await _without(files, block[0])
        return [await _reverse(files, changes, changed) for changed in (await changes.record(item.id)).files]

    return await changes.rebase(plan, act="undo", who=who, undoes=item.id)


def chosen_item(items: Sequence[HistoryItem], change_id: str | None) -> HistoryItem:
    """Return the write with this id (or its beginning, or the id of an entry it added), the newest open one for None.

    An undo is not taken back unless it is named. Raises: ChangeNotFound if there is none.
    """
    if change_id is None:
        open_items = (item for item in items if item.act != "undo" and not item.undone)
    else:
        open_items = (item for item in items if item.id.startswith(change_id) or change_id in item.entries)
    chosen = next(open_items, None)
    if chosen is None:
        raise ChangeNotFound("There is nothing to undo." if change_id is None else f"There is no change {change_id}.")
    return chosen


async def _without(files: FileStore, block: tuple[Located, ...]) -> list[Edit]:
    path = block[0].path
    stored = await files.read(path)
    rest = without_entries(stored.data, path, {found.entry.id for found in block})
    left = rest.strip()
    only_heading = left.startswith(b"# ") and b"\n" not in left
    edits = [Edit(path=path, expected=stored.version, data=None if only_heading else rest)]
    for found in block:
        if found.long and await files.info(f"{WORKSPACE}/{found.long}"):
            long = await files.read(f"{WORKSPACE}/{found.long}")
            edits.append(Edit(path=f"{WORKSPACE}/{found.long}", expected=long.version, data=None))
    return edits


async def _reverse(files: FileStore, changes: ChangeSets, changed: FileChange) -> Edit:
    """Return the edit that gives a file what the change took and takes what it gave."""
    try:
        stored = await files.read(changed.path)
        ours, version = stored.data, stored.version
    except FileMissing:
        ours, version = b"", ABSENT
    before = await changes.content(changed.before)
    if version == changed.after:
        return Edit(path=changed.path, expected=version, data=before)
    theirs = before or b""
    base = await changes.content(changed.after)
    if base is None:
        base = _common_heading(ours, theirs)
    result = merged(base, ours, theirs)
    if result is None:
        raise UndoRefused(f"{changed.path} was changed again in the same lines: edit it by hand, or undo that first.")
    return Edit(path=changed.path, expected=version, data=result)


def _common_heading(ours: bytes, theirs: bytes) -> bytes:
    """Return the whole lines that both files begin with: what two creations of a file agree on."""
    pairs = zip(ours.splitlines(keepends=True), theirs.splitlines(keepends=True), strict=False)
    return b"".join(line for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
