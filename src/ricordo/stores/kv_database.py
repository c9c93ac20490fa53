"""One LMDB file, for all who use it in this process: transactions in a worker thread, one at a time, durable at commit.

Invariants: LMDB must not open a file twice in one process, so everybody shares one environment, which closes with the
last of them; nothing else changes its size meanwhile. Its errors leave here as ours. What can't be opened is kept
under another name before a new file takes its place.
"""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar, TypeVar

import anyio
import lmdb
from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, PathRefused, StorageError, StorageFailed, StorageFull, StorageReadOnly
from ricordo.files.disk import Disk, translate_os_error
from ricordo.uncut import run_even_if_cancelled, run_to_completion

__all__ = ["KvDatabase"]

_T = TypeVar("_T")

_FIRST_SIZE = 16 * 1024 * 1024
_TREE_BYTES = 64 * 1024
_BROKEN_ERRORS = (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError, lmdb.IncompatibleError)
_FULL_MESSAGES = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_READ_ONLY_MESSAGES = tuple(os.strerror(code) for code in (errno.EROFS, errno.EACCES, errno.EPERM))
_READ_ALL_SCRIPT = (
    "import lmdb, sys\n"
    "with lmdb.open(sys.argv[1], subdir=False, readonly=True, lock=False).begin() as transaction:\n"
    "    sum(len(value) for _, value in transaction.cursor())\n"
)


class KvDatabase:
    """The LMDB file `path`, which the first write creates, with its folders."""

    def __init__(self, path: Path, *, within: Path) -> None:
        """Open nothing yet; `within` is the folder that the file must not lead out of."""
        self._path = path
        self._within = within
        self._limiter = anyio.CapacityLimiter(1)
        self._environment = _Environment.acquire(path)

    async def read(self, act: Callable[[lmdb.Transaction], _T]) -> _T | None:
        """Return what `act` finds; None where there is no file. Raises: DocumentInvalid for a broken one; StorageError.

        A transaction's id together with `open_count` tells whether anything was written since.
        """
        return await self._in_thread(partial(self._environment.read, act))

    async def write(self, act: Callable[[lmdb.Transaction], _T], *, room: int = 0) -> _T:
        """Return what `act` returns; what it did is durable then. It is called again when the file has to grow.

        `room` is how many bytes it writes. Raises: DocumentInvalid for a broken file; StorageError, and then nothing
        was written.
        """
        return await self._in_thread(partial(self._write, act, room))

    @property
    def open_count(self) -> int:
        """How often the file was opened: another number may mean another file."""
        return self._environment.open_count

    async def set_aside(self) -> str:
        """Keep a broken file under another name and return that; empty where it is not broken any more.

        Only one process may do so at a time.
        """
        return await self._in_thread(self._environment.set_aside)

    async def close(self) -> None:
        """Let the file go."""
        await run_even_if_cancelled(partial(run_sync, self._environment.release))

    async def _in_thread(self, act: Callable[[], _T]) -> _T:
        return await run_to_completion(partial(run_sync, act, limiter=self._limiter))

    def _write(self, act: Callable[[lmdb.Transaction], _T], room: int) -> _T:
        if not self._path.resolve().is_relative_to(self._within.resolve()):
            raise PathRefused(f"{self._path} leads out of its folder through a symbolic link.")
        disk = Disk()
        try:
            for folder in [folder for folder in [*self._path.parents][::-1] if not folder.is_dir()]:
                disk.make_folder(str(folder))
                disk.sync_folder(str(folder.parent))
        except OSError as error:
            raise translate_os_error(error, str(self._path)) from error
        return self._environment.write(act, room)


class _Environment:
    """The environment of a file, open once in this process, and how many use it."""

    _instances: ClassVar[dict[str, "_Environment"]] = {}
    _instances_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str) -> None:
        self.open_count = 0
        self._path = path
        self._lock = threading.Lock()
        self._users = 0
        self._environment: lmdb.Environment | None = None
        self._open_file: tuple[int, int] | None = None
        self._size = 0
        self._is_read_only = False

    @classmethod
    def acquire(cls, path: Path) -> "_Environment":
        real = os.path.realpath(path)
        with cls._instances_lock:
            environment = cls._instances.setdefault(real, cls(real))
            environment._users += 1
            return environment

    def release(self) -> None:
        with self._instances_lock, self._lock:
            self._users -= 1
            if not self._users:
                self._close()
                del self._instances[self._path]

    def read(self, act: Callable[[lmdb.Transaction], _T]) -> _T | None:
        with self._lock:
            environment = self._ensure_open(write=False)
            return None if environment is None else self._run(environment, act, write=False)

    def write(self, act: Callable[[lmdb.Transaction], _T], room: int) -> _T:
        with self._lock:
            environment = self._ensure_open(write=True) or self._open()

            def with_room(transaction: lmdb.Transaction) -> _T:
                self._reserve(environment, room)
                return act(transaction)

            return self._run(environment, with_room, write=True)

    def set_aside(self) -> str:
        with self._lock:
            try:
                self._ensure_open(write=False)
            except DocumentInvalid:
                taken = (f"{self._path}.broken-{number}" for number in count(1))
                name = next(name for name in taken if not os.path.lexists(name))
                disk = Disk()
                try:
                    disk.rename(self._path, name)
                    disk.sync_folder(str(Path(name).parent))
                except OSError as error:
                    raise translate_os_error(error, self._path) from error
                return name
            return ""

    def _run(self, environment: lmdb.Environment, act: Callable[[lmdb.Transaction], _T], *, write: bool) -> _T:
        try:
            while True:
                try:
                    with environment.begin(write=write) as transaction:
                        return act(transaction)
                except lmdb.MapFullError:
                    environment.set_mapsize(2 * environment.info()["map_size"])
                except lmdb.MapResizedError:
                    # another process has made it larger
                    environment.set_mapsize(0)
        except lmdb.Error as error:
            # after a commit that failed, an environment may refuse everything
            self._close()
            raise _translate_error(error, self._path) from error

    def _reserve(self, environment: lmdb.Environment, room: int) -> None:
        """Make the file long enough for a commit, where the system can: LMDB calls a full disk an input/output error.

        The transaction keeps other writers out meanwhile. Raises: StorageFull.
        """
        if not hasattr(os, "posix_fallocate"):
            return
        used = _used_bytes(environment)
        missing = used + room + _TREE_BYTES - Path(self._path).stat().st_size
        if missing > 0:
            try:
                descriptor = Disk().open(self._path, os.O_RDWR)
                try:
                    os.posix_fallocate(descriptor, used, room + _TREE_BYTES)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise translate_os_error(error, self._path) from error

    def _ensure_open(self, *, write: bool) -> lmdb.Environment | None:
        """Return the open environment; None where there is no file and none is needed."""
        file, size = _file_identity(self._path), _file_size(self._path)
        # LMDB never shortens a file, and to read what somebody has cut off would end the process
        if (
            self._environment is not None
            and file == self._open_file
            and size >= self._size
            and not (write and self._is_read_only)
        ):
            self._size = size
            return self._environment
        self._close()
        if file is None and not write:
            return None
        try:
            return self._open()
        except StorageReadOnly:
            if write:
                raise
            return self._open(read_only=True)

    def _open(self, *, read_only: bool = False) -> lmdb.Environment:
        try:
            environment = lmdb.open(
                self._path, subdir=False, mode=0o600, map_size=_FIRST_SIZE, readonly=read_only, lock=not read_only
            )
            used = _used_bytes(environment)
        except lmdb.Error as error:
            raise _translate_error(error, self._path) from error
        if used > Path(self._path).stat().st_size and not _is_readable(self._path):
            environment.close()
            raise DocumentInvalid(f"{self._path} is cut off.")
        Disk().sync_folder(str(Path(self._path).parent))
        self._environment, self._open_file, self._is_read_only = environment, _file_identity(self._path), read_only
        self._size = _file_size(self._path)
        self.open_count += 1
        return environment

    def _close(self) -> None:
        if self._environment is not None:
            self._environment.close()
        self._environment = None


def _used_bytes(environment: lmdb.Environment) -> int:
    """Return how many bytes of its file an environment uses."""
    return (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]


def _file_identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another one that takes its place; None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _file_size(path: str) -> int:
    """Return how many bytes a file has; 0 where there is none."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _is_readable(path: str) -> bool:
    """Tell whether a file whose end is missing holds its entries nevertheless, as it does when the end was free.

    To read what is not there ends the process, so another one does it.
    """
    return (
        subprocess.run([sys.executable, "-c", _READ_ALL_SCRIPT, path], capture_output=True, check=False).returncode == 0
    )  # noqa: S603


def _translate_error(error: lmdb.Error, path: str) -> StorageError:
    said = str(error)
    if isinstance(error, _BROKEN_ERRORS):
        return DocumentInvalid(f"{path} is no key-value file that can be read: {said}.")
    if isinstance(error, lmdb.DiskError) or any(text in said for text in _FULL_MESSAGES):
        return StorageFull(f"There is no room to write {path}: free some space; nothing saved before is lost.")
    if isinstance(error, lmdb.ReadonlyError) or any(text in said for text in _READ_ONLY_MESSAGES):
        return StorageReadOnly(f"{path} can't be written: {said}. Reading goes on.")
    return StorageFailed(f"{path}: {said}.")
