"""Stores that last only as long as the process: `none:`, `ring:` and `mock:`.

`none` is the default of the process: saving succeeds and stores nothing. A ring keeps the newest entries of each owner.
A mock is a list for tests. Invariant: entries of one owner in a ring never displace those of another.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo.errors import InvalidSetting
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import Hit, Query
from ricordo.stores.addresses import OpenRequest
from ricordo.stores.base import (
    ForgettingDriver,
    ProcessTombstones,
    StoreTombstones,
    owner_folder,
    read_options,
    refuse_place,
)
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.workspace.entry import Entry

__all__ = ["DEFAULT_CAPACITY", "MockStore", "NoMemory", "RingStore", "open_mock", "open_none", "open_ring"]


class NoMemory(Backend):
    """Saving succeeds and stores nothing, recall finds nothing, the preamble is empty."""

    def _driver(self, scope: Scope) -> Driver:
        """Return the same empty driver for every scope."""
        del scope
        return _NullDriver()


class _NullDriver:
    async def write(self, entry: Entry) -> Entry:
        """Return `entry` without storing it."""
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return no hits."""
        del query, limit
        return []

    async def preamble(self, budget: Tokens | None) -> str:
        """Return an empty text."""
        del budget
        return ""


@asynccontextmanager
async def open_none(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open a store that keeps nothing: `none:`."""
    refuse_place(request.address)
    read_options(request.address)
    yield NoMemory(request.parts)


DEFAULT_CAPACITY = 500
"""The default number of entries in a ring."""


class RingStore(Backend):
    """The `capacity` newest entries of each owner."""

    def __init__(self, parts: StoreParts, scope: Scope, capacity: int = DEFAULT_CAPACITY) -> None:
        """Keep at most `capacity` entries for each owner; `scope` is the home owner, as for a folder."""
        super().__init__(parts)
        self._scope = scope
        self._capacity = capacity
        self._rings: dict[str, deque[Entry]] = {}
        self._tombstones: dict[str, ProcessTombstones] = {}

    def _driver(self, scope: Scope) -> Driver:
        owner = owner_folder(scope, owner_scope=self._scope)
        ring = self._rings.setdefault(owner, deque(maxlen=self._capacity))
        return _RingDriver(ring, self._tombstones.setdefault(owner, ProcessTombstones(self._parts)))


class _RingDriver(ForgettingDriver):
    def __init__(self, ring: deque[Entry], tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self._ring = ring

    async def write(self, entry: Entry) -> Entry:
        self._ring.append(entry)
        return entry

    async def entries(self) -> list[Entry]:
        return [*reversed(self._ring)]

    async def remove(self, entry: Entry) -> None:
        for each in [each for each in self._ring if each.id == entry.id]:
            self._ring.remove(each)


@asynccontextmanager
async def open_ring(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open a ring: `ring:?capacity=500`. Raises: InvalidSetting for a capacity below 1."""
    refuse_place(request.address)
    capacity = read_options(request.address, "capacity").get("capacity", str(DEFAULT_CAPACITY))
    if not (capacity.isascii() and capacity.isdigit()) or int(capacity[:20]) < 1:
        raise InvalidSetting(f"The capacity of a ring is a whole number from 1 up, not {capacity!r}.")
    yield RingStore(request.parts, request.scope, int(capacity[:20]))


class MockStore(Backend):
    """All saved entries in a list."""

    def __init__(self, parts: StoreParts, scope: Scope) -> None:
        """Start empty; `scope` is the home owner, as for a folder."""
        super().__init__(parts)
        self._scope = scope
        self._rows: list[tuple[str, Entry]] = []
        self._tombstones: dict[str, ProcessTombstones] = {}

    @property
    def saved_entries(self) -> list[Entry]:
        """The entries of all owners that were saved and not forgotten, in the order of saving."""
        return [entry for _, entry in self._rows]

    def _driver(self, scope: Scope) -> Driver:
        owner = owner_folder(scope, owner_scope=self._scope)
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
async def open_mock(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open an empty list: `mock:`."""
    refuse_place(request.address)
    read_options(request.address)
    yield MockStore(request.parts, request.scope)
