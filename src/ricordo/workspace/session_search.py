"""Past sessions as one viewer may see them: listed, read, and searched for a phrase in any script.

Invariants: a session is only looked up among those that the viewer may see, so no id becomes a path. Text that memory
or these tools wrote into a conversation is not searched. Skipping lines never misses a message with the phrase.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from typing import Literal
from urllib.parse import unquote

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, InvalidQuery, SessionNotFound, StorageError
from ricordo.guard import contains_fence
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Media, Message, Role, Text, ToolCall, ToolResult, decode_message
from ricordo.messages.json_text import dumps, loads
from ricordo.messages.tokens import safe_boundary
from ricordo.scope import encode_folder_name
from ricordo.storage import FileStore
from ricordo.workspace.sessions import (
    NO_OWNER,
    MessagePage,
    SessionInfo,
    SessionOverview,
    TranscriptCatalog,
    find_session,
    is_dialogue,
    list_sessions,
    read_newest_messages,
)
from ricordo.workspace.transcript import read_transcript

__all__ = [
    "SESSION_FENCE",
    "SESSION_TOOL_NAMES",
    "MessageExcerpt",
    "MessageText",
    "PastSessions",
    "Phrase",
    "SessionFilter",
    "SessionInfo",
    "SessionMatch",
    "SessionOverview",
    "SessionSearchResult",
    "add_neighbours",
    "find_matches",
    "find_session",
    "list_sessions",
    "message_texts",
    "parse_pointer",
    "searchable_texts",
]


SESSION_FENCE = "past-session"
"""The name of the block that shows past sessions to a model."""
SESSION_TOOL_NAMES = frozenset({"session_list", "session_history", "session_search"})
"""The tools that show past sessions: a search skips their calls and results."""
_MEMORY_FENCES = ("memory", SESSION_FENCE, "record")


@dataclass(frozen=True, kw_only=True)
class MessageText:
    """One text of a message: its content, the arguments of a call of `tool`, or its result or error."""

    kind: Literal["text", "call", "result", "error"]
    text: str
    tool: str = ""


def message_texts(message: Message) -> tuple[MessageText, ...]:
    """Return the texts of a message in order, media by their names; thoughts are left out."""
    return tuple(_iter_texts(message))


def searchable_texts(message: Message) -> tuple[MessageText, ...]:
    """Return the searchable texts of a message; none if it is not dialogue.

    Arguments are returned as written and, if that differs, also unescaped.
    """
    if not is_dialogue(message):
        return ()
    texts = []
    for piece in _iter_texts(message):
        if piece.tool in SESSION_TOOL_NAMES or any(contains_fence(piece.text, name) for name in _MEMORY_FENCES):
            continue
        texts.append(piece)
        if piece.kind == "call" and "\\" in piece.text:
            texts += [MessageText(kind="call", text=text, tool=piece.tool) for text in _iter_strings(piece.text)]
    return tuple(texts)


def _iter_texts(message: Message) -> Iterator[MessageText]:
    for part in message.parts:
        match part:
            case Text():
                yield MessageText(kind="text", text=part.text)
            case Media():
                yield MessageText(kind="text", text=_render_media(part))
            case ToolCall():
                yield MessageText(kind="call", text=part.arguments, tool=part.name)
            case ToolResult():
                texts = (each.text if isinstance(each, Text) else _render_media(each) for each in part.parts)
                sort: Literal["error", "result"] = "error" if part.is_error else "result"
                yield MessageText(kind=sort, text="\n".join(texts), tool=part.name or "a tool")
            case _:
                continue


def _render_media(part: object) -> str:
    if not isinstance(part, Media):
        return ""
    return f"[{' '.join(filter(None, (part.media_type, part.name, part.description)))}]"


def _iter_strings(arguments: str) -> Iterator[str]:
    """Yield the keys and strings in the JSON of arguments; none if it is not JSON."""
    try:
        pending: list[JsonValue] = [loads(arguments)]
    except InvalidMessage:
        return
    while pending:
        value = pending.pop(0)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            pending = [*value, *pending]
        elif isinstance(value, dict):
            pending = [*(each for pair in value.items() for each in pair), *pending]


_SNIPPET_MARGIN = 120
_MAX_SNIPPET_CHARS = 400
_MAX_LINE_DISTANCE = 12
_ESCAPES = ("\\u", "\\/", "\\\\")
_SPACES = r"(?:\s|\\[nrtf])+"


@dataclass(frozen=True, kw_only=True)
class SessionFilter:
    """Which messages to search, by default all: said from `since` up to `until`, in one session, by a speaker.

    A speaker is a role, `user`, `assistant` or `tool`, or a name; case is ignored. A message without a time matches no
    time filter.
    """

    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    speaker: str = ""

    def matches(self, message: Message) -> bool:
        """Return whether a message matches, ignoring the session."""
        speaker = self.speaker.casefold()
        if speaker and speaker not in {message.role, (message.name or "").casefold()}:
            return False
        if self.since is None and self.until is None:
            return True
        time = message.time
        return time is not None and (not self.since or time >= self.since) and (not self.until or time < self.until)


@dataclass(frozen=True, kw_only=True)
class MessageExcerpt:
    """The beginning of a message next to a match, on one line, and its speaker."""

    speaker: str
    text: str


@dataclass(frozen=True, kw_only=True)
class SessionMatch:
    """A message with the phrase: its place, `line` from 1, and the text around the phrase, on one line.

    `agent` is a folder. `matched_text` is the text with the first occurrence. `before` and `after` are what people and
    agents said next to it, None if there is nothing near.
    """

    session: str
    agent: str
    path: str
    line: int
    message: str
    role: Role
    name: str | None
    time: datetime | None
    matched_text: MessageText
    snippet: str
    before: MessageExcerpt | None = None
    after: MessageExcerpt | None = None


class Phrase:
    """The phrase to search for: consecutive words with any white space between them, also inside longer words."""

    def __init__(self, query: str) -> None:
        """Compile `query`. Raises `InvalidQuery` if it is blank."""
        words = _fold(query).split()
        if not words:
            raise InvalidQuery("There is nothing to look for: write a word or a phrase.")
        self._pattern = re.compile(r"\s+".join(map(re.escape, words)))
        self._raw_pattern = re.compile(_SPACES.join(re.escape(_fold(dumps(word)[1:-1])) for word in words))

    def may_match(self, line: str) -> bool:
        """Return whether a line of JSON may contain the phrase."""
        if any(escape in line for escape in _ESCAPES) or not unicodedata.is_normalized("NFC", line):
            return True
        return self._raw_pattern.search(line.casefold()) is not None

    def find_snippet(self, text: str) -> str | None:
        """Return the first occurrence of the phrase with its surroundings, on one line, or None."""
        composed = unicodedata.normalize("NFC", text)
        folded = composed.casefold()
        match = self._pattern.search(folded)
        if match is None:
            return None
        start, end = match.span()
        if len(folded) != len(composed):
            start, end = _original_index(composed, start), _original_index(composed, end - 1) + 1
        return _cut_snippet(composed, start, end)


def find_matches(
    data: bytes, phrase: Phrase, *, session: str, agent: str, path: str, within: SessionFilter | None = None
) -> list[SessionMatch]:
    """Return the messages of the log `data` that contain the phrase and match `within`, in log order."""
    matches = []
    for number, message in _candidate_messages(data, phrase):
        if within and not within.matches(message):
            continue
        for piece in searchable_texts(message):
            snippet = phrase.find_snippet(piece.text)
            if snippet is not None:
                matches.append(
                    SessionMatch(
                        session=session,
                        agent=agent,
                        path=path,
                        line=number,
                        message=message.id,
                        role=message.role,
                        name=message.name,
                        time=message.time,
                        matched_text=piece,
                        snippet=snippet,
                    )
                )
                break
    return matches


def add_neighbours(data: bytes, matches: Sequence[SessionMatch]) -> list[SessionMatch]:
    """Return the matches in the log `data` with what was said before and after each."""
    lines = data.split(b"\n")
    return [
        replace(
            each,
            before=_first_excerpt(lines[max(each.line - 1 - _MAX_LINE_DISTANCE, 0) : each.line - 1][::-1]),
            after=_first_excerpt(lines[each.line : each.line + _MAX_LINE_DISTANCE]),
        )
        for each in matches
    ]


def _first_excerpt(lines: Iterable[bytes]) -> MessageExcerpt | None:
    """Return an excerpt of the first of these messages with text from a person or an agent."""
    for line in lines:
        try:
            message = decode_message(line) if line.startswith(b"{") else None
        except InvalidMessage:
            continue
        if message is not None and message.role in {"user", "assistant"}:
            text = " ".join(" ".join(piece.text for piece in searchable_texts(message) if piece.kind == "text").split())
            if text:
                short = text if len(text) <= _SNIPPET_MARGIN else f"{text[: safe_boundary(text, _SNIPPET_MARGIN)]}…"
                return MessageExcerpt(speaker=message.name or message.role, text=short)
    return None


def _candidate_messages(data: bytes, phrase: Phrase) -> Iterator[tuple[int, Message]]:
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith(b"{") and phrase.may_match(line.decode("utf-8", "replace")):
            try:
                yield number, decode_message(line)
            except InvalidMessage:
                continue


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _original_index(text: str, position: int) -> int:
    """Return the index in `text` of the character that folds to character `position` of its folded form."""
    folded_length = 0
    for index, character in enumerate(text):
        folded_length += len(character.casefold())
        if folded_length > position:
            return index
    return len(text)


def _cut_snippet(text: str, start: int, end: int) -> str:
    begin = safe_boundary(text, start - _SNIPPET_MARGIN)
    stop = safe_boundary(text, min(end, start + _MAX_SNIPPET_CHARS) + _SNIPPET_MARGIN)
    excerpt = " ".join(text[begin:stop].split())
    return f"{'…' if begin else ''}{excerpt}{'…' if stop < len(text) else ''}"


_MAX_COUNTED = 1_000


@dataclass(frozen=True, kw_only=True)
class SessionSearchResult:
    """Messages with a phrase, newest first, and their total number, which is a lower bound unless `is_complete`."""

    findings: tuple[SessionMatch, ...] = ()
    total: int = 0
    is_complete: bool = True


class PastSessions:
    """The sessions of a root that `user` may see: their own, and those without an owner."""

    def __init__(self, files: FileStore, *, user: str | None = NO_OWNER) -> None:
        """Search `files` for `user`: empty for an unnamed user, None for a viewer of all sessions."""
        self._files = files
        self._user = user
        self._catalogue = TranscriptCatalog(files)

    async def list_sessions(self, agent: str | None = None) -> list[SessionOverview]:
        """Return the sessions of an agent, or of all agents if None, newest message first.

        Raises: SessionNotFound if there is none that the viewer may see.
        """
        seen = [overview for overview in await self._catalogue.list_overviews() if self._can_see(overview)]
        if agent is not None:
            folders = _folder_names(agent)
            seen = next((own for each in folders if (own := [one for one in seen if one.agent == each])), [])
        if not seen:
            raise SessionNotFound
        return seen

    async def find(self, agent: str, session: str) -> SessionOverview:
        """Return the session with this full id. Raises `SessionNotFound`."""
        for overview in await self.list_sessions(agent):
            if overview.session == session:
                return overview
        raise SessionNotFound

    async def describe(self, overview: SessionOverview) -> tuple[int, str]:
        """Return the number of messages in a session, and its title. Raises `FileMissing`, `StorageError`."""
        return await self._catalogue.count(overview), await self._catalogue.title(overview)

    async def read_newest(self, overview: SessionOverview, count: int, *, before: str = "") -> MessagePage:
        """Return the newest `count` dialogue messages, or those before the message `before`.

        They are the original messages, even if the window no longer has them. Raises: SessionNotFound if there is no
        such message, `StorageError`.
        """
        page = await read_newest_messages(self._files, overview.file, count, before=before)
        if page is None:
            raise SessionNotFound(f"No message of this session has the id {before[:60]!r}.")
        return page

    async def read_messages(self, overview: SessionOverview, ids: Collection[str]) -> tuple[Message, ...]:
        """Return the messages of a session with these ids, as recorded and in that order.

        Raises: SessionNotFound if none of them exists, `StorageError`.
        """
        logged = await read_transcript(self._files, overview.file.path)
        messages = tuple(message for message in logged.messages if message.id in ids)
        if not messages:
            raise SessionNotFound("No message of this session has one of these ids.")
        return messages

    async def search(
        self, query: str, agent: str | None = None, *, limit: int, skip: int = 0, within: SessionFilter | None = None
    ) -> SessionSearchResult:
        """Return the newest `limit` messages that contain `query`, a word or a phrase, ignoring case.

        The newest `skip` matches are skipped, and only messages matching `within` are searched. Each match has what was
        said before and after it.

        The search covers messages of people and agents, and arguments and results of tools. From a thousand matches on,
        sessions that ended before the oldest of the newest matches are not searched. A transcript that can't be read is
        left out. Raises: InvalidQuery for a blank query; SessionNotFound as `list_sessions`.
        """
        phrase = Phrase(query)
        overviews = [overview for overview in await self.list_sessions(agent) if not _is_excluded(overview, within)]
        max_results = limit + skip
        newest: list[tuple[float, str, int, SessionMatch]] = []
        total = 0
        for overview in overviews:
            if total >= _MAX_COUNTED and len(newest) == max_results and newest[-1][0] >= overview.last.timestamp():
                return SessionSearchResult(
                    findings=await self._add_neighbours(newest[skip:]), total=total, is_complete=False
                )
            try:
                data = await self._files.read_from(overview.file.path, 0)
            except (FileMissing, StorageError):
                continue
            matches = await run_sync(_search_log, data, phrase, overview, within)
            total += len(matches)
            rows = [((each.time or overview.last).timestamp(), each.path, each.line, each) for each in matches]
            newest = nlargest(max_results, [*newest, *rows], key=lambda row: row[:3])
        return SessionSearchResult(findings=await self._add_neighbours(newest[skip:]), total=total)

    async def _add_neighbours(self, rows: Sequence[tuple[float, str, int, SessionMatch]]) -> tuple[SessionMatch, ...]:
        """Return matches in order with what was said next to them, as far as it can be read."""
        matches = {row[1:3]: row[-1] for row in rows}
        for path in {path for path, _ in matches}:
            with suppress(FileMissing, StorageError):
                data = await self._files.read_from(path, 0)
                file_matches = [each for (match_path, _), each in matches.items() if match_path == path]
                matches |= {(path, each.line): each for each in await run_sync(add_neighbours, data, file_matches)}
        return tuple(matches.values())

    def _can_see(self, overview: SessionOverview) -> bool:
        return self._user is None or overview.user in {NO_OWNER, self._user}


def parse_pointer(pointer: str) -> tuple[str, tuple[str, ...]]:
    """Return the session and message ids in an entry's source, written as `session#message,message`.

    Without a `#` it is the session alone.
    """
    session, _, messages = pointer.strip().partition("#")
    return unquote(session), tuple(unquote(each.strip()) for each in messages.split(",") if each.strip())


def _is_excluded(overview: SessionOverview, within: SessionFilter | None) -> bool:
    """Return whether no message of a session can match the filter."""
    if within is None:
        return False
    return bool(within.session and overview.session != within.session) or bool(
        within.since and overview.last < within.since
    )


def _search_log(
    data: bytes, phrase: Phrase, overview: SessionOverview, within: SessionFilter | None
) -> list[SessionMatch]:
    return find_matches(
        data, phrase, session=overview.session, agent=overview.agent, path=overview.file.path, within=within
    )  # fmt: skip


def _folder_names(agent: str) -> tuple[str, ...]:
    """Return the possible folder names of an agent: the encoded name, or the name itself."""
    return (encode_folder_name(agent), agent) if agent.isprintable() else ()
