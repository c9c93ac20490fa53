"""Disks that count their steps, fail at one of them, or take the process with them."""

import errno
import os
import signal
import sqlite3
from collections.abc import Callable

from ricordo.storage import Disk

__all__ = ["FailingDisk", "KillingDisk", "StepDisk"]


class StepDisk(Disk):
    """A disk on which `reached` is called before each step that changes something; reading is no step.

    `steps` names the steps so far. `halves` is asked before each write whether only its first half is to be written
    before `reached` is called.
    """

    def __init__(self, reached: Callable[[int], None], *, halves: bool = False) -> None:
        """Call `reached` with the number of each step, from 1 on."""
        self.steps: list[str] = []
        self._reached = reached
        self._halves = halves

    def _step(self, name: str) -> None:
        self.steps.append(name)
        self._reached(len(self.steps))

    def make_file(self, path: str, flags: int = 0) -> int:
        self._step("make_file")
        return super().make_file(path, flags)

    def write(self, descriptor: int, data: bytes) -> None:
        if not self._halves:
            self._step("write")
            super().write(descriptor, data)
            return
        half = len(data) // 2
        super().write(descriptor, data[:half])
        self._step("write")
        super().write(descriptor, data[half:])

    def sync(self, descriptor: int) -> None:
        self._step("sync")
        super().sync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        self._step("truncate")
        super().truncate(descriptor, size)

    def rename(self, source: str, target: str) -> None:
        self._step("rename")
        super().rename(source, target)

    def exchange(self, source: str, target: str) -> bool:
        self._step("rename")
        return super().exchange(source, target)

    def rename_new(self, source: str, target: str) -> bool:
        self._step("rename")
        return super().rename_new(source, target)

    def unlink(self, path: str) -> None:
        self._step("unlink")
        super().unlink(path)

    def make_folder(self, path: str) -> None:
        self._step("make_folder")
        super().make_folder(path)

    def sync_folder(self, path: str) -> None:
        self._step("sync_folder")
        super().sync_folder(path)

    def commit(self, connection: sqlite3.Connection) -> None:
        try:
            self._step("commit")
        except OSError as error:
            # as SQLite tells it
            failed = sqlite3.OperationalError(error.strerror)
            failed.sqlite_errorcode = sqlite3.SQLITE_FULL if error.errno == errno.ENOSPC else sqlite3.SQLITE_IOERR
            raise failed from error
        super().commit(connection)


class FailingDisk(StepDisk):
    """A disk whose step number `at` fails with the error number `code`; `spared` steps never fail."""

    def __init__(self, at: int, code: int, *, halves: bool = False, spared: tuple[str, ...] = ()) -> None:
        """Fail once, at step `at`."""

        def reached(step: int) -> None:
            if step == at and self.steps[-1] not in spared:
                raise OSError(code, os.strerror(code))

        super().__init__(reached, halves=halves)


class KillingDisk(StepDisk):
    """A disk that kills its process just before step number `at`, with `halves` in the middle of a write."""

    def __init__(self, at: int, *, halves: bool = False) -> None:
        """Kill at step `at`; 0 kills never."""

        def reached(step: int) -> None:
            if step == at:
                os.kill(os.getpid(), signal.SIGKILL)

        super().__init__(reached, halves=halves)
