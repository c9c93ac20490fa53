"""The key-value store: each entry under its own key in an LMDB database, `memory.mdb`.

A key is the time of saving and a number, such as `2026-11-21T08:03:11.482Z/000000000000`. The key is created in the
transaction that writes it and is never below the last key, so the order of keys is the order of saving. The preamble
consists of entries of the kind `preamble`.

Invariants: LMDB must not open a file twice in one process, so all users share one environment, which closes with the
last user. LMDB errors are translated. A file that can't be opened is renamed before a new one is made.
"""

import errno
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar, TypeVar

import anyio
import lmdb
from anyio.to_thread import run_sync

from ricordo.clock import format_rfc3339
from ricordo.concurrency import run_even_if_cancelled, run_to_completion
from ricordo.context.preamble import Preamble
from ricordo.errors import (
    DocumentInvalid,
    InvalidMessage,
    PathRefused,
    StorageError,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
)
from ricordo.lazy import lazy_compile
from ricordo.messages.json_text import dumps, loads, require_object
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.storage.disk import Disk, translate_os_error
from ricordo.stores.addresses import OpenRequest
from ricordo.stores.base import (
    FileTombstones,
    ForgettingDriver,
    StoreFolder,
    StoreTombstones,
    assign_ids,
    compose_entries,
    open_folder,
    read_options,
)
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import entry_from_json, entry_to_json
from ricordo.workspace.ledger import resolve_id

__all__ = ["KvDatabase", "KvStore", "open_kv"]


_T = TypeVar("_T")
_FIRST_SIZE = 16 * 1024 * 1024
_TREE_BYTES = 64 * 1024
_BROKEN_ERRORS = (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError, lmdb.IncompatibleError)
_FULL_MESSAGES = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_READ_ONLY_MESSAGES = tuple(os.strerror(code) for code in (errno.EROFS, errno.EACCES, errno.EPERM))
_READ_ALL_SCRIPT = (
    "import lmdb, sys\n"
    "with lmdb.open(sys.argv[1], subdir=False, readonly=True, lock=False).begin() as transaction:\n"
    "    sum(len(value) for _, value in transaction.cursor())\n"
)


class KvDatabase:
    """The LMDB file `path`; the first write creates it and its folders."""

    def __init__(self, path: Path, *, within: Path) -> None:
        """Create the object without opening the file; `within` is the folder that the path must not leave."""
        self._path = path
        self._within = within
        self._limiter = anyio.CapacityLimiter(1)
        self._environment = _Environment.acquire(path)

    async def read(self, act: Callable[[lmdb.Transaction], _T]) -> _T | None:
        """Return the result of `act`; None if there is no file.

        Raises: DocumentInvalid for a broken file; StorageError.

        The id of a transaction together with `open_count` shows whether anything was written since.
        """
        return await self._in_thread(partial(self._environment.read, act))

    async def write(self, act: Callable[[lmdb.Transaction], _T], *, size: int = 0) -> _T:
        """Return the result of `act` after its writes are durable. `act` is called again if the file has to grow.

        `size` is the number of bytes it writes. Raises: DocumentInvalid for a broken file; StorageError, and then
        nothing was written.
        """
        return await self._in_thread(partial(self._write, act, size))

    @property
    def open_count(self) -> int:
        """How often the file was opened; a different number may mean a different file."""
        return self._environment.open_count

    async def set_aside(self) -> str:
        """Rename a broken file and return the new name; empty if the file is no longer broken.

        Only one process may do so at a time.
        """
        return await self._in_thread(self._environment.set_aside)

    async def close(self) -> None:
        """Close the file."""
        await run_even_if_cancelled(partial(run_sync, self._environment.release))

    async def _in_thread(self, act: Callable[[], _T]) -> _T:
        return await run_to_completion(partial(run_sync, act, limiter=self._limiter))

    def _write(self, act: Callable[[lmdb.Transaction], _T], size: int) -> _T:
        if not self._path.resolve().is_relative_to(self._within.resolve()):
            raise PathRefused(f"{self._path} leads out of its folder through a symbolic link.")
        disk = Disk()
        try:
            for folder in [folder for folder in [*self._path.parents][::-1] if not folder.is_dir()]:
                disk.make_folder(str(folder))
                disk.sync_folder(str(folder.parent))
        except OSError as error:
            raise translate_os_error(error, str(self._path)) from error
        return self._environment.write(act, size)


class _Environment:
    """The environment of a file, opened once in this process, and the number of its users."""

    _instances: ClassVar[dict[str, "_Environment"]] = {}
    _instances_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str) -> None:
        self.open_count = 0
        self._path = path
        self._lock = threading.Lock()
        self._users = 0
        self._environment: lmdb.Environment | None = None
        self._open_file: tuple[int, int] | None = None
        self._size = 0
        self._is_read_only = False

    @classmethod
    def acquire(cls, path: Path) -> "_Environment":
        real = os.path.realpath(path)
        with cls._instances_lock:
            environment = cls._instances.setdefault(real, cls(real))
            environment._users += 1
            return environment

    def release(self) -> None:
        with self._instances_lock, self._lock:
            self._users -= 1
            if not self._users:
                self._close()
                del self._instances[self._path]

    def read(self, act: Callable[[lmdb.Transaction], _T]) -> _T | None:
        with self._lock:
            environment = self._ensure_open(write=False)
            return None if environment is None else self._run(environment, act, write=False)

    def write(self, act: Callable[[lmdb.Transaction], _T], size: int) -> _T:
        with self._lock:
            environment = self._ensure_open(write=True) or self._open()

            def with_room(transaction: lmdb.Transaction) -> _T:
                self._reserve(environment, size)
                return act(transaction)

            return self._run(environment, with_room, write=True)

    def set_aside(self) -> str:
        with self._lock:
            try:
                self._ensure_open(write=False)
            except DocumentInvalid:
                candidates = (f"{self._path}.broken-{number}" for number in count(1))
                name = next(name for name in candidates if not os.path.lexists(name))
                disk = Disk()
                try:
                    disk.rename(self._path, name)
                    disk.sync_folder(str(Path(name).parent))
                except OSError as error:
                    raise translate_os_error(error, self._path) from error
                return name
            return ""

    def _run(self, environment: lmdb.Environment, act: Callable[[lmdb.Transaction], _T], *, write: bool) -> _T:
        try:
            while True:
                try:
                    with environment.begin(write=write) as transaction:
                        return act(transaction)
                except lmdb.MapFullError:
                    environment.set_mapsize(2 * environment.info()["map_size"])
                except lmdb.MapResizedError:
                    # another process has enlarged the file
                    environment.set_mapsize(0)
        except lmdb.Error as error:
            # after a failed commit, an environment may refuse every operation
            self._close()
            raise _translate_error(error, self._path) from error

    def _reserve(self, environment: lmdb.Environment, size: int) -> None:
        """Reserve space in the file for a commit, if the system can: LMDB reports a full disk as an input/output error.

        The transaction blocks other writers meanwhile. Raises: StorageFull.
        """
        if not hasattr(os, "posix_fallocate"):
            return
        used = _used_bytes(environment)
        missing = used + size + _TREE_BYTES - Path(self._path).stat().st_size
        if missing > 0:
            try:
                descriptor = Disk().open(self._path, os.O_RDWR)
                try:
                    os.posix_fallocate(descriptor, used, size + _TREE_BYTES)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise translate_os_error(error, self._path) from error

    def _ensure_open(self, *, write: bool) -> lmdb.Environment | None:
        """Return the open environment; None if there is no file and none is needed."""
        file, size = _file_identity(self._path), _file_size(self._path)
        # LMDB never shortens a file, and reading a part that was cut off would end the process
        if (
            self._environment is not None
            and file == self._open_file
            and size >= self._size
            and not (write and self._is_read_only)
        ):
            self._size = size
            return self._environment
        self._close()
        if file is None and not write:
            return None
        try:
            return self._open()
        except StorageReadOnly:
            if write:
                raise
            return self._open(read_only=True)

    def _open(self, *, read_only: bool = False) -> lmdb.Environment:
        try:
            environment = lmdb.open(
                self._path, subdir=False, mode=0o600, map_size=_FIRST_SIZE, readonly=read_only, lock=not read_only
            )
            used = _used_bytes(environment)
        except lmdb.Error as error:
            raise _translate_error(error, self._path) from error
        if used > Path(self._path).stat().st_size and not _is_readable(self._path):
            environment.close()
            raise DocumentInvalid(f"{self._path} is cut off.")
        Disk().sync_folder(str(Path(self._path).parent))
        self._environment, self._open_file, self._is_read_only = environment, _file_identity(self._path), read_only
        self._size = _file_size(self._path)
        self.open_count += 1
        return environment

    def _close(self) -> None:
        if self._environment is not None:
            self._environment.close()
        self._environment = None


def _used_bytes(environment: lmdb.Environment) -> int:
    """Return how many bytes of its file an environment uses."""
    return (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]


def _file_identity(path: str) -> tuple[int, int] | None:
    """Return the identity of a file, which a replacement does not share; None if there is no file."""
    try:
        stat = Path(path).stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _file_size(path: str) -> int:
    """Return the size of a file in bytes; 0 if there is no file."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _is_readable(path: str) -> bool:
    """Return whether a file without its end still holds its entries, because the end was free space.

    Another process reads the file, since reading a missing part ends the process.
    """
    command = [sys.executable, "-c", _READ_ALL_SCRIPT, path]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603


def _translate_error(error: lmdb.Error, path: str) -> StorageError:
    message = str(error)
    if isinstance(error, _BROKEN_ERRORS):
        return DocumentInvalid(f"{path} is no key-value file that can be read: {message}.")
    if isinstance(error, lmdb.DiskError) or any(text in message for text in _FULL_MESSAGES):
        return StorageFull(f"There is no room to write {path}: free some space; nothing saved before is lost.")
    if isinstance(error, lmdb.ReadonlyError) or any(text in message for text in _READ_ONLY_MESSAGES):
        return StorageReadOnly(f"{path} can't be written: {message}. Reading goes on.")
    return StorageFailed(f"{path}: {message}.")


_LOG = logging.getLogger("ricordo.stores")
_FILE_NAME = "memory.mdb"
_KEY_PATTERN = lazy_compile(rb"(?P<time>[0-9T:.Z-]{24})/(?P<number>\d{12})")
_PREAMBLE_KIND = "preamble"


class KvStore(Backend):
    """Entries in an LMDB database."""

    def __init__(self, parts: StoreParts, home: StoreFolder, folder: Path) -> None:
        """Store each owner's entries in their folder of `home`, which is at `folder`."""
        super().__init__(parts)
        self._home = home
        self._folder = folder
        self._drivers: dict[str, _KvDriver] = {}

    @property
    def damaged_count(self) -> int:
        """The number of values that could not be read as entries, in the databases read so far."""
        return sum(driver.damaged_count for driver in self._drivers.values())

    async def close(self) -> None:
        """Close the databases."""
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
        await self._run_with_recovery(partial(self.database.write, partial(_put_entry, entry, value), size=len(value)))
        return entry

    async def preamble(self, budget: Tokens | None) -> Preamble:
        selected = [entry for entry in await self.entries() if entry.kind == _PREAMBLE_KIND]
        return await run_sync(partial(compose_entries, selected, budget, source=self.path))

    async def entries(self) -> list[Entry]:
        entries = await self._run_with_recovery(partial(self.database.read, self._read_entries))
        if entries is None:
            await self._require_folder()
        return [*(entries or [])]

    async def remove(self, entry: Entry) -> None:
        await self._run_with_recovery(partial(self.database.write, partial(_remove_entry, entry.id, self.path)))

    async def _require_folder(self) -> None:
        """Raises: StorageError if the folder of the database existed and was removed."""
        await self._files.info(self.path)

    def _read_entries(self, transaction: lmdb.Transaction) -> list[Entry]:
        """Return all entries, newest first; they are read again only after a write."""
        state = (self.database.open_count, transaction.id())
        if self._cached_entries is None or self._cached_entries[0] != state:
            values = [bytes(value) for _, value in transaction.cursor()]
            # most entries are already in the cache
            self._entries_by_value = {
                value: self._entries_by_value[value] if value in self._entries_by_value else _parse_entry(value)
                for value in values
            }
            parsed = [entry for value in values if (entry := self._entries_by_value[value]) is not None]
            entries = assign_ids(parsed, self.path)[::-1]
            damaged = len(values) - len(parsed)
            if damaged > self.damaged_count:
                _LOG.warning("%s has %d values that are no entries; they are left in it.", self.path, damaged)
            self.damaged_count = damaged
            self._cached_entries = (state, entries)
        return self._cached_entries[1]

    async def _run_with_recovery(self, act: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of `act`; a file that can't be opened is set aside before a second attempt."""
        try:
            return await act()
        except DocumentInvalid as error:
            async with self._files.lock(_FILE_NAME):
                name = await self.database.set_aside()
            if name:
                _LOG.warning("%s It is kept as %s.", error, Path(name).name)
            return await act()


@asynccontextmanager
async def open_kv(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open the database of a folder: `kv:./notes`."""
    read_options(request.address)
    async with open_folder(request) as store_folder:
        store = KvStore(request.parts, store_folder, request.folder or Path())
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
    """Remove an entry. Raises: EntryNotFound."""
    rows = _read_rows(transaction, path)
    full_id = resolve_id([entry.id for _, entry in rows], entry_id)
    for key in [key for key, entry in rows if entry.id == full_id]:
        transaction.delete(key)


def _read_rows(transaction: lmdb.Transaction, path: str) -> list[tuple[bytes, Entry]]:
    """Return the keys with their entries, oldest first."""
    rows = [
        (bytes(key), entry) for key, value in transaction.cursor() if (entry := _parse_entry(bytes(value))) is not None
    ]
    entries = assign_ids([entry for _, entry in rows], path)
    return [(key, entry) for (key, _), entry in zip(rows, entries, strict=True)]


def _parse_entry(value: bytes) -> Entry | None:
    try:
        return entry_from_json(require_object(loads(value), "A value"))
    except (DocumentInvalid, InvalidMessage):
        return None
