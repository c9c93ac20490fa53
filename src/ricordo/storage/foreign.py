"""Databases of other programs, which are only read.

The other program may be running and writing. Nothing is created beside the file: where no log of writes lies there, it
is opened as one that nobody changes.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from ricordo.storage.sqlite import DRIVER_ERRORS, translate_driver_error

__all__ = ["is_database", "read_rows"]


_HEADER = b"SQLite format 3\0"
_BUSY_SECONDS = 5.0
_ROWS_AT_ONCE = 200


def is_database(path: Path) -> bool:
    """Return whether the file at `path` is a database of SQLite; False if it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def read_rows(path: Path, statement: str, parameters: Sequence[object] = ()) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a query, as of its beginning; they are not all in memory at once.

    Raises: DocumentInvalid for a damaged file; StorageBusy if it is locked for five seconds; StorageFailed, also if it
    lacks a table or a column of the query.
    """
    mode = "mode=ro" if Path(f"{path}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=_BUSY_SECONDS, check_same_thread=False)
        ) as connection:
            cursor = connection.execute(statement, parameters)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield from rows
    except DRIVER_ERRORS as error:
        raise translate_driver_error(error, str(path)) from error
