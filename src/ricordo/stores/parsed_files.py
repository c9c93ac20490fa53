"""Files that are parsed once: any file, and Markdown documents to which entries are added as bullets.

Invariants: a cached value is what the file says, also after an edit by hand, and only what was appended is parsed
again. An entry that was added is read back, also below an open code fence. Adding and removing entries leaves every
other byte as it is.
"""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from secrets import randbelow
from typing import Generic, TypeVar

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageBusy, VersionConflict
from ricordo.lazy import lazy_compile
from ricordo.search.chunking import is_self_contained_block
from ricordo.search.documents import Checksum, DocumentFingerprint
from ricordo.storage import ABSENT, AppendedRange, FileInfo, FileStore, StoredFile
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry
from ricordo.workspace.history.checks import find_damage
from ricordo.workspace.ledger import resolve_id

__all__ = ["BulletDocument", "BulletFile", "ParsedFile", "log_damage", "rewrite_file"]


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


_LOG = logging.getLogger("ricordo.stores")
_MAX_REPORTED = 5
_FENCE = lazy_compile(rb"^(`{3,}|~{3,})", re.MULTILINE)
_PROBE = b"\n- probe ^probe\n"


@dataclass(frozen=True, kw_only=True)
class BulletDocument:
    """What a document says: its bytes, and its entries in their order; `fence` closes the code that it ends in, and
    `damage` tells what in it can't be read.
    """

    data: bytes = b""
    located: tuple[LocatedEntry, ...] = ()
    fence: bytes = b""
    damage: tuple[str, ...] = ()


class BulletFile:
    """One document; `header` is what it begins with where it is created, `name` what people are told as its path."""

    def __init__(self, files: FileStore, path: str, *, header: bytes = b"", name: str = "") -> None:
        """Read nothing yet."""
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
        """Return what the document says now; nothing where there is none; damage is told to the log once.

        Raises `StorageError`.
        """
        found = await self._parsed_file.value()
        if found.damage != self._reported_damage:
            log_damage(self._name, [each for each in found.damage if each not in self._reported_damage])
            self._reported_damage = found.damage
        return found

    async def append(self, entry: Entry) -> tuple[AppendedRange, bytes]:
        """Add the bullet of an entry, durably, and return what was added and where. Raises `StorageError`."""
        info = await self._files.info(self.path)
        fence = b"" if info is None or info.size == self._intact_size else (await self.read_document()).fence
        bullet = await run_sync(_render_bullet, entry)
        block = fence + b"\n\n" + bullet if fence else bullet
        appended = await self._files.append(self.path, block, header=self._header)
        self._intact_size = appended.offset + appended.length
        return appended, block

    async def forget(self, entry_id: str) -> Entry:
        """Cut an entry out, also by the beginning or the end of its id, and return it. Raises `EntryNotFound`."""

        async def remove_entry(stored: StoredFile) -> tuple[bytes, Entry]:
            bullets = await self.read_document()
            if bullets.data != stored.data:
                bullets = await run_sync(_parse_document, self.path, stored.data)
            return _remove_entry(bullets, entry_id)

        return await rewrite_file(self._files, self.path, remove_entry)


def log_damage(path: str, damage: Sequence[str]) -> None:
    """Tell the log what in a document can't be read; nothing for none."""
    if damage:
        shown = "; ".join([*damage[:_MAX_REPORTED], *(["and more"] if damage[_MAX_REPORTED:] else [])])
        _LOG.warning("%s is damaged, and left as it is: %s.", path, shown)


def _render_bullet(entry: Entry) -> bytes:
    return render_entry(entry).encode("utf-8", "surrogatepass")


def _parse_document(path: str, data: bytes) -> BulletDocument:
    located = tuple(parse_entries(data, path))
    return BulletDocument(data=data, located=located, fence=_find_open_fence(data), damage=find_damage(data, located))


def _extend_document(path: str, before: BulletDocument, tail: bytes) -> BulletDocument:
    """Return the document with `tail` after it; bullets that mean the same alone are read alone."""
    if not tail:
        return before
    data = before.data + tail
    if before.fence or not is_self_contained_block(tail):
        return _parse_document(path, data)
    line, offset = before.data.count(b"\n"), len(before.data)
    added = (
        replace(found, line=found.line + line, end_line=found.end_line + line, offset=found.offset + offset)
        for found in parse_entries(tail, path)
    )
    return BulletDocument(data=data, located=(*before.located, *added), damage=before.damage)


def _find_open_fence(data: bytes) -> bytes:
    """Return the line that closes the code in which the document ends; empty where it ends in none."""
    marks = [match[1] for match in _FENCE.finditer(data)]
    if not marks or _is_probe_parsed(data):
        return b""
    return next((mark for mark in reversed(marks) if _is_probe_parsed(data + b"\n" + mark)), b"")


def _is_probe_parsed(data: bytes) -> bool:
    found = parse_entries(data + _PROBE, "", only=lambda bullet: b"^probe" in bullet)
    return any(one.entry.id == "probe" for one in found)


def _remove_entry(bullets: BulletDocument, entry_id: str) -> tuple[bytes, Entry]:
    chosen = resolve_id([found.entry.id for found in bullets.located], entry_id)
    gone = [found for found in bullets.located if found.entry.id == chosen]
    data = bullets.data
    for found in reversed(gone):
        data = data[: found.offset] + data[found.offset + found.length :]
    return data, gone[-1].entry
