"""JSON lines: `memory.jsonl`, one line for each entry, added by one durable append.

Invariants: a line that is torn or somebody else's hides no other and stays in the file; forgetting takes one line out
and leaves every other as it is, byte for byte.
"""

import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial

from anyio.to_thread import run_sync

from ricordo.audit import chosen_id
from ricordo.errors import DocumentInvalid, InvalidMessage
from ricordo.files import Stored
from ricordo.index.contract import Query
from ricordo.messages.jsontext import dumps, loads, record
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.held_file import HeldFile, rewritten
from ricordo.stores.opening import Opening
from ricordo.stores.plain import Home, found, kept_text, named, opened_home, options
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.tokens import Tokens
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_json import from_json, to_json

__all__ = ["JsonlStore", "open_jsonl"]

_LOG = logging.getLogger("ricordo.stores")
_NAME = "memory.jsonl"
_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class _Line:
    """An entry and where its line stands: lines count from 1, `offset` and `length` are bytes."""

    entry: Entry
    number: int
    offset: int
    length: int


@dataclass(frozen=True, kw_only=True)
class _Lines:
    """The entries of a file, oldest first, and how many of its lines are none; `count` and `size` are of the file.

    `seen` counts the texts of entries that were written without an id.
    """

    held: tuple[_Line, ...] = ()
    damaged: int = 0
    count: int = 0
    size: int = 0
    seen: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, newest first."""
        return tuple(line.entry for line in reversed(self.held))

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The line of each entry by its id, the first where several have it."""
        return {line.entry.id: line.number for line in reversed(self.held)}


class JsonlStore(Backend):
    """Entries in `memory.jsonl`, one JSON object on each line."""

    def __init__(self, parts: StoreParts, home: Home) -> None:
        """Keep everybody's entries in their folder of `home`."""
        super().__init__(parts)
        self._home = home
        self._drivers: dict[str, _JsonlDriver] = {}

    @property
    def damaged(self) -> int:
        """How many lines could not be read as entries, in the files that were read so far."""
        return sum(driver.damaged for driver in self._drivers.values())

    def _driver(self, scope: Scope) -> Driver:
        folder = self._home.folder(scope)
        tombstones = FileTombstones(self._home, folder, self._parts)
        return self._drivers.setdefault(folder, _JsonlDriver(self._home, f"{folder}{_NAME}", tombstones))


class _JsonlDriver(ForgettingDriver):
    def __init__(self, home: Home, path: str, tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.path = path
        self.damaged = 0
        self._files = home.files
        parse, extend = partial(_taken, path, _Lines()), partial(_taken, path)
        self._file: HeldFile[_Lines] = HeldFile(home.files, path, parse, extend)

    async def write(self, entry: Entry) -> Entry:
        line = dumps(to_json(entry)).encode() + b"\n"
        await self._files.append(self.path, line)
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        lines = await self._lines()
        return await run_sync(lambda: found(lines.entries, query, limit, path=self.path, lines=lines.numbers))

    async def preface(self, budget: Tokens | None) -> str:
        return await run_sync(partial(kept_text, await self.entries(), budget, source=self.path, bullets=True))

    async def entries(self) -> list[Entry]:
        return [*(await self._lines()).entries]

    async def remove(self, entry: Entry) -> None:
        async def without(stored: Stored) -> tuple[bytes, None]:
            return await run_sync(_without, self.path, stored.data, entry.id), None

        await rewritten(self._files, self.path, without)

    async def _lines(self) -> _Lines:
        """Return what the file holds, and warn of lines that are damaged."""
        lines = await self._file.value()
        if lines.damaged > self.damaged:
            _LOG.warning("%s has %d lines that are no entries; they are left in it.", self.path, lines.damaged)
        self.damaged = lines.damaged
        return lines


@asynccontextmanager
async def open_jsonl(opening: Opening) -> AsyncIterator[Backend]:
    """Open the store of a folder: `jsonl:./notes`."""
    options(opening.address)
    async with opened_home(opening) as home:
        yield JsonlStore(opening.parts, home)


def _without(path: str, data: bytes, entry_id: str) -> bytes:
    """Return the file without the lines of one entry. Raises: EntryNotFound."""
    lines = _taken(path, _Lines(), data).held
    chosen = chosen_id([line.entry.id for line in lines], entry_id)
    for line in reversed([line for line in lines if line.entry.id == chosen]):
        data = data[: line.offset] + data[line.offset + line.length :]
    return data


def _taken(path: str, before: _Lines, data: bytes) -> _Lines:
    """Return what a file holds with the lines of `data` after those before."""
    seen = Counter(before.seen)
    held, damaged, number, offset = list(before.held), before.damaged, before.count, before.size
    for line in _LINE.findall(data):
        number += 1
        entry = _entry(line)
        if entry is not None:
            named_entry = named([entry], path, seen)[0]
            held.append(_Line(entry=named_entry, number=number, offset=offset, length=len(line)))
        damaged += entry is None and bool(line.strip())
        offset += len(line)
    return _Lines(held=tuple(held), damaged=damaged, count=number, size=offset, seen=seen)


def _entry(line: bytes) -> Entry | None:
    """Return the entry of a line; None for a line that has none."""
    try:
        return from_json(record(loads(line.removeprefix(_BYTE_ORDER_MARK)), "A line"))
    except (DocumentInvalid, InvalidMessage):
        return None
