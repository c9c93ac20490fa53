"""Memory folder: an existing folder of MEMORY.md and topic files, as other tools write them, used where it lies.

What is saved is a bullet at the end of the topic for its kind, and a topic that is new gets a line in MEMORY.md. The
folder is the user's own and stays as it is: nothing is put into it but memories, no marker, no lock and no rule for
git. Whose it is, and its locks, are kept in the user's data folder. Invariant: what others wrote stays to the byte.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.consolidation.topics import type_of
from ricordo.errors import EntryNotFound, FileMissing, InvalidInput, ScopeMismatch, StorageError
from ricordo.files import FileStore, Stored
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.bullets import BulletFile
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.folder_documents import INDEX, links_to, located_in, new_document, with_link
from ricordo.stores.held_file import HeldFile, rewritten
from ricordo.stores.ledgers import standing
from ricordo.stores.opening import Opening
from ricordo.stores.plain import Home, found, opened_home, options
from ricordo.stores.preamble import Preamble, Prefaces, preamble
from ricordo.stores.saving_clock import SavingClock
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located
from ricordo.workspace.index_bounds import IndexBounds

__all__ = ["MemoryFolderStore", "open_memory_folder"]

_BOUNDS = IndexBounds()
_DEEPEST = 3
_TOPICS = ("user", "feedback", "project", "reference")


class MemoryFolderStore(Backend):
    """Entries in the topics of one folder, which is one owner's."""

    def __init__(self, parts: StoreParts, home: Home) -> None:
        """Use the folder of `home` as it is."""
        super().__init__(parts)
        self._home = home
        self._folder = _Folder(home.files, FileTombstones(home, "", parts))

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver of the folder. Raises: ScopeMismatch for anybody but its owner."""
        if self._home.folder(scope):
            raise ScopeMismatch(f"This memory folder is that of {self._home.scope}: it can't be opened for {scope}.")
        return self._folder


class _Folder(Prefaces, ForgettingDriver):
    def __init__(self, files: FileStore, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self._files = files
        self._documents: dict[str, HeldFile[tuple[bytes, list[Located]]]] = {}
        self._topics = {name: BulletFile(files, f"{name}.md", header=new_document(name)) for name in _TOPICS}

    async def write(self, entry: Entry) -> Entry:
        topic = self._topics[type_of(entry.kind)]
        await topic.append(entry)
        if not links_to(await self._data(INDEX), topic.path):
            await rewritten(self._files, INDEX, partial(self._linked, topic.path))
        return entry

    async def entries(self) -> list[Entry]:
        return [one.entry for one in await self._located()]

    async def find(self, query: Query, limit: int) -> list[Hit]:
        located = {one.entry.id: one for one in await self._located() if one.path.startswith(query.path)}
        entries = [one.entry for one in located.values()]
        hits = await run_sync(partial(found, entries, replace(query, path=""), limit))
        return standing(hits, located)

    async def prefaced(self, budget: Tokens | None) -> Preamble:
        """Return MEMORY.md, then what was saved and stands in topics, newest first, as far as they fit."""
        located = [one for one in await self._located() if one.path != INDEX and one.length]
        replaced = {one.entry.supersedes for one in located}
        holding = [one for one in located if one.entry.state == "active" and one.entry.id not in replaced]
        pinned = [(one.path, one.entry) for one in holding if one.entry.pinned]
        saved = [(one.path, one.entry) for one in holding if not one.entry.pinned]
        index = await self._data(INDEX)
        for path in [topic.path for topic in self._topics.values()]:
            if any(one.path == path for one in located) and _is_full(index, path, await self._data(path)):
                index = _with(index, path, await self._data(path))
        return await run_sync(partial(preamble, index, saved, budget, pinned=pinned))

    async def removable(self, entry_id: str) -> Entry:
        """Return the entry of a bullet. Raises: EntryNotFound; InvalidInput for text that is none, of others."""
        entry = await self.get(entry_id)
        one = await self._one(entry.id)
        if entry.by == "hand" and entry.id not in await self._bullets(one.path):
            raise InvalidInput(f"{one.path} was written by others, and this is no bullet of it: edit the file.")
        return entry

    async def remove(self, entry: Entry) -> None:
        """Cut the bullet of an entry out. Raises `EntryNotFound`."""
        await BulletFile(self._files, (await self._one(entry.id)).path).forget(entry.id)

    async def _one(self, entry_id: str) -> Located:
        for one in await self._located():
            if one.entry.id == entry_id:
                return one
        raise EntryNotFound

    async def _bullets(self, path: str) -> set[str]:
        return {one.entry.id for one in (await BulletFile(self._files, path).bullets()).located}

    async def _linked(self, path: str, stored: Stored) -> tuple[bytes, None]:
        """Return the index with a line for a topic; one that another process added is there already."""
        topic = await self._data(path)
        # a full index is its owner's to shorten; prompts list the topic all the same
        return stored.data if _is_full(stored.data, path, topic) else _with(stored.data, path, topic), None

    async def _located(self) -> list[Located]:
        """Return everything the folder says, what was saved last first, then what has no time."""
        located: list[Located] = []
        for info in await self._files.list():
            path = info.path
            if path.endswith(".md") and path.count("/") < _DEEPEST and not path.startswith("."):
                with suppress(FileMissing, StorageError):
                    located += (await self._document(path).value())[1]
        return sorted(located, key=_newest, reverse=True)

    async def _data(self, path: str) -> bytes:
        return (await self._document(path).value())[0]

    def _document(self, path: str) -> HeldFile[tuple[bytes, list[Located]]]:
        held = HeldFile(self._files, path, lambda data: (data, located_in(path, data)))
        return self._documents.setdefault(path, held)


def _with(index: bytes, path: str, topic: bytes) -> bytes:
    """Return the index with a line for a topic; one that is there stays."""
    return index if links_to(index, path) else with_link(index, path, topic)


def _is_full(index: bytes, path: str, topic: bytes) -> bool:
    """Tell whether the index has no room for the line of a topic."""
    return _BOUNDS.grown(index, _with(index, path, topic)) is not None


def _newest(one: Located) -> tuple[float, str]:
    return (one.entry.time.timestamp(), one.entry.id) if one.entry.time else (0.0, "")


@asynccontextmanager
async def open_memory_folder(opening: Opening) -> AsyncIterator[Backend]:
    """Open a memory folder where it lies: `folder:./memory`."""
    options(opening.address)
    clock = SavingClock(opening.parts.clock)
    async with opened_home(opening) as home:
        for name in _TOPICS:
            with suppress(FileMissing, StorageError):
                clock.follow((await home.files.read(f"{name}.md")).data)
        yield MemoryFolderStore(replace(opening.parts, clock=clock), home)
