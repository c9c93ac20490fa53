"""Counts of work: what a test does parses so many bullets, builds so many rows of the index, and reads these files."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from unittest.mock import patch

from ricordo.search import chunking
from ricordo.storage import Disk
from ricordo.workspace import entry_codec

__all__ = ["CountingDisk", "Work", "counted_work"]

_T = TypeVar("_T")


@dataclass(kw_only=True)
class Work:
    """The number of bullets that were parsed and of index rows that were built."""

    bullets: int = 0
    rows: int = 0


class CountingDisk(Disk):
    """A disk that does not wait for the medium, and names the memory documents that were opened to be read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def open(self, path: str, flags: int) -> int:
        if flags == os.O_RDONLY and path.endswith(".md"):
            self.read.append(path)
        return super().open(path, flags)

    def sync(self, descriptor: int) -> None:
        """Do not wait."""

    def sync_folder(self, path: str) -> None:
        """Do not wait."""


@contextmanager
def counted_work() -> Iterator[Work]:
    """Count what is done in the block, in all threads."""
    work = Work()

    def count(act: Callable[..., _T], name: str) -> Callable[..., _T]:
        def counted(*given: Any, **named: Any) -> _T:
            setattr(work, name, getattr(work, name) + 1)
            return act(*given, **named)

        return counted

    with (
        patch.object(entry_codec, "_parse_bullet", count(entry_codec._parse_bullet, "bullets")),
        patch.object(chunking, "_build_row", count(chunking._build_row, "rows")),
    ):
        yield work
