"""Files that are parsed once: any file, and Markdown documents to which entries are added as bullets.

Invariants: a cached value equals the content of the file, even after a person edited it, and only appended text is
parsed again. An added entry can be read back, even below an open code fence. Adding and removing entries changes no
other byte.
"""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from secrets import randbelow
from typing import Generic, TypeVar

import anyio
from anyio.to_thread import run_sync

from ricordo import workspace
from ricordo.errors import FileMissing, StorageBusy, VersionConflict
from ricordo.lazy import dataclass, lazy_compile
from ricordo.search.chunking import is_self_contained_block
from ricordo.search.documents import Checksum, DocumentFingerprint
from ricordo.storage import ABSENT, AppendedRange, FileInfo, FileStore, StoredFile
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry
from ricordo.workspace.ledger import resolve_id

__all__ = ["BulletDocument", "BulletFile", "ParsedFile", "log_damage", "rewrite_file"]


_T = TypeVar("_T")
_MAX_TRIES = 200
_MAX_PAUSE_MS = 50


@dataclass(frozen=True, kw_only=True)
class _ParsedContent(Generic[_T]):
    """The parsed content of a file, its size when read, and whether it ended with a line end."""

    fingerprint: DocumentFingerprint
    value: _T
    ends_with_newline: bool

    def is_prefix_of(self, data: bytes) -> bool:
        """Return whether `data` equals the content that was read, or continues it."""
        size = self.fingerprint.size
        return size <= len(data) and Checksum().extend(data[:size]) == self.fingerprint.checksum


class ParsedFile(Generic[_T]):
    """One file, parsed by `parse`; `extend`, if given, adds whole lines that were appended."""

    def __init__(
        self,
        files: FileStore,
        path: str,
        parse: Callable[[bytes], _T],
        extend: Callable[[_T, bytes], _T] | None = None,
    ) -> None:
        """Create the object without reading. For a missing file, `parse` gets empty bytes."""
        self._files = files
        self._path = path
        self._parse = parse
        self._extend = extend
        self._content: _ParsedContent[_T] | None = None

    async def value(self, listed_info: FileInfo | None = None) -> _T:
        """Return the present content; `listed_info` is the metadata of the file from a recent listing, if known.

        Raises: StorageError, and the errors of `parse`.
        """
        info = listed_info or await self._files.info(self._path)
        cached = self._content
        if cached is not None and info is not None and cached.fingerprint.matches(info):
            return cached.value
        try:
            # computing the version of the whole file, which is not needed here, takes longer than reading it
            data = await self._files.read_from(self._path, 0) if info else b""
        except FileMissing:
            info = None
        if info is None:
            self._content = None
            return self._parse(b"")
        read = await run_sync(self._parse_data, info, data, cached)
        self._content = read
        return read.value

    def _parse_data(self, info: FileInfo, data: bytes, cached: _ParsedContent[_T] | None) -> _ParsedContent[_T]:
        before = cached if cached is not None and cached.is_prefix_of(data) else None
        start, size = (before.fingerprint.checksum, before.fingerprint.size) if before else (Checksum(), 0)
        if before and size == len(data):
            value = before.value
        elif before and before.ends_with_newline and self._extend is not None:
            value = self._extend(before.value, data[size:])
        else:
            value = self._parse(data)
        fingerprint = DocumentFingerprint(
            path=self._path,
            document_type="note",
            size=len(data),
            # the file grew between listing and reading
            modified_ns=info.modified_ns if info.size == len(data) else 0,
            changed_ns=info.changed_ns,
            checked_ns=time.time_ns(),
            checksum=start.extend(data[size:]),
            lines=0,
        )
        ends_a_line = not data or data.endswith(b"\n")
        return _ParsedContent(fingerprint=fingerprint, value=value, ends_with_newline=ends_a_line)


async def rewrite_file(files: FileStore, path: str, change: Callable[[StoredFile], Awaitable[tuple[bytes, _T]]]) -> _T:
    """Replace a file by the result of `change`, durably and without losing the writes of others; return its value.

    `change` receives an empty file if there is none, and is called again if another process wrote first. Raises:
    StorageBusy if that keeps happening; StorageError, and the errors of `change`.
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
            # another process was faster; a random wait avoids meeting it again
            await anyio.sleep(randbelow(min(2 + tried, _MAX_PAUSE_MS)) / 1000)
            continue
        return result
    raise StorageBusy(f"{path} was changed by others each time it was to be written.")


_LOG = logging.getLogger("ricordo.stores")
_MAX_REPORTED = 5
_FENCE = lazy_compile(rb"^(`{3,}|~{3,})", re.MULTILINE)
_PROBE = b"\n- probe ^probe\n"


@dataclass(frozen=True, kw_only=True)
class BulletDocument:
    """A parsed document: its bytes, and its entries in order.

    `fence` closes an open code block at its end, and `damage` lists the parts that can't be read.
    """

    data: bytes = b""
    located: tuple[LocatedEntry, ...] = ()
    fence: bytes = b""
    damage: tuple[str, ...] = ()


class BulletFile:
    """One document; `header` is the beginning of a new file, `name` the path shown to people."""

    def __init__(self, files: FileStore, path: str, *, header: bytes = b"", name: str = "") -> None:
        """Create the object without reading the file."""
        self.path = path
        self._name = name or path
        self._files = files
        self._header = header
        self._parsed_file: ParsedFile[BulletDocument] = ParsedFile(
            files, path, partial(_parse_document, path), partial(_extend_document, path)
        )
        self._intact_size = -1
        self._reported_damage: tuple[str, ...] = ()

    async def read_document(self) -> BulletDocument:
        """Return the present document, empty if there is none; damage is logged once.

        Raises `StorageError`.
        """
        document = await self._parsed_file.value()
        if document.damage != self._reported_damage:
            log_damage(self._name, [each for each in document.damage if each not in self._reported_damage])
            self._reported_damage = document.damage
        return document

    async def append(self, entry: Entry) -> tuple[AppendedRange, bytes]:
        """Add the bullet of an entry, durably, and return its range and bytes. Raises `StorageError`."""
        info = await self._files.info(self.path)
        fence = b"" if info is None or info.size == self._intact_size else (await self.read_document()).fence
        bullet = await run_sync(_render_bullet, entry)
        block = fence + b"\n\n" + bullet if fence else bullet
        appended = await self._files.append(self.path, block, header=self._header)
        self._intact_size = appended.offset + appended.length
        return appended, block

    async def forget(self, entry_id: str) -> Entry:
        """Remove an entry by its id, or by the beginning or the end of its id, and return it.

        Raises `EntryNotFound`.
        """

        async def remove_entry(stored: StoredFile) -> tuple[bytes, Entry]:
            bullets = await self.read_document()
            if bullets.data != stored.data:
                bullets = await run_sync(_parse_document, self.path, stored.data)
            return _remove_entry(bullets, entry_id)

        return await rewrite_file(self._files, self.path, remove_entry)


def log_damage(path: str, damage: Sequence[str]) -> None:
    """Log the parts of a document that can't be read; nothing if there are none."""
    if damage:
        listing = "; ".join([*damage[:_MAX_REPORTED], *(["and more"] if damage[_MAX_REPORTED:] else [])])
        _LOG.warning("%s is damaged, and left as it is: %s.", path, listing)


def _render_bullet(entry: Entry) -> bytes:
    return render_entry(entry).encode("utf-8", "surrogatepass")


def _parse_document(path: str, data: bytes) -> BulletDocument:
    located = tuple(parse_entries(data, path))
    return BulletDocument(
        data=data, located=located, fence=_find_open_fence(data), damage=workspace.find_damage(data, located)
    )


def _extend_document(path: str, before: BulletDocument, tail: bytes) -> BulletDocument:
    """Return the document with `tail` appended; bullets that do not depend on earlier text are parsed alone."""
    if not tail:
        return before
    data = before.data + tail
    if before.fence or not is_self_contained_block(tail):
        return _parse_document(path, data)
    line, offset = before.data.count(b"\n"), len(before.data)
    added = (
        replace(located, line=located.line + line, end_line=located.end_line + line, offset=located.offset + offset)
        for located in parse_entries(tail, path)
    )
    return BulletDocument(data=data, located=(*before.located, *added), damage=before.damage)


def _find_open_fence(data: bytes) -> bytes:
    """Return the line that closes the open code block at the end of the document; empty if there is none."""
    marks = [match[1] for match in _FENCE.finditer(data)]
    if not marks or _is_probe_parsed(data):
        return b""
    return next((mark for mark in reversed(marks) if _is_probe_parsed(data + b"\n" + mark)), b"")


def _is_probe_parsed(data: bytes) -> bool:
    entries = parse_entries(data + _PROBE, "", only=lambda bullet: b"^probe" in bullet)
    return any(one.entry.id == "probe" for one in entries)


def _remove_entry(bullets: BulletDocument, entry_id: str) -> tuple[bytes, Entry]:
    full_id = resolve_id([located.entry.id for located in bullets.located], entry_id)
    removed = [located for located in bullets.located if located.entry.id == full_id]
    data = bullets.data
    for located in reversed(removed):
        data = data[: located.offset] + data[located.offset + located.length :]
    return data, removed[-1].entry
