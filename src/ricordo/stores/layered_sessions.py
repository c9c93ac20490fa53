"""The session files of a root: what each session was about, kept beside what it taught and not a copy of that.

`workspace/sessions/2026-11-21-08h00.md` and `workspace/index.json` are those of the plain store `sessions`. What was
saved stands in the ledgers, so a file here says no more than a conversation does that has ended. Each write of one is
a change set, as every other of a root.
"""

from functools import partial

from ricordo.stores.capabilities import SessionNotes
from ricordo.stores.place import MemoryRoot
from ricordo.stores.session_closing import close_session_file, remove_forgotten
from ricordo.stores.session_shelf import SessionCatalog
from ricordo.workspace.changes import CURATION_LOCK
from ricordo.workspace.layout import SESSIONS, WORKSPACE
from ricordo.workspace.session_index import SessionRow

__all__ = ["SUMMARIZE_ACT", "RootSessions"]

SUMMARIZE_ACT = "summarize"
"""What a change set is called that wrote a session file."""


class RootSessions:
    """The session files of one place, with what is held of them until they change."""

    def __init__(self, place: MemoryRoot) -> None:
        """Read nothing yet."""
        self._root = place
        recording = partial(place.changes.apply, act=SUMMARIZE_ACT, who="closing")
        self._catalog = SessionCatalog(place.files, f"{WORKSPACE}/", recording, redactor=place.redactor)

    async def rows(self) -> list[SessionRow]:
        """Return what is known of each session, the newest first."""
        return await self._catalog.rows() if await self._root.files.list(SESSIONS) else []

    async def close(self, notes: SessionNotes) -> str:
        """Write the file of a session, index it, and return its path; empty for an empty one.

        What was forgotten since the notes were made is no part of it. Raises: StorageError.
        """
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
        return tuple(row.session for row in reversed(await self.rows()) if row.pending and row.session)
