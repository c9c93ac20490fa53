"""A SQLite database that is only a cache: opened when needed, rebuilt when damaged, skipped when unusable.

Invariant: no database error is raised to the caller, who gets None instead. Rows that can't be decoded count as damage,
and the operation is repeated once with a new file.
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio

from ricordo.errors import DocumentInvalid, RicordoError, StorageError
from ricordo.search.tables import SCHEMA
from ricordo.storage.sqlite import Commit, Database, Schema

__all__ = ["CacheDatabase"]


_RETRY_SECONDS = 5.0
_CORRUPT_ROW_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError)
_T = TypeVar("_T")


class CacheDatabase:
    """The database at one path. `error` is why the last use failed, empty if it succeeded."""

    def __init__(
        self, path: Path, *, commit: Commit | None = None, busy_seconds: float = 5.0, schema: Schema = SCHEMA,
        check: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Prepare the database at `path` without opening it; its tables are those of the keyword index by default.

        `check` raises if the folder of the workspace has been replaced by another one.
        """
        self._check = check
        self.error = ""
        self._path = path
        self._commit = commit
        self._schema = schema
        self._busy_seconds = busy_seconds
        self._open_lock = anyio.Lock(fast_acquire=True)
        self._database: Database | None = None
        self._tried_at = -_RETRY_SECONDS
        self._quarantined_names: list[str] = []
        self._closed = False

    async def run(self, act: Callable[[Database], Awaitable[_T]], *, patient: bool = False) -> _T | None:
        """Return the result of `act`, None if the database can't be used now.

        A damaged or deleted database is created again and `act` is repeated once. If opening fails, it is tried again
        after five seconds, or at once if `patient`.
        """
        for is_made_anew in (False, True):
            database = await self._get_database(patient=patient)
            if database is None:
                return None
            try:
                result = await act(database)
            except DocumentInvalid as error:
                self.error = str(error)
                await self._discard(database)
            except StorageError as error:
                self.error = str(error)
                return None
            except _CORRUPT_ROW_ERRORS as error:
                if is_made_anew or isinstance(error, RicordoError):
                    raise
                self.error = f"{self._path} holds what can't be read: {error}."
                await self._discard(database)
            else:
                self.error = ""
                return result
        return None

    def pop_quarantined(self) -> str:
        """Return the new names of the damaged files moved aside since the last call, separated by commas."""
        names, self._quarantined_names = self._quarantined_names, []
        return ", ".join(names)

    async def close(self) -> None:
        """Close the database permanently."""
        self._closed = True
        async with self._open_lock:
            database, self._database = self._database, None
            if database is not None:
                await database.close()

    async def _get_database(self, *, patient: bool) -> Database | None:
        async with self._open_lock:
            recently = time.monotonic() - self._tried_at < _RETRY_SECONDS
            if self._database is None and not self._closed and (patient or not recently or not self.error):
                self._database = await self._open()
            return self._database

    async def _open(self) -> Database | None:
        self._tried_at = time.monotonic()
        try:
            database = await Database.open(
                self._path, schema=self._schema, busy_seconds=self._busy_seconds, commit=self._commit,
                cache=True, check=self._check,
            )  # fmt: skip
        except StorageError as error:
            self.error = str(error)
            return None
        if database.quarantined:
            self._quarantined_names.append(database.quarantined)
        return database

    async def _discard(self, database: Database) -> None:
        """Move a damaged database aside, unless another task already did."""
        async with self._open_lock:
            if self._database is not database:
                return
            self._database = None
            self._tried_at = -_RETRY_SECONDS
            try:
                name = await database.quarantine()
            except StorageError as error:
                self.error = str(error)
            else:
                self._quarantined_names += [name] if name else []
