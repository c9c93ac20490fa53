"""A folder that is held while it is open, so that its files are those of that folder and of no other at its path.

A folder that was moved or removed looks like one in which nothing was ever kept, and a write would make it anew without
what marks it as ours. Invariant: while the path does not lead to the folder that is held, no answer is empty, nothing
is read from what is there instead, and nothing is written.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import finalize

from filelock import FileLock

from ricordo.errors import FileMissing, RootMoved
from ricordo.files.contract import FileInfo, Held
from ricordo.files.disk import Disk
from ricordo.files.local import LocalFiles

__all__ = ["HeldFolder", "OpenedFolder"]


def _nothing() -> None:
    """Do nothing."""


class HeldFolder:
    """A folder that is open; its number on the disk is given to no other meanwhile."""

    def __init__(self, path: Path) -> None:
        """Open the folder, which is there. It blocks on the disk. Raises: RootMoved."""
        self._path = os.path.realpath(path)
        self._identity = self._found()
        self._let_go: Callable[[], object] = _nothing
        # one that can't be listed is known by its number alone
        with suppress(OSError):
            if sys.platform != "win32":
                descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                self._let_go = finalize(self, os.close, descriptor)

    def check(self) -> None:
        """Look whether the path still leads to this folder. It blocks on the disk. Raises: RootMoved."""
        if self._found() != self._identity:
            raise self._moved()

    def close(self) -> None:
        """Let go of the folder; a second time does nothing."""
        self._let_go()

    def _found(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise self._moved() from error
        return found.st_dev, found.st_ino

    def _moved(self) -> RootMoved:
        return RootMoved(
            f"The folder {self._path} was moved, removed or replaced while its memory was open: bring it back, or open "
            "the memory again where it is now. Nothing was read or written."
        )


class OpenedFolder(LocalFiles):
    """Files below the folder `root`; from `hold` on each verb raises `RootMoved` while a held folder is away."""

    def __init__(self, root: Path, *, locks: Path | None = None, disk: Disk | None = None) -> None:
        """Use the folder `root`, which may have to be made; nothing is held yet."""
        super().__init__(root, locks=locks, disk=disk)
        self._held: Held | None = None

    def hold(self, folder: Held) -> None:
        """Look from now on whether `folder`, which these files are in, is where it was."""
        self._held = folder

    def check(self) -> None:
        """Look whether the held folder is where it was. It blocks on the disk. Raises: RootMoved."""
        if self._held is not None:
            self._held.check()

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

    def _found(self, prefix: str) -> tuple[FileInfo, ...]:
        found = super()._found(prefix)
        self.check()
        return found

    def _closed(self, prefix: str) -> tuple[str, ...]:
        self.check()
        return super()._closed(prefix)

    def _paths(self, prefix: str) -> tuple[str, ...]:
        self.check()
        return super()._paths(prefix)

    def _sweep(self) -> int:
        self.check()
        return super()._sweep()

    @contextmanager
    def _writing(self, path: str, busy_seconds: float | None = None) -> Iterator[str]:
        self.check()
        with super()._writing(path, busy_seconds) as real:
            # it may have had to wait for the lock
            self.check()
            yield real

    def _tried_first(self, lock: FileLock) -> bool:
        self.check()
        return super()._tried_first(lock)
