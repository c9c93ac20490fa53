"""The cursor of a session: how far its messages were extracted, and the block that may be half written."""

import json
from dataclasses import dataclass, replace

from ricordo.errors import FileMissing
from ricordo.files import ABSENT, FileStore
from ricordo.workspace.entry_codec import Located, parse_entries
from ricordo.workspace.tombstones import read_tombstones

__all__ = ["Cursor", "load_cursor", "save_cursor", "settled_cursor"]


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """`done` is the last message that was extracted. With `next` set, `block` is on its way to the ledger at `path`."""

    at: str
    done: str | None = None
    next: str | None = None
    path: str = ""
    block: str = ""
    version: str = ABSENT

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
        read = {name: value[name] for name in ("done", "next", "path", "block") if value.get(name) is not None}
    except (ValueError, TypeError, AttributeError):
        read = {}
    return Cursor(at=at, version=stored.version, **{name: str(text) for name, text in read.items()})


async def save_cursor(files: FileStore, cursor: Cursor) -> Cursor:
    """Replace the cursor durably and return it with its new version."""
    value: dict[str, str | None] = {"done": cursor.done}
    if cursor.next is not None:
        value |= {"next": cursor.next, "path": cursor.path, "block": cursor.block}
    data = json.dumps(value).encode() + b"\n"
    return replace(cursor, version=await files.replace(cursor.at, data, expected=cursor.version))


async def settled_cursor(files: FileStore, at: str) -> Cursor:
    """Return the cursor with its block whole in the ledger: what a crash cut off is written now.

    A bullet that was torn by the crash is taken out first; what was forgotten meanwhile stays away.
    """
    cursor = await load_cursor(files, at)
    if cursor.next is None:
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
