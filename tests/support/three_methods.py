"""A backend of somebody else, in one module: the three methods, and a name to open it by."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ricordo import Entry
from ricordo.context import Preamble
from ricordo.errors import FileMissing
from ricordo.messages import Tokens, dumps, loads
from ricordo.messages.json_text import require_object
from ricordo.runtime import register_store
from ricordo.scope import Scope
from ricordo.search import Hit, Query
from ricordo.stores import (
    Backend,
    Driver,
    OpenRequest,
    StoreFolder,
    StoreParts,
    compose_entries,
    match_entries,
    open_folder,
)
from ricordo.testing import StoreConformance
from ricordo.workspace.entry_json import entry_from_json, entry_to_json

__all__ = ["ThirdParty"]


class _Backend(Backend):
    def __init__(self, parts: StoreParts, home: StoreFolder) -> None:
        super().__init__(parts)
        self._home = home

    def _driver(self, scope: Scope) -> Driver:
        return _ThreeMethods(self._home, scope)


class _ThreeMethods:
    def __init__(self, home: StoreFolder, scope: Scope) -> None:
        self._files, self._folder = home.files, f"{home.folder_for(scope)}cards"

    async def write(self, entry: Entry) -> Entry:
        async with self._files.lock(self._folder.replace("/", "-")):
            number = len(await self._files.list(self._folder))
            await self._files.create(f"{self._folder}/{number:09}.card", dumps(entry_to_json(entry)).encode())
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        return match_entries(await self._cards(), query, limit)

    async def preamble(self, budget: Tokens | None) -> Preamble:
        return compose_entries(await self._cards(), budget)

    async def _cards(self) -> list[Entry]:
        cards = []
        for info in reversed(await self._files.list(self._folder)):
            try:
                cards.append(entry_from_json(require_object(loads((await self._files.read(info.path)).data), "A card")))
            except (FileMissing, ValueError):
                continue
        return cards


@asynccontextmanager
async def _opened(opening: OpenRequest) -> AsyncIterator[Backend]:
    async with open_folder(opening) as home:
        yield _Backend(opening.parts, home)


register_store("cards", _opened)


class ThirdParty(StoreConformance):
    """It, as the suite runs it."""

    address = "cards:{folder}"
    free_text = True
