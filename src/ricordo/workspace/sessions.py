"""The sessions of a workspace: every transcript, newest first, with its owner.

Only the head and the tail of a transcript are read, unless its messages are counted; values are cached until the file
changes.

Invariants: only complete lines are read, and a broken line hides no other line. A session whose state can't be read has
no owner and is shown only to the person at the machine.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Generic, TypeVar

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, SessionNotFound, StorageError
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import Message, decode_message, get_mark
from ricordo.messages.json_text import decode_json, loads, require_object
from ricordo.scope import encode_folder_name
from ricordo.storage import FileInfo, FileStore
from ricordo.workspace.layout import WORKSPACE, parse_transcript_path, state_path
from ricordo.workspace.titles import extract_title

__all__ = [
    "NO_OWNER",
    "FileValueCache",
    "MessagePage",
    "SessionInfo",
    "SessionOverview",
    "TranscriptCatalog",
    "find_session",
    "find_state",
    "is_dialogue",
    "list_sessions",
    "read_first_messages",
    "read_last_messages",
    "read_newest_messages",
    "read_owner",
]


NO_OWNER = ""
"""The owner of a session without a state, or whose state names no user, such as an imported session."""
_HEAD_BYTES = 4_096
_JSON_STRING = r'"(?:[^"\\]|\\.)*"'
_USER_PATTERN = lazy_compile(
    rf'\{{"v":\d+,"agent":{_JSON_STRING},"session":{_JSON_STRING},"user":({_JSON_STRING})[,}}]'
)


def find_state(transcript: str, session: str, infos: Mapping[str, FileInfo]) -> FileInfo | None:
    """Return the state of the session with this transcript, or the unreadable state set aside; None for neither."""
    with suppress(InvalidMessage):
        folder = f"{transcript.rpartition('/sessions/')[0]}/state"
        # the second is the former name, which a read-only root may still have
        for name in (state_path("any", session).rpartition("/")[2], f"{session}.json"):
            if info := infos.get(f"{folder}/{name}") or infos.get(f"{folder}/{name}.broken-1"):
                return info
    return None


async def read_owner(files: FileStore, state: FileInfo) -> str | None:
    """Return the user that a state names, `NO_OWNER` for none; None if it can't be read."""
    try:
        head = await files.read_from(state.path, 0, _HEAD_BYTES)
        match = _USER_PATTERN.match(head.decode("utf-8", "replace"))
        if match:
            return _user_field({"user": decode_json(match[1])})
        data = await files.read_from(state.path, 0)
        return _user_field(require_object(await run_sync(loads, data), "The state"))
    except FileMissing:
        return NO_OWNER
    except (StorageError, InvalidMessage, ValueError):
        return None


def _user_field(fields: Mapping[str, object]) -> str | None:
    user = fields.get("user", NO_OWNER)
    return user if isinstance(user, str) else None


_FIRST_READ_BYTES = 8_192
_PAGE_BYTES = 65_536


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """Messages in conversation order, and whether there are older ones."""

    messages: tuple[Message, ...] = ()
    has_older: bool = False


def is_dialogue(message: Message) -> bool:
    """Return whether a participant said this, rather than a summary, a recalled memory or a notice."""
    return get_mark(message) in {None, "cut"}


async def read_first_messages(
    files: FileStore, file: FileInfo, stop: Callable[[Sequence[Message]], bool]
) -> tuple[Message, ...]:
    """Return messages from the start until `stop` accepts them, or all. Raises `StorageError`."""
    length = _FIRST_READ_BYTES
    while True:
        data = await files.read_from(file.path, 0, length)
        is_complete = len(data) < length
        messages = await run_sync(_decode_messages, data if is_complete else data[: data.rfind(b"\n") + 1])
        if is_complete or stop(messages):
            return messages
        length *= 4


async def read_last_messages(
    files: FileStore, file: FileInfo, stop: Callable[[Sequence[Message]], bool], *, length: int = _FIRST_READ_BYTES
) -> tuple[tuple[Message, ...], bool]:
    """Return messages up to the end until `stop` accepts them, and whether these are all. Raises `StorageError`."""
    while True:
        start = max(0, file.size - length)
        data = await files.read_from(file.path, start)
        messages = await run_sync(_decode_messages, data[data.find(b"\n") + 1 or len(data) :] if start else data)
        if not start or stop(messages):
            return messages, not start
        length *= 4


async def read_newest_messages(files: FileStore, file: FileInfo, count: int, *, before: str = "") -> MessagePage | None:
    """Return the newest `count` dialogue messages, or those before the message with the id `before`.

    None if there is no such message. Raises `StorageError`.
    """

    def end_in(messages: Sequence[Message]) -> int | None:
        if not before:
            return len(messages)
        return next((at for at in reversed(range(len(messages))) if messages[at].id == before), None)

    def is_enough(messages: Sequence[Message]) -> bool:
        end = end_in(messages)
        return end is not None and sum(map(is_dialogue, messages[:end])) > count

    page, _ = await read_last_messages(files, file, is_enough, length=_PAGE_BYTES)
    end = end_in(page)
    if end is None:
        return None
    dialogue = [message for message in page[:end] if is_dialogue(message)]
    return MessagePage(messages=tuple(dialogue[-count:]), has_older=len(dialogue) > count)


def _decode_messages(data: bytes) -> tuple[Message, ...]:
    messages = []
    for line in data.split(b"\n"):
        if line.startswith(b"{"):
            try:
                messages.append(decode_message(line))
            except InvalidMessage:
                continue
    return tuple(messages)


_T = TypeVar("_T")


class FileValueCache(Generic[_T]):
    """A cache of one value for each file."""

    def __init__(self, make: Callable[[FileInfo], Awaitable[_T]]) -> None:
        """Create values with `make`; its errors are not cached."""
        self._make = make
        self._values: dict[str, tuple[FileInfo, _T]] = {}

    async def get(self, file: FileInfo) -> _T:
        """Return the value of this file version, and create it if it is not cached."""
        cached = self._values.get(file.path)
        if cached and cached[0] == file:
            return cached[1]
        value = await self._make(file)
        self._values[file.path] = (file, value)
        return value


_TITLE_MESSAGES = 12


@dataclass(frozen=True, kw_only=True)
class SessionInfo:
    """One session: the number of its messages, the times of the first and last message, and its size in bytes.

    `agent` is the folder of the agent: its name, percent-encoded by `ricordo.scope.encode_folder_name`. If the messages
    have no times, those of the file are used. `user` is the owner of the session, empty if none is named.
    """

    session: str
    agent: str
    path: str
    messages: int
    started_at: datetime
    last: datetime
    size: int
    user: str = ""


@dataclass(frozen=True, kw_only=True)
class SessionOverview:
    """A session as known without reading all of it; `agent` is a folder, and `user` is None if unreadable."""

    session: str
    agent: str
    file: FileInfo
    started_at: datetime
    last: datetime
    user: str | None = NO_OWNER


class TranscriptCatalog:
    """The sessions of one root; reuse it to list them again cheaply."""

    def __init__(self, files: FileStore) -> None:
        """Catalog the transcripts in `files`; nothing is read yet."""
        self._files = files
        self._times = FileValueCache(self._read_times)
        self._counts = FileValueCache(self._count_messages)
        self._titles = FileValueCache(self._read_title)
        self._owners = FileValueCache(lambda state: read_owner(files, state))

    async def list_overviews(self, folder: str | None = None) -> list[SessionOverview]:
        """Return the sessions, or those in one agent's folder, newest message first.

        A transcript that can't be read is left out; `doctor` names it.
        """
        infos = {info.path: info for info in await self._files.list(f"{WORKSPACE}/agents")}
        overviews = []
        for path, file in infos.items():
            location = parse_transcript_path(path)
            if location is None or folder not in {None, location[0]}:
                continue
            try:
                first, last = await self._times.get(file)
            except (FileMissing, StorageError):
                continue
            state = find_state(path, location[1], infos)
            user = await self._owners.get(state) if state else NO_OWNER
            overviews.append(
                SessionOverview(
                    session=location[1], agent=location[0], file=file, started_at=first, last=last, user=user
                )
            )
        return sorted(overviews, key=lambda each: (each.last, each.session), reverse=True)

    async def count(self, overview: SessionOverview) -> int:
        """Return the number of messages in the transcript. Raises `FileMissing`, `StorageError`."""
        return await self._counts.get(overview.file)

    async def title(self, overview: SessionOverview) -> str:
        """Return a one-line title from the first messages; empty without text. Raises `FileMissing`, `StorageError`."""
        return await self._titles.get(overview.file)

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
    """Return the sessions of the workspace, or of one agent, newest message first.

    A transcript that can't be read is left out; `doctor` names it.
    """
    catalog = TranscriptCatalog(files)
    sessions = []
    for overview in await catalog.list_overviews(None if agent is None else encode_folder_name(agent)):
        try:
            messages = await catalog.count(overview)
        except (FileMissing, StorageError):
            continue
        sessions.append(_to_info(overview, messages))
    return sessions


async def find_session(files: FileStore, session: str, *, agent: str | None = None) -> SessionInfo:
    """Return the session with this id, or the only one whose id starts with it. Raises `SessionNotFound`."""
    catalog = TranscriptCatalog(files)
    overviews = await catalog.list_overviews(None if agent is None else encode_folder_name(agent))
    exact = [overview for overview in overviews if overview.session == session]
    prefix_matches = [overview for overview in overviews if session and overview.session.startswith(session)]
    if exact or len(prefix_matches) == 1:
        match = (exact or prefix_matches)[0]
        return _to_info(match, await catalog.count(match))
    if prefix_matches:
        raise SessionNotFound(
            f"{len(prefix_matches)} sessions have ids that start with {session[:60]}: write more of the id."
        )
    raise SessionNotFound(f"No session has the id {session[:60]!r}: `ricordo session list` shows the ids.")


def _to_info(overview: SessionOverview, messages: int) -> SessionInfo:
    return SessionInfo(
        session=overview.session,
        agent=overview.agent,
        path=overview.file.path,
        messages=messages,
        started_at=overview.started_at,
        last=overview.last,
        size=overview.file.size,
        user=overview.user or "",
    )


def _count_lines(data: bytes) -> int:
    return sum(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in data.split(b"\n"))


def _has_time(messages: Sequence[Message]) -> bool:
    return _first_time(messages) is not None


def _first_time(messages: Iterable[Message]) -> datetime | None:
    """Return the time of the first of these messages that has one."""
    return next((message.time for message in messages if message.time), None)
