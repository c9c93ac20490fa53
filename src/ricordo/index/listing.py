"""Listing: what a folder holds now, looked at in the thread in which the index is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ricordo.files.contract import FileInfo, ListsHere

__all__ = ["Listing"]


@dataclass(frozen=True)
class Listing:
    """Lists a folder, and does what else is to be done in the same thread."""

    files: ListsHere
    folder: str
    beside: Callable[[], object] | None

    def __call__(self) -> Sequence[FileInfo]:
        """Return the files."""
        if self.beside is not None:
            self.beside()
        return self.files.listed(self.folder)
