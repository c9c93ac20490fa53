"""A directory as a file store: atomic, durable, private, and confined to its root.

A file is replaced by exchanging it with a temporary one. The replaced version is compared afterwards, as editors do not
use our locks. On systems without an atomic exchange, an edit at that moment is lost. A write holds a lock: a file next
to the data, locked by one thread or process of a root at a time. It locks the same files as `filelock`, so the two
exclude each other. Whoever waits by trying again loses against a writer that takes the lock again and again; so a wait
blocks in the operating system, which hands the lock on in about the order of arrival, in a thread of its own, as a
thread that blocks can't be cancelled. Without `flock`, filelock is used.

Invariants: a crash leaves the old file or the new one. No symbolic link leads out of the root.
"""

import os
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from errno import EACCES, EAGAIN, ENOSYS, EWOULDBLOCK
from functools import lru_cache, partial
from pathlib import Path
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
from ricordo.storage.disk import Disk, remove_version, replace_version, temporary_path, translate_os_error

__all__ = ["LocalFiles", "QueuedLock", "hold_lock"]


if sys.platform != "win32":
    import fcntl


_PAUSE_SECONDS = 0.001
_STEP_SECONDS = 0.05
"""The longest wait between two looks at the clock."""
_OPEN_FLAGS = os.O_RDWR | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LOCKED_ERRORS = {EACCES, EAGAIN, EWOULDBLOCK}


@contextmanager
def hold_lock(path: str, busy_seconds: float) -> Iterator[None]:
    """Hold the lock file at `path`, which is created if necessary; its folder must exist.

    Raises: Timeout if it was not free within `busy_seconds`; OSError.
    """
    lock = QueuedLock(path)
    try:
        if not lock.try_acquire():
            lock.wait(busy_seconds)
        yield
    finally:
        lock.release()


class QueuedLock:
    """One attempt to hold the lock file at `path`, which is created if necessary; its folder must exist.

    It is used by one caller, once. `release` ends it in each of its states.
    """

    def __init__(self, path: str) -> None:
        """Begin without the lock."""
        self.path = path
        self._mutex = threading.Lock()
        self._descriptor: int | None = None
        self._waiting: threading.Thread | None = None
        self._fallback: FileLock | None = None
        self._error: OSError | None = None
        self._is_given_up = False
        self.is_begun = False

    @property
    def is_held(self) -> bool:
        """Whether the caller holds the lock. Raises: OSError if waiting for it failed."""
        if self._error is not None:
            raise self._error
        return self._descriptor is not None or (self._fallback is not None and self._fallback.is_locked)

    @property
    def is_queued(self) -> bool:
        """Whether the system tells when the lock is held; else `try_acquire` has to be called again."""
        return self._waiting is not None

    def try_acquire(self) -> bool:
        """Take the lock if it is free, and return whether it is held. Raises: OSError."""
        self.is_begun = True
        if self._fallback is None and sys.platform != "win32":
            try:
                self._descriptor = _open_locked(self.path, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno != ENOSYS:
                    raise
            else:
                return self._descriptor is not None
        return self._try_fallback()

    def join_queue(self) -> None:
        """Wait for the lock in a thread, unless the system has no queue; `is_held` tells when it is held."""
        if self._fallback is None:
            self._waiting = threading.Thread(target=self._wait_in_queue, name="ricordo lock", daemon=True)
            self._waiting.start()

    def wait(self, seconds: float) -> None:
        """Block until the lock is held. Raises: Timeout if it was not free within `seconds`; OSError."""
        deadline = time.monotonic() + seconds
        while not self.is_held:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Timeout(self.path)
            if self._waiting is not None:
                self._waiting.join(min(left, _STEP_SECONDS))
            elif self._fallback is None:
                self.join_queue()
            elif not self._try_fallback():
                time.sleep(_PAUSE_SECONDS)

    def release(self) -> None:
        """Release the lock if it is held, and stop waiting for it."""
        with self._mutex:
            self._is_given_up = True
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _release(descriptor)
        if self._fallback is not None:
            self._fallback.release()

    def _try_fallback(self) -> bool:
        if self._fallback is None:
            self._fallback = FileLock(self.path, mode=0o600, thread_local=False)
        try:
            self._fallback.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def _wait_in_queue(self) -> None:
        try:
            descriptor = None
            while descriptor is None:
                descriptor = _open_locked(self.path, fcntl.LOCK_EX)
        except OSError as error:
            self._error = error
            return
        with self._mutex:
            if not self._is_given_up:
                self._descriptor = descriptor
                return
        _release(descriptor)


def _open_locked(path: str, operation: int) -> int | None:
    """Return a descriptor that holds the lock; None if it is taken.

    It is None also if the file was removed meanwhile, as such a lock excludes nobody. Raises: OSError, with ENOSYS if
    the file system does not support such locks.
    """
    descriptor = _open_lock_file(path)
    try:
        _lock_file(descriptor, operation)
        if os.fstat(descriptor).st_nlink > 0:
            return descriptor
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError) and error.errno in _LOCKED_ERRORS:
            return None
        raise
    os.close(descriptor)
    return None


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


def _lock_file(descriptor: int, operation: int) -> None:
    fcntl.flock(descriptor, operation)


def _release(descriptor: int) -> None:
    # a forked child has the descriptor too: closing ours would not release the lock
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


_TEMPORARY_NAME = lazy_compile(r"\.~.*\.[0-9a-f]{12}")
_STALE_SECONDS = 3600
_LOCK_STRIPES = 64
_NAME_CACHE_SIZE = 16_384


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
        data = await run_in_thread(self._read, path, 0, None)
        return StoredFile(data=data, version=compute_version(data))

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `offset` on. Raises `FileMissing`."""
        return await run_in_thread(self._read, path, offset, length)

    async def info(self, path: str) -> FileInfo | None:
        """Return the metadata of the file, or None if it does not exist."""
        return await run_in_thread(self._info, path)

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append `data` durably, starting on a new line."""
        return await run_in_thread(partial(self.append_blocking, path, data, header=header))

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
            return await run_in_thread(self._replace, path, data, ABSENT)
        except VersionConflict as error:
            raise AlreadyExists(f"{path} exists already and was left unchanged.") from error

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        """Replace the version `expected` atomically. Raises `VersionConflict`."""
        return await run_in_thread(self._replace, path, data, expected)

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        """Delete the file. Raises `FileMissing`, `VersionConflict`."""
        await run_in_thread(self._delete, path, expected)

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders below `prefix` that `list` leaves out because they can't be read, sorted."""
        return await run_in_thread(self._list_unreadable, prefix)

    async def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files below `prefix`, sorted by path, without symbolic links."""
        return [*await run_in_thread(self._list_files, prefix)]

    def list_blocking(self, prefix: str = "") -> tuple[FileInfo, ...]:
        """Return what `list` returns, from a thread that may wait for the disk."""
        return self._list_files(prefix)

    async def list_paths(self, prefix: str) -> tuple[str, ...]:
        """Return the paths of the files below the folder `prefix`, unsorted, without reading their metadata."""
        return await run_in_thread(self._list_paths, safe_path(prefix))

    async def sweep(self) -> int:
        """Remove temporary files older than an hour that a killed process left; return how many."""
        return await run_in_thread(self._sweep)

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Hold the lock `name` across processes and tasks. Raises `StorageBusy`."""
        lock = QueuedLock(self._lock_path(safe_path(name)))
        deadline = time.monotonic() + self._busy_seconds
        try:
            await run_in_thread(self._try_lock, lock)
            while not _is_held(lock):
                if time.monotonic() > deadline:
                    raise StorageBusy(f"The lock {name} was not free within {self._busy_seconds:g} seconds.")
                await anyio.sleep(_PAUSE_SECONDS)
                if not lock.is_queued:
                    await run_in_thread(_try_acquire, lock)
            yield
        finally:
            # the call may have been cancelled while a thread took the lock
            if lock.is_begun:
                await run_even_if_cancelled(partial(anyio.to_thread.run_sync, lock.release))

    def _resolve(self, path: str) -> str:
        """Return the path on disk. Raises: PathRefused if a symbolic link leads out of the root or of its top folder.

        The check of the top folder keeps a link in the workspace from reaching the root's key or history.
        """
        safe = safe_path(path)
        named = os.path.join(self._root, safe)
        if safe and not self._has_link(safe):
            return named
        real = os.path.realpath(named)
        top = os.path.realpath(os.path.join(self._root, safe.partition("/")[0]))
        for inside, folder in ((top, self._root), (real, top)):
            if inside != folder and not inside.startswith(folder + os.sep):
                raise PathRefused(f"{path} leads out of the workspace through a symbolic link.")
        return real

    def _has_link(self, safe: str) -> bool:
        """Return whether a symbolic link is part of a path below the root, which itself is a real path.

        Only these parts are looked at: resolving the whole path takes several times as long.
        """
        place = self._root
        for part in safe.split("/"):
            place = os.path.join(place, part)
            try:
                if stat.S_ISLNK(os.lstat(place).st_mode):
                    return True
            except OSError:
                # nothing can be below what is not there
                return False
        return False

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
            self._make_lock_folder(self._locks)
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

    def _lock_path(self, name: str) -> str:
        return os.path.join(self._locks, f"{name}.lock")

    def _try_lock(self, lock: QueuedLock) -> None:
        self._make_lock_folder(os.path.dirname(lock.path))
        _try_acquire(lock)

    def _make_lock_folder(self, folder: str) -> None:
        # a root inside a cloned repository must not redirect our writes
        if self._own_locks and os.path.islink(self._locks):
            raise PathRefused("The folder locks/ of a root must not be a symbolic link: remove it.")
        try:
            self._make_folders(folder)
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


def _try_acquire(lock: QueuedLock) -> None:
    """Take the lock if it is free, else join its queue."""
    try:
        if not lock.try_acquire() and not lock.is_queued:
            lock.join_queue()
    except OSError as error:
        raise translate_os_error(error, "locks") from error


def _is_held(lock: QueuedLock) -> bool:
    try:
        return lock.is_held
    except OSError as error:
        raise translate_os_error(error, "locks") from error
