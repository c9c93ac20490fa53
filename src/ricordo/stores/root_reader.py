"""Reads the documents of a root for the preamble, parsed once for each version, and warns of damage.

For most ledgers only an outline is cached: the time of the newest entry, the number of saved entries, and the pinned
ones. Damage is checked in documents that are written to, and logged once; `doctor` checks all of them.

Invariant: results equal the content of the files, even after an edit by a person or by another process.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from anyio.to_thread import run_sync

from ricordo.context.preamble import MAX_SAVED
from ricordo.errors import FileMissing, PathRefused, StorageError
from ricordo.guard import Redactor
from ricordo.lazy import dataclass, lazy_compile
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileInfo, FileStore
from ricordo.stores.parsed_files import ParsedFile, log_damage
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import PINNED_FIELD, LocatedEntry, parse_entries
from ricordo.workspace.history.checks import find_damage
from ricordo.workspace.history.log import LedgerOutline, may_be_saved, outline_ledger, sort_newest_first
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, TOPICS, WORKSPACE, is_ledger, is_memory, ledger_date
from ricordo.workspace.ledger import load_long_entry

__all__ = ["DamageMonitor", "RootReader", "newest_key", "visible_entries"]


_LEDGER_COUNT = 3
_MAX_BULLETS = 1_000
_BULLET = lazy_compile(rb"^[-*+] +(?=\S)", re.MULTILINE)


class DamageMonitor:
    """Checks the newest ledgers and MEMORY.md of one place for damage, as far as they changed since the last check."""

    def __init__(self) -> None:
        """Start without any checked file."""
        self._checked_versions: dict[str, tuple[int, int]] = {}

    async def check(self, files: FileStore) -> None:
        """Log new damage; files that can't be read are reported elsewhere."""
        with suppress(FileMissing, StorageError):
            infos = [info for info in await files.list(LEDGERS) if is_ledger(info.path)]
            curated = await files.info(MEMORY_PATH)
            for info in [*infos[-_LEDGER_COUNT:], *([curated] if curated else [])]:
                if self._checked_versions.get(info.path) != (info.size, info.modified_ns):
                    data = (await files.read(info.path)).data
                    log_damage(info.path, await run_sync(_find_damage, data, info.path))
                    self._checked_versions[info.path] = (info.size, info.modified_ns)


def _find_damage(data: bytes, path: str) -> tuple[str, ...]:
    """Return the damage among the last bullets of a document; `doctor` checks all of them."""
    earlier = len(_BULLET.findall(data)) - _MAX_BULLETS

    def is_recent(_bullet: bytes) -> bool:
        nonlocal earlier
        earlier -= 1
        return earlier < 0

    return find_damage(data, parse_entries(data, path, only=is_recent))


_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class _DocumentOutline:
    """The outline of a document that was not parsed completely."""

    ledger: LedgerOutline | None
    pinned: tuple[LocatedEntry, ...]


_MAX_PARSED = 5 * MAX_SAVED
"""How many saved entries of one ledger are parsed, the last ones, since some are curated or superseded."""


class RootReader:
    """The documents of one place, read again only when they change."""

    def __init__(self, files: FileStore, redactor: Redactor) -> None:
        """Create the reader without reading; `redactor` removes secrets from texts that may be shown."""
        self._files = files
        self._redactor = redactor
        self._documents: Sequence[FileInfo] = ()
        self._outlines: dict[str, ParsedFile[_DocumentOutline]] = {}
        self._saved_files: dict[str, ParsedFile[tuple[LocatedEntry, ...]]] = {}
        self._curated_files: dict[str, ParsedFile[tuple[LocatedEntry, ...]]] = {}

    async def refresh(self) -> None:
        """List the documents; later calls read this listing. Raises `StorageError`.

        A MEMORY.md that is a link out of the workspace is ignored; `doctor` reports it.
        """
        memory = None
        with suppress(PathRefused):
            memory = await self._files.info(MEMORY_PATH)
        infos = [info for info in await self._files.list(LEDGERS) if is_memory(info.path)]
        self._documents = [memory, *infos] if memory else infos
        paths = {info.path for info in self._documents}
        for cache in (self._outlines, self._saved_files, self._curated_files):
            for removed_path in cache.keys() - paths:
                del cache[removed_path]

    async def curated_entries(self) -> list[LocatedEntry]:
        """Return the entries of MEMORY.md and the topics; files that can't be read are left out."""
        entries: list[LocatedEntry] = []
        for info in self._documents:
            if info.path == MEMORY_PATH or info.path.startswith(f"{TOPICS}/"):
                with suppress(FileMissing, StorageError):
                    located = await _read_cached(self._curated_files, self._files, info, _parse_document)
                    entries += await self._load_long(located)
        return entries

    async def pinned_entries(self) -> list[tuple[str, Entry]]:
        """Return the entries that people pinned, with their documents; an entry in several documents is listed once."""
        pinned: dict[str, tuple[str, Entry]] = {}
        for info in self._documents:
            with suppress(FileMissing, StorageError):
                pins = (await _read_cached(self._outlines, self._files, info, _parse_outline)).pinned
                for pin in [each.entry for each in await self._load_long(pins)]:
                    if pin.pinned and pin.id not in pinned and pin.state == "active":
                        pinned[pin.id] = _source_path(info.path), pin
        return [*map(self._redact, sorted(pinned.values(), key=lambda row: newest_key(row[1]), reverse=True))]

    async def recent_entries(self) -> tuple[list[tuple[str, Entry]], int]:
        """Return the entries saved last, with their ledgers, and about how many more are in ledgers not read."""
        outlines: list[LedgerOutline] = []
        for info in self._documents:
            if is_ledger(info.path):
                with suppress(FileMissing, StorageError):
                    outline = await _read_cached(self._outlines, self._files, info, _parse_outline)
                    outlines += [outline.ledger] if outline.ledger else []
        infos = {info.path: info for info in self._documents}
        saved: list[tuple[str, Entry]] = []
        passed_over = 0
        ledgers = sort_newest_first(outlines)
        for number, ledger in enumerate(ledgers):
            if len(saved) >= MAX_SAVED and newest_key(saved[MAX_SAVED - 1][1])[0] > ledger.newest_time.timestamp():
                return self._redact_shown(saved), passed_over + sum(unread.saved_count for unread in ledgers[number:])
            with suppress(FileMissing, StorageError):
                located = await _read_cached(self._saved_files, self._files, infos[ledger.path], _parse_saved)
                source = _source_path(ledger.path)
                passed_over += max(ledger.saved_count - _MAX_PARSED, 0)
                saved += [(source, item.entry) for item in await self._load_long(located)]
                saved.sort(key=lambda row: newest_key(row[1]), reverse=True)
        return self._redact_shown(saved), passed_over

    def _redact_shown(self, saved: Sequence[tuple[str, Entry]]) -> list[tuple[str, Entry]]:
        """Return rows without secrets, but only as many as can ever be shown."""
        return [*map(self._redact, saved[:MAX_SAVED]), *saved[MAX_SAVED:]]

    def _redact(self, row: tuple[str, Entry]) -> tuple[str, Entry]:
        source, entry = row
        content = self._redactor.clean(entry.content)
        return row if content is entry.content else (source, replace(entry, content=content))

    async def _load_long(self, located: Sequence[LocatedEntry]) -> list[LocatedEntry]:
        return [item if item.long_path is None else await load_long_entry(self._files, item) for item in located]


def newest_key(entry: Entry) -> tuple[float, str]:
    """Return the sort key of an entry; the newest entry has the greatest key."""
    return (entry.time.timestamp() if entry.time else 0.0, entry.id)


def visible_entries(read: Iterable[tuple[MemoryRoot, Iterable[Entry]]]) -> list[Entry]:
    """Return the entries of places as shown by the places, newest first. Slow for many: call it in a thread."""
    return sorted(
        (place.to_visible_entry(entry) for place, entries in read for entry in entries), key=newest_key, reverse=True
    )


async def _read_cached(
    cache: dict[str, ParsedFile[_T]], files: FileStore, info: FileInfo, parse: Callable[[str, bytes], _T]
) -> _T:
    """Return the parsed document, from the cache if it did not change."""
    if info.path not in cache:
        cache[info.path] = ParsedFile(files, info.path, partial(parse, info.path))
    return await cache[info.path].value(info)


def _parse_document(path: str, data: bytes) -> tuple[LocatedEntry, ...]:
    return tuple(parse_entries(data, path))


def _parse_saved(path: str, data: bytes) -> tuple[LocatedEntry, ...]:
    """Return the entries saved last in a ledger; the beginning of a long ledger is not parsed."""
    earlier = outline_ledger(path, data).saved_count - _MAX_PARSED

    def is_wanted(bullet: bytes) -> bool:
        nonlocal earlier
        if may_be_saved(bullet):
            earlier -= 1
            return earlier < 0
        return False

    located = parse_entries(data, path, only=is_wanted)
    return tuple(item for item in located if item.entry.by in {"user", "agent", "hand"})


def _parse_outline(path: str, data: bytes) -> _DocumentOutline:
    pinned = parse_entries(data, path, only=lambda bullet: PINNED_FIELD in bullet) if PINNED_FIELD in data else []
    return _DocumentOutline(
        ledger=outline_ledger(path, data) if ledger_date(path) is not None else None, pinned=tuple(pinned)
    )


def _source_path(path: str) -> str:
    return path.removeprefix(f"{WORKSPACE}/")
