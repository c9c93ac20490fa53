"""The catalogue of sessions: every transcript of a workspace, newest first."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ricordo.errors import FileMissing, InvalidMessage, SessionNotFound, StorageError
from ricordo.files import FileInfo, FileStore
from ricordo.messages.codec import decode
from ricordo.scopes import path_part
from ricordo.workspace.layout import WORKSPACE, session_of

__all__ = ["SessionInfo", "find_session", "list_sessions"]


@dataclass(frozen=True, kw_only=True)
class SessionInfo:
    """One session: how many messages its transcript has, when the first and the last were said, its size in bytes.

    `agent` is the folder of the agent: its name, percent-encoded, as `ricordo.scopes.path_part` writes it. A session
    whose messages carry no times has those of its file.
    """

    session: str
    agent: str
    path: str
    messages: int
    first: datetime
    last: datetime
    size: int


async def list_sessions(files: FileStore, *, agent: str | None = None) -> list[SessionInfo]:
    """Return the sessions of the workspace, or of one agent, the one with the newest message first.

    A transcript that can't be read is left out; `doctor` names it.
    """
    folder = None if agent is None else path_part(agent)
    found = []
    for info in await files.list(f"{WORKSPACE}/agents"):
        named = session_of(info.path)
        if named and folder in {None, named[0]}:
            try:
                data = (await files.read(info.path)).data
            except (FileMissing, StorageError):
                continue
            found.append(_session(info, *named, data))
    return sorted(found, key=lambda session: (session.last, session.session), reverse=True)


async def find_session(files: FileStore, session: str, *, agent: str | None = None) -> SessionInfo:
    """Return the session with this id, or the only one whose id starts so. Raises `SessionNotFound`."""
    listed = await list_sessions(files, agent=agent)
    exact = [info for info in listed if info.session == session]
    starting = [info for info in listed if session and info.session.startswith(session)]
    if exact or len(starting) == 1:
        return (exact or starting)[0]
    if starting:
        raise SessionNotFound(
            f"{len(starting)} sessions have ids that start with {session[:60]}: write more of the id."
        )
    raise SessionNotFound(f"No session has the id {session[:60]!r}: `ricordo session list` shows the ids.")


def _session(info: FileInfo, agent: str, session: str, data: bytes) -> SessionInfo:
    lines = [line for line in data.split(b"\n") if line.startswith(b"{") and line.rstrip().endswith(b"}")]
    written = datetime.fromtimestamp(info.modified_ns / 1e9, UTC)
    first = _time_of(lines) or written
    return SessionInfo(
        session=session,
        agent=agent,
        path=info.path,
        messages=len(lines),
        first=first,
        last=max(first, _time_of(reversed(lines)) or written),
        size=info.size,
    )


def _time_of(lines: Iterable[bytes]) -> datetime | None:
    """Return the time of the first of these lines that has one."""
    for line in lines:
        try:
            time = decode(line).time
        except InvalidMessage:
            continue
        if time is not None:
            return time
    return None
