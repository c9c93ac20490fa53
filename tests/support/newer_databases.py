"""A database that can't be used and is no damage: a newer version of the program wrote it, so it is left alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

__all__ = ["INDEX_OWNER", "VECTORS_OWNER", "write_newer_database"]

INDEX_OWNER = 0x52494349
VECTORS_OWNER = 0x5249564D


def write_newer_database(path: Path, owner: int = INDEX_OWNER) -> None:
    """Put the database of a newer version at `path`, in place of what is there."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {owner}")
        connection.execute("PRAGMA user_version = 999")
