"""Listing: what a folder holds now, looked at in the thread in which the index is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ricordo.files.contract import FileInfo, SupportsBlockingList

__all__ = ["FolderListing"]


@dataclass(frozen=True)
class FolderListing:
    """Lists a folder, and does what else is to be done in the same thread."""

    files: SupportsBlockingList
    folder: str
    beside: Callable[[], object] | None

    def __call__(self) -> Sequence[FileInfo]:
        """Return the files."""
        if self.beside is not None:
            self.beside()
        return self.files.list_blocking(self.folder)
