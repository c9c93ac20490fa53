"""Bullet files: a Markdown document to which entries are added as bullets, and which people edit too.

Invariants: an entry that was added is read back, also below code that a person left open; adding and taking out
entries leaves every other byte as it is.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from anyio.to_thread import run_sync

from ricordo.audit import resolve_id
from ricordo.files import AppendedRange, FileStore, StoredFile
from ricordo.index.markdown import is_self_contained_block
from ricordo.stores.held_file import ParsedFile, rewrite_file
from ricordo.workspace.damage import find_damage
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry

__all__ = ["BulletFile", "BulletDocument", "log_damage"]

_LOG = logging.getLogger("ricordo.stores")
_MAX_REPORTED = 5
_FENCE = re.compile(rb"^(`{3,}|~{3,})", re.MULTILINE)
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
