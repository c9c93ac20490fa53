"""The index's database as a thing that may fail: opened when needed, made anew when damaged, else done without.

Invariant: no error of the database leaves here; whoever uses it gets None and reads the files instead. Rows of another
kind than were written are damage too: what fails on them is tried again with a new file, and an error of the program
itself fails there as well.
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio

from ricordo.database.sqlite import Commit, Database, Schema
from ricordo.errors import DocumentInvalid, RicordoError, StorageError
from ricordo.index.tables import SCHEMA

__all__ = ["IndexFile"]

_RETRY_SECONDS = 5.0
_ODD_ROWS = (ArithmeticError, LookupError, TypeError, ValueError)
_T = TypeVar("_T")


class IndexFile:
    """The database at one path. `trouble` says why it could not be used last time, empty when it could."""

    def __init__(
        self, path: Path, *, commit: Commit | None = None, busy_seconds: float = 5.0, schema: Schema = SCHEMA,
        check: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Prepare the database at `path` without touching it; its tables are those of the keyword index by default.

        `check` raises where the folder of the workspace is not the one that it was.
        """
        self._check = check
        self.trouble = ""
        self._path = path
        self._commit = commit
        self._schema = schema
        self._busy_seconds = busy_seconds
        self._opening = anyio.Lock(fast_acquire=True)
        self._database: Database | None = None
        self._tried_at = -_RETRY_SECONDS
        self._put_aside: list[str] = []
        self._closed = False

    async def use(self, act: Callable[[Database], Awaitable[_T]], *, patient: bool = False) -> _T | None:
        """Return what `act` returns, None when the database can't be used now.

        A database that turns out to be damaged or gone is made anew and `act` repeated once. One that could not be
        opened is tried again after five seconds, at once when `patient`.
        """
        for is_made_anew in (False, True):
            database = await self._ready(patient=patient)
            if database is None:
                return None
            try:
                result = await act(database)
            except DocumentInvalid as error:
                self.trouble = str(error)
                await self._discard(database)
            except StorageError as error:
                self.trouble = str(error)
                return None
            except _ODD_ROWS as error:
                if is_made_anew or isinstance(error, RicordoError):
                    raise
                self.trouble = f"{self._path} holds what can't be read: {error}."
                await self._discard(database)
            else:
                self.trouble = ""
                return result
        return None

    def quarantined(self) -> str:
        """Return the names that damaged files were put aside as since the last call, with commas."""
        names, self._put_aside = self._put_aside, []
        return ", ".join(names)

    async def close(self) -> None:
        """Close the database for good."""
        self._closed = True
        async with self._opening:
            database, self._database = self._database, None
            if database is not None:
                await database.close()

    async def _ready(self, *, patient: bool) -> Database | None:
        async with self._opening:
            recently = time.monotonic() - self._tried_at < _RETRY_SECONDS
            if self._database is None and not self._closed and (patient or not recently or not self.trouble):
                self._database = await self._opened()
            return self._database

    async def _opened(self) -> Database | None:
        self._tried_at = time.monotonic()
        try:
            database = await Database.open(
                self._path, schema=self._schema, busy_seconds=self._busy_seconds, commit=self._commit,
                cache=True, check=self._check,
            )  # fmt: skip
        except StorageError as error:
            self.trouble = str(error)
            return None
        if database.quarantined:
            self._put_aside.append(database.quarantined)
        return database

    async def _discard(self, database: Database) -> None:
        """Put a damaged database aside, unless another task did so before."""
        async with self._opening:
            if self._database is not database:
                return
            self._database = None
            self._tried_at = -_RETRY_SECONDS
            try:
                name = await database.put_aside()
            except StorageError as error:
                self.trouble = str(error)
            else:
                self._put_aside += [name] if name else []
