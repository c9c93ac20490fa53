"""The database of a service: its tokens, and for a day the answers to requests that may be sent again."""

from pathlib import Path

import anyio

from ricordo.concurrency import run_in_thread
from ricordo.errors import DocumentInvalid
from ricordo.storage.sqlite import Connection, Database, Schema, translate_file_error

__all__ = ["Connection", "ServiceDatabase"]


_NAME = "service.sqlite3"
_BUSY_SECONDS = 10.0
_SCHEMA = Schema(
    owner=0x52635356,
    steps=(
        (
            """CREATE TABLE token (
                id TEXT PRIMARY KEY, digest TEXT NOT NULL, tenant TEXT NOT NULL, user TEXT NOT NULL, role TEXT NOT NULL,
                project TEXT, note TEXT NOT NULL, created REAL NOT NULL, expires REAL
            ) STRICT""",
            """CREATE TABLE answer (
                tenant TEXT NOT NULL, user TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, asked REAL NOT NULL,
                status INTEGER, headers TEXT, body BLOB, PRIMARY KEY (tenant, user, key)
            ) STRICT""",
            "CREATE INDEX answer_by_time ON answer (asked)",
        ),
    ),
)


class ServiceDatabase:
    """One SQLite file in the folder of a service, opened at its first use; several processes may use it."""

    def __init__(self, folder: Path) -> None:
        """Open nothing yet."""
        self._folder = folder
        self._database: Database | None = None
        self._lock = anyio.Lock()

    async def get(self) -> Database:
        """Return the open database; the folder and the file are created where they are missing. Raises: StorageError.

        What is deleted in it is overwritten, as an answer may hold the words of a memory.
        """
        async with self._lock:
            if self._database is None:
                await run_in_thread(self._make_folder)
                database = await self._open()
                await database.read(lambda connection: connection.execute("PRAGMA secure_delete = ON").fetchall())
                self._database = database
            return self._database

    async def _open(self) -> Database:
        path = self._folder / _NAME
        try:
            return await Database.open(path, schema=_SCHEMA, busy_seconds=_BUSY_SECONDS, synchronous="FULL")
        except DocumentInvalid as error:
            raise DocumentInvalid(f"{error} Restore it from a copy, or remove it and make new tokens.") from error

    async def close(self) -> None:
        """Close the file; the next use opens it again."""
        async with self._lock:
            database, self._database = self._database, None
            if database is not None:
                await database.close()

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise translate_file_error(error, str(self._folder)) from error
