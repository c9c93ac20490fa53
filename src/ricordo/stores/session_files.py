"""Session files: the default of the plain stores. Each session gets one Markdown file that people read and edit.

    sessions/2026-11-21-08h00.md      what the session was about, and what was saved in it
    sessions/.draft-<session>.jsonl   what a running session has saved so far
    index.json                        a cache of the files, for recall and the preamble

Saving appends to the draft, closing makes the file of it. Invariant: an entry whose save returned stands in a draft or
in a file, in one of them at the latest when the next store is opened, whatever was killed meanwhile.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from anyio.to_thread import run_sync

from ricordo.errors import InvalidSetting, StorageError
from ricordo.index.contract import Query
from ricordo.recall.hits import Hit
from ricordo.scopes import Scope
from ricordo.stores.capabilities import SessionNotes
from ricordo.stores.contract import Backend, Driver, StoreParts
from ricordo.stores.opening import Opening
from ricordo.stores.plain import Home, found, opened_home, options
from ricordo.stores.session_closing import closed_session, forgotten, without_forgotten
from ricordo.stores.session_drafts import Draft, RunningSessions, SessionDrafts
from ricordo.stores.session_preamble import session_preamble
from ricordo.stores.session_shelf import SessionShelf
from ricordo.stores.tombstones import FileTombstones, ForgettingDriver
from ricordo.tokens import Tokens
from ricordo.uncut import finish
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.entry_codec import derived_id
from ricordo.workspace.session_index import SessionRow

__all__ = ["LAST_SESSIONS", "SessionFilesStore", "open_session_files"]

LAST_SESSIONS = 5
"""How many sessions the preamble shows when nothing else is said."""


class SessionFilesStore(Backend):
    """The sessions of one folder; `close` ends those of every store that was bound here."""

    def __init__(self, parts: StoreParts, home: Home, *, last: int = LAST_SESSIONS) -> None:
        """Keep them in `home`, and show the `last` ones in the preamble."""
        super().__init__(parts)
        self._home = home
        self._last = last
        self._running = RunningSessions(home.files)
        self._busy: set[SessionFilesDriver] = set()

    async def close(self) -> None:
        """Write what runs to session files. Raises `StorageError`, and then the drafts stay for the next one."""
        for driver in [*self._busy]:
            await driver.close()

    def _driver(self, scope: Scope) -> Driver:
        """Return the driver of `scope`, whose session begins now."""
        return SessionFilesDriver(self._home, scope, self._parts, self._running, self._busy, last=self._last)


class SessionFilesDriver(ForgettingDriver):
    """Saves into drafts, closes them, and answers from the files and the drafts."""

    def __init__(
        self,
        home: Home,
        scope: Scope,
        parts: StoreParts,
        running: RunningSessions,
        busy: "set[SessionFilesDriver]",
        *,
        last: int,
    ) -> None:
        """Begin a session, which writes nothing before something is saved; this is in `busy` while one is open."""
        folder = home.folder(scope)
        super().__init__(FileTombstones(home, folder, parts))
        self._scope, self._parts, self._running, self._last = scope, parts, running, last
        self._folder = folder
        self._shelf = SessionShelf(home.files, folder, redactor=parts.redactor)
        self._drafts = SessionDrafts(home.files, folder, parts.clock)
        self._session = scope.session or parts.ids.new()
        self._began = {self._session: parts.clock.now()}
        self._open: dict[str, None] = {}
        self._busy = busy
        self._recovered = False

    async def write(self, entry: Entry) -> Entry:
        """Append `entry` to the draft of its session."""
        await self._recover()
        session = entry.source.session or self._session
        if session not in self._open:
            await self._running.hold(self._name(session))
            self._open[session] = None
            self._busy.add(self)
        started = self._began.setdefault(session, self._parts.clock.now())
        await self._drafts.append(session, entry, started)
        return entry

    async def find(self, query: Query, limit: int) -> list[Hit]:
        """Return entries of running sessions, then sessions as their metadata, the newest first."""
        rows, drafts = await self._state()
        return await run_sync(partial(self._found, rows, drafts, query, limit))

    async def preface(self, budget: Tokens | None) -> str:
        """Return what is remembered, what was left open, and the last sessions."""
        rows, drafts = await self._state()
        entries = self._all(rows, drafts)
        return await run_sync(partial(session_preamble, entries, rows, last=self._last, budget=budget))

    async def entries(self) -> list[Entry]:
        """Return the entries of all sessions, those of the newest session first."""
        return self._all(*await self._state())

    async def remove(self, entry: Entry) -> None:
        """Take an entry out of its file and its draft."""
        async with self._shelf.lock():
            await self._drafts.forget(entry.id)
            for row in await self._shelf.rows(locked=True):
                if any(one.id == entry.id for one in row.entries):
                    await self._shelf.write(row, partial(forgotten, entry=entry, start=row.date), row.date)
            await self._shelf.write_index()

    async def close_session(self, notes: SessionNotes) -> str:
        """Write the file of a session and return its path; empty where there is nothing. Raises `StorageError`."""
        await self._recover()
        path = await self._closed(notes)
        await self._end(notes.session)
        return path

    async def pending_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        rows, _ = await self._state()
        return tuple(row.session for row in reversed(rows) if row.pending and row.session)

    async def close(self) -> None:
        """Write each session that saved something here and was not closed, with a digest in the place of a summary."""
        for session in [*self._open]:
            await self._closed(SessionNotes(session=session, pending=True))
            await self._end(session)

    async def _closed(self, notes: SessionNotes) -> str:
        """Make the file of a session, then its row, then remove its draft; what comes meanwhile is taken in too."""
        async with self._shelf.lock():
            path = ""
            notes = without_forgotten(notes, await self._tombstones.recognised())
            while True:
                row = await self._shelf.of(notes.session)
                draft = await self._drafts.of(notes.session)
                if row is None and not (draft and draft.entries) and not notes.summary.strip():
                    path = ""
                else:
                    start = self._start(notes, draft)
                    change = partial(closed_session, notes=notes, draft=draft, start=start, parts=self._parts)
                    path = await self._shelf.write(row, change, start)
                    with suppress(StorageError):
                        await self._shelf.write_index()
                if draft is None or await self._drafts.remove(draft):
                    return path and f"{self._folder}{path}"

    def _start(self, notes: SessionNotes, draft: Draft | None) -> datetime:
        known = [notes.started, draft.started if draft else None, self._began.get(notes.session)]
        return min(filter(None, known), default=self._parts.clock.now())

    async def _end(self, session: str) -> None:
        self._open.pop(session, None)
        if not self._open:
            self._busy.discard(self)
        await self._running.release(self._name(session))

    async def _state(self) -> tuple[list[SessionRow], list[Draft]]:
        """Return the files and the drafts as they are; drafts first, so that what moves meanwhile is not missed."""
        await self._recover()
        drafts = await self._drafts.all()
        rows = await self._shelf.rows()
        kept = {(entry.id, entry.time) for row in rows for entry in row.entries}
        rest = [[entry for entry in draft.entries if (entry.id, entry.time) not in kept] for draft in drafts]
        return rows, [replace(draft, entries=tuple(entries)) for draft, entries in zip(drafts, rest, strict=True)]

    async def _recover(self) -> None:
        """Make session files of the drafts whose process is gone; once, and where it can't be done it is left."""
        if self._recovered:
            return
        self._recovered = True
        with suppress(StorageError):
            for draft in await self._drafts.all():
                if draft.session in self._open:
                    continue
                async with self._running.orphan(self._name(draft.session)) as alone:
                    if alone:
                        await self._closed(SessionNotes(session=draft.session, pending=True))

    def _name(self, session: str) -> str:
        return f"{self._folder}{session}"

    def _all(self, rows: list[SessionRow], drafts: list[Draft]) -> list[Entry]:
        entries = [entry for draft in drafts for entry in reversed(draft.entries)]
        entries += [entry for row in rows for entry in reversed(row.entries)]
        return [entry if entry.scope else replace(entry, scope=self._scope) for entry in entries]

    def _found(self, rows: list[SessionRow], drafts: list[Draft], query: Query, limit: int) -> list[Hit]:
        hits: list[Hit] = []
        for draft in drafts:
            if len(hits) < limit:
                hits += found(reversed(draft.entries), query, limit - len(hits), path=draft.path)
        for row in rows:
            if len(hits) < limit:
                path = f"{self._folder}{row.path}"
                shown = self._metadata(row, path)
                searched = replace(shown, content=_searched(row), tags=row.tags)
                hits += [replace(hit, entry=shown) for hit in found([searched], query, 1, path=path)]
        return hits

    def _metadata(self, row: SessionRow, path: str) -> Entry:
        """Return a session as an entry: where it stands and what it was about, never what was saved in it."""
        return Entry(
            content=f"[{path}] {row.summary}".rstrip(),
            kind="session-summary",
            tags=row.tags,
            id=derived_id(path, row.session, 0),
            time=row.date,
            scope=self._scope,
            by="agent",
            source=Source(session=row.session or None),
        )


@asynccontextmanager
async def open_session_files(opening: Opening) -> AsyncIterator[Backend]:
    """Open the session files of a folder; `?last=5` says how many sessions the preamble shows.

    At the end what runs is written to session files. Raises: InvalidSetting.
    """
    last = options(opening.address, "last").get("last", str(LAST_SESSIONS))
    if not last.isdecimal():
        raise InvalidSetting(f"`last` is how many sessions the preamble shows, not {last!r}.")
    async with opened_home(opening) as home:
        store = SessionFilesStore(opening.parts, home, last=int(last))
        try:
            yield store
        finally:
            await finish(store.close)


def _searched(row: SessionRow) -> str:
    """Return everything by which a session is found."""
    texts = [row.summary, *row.threads, *row.files]
    for entry in row.entries:
        texts += [entry.content, *entry.tags]
    return "\n".join(texts) or " "
