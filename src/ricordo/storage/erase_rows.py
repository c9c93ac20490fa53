"""Erasing from a database: changes rows so that no page of the file keeps their old content."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from ricordo.lazy import dataclass
from ricordo.storage.sqlite import translate_driver_error

__all__ = ["SQLITE_MAGIC", "erase_rows", "read_values"]


SQLITE_MAGIC = b"SQLite format 3\0"
"""The first bytes of a database file."""


def erase_rows(path: Path, change: Callable[[bytes], bytes], *, busy_seconds: float = 30.0) -> None:
    """Apply `change` to every text and blob in the database at `path`, and rebuild the file. It blocks on the disk.

    The internal tables of a virtual table are changed only through the virtual table, and full-text indexes are
    rebuilt. A table without row ids is not changed. Raises: StorageBusy, StorageFailed and related errors;
    DocumentInvalid for a damaged file.
    """
    try:
        with closing(sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            virtual = _virtual(connection)
            for value in _iterate_values(connection, without=virtual):
                if (rest := change(value.data)) != value.data:
                    stored = rest.decode("utf-8", "replace") if value.is_text else rest
                    connection.execute(
                        f'UPDATE "{value.table}" SET "{value.column}" = ? WHERE rowid = ?', (stored, value.row)
                    )
            for name in virtual:
                # a full-text index keeps old words until it is rebuilt; other virtual tables have no such command
                with suppress(sqlite3.OperationalError):
                    connection.execute(f'INSERT INTO "{name}" ("{name}") VALUES (?)', ("rebuild",))
            connection.execute("COMMIT")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise translate_driver_error(error, str(path)) from error


def read_values(path: Path) -> list[bytes]:
    """Return every text and blob in the database at `path`. It blocks on the disk. Raises: as `erase_rows`."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return [value.data for value in _iterate_values(connection)]
    except sqlite3.Error as error:
        raise translate_driver_error(error, str(path)) from error


@dataclass(frozen=True)
class _StoredValue:
    table: str
    column: str
    row: int
    data: bytes
    is_text: bool


def _virtual(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the virtual tables, escaped for quotes."""
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'").fetchall()
    return [table.replace('"', '""') for (table,) in rows]


def _iterate_values(connection: sqlite3.Connection, *, without: Iterable[str] = ()) -> Iterator[_StoredValue]:
    """Yield the texts and blobs of every table except the internal tables of the virtual tables in `without`."""
    inside = tuple(f"{name}_" for name in without)
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        name = table.replace('"', '""')
        if name.startswith(inside):
            continue
        try:
            cursor = connection.execute(f'SELECT rowid, * FROM "{name}"')
        except sqlite3.OperationalError:
            # a table without row ids, or a virtual one of a module that is not available
            continue
        columns = [column[0].replace('"', '""') for column in cursor.description[1:]]
        for row, *values in cursor.fetchall():
            for column, value in zip(columns, values, strict=True):
                if isinstance(value, str):
                    yield _StoredValue(name, column, row, value.encode("utf-8", "surrogatepass"), is_text=True)
                elif isinstance(value, bytes):
                    yield _StoredValue(name, column, row, value, is_text=False)
