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

from ricordo.consolidation.topics import topic_type
from ricordo.errors import EntryNotFound, FileMissing, InvalidInput, ScopeMismatch, StorageError
from ricordo.files import FileStore, StoredFile
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.bullets import BulletFile
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.folder_documents import INDEX, has_link, parse_document, create_topic, add_link
from ricordo.stores.held_file import ParsedFile, rewrite_file
from ricordo.stores.ledgers import add_locations
from ricordo.stores.opening import OpenRequest
from ricordo.stores.plain import StoreFolder, match_entries, open_folder, read_options
from ricordo.stores.preamble import Preamble, PreambleDriver, compose_preamble
from ricordo.stores.saving_clock import MonotonicClock
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.index_bounds import IndexBounds

__all__ = ["MemoryFolderStore", "open_memory_folder"]

_BOUNDS = IndexBounds()
_MAX_DEPTH = 3
_TOPIC_NAMES = ("user", "feedback", "project", "reference")


class MemoryFolderStore(Backend):
    """Entries in the topics of one folder, which is one owner's."""

    def __init__(self, parts: StoreParts, home: StoreFolder) -> None:
        """Use the folder of `home` as it is."""
        super().__init__(parts)
        self._home = home
        self._folder = _FolderDriver(home.files, FileTombstones(home, "", parts))

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver of the folder. Raises: ScopeMismatch for anybody but its owner."""
        if self._home.folder_for(scope):
            raise ScopeMismatch(f"This memory folder is that of {self._home.scope}: it can't be opened for {scope}.")
        return self._folder


class _FolderDriver(PreambleDriver, ForgettingDriver):
    def __init__(self, files: FileStore, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self._files = files
        self._documents: dict[str, ParsedFile[tuple[bytes, list[LocatedEntry]]]] = {}
        self._topics = {name: BulletFile(files, f"{name}.md", header=create_topic(name)) for name in _TOPIC_NAMES}

    async def write(self, entry: Entry) -> Entry:
        topic = self._topics[topic_type(entry.kind)]
        await topic.append(entry)
        if not has_link(await self._read_data(INDEX), topic.path):
            await rewrite_file(self._files, INDEX, partial(self._link_topic, topic.path))
        return entry

    async def entries(self) -> list[Entry]:
        return [one.entry for one in await self._read_entries()]

    async def find(self, query: Query, limit: int) -> list[Hit]:
        located = {one.entry.id: one for one in await self._read_entries() if one.path.startswith(query.path)}
        entries = [one.entry for one in located.values()]
        hits = await run_sync(partial(match_entries, entries, replace(query, path=""), limit))
        return add_locations(hits, located)

    async def build_preamble(self, budget: Tokens | None) -> Preamble:
        """Return MEMORY.md, then what was saved and stands in topics, newest first, as far as they fit."""
        located = [one for one in await self._read_entries() if one.path != INDEX and one.length]
        replaced = {one.entry.supersedes for one in located}
        holding = [one for one in located if one.entry.state == "active" and one.entry.id not in replaced]
        pinned = [(one.path, one.entry) for one in holding if one.entry.pinned]
        saved = [(one.path, one.entry) for one in holding if not one.entry.pinned]
        index = await self._read_data(INDEX)
        for path in [topic.path for topic in self._topics.values()]:
            if any(one.path == path for one in located) and _is_full(index, path, await self._read_data(path)):
                index = _ensure_link(index, path, await self._read_data(path))
        return await run_sync(partial(compose_preamble, index, saved, budget, pinned=pinned))

    async def get_removable(self, entry_id: str) -> Entry:
        """Return the entry of a bullet. Raises: EntryNotFound; InvalidInput for text that is none, of others."""
        entry = await self.get(entry_id)
        one = await self._locate_entry(entry.id)
        if entry.by == "hand" and entry.id not in await self._bullet_ids(one.path):
            raise InvalidInput(f"{one.path} was written by others, and this is no bullet of it: edit the file.")
        return entry

    async def remove(self, entry: Entry) -> None:
        """Cut the bullet of an entry out. Raises `EntryNotFound`."""
        await BulletFile(self._files, (await self._locate_entry(entry.id)).path).forget(entry.id)

    async def _locate_entry(self, entry_id: str) -> LocatedEntry:
        for one in await self._read_entries():
            if one.entry.id == entry_id:
                return one
        raise EntryNotFound

    async def _bullet_ids(self, path: str) -> set[str]:
        return {one.entry.id for one in (await BulletFile(self._files, path).read_document()).located}

    async def _link_topic(self, path: str, stored: StoredFile) -> tuple[bytes, None]:
        """Return the index with a line for a topic; one that another process added is there already."""
        topic = await self._read_data(path)
        # a full index is its owner's to shorten; prompts list the topic all the same
        return stored.data if _is_full(stored.data, path, topic) else _ensure_link(stored.data, path, topic), None

    async def _read_entries(self) -> list[LocatedEntry]:
        """Return everything the folder says, what was saved last first, then what has no time."""
        located: list[LocatedEntry] = []
        for info in await self._files.list():
            path = info.path
            if path.endswith(".md") and path.count("/") < _MAX_DEPTH and not path.startswith("."):
                with suppress(FileMissing, StorageError):
                    located += (await self._document(path).value())[1]
        return sorted(located, key=_newest_key, reverse=True)

    async def _read_data(self, path: str) -> bytes:
        return (await self._document(path).value())[0]

    def _document(self, path: str) -> ParsedFile[tuple[bytes, list[LocatedEntry]]]:
        held = ParsedFile(self._files, path, lambda data: (data, parse_document(path, data)))
        return self._documents.setdefault(path, held)


def _ensure_link(index: bytes, path: str, topic: bytes) -> bytes:
    """Return the index with a line for a topic; one that is there stays."""
    return index if has_link(index, path) else add_link(index, path, topic)


def _is_full(index: bytes, path: str, topic: bytes) -> bool:
    """Tell whether the index has no room for the line of a topic."""
    return _BOUNDS.find_growth(index, _ensure_link(index, path, topic)) is not None


def _newest_key(one: LocatedEntry) -> tuple[float, str]:
    return (one.entry.time.timestamp(), one.entry.id) if one.entry.time else (0.0, "")


@asynccontextmanager
async def open_memory_folder(opening: OpenRequest) -> AsyncIterator[Backend]:
    """Open a memory folder where it lies: `folder:./memory`."""
    read_options(opening.address)
    clock = MonotonicClock(opening.parts.clock)
    async with open_folder(opening) as home:
        for name in _TOPIC_NAMES:
            with suppress(FileMissing, StorageError):
                clock.advance_past((await home.files.read(f"{name}.md")).data)
        yield MemoryFolderStore(replace(opening.parts, clock=clock), home)
