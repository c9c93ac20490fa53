"""Change of scope: a memory moves to a wider scope, or back to a narrower one, under its id.

It is added to the new place, then removed from the old one; both are one act, which `undo` reverses. No tombstone is
left, since the memory is not forgotten. A crash in between leaves it in both places; promoting it again finishes.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Protocol

from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.forget import build_removal_edits
from ricordo.errors import FileMissing, InvalidEntry
from ricordo.guard import has_secret
from ricordo.storage import ABSENT, FileStore
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import LocatedEntry, render_entry
from ricordo.workspace.history.change_sets import CURATION_LOCK, Change, ChangeSets, Edit
from ricordo.workspace.history.tombstones import find_tombstone, read_tombstones
from ricordo.workspace.layout import is_profile, ledger_path
from ricordo.workspace.ledger import find_entries

__all__ = ["PlaceOfEntries", "move_entry"]


class PlaceOfEntries(Protocol):
    """A place that an entry leaves or enters."""

    @property
    def files(self) -> FileStore:
        """Its files."""
        ...

    @property
    def changes(self) -> ChangeSets:
        """Its changes."""
        ...

    @property
    def key(self) -> bytes:
        """Its secret for digests."""
        ...

    def to_stored_entry(self, entry: Entry) -> Entry:
        """Return the entry as it is written there."""
        ...


async def move_entry(
    located: Sequence[LocatedEntry], source: PlaceOfEntries, target: PlaceOfEntries, *,
    act: str, who: str, why: str, day: date, config: ConsolidationConfig,
) -> Entry:  # fmt: skip
    """Move an entry, whose lines in `source` are `located`, to the ledger of `day` in `target`, and return it.

    Where it came from, such as the session and its words, stays behind: who sees it there sees no session. Raises:
    InvalidEntry for a fact of a profile, for what waits in quarantine, for a secret, and for what was forgotten there.
    """
    if any(is_profile(one.path) for one in located):
        raise InvalidEntry("A fact of the profile is about its user and stays there: save it as a memory of its own.")
    entry = next((one for one in located if one.path.count("/") == 2), located[0]).entry
    if entry.state == "quarantined":
        raise InvalidEntry(f"{entry.id} waits in quarantine: accept it first, with `ricordo review`.")
    if has_secret("\n".join((entry.content, *entry.tags, *(value for _, value in entry.extra), why))):
        raise InvalidEntry(f"{entry.id} holds a secret: it stays where it is. Take the secret out first.")
    if tombstone := find_tombstone(entry, await read_tombstones(target.files), target.key):
        raise InvalidEntry(f"{entry.id} was forgotten there{tombstone.origin}: save its words as a new memory.")
    moved = target.to_stored_entry(replace(entry, scope=None, source=Source(), reason=why or entry.reason))
    first = ""
    if not await find_entries(target.files, entry.id):
        first = (await _add(moved, target, day, act=act, who=who, why=why)).id

    async def plan() -> list[Edit]:
        rows = [one for one in await find_entries(source.files, entry.id) if one.entry.id == entry.id]
        return await build_removal_edits(source.files, rows, config)

    async with source.files.lock(CURATION_LOCK):
        await source.changes.rebase(plan, act=act, who=who, why=why, part_of=first)
    return moved


async def _add(entry: Entry, target: PlaceOfEntries, day: date, *, act: str, who: str, why: str) -> Change:
    path = ledger_path(day)

    async def plan() -> list[Edit]:
        try:
            stored = await target.files.read(path)
            data, version = stored.data, stored.version
        except FileMissing:
            data, version = f"# {day.isoformat()}\n\n".encode(), ABSENT
        end = b"" if data.endswith(b"\n") else b"\n"
        return [Edit(path=path, expected_hash=version, data=data + end + render_entry(entry).encode())]

    return await target.changes.rebase(plan, act=act, who=who, why=why)
