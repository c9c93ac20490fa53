"""Disk: the primitive operations of durable writing, and the exchange of a file's version made of them.

A process may die between any two of these operations. File stores and databases are given a `Disk`, so a test can pass
one that fails or kills the process at any operation.

A chained log is made of them, too: each line has the digest of the line before, and a head has that of the last one.
The lines lie in a file for each month; the head is written in place after them, and not synced: if the power fails, it
may lag behind, which is no break. Lines that are not synced may be lost then, which the check tells unless the head is
as old. A line that a killed process left half written is cut off by the next append. Several processes may append. An
append continues the chain where the head says it ended, so that a break stays visible for good.
"""

import ctypes
import errno
import os
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from ricordo.errors import (
    InvalidMessage,
    StorageBusy,
    StorageError,
    StorageFailed,
    StorageFull,
    StorageReadOnly,
    VersionConflict,
)
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import dumps, loads
from ricordo.storage.contract import ABSENT, compute_version

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue

__all__ = [
    "ChainedLine",
    "ChainedLog",
    "Disk",
    "remove_version",
    "replace_version",
    "temporary_path",
    "translate_os_error",
]


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


_HEAD, _LOCK = "head", "lock"
_MONTH_FILE = lazy_compile(r"\d{4}-\d\d\.jsonl")
_HEAD_TEXT = lazy_compile(rb"(\d{12}) ([0-9a-f]{32})\n")
_HEAD_BYTES = 46
_DIGEST_BYTES = 16
_TAIL_BYTES = 8_192
_BUSY_SECONDS = 10.0
_PAUSE_SECONDS = 0.005
_NAMED_BREAKS = 20


@dataclass(frozen=True, kw_only=True)
class ChainedLine:
    """One line: its file, its number in the log from 1, and its fields without those of the chain."""

    file: str
    number: int
    fields: "Mapping[str, JsonValue]"


@dataclass(frozen=True, kw_only=True)
class _End:
    """The number of the last line of a chain, 0 for none, and its digest."""

    number: int
    digest: str


class ChainedLog:
    """The log in `folder`, which the first append creates; its methods block on the disk.

    `key` makes the digests: without it nobody can add a line that fits. `check` is called before each append.
    """

    def __init__(
        self, folder: Path, key: bytes, *, disk: Disk | None = None, check: Callable[[], object] | None = None
    ) -> None:
        self._folder = folder
        self._key = key
        self._disk = disk or Disk()
        self._check = check

    def append(self, month: str, rows: "Sequence[Mapping[str, JsonValue]]", *, durable: bool = False) -> None:
        """Append a line for each of `rows` to the file of the `month`, such as `2026-11`.

        With `durable` they are synced. Raises: StorageError.
        """
        if self._check:
            self._check()
        try:
            if not self._folder.is_dir():
                with suppress(FileExistsError):
                    self._disk.make_folder(str(self._folder))
                    self._disk.sync_folder(str(self._folder.parent))
            lock = FileLock(str(self._folder / _LOCK), mode=0o600, thread_local=False)
            with lock.acquire(timeout=_BUSY_SECONDS, poll_interval=_PAUSE_SECONDS):
                self._append_locked(self._folder / f"{month}.jsonl", rows, durable=durable)
        except Timeout as error:
            raise StorageBusy(f"{self._folder} was locked by another process for {_BUSY_SECONDS:g} seconds.") from error
        except OSError as error:
            raise translate_os_error(error, str(self._folder)) from error

    def read(self) -> list[ChainedLine]:
        """Return the lines that can be read, in order; empty if there is no log. Raises: StorageError."""
        return [
            ChainedLine(file=name, number=number, fields=fields)
            for name, _, line in self._read_lines()
            if (parsed := _parse(line))
            for number, _, fields in [parsed]
        ]

    def find_breaks(self) -> tuple[str, ...]:
        """Return what of the chain does not hold, a few words for each, at most 20; empty if all of it holds.

        It finds a line that was changed, removed, added, or moved, and lines missing at the start or the end. Raises:
        StorageError.
        """
        return tuple(self._iter_breaks())[:_NAMED_BREAKS]

    def _iter_breaks(self) -> Iterator[str]:
        end, head = _End(number=0, digest=self._digest(b"")), self._read_head()
        is_headed = head is None or head.number == 0
        for name, line_number, line in self._read_lines():
            parsed, place = _parse(line), f"{name}:{line_number}"
            if parsed is None:
                yield f"{place} can't be read"
                end = _End(number=end.number + 1, digest=self._digest(line))
                continue
            number, previous, _ = parsed
            if number != end.number + 1:
                yield f"{place} is record {number}, where record {end.number + 1} should be"
            elif previous != end.digest:
                yield f"{place} does not follow from the record before, which was changed"
            end = _End(number=number, digest=self._digest(line))
            if head and head.number == number:
                is_headed = True
                if head.digest != end.digest:
                    yield f"{place} was changed"
        if head is None and end.number:
            yield f"{_HEAD} is missing or damaged"
        elif head and not is_headed:
            yield f"the records up to {head.number} are not all there; the last one is {end.number}"

    def _append_locked(self, path: Path, rows: "Sequence[Mapping[str, JsonValue]]", *, durable: bool) -> None:
        try:
            descriptor = self._disk.open(str(path), os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            os.close(self._disk.make_file(str(path)))
            self._disk.sync_folder(str(self._folder))
            descriptor = self._disk.open(str(path), os.O_RDWR | os.O_APPEND)
        try:
            end = self._find_end(descriptor)
            lines = list[bytes]()
            for row in rows:
                line = dumps({"n": end.number + 1, "prev": end.digest, **row}).encode("utf-8", "replace")
                end = _End(number=end.number + 1, digest=self._digest(line))
                lines.append(line + b"\n")
            self._disk.write(descriptor, b"".join(lines))
            if durable:
                self._disk.sync(descriptor)
        finally:
            os.close(descriptor)
        self._write_head(end)

    def _find_end(self, descriptor: int) -> _End:
        """Return where the chain ends, and cut off a line that was not written whole."""
        size = os.fstat(descriptor).st_size
        tail = os.pread(descriptor, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
        if tail.count(b"\n") < 2 and size > _TAIL_BYTES:
            tail = os.pread(descriptor, size, 0)
        whole, newline, torn = tail.rpartition(b"\n")
        if torn:
            self._disk.truncate(descriptor, size - len(torn))
        head = self._read_head()
        parsed = _parse(line := whole.rpartition(b"\n")[2]) if newline else None
        if parsed and head and parsed[0] > head.number:
            # whoever wrote it was killed before the head was written
            return _End(number=parsed[0], digest=self._digest(line))
        return head or self._begin()

    def _begin(self) -> _End:
        """Write the head of a new log, before its first line. Without its head, an old one goes on with a break."""
        numbers = [parsed[0] for _, _, line in self._read_lines() if (parsed := _parse(line))]
        if numbers:
            return _End(number=numbers[-1], digest=self._digest(_HEAD.encode()))
        end = _End(number=0, digest=self._digest(b""))
        self._write_head(end)
        return end

    def _read_lines(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield each line with its file and its number there; the end of a file that is no whole line is left out."""
        try:
            names = sorted(path.name for path in self._folder.iterdir() if _MONTH_FILE.fullmatch(path.name))
            for name in names:
                *lines, _ = (self._folder / name).read_bytes().split(b"\n")
                yield from ((name, number, line) for number, line in enumerate(lines, 1))
        except FileNotFoundError:
            return
        except OSError as error:
            raise translate_os_error(error, str(self._folder)) from error

    def _read_head(self) -> _End | None:
        try:
            match = _HEAD_TEXT.fullmatch((self._folder / _HEAD).read_bytes())
        except FileNotFoundError:
            return None
        return _End(number=int(match[1]), digest=match[2].decode("ascii")) if match else None

    def _write_head(self, end: _End) -> None:
        path, data = str(self._folder / _HEAD), f"{end.number:012d} {end.digest}\n".encode("ascii")
        try:
            descriptor = self._disk.open(path, os.O_WRONLY)
        except FileNotFoundError:
            descriptor = self._disk.make_file(path)
        try:
            self._disk.write(descriptor, data)
            if os.fstat(descriptor).st_size != _HEAD_BYTES:
                self._disk.truncate(descriptor, _HEAD_BYTES)
        finally:
            os.close(descriptor)

    def _digest(self, line: bytes) -> str:
        return blake2b(line, key=self._key, digest_size=_DIGEST_BYTES).hexdigest()


def _parse(line: bytes) -> "tuple[int, str, dict[str, JsonValue]] | None":
    """Return the number, the digest of the line before, and the fields of a line; None if it is not one."""
    try:
        row = loads(line)
    except (InvalidMessage, ValueError):
        return None
    if not isinstance(row, dict):
        return None
    number, previous = row.pop("n", None), row.pop("prev", None)
    if not isinstance(number, int) or isinstance(number, bool) or not isinstance(previous, str):
        return None
    return number, previous, row
