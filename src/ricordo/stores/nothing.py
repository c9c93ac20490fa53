"""No memory: the process-wide default, with which everything runs and nothing is kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver
from ricordo.stores.opening import OpenRequest
from ricordo.stores.plain import read_options, refuse_place
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry

__all__ = ["NoMemory", "open_none"]


class NoMemory(Backend):
    """Saving succeeds and keeps nothing, recall finds nothing, the preamble is empty."""

    def _driver(self, scope: Scope) -> Driver:
        """Return the same nothing for every scope."""
        del scope
        return _NullDriver()


class _NullDriver:
    async def write(self, entry: Entry) -> Entry:
        """Return `entry`, which is kept nowhere."""
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return nothing."""
        del query, limit
        return []

    async def preamble(self, budget: Tokens | None) -> str:
        """Return nothing."""
        del budget
        return ""


@asynccontextmanager
async def open_none(opening: OpenRequest) -> AsyncIterator[Backend]:
    """Open what keeps nothing: `none:`."""
    refuse_place(opening.address)
    read_options(opening.address)
    yield NoMemory(opening.parts)
