"""Erasing from a database: change rows so that no page of the file keeps their old content."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ricordo.database.translate import translated

__all__ = ["MAGIC", "erase_rows", "read_values"]

MAGIC = b"SQLite format 3\0"
"""The first bytes of a database file."""


def erase_rows(path: Path, change: Callable[[bytes], bytes], *, busy_seconds: float = 30.0) -> None:
    """Apply `change` to every text and blob in the database at `path`, and rebuild the file. It blocks on the disk.

    Raises: StorageBusy, StorageFailed and their siblings, DocumentInvalid for a damaged file.
    """
    try:
        with closing(sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            for value in _values(connection):
                if (rest := change(value.data)) != value.data:
                    stored = rest.decode("utf-8", "replace") if value.is_text else rest
                    connection.execute(
                        f'UPDATE "{value.table}" SET "{value.column}" = ? WHERE rowid = ?', (stored, value.row)
                    )
            connection.execute("COMMIT")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise translated(error, str(path)) from error


def read_values(path: Path) -> list[bytes]:
    """Return every text and blob in the database at `path`. It blocks on the disk. Raises: as `erase_rows`."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return [value.data for value in _values(connection)]
    except sqlite3.Error as error:
        raise translated(error, str(path)) from error


@dataclass(frozen=True)
class _Value:
    table: str
    column: str
    row: int
    data: bytes
    is_text: bool


def _values(connection: sqlite3.Connection) -> Iterator[_Value]:
    # table by table: virtual tables, which can't be written, show the content of others
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        name = table.replace('"', '""')
        try:
            cursor = connection.execute(f'SELECT rowid, * FROM "{name}"')
        except sqlite3.OperationalError:
            # a virtual table, whose content is in other tables
            continue
        columns = [column[0].replace('"', '""') for column in cursor.description[1:]]
        for row, *values in cursor.fetchall():
            for column, value in zip(columns, values, strict=True):
                if isinstance(value, str):
                    yield _Value(name, column, row, value.encode("utf-8", "surrogatepass"), is_text=True)
                elif isinstance(value, bytes):
                    yield _Value(name, column, row, value, is_text=False)
