"""One SQLite database: every call runs in turn, off the event loop, and nothing of the driver leaks out.

A read sees one snapshot. A write is one transaction that has the write lock from its first statement on; once begun
it runs to its end, whoever cancels its caller and however, and leaves no trace when it fails. A file that was
removed, replaced or cut off under its connection is reported by the next call, as writing on would be writing to
nowhere.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import anyio

from ricordo.database.migrations import Commit, Schema, commit_transaction
from ricordo.database.opening import (
    DatabaseOptions,
    open_connection,
    folder_lock,
    retry_while_busy,
    quarantine_database,
)
from ricordo.database.translate import DRIVER_ERRORS, translate_driver_error, translate_file_error
from ricordo.errors import DocumentInvalid, StorageFailed
from ricordo.uncut import run_even_if_cancelled, run_in_thread

__all__ = ["Commit", "Connection", "Database", "Schema", "ExclusiveAccess"]

Connection: TypeAlias = sqlite3.Connection
_T = TypeVar("_T")


class ExclusiveAccess:
    """A database in the thread that uses it, for as long as it does."""

    def __init__(self, how: DatabaseOptions, connection: sqlite3.Connection) -> None:
        """Use `Database.run_exclusive`."""
        self._options = how
        self._connection = connection

    def read(self, act: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what `act` reads, as `Database.read` does."""
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

    Every call may raise `StorageBusy`, `StorageFull`, `StorageReadOnly`, `StorageFailed`, and `DocumentInvalid` when
    the file is damaged, removed or replaced. `quarantined` is the name that a broken cache was put aside as on
    opening.
    """

    def __init__(self, how: DatabaseOptions, connection: sqlite3.Connection, quarantined: str) -> None:
        """Wrap an open connection; use `Database.open`."""
        self.quarantined = quarantined
        self._options = how
        self._connection: sqlite3.Connection | None = connection
        self._lock = anyio.Lock(fast_acquire=True)
        self._identity = _file_identity(how.path)
        self._size = 0

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
        """Open the database at `path`, creating and migrating it if need be.

        `commit` ends each transaction in place of SQLite's own statement, so that a test can make it fail. With
        `cache` a broken file is put aside and made anew. With `verify` all of the file is read to find damage, which
        takes time in proportion to its size. `check` raises where the folder is not the one that it was: nothing is
        made in another, and its error comes before those of the file.

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
        """Return what `act` reads; all of its statements see the same snapshot. It may be run more than once."""
        return await self.run_exclusive(lambda turn: turn.read(act))

    async def write(self, act: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `act` in one transaction and return what it returns; an error in it undoes everything it did."""
        return await self.run_exclusive(lambda turn: turn.write(act))

    async def run_exclusive(self, act: Callable[[ExclusiveAccess], _T]) -> _T:
        """Return what `act` returns, which is run once, off the event loop, while nobody else uses the database.

        So what is read, written and done besides takes one trip to a thread. It is in no transaction.
        """

        def run() -> _T:
            if self._connection is None:
                raise StorageFailed(f"{self._options.path} is closed.")
            self._check_file()
            try:
                return act(ExclusiveAccess(self._options, self._connection))
            except DRIVER_ERRORS as error:
                raise translate_driver_error(error, str(self._options.path)) from error

        # it has ended when this ends, so nobody else uses the connection meanwhile
        async with self._lock:
            return await run_in_thread(run)

    async def quarantine(self) -> str:
        """Close a broken database and rename it to `<name>.broken-<n>`; return that name, empty when it is gone."""
        await self.close()

        def move() -> str:
            try:
                with folder_lock(self._options.path.parent, self._options.busy_seconds):
                    # another process may have put it aside and made a new one
                    return (
                        quarantine_database(self._options.path)
                        if _file_identity(self._options.path) == self._identity
                        else ""
                    )
            except OSError as error:
                raise translate_file_error(error, str(self._options.path)) from error

        return await run_in_thread(move)

    async def close(self) -> None:
        """Close the database; a second time does nothing."""

        def close() -> None:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

        async def close_in_turn() -> None:
            async with self._lock:
                await run_in_thread(close)

        await run_even_if_cancelled(close_in_turn)

    def _check_file(self) -> None:
        """Raise `DocumentInvalid` for a file that is not the one that was opened, or has lost its end since."""
        found = _stat_file(self._options.path)
        if _stat_identity(found) != self._identity:
            self._options.check()
            raise DocumentInvalid(f"{self._options.path} was removed or replaced while it was open.")
        size = found.st_size if found else 0
        # what is cut off is read as zeros, and may be missed by no check of the driver; nothing here makes it shorter
        if size < self._size:
            raise DocumentInvalid(f"{self._options.path} was cut off while it was open.")
        self._size = size


def _no_check() -> None:
    """Check nothing."""


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
