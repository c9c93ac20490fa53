"""The catalogue of sessions: every transcript of a workspace, newest first.

A glance reads the head and the tail of a transcript; only its messages are counted from all of it. Both are kept until
the file changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio.to_thread import run_sync

from ricordo.compaction.titles import about
from ricordo.errors import FileMissing, SessionNotFound, StorageError
from ricordo.files import FileInfo, FileStore
from ricordo.messages import Message
from ricordo.scopes import path_part
from ricordo.sessions.owners import EVERYBODY, owner_of, state_of
from ricordo.sessions.reading import first_messages, last_messages
from ricordo.sessions.remembered import Remembered
from ricordo.workspace.layout import WORKSPACE, session_of

__all__ = ["Catalogue", "Glance", "SessionInfo", "find_session", "list_sessions"]

_TITLED = 12


@dataclass(frozen=True, kw_only=True)
class SessionInfo:
    """One session: how many messages its transcript has, when the first and the last were said, its size in bytes.

    `agent` is the folder of the agent: its name, percent-encoded, as `ricordo.scopes.path_part` writes it. A session
    whose messages carry no times has those of its file. `user` is whose session it is, empty where nobody is named.
    """

    session: str
    agent: str
    path: str
    messages: int
    first: datetime
    last: datetime
    size: int
    user: str = ""


@dataclass(frozen=True, kw_only=True)
class Glance:
    """What is known of a session without reading all of it; `agent` is a folder, and `user` None when unreadable."""

    session: str
    agent: str
    file: FileInfo
    first: datetime
    last: datetime
    user: str | None = EVERYBODY


class Catalogue:
    """The sessions below one root; keep it to look again cheaply."""

    def __init__(self, files: FileStore) -> None:
        """Look through `files`; nothing is read yet."""
        self._files = files
        self._times = Remembered(self._times_in)
        self._counts = Remembered(self._count)
        self._titles = Remembered(self._title)
        self._owners = Remembered(lambda state: owner_of(files, state))

    async def glances(self, folder: str | None = None) -> list[Glance]:
        """Return the sessions, or those in the folder of one agent, the one with the newest message first.

        A transcript that can't be read is left out; `doctor` names it.
        """
        listed = {info.path: info for info in await self._files.list(f"{WORKSPACE}/agents")}
        found = []
        for path, file in listed.items():
            named = session_of(path)
            if named is None or folder not in {None, named[0]}:
                continue
            try:
                first, last = await self._times.of(file)
            except (FileMissing, StorageError):
                continue
            state = state_of(path, named[1], listed)
            user = await self._owners.of(state) if state else EVERYBODY
            found.append(Glance(session=named[1], agent=named[0], file=file, first=first, last=last, user=user))
        return sorted(found, key=lambda each: (each.last, each.session), reverse=True)

    async def count(self, glance: Glance) -> int:
        """Return how many messages the transcript has. Raises `FileMissing`, `StorageError`."""
        return await self._counts.of(glance.file)

    async def title(self, glance: Glance) -> str:
        """Return in one line what the session began with; empty for no words. Raises `FileMissing`, `StorageError`."""
        return await self._titles.of(glance.file)

    async def _times_in(self, file: FileInfo) -> tuple[datetime, datetime]:
        written = datetime.fromtimestamp(file.modified_ns / 1e9, UTC)
        first = _time_in(await first_messages(self._files, file, _has_time)) or written
        tail, _ = await last_messages(self._files, file, _has_time)
        return first, max(first, _time_in(reversed(tail)) or written)

    async def _count(self, file: FileInfo) -> int:
        data = await self._files.read_from(file.path, 0)
        return await run_sync(_lines_in, data)

    async def _title(self, file: FileInfo) -> str:
        head = await first_messages(self._files, file, bool)
        return await run_sync(about, head[:_TITLED])


async def list_sessions(files: FileStore, *, agent: str | None = None) -> list[SessionInfo]:
    """Return the sessions of the workspace, or of one agent, the one with the newest message first.

    A transcript that can't be read is left out; `doctor` names it.
    """
    catalogue = Catalogue(files)
    found = []
    for glance in await catalogue.glances(None if agent is None else path_part(agent)):
        try:
            messages = await catalogue.count(glance)
        except (FileMissing, StorageError):
            continue
        found.append(_info(glance, messages))
    return found


async def find_session(files: FileStore, session: str, *, agent: str | None = None) -> SessionInfo:
    """Return the session with this id, or the only one whose id starts so. Raises `SessionNotFound`."""
    catalogue = Catalogue(files)
    listed = await catalogue.glances(None if agent is None else path_part(agent))
    exact = [glance for glance in listed if glance.session == session]
    starting = [glance for glance in listed if session and glance.session.startswith(session)]
    if exact or len(starting) == 1:
        found = (exact or starting)[0]
        return _info(found, await catalogue.count(found))
    if starting:
        raise SessionNotFound(
            f"{len(starting)} sessions have ids that start with {session[:60]}: write more of the id."
        )
    raise SessionNotFound(f"No session has the id {session[:60]!r}: `ricordo session list` shows the ids.")


def _info(glance: Glance, messages: int) -> SessionInfo:
    return SessionInfo(
        session=glance.session,
        agent=glance.agent,
        path=glance.file.path,
        messages=messages,
        first=glance.first,
        last=glance.last,
        size=glance.file.size,
        user=glance.user or "",
    )


def _lines_in(data: bytes) -> int:
    return sum(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in data.split(b"\n"))


def _has_time(messages: Sequence[Message]) -> bool:
    return _time_in(messages) is not None


def _time_in(messages: Iterable[Message]) -> datetime | None:
    """Return the time of the first of these messages that has one."""
    return next((message.time for message in messages if message.time), None)
