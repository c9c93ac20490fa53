"""One JSON document: `memory.json`, written whole at each save.

    {"version":1,
    "entries":[
    {"id":"01hx...","time":"2026-11-21T08:03:11.482Z","kind":"fact","content":"We use pnpm.","by":"user"}
    ]}

Invariants: a save names the version it was based on, so of two processes none takes away what the other wrote; fields
and entries that are not understood stay as they are; a document that can't be read is kept under another name before
a new one takes its place.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from anyio.to_thread import run_sync

from ricordo.audit import chosen_id
from ricordo.errors import DocumentInvalid, FileMissing, InvalidMessage, StorageError
from ricordo.files import Stored, version_of
from ricordo.files.broken import kept_aside
from ricordo.messages import JsonValue
from ricordo.messages.jsontext import dumps, integer, loads, record
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.held_file import HeldFile, rewritten
from ricordo.stores.opening import Opening
from ricordo.stores.plain import Home, named, opened_home, options
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import from_json, to_json

__all__ = ["JsonStore", "open_json"]

_LOG = logging.getLogger("ricordo.stores")
_NAME = "memory.json"
_VERSION = 1
_END = b"\n]}\n"
"""How a document ends whose entries are its last field, and nothing else does: no other line begins with a bracket."""


@dataclass(frozen=True, kw_only=True)
class _Document:
    """A document as it was read: `fields` are all but the entries, `records` what it has for those, in its order.

    `broken` says why it could not be read.
    """

    fields: dict[str, JsonValue] = field(default_factory=lambda: {"version": _VERSION})
    records: tuple[JsonValue, ...] = ()
    broken: str = ""

    def read(self, before: "_Document", read: Sequence[Entry | None]) -> list[Entry | None]:
        """Return what each record says, None for one that is no entry; `read` is what those of `before` said."""
        known = read if self.records[: len(before.records)] == before.records else []
        return [*known, *map(_entry, self.records[len(known) :])]


class JsonStore(Backend):
    """Entries in one JSON document."""

    def __init__(self, parts: StoreParts, home: Home) -> None:
        """Keep everybody's entries in their folder of `home`."""
        super().__init__(parts)
        self._home = home
        self._drivers: dict[str, _JsonDriver] = {}

    @property
    def damaged(self) -> int:
        """How many entries could not be read, in the documents that were read so far; one for a whole document."""
        return sum(driver.damaged for driver in self._drivers.values())

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder(scope)
        tombstones = FileTombstones(self._home, folder, self._parts)
        return self._drivers.setdefault(folder, _JsonDriver(self._home, f"{folder}{_NAME}", tombstones))


class _JsonDriver(ForgettingDriver):
    def __init__(self, home: Home, path: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.path = path
        self.damaged = 0
        self._files = home.files
        self._file = HeldFile(home.files, path, self._read)
        self._ours: str | None = None
        self._before: tuple[_Document, list[Entry | None]] = (_Document(), [])
        self._reported: set[str] = set()

    async def write(self, entry: Entry) -> Entry:
        async def added(stored: Stored) -> tuple[bytes, Entry]:
            if stored.version == self._ours:
                # what ends as we write it needs no parsing to be gone on with
                data = stored.data.removesuffix(_END) + f",\n{dumps(to_json(entry))}".encode() + _END
            else:
                document = await self._writable(stored)
                data = await run_sync(_written, document, (*document.records, to_json(entry)))
            self._ours = await run_sync(version_of, data) if data.endswith(_END) else None
            return data, entry

        return await rewritten(self._files, self.path, added)

    async def entries(self) -> list[Entry]:
        broken, entries = await self._file.value()
        if broken:
            # where it can't be kept aside now, the next save does it or fails
            with suppress(StorageError, FileMissing):
                await self._writable(await self._files.read(self.path))
        return [*entries]

    async def remove(self, entry: Entry) -> None:
        async def without(stored: Stored) -> tuple[bytes, None]:
            return await run_sync(_without, self.path, await self._writable(stored), entry.id), None

        await rewritten(self._files, self.path, without)

    async def _writable(self, stored: Stored) -> _Document:
        """Return what a new document begins with; one that can't be read is kept aside first."""
        document = await run_sync(_parsed, self.path, stored.data)
        if not document.broken:
            return document
        name = await kept_aside(self._files, self.path, stored)
        self._report(f"{self.path} can't be read ({document.broken.rstrip('.')}) and is kept as {name}.")
        return _Document()

    def _read(self, data: bytes) -> tuple[str, tuple[Entry, ...]]:
        """Return why a document is broken, and its entries, newest first."""
        document = _parsed(self.path, data)
        before, read = self._before
        read = document.read(before, read)
        self._before = document, read
        entries = named([entry for entry in read if entry is not None], self.path)
        self.damaged = 1 if document.broken else len(document.records) - len(entries)
        if self.damaged:
            why = document.broken or f"{self.damaged} of them are none."
            self._report(f"{self.path} can't be read as entries: {why}")
        return document.broken, (*reversed(entries),)

    def _report(self, trouble: str) -> None:
        """Warn of it once."""
        if trouble not in self._reported:
            _LOG.warning("%s", trouble)
        self._reported.add(trouble)


@asynccontextmanager
async def open_json(opening: Opening) -> AsyncIterator[Backend]:
    """Open the store of a folder: `json:./notes`."""
    options(opening.address)
    async with opened_home(opening) as home:
        yield JsonStore(opening.parts, home)


def _parsed(path: str, data: bytes) -> _Document:
    """Return what a document says. Raises: DocumentInvalid for one of a newer version."""
    if not data.strip():
        return _Document()
    try:
        fields = record(loads(data.decode("utf-8-sig")), path)
        version = integer(fields.get("version", _VERSION), "version")
        records = _listed(fields.get("entries", []))
    except (InvalidMessage, UnicodeDecodeError) as error:
        return _Document(broken=str(error))
    if version > _VERSION:
        raise DocumentInvalid(f"{path} has the version {version}, which a newer Ricordo wrote; it is left as it is.")
    return _Document(fields=fields, records=tuple(records))


def _listed(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise InvalidMessage("entries: a list is needed.")
    return value


def _without(path: str, document: _Document, entry_id: str) -> bytes:
    """Return the document without one entry. Raises: EntryNotFound."""
    read = document.read(_Document(), [])
    places = [place for place, entry in enumerate(read) if entry is not None]
    entries = named([entry for entry in read if entry is not None], path)
    chosen = chosen_id([entry.id for entry in entries], entry_id)
    gone = {place for place, entry in zip(places, entries, strict=True) if entry.id == chosen}
    return _written(document, tuple(value for place, value in enumerate(document.records) if place not in gone))


def _entry(value: JsonValue) -> Entry | None:
    try:
        return from_json(record(value, "entries"))
    except (DocumentInvalid, InvalidMessage):
        return None


def _written(document: _Document, records: tuple[JsonValue, ...]) -> bytes:
    """Write the document with these entries, each on a line of its own."""
    lines = ",\n".join(dumps(value) for value in records)
    values = {name: dumps(value) for name, value in document.fields.items()}
    values["entries"] = f"[\n{lines}\n]" if records else "[]"
    return ("{" + ",\n".join(f"{dumps(name)}:{value}" for name, value in values.items()) + "}\n").encode()
