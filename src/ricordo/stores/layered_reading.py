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

from ricordo.audit.ledgers import LedgerOutline, may_be_saved, newest_first, outline
from ricordo.errors import FileMissing, PathRefused, StorageError
from ricordo.files import FileInfo, FileStore
from ricordo.guard import Redactor
from ricordo.recall.hits import Hit
from ricordo.stores.held_file import HeldFile
from ricordo.stores.place import AT_ONCE, Place
from ricordo.stores.preamble import MOST_SAVED
from ricordo.uncut import compute
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import PINNED, Located, parse_entries
from ricordo.workspace.layout import LEDGERS, MEMORY, TOPICS, WORKSPACE, is_ledger, is_memory, ledger_date
from ricordo.workspace.ledger import whole
from ricordo.workspace.redaction import guarded_length

__all__ = ["PlaceReading", "hits_outward", "newest", "outward"]

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class _Outlined:
    """What is known of a document that was not parsed as a whole."""

    ledger: LedgerOutline | None
    pinned: tuple[Located, ...]


_MOST_READ = 5 * MOST_SAVED
"""How many saved entries of one ledger are parsed, the last ones: some of them are curated or superseded."""


class PlaceReading:
    """The documents of one place, as far as they changed since the last look."""

    def __init__(self, files: FileStore, redactor: Redactor) -> None:
        """Have read nothing yet; `redactor` takes out the secrets of what may be shown."""
        self._files = files
        self._redactor = redactor
        self._listed: Sequence[FileInfo] = ()
        self._outlines: dict[str, HeldFile[_Outlined]] = {}
        self._saved: dict[str, HeldFile[tuple[Located, ...]]] = {}
        self._curated: dict[str, HeldFile[tuple[Located, ...]]] = {}

    async def look(self) -> None:
        """List the documents as they are now; what is asked for next is told of these. Raises `StorageError`.

        A MEMORY.md that leads out of the workspace is none; `doctor` tells of it.
        """
        memory = None
        with suppress(PathRefused):
            memory = await self._files.info(MEMORY)
        found = [info for info in await self._files.list(LEDGERS) if is_memory(info.path)]
        self._listed = [memory, *found] if memory else found
        paths = {info.path for info in self._listed}
        for held in (self._outlines, self._saved, self._curated):
            for gone in held.keys() - paths:
                del held[gone]

    async def curated(self) -> list[Located]:
        """Return the entries of MEMORY.md and the topics; a file that can't be read is left out."""
        found: list[Located] = []
        for info in self._listed:
            if info.path == MEMORY or info.path.startswith(f"{TOPICS}/"):
                with suppress(FileMissing, StorageError):
                    located = await _value(self._curated, self._files, info, _entries)
                    found += await self._whole(located)
        return found

    async def pinned(self) -> list[tuple[str, Entry]]:
        """Return what people pinned, with the document of each; one that stands in several is named once."""
        found: dict[str, tuple[str, Entry]] = {}
        for info in self._listed:
            with suppress(FileMissing, StorageError):
                pins = (await _value(self._outlines, self._files, info, _outlined)).pinned
                for pin in [each.entry for each in await self._whole(pins)]:
                    if pin.pinned and pin.id not in found and pin.state == "active":
                        found[pin.id] = _source(info.path), pin
        return [*map(self._clean, sorted(found.values(), key=lambda row: newest(row[1]), reverse=True))]

    async def newest_saved(self) -> tuple[list[tuple[str, Entry]], int]:
        """Return what was saved last, with the ledger of each, and about how much more there is in ledgers not read."""
        outlines: list[LedgerOutline] = []
        for info in self._listed:
            if is_ledger(info.path):
                with suppress(FileMissing, StorageError):
                    held = await _value(self._outlines, self._files, info, _outlined)
                    outlines += [held.ledger] if held.ledger else []
        infos = {info.path: info for info in self._listed}
        saved: list[tuple[str, Entry]] = []
        passed_over = 0
        ledgers = newest_first(outlines)
        for number, ledger in enumerate(ledgers):
            if len(saved) >= MOST_SAVED and newest(saved[MOST_SAVED - 1][1])[0] > ledger.newest.timestamp():
                return self._shown(saved), passed_over + sum(unread.saved for unread in ledgers[number:])
            with suppress(FileMissing, StorageError):
                located = await _value(self._saved, self._files, infos[ledger.path], _saved)
                source = _source(ledger.path)
                passed_over += max(ledger.saved - _MOST_READ, 0)
                saved += [(source, found.entry) for found in await self._whole(located)]
                saved.sort(key=lambda row: newest(row[1]), reverse=True)
        return self._shown(saved), passed_over

    def _shown(self, saved: Sequence[tuple[str, Entry]]) -> list[tuple[str, Entry]]:
        """Return rows of which no more than the first are ever shown, those without secrets."""
        return [*map(self._clean, saved[:MOST_SAVED]), *saved[MOST_SAVED:]]

    def _clean(self, row: tuple[str, Entry]) -> tuple[str, Entry]:
        source, entry = row
        content = self._redactor.clean(entry.content)
        return row if content is entry.content else (source, replace(entry, content=content))

    async def _whole(self, located: Sequence[Located]) -> list[Located]:
        return [found if found.long is None else await whole(self._files, found) for found in located]


def newest(entry: Entry) -> tuple[float, str]:
    """Return what entries are sorted by; the newest is the greatest."""
    return (entry.time.timestamp() if entry.time else 0.0, entry.id)


async def hits_outward(hits: Sequence[Hit], by_label: Mapping[str, Place]) -> list[Hit]:
    """Return hits with their entries as their places show them, computed in a thread where they are long together."""

    def show_all() -> list[Hit]:
        return [replace(hit, entry=by_label[hit.source].outward(hit.entry)) for hit in hits]

    return await compute(show_all, size=guarded_length(hit.entry for hit in hits), at_once=AT_ONCE)


def outward(read: Iterable[tuple[Place, Iterable[Entry]]]) -> list[Entry]:
    """Return the entries of places as these give them, the newest first. Slow for many: call it in a thread."""
    return sorted((place.outward(entry) for place, entries in read for entry in entries), key=newest, reverse=True)


async def _value(
    held: dict[str, HeldFile[_T]], files: FileStore, info: FileInfo, parse: Callable[[str, bytes], _T]
) -> _T:
    """Return what a document says, from what is held of it where it is as it was."""
    if info.path not in held:
        held[info.path] = HeldFile(files, info.path, partial(parse, info.path))
    return await held[info.path].value(info)


def _entries(path: str, data: bytes) -> tuple[Located, ...]:
    return tuple(parse_entries(data, path))


def _saved(path: str, data: bytes) -> tuple[Located, ...]:
    """Return what was saved last in a ledger; of a long one the beginning is not parsed, however long it is."""
    earlier = outline(path, data).saved - _MOST_READ

    def is_wanted(bullet: bytes) -> bool:
        nonlocal earlier
        if may_be_saved(bullet):
            earlier -= 1
            return earlier < 0
        return False

    located = parse_entries(data, path, only=is_wanted)
    return tuple(found for found in located if found.entry.by in {"user", "agent", "hand"})


def _outlined(path: str, data: bytes) -> _Outlined:
    pinned = parse_entries(data, path, only=lambda bullet: PINNED in bullet) if PINNED in data else []
    return _Outlined(ledger=outline(path, data) if ledger_date(path) is not None else None, pinned=tuple(pinned))


def _source(path: str) -> str:
    return path.removeprefix(f"{WORKSPACE}/")
