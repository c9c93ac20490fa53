"""Reading for the preamble: what a place's documents say, parsed once for each version of a file.

Of most ledgers only the outline is kept: how new their newest entry is, how many were saved, and what is pinned. The
entries of a ledger are parsed only where they may be among those that are shown.

Invariant: what is told is what the files say, also after an edit by hand or by another process.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ricordo.audit.ledgers import LedgerOutline, may_be_saved, sort_newest_first, outline_ledger
from ricordo.errors import FileMissing, PathRefused, StorageError
from ricordo.files import FileInfo, FileStore
from ricordo.guard import Redactor
from ricordo.recall.hits import Hit
from ricordo.stores.held_file import ParsedFile
from ricordo.stores.place import AT_ONCE, MemoryRoot
from ricordo.stores.preamble import MAX_SAVED
from ricordo.uncut import compute
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import PINNED_FIELD, LocatedEntry, parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, TOPICS, WORKSPACE, is_ledger, is_memory, ledger_date
from ricordo.workspace.ledger import load_long_entry
from ricordo.workspace.redaction import guarded_length

__all__ = ["RootReader", "hits_outward", "newest_key", "visible_entries"]

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class _DocumentOutline:
    """What is known of a document that was not parsed as a whole."""

    ledger: LedgerOutline | None
    pinned: tuple[LocatedEntry, ...]


_MAX_PARSED = 5 * MAX_SAVED
"""How many saved entries of one ledger are parsed, the last ones: some of them are curated or superseded."""


class RootReader:
    """The documents of one place, as far as they changed since the last look."""

    def __init__(self, files: FileStore, redactor: Redactor) -> None:
        """Have read nothing yet; `redactor` takes out the secrets of what may be shown."""
        self._files = files
        self._redactor = redactor
        self._documents: Sequence[FileInfo] = ()
        self._outlines: dict[str, ParsedFile[_DocumentOutline]] = {}
        self._saved_files: dict[str, ParsedFile[tuple[LocatedEntry, ...]]] = {}
        self._curated_files: dict[str, ParsedFile[tuple[LocatedEntry, ...]]] = {}

    async def refresh(self) -> None:
        """List the documents as they are now; what is asked for next is told of these. Raises `StorageError`.

        A MEMORY.md that leads out of the workspace is none; `doctor` tells of it.
        """
        memory = None
        with suppress(PathRefused):
            memory = await self._files.info(MEMORY_PATH)
        found = [info for info in await self._files.list(LEDGERS) if is_memory(info.path)]
        self._documents = [memory, *found] if memory else found
        paths = {info.path for info in self._documents}
        for held in (self._outlines, self._saved_files, self._curated_files):
            for gone in held.keys() - paths:
                del held[gone]

    async def curated_entries(self) -> list[LocatedEntry]:
        """Return the entries of MEMORY.md and the topics; a file that can't be read is left out."""
        found: list[LocatedEntry] = []
        for info in self._documents:
            if info.path == MEMORY_PATH or info.path.startswith(f"{TOPICS}/"):
                with suppress(FileMissing, StorageError):
                    located = await _read_cached(self._curated_files, self._files, info, _parse_document)
                    found += await self._load_long(located)
        return found

    async def pinned_entries(self) -> list[tuple[str, Entry]]:
        """Return what people pinned, with the document of each; one that stands in several is named once."""
        found: dict[str, tuple[str, Entry]] = {}
        for info in self._documents:
            with suppress(FileMissing, StorageError):
                pins = (await _read_cached(self._outlines, self._files, info, _parse_outline)).pinned
                for pin in [each.entry for each in await self._load_long(pins)]:
                    if pin.pinned and pin.id not in found and pin.state == "active":
                        found[pin.id] = _source_path(info.path), pin
        return [*map(self._redact, sorted(found.values(), key=lambda row: newest_key(row[1]), reverse=True))]

    async def recent_entries(self) -> tuple[list[tuple[str, Entry]], int]:
        """Return what was saved last, with the ledger of each, and about how much more there is in ledgers not read."""
        outlines: list[LedgerOutline] = []
        for info in self._documents:
            if is_ledger(info.path):
                with suppress(FileMissing, StorageError):
                    held = await _read_cached(self._outlines, self._files, info, _parse_outline)
                    outlines += [held.ledger] if held.ledger else []
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
                saved += [(source, found.entry) for found in await self._load_long(located)]
                saved.sort(key=lambda row: newest_key(row[1]), reverse=True)
        return self._redact_shown(saved), passed_over

    def _redact_shown(self, saved: Sequence[tuple[str, Entry]]) -> list[tuple[str, Entry]]:
        """Return rows of which no more than the first are ever shown, those without secrets."""
        return [*map(self._redact, saved[:MAX_SAVED]), *saved[MAX_SAVED:]]

    def _redact(self, row: tuple[str, Entry]) -> tuple[str, Entry]:
        source, entry = row
        content = self._redactor.clean(entry.content)
        return row if content is entry.content else (source, replace(entry, content=content))

    async def _load_long(self, located: Sequence[LocatedEntry]) -> list[LocatedEntry]:
        return [found if found.long_path is None else await load_long_entry(self._files, found) for found in located]


def newest_key(entry: Entry) -> tuple[float, str]:
    """Return what entries are sorted by; the newest is the greatest."""
    return (entry.time.timestamp() if entry.time else 0.0, entry.id)


async def hits_outward(hits: Sequence[Hit], by_label: Mapping[str, MemoryRoot]) -> list[Hit]:
    """Return hits with their entries as their places show them, computed in a thread where they are long together."""

    def show_all() -> list[Hit]:
        return [replace(hit, entry=by_label[hit.source].to_visible_entry(hit.entry)) for hit in hits]

    return await compute(show_all, size=guarded_length(hit.entry for hit in hits), at_once=AT_ONCE)


def visible_entries(read: Iterable[tuple[MemoryRoot, Iterable[Entry]]]) -> list[Entry]:
    """Return the entries of places as these give them, the newest first. Slow for many: call it in a thread."""
    return sorted(
        (place.to_visible_entry(entry) for place, entries in read for entry in entries), key=newest_key, reverse=True
    )


async def _read_cached(
    held: dict[str, ParsedFile[_T]], files: FileStore, info: FileInfo, parse: Callable[[str, bytes], _T]
) -> _T:
    """Return what a document says, from what is held of it where it is as it was."""
    if info.path not in held:
        held[info.path] = ParsedFile(files, info.path, partial(parse, info.path))
    return await held[info.path].value(info)


def _parse_document(path: str, data: bytes) -> tuple[LocatedEntry, ...]:
    return tuple(parse_entries(data, path))


def _parse_saved(path: str, data: bytes) -> tuple[LocatedEntry, ...]:
    """Return what was saved last in a ledger; of a long one the beginning is not parsed, however long it is."""
    earlier = outline_ledger(path, data).saved_count - _MAX_PARSED

    def is_wanted(bullet: bytes) -> bool:
        nonlocal earlier
        if may_be_saved(bullet):
            earlier -= 1
            return earlier < 0
        return False

    located = parse_entries(data, path, only=is_wanted)
    return tuple(found for found in located if found.entry.by in {"user", "agent", "hand"})


def _parse_outline(path: str, data: bytes) -> _DocumentOutline:
    pinned = parse_entries(data, path, only=lambda bullet: PINNED_FIELD in bullet) if PINNED_FIELD in data else []
    return _DocumentOutline(
        ledger=outline_ledger(path, data) if ledger_date(path) is not None else None, pinned=tuple(pinned)
    )


def _source_path(path: str) -> str:
    return path.removeprefix(f"{WORKSPACE}/")
