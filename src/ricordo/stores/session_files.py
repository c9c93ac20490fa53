"""Session files, the default simple store. Each session gets one Markdown file that people can read and edit.

    sessions/2026-11-21-08h00.md      the topic of the session and its saved entries
    sessions/.draft-<session>.jsonl   the saved entries of a running session
    index.json                        a cache of the files, for recall and the preamble

Saving appends to the draft, and closing turns the draft into the file. Invariant: an entry whose save returned is in a
draft or in a file, at the latest when the next store is opened, whichever process was killed meanwhile.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain

from anyio.to_thread import run_sync

from ricordo.concurrency import run_even_if_cancelled
from ricordo.context.preamble import Preamble, compose_session_preamble
from ricordo.errors import InvalidSetting, StorageError
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.contract import Hit, Query
from ricordo.stores.addresses import OpenRequest
from ricordo.stores.base import FileTombstones, ForgettingDriver, StoreFolder, match_entries, open_folder, read_options
from ricordo.stores.contract import Backend, Driver, SessionNotes, StoreParts
from ricordo.stores.session_drafts import (
    RunningSessions,
    SessionDraft,
    SessionDrafts,
    close_session_file,
    remove_entry,
    remove_forgotten,
)
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import derive_id
from ricordo.workspace.session_catalog import SessionCatalog, SessionRow

__all__ = ["LAST_SESSIONS", "SessionFilesStore", "open_session_files"]


LAST_SESSIONS = 5
"""The default number of sessions in the preamble."""


class SessionFilesStore(Backend):
    """The sessions of one folder; `close` ends the sessions of every store that was bound here."""

    def __init__(self, parts: StoreParts, home: StoreFolder, *, last: int = LAST_SESSIONS) -> None:
        """Store sessions in `home`, and show the `last` ones in the preamble."""
        super().__init__(parts)
        self._home = home
        self._last = last
        self._running = RunningSessions(home.files)
        self._open_drivers: set[SessionFilesDriver] = set()

    async def close(self) -> None:
        """Write running sessions to session files. Raises `StorageError`; the drafts then stay for the next opening."""
        for driver in [*self._open_drivers]:
            await driver.close()

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver of `scope` and begin its session."""
        return SessionFilesDriver(self._home, scope, self._parts, self._running, self._open_drivers, last=self._last)


class SessionFilesDriver(ForgettingDriver):
    """Saves into drafts, closes them, and reads from the files and the drafts."""

    def __init__(
        self,
        home: StoreFolder,
        scope: Scope,
        parts: StoreParts,
        running: RunningSessions,
        busy: "set[SessionFilesDriver]",
        *,
        last: int,
    ) -> None:
        """Begin a session, which writes nothing before the first save; this driver is in `busy` while one is open."""
        folder = home.folder_for(scope)
        super().__init__(FileTombstones(home, folder, parts))
        self._scope, self._parts, self._running, self._last = scope, parts, running, last
        self._folder = folder
        self._catalog = SessionCatalog(home.files, folder, redactor=parts.redactor)
        self._drafts = SessionDrafts(home.files, folder, parts.clock)
        self._session = scope.session or parts.ids.new()
        self._start_times = {self._session: parts.clock.now()}
        self._open_sessions: dict[str, None] = {}
        self._open_drivers = busy
        self._has_recovered = False

    async def write(self, entry: Entry) -> Entry:
        """Append `entry` to the draft of its session."""
        await self._recover()
        session = entry.source.session or self._session
        if session not in self._open_sessions:
            await self._running.acquire(self._session_name(session))
            self._open_sessions[session] = None
            self._open_drivers.add(self)
        started = self._start_times.setdefault(session, self._parts.clock.now())
        await self._drafts.append(session, entry, started)
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return entries of running sessions, then the metadata of sessions, newest first."""
        rows, drafts = await self._read_state()
        return await run_sync(partial(self._match, rows, drafts, query, limit))

    async def preamble(self, budget: Tokens | None) -> Preamble:
        """Return remembered entries, open threads, and the last sessions."""
        rows, drafts = await self._read_state()
        entries = self._collect_entries(rows, drafts)
        return await run_sync(partial(compose_session_preamble, entries, rows, max_sessions=self._last, budget=budget))

    async def entries(self) -> list[Entry]:
        """Return the entries of all sessions: those of running sessions, then of sessions, newest session first."""
        return self._collect_entries(*await self._read_state())

    async def remove(self, entry: Entry) -> None:
        """Remove an entry from its file and its draft."""
        async with self._catalog.lock():
            await self._drafts.forget(entry.id)
            for row in await self._catalog.rows(locked=True):
                if any(one.id == entry.id for one in row.entries):
                    await self._catalog.write(row, partial(remove_entry, entry=entry, start=row.date), row.date)
            await self._catalog.write_index()

    async def close_session(self, notes: SessionNotes) -> str:
        """Write the file of a session and return its path; empty if there is nothing to write.

        Raises `StorageError`.
        """
        await self._recover()
        path = await self._write_session_file(notes)
        await self._end_session(notes.session)
        return path

    async def pending_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        rows, _ = await self._read_state()
        return tuple(row.session for row in reversed(rows) if row.is_pending and row.session)

    async def close(self) -> None:
        """Write every unclosed session with entries from here, with a digest instead of a summary."""
        for session in [*self._open_sessions]:
            await self._write_session_file(SessionNotes(session=session, pending=True))
            await self._end_session(session)

    async def _write_session_file(self, notes: SessionNotes) -> str:
        """Write the file of a session, then its row, then remove its draft; include entries that arrive meanwhile."""
        async with self._catalog.lock():
            path = ""
            notes = remove_forgotten(notes, await self._tombstones.text_matcher())
            while True:
                row = await self._catalog.find_row(notes.session)
                draft = await self._drafts.find(notes.session)
                if row is None and not (draft and draft.entries) and not notes.summary.strip():
                    path = ""
                else:
                    start = self._start_time(notes, draft)
                    change = partial(close_session_file, notes=notes, draft=draft, start=start, parts=self._parts)
                    path = await self._catalog.write(row, change, start)
                    with suppress(StorageError):
                        await self._catalog.write_index()
                if draft is None or await self._drafts.remove(draft):
                    return path and f"{self._folder}{path}"

    def _start_time(self, notes: SessionNotes, draft: SessionDraft | None) -> datetime:
        start_times = [notes.started, draft.started if draft else None, self._start_times.get(notes.session)]
        return min(filter(None, start_times), default=self._parts.clock.now())

    async def _end_session(self, session: str) -> None:
        self._open_sessions.pop(session, None)
        if not self._open_sessions:
            self._open_drivers.discard(self)
        await self._running.release(self._session_name(session))

    async def _read_state(self) -> tuple[list[SessionRow], list[SessionDraft]]:
        """Return the files and the drafts; drafts are read first, so that nothing that moves meanwhile is missed."""
        await self._recover()
        drafts = await self._drafts.read_all()
        rows = await self._catalog.rows()
        saved_keys = {(entry.id, entry.time) for row in rows for entry in row.entries}
        rest = [[entry for entry in draft.entries if (entry.id, entry.time) not in saved_keys] for draft in drafts]
        return rows, [replace(draft, entries=tuple(entries)) for draft, entries in zip(drafts, rest, strict=True)]

    async def _recover(self) -> None:
        """Write session files for the drafts of ended processes, once; drafts that fail are left in place."""
        if self._has_recovered:
            return
        self._has_recovered = True
        with suppress(StorageError):
            for draft in await self._drafts.read_all():
                if draft.session in self._open_sessions:
                    continue
                async with self._running.lock_if_orphaned(self._session_name(draft.session)) as alone:
                    if alone:
                        await self._write_session_file(SessionNotes(session=draft.session, pending=True))

    def _session_name(self, session: str) -> str:
        return f"{self._folder}{session}"

    def _collect_entries(self, rows: list[SessionRow], drafts: list[SessionDraft]) -> list[Entry]:
        entries = [entry for _, entry in _list_newest_first(drafts)]
        entries += [entry for row in rows for entry in reversed(row.entries)]
        return [entry if entry.scope else replace(entry, scope=self._scope) for entry in entries]

    def _match(self, rows: list[SessionRow], drafts: list[SessionDraft], query: Query, limit: int) -> list[Hit]:
        places = {(path, entry.id): index for index, (path, entry) in enumerate(_list_newest_first(drafts))}
        hits_by_draft = [match_entries(reversed(draft.entries), query, limit, path=draft.path) for draft in drafts]
        hits = sorted(chain(*hits_by_draft), key=lambda hit: places[hit.path, hit.entry.id])[:limit]
        for row in rows:
            if len(hits) < limit:
                path = f"{self._folder}{row.path}"
                metadata_entry = self._metadata_entry(row, path)
                searched = replace(metadata_entry, content=_searchable_text(row), tags=row.tags)
                hits += [replace(hit, entry=metadata_entry) for hit in match_entries([searched], query, 1, path=path)]
        return hits

    def _metadata_entry(self, row: SessionRow, path: str) -> Entry:
        """Return a session as an entry with its path and its topic, without the entries saved in it."""
        return Entry(
            content=f"[{path}] {row.summary}".rstrip(),
            kind="session-summary",
            tags=row.tags,
            id=derive_id(path, row.session, 0),
            time=row.date,
            scope=self._scope,
            by="agent",
            source=Source(session=row.session or None),
        )


@asynccontextmanager
async def open_session_files(request: OpenRequest) -> AsyncIterator[Backend]:
    """Open the session files of a folder; `?last=5` sets the number of sessions in the preamble.

    At the end, running sessions are written to session files. Raises: InvalidSetting.
    """
    last = read_options(request.address, "last").get("last", str(LAST_SESSIONS))
    if not last.isdecimal():
        raise InvalidSetting(f"`last` is how many sessions the preamble shows, not {last!r}.")
    async with open_folder(request) as store_folder:
        store = SessionFilesStore(request.parts, store_folder, last=int(last))
        try:
            yield store
        finally:
            await run_even_if_cancelled(store.close)


def _list_newest_first(drafts: Iterable[SessionDraft]) -> list[tuple[str, Entry]]:
    """Return the entries of running sessions with the paths of their drafts; a session keeps its order of saving."""
    rows: list[tuple[tuple[datetime, str], str, Entry]] = []
    for draft in drafts:
        latest, saved = (draft.started, ""), []
        for entry in draft.entries:
            latest = max(latest, (entry.time or draft.started, entry.id))
            saved.append((latest, draft.path, entry))
        rows += reversed(saved)
    return [(path, entry) for _, path, entry in sorted(rows, key=lambda row: row[0], reverse=True)]


def _searchable_text(row: SessionRow) -> str:
    """Return the text that is searched for a session."""
    texts = [row.summary, *row.threads, *row.files]
    for entry in row.entries:
        texts += [entry.content, *entry.tags]
    return "\n".join(texts) or " "
