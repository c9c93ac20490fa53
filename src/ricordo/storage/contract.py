"""FileStore: the durable operations by which all files are read and written.

Paths are relative to the store's root, with `/` as separator; a leading slash means the root. A write is durable when
it returns. A version is a digest of the content, so it is the same on every machine and in every backend. An append
never reads the existing content. A replacement is atomic and names the version that it replaces.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol, runtime_checkable

__all__ = [
    "ABSENT",
    "AppendedRange",
    "FileInfo",
    "FileStore",
    "StoredFile",
    "SupportsAppend",
    "SupportsBlockingAppend",
    "SupportsBlockingList",
    "SupportsFolderCheck",
    "compute_version",
]


ABSENT = ""
"""The version of a file that does not exist: replacing it creates the file."""


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """The bytes of a file and their version."""

    data: bytes
    version: str


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """The metadata of a file: its path, size in bytes, and modification time in nanoseconds.

    `changed_ns` is the time of the last change of the content or metadata, which no program can set back; 0 if the
    backend has none. `stamp` differs after every write, even if size and modification time are the same; empty if the
    backend has none. It is ignored by comparisons.
    """

    path: str
    size: int
    modified_ns: int
    changed_ns: int = 0
    stamp: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class AppendedRange:
    """Where appended bytes are: the `offset` of the first and the `length` of all, without the header of a new file.

    `info` is the metadata of the file right after the append, None if the backend does not return it.
    """

    offset: int
    length: int
    info: FileInfo | None = field(default=None, compare=False)


@runtime_checkable
class SupportsBlockingList(Protocol):
    """An optional capability of a store, for callers that already run in a thread of their own."""

    def list_blocking(self, prefix: str = "") -> tuple[FileInfo, ...]:
        """Return what `FileStore.list` returns. It blocks on the disk."""
        ...


@runtime_checkable
class SupportsFolderCheck(Protocol):
    """An optional capability of a store: check that its folder is still the one that was opened."""

    def check(self) -> None:
        """Check the folder. It blocks on the disk. Raises: RootMoved if it was moved, removed or replaced."""
        ...


@runtime_checkable
class SupportsBlockingAppend(Protocol):
    """An optional capability of a store, for callers that already run in a thread of their own."""

    def append_blocking(
        self, path: str, data: bytes, *, header: bytes = b"", busy_seconds: float | None = None
    ) -> AppendedRange:
        """Do what `FileStore.append` does, waiting at most `busy_seconds` for locks. It blocks on the disk."""
        ...


class SupportsAppend(Protocol):
    """An object that can append to files."""

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Do what `FileStore.append` does."""
        ...


class FileStore(Protocol):
    """Files below one root. Raises `PathRefused`, `StorageFull`, `StorageReadOnly`, `StorageBusy`, `StorageFailed`."""

    async def read(self, path: str) -> StoredFile:
        """Return the whole file. Raises `FileMissing`."""
        ...

    async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
        """Return up to `length` bytes from `offset` on (all when None); empty past the end. Raises `FileMissing`."""
        ...

    async def info(self, path: str) -> FileInfo | None:
        """Return the metadata of the file, or None if it does not exist."""
        ...

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Append `data`, starting on a new line, and create the file with `header` if it does not exist.

        An incomplete last line is closed first. If the disk is full, nothing of `data` remains.
        """
        ...

    async def create(self, path: str, data: bytes) -> str:
        """Write a new file and return its version. Raises `AlreadyExists`."""
        ...

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        """Replace the version `expected` (ABSENT: no file) atomically, return the new one. Raises `VersionConflict`."""
        ...

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        """Delete the file; if `expected` is given, only that version. Raises `FileMissing`, `VersionConflict`."""
        ...

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders below `prefix` that `list` leaves out because they can't be read, sorted."""
        ...

    async def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files below the folder `prefix`, sorted by path; empty if there is no such folder."""
        ...

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock `name` across all processes and tasks of this root. Raises `StorageBusy` after its timeout."""
        ...


def compute_version(data: bytes) -> str:
    """Return the version of a file with these bytes: 32 hex digits of BLAKE2b."""
    return blake2b(data, digest_size=16).hexdigest()
