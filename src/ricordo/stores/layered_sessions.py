"""The session files of a root: what each session was about, kept beside what it taught and not a copy of that.

`workspace/sessions/2026-11-21-08h00.md` and `workspace/index.json` are those of the plain store `sessions`. What was
saved stands in the ledgers, so a file here says no more than a conversation does that has ended. Each write of one is
a change set, as every other of a root.
"""

from functools import partial

from ricordo.stores.capabilities import SessionNotes
from ricordo.stores.place import Place
from ricordo.stores.session_closing import closed_session, without_forgotten
from ricordo.stores.session_shelf import SessionShelf
from ricordo.workspace.changes import CURATION_LOCK
from ricordo.workspace.layout import SESSIONS, WORKSPACE
from ricordo.workspace.session_index import SessionRow

__all__ = ["ACT", "PlaceSessions"]

ACT = "summarize"
"""What a change set is called that wrote a session file."""


class PlaceSessions:
    """The session files of one place, with what is held of them until they change."""

    def __init__(self, place: Place) -> None:
        """Read nothing yet."""
        self._place = place
        recording = partial(place.changes.apply, act=ACT, who="closing")
        self._shelf = SessionShelf(place.files, f"{WORKSPACE}/", recording, redactor=place.redactor)

    async def rows(self) -> list[SessionRow]:
        """Return what is known of each session, the newest first."""
        return await self._shelf.rows() if await self._place.files.list(SESSIONS) else []

    async def close(self, notes: SessionNotes) -> str:
        """Write the file of a session, index it, and return its path; empty for an empty one.

        What was forgotten since the notes were made is no part of it. Raises: StorageError.
        """
        async with self._shelf.lock(), self._place.files.lock(CURATION_LOCK):
            notes = without_forgotten(notes, await self._place.forgotten())
            row = await self._shelf.of(notes.session)
            if row is None and not notes.summary.strip():
                return ""
            start = notes.started or (row.date if row else self._place.clock.now())
            change = partial(closed_session, notes=notes, draft=None, start=start, parts=self._place)
            path = await self._shelf.write(row, change, start)
            await self._shelf.write_index()
        await self._place.index.refresh()
        return f"{WORKSPACE}/{path}"

    async def waiting(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        return tuple(row.session for row in reversed(await self.rows()) if row.pending and row.session)
