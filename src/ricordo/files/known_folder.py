"""A folder that is known to hold files: when it is gone, nothing is said to be missing in it, and nothing written anew.

An unplugged disk looks like a folder in which nothing was ever kept. Invariant: of a folder that held files no answer
is empty because the folder itself is away; one that is not there yet is empty, and begins with the first write.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ricordo.errors import FileMissing, StorageFailed
from ricordo.files.contract import FileInfo
from ricordo.files.disk import Disk
from ricordo.files.local import LocalFiles

__all__ = ["RequiredFolder"]


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
