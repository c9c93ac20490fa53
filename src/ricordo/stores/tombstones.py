"""Tombstones of a store: a record without content of each entry that was forgotten, beside the store's own files.

The file is `memory/.tombstones.jsonl` in the folder of the owner, the same as in a Ricordo root. Invariant: a tombstone
is durable before its entry goes, so what was cut off in between is forgotten again and never taken in again.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ricordo.audit import resolve_id
from ricordo.errors import EntryNotFound
from ricordo.stores.contract import StoreParts
from ricordo.stores.place import MemoryRoot
from ricordo.stores.plain import StoreFolder, PlainDriver
from ricordo.workspace.entry import Entry
from ricordo.workspace.forgotten import ForgottenStatements
from ricordo.workspace.layout import TOMBSTONES, WORKSPACE
from ricordo.workspace.tombstones import (
    Tombstone,
    Tombstones,
    parse_tombstones,
    read_tombstones,
    create_tombstone,
    find_tombstone,
)  # fmt: skip

__all__ = [
    "FileTombstones",
    "ForgettingDriver",
    "TombstoneLookup",
    "RootTombstones",
    "ProcessTombstones",
    "StoreTombstones",
]


class StoreTombstones(ABC):
    """The tombstones of one owner, with digests under the key of `parts`."""

    def __init__(self, parts: StoreParts) -> None:
        """Read nothing yet."""
        self._parts = parts

    @abstractmethod
    async def read(self) -> Tombstones:
        """Return all of them, oldest first. Raises `StorageError`."""

    @abstractmethod
    async def write(self, stone: Tombstone) -> None:
        """Keep one more, durably. Raises `StorageError`."""

    async def find(self, entry: Entry) -> Tombstone | None:
        """Return the tombstone by which an entry is known as forgotten; None for one that is not."""
        return find_tombstone(entry, await self.read(), self._parts.key)

    async def text_matcher(self) -> ForgottenStatements:
        """Return what recognises the words of these tombstones in a text."""
        return ForgottenStatements.from_tombstones(await self.read(), self._parts.key)

    async def add(self, entry: Entry, *, who: str) -> None:
        """Keep the tombstone of an entry that `who` forgets now, durably. Raises `StorageError`."""
        await self.write(create_tombstone(entry, self._parts.key, at=self._parts.clock.now(), by=who))


class FileTombstones(StoreTombstones):
    """Tombstones in the folder of their owner."""

    def __init__(self, home: StoreFolder, folder: str, parts: StoreParts) -> None:
        """Read nothing yet. `folder` is that of the owner in `home`, empty or with a slash at its end."""
        super().__init__(parts)
        self._files = home.record_files or home.files
        self._path = folder + TOMBSTONES.removeprefix(f"{WORKSPACE}/")

    async def read(self) -> Tombstones:
        """Return all of them, oldest first. Raises `StorageError`."""
        return await read_tombstones(self._files, self._path)

    async def write(self, stone: Tombstone) -> None:
        """Keep one more, durably. Raises `StorageError`."""
        await self._files.append(self._path, stone.to_line())


class ProcessTombstones(StoreTombstones):
    """Tombstones of a store that keeps nothing beyond its process."""

    def __init__(self, parts: StoreParts) -> None:
        """Hold none yet."""
        super().__init__(parts)
        self._tombstones = Tombstones()

    async def read(self) -> Tombstones:
        """Return all of them, oldest first."""
        return self._tombstones

    async def write(self, stone: Tombstone) -> None:
        """Keep one more."""
        self._tombstones = parse_tombstones(self._tombstones.render_with([stone]))


class TombstoneLookup(ABC):
    """What every driver that keeps tombstones does with them."""

    @abstractmethod
    async def tombstones(self) -> tuple[Tombstone, ...]:
        """Return the record of each entry that was forgotten, oldest first. Raises `StorageError`."""

    async def resolve_id(self, wanted: str, ids: Sequence[str]) -> str:
        """Return the one of `ids` that is, or begins or ends with, `wanted`.

        Raises: EntryNotFound, which says when the entry was forgotten if it was.
        """
        try:
            return resolve_id(ids, wanted)
        except EntryNotFound:
            for row in await self.tombstones():
                if row.id == wanted:
                    raise EntryNotFound(f"The memory {row.id} was forgotten{row.origin}.") from None
            raise


class ForgettingDriver(TombstoneLookup, PlainDriver):
    """A plain driver that can take an entry out again, which leaves a tombstone."""

    def __init__(self, tombstones: StoreTombstones) -> None:
        """Keep a record of what is forgotten in `tombstones`."""
        self._tombstones = tombstones

    @abstractmethod
    async def remove(self, entry: Entry) -> None:
        """Take an entry out of everything that holds it. Raises: EntryNotFound where it is gone already."""

    async def get(self, entry_id: str) -> Entry:
        """Return one entry, also by the beginning or the end of its id. Raises `EntryNotFound`."""
        entries = await self.entries()
        chosen = await self.resolve_id(entry_id, [entry.id for entry in entries])
        return next(entry for entry in entries if entry.id == chosen)

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        """Remove an entry everywhere, leave a tombstone, and return the entry. Raises `EntryNotFound`."""
        del why
        gone = await self.get_removable(entry_id)
        await self._tombstones.add(gone, who=who)
        await self.remove(gone)
        return gone

    async def get_removable(self, entry_id: str) -> Entry:
        """Return the entry that is to be forgotten. Raises: EntryNotFound; InvalidInput for one that has to stay."""
        return await self.get(entry_id)

    async def tombstones(self) -> tuple[Tombstone, ...]:
        """Return the record of each entry that was forgotten, oldest first. Raises `StorageError`."""
        return (await self._tombstones.read()).rows

    async def tombstone_of(self, entry: Entry) -> Tombstone | None:
        """Return the record by which an entry is known as forgotten; None for one that is not."""
        return await self._tombstones.find(entry)


class RootTombstones(TombstoneLookup):
    """The tombstones of the places that a scope sees, which forgetting writes there as a part of its change set."""

    @abstractmethod
    async def places(self) -> list[MemoryRoot]:
        """Return the visible places that exist, narrowest first."""

    async def tombstones(self) -> tuple[Tombstone, ...]:
        """Return the record of each entry that was forgotten in a visible place, oldest first in each."""
        return tuple([row for place in await self.places() for row in (await read_tombstones(place.files)).rows])

    async def tombstone_of(self, entry: Entry) -> Tombstone | None:
        """Return the record by which an entry is known as forgotten in a visible place; None for one that is not."""
        for place in await self.places():
            if stone := find_tombstone(entry, await read_tombstones(place.files), place.key):
                return stone
        return None
