"""The catalogue of sessions: every transcript of a workspace, newest first.

A glance reads the head and the tail of a transcript; only its messages are counted from all of it. Both are kept until
the file changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio.to_thread import run_sync

from ricordo.compaction.titles import extract_title
from ricordo.errors import FileMissing, SessionNotFound, StorageError
from ricordo.files import FileInfo, FileStore
from ricordo.messages import Message
from ricordo.scopes import encode_folder_name
from ricordo.sessions.owners import NO_OWNER, read_owner, find_state
from ricordo.sessions.reading import read_first_messages, read_last_messages
from ricordo.sessions.remembered import FileValueCache
from ricordo.workspace.layout import WORKSPACE, parse_transcript_path

__all__ = ["TranscriptCatalog", "SessionOverview", "SessionInfo", "find_session", "list_sessions"]

_TITLE_MESSAGES = 12


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
class SessionOverview:
    """What is known of a session without reading all of it; `agent` is a folder, and `user` None when unreadable."""

    session: str
    agent: str
    file: FileInfo
    first: datetime
    last: datetime
    user: str | None = NO_OWNER


class TranscriptCatalog:
    """The sessions below one root; keep it to look again cheaply."""

    def __init__(self, files: FileStore) -> None:
        """Look through `files`; nothing is read yet."""
        self._files = files
        self._times = FileValueCache(self._read_times)
        self._counts = FileValueCache(self._count_messages)
        self._titles = FileValueCache(self._read_title)
        self._owners = FileValueCache(lambda state: read_owner(files, state))

    async def list_overviews(self, folder: str | None = None) -> list[SessionOverview]:
        """Return the sessions, or those in the folder of one agent, the one with the newest message first.

        A transcript that can't be read is left out; `doctor` names it.
        """
        listed = {info.path: info for info in await self._files.list(f"{WORKSPACE}/agents")}
        found = []
        for path, file in listed.items():
            named = parse_transcript_path(path)
            if named is None or folder not in {None, named[0]}:
                continue
            try:
                first, last = await self._times.get(file)
            except (FileMissing, StorageError):
                continue
            state = find_state(path, named[1], listed)
            user = await self._owners.get(state) if state else NO_OWNER
            found.append(
                SessionOverview(session=named[1], agent=named[0], file=file, first=first, last=last, user=user)
            )
        return sorted(found, key=lambda each: (each.last, each.session), reverse=True)

    async def count(self, glance: SessionOverview) -> int:
        """Return how many messages the transcript has. Raises `FileMissing`, `StorageError`."""
        return await self._counts.get(glance.file)

    async def title(self, glance: SessionOverview) -> str:
        """Return in one line what the session began with; empty for no words. Raises `FileMissing`, `StorageError`."""
        return await self._titles.get(glance.file)

    async def _read_times(self, file: FileInfo) -> tuple[datetime, datetime]:
        written = datetime.fromtimestamp(file.modified_ns / 1e9, UTC)
        first = _first_time(await read_first_messages(self._files, file, _has_time)) or written
        tail, _ = await read_last_messages(self._files, file, _has_time)
        return first, max(first, _first_time(reversed(tail)) or written)

    async def _count_messages(self, file: FileInfo) -> int:
        data = await self._files.read_from(file.path, 0)
        return await run_sync(_count_lines, data)

    async def _read_title(self, file: FileInfo) -> str:
        head = await read_first_messages(self._files, file, bool)
        return await run_sync(extract_title, head[:_TITLE_MESSAGES])


async def list_sessions(files: FileStore, *, agent: str | None = None) -> list[SessionInfo]:
    """Return the sessions of the workspace, or of one agent, the one with the newest message first.

    A transcript that can't be read is left out; `doctor` names it.
    """
    catalogue = TranscriptCatalog(files)
    found = []
    for glance in await catalogue.list_overviews(None if agent is None else encode_folder_name(agent)):
        try:
            messages = await catalogue.count(glance)
        except (FileMissing, StorageError):
            continue
        found.append(_to_info(glance, messages))
    return found


async def find_session(files: FileStore, session: str, *, agent: str | None = None) -> SessionInfo:
    """Return the session with this id, or the only one whose id starts so. Raises `SessionNotFound`."""
    catalogue = TranscriptCatalog(files)
    listed = await catalogue.list_overviews(None if agent is None else encode_folder_name(agent))
    exact = [glance for glance in listed if glance.session == session]
    starting = [glance for glance in listed if session and glance.session.startswith(session)]
    if exact or len(starting) == 1:
        found = (exact or starting)[0]
        return _to_info(found, await catalogue.count(found))
    if starting:
        raise SessionNotFound(
            f"{len(starting)} sessions have ids that start with {session[:60]}: write more of the id."
        )
    raise SessionNotFound(f"No session has the id {session[:60]!r}: `ricordo session list` shows the ids.")


def _to_info(glance: SessionOverview, messages: int) -> SessionInfo:
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


def _count_lines(data: bytes) -> int:
    return sum(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in data.split(b"\n"))


def _has_time(messages: Sequence[Message]) -> bool:
    return _first_time(messages) is not None


def _first_time(messages: Iterable[Message]) -> datetime | None:
    """Return the time of the first of these messages that has one."""
    return next((message.time for message in messages if message.time), None)
