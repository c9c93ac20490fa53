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

from ricordo.audit import chosen_id
from ricordo.clock import rfc3339
from ricordo.errors import DocumentInvalid, InvalidMessage
from ricordo.messages.jsontext import dumps, loads, record
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.kv_database import KvDatabase
from ricordo.stores.opening import Opening
from ricordo.stores.plain import Home, kept_text, named, opened_home, options
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import from_json, to_json

__all__ = ["KvStore", "open_kv"]

_T = TypeVar("_T")

_LOG = logging.getLogger("ricordo.stores")
_NAME = "memory.mdb"
_KEY = re.compile(rb"(?P<time>[0-9T:.Z-]{24})/(?P<number>\d{12})")
_PREAMBLE = "preamble"


class KvStore(Backend):
    """Entries in an LMDB database."""

    def __init__(self, parts: StoreParts, home: Home, folder: Path) -> None:
        """Keep everybody's entries in their folder of `home`, which lies at `folder`."""
        super().__init__(parts)
        self._home = home
        self._folder = folder
        self._drivers: dict[str, _KvDriver] = {}

    @property
    def damaged(self) -> int:
        """How many values could not be read as entries, in the databases that were read so far."""
        return sum(driver.damaged for driver in self._drivers.values())

    async def close(self) -> None:
        """Let the databases go."""
        while self._drivers:
            await self._drivers.popitem()[1].database.close()

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder(scope)
        if folder not in self._drivers:
            tombstones = FileTombstones(self._home, folder, self._parts)
            self._drivers[folder] = _KvDriver(self._home, self._folder, f"{folder}{_NAME}", tombstones)
        return self._drivers[folder]


class _KvDriver(ForgettingDriver):
    def __init__(self, home: Home, folder: Path, path: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.path = path
        self.damaged = 0
        self.database = KvDatabase(folder / path, within=folder)
        self._files = home.files
        self._held: tuple[tuple[int, int], list[Entry]] | None = None
        self._parsed: dict[bytes, Entry | None] = {}

    async def write(self, entry: Entry) -> Entry:
        value = dumps(to_json(entry)).encode()
        await self._is_there()
        await self._whole(partial(self.database.write, partial(_put, entry, value), room=len(value)))
        return entry

    async def preface(self, budget: Tokens | None) -> str:
        chosen = [entry for entry in await self.entries() if entry.kind == _PREAMBLE]
        return await run_sync(partial(kept_text, chosen, budget, source=self.path))

    async def entries(self) -> list[Entry]:
        found = await self._whole(partial(self.database.read, self._newest))
        if found is None:
            await self._is_there()
        return [*(found or [])]

    async def remove(self, entry: Entry) -> None:
        await self._whole(partial(self.database.write, partial(_remove, entry.id, self.path)))

    async def _is_there(self) -> None:
        """Raise: StorageError when the folder of the database was there and is not."""
        await self._files.info(self.path)

    def _newest(self, transaction: lmdb.Transaction) -> list[Entry]:
        """Return all entries, newest first, read again only when something was written."""
        state = (self.database.openings, transaction.id())
        if self._held is None or self._held[0] != state:
            values = [bytes(value) for _, value in transaction.cursor()]
            # most of them were there before
            self._parsed = {value: self._parsed[value] if value in self._parsed else _entry(value) for value in values}
            found = [entry for value in values if (entry := self._parsed[value]) is not None]
            entries = named(found, self.path)[::-1]
            damaged = len(values) - len(found)
            if damaged > self.damaged:
                _LOG.warning("%s has %d values that are no entries; they are left in it.", self.path, damaged)
            self.damaged = damaged
            self._held = (state, entries)
        return self._held[1]

    async def _whole(self, act: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `act` returns; a file that can't be opened is kept aside before it is tried again."""
        try:
            return await act()
        except DocumentInvalid as error:
            async with self._files.lock(_NAME):
                name = await self.database.set_aside()
            if name:
                _LOG.warning("%s It is kept as %s.", error, Path(name).name)
            return await act()


@asynccontextmanager
async def open_kv(opening: Opening) -> AsyncIterator[Backend]:
    """Open the database of a folder: `kv:./notes`."""
    options(opening.address)
    async with opened_home(opening) as home:
        store = KvStore(opening.parts, home, opening.folder or Path())
        try:
            yield store
        finally:
            await store.close()


def _put(entry: Entry, value: bytes, transaction: lmdb.Transaction) -> None:
    """Write the value of an entry under the key after the last one."""
    time, number = (rfc3339(entry.time).encode() if entry.time else b""), 0
    keys = (_KEY.fullmatch(key) for key in transaction.cursor().iterprev(values=False))
    last = next(filter(None, keys), None)
    if last and last["time"] >= time:
        time, number = last["time"], int(last["number"]) + 1
    transaction.put(b"%b/%012d" % (time, number), value)


def _remove(entry_id: str, path: str, transaction: lmdb.Transaction) -> None:
    """Take an entry out. Raises: EntryNotFound."""
    rows = _rows(transaction, path)
    chosen = chosen_id([entry.id for _, entry in rows], entry_id)
    for key in [key for key, entry in rows if entry.id == chosen]:
        transaction.delete(key)


def _rows(transaction: lmdb.Transaction, path: str) -> list[tuple[bytes, Entry]]:
    """Return the keys with an entry, oldest first."""
    found = [(bytes(key), entry) for key, value in transaction.cursor() if (entry := _entry(bytes(value))) is not None]
    entries = named([entry for _, entry in found], path)
    return [(key, entry) for (key, _), entry in zip(found, entries, strict=True)]


def _entry(value: bytes) -> Entry | None:
    try:
        return from_json(record(loads(value), "A value"))
    except (DocumentInvalid, InvalidMessage):
        return None
