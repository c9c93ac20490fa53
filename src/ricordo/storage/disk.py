"""Disk: the primitive operations of durable writing, and the exchange of a file's version made of them.

A process may die between any two of these operations. File stores and databases are given a `Disk`, so a test can pass
one that fails or kills the process at any operation.
"""

import ctypes
import errno
import os
import secrets
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from ricordo.errors import StorageError, StorageFailed, StorageFull, StorageReadOnly, VersionConflict
from ricordo.storage.contract import ABSENT, compute_version

__all__ = ["Disk", "remove_version", "replace_version", "temporary_path", "translate_os_error"]


if sys.platform == "darwin":
    import fcntl


_EXCHANGE, _NO_REPLACE = (2, 4) if sys.platform == "darwin" else (2, 1)
"""RENAME_SWAP and RENAME_EXCL of macOS, RENAME_EXCHANGE and RENAME_NOREPLACE of Linux."""
_AT_FDCWD = -100
_UNSUPPORTED_ERRORS = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Disk:
    """Thin wrappers around the operating system's primitives, without decisions."""

    def open(self, path: str, flags: int) -> int:
        """Open the file and return its descriptor; symbolic links are not followed."""
        return os.open(path, flags | _NO_FOLLOW)

    def make_file(self, path: str, flags: int = 0) -> int:
        """Create a new file with mode 0600, whatever the umask, and return its descriptor."""
        descriptor = os.open(path, flags | os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of `data`."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]

    def sync(self, descriptor: int) -> None:
        """Flush the file to the storage device; on macOS this requires F_FULLFSYNC."""
        if sys.platform == "darwin":
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fsync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Truncate the file to `size` bytes."""
        os.ftruncate(descriptor, size)

    def rename(self, source: str, target: str) -> None:
        """Rename `source` to `target`, replacing it atomically."""
        os.replace(source, target)

    def exchange(self, source: str, target: str) -> bool:
        """Exchange two files atomically; return False if the system or file system does not support it."""
        return _rename_with_flag(source, target, _EXCHANGE)

    def rename_new(self, source: str, target: str) -> bool:
        """Rename `source` to a new name atomically; return False if the system or file system does not support it.

        Raises: FileExistsError.
        """
        return _rename_with_flag(source, target, _NO_REPLACE)

    def unlink(self, path: str) -> None:
        """Remove the file name."""
        os.unlink(path)

    def make_folder(self, path: str) -> None:
        """Create one folder with mode 0700, whatever the umask."""
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder durable; a no-op on Windows, which has no such call."""
        if sys.platform == "win32":
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit the transaction of a database."""
        connection.execute("COMMIT")


_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY_ERRORS = {errno.EROFS, errno.EACCES, errno.EPERM}


def translate_os_error(error: OSError, path: str) -> StorageError:
    """Return the storage error for an error of the operating system on `path`."""
    if error.errno in _FULL_ERRORS:
        return StorageFull(f"There is no room to write {path}: free some space; nothing saved before is lost.")
    if error.errno in _READ_ONLY_ERRORS:
        return StorageReadOnly(f"{path} can't be written: {error.strerror}. Reading goes on.")
    return StorageFailed(f"{path}: {error.strerror or error}")


def _rename_with_flag(source: str, target: str, flag: int) -> bool:
    """Rename with the system call that takes flags; return False if it is not supported here."""
    call = _load_rename_call()
    if call is None:
        return False
    if call(os.fsencode(source), os.fsencode(target), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED_ERRORS:
        return False
    raise OSError(code, os.strerror(code), source, None, target)


@cache
def _load_rename_call() -> Callable[[bytes, bytes, int], int] | None:
    library = None if sys.platform == "win32" else ctypes.CDLL(None, use_errno=True)
    apple, linux = getattr(library, "renamex_np", None), getattr(library, "renameat2", None)
    if apple is not None:
        return lambda source, target, flag: int(apple(source, target, ctypes.c_uint(flag)))
    if linux is not None:
        here = ctypes.c_int(_AT_FDCWD)
        return lambda source, target, flag: int(linux(here, source, here, target, ctypes.c_uint(flag)))
    return None


def temporary_path(real: str) -> str:
    """Return the path of a temporary file in the folder of `real`; `sweep` removes abandoned ones."""
    folder, name = os.path.split(real)
    return os.path.join(folder, f".~{name[:100]}.{secrets.token_hex(6)}")


def replace_version(disk: Disk, temporary: str, real: str, expected: str) -> None:
    """Replace the version `expected` by the temporary file.

    Raises: VersionConflict if the file has another version, which is kept; OSError.
    """
    try:
        if expected == ABSENT:
            if not disk.rename_new(temporary, real):
                disk.rename(temporary, real)
            return
        if not disk.exchange(temporary, real):
            disk.rename(temporary, real)
            return
    except (FileExistsError, FileNotFoundError) as error:
        raise _edit_conflict(real) from error
    if _version_on_disk(disk, temporary) != expected:
        disk.exchange(temporary, real)
        raise _edit_conflict(real)
    # the file is written at this point; if the old one can't be removed, `sweep` removes it later
    with suppress(OSError):
        os.unlink(temporary)


def remove_version(disk: Disk, real: str, expected: str | None) -> None:
    """Remove the file, with `expected` only that version. Raises: as `replace_version`, and FileNotFoundError."""
    if not expected:
        disk.unlink(real)
        return
    temporary = temporary_path(real)
    disk.rename(real, temporary)
    if _version_on_disk(disk, temporary) != expected:
        if not disk.rename_new(temporary, real):
            disk.rename(temporary, real)
        raise _edit_conflict(real)
    try:
        disk.unlink(temporary)
    except OSError:
        with suppress(OSError):
            os.rename(temporary, real)
        raise


def _edit_conflict(real: str) -> VersionConflict:
    return VersionConflict(f"{os.path.basename(real)} was edited while it was written: read it again and repeat that.")


def _version_on_disk(disk: Disk, real: str) -> str | None:
    """Return the version of the file; None if it can't be read."""
    try:
        with open(disk.open(real, os.O_RDONLY), "rb") as file:
            return compute_version(file.read())
    except OSError:
        return None
