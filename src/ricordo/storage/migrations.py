"""Migrations: numbered steps that bring a database to the schema of this version of Ricordo.

`user_version` holds the number of the last step, `application_id` the owner of the schema.

Invariants: each step and its number are one transaction, so a kill leaves the database between two steps. A file of
another owner, or of a newer Ricordo, is not changed.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache

from ricordo.errors import DocumentInvalid, StorageFailed
from ricordo.lazy import dataclass

__all__ = ["Commit", "Schema", "check_shape", "commit_transaction", "count_applied_steps", "migrate"]


Commit = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The owner of a database, a number between 1 and 2^31 - 1, and its steps: each a tuple of SQL statements.

    A cache with fewer than `rebuild_below` steps is deleted and created again, so that none of its bytes remain.
    """

    owner: int
    steps: tuple[tuple[str, ...], ...]
    rebuild_below: int = 0


def commit_transaction(connection: sqlite3.Connection) -> None:
    """Commit the transaction, as durably as the connection's synchronous mode allows."""
    connection.execute("COMMIT")


def migrate(connection: sqlite3.Connection, schema: Schema, done: Commit) -> None:
    """Apply the missing steps, each in a transaction that `done` commits.

    Raises:
        DocumentInvalid: the file belongs to another program.
        StorageFailed: a newer Ricordo wrote it.
    """
    while (number := count_applied_steps(connection, schema)) < len(schema.steps):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if count_applied_steps(connection, schema) == number:
                _apply_step(connection, schema, number)
            done(connection)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _apply_step(connection: sqlite3.Connection, schema: Schema, number: int) -> None:
    for statement in schema.steps[number]:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {schema.owner}")
    connection.execute(f"PRAGMA user_version = {number + 1}")


def count_applied_steps(connection: sqlite3.Connection, schema: Schema) -> int:
    """Return the number of steps applied to the database, without changing it.

    Raises: DocumentInvalid, StorageFailed as `migrate` does.
    """
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    taken = int(connection.execute("PRAGMA user_version").fetchone()[0])
    holds_tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
    if owner != schema.owner and (owner or taken or holds_tables):
        raise DocumentInvalid("The database belongs to another program.")
    if taken > len(schema.steps):
        raise StorageFailed("The database was written by a newer version of Ricordo.")
    return taken


def check_shape(connection: sqlite3.Connection, schema: Schema) -> None:
    """Refuse a database that lacks a table, a column, an index or a trigger of its schema.

    Raises: DocumentInvalid. After this check our statements fail only for damage that SQLite reports.
    """
    missing = _expected_shape(schema) - _read_shape(connection)
    if missing:
        raise DocumentInvalid(f"The database lacks {', '.join(sorted(' '.join(part) for part in missing)[:3])}.")


@lru_cache
def _expected_shape(schema: Schema) -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for number in range(len(schema.steps)):
            _apply_step(connection, schema, number)
        return _read_shape(connection)


def _read_shape(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    """Return the type and name of each schema object, and the table, name and type of each column."""
    things: list[tuple[str, str]] = connection.execute("SELECT type, name FROM sqlite_master").fetchall()
    columns = [
        ("column", table, str(name), str(declared))
        for kind, table in things
        if kind == "table"
        for name, declared in connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    ]
    return frozenset([*things, *columns])
