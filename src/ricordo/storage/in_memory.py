"""A file store in memory, for tests and for work that must leave no trace."""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from ricordo.errors import AlreadyExists, FileMissing, PathRefused, VersionConflict
from ricordo.storage.contract import ABSENT, AppendedRange, FileInfo, StoredFile, compute_version, safe_path

__all__ = ["InMemoryFiles"]


class InMemoryFiles:
    """Files in a dictionary, with the same contract as on disk except durability."""

    def __init__(self) -> None:
        """Start with no files."""
        self._files: dict[str, tuple[bytes, int]] = {}
        self._locks: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._ticks = 0

    async def read(self, path: str) -> StoredFile:
        """Return the whole file. Raises `FileMissing`."""
        data = self._read_file(path)
        return StoredFile(data=data, version=compute_version(data))

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `offset` on. Raises `FileMissing`."""
        return self._read_file(path)[offset:] if length is None else self._read_file(path)[offset : offset + length]

    async def info(self, path: str) -> FileInfo | None:
        """Return the metadata of the file, or None if it does not exist."""
        found = self._files.get(safe_path(path))
        return found and FileInfo(path=safe_path(path), size=len(found[0]), modified_ns=found[1], stamp=str(found[1]))

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append `data`, starting on a new line."""
        old = self._files[safe_path(path)][0] if safe_path(path) in self._files else header
        start = old if not old or old.endswith(b"\n") else old + b"\n"
        self._write_file(path, start + data)
        return AppendedRange(offset=len(start), length=len(data))

    async def create(self, path: str, data: bytes) -> str:
        """Write a new file. Raises `AlreadyExists`."""
        if safe_path(path) in self._files:
            raise AlreadyExists(f"{path} exists already and was left unchanged.")
        return self._write_file(path, data)

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        """Replace the version `expected`. Raises `VersionConflict`."""
        self._check_version(path, expected)
        return self._write_file(path, data)

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        """Delete the file. Raises `FileMissing`, `VersionConflict`."""
        if expected is not None:
            self._check_version(path, expected)
        self._read_file(path)
        del self._files[safe_path(path)]

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        """Return nothing: all files in memory are readable."""
        del prefix
        return ()

    async def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files below `prefix`, sorted by path."""
        folder = safe_path(prefix)
        return [
            FileInfo(path=path, size=len(data), modified_ns=modified)
            for path, (data, modified) in sorted(self._files.items())
            if not folder or path.startswith(folder + "/")
        ]

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Hold the lock `name` across the tasks of this process."""
        async with self._locks[safe_path(name)]:
            yield

    def _read_file(self, path: str) -> bytes:
        try:
            return self._files[safe_path(path)][0]
        except KeyError as error:
            raise FileMissing(f"There is no file {path}.") from error

    def _write_file(self, path: str, data: bytes) -> str:
        safe = safe_path(path)
        if not safe:
            raise PathRefused("The root itself is not a file.")
        self._ticks += 1
        self._files[safe] = (data, self._ticks)
        return compute_version(data)

    def _check_version(self, path: str, expected: str) -> None:
        held = self._files.get(safe_path(path))
        if (compute_version(held[0]) if held else ABSENT) != expected:
            raise VersionConflict(f"{path} changed since it was read: read it again and repeat the edit.")
