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
from ricordo.scopes import path_part
from ricordo.sessions.catalogue import Catalogue, Glance
from ricordo.sessions.owners import EVERYBODY
from ricordo.sessions.reading import Excerpt, newest
from ricordo.sessions.search import Finding, Narrowed, Phrase, findings, with_neighbours
from ricordo.workspace.transcript import read_log

__all__ = ["Found", "PastSessions", "pointed"]


_COUNTED = 1_000


@dataclass(frozen=True, kw_only=True)
class Found:
    """Messages that hold a phrase, newest first, and how many there are: in all when `whole`, else at the least."""

    findings: tuple[Finding, ...] = ()
    total: int = 0
    whole: bool = True


class PastSessions:
    """The sessions of a root that `user` may see: their own, and those that belong to nobody."""

    def __init__(self, files: FileStore, *, user: str | None = EVERYBODY) -> None:
        """Look through `files` for `user`: empty for somebody unnamed, None for who may see everybody's."""
        self._files = files
        self._user = user
        self._catalogue = Catalogue(files)

    async def of(self, agent: str | None = None) -> list[Glance]:
        """Return the sessions of an agent, of all agents when None, the one with the newest message first.

        Raises: SessionNotFound if there is none, or none that the viewer may see.
        """
        seen = [glance for glance in await self._catalogue.glances() if self._sees(glance)]
        if agent is not None:
            folders = _folders(agent)
            seen = next((own for each in folders if (own := [one for one in seen if one.agent == each])), [])
        if not seen:
            raise SessionNotFound
        return seen

    async def find(self, agent: str, session: str) -> Glance:
        """Return the session with this id, written whole. Raises `SessionNotFound`."""
        for glance in await self.of(agent):
            if glance.session == session:
                return glance
        raise SessionNotFound

    async def described(self, glance: Glance) -> tuple[int, str]:
        """Return how many messages a session has, and what it began with. Raises `FileMissing`, `StorageError`."""
        return await self._catalogue.count(glance), await self._catalogue.title(glance)

    async def newest(self, glance: Glance, count: int, *, before: str = "") -> Excerpt:
        """Return the newest `count` messages that were said, of those before the message `before` if given.

        They are the original ones, whatever became of them in the window. Raises: SessionNotFound if there is no such
        message, `StorageError`.
        """
        found = await newest(self._files, glance.file, count, before=before)
        if found is None:
            raise SessionNotFound(f"No message of this session has the id {before[:60]!r}.")
        return found

    async def named(self, glance: Glance, ids: Collection[str]) -> tuple[Message, ...]:
        """Return the messages of a session with these ids, as they were said and in that order.

        Raises: SessionNotFound if there is none of them, `StorageError`.
        """
        logged = await read_log(self._files, glance.file.path)
        found = tuple(message for message in logged.messages if message.id in ids)
        if not found:
            raise SessionNotFound("No message of this session has one of these ids.")
        return found

    async def search(
        self, query: str, agent: str | None = None, *, limit: int, skip: int = 0, within: Narrowed | None = None
    ) -> Found:
        """Return the newest `limit` messages that hold `query`, a word or a phrase, whatever its capitals.

        The newest `skip` of them are passed over, and only those `within` are looked at. Each comes with what was said
        before and after it.

        It is looked for in what people and agents said, and in arguments and results of tools. From a thousand messages
        on, sessions that ended before the oldest of the newest are not looked through. A transcript that can't be read
        is left out. Raises: InvalidQuery if there is nothing to look for; SessionNotFound as `of`.
        """
        phrase = Phrase(query)
        seen = [glance for glance in await self.of(agent) if not _is_beyond(glance, within)]
        most = limit + skip
        kept: list[tuple[float, str, int, Finding]] = []
        total = 0
        for glance in seen:
            if total >= _COUNTED and len(kept) == most and kept[-1][0] >= glance.last.timestamp():
                return Found(findings=await self._shown(kept[skip:]), total=total, whole=False)
            try:
                data = await self._files.read_from(glance.file.path, 0)
            except (FileMissing, StorageError):
                continue
            found = await run_sync(_found_in, data, phrase, glance, within)
            total += len(found)
            ranked = [((each.time or glance.last).timestamp(), each.path, each.line, each) for each in found]
            kept = nlargest(most, [*kept, *ranked], key=lambda row: row[:3])
        return Found(findings=await self._shown(kept[skip:]), total=total)

    async def _shown(self, kept: Sequence[tuple[float, str, int, Finding]]) -> tuple[Finding, ...]:
        """Return findings in their order with what was said beside them, as far as it can be read."""
        found = {row[1:3]: row[-1] for row in kept}
        for path in {path for path, _ in found}:
            with suppress(FileMissing, StorageError):
                data = await self._files.read_from(path, 0)
                here = [each for (at, _), each in found.items() if at == path]
                found |= {(path, each.line): each for each in await run_sync(with_neighbours, data, here)}
        return tuple(found.values())

    def _sees(self, glance: Glance) -> bool:
        return self._user is None or glance.user in {EVERYBODY, self._user}


def pointed(pointer: str) -> tuple[str, tuple[str, ...]]:
    """Return the session and the ids of messages that a memory names as where it is from, as `session#message,message`.

    Without a `#` it is the session alone.
    """
    session, _, messages = pointer.strip().partition("#")
    return unquote(session), tuple(unquote(each.strip()) for each in messages.split(",") if each.strip())


def _is_beyond(glance: Glance, within: Narrowed | None) -> bool:
    """Tell whether no message of a session can be among those that are looked for."""
    if within is None:
        return False
    return bool(within.session and glance.session != within.session) or bool(
        within.since and glance.last < within.since
    )


def _found_in(data: bytes, phrase: Phrase, glance: Glance, within: Narrowed | None) -> list[Finding]:
    return findings(
        data, phrase, session=glance.session, agent=glance.agent, path=glance.file.path, within=within
    )  # fmt: skip


def _folders(agent: str) -> tuple[str, ...]:
    """Return the names that the folder of an agent can have: made of its name, or the folder as it was told."""
    return (path_part(agent), agent) if agent.isprintable() else ()
