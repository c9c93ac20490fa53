"""Key-value: each entry under a key of its own in an embedded LMDB database, `memory.mdb`.

A key is the time of saving and a number, such as `2026-11-21T08:03:11.482Z/000000000000`. It is made inside the
transaction that writes it, and is never below the last one, so keys are unique among all processes and their order is
that of saving, whatever the clocks say. The preamble is what was saved with the kind `preamble`.
"""

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import lmdb
from anyio.to_thread import run_sync

from ricordo.audit import resolve_id
from ricordo.clock import format_rfc3339
from ricordo.errors import DocumentInvalid, InvalidMessage
from ricordo.messages.jsontext import dumps, loads, require_object
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.kv_database import KvDatabase
from ricordo.stores.opening import OpenRequest
from ricordo.stores.plain import StoreFolder, render_entries, assign_ids, open_folder, read_options
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import entry_from_json, entry_to_json

__all__ = ["KvStore", "open_kv"]

_T = TypeVar("_T")

_LOG = logging.getLogger("ricordo.stores")
_FILE_NAME = "memory.mdb"
_KEY_PATTERN = re.compile(rb"(?P<time>[0-9T:.Z-]{24})/(?P<number>\d{12})")
_PREAMBLE_KIND = "preamble"


class KvStore(Backend):
    """Entries in an LMDB database."""

    def __init__(self, parts: StoreParts, home: StoreFolder, folder: Path) -> None:
        """Keep everybody's entries in their folder of `home`, which lies at `folder`."""
        super().__init__(parts)
        self._home = home
        self._folder = folder
        self._drivers: dict[str, _KvDriver] = {}

    @property
    def damaged_count(self) -> int:
        """How many values could not be read as entries, in the databases that were read so far."""
        return sum(driver.damaged_count for driver in self._drivers.values())

    async def close(self) -> None:
        """Let the databases go."""
        while self._drivers:
            await self._drivers.popitem()[1].database.close()

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder_for(scope)
        if folder not in self._drivers:
            tombstones = FileTombstones(self._home, folder, self._parts)
            self._drivers[folder] = _KvDriver(self._home, self._folder, f"{folder}{_FILE_NAME}", tombstones)
        return self._drivers[folder]


class _KvDriver(ForgettingDriver):
    def __init__(self, home: StoreFolder, folder: Path, path: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.path = path
        self.damaged_count = 0
        self.database = KvDatabase(folder / path, within=folder)
        self._files = home.files
        self._cached_entries: tuple[tuple[int, int], list[Entry]] | None = None
        self._entries_by_value: dict[bytes, Entry | None] = {}

    async def write(self, entry: Entry) -> Entry:
        value = dumps(entry_to_json(entry)).encode()
        await self._require_folder()
        await self._run_with_recovery(partial(self.database.write, partial(_put_entry, entry, value), room=len(value)))
        return entry

    async def preamble(self, budget: Tokens | None) -> str:
        chosen = [entry for entry in await self.entries() if entry.kind == _PREAMBLE_KIND]
        return await run_sync(partial(render_entries, chosen, budget, source=self.path))

    async def entries(self) -> list[Entry]:
        found = await self._run_with_recovery(partial(self.database.read, self._read_entries))
        if found is None:
            await self._require_folder()
        return [*(found or [])]

    async def remove(self, entry: Entry) -> None:
        await self._run_with_recovery(partial(self.database.write, partial(_remove_entry, entry.id, self.path)))

    async def _require_folder(self) -> None:
        """Raise: StorageError when the folder of the database was there and is not."""
        await self._files.info(self.path)

    def _read_entries(self, transaction: lmdb.Transaction) -> list[Entry]:
        """Return all entries, newest first, read again only when something was written."""
        state = (self.database.open_count, transaction.id())
        if self._cached_entries is None or self._cached_entries[0] != state:
            values = [bytes(value) for _, value in transaction.cursor()]
            # most of them were there before
            self._entries_by_value = {
                value: self._entries_by_value[value] if value in self._entries_by_value else _parse_entry(value)
                for value in values
            }
            found = [entry for value in values if (entry := self._entries_by_value[value]) is not None]
            entries = assign_ids(found, self.path)[::-1]
            damaged = len(values) - len(found)
            if damaged > self.damaged_count:
                _LOG.warning("%s has %d values that are no entries; they are left in it.", self.path, damaged)
            self.damaged_count = damaged
            self._cached_entries = (state, entries)
        return self._cached_entries[1]

    async def _run_with_recovery(self, act: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `act` returns; a file that can't be opened is kept aside before it is tried again."""
        try:
            return await act()
        except DocumentInvalid as error:
            async with self._files.lock(_FILE_NAME):
                name = await self.database.set_aside()
            if name:
                _LOG.warning("%s It is kept as %s.", error, Path(name).name)
            return await act()


@asynccontextmanager
async def open_kv(opening: OpenRequest) -> AsyncIterator[Backend]:
    """Open the database of a folder: `kv:./notes`."""
    read_options(opening.address)
    async with open_folder(opening) as home:
        store = KvStore(opening.parts, home, opening.folder or Path())
        try:
            yield store
        finally:
            await store.close()


def _put_entry(entry: Entry, value: bytes, transaction: lmdb.Transaction) -> None:
    """Write the value of an entry under the key after the last one."""
    time, number = (format_rfc3339(entry.time).encode() if entry.time else b""), 0
    keys = (_KEY_PATTERN.fullmatch(key) for key in transaction.cursor().iterprev(values=False))
    last = next(filter(None, keys), None)
    if last and last["time"] >= time:
        time, number = last["time"], int(last["number"]) + 1
    transaction.put(b"%b/%012d" % (time, number), value)


def _remove_entry(entry_id: str, path: str, transaction: lmdb.Transaction) -> None:
    """Take an entry out. Raises: EntryNotFound."""
    rows = _read_rows(transaction, path)
    chosen = resolve_id([entry.id for _, entry in rows], entry_id)
    for key in [key for key, entry in rows if entry.id == chosen]:
        transaction.delete(key)


def _read_rows(transaction: lmdb.Transaction, path: str) -> list[tuple[bytes, Entry]]:
    """Return the keys with an entry, oldest first."""
    found = [
        (bytes(key), entry) for key, value in transaction.cursor() if (entry := _parse_entry(bytes(value))) is not None
    ]
    entries = assign_ids([entry for _, entry in found], path)
    return [(key, entry) for (key, _), entry in zip(found, entries, strict=True)]


def _parse_entry(value: bytes) -> Entry | None:
    try:
        return entry_from_json(require_object(loads(value), "A value"))
    except (DocumentInvalid, InvalidMessage):
        return None
