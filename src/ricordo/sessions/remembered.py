"""What was made of files, kept until the files change.

Invariant: a value is given again only for a file of the same size and time of modification.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ricordo.files import FileInfo

__all__ = ["FileValueCache"]

_T = TypeVar("_T")


class FileValueCache(Generic[_T]):
    """One value for each file."""

    def __init__(self, make: Callable[[FileInfo], Awaitable[_T]]) -> None:
        """Make values with `make`; what it raises is not kept."""
        self._make = make
        self._values: dict[str, tuple[FileInfo, _T]] = {}

    async def get(self, file: FileInfo) -> _T:
        """Return the value of this file, made now if there is none of this version."""
        known = self._values.get(file.path)
        if known and known[0] == file:
            return known[1]
        value = await self._make(file)
        self._values[file.path] = (file, value)
        return value
