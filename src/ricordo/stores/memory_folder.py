"""The memory folder store: an existing folder of MEMORY.md and topic files from other tools, used in place.

MEMORY.md links to topics; a topic has a front matter with name, description and type, and text below it. A bullet with
an id is an entry, and all other text of a topic is one memory. A saved entry becomes a bullet at the end of the topic
for its kind, and a new topic gets a link in MEMORY.md.

Invariants: only memories are written into the folder, no marker and no lock. Text from other tools never changes.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.context.preamble import Preamble, SavedEntry, compose_preamble
from ricordo.curation.memory_document import DocumentPart, parse_memory_document
from ricordo.curation.topics import entry_kind, is_generated, read_topic, topic_type
from ricordo.errors import EntryNotFound, FileMissing, InvalidInput, ScopeMismatch, StorageError
from ricordo.lazy import lazy_compile
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import Hit, Query
from ricordo.search.memory_root import MonotonicClock
from ricordo.storage import FileStore, StoredFile
from ricordo.stores.addresses import OpenRequest
from ricordo.stores.base import (
    FileTombstones,
    ForgettingDriver,
    StoreFolder,
    StoreTombstones,
    match_entries,
    open_folder,
    read_options,
)
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.ledgers import add_locations
from ricordo.stores.parsed_files import BulletFile, ParsedFile, rewrite_file
from ricordo.workspace.documents import IndexBounds
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, derive_id

__all__ = ["INDEX", "MemoryFolderStore", "add_link", "create_topic", "has_link", "open_memory_folder", "parse_document"]


INDEX = "MEMORY.md"
_TITLE = b"# Memory\n\n"
_LINK = lazy_compile(rb"\]\((?:\./)?([^)\s#]+\.md)(?:#[^)]*)?\)")
_MAX_INDEX_LINES = 199
"""The number of lines that other tools read of the index; they miss links below it."""
_TOPIC_TITLES: Mapping[str, tuple[str, str]] = {
    "user": ("User", "What the user prefers"),
    "feedback": ("Feedback", "How to work: conventions, corrections and lessons"),
    "project": ("Project", "Facts, decisions and goals of the project"),
    "reference": ("Reference", "Where things are to be looked up"),
}


def parse_document(path: str, data: bytes) -> list[LocatedEntry]:
    """Return the entries of a document in order; a line of the index that is only a link to a topic is no entry."""
    parts = parse_memory_document(data, path).parts
    return _parse_index(path, parts) if path == INDEX else _parse_topic(path, data, parts)


def has_link(index: bytes, path: str) -> bool:
    """Return whether the index links to the topic at `path`."""
    return path.encode() in _LINK.findall(index)


def create_topic(type_name: str) -> bytes:
    """Return the header of a topic for memories of this type."""
    name, description = _TOPIC_TITLES[type_name]
    front = f"---\nname: {name}\ndescription: {description}\ntype: {type_name}\n---\n"
    return f"{front}\n# {name}\n\n".encode()


def add_link(index: bytes, path: str, topic: bytes) -> bytes:
    """Return the index with a link to the topic at `path`, below the last such link, else at the end."""
    parsed = read_topic(path, topic)
    name = re.sub(r"[\[\]()]", "", parsed.name) or path
    end = b"\r\n" if b"\r\n" in index else b"\n"
    line = f"- [{name}]({path})".encode() + (f": {parsed.description}".encode() if parsed.description else b"")
    lines = (index or _TITLE).splitlines(keepends=True)
    links = [number for number, each in enumerate(lines[:_MAX_INDEX_LINES], start=1) if _LINK.search(each)]
    position = links[-1] if links else len(lines)
    if not lines[position - 1].endswith((b"\n", b"\r")):
        lines[position - 1] += end
    return b"".join([*lines[:position], line, end, *lines[position:]])


def _parse_index(path: str, parts: tuple[DocumentPart, ...]) -> list[LocatedEntry]:
    entries = []
    for line, offset, part in _iter_positions(parts):
        text = part.data.decode("utf-8", "replace").strip()
        if part.entry is not None and not _LINK.search(part.data):
            entries.append(_locate(part.entry, path, line, offset, part))
        elif (
            part.entry is None and text and not part.fenced and not text.startswith("#") and not _LINK.search(part.data)
        ):
            entries.append(_locate(_create_manual_entry(path, text, line), path, line, offset, part))
    return entries


def _parse_topic(path: str, data: bytes, parts: tuple[DocumentPart, ...]) -> list[LocatedEntry]:
    entries = [
        _locate(part.entry, path, line, offset, part)
        for line, offset, part in _iter_positions(parts)
        if part.entry is not None and part.is_named
    ]
    topic = read_topic(path, data)
    front = next((number for number, part in enumerate(parts) if not part.fenced), len(parts))
    body = [part for part in parts[front if parts and parts[0].data.strip() == b"---" else 0 :] if not part.is_named]
    text = b"".join(part.data for part in body).decode("utf-8", "replace").strip()
    title = ": ".join(filter(None, (topic.name, topic.description)))
    if not text.lstrip("# ").removeprefix(topic.name).strip() and (entries or is_generated(data)):
        return entries
    topic_entry = _create_manual_entry(path, "\n\n".join(filter(None, (title, text))), 0, entry_kind(topic.type))
    return [LocatedEntry(entry=topic_entry, path=path, line=1, end_line=1, offset=0, length=0), *entries]


def _iter_positions(parts: tuple[DocumentPart, ...]) -> Iterator[tuple[int, int, DocumentPart]]:
    """Yield each part with its line, from 1, and its offset."""
    line, offset = 1, 0
    for part in parts:
        yield line, offset, part
        line += part.data.count(b"\n")
        offset += len(part.data)


def _locate(entry: Entry, path: str, line: int, offset: int, part: DocumentPart) -> LocatedEntry:
    last = line + max(part.data.rstrip().count(b"\n"), 0)
    return LocatedEntry(entry=entry, path=path, line=line, end_line=last, offset=offset, length=len(part.data))


def _create_manual_entry(path: str, text: str, number: int, kind: str = "fact") -> Entry:
    return Entry(content=text, kind=kind, by="hand", id=derive_id(path, text if number else "", number))


_BOUNDS = IndexBounds()
_MAX_DEPTH = 3
_TOPIC_NAMES = ("user", "feedback", "project", "reference")


class MemoryFolderStore(Backend):
    """Entries in the topics of one folder, which belongs to one owner."""

    def __init__(self, parts: StoreParts, home: StoreFolder) -> None:
        """Use the folder of `home` directly."""
        super().__init__(parts)
        self._home = home
        self._folder = _FolderDriver(home.files, FileTombstones(home, "", parts))

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver of the folder. Raises: ScopeMismatch for any other owner."""
        if self._home.folder_for(scope):
            raise ScopeMismatch(f"This memory folder is that of {self._home.scope}: it can't be opened for {scope}.")
        return self._folder


class _FolderDriver(ForgettingDriver):
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

    async def preamble(self, budget: Tokens | None) -> Preamble:
        """Return MEMORY.md, then the saved entries in topics, newest first, as far as they fit."""
        located = [one for one in await self._read_entries() if one.path != INDEX and one.length]
        replaced = {one.entry.supersedes for one in located}
        holding = [one for one in located if one.entry.state == "active" and one.entry.id not in replaced]
        rows = [SavedEntry(entry=one.entry, source=one.path) for one in holding]
        pinned, saved = [row for row in rows if row.entry.pinned], [row for row in rows if not row.entry.pinned]
        index = await self._read_data(INDEX)
        for path in [topic.path for topic in self._topics.values()]:
            if any(one.path == path for one in located) and _is_full(index, path, await self._read_data(path)):
                index = _ensure_link(index, path, await self._read_data(path))
        return await run_sync(partial(compose_preamble, index, saved, budget, pinned=pinned))

    async def get_removable(self, entry_id: str) -> Entry:
        """Return the entry of a bullet. Raises: EntryNotFound; InvalidInput for text that is not a bullet."""
        entry = await self.get(entry_id)
        one = await self._locate_entry(entry.id)
        if entry.by == "hand" and entry.id not in await self._bullet_ids(one.path):
            raise InvalidInput(f"{one.path} was written by others, and this is no bullet of it: edit the file.")
        return entry

    async def remove(self, entry: Entry) -> None:
        """Remove the bullet of an entry. Raises `EntryNotFound`."""
        await BulletFile(self._files, (await self._locate_entry(entry.id)).path).forget(entry.id)

    async def _locate_entry(self, entry_id: str) -> LocatedEntry:
        for one in await self._read_entries():
            if one.entry.id == entry_id:
                return one
        raise EntryNotFound

    async def _bullet_ids(self, path: str) -> set[str]:
        return {one.entry.id for one in (await BulletFile(self._files, path).read_document()).located}

    async def _link_topic(self, path: str, stored: StoredFile) -> tuple[bytes, None]:
        """Return the index with a link to a topic, unless another process has added it."""
        topic = await self._read_data(path)
        # the owner must shorten a full index; prompts list the topic anyway
        return stored.data if _is_full(stored.data, path, topic) else _ensure_link(stored.data, path, topic), None

    async def _read_entries(self) -> list[LocatedEntry]:
        """Return all entries of the folder: the one saved last first, those without a time at the end."""
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
        parsed = ParsedFile(self._files, path, lambda data: (data, parse_document(path, data)))
        return self._documents.setdefault(path, parsed)


def _ensure_link(index: bytes, path: str, topic: bytes) -> bytes:
    """Return the index with a link to a topic, added if missing."""
    return index if has_link(index, path) else add_link(index, path, topic)


def _is_full(index: bytes, path: str, topic: bytes) -> bool:
    """Return whether the index has no room for the link to a topic."""
    return _BOUNDS.find_growth(index, _ensure_link(index, path, topic)) is not None


def _newest_key(one: LocatedEntry) -> tuple[float, str]:
    return (one.entry.time.timestamp(), one.entry.id) if one.entry.time else (0.0, "")


@asynccontextmanager
async def open_memory_folder(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open a memory folder in place: `folder:./memory`."""
    read_options(request.address)
    clock = MonotonicClock(request.parts.clock)
    async with open_folder(request) as store_folder:
        for name in _TOPIC_NAMES:
            with suppress(FileMissing, StorageError):
                clock.advance_past((await store_folder.files.read(f"{name}.md")).data)
        yield MemoryFolderStore(replace(request.parts, clock=clock), store_folder)
