"""Erasing from a database: rows are changed, and no page of the file keeps what they said before."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from ricordo.database.translate import translated

__all__ = ["MAGIC", "erase_rows"]

MAGIC = b"SQLite format 3\0"
"""What the file of a database begins with."""


def erase_rows(path: Path, change: Callable[[bytes], bytes], *, busy_seconds: float = 30.0) -> None:
    """Change every text and blob in the database at `path`, and write its file anew. It blocks on the disk.

    Raises: StorageBusy, StorageFailed and their siblings, DocumentInvalid for a damaged file.
    """
    try:
        connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
        try:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                _erase_table(connection, table, change)
            connection.execute("COMMIT")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise translated(error, str(path)) from error


def _erase_table(connection: sqlite3.Connection, table: str, change: Callable[[bytes], bytes]) -> None:
    name = table.replace('"', '""')
    try:
        cursor = connection.execute(f'SELECT rowid, * FROM "{name}"')
    except sqlite3.OperationalError:
        # a table without rows of its own, whose content stands in others
        return
    columns = [column[0].replace('"', '""') for column in cursor.description[1:]]
    for row_id, *values in cursor.fetchall():
        for column, value in zip(columns, values, strict=True):
            data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
            if isinstance(data, bytes) and (rest := change(data)) != data:
                stored = rest.decode("utf-8", "replace") if isinstance(value, str) else rest
                connection.execute(f'UPDATE "{name}" SET "{column}" = ? WHERE rowid = ?', (stored, row_id))
