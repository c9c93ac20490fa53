"""Forget: take an entry out of memory at once, in one change set that can be undone.

The bullet is cut from its file, the file of a long entry goes too, and a content-free tombstone keeps extraction
from learning the same again.
"""

from dataclasses import dataclass

from ricordo.errors import EntryNotFound
from ricordo.files import FileStore
from ricordo.workspace.changes import Change, ChangeSets, Edit
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located, without_entries
from ricordo.workspace.layout import TOMBSTONES, WORKSPACE
from ricordo.workspace.ledger import read_memory
from ricordo.workspace.tombstones import content_digest, read_tombstones

__all__ = ["Forgotten", "find_entry", "forget"]

_SHORTEST_PREFIX = 6


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """What was forgotten, where it stood, and the change set that brings it back when undone."""

    entry: Entry
    path: str
    change: Change


async def find_entry(files: FileStore, entry_id: str) -> Located:
    """Return the entry with this id, or the only one whose id starts with these six or more characters.

    Raises: EntryNotFound if there is none, or more than one.
    """
    matching: dict[str, Located] = {}
    for found in await read_memory(files):
        if found.entry.id == entry_id:
            return found
        if len(entry_id) >= _SHORTEST_PREFIX and found.entry.id.startswith(entry_id):
            matching.setdefault(found.entry.id, found)
    if len(matching) > 1:
        raise EntryNotFound(f"{len(matching)} memories have ids that start with {entry_id}: write more of the id.")
    if not matching:
        raise EntryNotFound(f"No memory has the id {entry_id}: `ricordo memory list` shows the ids.")
    return next(iter(matching.values()))


async def forget(
    files: FileStore, changes: ChangeSets, entry_id: str, *, key: bytes, who: str, why: str = ""
) -> Forgotten:
    """Remove an entry from its file and leave a tombstone. Raises `EntryNotFound`."""
    found = await find_entry(files, entry_id)

    async def plan() -> list[Edit]:
        return await _removal(files, await find_entry(files, found.entry.id), key)

    change = await changes.rebase(plan, act="forget", who=who, why=why)
    return Forgotten(entry=found.entry, path=found.path, change=change)


async def _removal(files: FileStore, found: Located, key: bytes) -> list[Edit]:
    """Return the edits that cut an entry out where it stands now."""
    stored = await files.read(found.path)
    rest = without_entries(stored.data, found.path, {found.entry.id})
    stones = await read_tombstones(files)
    buried = stones.with_entries([(found.entry.id, content_digest(found.entry.content, key))])
    edits = [
        Edit(path=found.path, expected=stored.version, data=rest),
        Edit(path=TOMBSTONES, expected=stones.version, data=buried),
    ]
    long = f"{WORKSPACE}/{found.long}"
    if found.long and await files.info(long):
        edits.append(Edit(path=long, expected=(await files.read(long)).version, data=None))
    return edits
