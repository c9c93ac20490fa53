"""Drafts of running sessions, and the content of a session file when its session is closed.

`sessions/.draft-<session>.jsonl` begins with a line that names the session and its start; then each entry has a line.
Its writer holds a lock, so a draft with a free lock belongs to a process that has ended. Closing adds entries to those
in the file, and never replaces a summary by a digest.

Invariants: a torn line hides no other line. A draft is removed only in the version that was read.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Protocol
from zlib import crc32

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock, IdSource, format_rfc3339
from ricordo.errors import DocumentInvalid, FileMissing, InvalidMessage, StorageError, VersionConflict
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Usage
from ricordo.messages.json_text import dumps, loads
from ricordo.scope import encode_folder_name
from ricordo.storage import FileStore, StoredFile
from ricordo.storage.contract import FileInfo, quarantine_document
from ricordo.stores.contract import SessionNotes
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_json import entry_from_json, entry_to_json
from ricordo.workspace.history.repetition import mask_session
from ricordo.workspace.history.tombstones import ForgottenStatements
from ricordo.workspace.session_files import SessionFile, SessionTotals, create_digest, to_tag

__all__ = ["RunningSessions", "SessionDraft", "SessionDrafts", "close_session_file", "remove_entry"]


_PREFIX, _SUFFIX = ".draft-", ".jsonl"
_LOCK_COUNT = 256
_LOCK_SECONDS = 0.2
_MAX_TRIES = 20


@dataclass(frozen=True, kw_only=True)
class SessionDraft:
    """The saved entries of one session, oldest first; `broken` tells whether some lines could not be read."""

    path: str
    session: str
    started: datetime
    stored: StoredFile
    entries: tuple[Entry, ...] = ()
    broken: bool = False


class RunningSessions:
    """Knows which sessions run: holds a lock for each session of this process, and tries the locks of others.

    Several sessions share a lock, so an ended session may seem to run until the next try, but never the other way.
    """

    def __init__(self, files: FileStore) -> None:
        """Start without any session."""
        self._files = files
        self._locks: dict[str, tuple[AsyncExitStack, set[str]]] = {}
        self._mutex = anyio.Lock()

    async def acquire(self, name: str) -> None:
        """Mark the session `name` as running in this process, unless it runs in another one."""
        async with self._mutex:
            lock = _lock_name(name)
            if lock in self._locks:
                self._locks[lock][1].add(name)
            elif stack := await self._try_lock(lock):
                self._locks[lock] = (stack, {name})

    async def release(self, name: str) -> None:
        """Mark the session `name` as no longer running."""
        async with self._mutex:
            lock = _lock_name(name)
            stack, names = self._locks.get(lock, (None, set()))
            names.discard(name)
            if stack and not names:
                del self._locks[lock]
                await stack.aclose()

    @asynccontextmanager
    async def lock_if_orphaned(self, name: str) -> AsyncIterator[bool]:
        """Yield whether no process runs the session `name`, and keep it so during the block."""
        async with self._mutex:
            lock = _lock_name(name)
            if lock in self._locks:
                yield name not in self._locks[lock][1]
                return
            stack = await self._try_lock(lock)
            try:
                yield stack is not None
            finally:
                if stack:
                    await stack.aclose()

    async def _try_lock(self, lock: str) -> AsyncExitStack | None:
        """Return the acquired lock; None if another process has it."""
        stack = AsyncExitStack()
        with anyio.move_on_after(_LOCK_SECONDS):
            await stack.enter_async_context(self._files.lock(lock))
            return stack
        return None


class SessionDrafts:
    """The drafts of one folder."""

    def __init__(self, files: FileStore, folder: str, clock: Clock) -> None:
        """Store the drafts in `<folder>sessions/`."""
        self._files = files
        self._folder = f"{folder}sessions"
        self._clock = clock
        self._cache: dict[str, tuple[FileInfo, SessionDraft]] = {}

    def path(self, session: str) -> str:
        """Return the path of the draft of a session."""
        return f"{self._folder}/{_PREFIX}{encode_folder_name(session)}{_SUFFIX}"

    async def append(self, session: str, entry: Entry, started: datetime) -> None:
        """Add `entry`, durably; `started` is the start of the session, for the header of a new draft."""
        head: dict[str, JsonValue] = {"draft": session, "started": format_rfc3339(started)}
        await self._files.append(self.path(session), _encode_line(entry_to_json(entry)), header=_encode_line(head))

    async def read_all(self) -> list[SessionDraft]:
        """Return the drafts."""
        infos = [info for info in await self._files.list(self._folder) if self._is_draft(info.path)]
        cached = {info.path: self._cache.get(info.path) for info in infos}
        self._cache = {path: read for path, read in cached.items() if read}
        drafts = []
        for info in infos:
            # an unreadable draft hides no other draft
            with suppress(StorageError, FileMissing):
                drafts.append(await self._read_draft(info))
        return drafts

    async def find(self, session: str) -> SessionDraft | None:
        """Return the draft of a session; None if there is none."""
        info = await self._files.info(self.path(session))
        try:
            return await self._read_draft(info) if info else None
        except FileMissing:
            return None

    async def remove(self, draft: SessionDraft) -> bool:
        """Remove a draft whose entries are stored elsewhere; return False if it has grown meanwhile.

        A copy under another name keeps the parts that could not be read.
        """
        try:
            if draft.broken:
                await quarantine_document(self._files, draft.path, draft.stored)
            await self._files.delete(draft.path, expected=draft.stored.version)
        except VersionConflict:
            return False
        except FileMissing:
            return True
        return True

    async def forget(self, entry_id: str) -> None:
        """Remove the entry from every draft that has it."""
        for _ in range(_MAX_TRIES):
            drafts = [one for one in await self.read_all() if any(entry.id == entry_id for entry in one.entries)]
            try:
                for draft in drafts:
                    rest = await run_sync(_remove_lines, draft, entry_id)
                    await self._files.replace(draft.path, rest, expected=draft.stored.version)
            except VersionConflict:
                continue
            return
        raise VersionConflict("A draft changed each time that an entry was to be taken out of it: try again.")

    def _is_draft(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return folder == self._folder and name.startswith(_PREFIX) and name.endswith(_SUFFIX)

    async def _read_draft(self, info: FileInfo) -> SessionDraft:
        read = self._cache.get(info.path)
        if read and read[0] == info:
            return read[1]
        stored = await self._files.read(info.path)
        draft = await run_sync(self._parse, info.path, stored, read[1] if read else None)
        self._cache[info.path] = (info, draft)
        return draft

    def _parse(self, path: str, stored: StoredFile, before: SessionDraft | None) -> SessionDraft:
        """Return the parsed draft; if a draft only grew, only the new lines are parsed."""
        if before and before.stored.data.endswith(b"\n") and stored.data.startswith(before.stored.data):
            entries, broken = _parse_entries(stored.data[len(before.stored.data) :])
            return SessionDraft(
                path=path,
                session=before.session,
                started=before.started,
                stored=stored,
                entries=(*before.entries, *entries),
                broken=before.broken or broken,
            )
        head, _, rest = stored.data.partition(b"\n")
        session, started = _parse_header(head)
        entries, broken = _parse_entries(rest if session else stored.data)
        name = path.rpartition("/")[2].removeprefix(_PREFIX).removesuffix(_SUFFIX)
        times = [entry.time for entry in entries if entry.time]
        return SessionDraft(
            path=path,
            session=session or name,
            started=started or (times[0] if times else self._clock.now()),
            stored=stored,
            entries=tuple(entries),
            broken=broken,
        )


def _lock_name(name: str) -> str:
    return f"session-{crc32(name.encode('utf-8', 'surrogatepass')) % _LOCK_COUNT:02x}"


def _encode_line(value: dict[str, JsonValue]) -> bytes:
    return f"{dumps(value)}\n".encode()


def _decode_line(line: bytes) -> dict[str, JsonValue]:
    value = loads(line)
    if not isinstance(value, dict):
        raise DocumentInvalid("A line of a draft is an object.")
    return value


def _parse_header(line: bytes) -> tuple[str, datetime | None]:
    """Return the session and its start from the first line; "" if the line does not name them."""
    try:
        record = _decode_line(line)
        started = datetime.fromisoformat(str(record.get("started")))
    except (InvalidMessage, DocumentInvalid, ValueError):
        return "", None
    session = record.get("draft")
    return (session, started) if isinstance(session, str) and started.tzinfo else ("", None)


def _parse_entries(data: bytes) -> tuple[list[Entry], bool]:
    """Return the entries of these lines, and whether one could not be read; a torn last line was never saved."""
    entries, broken = [], False
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(entry_from_json(_decode_line(line)))
        except (InvalidMessage, DocumentInvalid):
            broken = broken or number < len(lines)
    return entries, broken


def _remove_lines(draft: SessionDraft, entry_id: str) -> bytes:
    lines = []
    for line in draft.stored.data.split(b"\n"):
        try:
            if _decode_line(line).get("id") == entry_id:
                continue
        except (InvalidMessage, DocumentInvalid):
            pass
        lines.append(line)
    return b"\n".join(lines)


_ORIGIN = "closing"
"""The origin of decisions that were found in a conversation at its close."""


class ClosingParts(Protocol):
    """What closing a session needs: a redactor and sources of times and ids."""

    @property
    def redactor(self) -> Redactor:
        """The redactor of secrets."""
        ...

    @property
    def clock(self) -> Clock:
        """The source of times."""
        ...

    @property
    def ids(self) -> IdSource:
        """The source of ids."""
        ...


def close_session_file(
    present: SessionFile | None,
    *,
    notes: SessionNotes,
    draft: SessionDraft | None,
    start: datetime,
    parts: ClosingParts,
) -> SessionFile:
    """Return the closed session file, made from its present content, the entries of the draft, and `notes`.

    Secrets of the notes are redacted.
    """
    before = present or SessionFile(started=start, session=notes.session)
    present_keys = {(entry.id, entry.time) for entry in before.entries}
    saved = tuple(entry for entry in (draft.entries if draft else ()) if (entry.id, entry.time) not in present_keys)
    remaining, concluded = _merge_decisions(before.entries, saved, notes, parts)
    file = replace(
        before,
        started=min(before.started, start),
        totals=_measure_work(before, notes, start, saved),
        closing=_add_amounts(before.closing, notes.closing_usage, notes.closing_cost),
        tags=_clean_lines(map(to_tag, notes.tags), parts) or before.tags,
        files_read=tuple(dict.fromkeys([*before.files_read, *_clean_lines(notes.files_read, parts)])),
        entries=(*remaining, *saved, *concluded),
    )
    threads = _clean_lines(notes.open_threads, parts)
    if threads or not notes.pending:
        file = replace(file, open_threads=threads)
    goes_on = bool(saved) or notes.turns > (before.totals.turns or 0)
    return _set_summary(file, notes, parts.redactor.clean(notes.summary).strip(), goes_on=goes_on)


def remove_entry(file: SessionFile | None, *, entry: Entry, start: datetime) -> SessionFile:
    """Return a session file without an entry; a digest is made again, a summary that repeats the entry gets a mark."""
    return mask_session(file or SessionFile(started=start), [entry.content], {entry.id})


def remove_forgotten(notes: SessionNotes, forgotten: ForgottenStatements) -> SessionNotes:
    """Return the notes without text that was forgotten since they were made."""
    if not forgotten:
        return notes
    return replace(
        notes,
        summary=forgotten.mask(notes.summary),
        decisions=tuple(each for each in notes.decisions if not forgotten.contains(each)),
        open_threads=tuple(each for each in notes.open_threads if not forgotten.contains(each)),
    )


def _set_summary(file: SessionFile, notes: SessionNotes, text: str, *, goes_on: bool) -> SessionFile:
    """Return the file with a summary: from the notes, a saved one, its present one, or a digest."""
    if text and not notes.pending:
        return replace(file, summary=text, is_pending=False, is_outdated=False)
    if file.summary and not file.is_pending:
        return replace(file, is_outdated=file.is_outdated or (notes.pending and goes_on))
    written = [entry.content for entry in file.entries if entry.kind == "session-summary"]
    if written:
        return replace(file, summary=written[-1].strip(), is_pending=False)
    if notes.pending:
        previous = "" if goes_on or text else file.summary
        return replace(file, summary=previous or _add_digest(text, file.entries), is_pending=True)
    return file


def _add_digest(text: str, entries: Sequence[Entry]) -> str:
    """Return a summary by rules with a digest of the entries that it does not say."""
    unsaid = [entry for entry in entries if entry.content.strip().rstrip(".") not in text]
    return " ".join(filter(None, (text, create_digest(unsaid))))


def _measure_work(before: SessionFile, notes: SessionNotes, start: datetime, saved: Sequence[Entry]) -> SessionTotals:
    """Return the totals of the session; without notes, only the time until its last entry is known."""
    began = min(before.started, start)
    if notes.ended:
        spent = _add_amounts(before.totals, notes.usage, notes.cost)
        return replace(spent, minutes=_minutes_between(began, notes.ended), turns=notes.turns)
    times = [entry.time for entry in saved if entry.time]
    if not times:
        return before.totals
    return replace(before.totals, minutes=max(_minutes_between(began, max(times)), before.totals.minutes or 0))


def _minutes_between(start: datetime, end: datetime) -> int:
    return max(round((end - start).total_seconds() / 60), 0)


def _add_amounts(before: SessionTotals, usage: Usage, cost: Decimal | None) -> SessionTotals:
    """Return `before` with this usage and cost added; an unknown cost makes the sum unknown."""
    if usage == Usage() and cost is None:
        return before
    if before.usage == Usage() and before.cost is None:
        return replace(before, usage=usage, cost=cost)
    total = None if before.cost is None or cost is None else before.cost + cost
    return replace(before, usage=before.usage + usage, cost=total)


def _merge_decisions(
    present: Sequence[Entry], saved: Sequence[Entry], notes: SessionNotes, parts: ClosingParts
) -> tuple[list[Entry], list[Entry]]:
    """Return the present entries that stay, and the decisions of the notes that were not saved yet."""
    decisions = _clean_lines(notes.decisions, parts)
    remaining = [
        entry for entry in present if not decisions or entry.source.origin != _ORIGIN or entry.content in decisions
    ]
    existing = {entry.content.casefold().strip() for entry in (*remaining, *saved)}
    time = notes.ended or parts.clock.now()
    source = Source(session=notes.session or None, origin=_ORIGIN)
    return remaining, [
        Entry(content=text, kind="decision", id=parts.ids.new(), time=time, by="flush", source=source)
        for text in decisions
        if text.casefold() not in existing
    ]


def _clean_lines(texts: Iterable[str], parts: ClosingParts) -> tuple[str, ...]:
    """Return each text once, on one line and without secrets."""
    lines = (" ".join(parts.redactor.clean(text).split()) for text in texts)
    return tuple(dict.fromkeys(line for line in lines if line))
