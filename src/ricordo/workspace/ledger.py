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
from ricordo.files import SupportsAppend, FileStore
from ricordo.guard.redact import Redactor
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries, render_entry
from ricordo.workspace.layout import (
    LEDGERS,
    MEMORY_PATH,
    TOPICS,
    WORKSPACE,
    is_ledger,
    is_memory,
    ledger_path,
    long_entry_path,
)
from ricordo.workspace.redaction import all_redacted_beside

__all__ = [
    "LONG_ENTRY_BYTES",
    "LedgerBlock",
    "append_block",
    "append_entries",
    "is_curated",
    "find_newest_id",
    "read_newest_id",
    "read_curated_entries",
    "read_entries",
    "read_all_entries",
    "render_block",
    "load_long_entry",
]


_LAST_ID_PATTERN = re.compile(rb"\^([0-7][0-9a-hjkmnp-tv-z]{25})[ \t]*\r?$", re.MULTILINE)
_TAIL_BYTES = 65_536
LONG_ENTRY_BYTES = 4096
"""UTF-8 bytes of content up to which an entry stands in the ledger itself."""


@dataclass(frozen=True, kw_only=True)
class LedgerBlock:
    """What one append writes: the bytes, where they go (`offset` is -1 before), and the entries as stored."""

    path: str
    data: bytes
    entries: tuple[Entry, ...]
    offset: int = -1


def is_curated(path: str) -> bool:
    """Tell whether `path` is a document of curated memory: MEMORY.md or a topic."""
    return path == MEMORY_PATH or path.startswith(f"{TOPICS}/")


async def append_entries(
    files: FileStore, day: date, entries: Sequence[Entry], redactor: Redactor, *, through: SupportsAppend | None = None
) -> LedgerBlock:
    """Append `entries`, which have ids and times, to the ledger of `day` as one block, durably.

    What appends is `files`, or that which has more to do with what is appended. Raises: StorageFull, StorageReadOnly,
    StorageBusy; then no bullet of the block is written.
    """
    return await append_block(through or files, await render_block(files, day, entries, redactor))


async def render_block(files: FileStore, day: date, entries: Sequence[Entry], redactor: Redactor) -> LedgerBlock:
    """Return the block that `entries` make in the ledger of `day`; the files of long ones are written by this."""
    stored = await all_redacted_beside(entries, redactor)
    bullets = [await _render_bullet(files, entry) for entry in stored]
    data = "".join(bullets).encode("utf-8", "surrogatepass")
    return LedgerBlock(path=ledger_path(day), data=data, entries=stored)


async def append_block(files: SupportsAppend, block: LedgerBlock) -> LedgerBlock:
    """Append a rendered block to its ledger, durably, and return it with its place."""
    day = block.path.rpartition("/")[2].removesuffix(".md")
    appended = await files.append(block.path, block.data, header=f"# {day}\n\n".encode())
    return replace(block, offset=appended.offset)


async def read_entries(
    files: FileStore, path: str, *, only: Callable[[bytes], bool] | None = None
) -> list[LocatedEntry]:
    """Return the entries of one document in its order, long ones whole; `only` is as in `parse_entries`.

    Raises: FileMissing.
    """
    stored = await files.read(path)
    located = await run_sync(partial(parse_entries, stored.data, path, only=only))
    return [await load_long_entry(files, found) for found in located]


async def read_curated_entries(files: FileStore) -> list[LocatedEntry]:
    """Return the entries of MEMORY.md and the topics; a file that vanishes or can't be read is left out."""
    found: list[LocatedEntry] = []
    for path in [MEMORY_PATH, *(info.path for info in await files.list(TOPICS) if info.path.endswith(".md"))]:
        with suppress(FileMissing, StorageError):
            found += await read_entries(files, path)
    return found


async def read_all_entries(files: FileStore) -> list[LocatedEntry]:
    """Return the entries of every memory document of the workspace: curated memory first, then by path.

    A file that vanishes or can't be read is left out; `doctor` names the latter.
    """
    listed = [info.path for info in await files.list(LEDGERS) if is_memory(info.path)]
    found: list[LocatedEntry] = []
    for path in [MEMORY_PATH, *(path for path in listed if not path.startswith(f"{LEDGERS}/long/"))]:
        try:
            found += await read_entries(files, path)
        except (FileMissing, StorageError):
            continue
    return found


def find_newest_id(data: bytes) -> str:
    """Return the id of a given entry in a document that sorts last; empty for a document without any."""
    return max(_LAST_ID_PATTERN.findall(data), default=b"").decode("ascii")


async def read_newest_id(files: FileStore) -> str:
    """Return the id that sorts last at the end of the last ledger; empty where there is none. Raises `StorageError`."""
    ledgers = [info for info in await files.list(LEDGERS) if is_ledger(info.path)]
    if not ledgers:
        return ""
    last = max(ledgers, key=lambda info: info.path)
    return find_newest_id(await files.read_from(last.path, max(0, last.size - _TAIL_BYTES)))


async def _render_bullet(files: FileStore, entry: Entry) -> str:
    content = entry.content.encode("utf-8", "surrogatepass")
    if len(content) <= LONG_ENTRY_BYTES or not _is_encodable(entry.content):
        return render_entry(entry)
    path = long_entry_path(entry.id)
    try:
        await files.create(path, content)
    except AlreadyExists:
        if (await files.read(path)).data != content:
            raise
    return render_entry(entry, long=path.removeprefix(f"{WORKSPACE}/"))


def _is_encodable(content: str) -> bool:
    """Tell whether a file of its own keeps every character; lone surrogates need the escapes of a bullet."""
    try:
        content.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


async def load_long_entry(files: FileStore, found: LocatedEntry) -> LocatedEntry:
    """Return an entry with its whole content, as far as the file that holds it can be read."""
    if found.long_path is None:
        return found
    try:
        stored = await files.read(f"{WORKSPACE}/{found.long_path}")
    except (FileMissing, StorageError):
        return found
    return replace(found, entry=replace(found.entry, content=stored.data.decode("utf-8", "replace")))
