"""Past sessions as one viewer may see them: listed, read back, and searched.

Invariant: an agent or a session is only ever looked up among those that the viewer may see, so no id becomes a path,
and what belongs to somebody else is not told from what is not there.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest
from urllib.parse import unquote

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, SessionNotFound, StorageError
from ricordo.files import FileStore
from ricordo.messages import Message
from ricordo.scopes import encode_folder_name
from ricordo.sessions.catalogue import TranscriptCatalog, SessionOverview
from ricordo.sessions.owners import NO_OWNER
from ricordo.sessions.reading import MessagePage, read_newest_messages
from ricordo.sessions.search import SessionMatch, SessionFilter, Phrase, find_matches, add_neighbours
from ricordo.workspace.transcript import read_transcript

__all__ = ["SessionSearchResult", "PastSessions", "parse_pointer"]


_MAX_COUNTED = 1_000


@dataclass(frozen=True, kw_only=True)
class SessionSearchResult:
    """Messages that hold a phrase, newest first, and how many there are: in all when `whole`, else at the least."""

    findings: tuple[SessionMatch, ...] = ()
    total: int = 0
    whole: bool = True


class PastSessions:
    """The sessions of a root that `user` may see: their own, and those that belong to nobody."""

    def __init__(self, files: FileStore, *, user: str | None = NO_OWNER) -> None:
        """Look through `files` for `user`: empty for somebody unnamed, None for who may see everybody's."""
        self._files = files
        self._user = user
        self._catalogue = TranscriptCatalog(files)

    async def list_sessions(self, agent: str | None = None) -> list[SessionOverview]:
        """Return the sessions of an agent, of all agents when None, the one with the newest message first.

        Raises: SessionNotFound if there is none, or none that the viewer may see.
        """
        seen = [glance for glance in await self._catalogue.list_overviews() if self._can_see(glance)]
        if agent is not None:
            folders = _folder_names(agent)
            seen = next((own for each in folders if (own := [one for one in seen if one.agent == each])), [])
        if not seen:
            raise SessionNotFound
        return seen

    async def find(self, agent: str, session: str) -> SessionOverview:
        """Return the session with this id, written whole. Raises `SessionNotFound`."""
        for glance in await self.list_sessions(agent):
            if glance.session == session:
                return glance
        raise SessionNotFound

    async def describe(self, glance: SessionOverview) -> tuple[int, str]:
        """Return how many messages a session has, and what it began with. Raises `FileMissing`, `StorageError`."""
        return await self._catalogue.count(glance), await self._catalogue.title(glance)

    async def read_newest(self, glance: SessionOverview, count: int, *, before: str = "") -> MessagePage:
        """Return the newest `count` messages that were said, of those before the message `before` if given.

        They are the original ones, whatever became of them in the window. Raises: SessionNotFound if there is no such
        message, `StorageError`.
        """
        found = await read_newest_messages(self._files, glance.file, count, before=before)
        if found is None:
            raise SessionNotFound(f"No message of this session has the id {before[:60]!r}.")
        return found

    async def read_messages(self, glance: SessionOverview, ids: Collection[str]) -> tuple[Message, ...]:
        """Return the messages of a session with these ids, as they were said and in that order.

        Raises: SessionNotFound if there is none of them, `StorageError`.
        """
        logged = await read_transcript(self._files, glance.file.path)
        found = tuple(message for message in logged.messages if message.id in ids)
        if not found:
            raise SessionNotFound("No message of this session has one of these ids.")
        return found

    async def search(
        self, query: str, agent: str | None = None, *, limit: int, skip: int = 0, within: SessionFilter | None = None
    ) -> SessionSearchResult:
        """Return the newest `limit` messages that hold `query`, a word or a phrase, whatever its capitals.

        The newest `skip` of them are passed over, and only those `within` are looked at. Each comes with what was said
        before and after it.

        It is looked for in what people and agents said, and in arguments and results of tools. From a thousand messages
        on, sessions that ended before the oldest of the newest are not looked through. A transcript that can't be read
        is left out. Raises: InvalidQuery if there is nothing to look for; SessionNotFound as `list_sessions`.
        """
        phrase = Phrase(query)
        seen = [glance for glance in await self.list_sessions(agent) if not _is_excluded(glance, within)]
        most = limit + skip
        kept: list[tuple[float, str, int, SessionMatch]] = []
        total = 0
        for glance in seen:
            if total >= _MAX_COUNTED and len(kept) == most and kept[-1][0] >= glance.last.timestamp():
                return SessionSearchResult(findings=await self._add_neighbours(kept[skip:]), total=total, whole=False)
            try:
                data = await self._files.read_from(glance.file.path, 0)
            except (FileMissing, StorageError):
                continue
            found = await run_sync(_search_log, data, phrase, glance, within)
            total += len(found)
            ranked = [((each.time or glance.last).timestamp(), each.path, each.line, each) for each in found]
            kept = nlargest(most, [*kept, *ranked], key=lambda row: row[:3])
        return SessionSearchResult(findings=await self._add_neighbours(kept[skip:]), total=total)

    async def _add_neighbours(self, kept: Sequence[tuple[float, str, int, SessionMatch]]) -> tuple[SessionMatch, ...]:
        """Return findings in their order with what was said beside them, as far as it can be read."""
        found = {row[1:3]: row[-1] for row in kept}
        for path in {path for path, _ in found}:
            with suppress(FileMissing, StorageError):
                data = await self._files.read_from(path, 0)
                here = [each for (at, _), each in found.items() if at == path]
                found |= {(path, each.line): each for each in await run_sync(add_neighbours, data, here)}
        return tuple(found.values())

    def _can_see(self, glance: SessionOverview) -> bool:
        return self._user is None or glance.user in {NO_OWNER, self._user}


def parse_pointer(pointer: str) -> tuple[str, tuple[str, ...]]:
    """Return the session and the ids of messages that a memory names as where it is from, as `session#message,message`.

    Without a `#` it is the session alone.
    """
    session, _, messages = pointer.strip().partition("#")
    return unquote(session), tuple(unquote(each.strip()) for each in messages.split(",") if each.strip())


def _is_excluded(glance: SessionOverview, within: SessionFilter | None) -> bool:
    """Tell whether no message of a session can be among those that are looked for."""
    if within is None:
        return False
    return bool(within.session and glance.session != within.session) or bool(
        within.since and glance.last < within.since
    )


def _search_log(
    data: bytes, phrase: Phrase, glance: SessionOverview, within: SessionFilter | None
) -> list[SessionMatch]:
    return find_matches(
        data, phrase, session=glance.session, agent=glance.agent, path=glance.file.path, within=within
    )  # fmt: skip


def _folder_names(agent: str) -> tuple[str, ...]:
    """Return the names that the folder of an agent can have: made of its name, or the folder as it was told."""
    return (encode_folder_name(agent), agent) if agent.isprintable() else ()
