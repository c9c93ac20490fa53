"""Reads the documents of a root for the preamble, parsed once for each version, and warns of damage.

Which documents and bullets are read follows from the outlines that the index stores. Damage is checked in documents
that changed, and logged once by a process; `doctor` checks all of them. A page of entries is read in the same way.

A fact of a profile stands for the entries of ledgers that were learned as the same statement: they are not listed
beside it.

Invariant: results equal the content of the files, even after an edit by a person or by another process.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from anyio.to_thread import run_sync

from ricordo import workspace
from ricordo.context.preamble import MAX_SAVED, normalize_words
from ricordo.curation.importance import MERGED_FIELD, REPLACED_FIELD, field_ids
from ricordo.errors import FileMissing, PathRefused, StorageError, VersionConflict
from ricordo.guard import has_secret
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import Scope
from ricordo.search.documents import Checksum
from ricordo.search.memory_root import BulletOutline, DocumentOutline, MemoryRoot, OutlineIndex, read_outlines
from ricordo.storage import FileInfo, FileStore
from ricordo.stores.contract import EntryPage, SessionNotes
from ricordo.stores.parsed_files import ParsedFile, log_damage
from ricordo.workspace.entry import Entry, contradicted_ids, find_contradictions
from ricordo.workspace.entry_codec import (
    PINNED_FIELD,
    LocatedEntry,
    parse_entries,
    render_prompt_lines,
    without_field_comment,
)
from ricordo.workspace.history.change_sets import CURATION_LOCK
from ricordo.workspace.history.log import count_saved, may_be_saved
from ricordo.workspace.layout import (
    LEDGERS,
    MEMORY_PATH,
    SESSIONS,
    TOPICS,
    WORKSPACE,
    is_ledger,
    is_memory,
    ledger_date,
    profile_path_for,
)
from ricordo.workspace.ledger import find_ledger_copies, is_curated, load_long_entry, matches_id, resolve_id
from ricordo.workspace.markdown import to_utf8

if TYPE_CHECKING:
    from ricordo.workspace.session_catalog import SessionCatalog, SessionRow

__all__ = [
    "SUMMARIZE_ACT",
    "EmptyRoots",
    "FactView",
    "RootReader",
    "RootSessions",
    "curated_keys",
    "entry_keys",
    "find_facts",
    "has_content",
    "merge_duplicates",
    "newest_key",
    "profile_of",
    "read_entry_page",
    "read_fact_view",
    "read_facts",
    "skip_to",
    "visible_entries",
]


_LEDGER_COUNT = 3
_MAX_BULLETS = 1_000
_BULLET = lazy_compile(rb"^[-*+] +(?=\S)", re.MULTILINE)


class _DamageMonitor:
    """Checks the newest ledgers and MEMORY.md of one place for damage, as far as they changed since the last check."""

    def __init__(self) -> None:
        """Start without any checked file."""
        self._reported: dict[str, Checksum] = {}

    async def check(self, files: FileStore, outlines: Sequence[DocumentOutline], index: object) -> None:
        """Log new damage of documents; `index` remembers which are sound. Unreadable files are reported elsewhere."""
        ledgers = [outline for outline in outlines if is_ledger(outline.path)]
        curated = [outline for outline in outlines if outline.path == MEMORY_PATH]
        for outline in [*ledgers[-_LEDGER_COUNT:], *curated]:
            if outline.is_sound or self._reported.get(outline.path) == outline.fingerprint.checksum:
                continue
            with suppress(FileMissing, StorageError):
                data = await files.read_from(outline.path, 0)
                damage = await run_sync(_find_damage, data, outline.path)
                log_damage(outline.path, damage)
                self._reported[outline.path] = outline.fingerprint.checksum
                if not damage and isinstance(index, OutlineIndex):
                    await index.note_sound(outline, data)


def _find_damage(data: bytes, path: str) -> tuple[str, ...]:
    """Return the damage among the last bullets of a document; `doctor` checks all of them."""
    earlier = len(_BULLET.findall(data)) - _MAX_BULLETS

    def is_recent(_bullet: bytes) -> bool:
        nonlocal earlier
        earlier -= 1
        return earlier < 0

    return workspace.find_damage(data, parse_entries(data, path, only=is_recent))


_T = TypeVar("_T")


_MAX_PARSED = 2 * MAX_SAVED
"""How many saved entries of one ledger are parsed, the last ones, since some are curated or superseded."""


class RootReader:
    """The documents of one place, read again only when they change."""

    def __init__(self, place: MemoryRoot) -> None:
        """Create the reader of a place without reading."""
        self._files = place.files
        self._index = place.index
        self._redactor = place.redactor
        self._damage_monitor = _DamageMonitor()
        self._documents: Sequence[FileInfo] = ()
        self._outlines: Sequence[DocumentOutline] = ()
        self._pinned_files: dict[str, ParsedFile[tuple[LocatedEntry, ...]]] = {}
        self._saved_files: dict[str, ParsedFile[tuple[LocatedEntry, ...]]] = {}
        self._curated_files: dict[str, ParsedFile[tuple[LocatedEntry, ...]]] = {}

    async def refresh(self) -> None:
        """List the documents; later calls read this listing. Damage is logged. Raises `StorageError`."""
        self._documents = await _list_documents(self._files)
        self._outlines = await _load_outlines(self._files, self._index, self._documents)
        await self._damage_monitor.check(self._files, self._outlines, self._index)
        paths = {info.path for info in self._documents}
        for cache in (self._pinned_files, self._saved_files, self._curated_files):
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
        infos = {info.path: info for info in self._documents}
        for path in [outline.path for outline in self._outlines if outline.has_pinned]:
            with suppress(FileMissing, StorageError):
                pins = await _read_cached(self._pinned_files, self._files, infos[path], _parse_pinned)
                for pin in [each.entry for each in await self._load_long(pins)]:
                    if pin.pinned and pin.id not in pinned and pin.state == "active":
                        pinned[pin.id] = _source_path(path), pin
        return [*map(self._redact, sorted(pinned.values(), key=lambda row: newest_key(row[1]), reverse=True))]

    async def recent_entries(self) -> tuple[list[tuple[str, Entry]], int]:
        """Return the entries saved last, with their ledgers, and about how many more are in ledgers not read."""
        ledgers = [outline for outline in self._outlines if ledger_date(outline.path) is not None]
        ledgers.sort(key=lambda outline: (outline.newest, outline.path), reverse=True)
        infos = {info.path: info for info in self._documents}
        saved: list[tuple[str, Entry]] = []
        passed_over = 0
        for number, ledger in enumerate(ledgers):
            if len(saved) >= MAX_SAVED and newest_key(saved[MAX_SAVED - 1][1])[0] > ledger.newest / 1000:
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
        shown = saved[:MAX_SAVED]
        # one search in all of them takes a fraction of the time of one for each
        if has_secret("\n".join(entry.content for _, entry in shown)):
            shown = [*map(self._redact, shown)]
        return [*shown, *saved[MAX_SAVED:]]

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


def skip_to(entries: Sequence[Entry], after: Entry | str) -> list[Entry]:
    """Return the entries, newest first, that come after the entry `after`, or after the one with this id.

    Raises: EntryNotFound if none has the id.
    """
    if isinstance(after, str):
        entry_id = resolve_id([entry.id for entry in entries], after)
        after = next(entry for entry in entries if entry.id == entry_id)
    last = newest_key(after)
    return [entry for entry in entries if newest_key(entry) < last]


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
    earlier = count_saved(data) - _MAX_PARSED

    def is_wanted(bullet: bytes) -> bool:
        nonlocal earlier
        if may_be_saved(bullet):
            earlier -= 1
            return earlier < 0
        return False

    located = parse_entries(data, path, only=is_wanted)
    return tuple(item for item in located if item.entry.by in {"user", "agent", "hand"})


def _parse_pinned(path: str, data: bytes) -> tuple[LocatedEntry, ...]:
    return tuple(parse_entries(data, path, only=lambda bullet: PINNED_FIELD in bullet))


def _source_path(path: str) -> str:
    return path.removeprefix(f"{WORKSPACE}/")


_MAX_TRIES = 5


async def read_entry_page(
    places: Sequence[MemoryRoot], limit: int, after: Entry | str | None = None
) -> EntryPage | None:
    """Return the newest `limit` entries of all places that come after the entry `after`, or the one with this id.

    Only the documents and bullets of these entries are read and parsed. Returns None if documents change all the time.
    Raises: EntryNotFound if none has the id.
    """
    for _ in range(_MAX_TRIES):
        listings = [await _EntryListing.open(place) for place in places]
        try:
            return await _read_page(listings, limit, after)
        except VersionConflict:
            continue
    return None


async def _read_page(listings: "Sequence[_EntryListing]", limit: int, after: Entry | str | None) -> EntryPage:
    ids = tuple(name for listing in listings for name in listing.documents_by_id)
    last_key: tuple[float, str] | None = None
    if isinstance(after, Entry):
        last_key = newest_key(after)
    elif after is not None:
        full_id = resolve_id(ids, after)
        last_key = max(listing.find_bullet(full_id).key for listing in listings if full_id in listing.documents_by_id)
    rows = [(bullet.key, number) for number, each in enumerate(listings) for bullet in each.newest(limit, last_key)]
    page_keys = sorted(rows, reverse=True)[:limit]
    entries: list[Entry] = []
    linked: list[Entry] = []
    contradicting = [listing.contradicting_ids() for listing in listings]
    for number, listing in enumerate(listings):
        entries += await listing.read({key[1] for key, place in page_keys if place == number})
        linked += await listing.read(contradicting[number])
    targets = {name for entry in linked for name in contradicted_ids(entry)}
    for listing, names in zip(listings, contradicting, strict=True):
        linked += await listing.read((targets & listing.documents_by_id.keys()) - names)
    return EntryPage(
        entries=tuple(sorted(entries, key=newest_key, reverse=True)),
        ids=ids,
        contradictions=find_contradictions(sorted(linked, key=newest_key, reverse=True)),
    )


class _EntryListing:
    """The outlines of all memory documents of one place: curated memory first, then by path."""

    def __init__(self, place: MemoryRoot, outlines: Sequence[DocumentOutline]) -> None:
        self._place = place
        self._outlines = outlines
        self.documents_by_id: dict[str, list[int]] = {}
        for number, outline in enumerate(outlines):
            for name in outline.ids:
                self.documents_by_id.setdefault(name, []).append(number)

    @classmethod
    async def open(cls, place: MemoryRoot) -> "_EntryListing":
        """List the documents of a place. Raises: StorageError."""
        return cls(place, await _load_outlines(place.files, place.index, await _list_documents(place.files)))

    def newest(self, limit: int, last_key: tuple[float, str] | None) -> list[BulletOutline]:
        """Return the newest `limit` bullets, one for each entry; with `last_key` only older ones."""
        found: list[BulletOutline] = []
        for number in sorted(range(len(self._outlines)), key=lambda each: self._outlines[each].newest, reverse=True):
            if len(found) == limit and found[-1].time > self._outlines[number].newest:
                break
            bullets = {
                bullet.id: bullet
                for bullet in reversed(self._outlines[number].bullets)
                if self._main_document(bullet.id) == number
            }
            found += [bullet for bullet in bullets.values() if last_key is None or bullet.key < last_key]
            found = sorted(found, key=lambda bullet: bullet.key, reverse=True)[:limit]
        return found

    def find_bullet(self, entry_id: str) -> BulletOutline:
        """Return the bullet that counts for an entry of this place."""
        bullets = self._outlines[self._main_document(entry_id)].bullets
        return next(bullet for bullet in bullets if bullet.id == entry_id)

    def contradicting_ids(self) -> set[str]:
        """Return the ids of the entries that may contradict others."""
        return {
            bullet.id
            for number, outline in enumerate(self._outlines)
            if outline.has_contradicting
            for bullet in outline.bullets
            if bullet.is_contradicting and self._main_document(bullet.id) == number
        }

    async def read(self, ids: Collection[str]) -> list[Entry]:
        """Return the entries with these ids, as shown by the place. Raises: VersionConflict if a document changed."""
        located: list[LocatedEntry] = []
        for number in sorted({number for name in ids for number in self.documents_by_id[name]}):
            outline = self._outlines[number]
            try:
                data = await self._place.files.read_from(outline.path, 0)
            except FileMissing as error:
                raise VersionConflict(f"{outline.path} was removed.") from error
            found = await run_sync(_parse_bullets, outline, data, ids)
            located += [await load_long_entry(self._place.files, one) for one in found]
        return await run_sync(lambda: [*map(self._place.to_visible_entry, merge_duplicates(located))])

    def _main_document(self, entry_id: str) -> int:
        """Return the number of the document whose version of an entry counts."""
        return min(self.documents_by_id[entry_id], key=lambda each: (not is_curated(self._outlines[each].path), each))


def _parse_bullets(outline: DocumentOutline, data: bytes, ids: Collection[str]) -> list[LocatedEntry]:
    """Return the entries with these ids of a document. Raises: VersionConflict if it has other bytes than outlined."""
    if Checksum().extend(data) != outline.fingerprint.checksum:
        raise VersionConflict(f"{outline.path} changed since it was listed.")
    text, located = to_utf8(data), list[LocatedEntry]()
    if without_field_comment(text) is not text:
        return [one for one in parse_entries(data, outline.path) if one.entry.id in ids]
    for bullet in outline.bullets:
        if bullet.id in ids:
            (one,) = parse_entries(text[bullet.offset : bullet.offset + bullet.length], outline.path)
            # an id that is not written depends on the whole document
            located.append(replace(one, entry=replace(one.entry, id=bullet.id), offset=bullet.offset))
    return located


async def _list_documents(files: FileStore) -> list[FileInfo]:
    """Return the memory documents with entries: MEMORY.md, then by path.

    A MEMORY.md that is a link out of the workspace is ignored; `doctor` reports it.
    """
    memory = None
    with suppress(PathRefused):
        memory = await files.info(MEMORY_PATH)
    infos = [info for info in await files.list(LEDGERS) if is_memory(info.path)]
    infos = [info for info in infos if not info.path.startswith(f"{LEDGERS}/long/")]
    return [memory, *infos] if memory else infos


async def _load_outlines(files: FileStore, index: object, documents: Sequence[FileInfo]) -> list[DocumentOutline]:
    """Return the outlines of all memory documents of a place; one that can't be read is left out."""
    return await (index.outlines(documents) if isinstance(index, OutlineIndex) else read_outlines(files, documents))


def merge_duplicates(located: Iterable[LocatedEntry]) -> list[Entry]:
    """Return each entry once: the version in curated memory, with the quote from its ledger."""
    versions: dict[str, list[LocatedEntry]] = {}
    for one in located:
        versions.setdefault(one.entry.id, []).append(one)
    return [_merge_versions(sorted(places, key=lambda one: not is_curated(one.path))) for places in versions.values()]


def _merge_versions(places: Sequence[LocatedEntry]) -> Entry:
    entry = places[0].entry
    if len(places) == 1:
        return entry
    quote = next((one.entry.source.quote for one in places if one.entry.source.quote is not None), None)
    return replace(entry, source=replace(entry.source, quote=quote))


class EmptyRoots:
    """Remembers which places were empty at the last check; a place with content is not checked again."""

    def __init__(self) -> None:
        """Start without any known place."""
        self._empty: frozenset[str] = frozenset()
        self._nonempty: set[str] = set()

    def exclude_empty(self, places: Sequence[MemoryRoot]) -> list[MemoryRoot]:
        """Return the places to search: the first, and those of the others that were not empty."""
        return [place for number, place in enumerate(places) if number == 0 or place.label not in self._empty]

    def refresh(self, places: Sequence[MemoryRoot]) -> bool:
        """Check which places are empty now; return whether one of them no longer is. It blocks on the disk."""
        before, wider = self._empty, [place for place in places[1:] if place.label not in self._nonempty]
        self._empty = frozenset(place.label for place in wider if not place.has_documents())
        self._nonempty |= {place.label for place in wider} - self._empty
        return not before <= self._empty


SUMMARIZE_ACT = "summarize"
"""The name of a change set that wrote a session file."""


class RootSessions:
    """The session files of one place, cached until they change."""

    def __init__(self, place: MemoryRoot) -> None:
        """Create the object without reading any file."""
        self._root = place

    @cached_property
    def _catalog(self) -> "SessionCatalog":
        recording = partial(self._root.changes.apply, act=SUMMARIZE_ACT, who="closing")
        files, redactor = self._root.files, self._root.redactor
        return workspace.SessionCatalog(files, f"{WORKSPACE}/", recording, redactor=redactor)

    async def rows(self) -> "list[SessionRow]":
        """Return a row for each session, newest first."""
        return await self._catalog.rows() if await self._root.files.list(SESSIONS) else []

    async def close(self, notes: SessionNotes) -> str:
        """Write the file of a session, index it, and return its path; empty for an empty session.

        Entries forgotten since the notes were made are left out. Raises: StorageError.
        """

        from ricordo.stores.session_drafts import close_session_file, remove_forgotten

        async with self._catalog.lock(), self._root.files.lock(CURATION_LOCK):
            notes = remove_forgotten(notes, await self._root.read_forgotten())
            row = await self._catalog.find_row(notes.session)
            if row is None and not notes.summary.strip():
                return ""
            start = notes.started or (row.date if row else self._root.clock.now())
            change = partial(close_session_file, notes=notes, draft=None, start=start, parts=self._root)
            path = await self._catalog.write(row, change, start)
            await self._catalog.write_index()
        await self._root.index.refresh()
        return f"{WORKSPACE}/{path}"

    async def pending_ids(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        return tuple(row.session for row in reversed(await self.rows()) if row.is_pending and row.session)


def profile_of(place: MemoryRoot, scope: Scope) -> str:
    """Return the path of the profile that `scope` has in a place; empty without one."""
    return profile_path_for(place.scope, scope) if place.includes_profile else ""


async def read_facts(place: MemoryRoot, scope: Scope) -> list[LocatedEntry]:
    """Return the facts of the profile that `scope` has in a place; none if it can't be read, which `doctor` reports."""
    path = profile_of(place, scope)
    with suppress(FileMissing, StorageError):
        data = (await place.files.read(path)).data if path else b""
        if data:
            from ricordo.workspace.profile import locate_facts

            return await run_sync(locate_facts, data, path)
    return []


async def find_facts(place: MemoryRoot, scope: Scope, entry_id: str) -> list[LocatedEntry]:
    """Return the facts with this id, or whose id begins or ends with these six or more characters."""
    facts = await read_facts(place, scope)
    return [located for located in facts if entry_id and matches_id(entry_id, located.entry.id)]


@dataclass(frozen=True, kw_only=True)
class FactView:
    """The visible facts, with their places, and the ids of the entries for which they stand, by place."""

    facts: Sequence[tuple[MemoryRoot, Entry]]
    copies: Mapping[str, Collection[str]]

    def without_copies(self, place: MemoryRoot, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries of a place for which no fact stands."""
        return [entry for entry in entries if entry.id not in self.copies.get(place.label, ())]


async def read_fact_view(places: Sequence[MemoryRoot], scope: Scope) -> FactView:
    """Return the facts of all places, and the entries for which they stand."""
    rows: list[tuple[MemoryRoot, Entry]] = []
    copies: dict[str, Collection[str]] = {}
    for place in places:
        facts = [located.entry for located in await read_facts(place, scope)]
        rows += [(place, fact) for fact in facts]
        if facts:
            copies[place.label] = frozenset(await find_ledger_copies(place.files, facts))
    return FactView(facts=rows, copies=copies)


def has_content(document: bytes) -> bool:
    """Return whether a document has more than headings; without, all its memories were removed."""
    return any(not line.startswith("#") for line in render_prompt_lines(document))


def curated_keys(curated: Iterable[LocatedEntry]) -> set[str]:
    """Return the ids and the words of the entries in curated memory, and the ids of the entries they replace."""
    keys: set[str] = set()
    for located in curated:
        entry = located.entry
        keys |= {
            *entry_keys(entry),
            *field_ids(entry, MERGED_FIELD),
            *field_ids(entry, REPLACED_FIELD),
            entry.supersedes or entry.id,
        }
    return keys


def entry_keys(entry: Entry) -> set[str]:
    """Return the id and the words of an entry; a prefix tells words from ids."""
    return {entry.id, f": {normalize_words(entry.content)}"}
