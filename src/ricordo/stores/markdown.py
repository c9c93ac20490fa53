"""Markdown: `memory.md`, one bullet for each entry, which people read, edit and add to.

The preamble is the whole file, as far as it fits. Invariant: what a person writes between the bullets is left where it
is.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from anyio.to_thread import run_sync

from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.bullets import BulletFile
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.markdown_preamble import render_document
from ricordo.stores.opening import OpenRequest
from ricordo.stores.plain import StoreFolder, match_entries, open_folder, read_options
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry

__all__ = ["MarkdownStore", "open_markdown"]

_FILE_NAME = "memory.md"
_HEADER = b"# Memory\n\n"


class MarkdownStore(Backend):
    """Entries in `memory.md`."""

    def __init__(self, parts: StoreParts, home: StoreFolder) -> None:
        """Keep everybody's entries in their folder of `home`."""
        super().__init__(parts)
        self._home = home
        self._drivers: dict[str, _MarkdownDriver] = {}

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder_for(scope)
        tombstones = FileTombstones(self._home, folder, self._parts)
        return self._drivers.setdefault(folder, _MarkdownDriver(self._home, f"{folder}{_FILE_NAME}", tombstones))


class _MarkdownDriver(ForgettingDriver):
    def __init__(self, home: StoreFolder, path: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.path = path
        self._file = BulletFile(home.files, path, header=_HEADER)

    async def write(self, entry: Entry) -> Entry:
        await self._file.append(entry)
        return entry

    async def entries(self) -> list[Entry]:
        return [one.entry for one in reversed((await self._file.read_document()).located)]

    async def find(self, query: Query, limit: int) -> list[Hit]:
        located = (await self._file.read_document()).located
        lines = {one.entry.id: one.line for one in located}
        entries = [one.entry for one in reversed(located)]
        return await run_sync(partial(match_entries, entries, query, limit, path=self.path, lines=lines))

    async def preamble(self, budget: Tokens | None) -> str:
        return await run_sync(render_document, await self._file.read_document(), budget, self.path)

    async def remove(self, entry: Entry) -> None:
        await self._file.forget(entry.id)


@asynccontextmanager
async def open_markdown(opening: OpenRequest) -> AsyncIterator[Backend]:
    """Open the store of a folder: `markdown:./notes`."""
    read_options(opening.address)
    async with open_folder(opening) as home:
        yield MarkdownStore(opening.parts, home)
