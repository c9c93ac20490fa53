"""Ledger: the daily log of memories, append-only.

The writer adds bullets to the file of the local day and never touches an earlier byte, nor does it look for
duplicates: that is what consolidation is for. An entry over 4 KB goes to a file of its own, which holds its content and
nothing else, and is durable before the line that points to it.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from anyio.to_thread import run_sync

from ricordo.errors import AlreadyExists, FileMissing, StorageError
from ricordo.files import Appends, FileStore
from ricordo.guard.redact import Redactor
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located, parse_entries, render_entry
from ricordo.workspace.layout import LEDGERS, MEMORY, TOPICS, WORKSPACE, is_ledger, is_memory, ledger_path, long_path
from ricordo.workspace.redaction import all_redacted_beside

__all__ = [
    "LONG_BYTES",
    "Block",
    "append_block",
    "append_entries",
    "is_curated",
    "newest_id",
    "newest_saved",
    "read_curated",
    "read_entries",
    "read_memory",
    "render_block",
    "whole",
]


_ID = re.compile(rb"\^([0-7][0-9a-hjkmnp-tv-z]{25})[ \t]*\r?$", re.MULTILINE)
_TAIL = 65_536
LONG_BYTES = 4096
"""UTF-8 bytes of content up to which an entry stands in the ledger itself."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """What one append writes: the bytes, where they go (`offset` is -1 before), and the entries as stored."""

    path: str
    data: bytes
    entries: tuple[Entry, ...]
    offset: int = -1


def is_curated(path: str) -> bool:
    """Tell whether `path` is a document of curated memory: MEMORY.md or a topic."""
    return path == MEMORY or path.startswith(f"{TOPICS}/")


async def append_entries(
    files: FileStore, day: date, entries: Sequence[Entry], redactor: Redactor, *, through: Appends | None = None
) -> Block:
    """Append `entries`, which have ids and times, to the ledger of `day` as one block, durably.

    What appends is `files`, or that which has more to do with what is appended. Raises: StorageFull, StorageReadOnly,
    StorageBusy; then no bullet of the block is written.
    """
    return await append_block(through or files, await render_block(files, day, entries, redactor))


async def render_block(files: FileStore, day: date, entries: Sequence[Entry], redactor: Redactor) -> Block:
    """Return the block that `entries` make in the ledger of `day`; the files of long ones are written by this."""
    stored = await all_redacted_beside(entries, redactor)
    bullets = [await _bullet(files, entry) for entry in stored]
    data = "".join(bullets).encode("utf-8", "surrogatepass")
    return Block(path=ledger_path(day), data=data, entries=stored)


async def append_block(files: Appends, block: Block) -> Block:
    """Append a rendered block to its ledger, durably, and return it with its place."""
    day = block.path.rpartition("/")[2].removesuffix(".md")
    appended = await files.append(block.path, block.data, header=f"# {day}\n\n".encode())
    return replace(block, offset=appended.offset)


async def read_entries(files: FileStore, path: str, *, only: Callable[[bytes], bool] | None = None) -> list[Located]:
    """Return the entries of one document in its order, long ones whole; `only` is as in `parse_entries`.

    Raises: FileMissing.
    """
    stored = await files.read(path)
    located = await run_sync(partial(parse_entries, stored.data, path, only=only))
    return [await whole(files, found) for found in located]


async def read_curated(files: FileStore) -> list[Located]:
    """Return the entries of MEMORY.md and the topics; a file that vanishes or can't be read is left out."""
    found: list[Located] = []
    for path in [MEMORY, *(info.path for info in await files.list(TOPICS) if info.path.endswith(".md"))]:
        with suppress(FileMissing, StorageError):
            found += await read_entries(files, path)
    return found


async def read_memory(files: FileStore) -> list[Located]:
    """Return the entries of every memory document of the workspace: curated memory first, then by path.

    A file that vanishes or can't be read is left out; `doctor` names the latter.
    """
    listed = [info.path for info in await files.list(LEDGERS) if is_memory(info.path)]
    found: list[Located] = []
    for path in [MEMORY, *(path for path in listed if not path.startswith(f"{LEDGERS}/long/"))]:
        try:
            found += await read_entries(files, path)
        except (FileMissing, StorageError):
            continue
    return found


def newest_id(data: bytes) -> str:
    """Return the id of a given entry in a document that sorts last; empty for a document without any."""
    return max(_ID.findall(data), default=b"").decode("ascii")


async def newest_saved(files: FileStore) -> str:
    """Return the id that sorts last at the end of the last ledger; empty where there is none. Raises `StorageError`."""
    ledgers = [info for info in await files.list(LEDGERS) if is_ledger(info.path)]
    if not ledgers:
        return ""
    last = max(ledgers, key=lambda info: info.path)
    return newest_id(await files.read_from(last.path, max(0, last.size - _TAIL)))


async def _bullet(files: FileStore, entry: Entry) -> str:
    content = entry.content.encode("utf-8", "surrogatepass")
    if len(content) <= LONG_BYTES or not _is_text(entry.content):
        return render_entry(entry)
    path = long_path(entry.id)
    try:
        await files.create(path, content)
    except AlreadyExists:
        if (await files.read(path)).data != content:
            raise
    return render_entry(entry, long=path.removeprefix(f"{WORKSPACE}/"))


def _is_text(content: str) -> bool:
    """Tell whether a file of its own keeps every character; lone surrogates need the escapes of a bullet."""
    try:
        content.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


async def whole(files: FileStore, found: Located) -> Located:
    """Return an entry with its whole content, as far as the file that holds it can be read."""
    if found.long is None:
        return found
    try:
        stored = await files.read(f"{WORKSPACE}/{found.long}")
    except (FileMissing, StorageError):
        return found
    return replace(found, entry=replace(found.entry, content=stored.data.decode("utf-8", "replace")))
