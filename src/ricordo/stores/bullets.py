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

from ricordo.audit import chosen_id
from ricordo.files import Appended, FileStore, Stored
from ricordo.index.markdown import is_whole_block
from ricordo.stores.held_file import HeldFile, rewritten
from ricordo.workspace.damage import damage_in
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located, parse_entries, render_entry

__all__ = ["BulletFile", "Bullets", "tell_damage"]

_LOG = logging.getLogger("ricordo.stores")
_MOST_TOLD = 5
_FENCE = re.compile(rb"^(`{3,}|~{3,})", re.MULTILINE)
_PROBE = b"\n- probe ^probe\n"


@dataclass(frozen=True, kw_only=True)
class Bullets:
    """What a document says: its bytes, and its entries in their order; `fence` closes the code that it ends in, and
    `damage` tells what in it can't be read.
    """

    data: bytes = b""
    located: tuple[Located, ...] = ()
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
        self._held: HeldFile[Bullets] = HeldFile(files, path, partial(_read, path), partial(_extended, path))
        self._sound_size = -1
        self._told: tuple[str, ...] = ()

    async def bullets(self) -> Bullets:
        """Return what the document says now; nothing where there is none; damage is told to the log once.

        Raises `StorageError`.
        """
        found = await self._held.value()
        if found.damage != self._told:
            tell_damage(self._name, [each for each in found.damage if each not in self._told])
            self._told = found.damage
        return found

    async def append(self, entry: Entry) -> tuple[Appended, bytes]:
        """Add the bullet of an entry, durably, and return what was added and where. Raises `StorageError`."""
        info = await self._files.info(self.path)
        fence = b"" if info is None or info.size == self._sound_size else (await self.bullets()).fence
        bullet = await run_sync(_rendered, entry)
        block = fence + b"\n\n" + bullet if fence else bullet
        appended = await self._files.append(self.path, block, header=self._header)
        self._sound_size = appended.offset + appended.length
        return appended, block

    async def forget(self, entry_id: str) -> Entry:
        """Cut an entry out, also by the beginning or the end of its id, and return it. Raises `EntryNotFound`."""

        async def without(stored: Stored) -> tuple[bytes, Entry]:
            bullets = await self.bullets()
            if bullets.data != stored.data:
                bullets = await run_sync(_read, self.path, stored.data)
            return _without(bullets, entry_id)

        return await rewritten(self._files, self.path, without)


def tell_damage(path: str, damage: Sequence[str]) -> None:
    """Tell the log what in a document can't be read; nothing for none."""
    if damage:
        shown = "; ".join([*damage[:_MOST_TOLD], *(["and more"] if damage[_MOST_TOLD:] else [])])
        _LOG.warning("%s is damaged, and left as it is: %s.", path, shown)


def _rendered(entry: Entry) -> bytes:
    return render_entry(entry).encode("utf-8", "surrogatepass")


def _read(path: str, data: bytes) -> Bullets:
    located = tuple(parse_entries(data, path))
    return Bullets(data=data, located=located, fence=_open_fence(data), damage=damage_in(data, located))


def _extended(path: str, before: Bullets, tail: bytes) -> Bullets:
    """Return the document with `tail` after it; bullets that mean the same alone are read alone."""
    if not tail:
        return before
    data = before.data + tail
    if before.fence or not is_whole_block(tail):
        return _read(path, data)
    line, offset = before.data.count(b"\n"), len(before.data)
    added = (
        replace(found, line=found.line + line, end_line=found.end_line + line, offset=found.offset + offset)
        for found in parse_entries(tail, path)
    )
    return Bullets(data=data, located=(*before.located, *added), damage=before.damage)


def _open_fence(data: bytes) -> bytes:
    """Return the line that closes the code in which the document ends; empty where it ends in none."""
    marks = [match[1] for match in _FENCE.finditer(data)]
    if not marks or _shows_a_probe(data):
        return b""
    return next((mark for mark in reversed(marks) if _shows_a_probe(data + b"\n" + mark)), b"")


def _shows_a_probe(data: bytes) -> bool:
    found = parse_entries(data + _PROBE, "", only=lambda bullet: b"^probe" in bullet)
    return any(one.entry.id == "probe" for one in found)


def _without(bullets: Bullets, entry_id: str) -> tuple[bytes, Entry]:
    chosen = chosen_id([found.entry.id for found in bullets.located], entry_id)
    gone = [found for found in bullets.located if found.entry.id == chosen]
    data = bullets.data
    for found in reversed(gone):
        data = data[: found.offset] + data[found.offset + found.length :]
    return data, gone[-1].entry
