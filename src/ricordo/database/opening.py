"""Opening a database file safely while other processes do the same.

What stands in a database's place and is none, such as a folder, a pipe or a link, is broken as a damaged file is.
Creating the file, switching it to write-ahead logging and migrating it happen under a lock on its folder, so that no
two openers meet half-way: SQLite's own busy handler does not cover the switch. The file and its -wal and -shm get
mode 0600.

Invariant: no descriptor of a database file is opened and closed here while this process may hold a connection to it, as
closing one drops every POSIX lock that the process holds on the file (https://www.sqlite.org/howtocorrupt.html, 2.2).
"""

import os
import sqlite3
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ricordo.database.migrations import Commit, Schema, migrate, check_shape, count_applied_steps
from ricordo.database.translate import DRIVER_ERRORS, is_busy_error, translate_driver_error, translate_file_error
from ricordo.errors import DocumentInvalid, StorageBusy, StorageError, StorageFailed, StorageReadOnly

if sys.platform != "win32":
    import fcntl

__all__ = ["DatabaseOptions", "open_connection", "folder_lock", "retry_while_busy", "quarantine_database"]

_SIDE_FILES = ("-wal", "-shm")
_MIN_PAUSE = 0.005
_MAX_PAUSE = 0.1
_opener_lock = threading.Lock()
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class DatabaseOptions:
    """How a database is opened.

    `cache` says that a broken one may be put aside and made anew, `verify` that all of it is read to find damage.
    `check` raises where the folder is not the one that it was.
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
    """Return a connection to the database, made and migrated if need be, and the name a broken one was put aside as.

    Raises:
        DocumentInvalid: the file is no database, is damaged, or belongs to another program, and is no cache.
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
    """Rename a database and its logs to `<name>.broken-<n>`, return that name; the caller holds the folder's lock."""
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
    """Hold the lock on `folder` that all openers of databases in it respect, in every thread and process.

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
    """Return what `act` returns, repeated as long as SQLite says that somebody else holds a lock."""
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
    """Refuse what is no file: a pipe would be waited for, and a link from a repository made us write elsewhere."""
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
    """Create an empty file with mode 0600 when there is none."""
    if path.exists():
        return
    # a log that outlived its database would be played back into the new one
    for suffix in _SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _open(how: DatabaseOptions) -> sqlite3.Connection:
    # every call runs on one thread at a time, though not always on the same one
    connection = sqlite3.connect(how.path, timeout=how.busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        # nothing of a file that is not ours is changed, not even its mode
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
    """Delete a database and its logs, and create an empty one."""
    for suffix in ("", *_SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    _create_file(path)


def _check_whole_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that ends within a page: what was cut off would be read as zeros, by no check of the driver."""
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
