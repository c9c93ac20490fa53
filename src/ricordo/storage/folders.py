"""Folders that may go away while they are used: one that must exist, and one attached to an open handle.

A folder that was moved or removed looks like one in which nothing was ever kept, and a write would create it again
without what marks it as ours.

Invariant: while the folder is away, or another one is at its path, no answer is empty and nothing is read or written.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import finalize

from filelock import FileLock

from ricordo.errors import FileMissing, RootMoved, StorageFailed
from ricordo.storage.contract import FileInfo, SupportsFolderCheck
from ricordo.storage.disk import Disk
from ricordo.storage.local import LocalFiles

__all__ = ["AttachedFolder", "FolderHandle", "RequiredFolder"]


def _do_nothing() -> None:
    """Do nothing."""


class FolderHandle:
    """A folder that is open; its number on the disk is given to no other meanwhile."""

    def __init__(self, path: Path) -> None:
        """Open the folder, which is there. It blocks on the disk. Raises: RootMoved."""
        self._path = os.path.realpath(path)
        self._identity = self._read_identity()
        self._release: Callable[[], object] = _do_nothing
        # one that can't be listed is known by its number alone
        with suppress(OSError):
            if sys.platform != "win32":
                descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._release = finalize(self, os.close, descriptor)

    def check(self) -> None:
        """Look whether the path still leads to this folder. It blocks on the disk. Raises: RootMoved."""
        if self._read_identity() != self._identity:
            raise self._moved_error()

    def close(self) -> None:
        """Let go of the folder; a second time does nothing."""
        self._release()

    def _read_identity(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise self._moved_error() from error
        return found.st_dev, found.st_ino

    def _moved_error(self) -> RootMoved:
        return RootMoved(
            f"The folder {self._path} was moved, removed or replaced while its memory was open: bring it back, or open "
            "the memory again where it is now. Nothing was read or written."
        )


class AttachedFolder(LocalFiles):
    """Files below the folder `root`; from `attach` on each verb raises `RootMoved` while a held folder is away."""

    def __init__(self, root: Path, *, locks: Path | None = None, disk: Disk | None = None) -> None:
        """Use the folder `root`, which may have to be made; nothing is held yet."""
        super().__init__(root, locks=locks, disk=disk)
        self._handle: SupportsFolderCheck | None = None

    def attach(self, folder: SupportsFolderCheck) -> None:
        """Look from now on whether `folder`, which these files are in, is where it was."""
        self._handle = folder

    def check(self) -> None:
        """Look whether the held folder is where it was. It blocks on the disk. Raises: RootMoved."""
        if self._handle is not None:
            self._handle.check()

    def _read(self, path: str, offset: int, length: int | None) -> bytes:
        try:
            data = super()._read(path, offset, length)
        except FileMissing:
            self.check()
            raise
        self.check()
        return data

    def _info(self, path: str) -> FileInfo | None:
        found = super()._info(path)
        self.check()
        return found

    def _list_files(self, prefix: str) -> tuple[FileInfo, ...]:
        found = super()._list_files(prefix)
        self.check()
        return found

    def _list_unreadable(self, prefix: str) -> tuple[str, ...]:
        self.check()
        return super()._list_unreadable(prefix)

    def _list_paths(self, prefix: str) -> tuple[str, ...]:
        self.check()
        return super()._list_paths(prefix)

    def _sweep(self) -> int:
        self.check()
        return super()._sweep()

    @contextmanager
    def _write_lock(self, path: str, busy_seconds: float | None = None) -> Iterator[str]:
        self.check()
        with super()._write_lock(path, busy_seconds) as real:
            # it may have had to wait for the lock
            self.check()
            yield real

    def _try_lock(self, lock: FileLock) -> bool:
        self.check()
        return super()._try_lock(lock)


class RequiredFolder(LocalFiles):
    """Files below the folder `root`, each verb of which raises `StorageFailed` while a folder that was there is not."""

    def __init__(
        self, root: Path, *, locks: Path | None = None, disk: Disk | None = None, is_never_empty: bool = False
    ) -> None:
        """Look whether the folder is there; one that `is_never_empty` is away too when there is nothing in it.

        Raises: StorageFailed for one that can't be read.
        """
        super().__init__(root, locks=locks, disk=disk)
        self._is_never_empty = is_never_empty
        self._is_known = False
        self._is_known = self._has_folder()

    def _read(self, path: str, offset: int, length: int | None) -> bytes:
        try:
            return super()._read(path, offset, length)
        except FileMissing:
            self._check_folder()
            raise

    def _info(self, path: str) -> FileInfo | None:
        found = super()._info(path)
        if found is None:
            self._check_folder()
        return found

    def _list_files(self, prefix: str) -> tuple[FileInfo, ...]:
        found = super()._list_files(prefix)
        if not found:
            self._check_folder()
        return found

    @contextmanager
    def _write_lock(self, path: str, busy_seconds: float | None = None) -> Iterator[str]:
        self._check_folder()
        with super()._write_lock(path, busy_seconds) as real:
            yield real

    def _try_lock(self, lock: FileLock) -> bool:
        self._check_folder()
        return super()._try_lock(lock)

    def _check_folder(self) -> None:
        """Raise `StorageFailed` for a folder that was there and is not."""
        if self._has_folder():
            self._is_known = True
        elif self._is_known:
            raise StorageFailed(
                f"The folder {self._root} is gone with what was kept in it: bring it back, or open it anew."
            )

    def _has_folder(self) -> bool:
        try:
            with os.scandir(self._root) as entries:
                return not self._is_never_empty or next(entries, None) is not None
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StorageFailed(f"The folder {self._root} can't be read: {error.strerror}.") from error
