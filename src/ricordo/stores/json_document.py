"""The JSON store: one document, `memory.json`, which each save writes completely.

    {"version":1,
    "entries":[
    {"id":"01hx...","time":"2026-11-21T08:03:11.482Z","kind":"fact","content":"We use pnpm.","by":"user"}
    ]}

Invariants: a save names the version it is based on, so no process overwrites the writes of another. Unknown fields and
entries stay unchanged. A document that can't be read is renamed before a new one is written.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, InvalidMessage, StorageError
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue
from ricordo.messages.json_text import dumps, loads, require_integer, require_object
from ricordo.scope import Scope
from ricordo.storage import StoredFile, compute_version
from ricordo.storage.contract import quarantine_document
from ricordo.stores.addresses import OpenRequest
from ricordo.stores.base import (
    FileTombstones,
    ForgettingDriver,
    StoreFolder,
    StoreTombstones,
    assign_ids,
    open_folder,
    read_options,
)
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.parsed_files import ParsedFile, rewrite_file
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import entry_from_json, entry_to_json
from ricordo.workspace.ledger import resolve_id

__all__ = ["JsonStore", "open_json"]


_LOG = logging.getLogger("ricordo.stores")
_FILE_NAME = "memory.json"
_VERSION = 1
_DOCUMENT_END = b"\n]}\n"
"""The end of a document whose last field is the entries; no other line begins with a bracket."""


@dataclass(frozen=True, kw_only=True)
class _Document:
    """A document as it was read: `fields` are all fields except the entries, `records` the entries in their order.

    `error` says why it could not be read.
    """

    fields: dict[str, JsonValue] = field(default_factory=lambda: {"version": _VERSION})
    records: tuple[JsonValue, ...] = ()
    error: str = ""

    def parse_records(self, before: "_Document", read: Sequence[Entry | None]) -> list[Entry | None]:
        """Return the entry of each record, None for a record that is not an entry.

        `read` are the entries of the records in `before`, which are reused.
        """
        unchanged = read if self.records[: len(before.records)] == before.records else []
        return [*unchanged, *map(_parse_entry, self.records[len(unchanged) :])]


class JsonStore(Backend):
    """Entries in one JSON document."""

    def __init__(self, parts: StoreParts, home: StoreFolder) -> None:
        """Store each owner's entries in their folder of `home`."""
        super().__init__(parts)
        self._home = home
        self._drivers: dict[str, _JsonDriver] = {}

    @property
    def damaged_count(self) -> int:
        """The number of entries that could not be read, in the documents read so far; one for a whole document."""
        return sum(driver.damaged_count for driver in self._drivers.values())

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder_for(scope)
        tombstones = FileTombstones(self._home, folder, self._parts)
        return self._drivers.setdefault(folder, _JsonDriver(self._home, f"{folder}{_FILE_NAME}", tombstones))


class _JsonDriver(ForgettingDriver):
    def __init__(self, home: StoreFolder, path: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.path = path
        self.damaged_count = 0
        self._files = home.files
        self._file = ParsedFile(home.files, path, self._parse)
        self._own_version: str | None = None
        self._previous: tuple[_Document, list[Entry | None]] = (_Document(), [])
        self._reported_problems: set[str] = set()

    async def write(self, entry: Entry) -> Entry:
        async def add_entry(stored: StoredFile) -> tuple[bytes, Entry]:
            if stored.version == self._own_version:
                # a document that ends in Ricordo's format can be extended without parsing
                data = (
                    stored.data.removesuffix(_DOCUMENT_END)
                    + f",\n{dumps(entry_to_json(entry))}".encode()
                    + _DOCUMENT_END
                )
            else:
                document = await self._load_writable(stored)
                data = await run_sync(_render_document, document, (*document.records, entry_to_json(entry)))
            self._own_version = await run_sync(compute_version, data) if data.endswith(_DOCUMENT_END) else None
            return data, entry

        return await rewrite_file(self._files, self.path, add_entry)

    async def entries(self) -> list[Entry]:
        broken, entries = await self._file.value()
        if broken:
            # if it can't be set aside now, the next save does it or fails
            with suppress(StorageError, FileMissing):
                await self._load_writable(await self._files.read(self.path))
        return [*entries]

    async def remove(self, entry: Entry) -> None:
        async def remove_entry(stored: StoredFile) -> tuple[bytes, None]:
            return await run_sync(_remove_entry, self.path, await self._load_writable(stored), entry.id), None

        await rewrite_file(self._files, self.path, remove_entry)

    async def _load_writable(self, stored: StoredFile) -> _Document:
        """Return the document to extend; an unreadable document is set aside first."""
        document = await run_sync(_parse_document, self.path, stored.data)
        if not document.error:
            return document
        name = await quarantine_document(self._files, self.path, stored)
        self._report(f"{self.path} can't be read ({document.error.rstrip('.')}) and is kept as {name}.")
        return _Document()

    def _parse(self, data: bytes) -> tuple[str, tuple[Entry, ...]]:
        """Return why a document is broken, and its entries, newest first."""
        document = _parse_document(self.path, data)
        before, read = self._previous
        read = document.parse_records(before, read)
        self._previous = document, read
        entries = assign_ids([entry for entry in read if entry is not None], self.path)
        self.damaged_count = 1 if document.error else len(document.records) - len(entries)
        if self.damaged_count:
            reason = document.error or f"{self.damaged_count} of them are none."
            self._report(f"{self.path} can't be read as entries: {reason}")
        return document.error, (*reversed(entries),)

    def _report(self, trouble: str) -> None:
        """Log a warning once."""
        if trouble not in self._reported_problems:
            _LOG.warning("%s", trouble)
        self._reported_problems.add(trouble)


@asynccontextmanager
async def open_json(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open the store of a folder: `json:./notes`."""
    read_options(request.address)
    async with open_folder(request) as store_folder:
        yield JsonStore(request.parts, store_folder)


def _parse_document(path: str, data: bytes) -> _Document:
    """Parse a document. Raises: DocumentInvalid for one of a newer version."""
    if not data.strip():
        return _Document()
    try:
        fields = require_object(loads(data.decode("utf-8-sig")), path)
        version = require_integer(fields.get("version", _VERSION), "version")
        records = _require_list(fields.get("entries", []))
    except (InvalidMessage, UnicodeDecodeError) as error:
        return _Document(error=str(error))
    if version > _VERSION:
        raise DocumentInvalid(f"{path} has the version {version}, which a newer Ricordo wrote; it is left as it is.")
    return _Document(fields=fields, records=tuple(records))


def _require_list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise InvalidMessage("entries: a list is needed.")
    return value


def _remove_entry(path: str, document: _Document, entry_id: str) -> bytes:
    """Return the document without one entry. Raises: EntryNotFound."""
    read = document.parse_records(_Document(), [])
    places = [place for place, entry in enumerate(read) if entry is not None]
    entries = assign_ids([entry for entry in read if entry is not None], path)
    full_id = resolve_id([entry.id for entry in entries], entry_id)
    removed = {place for place, entry in zip(places, entries, strict=True) if entry.id == full_id}
    return _render_document(
        document, tuple(value for place, value in enumerate(document.records) if place not in removed)
    )


def _parse_entry(value: JsonValue) -> Entry | None:
    try:
        return entry_from_json(require_object(value, "entries"))
    except (DocumentInvalid, InvalidMessage):
        return None


def _render_document(document: _Document, records: tuple[JsonValue, ...]) -> bytes:
    """Return the document with these entries, one on each line."""
    lines = ",\n".join(dumps(value) for value in records)
    values = {name: dumps(value) for name, value in document.fields.items()}
    values["entries"] = f"[\n{lines}\n]" if records else "[]"
    return ("{" + ",\n".join(f"{dumps(name)}:{value}" for name, value in values.items()) + "}\n").encode()
