"""Layered: the whole of Ricordo behind the three operations.

A read merges the visible places, narrowest first: the project's root, then the user's own. A write goes to the
narrowest one unless the entry names a wider scope; the user's root is created by the first entry that does. Saved
means: in the ledger, synced, and known to the index.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from ricordo.audit import HistoryItem, chosen_item, find_entry, forget, history, undo
from ricordo.errors import EntryNotFound, FileMissing, ScopeMismatch, StorageError
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit, Source
from ricordo.recall.recall import recall
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.place import Place
from ricordo.stores.preamble import preamble_text
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import MEMORY, WORKSPACE, is_ledger
from ricordo.workspace.ledger import append_entries, read_memory

__all__ = ["Layered", "LayeredDriver", "OpenWider"]


class OpenWider(Protocol):
    """Opens the user's own place."""

    async def __call__(self, *, create: bool) -> Place | None:
        """Return the place, or None when there is none; with `create` it is made, if the scope names a user."""
        ...


class Layered(Backend):
    """The store that `Memory.open` and the command line use."""

    def __init__(self, parts: StoreParts, place: Place, wider: OpenWider) -> None:
        """Keep memories in `place`, and those for all of a user's projects in what `wider` opens."""
        super().__init__(parts)
        self._place = place
        self._wider = wider

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver over the places that `scope` sees."""
        del scope
        return LayeredDriver(self._place, self._wider)


class LayeredDriver:
    """Reads and writes the visible places of one scope."""

    def __init__(self, place: Place, wider: OpenWider) -> None:
        """Use `place` first and what `wider` opens after it."""
        self._place = place
        self._open_wider = wider

    async def places(self) -> list[Place]:
        """Return the visible places that exist, narrowest first."""
        wider = await self._open_wider(create=False)
        return [self._place, wider] if wider else [self._place]

    async def write(self, entry: Entry) -> Entry:
        """Append `entry` to today's ledger of its place, durably, and index it."""
        place = await self._place_for(entry)
        block = await append_entries(place.files, place.clock.today(), [place.inward(entry)], place.redactor)
        await place.index.index_appended(block.path, block.offset, block.data)
        return replace(block.entries[0], scope=entry.scope)

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return ranked hits of all visible places."""
        places = await self.places()
        hits = await recall([Source(label=place.label, index=place.index) for place in places], query, limit=limit)
        by_label = {place.label: place for place in places}
        return [replace(hit, entry=by_label[hit.source].outward(hit.entry)) for hit in hits]

    async def preface(self, budget: Tokens | None) -> str:
        """Return curated memory, then what was explicitly saved and is not curated yet, newest first."""
        curated = b""
        saved: list[tuple[str, Entry]] = []
        for place in await self.places():
            with suppress(FileMissing, StorageError):
                curated += (await place.files.read(MEMORY)).data.rstrip(b"\n") + b"\n"
            for found in await read_memory(place.files):
                if is_ledger(found.path) and found.entry.by in {"user", "agent", "hand"}:
                    source = found.path.removeprefix(f"{WORKSPACE}/")
                    saved.append((source, found.entry))
        saved.sort(key=lambda row: _newest(row[1]), reverse=True)
        return preamble_text(curated, saved, budget)

    async def entries(self) -> list[Entry]:
        """Return all entries of all visible places, newest first."""
        found = [
            place.outward(located.entry) for place in await self.places() for located in await read_memory(place.files)
        ]
        return sorted(found, key=_newest, reverse=True)

    async def get(self, entry_id: str) -> Entry:
        """Return one entry. Raises `EntryNotFound`."""
        for place in await self.places():
            with suppress(EntryNotFound):
                return place.outward((await find_entry(place.files, entry_id)).entry)
        raise EntryNotFound(f"No memory has the id {entry_id}: `ricordo memory list` shows the ids.")

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        """Remove an entry from its file and the index. Raises `EntryNotFound`."""
        for place in await self.places():
            with suppress(EntryNotFound):
                reason = place.redactor.clean(why)
                gone = await forget(place.files, place.changes, entry_id, key=place.key, who=who, why=reason)
                await place.index.refresh()
                return place.outward(gone.entry)
        raise EntryNotFound(f"No memory has the id {entry_id}: `ricordo memory list` shows the ids.")

    async def history(self) -> list[HistoryItem]:
        """Return every write to the visible places, newest first."""
        found = [item for place in await self.places() for item in await history(place.files, place.changes)]
        return sorted(found, key=lambda item: (item.at, item.id), reverse=True)

    async def undo(self, change_id: str | None, *, who: str) -> HistoryItem:
        """Take back one write, the newest of all places when none is named. Raises `ChangeNotFound`, `UndoRefused`."""
        item = chosen_item(await self.history(), change_id)
        for place in await self.places():
            if item.id in {known.id for known in await history(place.files, place.changes)}:
                await undo(place.files, place.changes, item, who=who)
                await place.index.refresh()
        return item

    async def close(self) -> None:
        """Let the indexes go."""
        for place in await self.places():
            await place.index.close()

    async def _place_for(self, entry: Entry) -> Place:
        own, wanted = self._place.scope.parts(), entry.scope.parts() if entry.scope else {}
        if all(wanted.get(name) == value for name, value in own.items()):
            return self._place
        wider = await self._open_wider(create=True)
        if wider is None:
            raise ScopeMismatch(f"There is no place to keep a memory for {entry.scope}.")
        return wider


def _newest(entry: Entry) -> tuple[float, str]:
    return (entry.time.timestamp() if entry.time else 0.0, entry.id)
