"""FileStore: the few durable operations by which every file is written.

Paths are relative to the store's root, with `/` between parts; a leading slash means the root. A write is durable
when it returns. A version is a digest of the content, so it is the same on every machine and in every backend. An
append never reads what is there; a replacement is atomic and names the version it replaces.
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
    """The bytes of a file and the version they have."""

    data: bytes
    version: str


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """What a listing tells of a file: its path, size in bytes, and time of modification in nanoseconds.

    `changed_ns` is when the file system last wrote anything of it, its name and times too, which nobody can set back;
    0 where the backend has none.
    `stamp` is another one after every write, also where size and time are set to what they were; empty where the
    backend has none. Two that differ in nothing else are equal.
    """

    path: str
    size: int
    modified_ns: int
    changed_ns: int = 0
    stamp: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class AppendedRange:
    """Where appended bytes lie: `offset` of the first and `length` of all, the header of a new file not counted.

    `info` is what was known of the file right after it, None where the backend does not tell.
    """

    offset: int
    length: int
    info: FileInfo | None = field(default=None, compare=False)


@runtime_checkable
class SupportsBlockingList(Protocol):
    """What a store may offer besides, for those that are in a thread of their own already."""

    def list_blocking(self, prefix: str = "") -> tuple[FileInfo, ...]:
        """Return what `FileStore.list` returns. It blocks on the disk."""
        ...


@runtime_checkable
class SupportsFolderCheck(Protocol):
    """What a store may offer besides: to tell whether its folder is still the one that was opened."""

    def check(self) -> None:
        """Look whether it is. It blocks on the disk. Raises: RootMoved."""
        ...


@runtime_checkable
class SupportsBlockingAppend(Protocol):
    """What a store may offer besides, for those that are in a thread of their own already."""

    def append_blocking(
        self, path: str, data: bytes, *, header: bytes = b"", busy_seconds: float | None = None
    ) -> AppendedRange:
        """Do what `FileStore.append` does, waiting `busy_seconds` for others at most. It blocks on the disk."""
        ...


class SupportsAppend(Protocol):
    """What appends to files."""

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
        """Return what is known of the file, or None when there is none."""
        ...

    async def append(self, path: str, data: bytes, *, header: bytes = b"") -> AppendedRange:
        """Add `data` at the end, on a line of its own, and create the file with `header` when there is none.

        A last line that was torn off is closed first. On a full disk nothing of `data` stays.
        """
        ...

    async def create(self, path: str, data: bytes) -> str:
        """Write a file that does not exist and return its version. Raises `AlreadyExists`."""
        ...

    async def replace(self, path: str, data: bytes, *, expected: str) -> str:
        """Replace the version `expected` (ABSENT: no file) atomically, return the new one. Raises `VersionConflict`."""
        ...

    async def delete(self, path: str, *, expected: str | None = None) -> None:
        """Delete the file, when `expected` is given only that version. Raises `FileMissing`, `VersionConflict`."""
        ...

    async def list_unreadable(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders below `prefix` that `list` leaves out because they can't be read, sorted."""
        ...

    async def list(self, prefix: str = "") -> list[FileInfo]:
        """Return the files below the folder `prefix`, sorted by path; empty when there is no such folder."""
        ...

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock `name` across all processes and tasks of this root. Raises `StorageBusy` after its time-out."""
        ...


def compute_version(data: bytes) -> str:
    """Return the version of a file with these bytes: 32 hex digits of BLAKE2b."""
    return blake2b(data, digest_size=16).hexdigest()
