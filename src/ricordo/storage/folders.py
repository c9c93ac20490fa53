"""Folders that may disappear while they are used.

`RequiredFolder` must exist, `AttachedFolder` is tied to an open handle. A folder that was moved or removed looks like
an empty one, and a write would create it again without the file that marks it as a root.

Invariant: while the folder is missing, or replaced by another one, no call returns an empty result, and nothing is read
or written.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from uuid import uuid4
from weakref import finalize

from ricordo.errors import FileMissing, RootMoved, StorageFailed
from ricordo.storage.contract import FileInfo, SupportsFolderCheck
from ricordo.storage.disk import Disk, translate_os_error
from ricordo.storage.local import LocalFiles, QueuedLock

__all__ = ["AttachedFolder", "FolderHandle", "FolderUse", "RequiredFolder", "find_folder_use"]


def _do_nothing() -> None:
    """Do nothing."""


class FolderHandle:
    """An open folder; while it is open, its inode number is not reused."""

    def __init__(self, path: Path) -> None:
        """Open the existing folder. It blocks on the disk. Raises: RootMoved."""
        self.path = path
        self._path = os.path.realpath(path)
        self._identity = self._read_identity()
        self._release: Callable[[], object] = _do_nothing
        # a folder that can't be opened is identified by its inode number alone
        with suppress(OSError):
            if sys.platform != "win32":
                descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._release = finalize(self, os.close, descriptor)

    def check(self) -> None:
        """Check that the path still leads to this folder. It blocks on the disk. Raises: RootMoved."""
        if self._read_identity() != self._identity:
            raise self._moved_error()

    def close(self) -> None:
        """Close the handle; closing it again does nothing."""
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


_USE_MARKS = ".used-by"


class FolderUse:
    """A mark in a folder that this process uses it; the use ends with the process, however that ends."""

    def __init__(self, folder: Path) -> None:
        """Mark the folder, which exists. It blocks on the disk. Raises: StorageError."""
        marks = folder / _USE_MARKS
        try:
            marks.mkdir(mode=0o700, exist_ok=True)
            self._lock = QueuedLock(str(marks / f"{uuid4().hex}.lock"))
            self._lock.try_acquire()
        except OSError as error:
            raise translate_os_error(error, _USE_MARKS) from error

    def end(self) -> None:
        """Remove the mark; ending it again does nothing. It blocks on the disk."""
        with suppress(OSError):
            os.unlink(self._lock.path)
        self._lock.release()


def find_folder_use(folder: Path) -> Literal["used", "abandoned", "unused"]:
    """Return whether a live process uses a folder, only processes did that have died, or none. It blocks on the disk.

    A folder whose marks can't be read counts as used.
    """
    try:
        marks = sorted((folder / _USE_MARKS).iterdir())
    except FileNotFoundError:
        return "unused"
    except OSError:
        return "used"
    return "used" if any(map(_is_locked, marks)) else "abandoned" if marks else "unused"


def _is_locked(mark: Path) -> bool:
    lock = QueuedLock(str(mark))
    try:
        return not lock.try_acquire()
    except OSError:
        return True
    finally:
        lock.release()


class AttachedFolder(LocalFiles):
    """Files below the folder `root`; after `attach`, methods raise `RootMoved` while the attached folder is missing."""

    def __init__(self, root: Path, *, locks: Path | None = None, disk: Disk | None = None) -> None:
        """Use the folder `root`, which may have to be created; no folder is attached yet."""
        super().__init__(root, locks=locks, disk=disk)
        self._handle: SupportsFolderCheck | None = None

    def attach(self, folder: SupportsFolderCheck) -> None:
        """Check from now on that `folder`, which contains these files, is still in place."""
        self._handle = folder

    def check(self) -> None:
        """Check that the attached folder is still in place. It blocks on the disk. Raises: RootMoved."""
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
            # check again, as getting the lock may have taken time
            self.check()
            yield real

    def _try_lock(self, lock: QueuedLock) -> None:
        self.check()
        super()._try_lock(lock)


class RequiredFolder(LocalFiles):
    """Files below the folder `root`; each method raises `StorageFailed` if the folder existed before and is missing."""

    def __init__(
        self, root: Path, *, locks: Path | None = None, disk: Disk | None = None, is_never_empty: bool = False
    ) -> None:
        """Check whether the folder exists; one that `is_never_empty` also counts as missing while it is empty.

        Raises: StorageFailed if it can't be read.
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

    def _try_lock(self, lock: QueuedLock) -> None:
        self._check_folder()
        super()._try_lock(lock)

    def _check_folder(self) -> None:
        """Raise `StorageFailed` if the folder existed before and is missing now."""
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
