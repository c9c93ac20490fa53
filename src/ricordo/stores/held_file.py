"""Held files: what a file says, parsed once, and how a backend rewrites it while others write to it too.

Invariants: what is held is what the file says, also after an edit by hand; only what was appended is parsed again.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from secrets import randbelow
from typing import Generic, TypeVar

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageBusy, VersionConflict
from ricordo.files import ABSENT, FileInfo, FileStore, StoredFile
from ricordo.index.plan import Checksum, DocumentFingerprint

__all__ = ["ParsedFile", "rewrite_file"]

_T = TypeVar("_T")

_MAX_TRIES = 200
_MAX_PAUSE_MS = 50


@dataclass(frozen=True, kw_only=True)
class _ParsedContent(Generic[_T]):
    """What was read of a file, up to which size, and whether that was the end of a line."""

    fingerprint: DocumentFingerprint
    value: _T
    ends_with_newline: bool

    def is_prefix_of(self, data: bytes) -> bool:
        """Tell whether `data` is what was read, or goes on after it."""
        size = self.fingerprint.size
        return size <= len(data) and Checksum().extend(data[:size]) == self.fingerprint.checksum


class ParsedFile(Generic[_T]):
    """One file as `parse` reads it; `extend` takes in whole lines that were appended, where it is given."""

    def __init__(
        self,
        files: FileStore,
        path: str,
        parse: Callable[[bytes], _T],
        extend: Callable[[_T, bytes], _T] | None = None,
    ) -> None:
        """Read nothing yet. `parse` reads an empty file where there is none."""
        self._files = files
        self._path = path
        self._parse = parse
        self._extend = extend
        self._content: _ParsedContent[_T] | None = None

    async def value(self, listed: FileInfo | None = None) -> _T:
        """Return what the file says now, where it was not `listed` a moment ago. Raises: StorageError, and what
        `parse` raises.
        """
        info = listed or await self._files.info(self._path)
        held = self._content
        if held is not None and info is not None and held.fingerprint.matches(info):
            return held.value
        try:
            # the version of the whole, which nobody asks for here, takes longer to make than the reading
            data = await self._files.read_from(self._path, 0) if info else b""
        except FileMissing:
            info = None
        if info is None:
            self._content = None
            return self._parse(b"")
        read = await run_sync(self._parse_data, info, data, held)
        self._content = read
        return read.value

    def _parse_data(self, info: FileInfo, data: bytes, held: _ParsedContent[_T] | None) -> _ParsedContent[_T]:
        before = held if held is not None and held.is_prefix_of(data) else None
        start, size = (before.fingerprint.checksum, before.fingerprint.size) if before else (Checksum(), 0)
        if before and size == len(data):
            value = before.value
        elif before and before.ends_with_newline and self._extend is not None:
            value = self._extend(before.value, data[size:])
        else:
            value = self._parse(data)
        known = DocumentFingerprint(
            path=self._path,
            sort="note",
            size=len(data),
            # the file grew between its listing and its reading
            modified_ns=info.modified_ns if info.size == len(data) else 0,
            changed_ns=info.changed_ns,
            checked_ns=time.time_ns(),
            checksum=start.extend(data[size:]),
            lines=0,
        )
        ends_a_line = not data or data.endswith(b"\n")
        return _ParsedContent(fingerprint=known, value=value, ends_with_newline=ends_a_line)


async def rewrite_file(files: FileStore, path: str, change: Callable[[StoredFile], Awaitable[tuple[bytes, _T]]]) -> _T:
    """Replace a file by what `change` makes of it, durably and with nothing lost that others write; return its result.

    `change` is given an empty file where there is none, and is asked again when another was faster. Raises:
    StorageBusy when that goes on; StorageError, and what `change` raises.
    """
    for tried in range(_MAX_TRIES):
        try:
            stored = await files.read(path)
        except FileMissing:
            stored = StoredFile(data=b"", version=ABSENT)
        data, result = await change(stored)
        try:
            await files.replace(path, data, expected=stored.version)
        except VersionConflict:
            # another process was faster; who waits by chance does not meet the same one again
            await anyio.sleep(randbelow(min(2 + tried, _MAX_PAUSE_MS)) / 1000)
            continue
        return result
    raise StorageBusy(f"{path} was changed by others each time it was to be written.")
