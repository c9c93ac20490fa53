"""A directory as a file store: atomic, durable, private, and confined to its root.

A file is replaced by exchanging it with a temporary one. The replaced version is compared afterwards, as editors do not
use our locks. On systems without an atomic exchange, an edit at that moment is lost. A write holds a lock: a file next
to the data, locked by one thread or process of a root at a time. It locks the same files as `filelock`, so the two
exclude each other, but costs less than the write that it protects. Without `flock`, filelock is used.

Invariants: a crash leaves the old file or the new one. No symbolic link leads out of the root.
"""

import os
import secrets
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from errno import EACCES, EAGAIN, ENOSYS, EWOULDBLOCK
from functools import lru_cache, partial
from pathlib import Path
from typing import ParamSpec, TypeVar
from zlib import crc32

import anyio
import anyio.to_thread
from filelock import FileLock, Timeout

from ricordo.concurrency import run_even_if_cancelled, run_in_thread
from ricordo.errors import (
    AlreadyExists,
    FileMissing,
    PathRefused,
    StorageBusy,
    StorageError,
    StorageFailed,
    VersionConflict,
)
from ricordo.lazy import lazy_compile
from ricordo.storage.contract import ABSENT, AppendedRange, FileInfo, StoredFile, compute_version, safe_path
from ricordo.storage.disk import Disk, translate_os_error

__all__ = ["LocalFiles", "hold_lock", "remove_version", "replace_version", "temporary_path"]


if sys.platform != "win32":
    import fcntl


_PAUSE_SECONDS = 0.002
_OPEN_FLAGS = os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LOCKED_ERRORS = {EACCES, EAGAIN, EWOULDBLOCK}


@contextmanager
def hold_lock(path: str, busy_seconds: float) -> Iterator[None]:
    """Hold the lock file at `path`, which is created if necessary; its folder must exist.

    Raises: Timeout if it was not free within `busy_seconds`; OSError.
    """
    descriptor = None if sys.platform == "win32" else _acquire_flock(path, time.monotonic() + busy_seconds)
    if descriptor is None:
        lock = FileLock(path, mode=0o600, thread_local=False)
        with lock.acquire(busy_seconds, poll_interval=_PAUSE_SECONDS):
            yield
        return
    try:
        yield
    finally:
        _release_flock(descriptor)


def _acquire_flock(path: str, deadline: float) -> int | None:
    """Return a descriptor that holds the lock, None if the file system does not support such locks."""
    while True:
        descriptor = _open_lock_file(path)
        try:
            held = _try_flock(descriptor)
        except BaseException as error:
            os.close(descriptor)
            if isinstance(error, OSError) and error.errno == ENOSYS:
                return None
            raise
        if held:
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise Timeout(path)
        time.sleep(_PAUSE_SECONDS)


def _open_lock_file(path: str) -> int:
    try:
        return os.open(path, _OPEN_FLAGS)
    except FileNotFoundError:
        pass
    try:
        descriptor = os.open(path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _open_lock_file(path)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _try_flock(descriptor: int) -> bool:
    """Take the lock if it is free; return False also if the file was removed, as such a lock excludes nobody."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _LOCKED_ERRORS:
            return False
        raise
    return os.fstat(descriptor).st_nlink > 0


def _release_flock(descriptor: int) -> None:
    # a forked child has the descriptor too: closing ours would not release the lock
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


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


_TEMPORARY_NAME = lazy_compile(r"\.~.*\.[0-9a-f]{12}")
_STALE_SECONDS = 3600
_LOCK_STRIPES = 64
_NAME_CACHE_SIZE = 16_384
_P = ParamSpec("_P")
_T = TypeVar("_T")


class LocalFiles:
    """Files below the folder `root`; lock files are in `locks`, by default its own `locks/`."""

    def __init__(
        self, root: Path, *, locks: Path | None = None, disk: Disk | None = None, busy_seconds: float = 30.0
    ) -> None:
        """Use the folder `root`, which the first write creates, and wait at most `busy_seconds` for a lock."""
        self._root = os.path.realpath(root)
        self._locks = os.path.realpath(locks) if locks else os.path.join(self._root, "locks")
        self._own_locks = locks is None
        self._disk = disk or Disk()
        self._busy_seconds = busy_seconds

    async def read(self, path: str) -> StoredFile:
        """Return the whole file. Raises `FileMissing`."""
        data = await _run_in_thread(self._read, path, 0, None)
        return StoredFile(data=data, version=compute_version(data))

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `offset` on. Raises `FileMissing`."""
        return await _run_in_thread(self._read, path, offset, length)

    async def info(self, path: str) -> FileInfo | None:
        """Return the metadata of the file, or None if it does not exist."""
        return await _run_in_thread(self._info, path)

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append `data` durably, starting on a new line."""
        return await _run_in_thread(self.append_blocking, path, data, header=header)

    def append_blocking(
        self, path: str, data: bytes, *, header: bytes = b"", busy_seconds: float | None = None
    ) -> AppendedRange:
        """Do what `append` does, from a thread that may wait for the disk."""
        with self._write_lock(path, busy_seconds) as real:
            if not os.path.exists(real):
                with suppress(VersionConflict):
                    self._write_file(real, header, ABSENT)
            descriptor = self._disk.open(real, os.O_RDWR | os.O_APPEND)
            try:
                offset = self._append_line(descriptor, data)
                info = _file_info(safe_path(path), os.fstat(descriptor))
                return AppendedRange(offset=offset, length=len(data), info=info)
            finally:
                os.close(descriptor)

    async def create(self, path: str, data: bytes) -> str:
        """Write a new file. Raises `AlreadyExists`."""
        try:
            return await _run_in_thread(self._replace, path, data, ABSENT)
        except VersionConflict as error:
            raise AlreadyExists(f"{path} exists already and was left unchanged.") from error

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        """Replace the version `expected` atomically. Raises `VersionConflict`."""
        return await _run_in_thread(self._replace, path, data, expected)

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        """Delete the file. Raises `FileMissing`, `VersionConflict`."""
        await _run_in_thread(self._delete, path, expected)

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders below `prefix` that `list` leaves out because they can't be read, sorted."""
        return await _run_in_thread(self._list_unreadable, prefix)

    async def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files below `prefix`, sorted by path, without symbolic links."""
        return [*await _run_in_thread(self._list_files, prefix)]

    def list_blocking(self, prefix: str = "") -> tuple[FileInfo, ...]:
        """Return what `list` returns, from a thread that may wait for the disk."""
        return self._list_files(prefix)

    async def list_paths(self, prefix: str) -> tuple[str, ...]:
        """Return the paths of the files below the folder `prefix`, unsorted, without reading their metadata."""
        return await _run_in_thread(self._list_paths, safe_path(prefix))

    async def sweep(self) -> int:
        """Remove temporary files older than an hour that a killed process left; return how many."""
        return await _run_in_thread(self._sweep)

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Hold the lock `name` across processes and tasks. Raises `StorageBusy`."""
        held = self._named_lock(safe_path(name))
        deadline = time.monotonic() + self._busy_seconds
        pause = 0.001
        try:
            free = await _run_in_thread(self._try_lock, held)
            while not free:
                if time.monotonic() > deadline:
                    raise StorageBusy(f"The lock {name} was not free within {self._busy_seconds:g} seconds.")
                await anyio.sleep(pause)
                pause = min(pause * 2, 0.05)
                free = await _run_in_thread(_try_acquire, held)
            yield
        finally:
            # the call may have been cancelled while a thread took the lock
            if held.is_locked:
                await run_even_if_cancelled(partial(anyio.to_thread.run_sync, held.release))

    def _resolve(self, path: str) -> str:
        """Return the path on disk. Raises: PathRefused if a symbolic link leads out of the root or of its top folder.

        The check of the top folder keeps a link in the workspace from reaching the root's key or history.
        """
        safe = safe_path(path)
        named = os.path.join(self._root, safe)
        real = os.path.realpath(named)
        if real == named:
            return real
        top = os.path.realpath(os.path.join(self._root, safe.partition("/")[0]))
        for inside, folder in ((top, self._root), (real, top)):
            if inside != folder and not inside.startswith(folder + os.sep):
                raise PathRefused(f"{path} leads out of the workspace through a symbolic link.")
        return real

    def _read(self, path: str, offset: int, length: int | None) -> bytes:
        real = self._resolve(path)
        try:
            # the descriptor of a folder would stay open, and opening a pipe would wait for its writer
            if not stat.S_ISREG(os.stat(real).st_mode):
                raise FileMissing(f"{path} is not a file.")
            with open(self._disk.open(real, os.O_RDONLY), "rb") as file:
                file.seek(offset)
                return file.read() if length is None else file.read(length)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileMissing(f"There is no file {path}.") from error
        except OSError as error:
            raise _read_error(error, path) from error

    def _info(self, path: str) -> FileInfo | None:
        try:
            found = os.stat(self._resolve(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _read_error(error, path) from error
        return _file_info(safe_path(path), found)

    def _append_line(self, descriptor: int, data: bytes) -> int:
        """Append `data` on a new line and return its offset."""
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        try:
            self._disk.write(descriptor, b"\n" + data if torn else data)
            self._disk.sync(descriptor)
        except OSError:
            with suppress(OSError):
                self._disk.truncate(descriptor, size)
            raise
        return size + torn

    def _replace(self, path: str, data: bytes, expected: str) -> str:
        with self._write_lock(path) as real:
            self._check_version(path, expected)
            self._write_file(real, data, expected)
        return compute_version(data)

    def _delete(self, path: str, expected: str | None) -> None:
        if expected is None and self._info(path) is None:
            raise FileMissing(f"There is no file {path}.")
        with self._write_lock(path) as real:
            if expected is not None:
                self._check_version(path, expected)
            try:
                remove_version(self._disk, real, expected)
            except FileNotFoundError as error:
                raise FileMissing(f"There is no file {path}.") from error
            self._disk.sync_folder(os.path.dirname(real))

    def _check_version(self, path: str, expected: str) -> None:
        try:
            found = compute_version(self._read(path, 0, None))
        except FileMissing:
            found = ABSENT
        if found != expected:
            raise VersionConflict(f"{path} changed since it was read: read it again and repeat the edit.")

    def _write_file(self, real: str, data: bytes, expected: str) -> None:
        """Write the file through a temporary one: a crash leaves the old file or the new one.

        Raises: VersionConflict if a program without our locks changed the file since it was checked.
        """
        folder = os.path.dirname(real)
        temporary = temporary_path(real)
        descriptor = self._disk.make_file(temporary)
        try:
            try:
                self._disk.write(descriptor, data)
                self._disk.sync(descriptor)
            finally:
                os.close(descriptor)
            replace_version(self._disk, temporary, real, expected)
        except (OSError, VersionConflict):
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self._disk.sync_folder(folder)

    @contextmanager
    def _write_lock(self, path: str, busy_seconds: float | None = None) -> Iterator[str]:
        """Hold the lock of the path, with its folder created, and translate errors of the operating system."""
        real = self._resolve(path)
        if real == self._root:
            raise PathRefused("The root itself is not a file.")
        busy_seconds = self._busy_seconds if busy_seconds is None else busy_seconds
        stripe = crc32(real.encode("utf-8", "surrogateescape")) % _LOCK_STRIPES
        try:
            self._make_folders(os.path.dirname(real))
            self._make_lock_folder()
            with hold_lock(self._lock_path(f"files-{stripe:02x}"), busy_seconds):
                yield real
        except Timeout as error:
            raise StorageBusy(f"{path} was locked by another process for {busy_seconds:g} seconds.") from error
        except OSError as error:
            raise translate_os_error(error, path) from error

    def _make_folders(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        parent = os.path.dirname(folder)
        self._make_folders(parent)
        try:
            self._disk.make_folder(folder)
        except FileExistsError:
            return
        self._disk.sync_folder(parent)

    def _named_lock(self, name: str) -> FileLock:
        return FileLock(self._lock_path(name), mode=0o600, thread_local=False)

    def _lock_path(self, name: str) -> str:
        return os.path.join(self._locks, f"{name}.lock")

    def _try_lock(self, lock: FileLock) -> bool:
        self._make_lock_folder()
        return _try_acquire(lock)

    def _make_lock_folder(self) -> None:
        # a root inside a cloned repository must not redirect our writes
        if self._own_locks and os.path.islink(self._locks):
            raise PathRefused("The folder locks/ of a root must not be a symbolic link: remove it.")
        try:
            self._make_folders(self._locks)
        except OSError as error:
            raise translate_os_error(error, "locks") from error

    def _list_files(self, prefix: str) -> tuple[FileInfo, ...]:
        closed: list[str] = []
        found = sorted(_walk(self._resolve(prefix), safe_path(prefix), closed), key=lambda info: info.path)
        if not found and set(closed) == {safe_path(prefix)}:
            raise StorageFailed(f"The folder {prefix or '/'} can't be read.")
        return tuple(found)

    def _list_unreadable(self, prefix: str) -> tuple[str, ...]:
        closed: list[str] = []
        for _ in _walk(self._resolve(prefix), safe_path(prefix), closed):
            pass
        return tuple(sorted(set(closed)))

    def _list_paths(self, prefix: str) -> tuple[str, ...]:
        walked = ((os.path.relpath(top, self._root), names) for top, _, names in os.walk(self._resolve(prefix)))
        return tuple(f"{folder.replace(os.sep, '/')}/{name}" for folder, names in walked for name in names)

    def _sweep(self) -> int:
        before = time.time() - _STALE_SECONDS
        removed = 0
        for folder, _, names in os.walk(self._root):
            for path in (os.path.join(folder, name) for name in names if _TEMPORARY_NAME.fullmatch(name)):
                # another process may rename or remove its own file at any moment
                with suppress(OSError):
                    if os.path.getmtime(path) < before:
                        os.unlink(path)
                        removed += 1
        return removed


def _walk(folder: str, path: str, closed: list[str]) -> Iterator[FileInfo]:
    """Yield the files below `folder`; an unreadable folder is added to `closed` and the others are still listed."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        closed.append(path)
        return
    for entry in entries:
        inside = f"{path}/{entry.name}" if path else entry.name
        if not _is_safe(inside):
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, inside, closed)
            elif entry.is_file(follow_symlinks=False) and not _TEMPORARY_NAME.fullmatch(entry.name):
                found = entry.stat(follow_symlinks=False)
                yield FileInfo(
                    path=inside, size=found.st_size, modified_ns=found.st_mtime_ns, changed_ns=_change_time_ns(found)
                )
        except FileNotFoundError:
            continue
        except OSError:
            closed.append(path)


@lru_cache(maxsize=_NAME_CACHE_SIZE)
def _is_safe(path: str) -> bool:
    """Return whether the name of an existing file is one that `safe_path` accepts."""
    try:
        return safe_path(path) == path
    except PathRefused:
        return False


def _file_info(path: str, found: os.stat_result) -> FileInfo:
    # programs can set the modification time, but not the change time
    stamp = f"{found.st_ino}-{found.st_ctime_ns}"
    return FileInfo(
        path=path, size=found.st_size, modified_ns=found.st_mtime_ns, changed_ns=_change_time_ns(found), stamp=stamp
    )


def _change_time_ns(found: os.stat_result) -> int:
    """Return the time of the last change; 0 on Windows, where it would be the creation time."""
    return 0 if sys.platform == "win32" else found.st_ctime_ns


def _read_error(error: OSError, path: str) -> StorageError:
    return StorageFailed(f"{path} can't be read: {error.strerror or error}.")


def _try_acquire(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        raise translate_os_error(error, "locks") from error
    return True


async def _run_in_thread(act: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return the result of `act`. It never returns before the thread has ended, so no lock is released too early."""
    return await run_in_thread(partial(act, *args, **kwargs))
