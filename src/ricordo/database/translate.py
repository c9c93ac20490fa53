"""What SQLite says, in our words: one typed error for each thing that a caller can do something about.

Codes are SQLite's primary result codes (https://www.sqlite.org/rescode.html); an extended code carries its primary one
in the low byte.
"""

import errno
import sqlite3

from ricordo.errors import (
    DocumentInvalid,
    StorageBusy,
    StorageError,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
)

__all__ = ["DRIVER_ERRORS", "is_busy_error", "translate_driver_error", "translate_file_error"]

_BUSY, _LOCKED, _PROTOCOL = 5, 6, 15
_READ_ONLY, _CORRUPT, _FULL, _NOT_A_DATABASE = 8, 11, 13, 26

DRIVER_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What the driver raises: the second when a damaged name in the file is part of what SQLite says."""

_NOT_UTF8 = "Could not decode to UTF-8"


def translate_driver_error(error: sqlite3.Error | UnicodeDecodeError, path: str) -> StorageError:
    """Return the error to raise for a driver's `error`; `DocumentInvalid` means that the file itself is broken."""
    if isinstance(error, UnicodeDecodeError) or str(error).startswith(_NOT_UTF8):
        return DocumentInvalid(f"{path} is not a sound database: it holds text that is not UTF-8.")
    code = _primary_code(error)
    if is_busy_error(error):
        return StorageBusy(f"{path} is locked by another process.")
    if code == _READ_ONLY:
        return StorageReadOnly(f"{path} can't be written to.")
    if code == _FULL:
        return StorageFull(f"There is no room left for {path}.")
    if code in {_CORRUPT, _NOT_A_DATABASE}:
        return DocumentInvalid(f"{path} is not a sound database: {error}.")
    return StorageFailed(f"{path}: {error}.")


def translate_file_error(error: OSError, path: str) -> StorageError:
    """Return the error to raise when the operating system refuses the file or its folder."""
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return StorageReadOnly(f"{path} can't be written to: {error.strerror}.")
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFull(f"There is no room left for {path}.")
    return StorageFailed(f"{path}: {error.strerror or error}.")


def is_busy_error(error: sqlite3.Error) -> bool:
    """Tell whether waiting may help: another connection holds a lock."""
    return _primary_code(error) in {_BUSY, _LOCKED, _PROTOCOL}


def _primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code, 0 for an error of the Python module itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return (code or 0) & 0xFF
