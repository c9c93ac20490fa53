"""Stores with one fault each, and the sound ones that they are made of: what a conformance suite has to find out."""

import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from secrets import token_bytes
from typing import ClassVar

import anyio

from ricordo import Entry
from ricordo.clock import Clock, MonotonicIds, SystemClock
from ricordo.context import Preamble
from ricordo.errors import FileMissing, StorageError
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.messages import Tokens, dumps, loads
from ricordo.messages.json_text import require_object
from ricordo.scope import Scope
from ricordo.search import Hit, Query
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.stores import Backend, Driver, PlainDriver, StoreFolder, StoreParts
from ricordo.stores.base import FileTombstones, ForgettingDriver, StoreTombstones
from ricordo.testing import InMemoryFiles, StoreConformance
from ricordo.workspace import Tombstone
from ricordo.workspace.entry_json import entry_from_json, entry_to_json

__all__ = ["HELD_FAULTS", "LINES_FAULTS", "Held", "Lines"]

_COUNTER = count()


class HeldDriver(ForgettingDriver):
    """Keeps rows in a list that outlives the backend."""

    def __init__(self, rows: list[Entry], everybodys: list[Entry], tombstones: StoreTombstones) -> None:
        super().__init__(tombstones)
        self.rows, self.everybodys = rows, everybodys

    async def write(self, entry: Entry) -> Entry:
        self.rows.append(entry)
        self.everybodys.append(entry)
        return entry

    async def entries(self) -> list[Entry]:
        return self.rows[::-1]

    async def remove(self, entry: Entry) -> None:
        self.rows.remove(entry)


class LosesTags(HeldDriver):
    async def write(self, entry: Entry) -> Entry:
        return await super().write(replace(entry, tags=()))


class LosesKinds(HeldDriver):
    async def write(self, entry: Entry) -> Entry:
        await super().write(replace(entry, kind=entry.kind if entry.kind.isascii() else "fact"))
        return entry


class LosesExtra(HeldDriver):
    async def write(self, entry: Entry) -> Entry:
        await super().write(replace(entry, extra=()))
        return entry


class CutsContent(HeldDriver):
    async def write(self, entry: Entry) -> Entry:
        await super().write(replace(entry, content=entry.content[:100_000]))
        return entry


class StripsLines(HeldDriver):
    async def write(self, entry: Entry) -> Entry:
        await super().write(replace(entry, content=" ".join(entry.content.split())))
        return entry


class SavesTwice(HeldDriver):
    async def write(self, entry: Entry) -> Entry:
        await super().write(entry)
        return await super().write(entry)


class OldestFirst(HeldDriver):
    async def entries(self) -> list[Entry]:
        return [*self.rows]


class OrdersByTime(HeldDriver):
    async def entries(self) -> list[Entry]:
        return sorted(self.rows, key=lambda entry: (entry.time or SystemClock().now(), entry.id), reverse=True)


class LimitsFromTheEnd(HeldDriver):
    async def find(self, query: Query, limit: int) -> list[Hit]:
        return (await super().find(query, 1_000))[-limit:]


class Unstable(HeldDriver):
    async def find(self, query: Query, limit: int) -> list[Hit]:
        hits = await super().find(query, 1_000)
        return hits[:: -1 if next(_COUNTER) % 2 else 1][:limit]


class SeesCase(HeldDriver):
    async def find(self, query: Query, limit: int) -> list[Hit]:
        hits = await super().find(replace(query, text=""), 1_000)
        return [hit for hit in hits if query.text.strip() in hit.entry.content][:limit]


class FoldsAsciiOnly(HeldDriver):
    async def find(self, query: Query, limit: int) -> list[Hit]:
        hits = await super().find(replace(query, text=""), 1_000)
        return [hit for hit in hits if _lower(query.text.strip()) in _lower(hit.entry.content)][:limit]


class CountsOthers(HeldDriver):
    async def find(self, query: Query, limit: int) -> list[Hit]:
        return [replace(hit, score=1 / (1 + len(self.everybodys))) for hit in await super().find(query, limit)]


class SeesOthers(HeldDriver):
    async def entries(self) -> list[Entry]:
        return self.everybodys[::-1]


class NoBudget(HeldDriver):
    async def preamble(self, budget: Tokens | None) -> Preamble | str:
        return await super().preamble(Tokens(1_000_000))


class NoFence(HeldDriver):
    async def preamble(self, budget: Tokens | None) -> str:
        return "\n".join(entry.content for entry in await self.entries())[: (budget or Tokens(100)).count // 2]


class ChangingPreamble(HeldDriver):
    async def preamble(self, budget: Tokens | None) -> str:
        shown = await super().preamble(budget)
        text = shown if isinstance(shown, str) else shown.text
        return text and text + " " * (next(_COUNTER) % 7)


class ForgetsNothing(HeldDriver):
    async def remove(self, entry: Entry) -> None:
        pass


class ForgetsAll(HeldDriver):
    async def remove(self, entry: Entry) -> None:
        self.rows.clear()


class RecordsNothing(HeldDriver):
    async def tombstones(self) -> tuple[Tombstone, ...]:
        return ()


class RecordsContent(HeldDriver):
    async def tombstones(self) -> tuple[Tombstone, ...]:
        return tuple(replace(row, message="The cobalt door") for row in await super().tombstones())


class RecordsWhatCanBeGuessed(HeldDriver):
    async def tombstones(self) -> tuple[Tombstone, ...]:
        return tuple(replace(row, digest="the same for all") for row in await super().tombstones())


class KnowsIdsAlone(HeldDriver):
    async def tombstone_of(self, entry: Entry) -> Tombstone | None:
        return next((row for row in await self.tombstones() if row.id == entry.id), None)


@dataclass(frozen=True, kw_only=True)
class _Folder:
    """What a folder of a store that keeps its rows in this process would hold."""

    rows: dict[object, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    records: InMemoryFiles = field(default_factory=InMemoryFiles)
    key: bytes = field(default_factory=lambda: token_bytes(32))


class _HeldBackend(Backend):
    def __init__(self, parts: StoreParts, folder: "_Folder", kind: type[HeldDriver]) -> None:
        super().__init__(replace(parts, key=folder.key))
        self._rows, self._records, self._kind = folder.rows, folder.records, kind

    def _driver(self, scope: Scope) -> Driver:
        owner = (scope.tenant, scope.project, None if scope.project else scope.user)
        tombstones = FileTombstones(StoreFolder(files=self._records, scope=scope), f"{hash(owner)}/", self._parts)
        return self._kind(self._rows[owner], self._rows[None], tombstones)


class Held(StoreConformance):
    """A sound store, which keeps its rows for this process."""

    is_shared = False
    uses_disk = False
    driver: ClassVar[type[HeldDriver]] = HeldDriver
    folders: ClassVar[dict[Path, _Folder]] = {}

    @asynccontextmanager
    async def open_backend(
        self, folder: Path, scope: Scope, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> AsyncIterator[Backend]:
        yield _HeldBackend(_parts(clock), self.folders.setdefault(folder, _Folder()), self.driver)


class LosesAll(Held):
    @asynccontextmanager
    async def open_backend(
        self, folder: Path, scope: Scope, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> AsyncIterator[Backend]:
        yield _HeldBackend(_parts(clock), _Folder(), HeldDriver)


class SoundLines(PlainDriver):
    """Keeps a line of JSON for each entry; what is no line of its own is told and left alone."""

    path = "lines.jsonl"

    def __init__(self, files: LocalFiles, folder: Path) -> None:
        self.files, self.folder = files, folder

    async def write(self, entry: Entry) -> Entry:
        await self.files.append(self.path, _line(entry))
        return entry

    async def entries(self) -> list[Entry]:
        try:
            data = (await self.files.read(self.path)).data
        except FileMissing:
            return []
        found = []
        for line in data.splitlines():
            try:
                found.append(entry_from_json(require_object(loads(line), "A line")))
            except (ValueError, StorageError):
                self.tell("A line is broken.")
        return found[::-1]

    def tell(self, trouble: str) -> None:
        logging.getLogger("lines").warning(trouble)


class HoldsBack(SoundLines):
    """Writes when it is closed."""

    def __init__(self, files: LocalFiles, folder: Path) -> None:
        super().__init__(files, folder)
        self.late: list[Entry] = []

    async def write(self, entry: Entry) -> Entry:
        self.late.append(entry)
        return entry

    async def entries(self) -> list[Entry]:
        return [*self.late[::-1], *await super().entries()]

    async def close(self) -> None:
        while self.late:
            await super().write(self.late.pop(0))


class WritesAnew(SoundLines):
    """Writes the whole file each time, whatever others did to it meanwhile."""

    async def write(self, entry: Entry) -> Entry:
        before = await self.entries()
        await anyio.sleep(0.01)
        (self.folder / self.path).write_bytes(b"".join(map(_line, [*before[::-1], entry])))
        return entry


class BreaksOnRubbish(SoundLines):
    async def entries(self) -> list[Entry]:
        try:
            data = (await self.files.read(self.path)).data
        except FileMissing:
            return []
        return [entry_from_json(require_object(loads(line), "A line")) for line in data.splitlines()][::-1]


class SaysNothing(SoundLines):
    """Reads past what is broken without a word."""

    def tell(self, trouble: str) -> None:
        pass


class IgnoresTheDisk(SoundLines):
    async def write(self, entry: Entry) -> Entry:
        with suppress(StorageError):
            await super().write(entry)
        return entry


class ThrowsAway(SoundLines):
    """Takes every file that is not its own for old, and deletes it."""

    async def entries(self) -> list[Entry]:
        for info in await self.files.list(""):
            if info.path != self.path:
                await self.files.delete(info.path, expected=(await self.files.read(info.path)).version)
        return await super().entries()


class _LinesBackend(Backend):
    def __init__(self, parts: StoreParts, driver: SoundLines) -> None:
        super().__init__(parts)
        self._lines = driver

    def _driver(self, scope: Scope) -> Driver:
        return self._lines


class Lines(StoreConformance):
    """A sound store of lines, for one scope."""

    driver: ClassVar[type[SoundLines]] = SoundLines

    @asynccontextmanager
    async def open_backend(
        self, folder: Path, scope: Scope, *, clock: Clock | None = None, disk: Disk | None = None
    ) -> AsyncIterator[Backend]:
        yield _LinesBackend(_parts(clock), self.driver(LocalFiles(folder, disk=disk), folder))


class HoldsBackLines(Lines):
    driver = HoldsBack


class WritesAnewLines(Lines):
    driver = WritesAnew


class BreaksLines(Lines):
    driver = BreaksOnRubbish


class SilentLines(Lines):
    driver = SaysNothing


class DisklessLines(Lines):
    driver = IgnoresTheDisk


class ThrowsAwayLines(Lines):
    driver = ThrowsAway


HELD_FAULTS: dict[type[HeldDriver], str] = {
    LosesTags: "what_was_saved_comes_out",
    LosesKinds: "any_kind_is_kept",
    LosesExtra: "every_field",
    CutsContent: "a_megabyte",
    StripsLines: "what_was_saved_comes_out",
    SavesTwice: "saves_at_the_same_time",
    OldestFirst: "a_query_without_words",
    OrdersByTime: "a_clock_that_runs_backwards_reorders",
    LimitsFromTheEnd: "a_recall_has_at_most",
    Unstable: "a_recall_has_at_most",
    SeesCase: "case_is_folded",
    FoldsAsciiOnly: "case_is_folded",
    CountsOthers: "what_others_keep",
    SeesOthers: "what_others_keep",
    NoBudget: "the_preamble_of_a_store",
    NoFence: "what_is_remembered_stands",
    ChangingPreamble: "the_same_state",
    ForgetsNothing: "what_is_forgotten_is_gone",
    ForgetsAll: "what_is_forgotten_is_gone",
    RecordsNothing: "what_is_forgotten_leaves",
    RecordsContent: "what_is_forgotten_leaves",
    RecordsWhatCanBeGuessed: "what_is_forgotten_leaves",
    KnowsIdsAlone: "what_is_forgotten_leaves",
}
"""Faults of a driver, and the beginning of the check that finds each."""

LINES_FAULTS: dict[type[Lines], str] = {
    HoldsBackLines: "a_kill",
    WritesAnewLines: "two_processes",
    BreaksLines: "a_damaged_file",
    SilentLines: "what_can_not_be_read",
    DisklessLines: "on_a_full",
    ThrowsAwayLines: "a_foreign_file",
}
"""Faults of what is on disk, and the beginning of the check that finds each."""


def _parts(clock: Clock | None) -> StoreParts:
    ticking = clock or SystemClock()
    return StoreParts(
        redactor=Redactor(bytes(32)), clock=ticking, ids=MonotonicIds(ticking), emitter=Emitter(ticking, ())
    )


def _line(entry: Entry) -> bytes:
    return dumps(entry_to_json(entry)).encode() + b"\n"


def _lower(text: str) -> str:
    return "".join(each.lower() if each.isascii() else each for each in text)
