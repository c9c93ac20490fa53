"""A store that lists and forgets and has no index: what somebody else's plain backend looks like to a tool."""

from ricordo import Entry
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import EntryNotFound
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.scope import Scope
from ricordo.stores import Backend, Driver, PlainDriver, Store, StoreParts

__all__ = ["Shelf", "shelf"]

SHOP = Scope(project="shop")


class Shelf(Backend):
    """A list of entries, which everybody shares."""

    def __init__(self) -> None:
        clock = SystemClock()
        super().__init__(
            StoreParts(redactor=Redactor(bytes(32)), clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock, ()))
        )
        self.kept: list[Entry] = []

    def _driver(self, scope: Scope) -> Driver:
        del scope
        return _OnShelf(self.kept)


class _OnShelf(PlainDriver):
    path = "shelf.txt"

    def __init__(self, kept: list[Entry]) -> None:
        self._kept = kept

    async def write(self, entry: Entry) -> Entry:
        self._kept.append(entry)
        return entry

    async def entries(self) -> list[Entry]:
        return self._kept[::-1]

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        del who, why
        for at, entry in enumerate(self._kept):
            if entry.id == entry_id:
                return self._kept.pop(at)
        raise EntryNotFound


def shelf(scope: Scope = SHOP) -> Store:
    """Return a store of `scope`, by default a project, over an empty shelf."""
    return Shelf().bind(scope)
