"""Ricordo as a retriever that a scorer can ask: `factory(**options)` makes one for each haystack.

It goes through the public API and nothing else: every session is taken in with `Memory.ingest`, every question is put
to `Memory.search`, and the hits are named by the messages that they are or rest on. Options:

    over       `everything` (memories and transcripts, the default), `transcripts` or `memories`
    embedder   `none`: found by words alone (the default); `static`, or any other that the settings can name
"""

import atexit
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal

from retrieval_sets import Haystack, parsed_time
from ricordo import Memory, Message, Scope
from ricordo.errors import RicordoError
from ricordo.messages import Role, Text, ToolCall, ToolResult
from ricordo.messages.json_text import dumps
from ricordo.models.embedders import load_embedder
from ricordo.search.contract import ALL_DOCUMENT_TYPES, MEMORY_DOCUMENT_TYPES, Answer, DocumentType, Hit, Query

__all__ = ["OVER", "Recalled", "StandingClock", "as_items", "factory", "ids_of", "messages_of", "take_in"]

Item = Mapping[str, str]
OVER: Mapping[str, tuple[DocumentType, ...]] = {
    "everything": ALL_DOCUMENT_TYPES, "transcripts": ("transcript",), "memories": MEMORY_DOCUMENT_TYPES,
}  # fmt: skip
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "call": "assistant", "tool": "tool"}


class StandingClock:
    """A clock that shows the time of the question."""

    def __init__(self) -> None:
        """Begin now."""
        self.time = datetime.now(UTC)

    def now(self) -> datetime:
        """Return the time that was set."""
        return self.time

    def today(self) -> date:
        """Return its date."""
        return self.time.date()


class Recalled:
    """A memory of its own in a folder that goes with the process."""

    def __init__(self, portal: BlockingPortal, *, over: str = "everything", embedder: str = "none") -> None:
        """Search `over` the sorts of that name, by meaning too with another `embedder` than `none`."""
        self._embedder = embedder
        self._portal = portal
        self._sorts = OVER[over]
        self._clock = StandingClock()
        self._held = ExitStack()

    def index(self, items: Sequence[Item]) -> None:
        """Take in the turns of one haystack, in order of time."""
        folder = Path(self._held.enter_context(tempfile.TemporaryDirectory()))
        self._clock.time = max((parsed_time(item["time"]) for item in items), key=_or_never) or self._clock.time
        opened = Memory.open(
            folder, scope=Scope(user="me", project="benchmark"), clock=self._clock, embedder=self._embedder
        )
        self._memory = self._held.enter_context(self._portal.wrap_async_context_manager(opened))
        self._portal.call(take_in, self._memory, items)
        if self._embedder != "none":
            # whoever asks at once would find by words alone what is not embedded yet
            self._portal.call(self._memory.doctor)

    def search(self, query: str, k: int, now: str | None = None) -> list[str]:
        """Return at most `k` ids of turns, best first."""
        self._clock.time = parsed_time(now or "") or self._clock.time
        return ids_of(self._portal.call(self._search, query, k))[:k]

    def answer(self, query: str, now: str | None = None) -> Answer:
        """Return what is answered, or that it is not in memory."""
        self._clock.time = parsed_time(now or "") or self._clock.time
        return self._portal.call(self._memory.answer, query)

    def close(self) -> None:
        """Close the memory and remove its folder."""
        self._held.close()

    async def _search(self, query: str, k: int) -> list[Hit]:
        return await self._memory.search(Query(text=query, document_types=self._sorts), limit=k)


def factory(*, embedder: str = "none", over: str = "everything") -> Recalled:
    """Return a retriever; the one that was made before is closed.

    Raises: SystemExit for an option that there is not.
    """
    try:
        if embedder not in {"none", "auto"}:
            load_embedder(embedder)
    except RicordoError as error:
        raise SystemExit(str(error)) from error
    if over not in OVER:
        raise SystemExit(f"`over` is one of {', '.join(OVER)}, not {over!r}.")
    _LAST.close()
    made = Recalled(_portal(), over=over, embedder=embedder)
    _LAST.callback(made.close)
    return made


def as_items(haystack: Haystack) -> list[Item]:
    """Return the turns of a haystack as a scorer hands them over."""
    return [asdict(turn) for turn in haystack.items]


async def take_in(memory: Memory, items: Iterable[Item]) -> None:
    """Record every turn in the transcript of its session, and learn from it."""
    for session, said in groupby(items, key=lambda item: item["session"]):
        await memory.ingest(messages_of(list(said)), session=session)


def messages_of(items: Sequence[Item]) -> list[Message]:
    """Return the turns of one session as messages: people by their names, calls and results as such."""
    return [_message(item, items[place - 1]["id"] if place else "") for place, item in enumerate(items)]


def ids_of(hits: Iterable[Hit]) -> list[str]:
    """Return the ids of the messages that the hits are, or rest on, each once, in their order."""
    return list(dict.fromkeys(hit.entry.source.messages[0] for hit in hits if hit.entry.source.messages))


def _message(item: Item, before: str) -> Message:
    speaker, text = item["speaker"], item["text"]
    part: Text | ToolCall | ToolResult = Text(text=text)
    if speaker == "call":
        name, _, command = text.partition(" ")
        part = ToolCall(id=item["id"], name=name, arguments=dumps({"command": command}))
    elif speaker == "tool":
        part = ToolResult(call_id=before, parts=(Text(text=text),))
    return Message(
        role=_ROLES.get(speaker, "user"), name=None if speaker in _ROLES else speaker, id=item["id"],
        time=parsed_time(item["time"]), parts=(part,),
    )  # fmt: skip


def _or_never(time: datetime | None) -> datetime:
    return time or datetime.min.replace(tzinfo=UTC)


_LAST = ExitStack()
_PROCESS = ExitStack()
_PORTALS: list[BlockingPortal] = []


def _portal() -> BlockingPortal:
    if not _PORTALS:
        _PORTALS.append(_PROCESS.enter_context(start_blocking_portal()))
        atexit.register(_PROCESS.close)
        atexit.register(_LAST.close)
    return _PORTALS[0]
