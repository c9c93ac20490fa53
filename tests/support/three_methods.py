"""A backend of somebody else, in one module: the three methods, and a name to open it by."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo.errors import FileMissing
from ricordo.index.contract import Query
from ricordo.messages.jsontext import dumps, loads, record
from ricordo.recall.hits import Hit
from ricordo.runtime.stores import register_store
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.opening import Opening
from ricordo.stores.plain import Home, found, kept_text, opened_home
from ricordo.testing import StoreConformance
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import from_json, to_json

__all__ = ["ThirdParty"]


class _Backend(Backend):
    def __init__(self, parts: StoreParts, home: Home) -> None:
        super().__init__(parts)
        self._home = home

    def _driver(self, scope: Scope) -> Driver:
        return _ThreeMethods(self._home, scope)


class _ThreeMethods:
    def __init__(self, home: Home, scope: Scope) -> None:
        self._files, self._folder = home.files, f"{home.folder(scope)}cards"

    async def write(self, entry: Entry) -> Entry:
        async with self._files.lock(self._folder.replace("/", "-")):
            number = len(await self._files.list(self._folder))
            await self._files.create(f"{self._folder}/{number:09}.card", dumps(to_json(entry)).encode())
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        return found(await self._cards(), query, limit)

    async def preface(self, budget: Tokens | None) -> str:
        return kept_text(await self._cards(), budget)

    async def _cards(self) -> list[Entry]:
        cards = []
        for info in reversed(await self._files.list(self._folder)):
            try:
                cards.append(from_json(record(loads((await self._files.read(info.path)).data), "A card")))
            except (FileMissing, ValueError):
                continue
        return cards


@asynccontextmanager
async def _opened(opening: Opening) -> AsyncIterator[Backend]:
    async with opened_home(opening) as home:
        yield _Backend(opening.parts, home)


register_store("cards", _opened)


class ThirdParty(StoreConformance):
    """It, as the suite runs it."""

    address = "cards:{folder}"
    free_text = True
