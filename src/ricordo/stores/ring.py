"""Ring: the newest entries, in this process's memory; the oldest gives way to the next.

Nothing outlives the backend. Invariant: whoever's entries they are, they push out nobody else's.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo.errors import InvalidSetting
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.opening import OpenRequest
from ricordo.stores.plain import read_options, refuse_place, owner_folder
from ricordo.stores.tombstones import ForgettingDriver, ProcessTombstones, StoreTombstones
from ricordo.workspace.entry import Entry

__all__ = ["DEFAULT_CAPACITY", "RingStore", "open_ring"]

DEFAULT_CAPACITY = 500
"""How many entries a ring keeps when nothing else is said."""


class RingStore(Backend):
    """The `capacity` newest entries of each owner."""

    def __init__(self, parts: StoreParts, scope: Scope, capacity: int = DEFAULT_CAPACITY) -> None:
        """Keep `capacity` entries at most for each owner; `scope` is told from others as a folder's owner would be."""
        super().__init__(parts)
        self._scope = scope
        self._capacity = capacity
        self._rings: dict[str, deque[Entry]] = {}
        self._tombstones: dict[str, ProcessTombstones] = {}

    def _driver(self, scope: Scope) -> Driver:
        owner = owner_folder(scope, home=self._scope)
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
async def open_ring(opening: OpenRequest) -> AsyncIterator[Backend]:
    """Open a ring: `ring:?capacity=500`. Raises: InvalidSetting for a capacity below 1."""
    refuse_place(opening.address)
    given = read_options(opening.address, "capacity").get("capacity", str(DEFAULT_CAPACITY))
    if not (given.isascii() and given.isdigit()) or int(given[:20]) < 1:
        raise InvalidSetting(f"The capacity of a ring is a whole number from 1 up, not {given!r}.")
    yield RingStore(opening.parts, opening.scope, int(given[:20]))
