"""Mock: a list in memory, for tests of whatever uses a store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.opening import OpenRequest
from ricordo.stores.plain import read_options, refuse_place, owner_folder
from ricordo.stores.tombstones import ForgettingDriver, ProcessTombstones, StoreTombstones
from ricordo.workspace.entry import Entry

__all__ = ["MockStore", "open_mock"]


class MockStore(Backend):
    """Everything that was saved, in a list."""

    def __init__(self, parts: StoreParts, scope: Scope) -> None:
        """Start with nothing; `scope` is told from others as a folder's owner would be."""
        super().__init__(parts)
        self._scope = scope
        self._rows: list[tuple[str, Entry]] = []
        self._tombstones: dict[str, ProcessTombstones] = {}

    @property
    def saved_entries(self) -> list[Entry]:
        """What was saved and not forgotten, whoever's it is, in the order of saving."""
        return [entry for _, entry in self._rows]

    def _driver(self, scope: Scope) -> Driver:
        owner = owner_folder(scope, home=self._scope)
        return _MockDriver(self._rows, owner, self._tombstones.setdefault(owner, ProcessTombstones(self._parts)))


class _MockDriver(ForgettingDriver):
    def __init__(self, rows: list[tuple[str, Entry]], owner: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self._rows = rows
        self._owner = owner

    async def write(self, entry: Entry) -> Entry:
        self._rows.append((self._owner, entry))
        return entry

    async def entries(self) -> list[Entry]:
        return [entry for owner, entry in reversed(self._rows) if owner == self._owner]

    async def remove(self, entry: Entry) -> None:
        self._rows[:] = [row for row in self._rows if row[0] != self._owner or row[1].id != entry.id]


@asynccontextmanager
async def open_mock(opening: OpenRequest) -> AsyncIterator[Backend]:
    """Open an empty list: `mock:`."""
    refuse_place(opening.address)
    read_options(opening.address)
    yield MockStore(opening.parts, opening.scope)
