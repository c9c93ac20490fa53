"""FileStore: the durable operations by which all files are read and written, and safe paths.

Paths are relative to the store's root, with `/` as separator; a leading slash means the root. A write is durable when
it returns. A version is a digest of the content, so it is the same on every machine and in every backend. An append
never reads the existing content. A replacement is atomic and names the version that it replaces.

`safe_path` checks only the text: names that a file system or a reader could misinterpret are refused, not repaired.

Invariants: a safe path does not leave the root. When `quarantine_document` returns, the bytes are durable under the new
name, and the document itself is unchanged.
"""

import unicodedata
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from hashlib import blake2b
from typing import Protocol, runtime_checkable

from ricordo.errors import AlreadyExists, PathRefused
from ricordo.lazy import dataclass

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
    "quarantine_document",
    "safe_path",
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


_MAX_NAME_BYTES = 255
_MAX_PATH_LENGTH = 1000


def safe_path(path: str) -> str:
    """Return `path` relative to the root, without empty or `.` parts; `""` is the root itself.

    Raises: PathRefused if it has a `..` part or a character that is not allowed, or is too long for file systems.
    """
    if not _is_printable(path) or "\\" in path:
        raise PathRefused(f"The path {path[:80]!r} holds a control character or a backslash.")
    parts = [_safe_name(part, path) for part in path.split("/") if part not in {"", "."}]
    joined = "/".join(parts)
    if len(joined) > _MAX_PATH_LENGTH:
        raise PathRefused(f"A path has at most {_MAX_PATH_LENGTH} characters, this one has {len(joined)}.")
    return joined


def _is_printable(path: str) -> bool:
    """Return whether `path` has no control or format character and no line separator."""
    if path.isascii():
        return path.isprintable()
    return not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in path)


def _safe_name(part: str, path: str) -> str:
    folded = unicodedata.normalize("NFKC", part).strip()
    if folded in {"", ".", ".."} or "/" in folded or "\\" in folded:
        raise PathRefused(f"The path {path[:80]!r} leaves the workspace.")
    if len(part.encode()) > _MAX_NAME_BYTES:
        raise PathRefused(f"A file name has at most {_MAX_NAME_BYTES} bytes: {part[:40]!r}….")
    return part


async def quarantine_document(files: FileStore, path: str, stored: StoredFile) -> str:
    """Copy the bytes of the document at `path` to `<path>.broken-<n>`, once, and return that name.

    Raises: StorageError, such as StorageReadOnly, and then nothing was copied.
    """
    number = 1
    while True:
        name = f"{path}.broken-{number}"
        try:
            await files.create(name, stored.data)
        except AlreadyExists:
            # another process, or one that was killed afterwards, may have copied it already
            if (await files.read(name)).data == stored.data:
                return name
            number += 1
        else:
            return name
