"""A disk that knows which file of a session each of its steps is about, for faults at a place and not at a number."""

import re
import sqlite3
from collections.abc import Callable

from ricordo.storage import Disk

__all__ = ["NamedDisk"]

_KINDS = {
    "journal": re.compile(r"/compactions/[^/]*$"),
    "cursor": re.compile(r"\.cursor\.json"),
    "state": re.compile(r"/state/[^/]*$"),
    "tasks": re.compile(r"/tasks/[^/]*$"),
    "plan": re.compile(r"/plans/[^/]*$"),
    "transcript": re.compile(r"\.log\.jsonl"),
    "evicted": re.compile(r"/large_tool_results/"),
    "ledger": re.compile(r"/memory/[^/]*$"),
    "inbox": re.compile(r"/queue\.db$"),
    "index": re.compile(r"/memory_index\.db$"),
}


class NamedDisk(Disk):
    """Calls `reached` with the name of each step that changes something, such as `write journal`, before it is taken.

    `half journal` comes in the middle of a write, `rename state done` after the new name stands, and so on. Nothing
    waits for the medium: what a killed process wrote is there all the same.
    """

    def __init__(self, reached: Callable[[str], None]) -> None:
        """Tell `reached`, which may raise, or kill the process."""
        self._reached = reached
        self._open: dict[int, str] = {}

    def open(self, path: str, flags: int) -> int:
        descriptor = super().open(path, flags)
        self._open[descriptor] = _kind(path)
        return descriptor

    def make_file(self, path: str, flags: int = 0) -> int:
        kind = _kind(path)
        self._reached(f"make {kind}")
        descriptor = super().make_file(path, flags)
        self._open[descriptor] = kind
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        kind = self._open.get(descriptor, "other")
        half = len(data) // 2
        self._reached(f"write {kind}")
        super().write(descriptor, data[:half])
        self._reached(f"half {kind}")
        super().write(descriptor, data[half:])
        self._reached(f"write {kind} done")

    def sync(self, descriptor: int) -> None:
        self._reached(f"sync {self._open.get(descriptor, 'other')}")

    def sync_folder(self, path: str) -> None:
        """Wait for nothing."""

    def exchange(self, source: str, target: str) -> bool:
        return self._placed(super().exchange, source, target)

    def rename_new(self, source: str, target: str) -> bool:
        return self._placed(super().rename_new, source, target)

    def _placed(self, act: Callable[[str, str], bool], source: str, target: str) -> bool:
        kind = _kind(target)
        self._reached(f"rename {kind}")
        done = act(source, target)
        self._reached(f"rename {kind} done")
        return done

    def commit(self, connection: sqlite3.Connection) -> None:
        ((_, _, path), *_) = connection.execute("PRAGMA database_list").fetchall()
        kind = _kind(path)
        try:
            self._reached(f"commit {kind}")
        except OSError as error:
            failed = sqlite3.OperationalError(error.strerror)
            failed.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise failed from error
        super().commit(connection)
        self._reached(f"commit {kind} done")


def _kind(path: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(path)), "other")
