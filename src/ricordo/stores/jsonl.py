"""The JSON lines store: `memory.jsonl`, one line for each entry, added by one durable append.

Invariants: a line that is torn or not an entry hides no other line and stays in the file. Forgetting removes one line
and changes no other byte.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field
from functools import cached_property, partial

from anyio.to_thread import run_sync

from ricordo.context.preamble import Preamble
from ricordo.errors import DocumentInvalid, InvalidMessage
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import dumps, loads, require_object
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import Hit, Query
from ricordo.storage import StoredFile
from ricordo.stores.addresses import OpenRequest
from ricordo.stores.base import (
    FileTombstones,
    ForgettingDriver,
    StoreFolder,
    StoreTombstones,
    assign_ids,
    compose_entries,
    match_entries,
    open_folder,
    read_options,
)
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.parsed_files import ParsedFile, rewrite_file
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import entry_from_json, entry_to_json
from ricordo.workspace.ledger import resolve_id

__all__ = ["JsonlStore", "open_jsonl"]


_LOG = logging.getLogger("ricordo.stores")
_FILE_NAME = "memory.jsonl"
_LINE = lazy_compile(rb"[^\n]*\n|[^\n]+\Z")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class _Line:
    """An entry and the position of its line: lines count from 1, `offset` and `length` are in bytes."""

    entry: Entry
    number: int
    offset: int
    length: int


@dataclass(frozen=True, kw_only=True)
class _Lines:
    """The entries of a file, oldest first, and the number of its damaged lines.

    `count` and `size` are the lines and bytes of the file. `text_counts` counts the texts of entries without an id.
    """

    lines: tuple[_Line, ...] = ()
    damaged_count: int = 0
    count: int = 0
    size: int = 0
    text_counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, newest first."""
        return tuple(line.entry for line in reversed(self.lines))

    @cached_property
    def line_numbers(self) -> Mapping[str, int]:
        """The line of each entry by its id, the first if several lines have it."""
        return {line.entry.id: line.number for line in reversed(self.lines)}


class JsonlStore(Backend):
    """Entries in `memory.jsonl`, one JSON object on each line."""

    def __init__(self, parts: StoreParts, home: StoreFolder) -> None:
        """Store each owner's entries in their folder of `home`."""
        super().__init__(parts)
        self._home = home
        self._drivers: dict[str, _JsonlDriver] = {}

    @property
    def damaged_count(self) -> int:
        """The number of lines that could not be read as entries, in the files read so far."""
        return sum(driver.damaged_count for driver in self._drivers.values())

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder_for(scope)
        tombstones = FileTombstones(self._home, folder, self._parts)
        return self._drivers.setdefault(folder, _JsonlDriver(self._home, f"{folder}{_FILE_NAME}", tombstones))


class _JsonlDriver(ForgettingDriver):
    def __init__(self, home: StoreFolder, path: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.path = path
        self.damaged_count = 0
        self._files = home.files
        parse, extend = partial(_extend_lines, path, _Lines()), partial(_extend_lines, path)
        self._file: ParsedFile[_Lines] = ParsedFile(home.files, path, parse, extend)

    async def write(self, entry: Entry) -> Entry:
        line = dumps(entry_to_json(entry)).encode() + b"\n"
        await self._files.append(self.path, line)
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        lines = await self._read_lines()
        return await run_sync(
            lambda: match_entries(lines.entries, query, limit, path=self.path, lines=lines.line_numbers)
        )

    async def preamble(self, budget: Tokens | None) -> Preamble:
        return await run_sync(partial(compose_entries, await self.entries(), budget, source=self.path, bullets=True))

    async def entries(self) -> list[Entry]:
        return [*(await self._read_lines()).entries]

    async def remove(self, entry: Entry) -> None:
        async def remove_lines(stored: StoredFile) -> tuple[bytes, None]:
            return await run_sync(_remove_lines, self.path, stored.data, entry.id), None

        await rewrite_file(self._files, self.path, remove_lines)

    async def _read_lines(self) -> _Lines:
        """Return the content of the file, and log a warning about damaged lines."""
        lines = await self._file.value()
        if lines.damaged_count > self.damaged_count:
            _LOG.warning("%s has %d lines that are no entries; they are left in it.", self.path, lines.damaged_count)
        self.damaged_count = lines.damaged_count
        return lines


@asynccontextmanager
async def open_jsonl(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open the store of a folder: `jsonl:./notes`."""
    read_options(request.address)
    async with open_folder(request) as store_folder:
        yield JsonlStore(request.parts, store_folder)


def _remove_lines(path: str, data: bytes, entry_id: str) -> bytes:
    """Return the file without the lines of one entry. Raises: EntryNotFound."""
    lines = _extend_lines(path, _Lines(), data).lines
    full_id = resolve_id([line.entry.id for line in lines], entry_id)
    for line in reversed([line for line in lines if line.entry.id == full_id]):
        data = data[: line.offset] + data[line.offset + line.length :]
    return data


def _extend_lines(path: str, before: _Lines, data: bytes) -> _Lines:
    """Return the lines of `before` followed by the lines of `data`."""
    seen = Counter(before.text_counts)
    lines, damaged, number, offset = list(before.lines), before.damaged_count, before.count, before.size
    for line in _LINE.findall(data):
        number += 1
        entry = _parse_entry(line)
        if entry is not None:
            named_entry = assign_ids([entry], path, seen)[0]
            lines.append(_Line(entry=named_entry, number=number, offset=offset, length=len(line)))
        damaged += entry is None and bool(line.strip())
        offset += len(line)
    return _Lines(lines=tuple(lines), damaged_count=damaged, count=number, size=offset, text_counts=seen)


def _parse_entry(line: bytes) -> Entry | None:
    """Return the entry of a line; None for a line without one."""
    try:
        return entry_from_json(require_object(loads(line.removeprefix(_BYTE_ORDER_MARK)), "A line"))
    except (DocumentInvalid, InvalidMessage):
        return None
