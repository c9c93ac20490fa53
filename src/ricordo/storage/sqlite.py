"""One SQLite database: its calls run one at a time, off the event loop, and raise `StorageError` types.

A read sees one snapshot. A write is one transaction that holds the write lock from its first statement; it runs to its
end even if its caller is cancelled, and is rolled back if it fails. Files are created with mode 0600, switched to
write-ahead logging and migrated under a lock on their folder.

A process keeps at most 24 databases open that were not used for a second, however many roots it serves: the others are
closed, and opened again by their next call.

Invariants: if the file was removed, replaced or truncated, the next call reports it. No descriptor of a database file
is opened and closed while this process may have a connection to it, as that drops its POSIX locks
(https://www.sqlite.org/howtocorrupt.html, 2.2).
"""

import errno
import os
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import anyio

from ricordo.concurrency import run_even_if_cancelled, run_in_thread
from ricordo.errors import DocumentInvalid, StorageBusy, StorageError, StorageFailed, StorageFull, StorageReadOnly
from ricordo.lazy import dataclass
from ricordo.storage.migrations import Commit, Schema, check_shape, commit_transaction, count_applied_steps, migrate

__all__ = [
    "DRIVER_ERRORS",
    "Commit",
    "Connection",
    "Database",
    "DatabaseOptions",
    "ExclusiveAccess",
    "Schema",
    "folder_lock",
    "is_busy_error",
    "open_connection",
    "quarantine_database",
    "retry_while_busy",
    "translate_driver_error",
    "translate_file_error",
]


_BUSY, _LOCKED, _PROTOCOL = 5, 6, 15
_READ_ONLY, _CORRUPT, _FULL, _NOT_A_DATABASE = 8, 11, 13, 26
DRIVER_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The errors of the driver; UnicodeDecodeError occurs if SQLite's message contains a damaged name from the file."""
_NOT_UTF8 = "Could not decode to UTF-8"


def translate_driver_error(error: sqlite3.Error | UnicodeDecodeError, path: str) -> StorageError:
    """Return the error to raise for a driver's `error`; `DocumentInvalid` means that the file itself is damaged."""
    if isinstance(error, UnicodeDecodeError) or str(error).startswith(_NOT_UTF8):
        return DocumentInvalid(f"{path} is not a sound database: it holds text that is not UTF-8.")
    code = _primary_code(error)
    if is_busy_error(error):
        return StorageBusy(f"{path} is locked by another process.")
    if code == _READ_ONLY:
        return StorageReadOnly(f"{path} can't be written to.")
    if code == _FULL:
        return StorageFull(f"There is no room left for {path}.")
    if code in {_CORRUPT, _NOT_A_DATABASE}:
        return DocumentInvalid(f"{path} is not a sound database: {error}.")
    return StorageFailed(f"{path}: {error}.")


def translate_file_error(error: OSError, path: str) -> StorageError:
    """Return the error to raise when the operating system refuses the file or its folder."""
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return StorageReadOnly(f"{path} can't be written to: {error.strerror}.")
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFull(f"There is no room left for {path}.")
    return StorageFailed(f"{path}: {error.strerror or error}.")


def is_busy_error(error: sqlite3.Error) -> bool:
    """Return whether another connection holds a lock, so that waiting may help."""
    return _primary_code(error) in {_BUSY, _LOCKED, _PROTOCOL}


def _primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, 0 for an error of the Python module itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return (code or 0) & 0xFF


if sys.platform != "win32":
    import fcntl


_SIDE_FILES = ("-wal", "-shm")
_MIN_PAUSE = 0.005
_MAX_PAUSE = 0.1
_MAX_IDLE = 24
"""The number of unused databases that stay open: with their logs they take three descriptors each."""
_IDLE_SECONDS = 1.0
_opener_lock = threading.Lock()
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class DatabaseOptions:
    """The options of opening a database.

    With `cache`, a damaged file is moved aside and created again; with `verify`, the whole file is read to find damage.
    `check` raises if the folder has been replaced by another one.
    """

    path: Path
    schema: Schema
    busy_seconds: float
    synchronous: str
    commit: Commit
    cache: bool
    verify: bool = False
    check: Callable[[], None] = lambda: None


def open_connection(how: DatabaseOptions) -> tuple[sqlite3.Connection, str]:
    """Return a connection to the database, created and migrated if necessary, and the new name of a damaged file.

    Raises:
        DocumentInvalid: the file is not a database, is damaged, or belongs to another program, and is no cache.
        StorageReadOnly, StorageFull, StorageBusy, StorageFailed: it can't be opened for writing here.
    """
    try:
        how.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with folder_lock(how.path.parent, how.busy_seconds):
            return _open_or_recreate(how)
    except DRIVER_ERRORS as error:
        raise _translate_opening_error(error, how.path) from error
    except OSError as error:
        raise translate_file_error(error, str(how.path)) from error


def _open_or_recreate(how: DatabaseOptions) -> tuple[sqlite3.Connection, str]:
    try:
        _check_regular_files(how.path)
        _create_file(how.path)
        return _open(how), ""
    except (*DRIVER_ERRORS, DocumentInvalid) as error:
        broken = error if isinstance(error, DocumentInvalid) else translate_driver_error(error, str(how.path))
        if not how.cache or not isinstance(broken, DocumentInvalid):
            raise
    aside = quarantine_database(how.path)
    _create_file(how.path)
    return _open(how), aside


def quarantine_database(path: Path) -> str:
    """Rename a database and its logs to `<name>.broken-<n>` and return that name; requires the folder's lock."""
    number = 1
    while os.path.lexists(target := path.with_name(f"{path.name}.broken-{number}")):
        number += 1
    path.rename(target)
    for suffix in _SIDE_FILES:
        side = path.with_name(path.name + suffix)
        if os.path.lexists(side):
            side.rename(target.with_name(target.name + suffix))
    return target.name


@contextmanager
def folder_lock(folder: Path, busy_seconds: float) -> Iterator[None]:
    """Hold the lock on `folder` that every thread and process takes before it opens a database there.

    Raises:
        StorageBusy: it was not free within `busy_seconds`.
    """
    if not _opener_lock.acquire(timeout=busy_seconds):
        raise StorageBusy(f"{folder} was locked for {busy_seconds:g} seconds.")
    try:
        if sys.platform == "win32":
            yield
            return
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _acquire_folder_flock(descriptor, folder, busy_seconds)
            yield
        finally:
            os.close(descriptor)
    finally:
        _opener_lock.release()


def retry_while_busy(act: Callable[[], _T], busy_seconds: float) -> _T:
    """Return the result of `act`, repeated while another connection holds a lock, for at most `busy_seconds`."""
    deadline = time.monotonic() + busy_seconds
    pause = _MIN_PAUSE
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not is_busy_error(error) or time.monotonic() > deadline:
                raise
        time.sleep(pause)
        pause = min(pause * 2, _MAX_PAUSE)


def _acquire_folder_flock(descriptor: int, folder: Path, busy_seconds: float) -> None:
    if sys.platform == "win32":
        return
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise StorageBusy(f"{folder} was locked for {busy_seconds:g} seconds.") from error
            time.sleep(_MIN_PAUSE)
        else:
            return


def _check_regular_files(path: Path) -> None:
    """Refuse anything but files: opening a pipe would block, and a link could redirect our writes."""
    for name in (path, *(path.with_name(path.name + suffix) for suffix in _SIDE_FILES)):
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(name.lstat().st_mode):
                raise DocumentInvalid(f"{name} is not a file.")


def _restrict_modes(path: Path) -> None:
    for name in (path, *(path.with_name(path.name + suffix) for suffix in _SIDE_FILES)):
        with suppress(OSError):
            if name.stat().st_mode & 0o077:
                name.chmod(0o600)


def _create_file(path: Path) -> None:
    """Create an empty file with mode 0600 if it does not exist."""
    if path.exists():
        return
    # a log left from a deleted database would be replayed into the new one
    for suffix in _SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _open(how: DatabaseOptions) -> sqlite3.Connection:
    # calls run one at a time, but not always in the same thread
    connection = sqlite3.connect(how.path, timeout=how.busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        # a file of another program is not changed, not even its mode
        taken = retry_while_busy(lambda: count_applied_steps(connection, how.schema), how.busy_seconds)
        if how.cache and 0 < taken < how.schema.rebuild_below:
            connection.close()
            _recreate_file(how.path)
            return _open(how)
        if how.cache:
            _check_whole_pages(connection, how.path)
        _restrict_modes(how.path)
        retry_while_busy(lambda: _switch_to_wal(connection, how.path), how.busy_seconds)
        connection.execute(f"PRAGMA synchronous = {how.synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        retry_while_busy(lambda: migrate(connection, how.schema, how.commit), how.busy_seconds)
        retry_while_busy(lambda: check_shape(connection, how.schema), how.busy_seconds)
        if how.verify:
            retry_while_busy(lambda: _check_integrity(connection, how.path), how.busy_seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def _recreate_file(path: Path) -> None:
    """Delete a database and its logs, and create an empty file."""
    for suffix in ("", *_SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    _create_file(path)


def _check_whole_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that ends within a page: the driver would read the missing bytes as zeros."""
    page = int(connection.execute("PRAGMA page_size").fetchone()[0])
    if path.stat().st_size % page:
        raise DocumentInvalid(f"{path} was cut off.")


def _check_integrity(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != ("ok",):
        raise DocumentInvalid(f"{path} is damaged: {found and found[0]}.")


def _switch_to_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StorageFailed(f"{path} lies on a file system without write-ahead logging (it says {mode!r}).")


def _translate_opening_error(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> StorageError:
    found = translate_driver_error(error, str(path))
    if isinstance(found, StorageFailed) and not os.access(path.parent, os.W_OK):
        return StorageReadOnly(f"{path} can't be written to.")
    return found


Connection: TypeAlias = sqlite3.Connection


class ExclusiveAccess:
    """Exclusive access to a database, within one call in a thread."""

    def __init__(self, how: DatabaseOptions, connection: sqlite3.Connection) -> None:
        """Use `Database.run_exclusive`."""
        self._options = how
        self._connection = connection

    def read(self, act: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return the result of `act`, as `Database.read` does."""
        return retry_while_busy(lambda: _run_read(self._connection, act), self._options.busy_seconds)

    def write(self, act: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `act` in one transaction, as `Database.write` does."""
        retry_while_busy(lambda: self._connection.execute("BEGIN IMMEDIATE"), self._options.busy_seconds)
        try:
            result = act(self._connection)
            self._options.commit(self._connection)
        except BaseException:
            _roll_back(self._connection)
            raise
        return result


class Database:
    """An open database.

    Every call may raise `StorageBusy`, `StorageFull`, `StorageReadOnly`, `StorageFailed`, and `DocumentInvalid` if the
    file is damaged, removed or replaced. `quarantined` is the new name of a damaged cache that was moved aside on
    opening.
    """

    def __init__(self, how: DatabaseOptions, connection: sqlite3.Connection, quarantined: str) -> None:
        """Wrap an open connection; use `Database.open`."""
        self.quarantined = quarantined
        self._options = how
        self._connection: sqlite3.Connection | None = connection
        """None while the database is closed, for good or until its next call."""
        self._is_closed = False
        self._use = threading.Lock()
        """Held by the thread that uses or closes the connection."""
        self._lock = anyio.Lock(fast_acquire=True)
        self._identity = _file_identity(how.path)
        self._size = 0
        _idle_closer.note_use(self)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        schema: Schema,
        busy_seconds: float = 30.0,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        commit: Commit | None = None,
        cache: bool = False,
        verify: bool = False,
        check: Callable[[], None] | None = None,
    ) -> "Database":
        """Open the database at `path`, creating and migrating it if necessary.

        `commit` ends each transaction instead of SQLite's own statement, so that a test can make it fail. With `cache`
        a damaged file is moved aside and created again. With `verify` the whole file is read to find damage, which
        takes time in proportion to its size. `check` raises if the folder has been replaced by another one: nothing is
        created there, and its error takes precedence over those of the file.

        Raises:
            DocumentInvalid: the file is damaged or not ours, and no cache.
            StorageReadOnly, StorageFull, StorageBusy, StorageFailed: it can't be used here now.
        """
        how = DatabaseOptions(
            path=path,
            schema=schema,
            busy_seconds=busy_seconds,
            synchronous=synchronous,
            commit=commit or commit_transaction,
            cache=cache,
            verify=verify,
            check=check or _no_check,
        )
        made: list[Database] = []

        def make() -> None:
            how.check()
            made.append(cls(how, *open_connection(how)))

        try:
            await run_in_thread(make)
        except BaseException:
            for database in made:
                await database.close()
            raise
        return made[0]

    async def read(self, act: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return the result of `act`; all of its statements see the same snapshot. It may run more than once."""
        return await self.run_exclusive(lambda turn: turn.read(act))

    async def write(self, act: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `act` in one transaction and return its result; an error rolls the transaction back."""
        return await self.run_exclusive(lambda turn: turn.write(act))

    async def run_exclusive(self, act: Callable[[ExclusiveAccess], _T]) -> _T:
        """Return the result of `act`, which runs once, off the event loop, while no other call uses the database.

        So several reads and writes take one call in a thread. They are not in one transaction.
        """

        def run() -> _T:
            with self._use:
                if self._is_closed:
                    raise StorageFailed(f"{self._options.path} is closed.")
                self._check_file()
                connection = self._connection = self._connection or self._reopen()
                _idle_closer.note_use(self)
                try:
                    return act(ExclusiveAccess(self._options, connection))
                except DRIVER_ERRORS as error:
                    raise translate_driver_error(error, str(self._options.path)) from error

        # the lock is held until the thread has ended, so no other call uses the connection
        async with self._lock:
            return await run_in_thread(run)

    async def quarantine(self) -> str:
        """Close a damaged database and rename it to `<name>.broken-<n>`; return that name, empty if it is gone."""
        await self.close()

        def move() -> str:
            try:
                with folder_lock(self._options.path.parent, self._options.busy_seconds):
                    # another process may have moved it aside and created a new one
                    return (
                        quarantine_database(self._options.path)
                        if _file_identity(self._options.path) == self._identity
                        else ""
                    )
            except OSError as error:
                raise translate_file_error(error, str(self._options.path)) from error

        return await run_in_thread(move)

    async def close(self) -> None:
        """Close the database; closing it again does nothing."""

        def close() -> None:
            with self._use:
                self._is_closed = True
                self._disconnect()

        async def close_in_turn() -> None:
            async with self._lock:
                await run_in_thread(close)

        await run_even_if_cancelled(close_in_turn)

    def close_until_used(self) -> None:
        """Close the connection, in this thread, unless a call uses it now; the next call opens it again."""
        if self._use.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._use.release()

    def _disconnect(self) -> None:
        _idle_closer.forget(self)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _reopen(self) -> sqlite3.Connection:
        """Return a new connection to the file that was opened. A damaged cache is reported, not created again."""
        how = replace(self._options, cache=False, verify=False)
        try:
            with folder_lock(how.path.parent, how.busy_seconds):
                self._check_file()
                return _open(how)
        except DRIVER_ERRORS as error:
            raise _translate_opening_error(error, how.path) from error
        except OSError as error:
            raise translate_file_error(error, str(how.path)) from error

    def _check_file(self) -> None:
        """Raise `DocumentInvalid` if the file is not the one that was opened, or was truncated since."""
        found = _stat_file(self._options.path)
        if _stat_identity(found) != self._identity:
            self._options.check()
            raise DocumentInvalid(f"{self._options.path} was removed or replaced while it was open.")
        size = found.st_size if found else 0
        # missing bytes are read as zeros, which the driver may not notice; we never shrink the file ourselves
        if size < self._size:
            raise DocumentInvalid(f"{self._options.path} was cut off while it was open.")
        self._size = size


class _IdleCloser:
    """Closes the databases that were not used for a second, the least recently used first, if more than 24 are open.

    Its thread runs only while there are more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used_at: WeakKeyDictionary[Database, float] = WeakKeyDictionary()
        """When each open database was used last, in this order."""
        self._is_running = False

    def note_use(self, database: Database) -> None:
        """Note that a database is open and used now."""
        with self._lock:
            self._used_at.pop(database, None)
            self._used_at[database] = time.monotonic()
            if self._is_running or len(self._used_at) <= _MAX_IDLE:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="ricordo-idle-databases", daemon=True).start()

    def forget(self, database: Database) -> None:
        """Note that a database is closed."""
        with self._lock:
            self._used_at.pop(database, None)

    def _run(self) -> None:
        while idle := self._wait_for_idle():
            for database in idle:
                if database is not None:
                    database.close_until_used()

    def _wait_for_idle(self) -> "list[Database | None]":
        """Return the databases to close, with None if all are in use; empty if no more than enough are open."""
        time.sleep(_IDLE_SECONDS)
        with self._lock:
            excess = len(self._used_at) - _MAX_IDLE
            self._is_running = excess > 0
            before = time.monotonic() - _IDLE_SECONDS
            oldest = islice(self._used_at.items(), max(0, excess))
            return [database if used_at < before else None for database, used_at in oldest]


_idle_closer = _IdleCloser()


def _no_check() -> None:
    """Do nothing."""


def _run_read(connection: sqlite3.Connection, act: Callable[[sqlite3.Connection], _T]) -> _T:
    connection.execute("BEGIN")
    try:
        return act(connection)
    finally:
        _roll_back(connection)


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _stat_file(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _file_identity(path: Path) -> tuple[int, int] | None:
    return _stat_identity(_stat_file(path))


def _stat_identity(found: os.stat_result | None) -> tuple[int, int] | None:
    return (found.st_dev, found.st_ino) if found else None
