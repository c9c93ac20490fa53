"""No memory: the process-wide default, with which everything runs and nothing is kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver
from ricordo.stores.opening import Opening
from ricordo.stores.plain import options, refuse_place
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry

__all__ = ["NoMemory", "open_nothing"]


class NoMemory(Backend):
    """Saving succeeds and keeps nothing, recall finds nothing, the preamble is empty."""

    def _driver(self, scope: Scope) -> Driver:
        """Return the same nothing for every scope."""
        del scope
        return _Nothing()


class _Nothing:
    async def write(self, entry: Entry) -> Entry:
        """Return `entry`, which is kept nowhere."""
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return nothing."""
        del query, limit
        return []

    async def preface(self, budget: Tokens | None) -> str:
        """Return nothing."""
        del budget
        return ""


@asynccontextmanager
async def open_nothing(opening: Opening) -> AsyncIterator[Backend]:
    """Open what keeps nothing: `none:`."""
    refuse_place(opening.address)
    options(opening.address)
    yield NoMemory(opening.parts)
