"""The cursor of a session: how far its messages were extracted, and the block that may be half written."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.workspace.entry_codec import Located, parse_entries
from ricordo.workspace.tombstones import read_tombstones

__all__ = ["Cursor", "load_cursor", "save_cursor", "settled_cursor"]

_KEPT = 32


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """`done` are the last messages that were extracted, newest last; there are several, as one may be erased.

    With `next` set, which is `done` as it will be, `block` is on its way to the ledger at `path`.
    """

    at: str
    done: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    path: str = ""
    block: str = ""
    version: str = ABSENT

    def position(self, messages: Iterable[str]) -> int:
        """Return how many of these ids, in the order of the log, were extracted."""
        done = frozenset(self.done)
        return max((number for number, name in enumerate(messages, start=1) if name in done), default=0)

    def moved(self, messages: Sequence[str]) -> "Cursor":
        """Return the cursor on its way past `messages`."""
        return replace(self, next=(*self.done, *messages)[-_KEPT:])

    def settled(self) -> "Cursor":
        """Return the cursor after its block was written."""
        return Cursor(at=self.at, done=self.next, version=self.version)


async def load_cursor(files: FileStore, at: str) -> Cursor:
    """Return the cursor kept at `at`; one that is missing or unreadable has extracted nothing."""
    try:
        stored = await files.read(at)
    except FileMissing:
        return Cursor(at=at)
    try:
        value = json.loads(stored.data)
        done, following = (tuple(str(name) for name in value[key]) for key in ("done", "next"))
        return Cursor(
            at=at,
            version=stored.version,
            done=done,
            next=following,
            path=str(value["path"]),
            block=str(value["block"]),
        )
    except (ValueError, TypeError, KeyError):
        return Cursor(at=at, version=stored.version)


async def save_cursor(files: FileStore, cursor: Cursor) -> Cursor:
    """Replace the cursor durably and return it with its new version."""
    value = {"done": cursor.done, "next": cursor.next, "path": cursor.path, "block": cursor.block}
    data = json.dumps(value).encode() + b"\n"
    return replace(cursor, version=await files.replace(cursor.at, data, expected=cursor.version))


async def settled_cursor(files: FileStore, at: str) -> Cursor:
    """Return the cursor with its block whole in the ledger: what a crash cut off is written now.

    A bullet that was torn by the crash is taken out first; what was forgotten meanwhile stays away.
    """
    cursor = await load_cursor(files, at)
    if not cursor.next:
        return cursor
    found = await _entries_at(files, cursor.path)
    gone = {located.entry.id for located in found} | (await read_tombstones(files)).ids
    missing = [bullet for entry_id, bullet in _bullets(cursor.block) if entry_id not in gone]
    if missing:
        await _cut_torn(files, cursor.path, found, missing[0])
        heading = cursor.path.rpartition("/")[2].removesuffix(".md")
        await files.append(cursor.path, b"".join(missing), header=f"# {heading}\n\n".encode())
    return await save_cursor(files, cursor.settled())


async def _entries_at(files: FileStore, path: str) -> list[Located]:
    try:
        return parse_entries((await files.read(path)).data, path)
    except FileMissing:
        return []


def _bullets(block: str) -> list[tuple[str, bytes]]:
    data = block.encode("utf-8", "surrogatepass")
    return [(found.entry.id, data[found.offset : found.offset + found.length]) for found in parse_entries(data, "")]


async def _cut_torn(files: FileStore, path: str, found: list[Located], bullet: bytes) -> None:
    """Take out the beginning of `bullet` that a crash left behind as a bullet of its own."""
    if not found:
        return
    stored = await files.read(path)
    for located in reversed(found):
        start, end = located.offset, located.offset + located.length
        if bullet.startswith(stored.data[start:end].rstrip(b"\n")):
            await files.replace(path, stored.data[:start] + stored.data[end:], expected=stored.version)
            return
