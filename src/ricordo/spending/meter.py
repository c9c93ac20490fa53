"""Meter: a model around another one that is asked by memory and not by a person: each request counts, up to the limit.

Invariant: a request that the limit forbids is not made and raises `SpendingLimitReached`, a `ModelError`; whoever asked
then does what it does without a model.
"""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio

from ricordo.clock import Clock, rfc3339
from ricordo.errors import SpendingLimitReached, StorageError
from ricordo.files import FileStore
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models import ChatModel, Reply
from ricordo.models.around import Around
from ricordo.models.closing import closing_events
from ricordo.models.contract import Finished, ReplyEvent
from ricordo.scopes import Scope
from ricordo.spending.config import SpendingConfig
from ricordo.spending.journal import Asked, SpendingJournal
from ricordo.spending.plan import Spent, refusal
from ricordo.tokens import estimate_message, estimate_request

if TYPE_CHECKING:
    from datetime import date

__all__ = ["Meter", "Metered"]

_LOG = logging.getLogger("ricordo.spending")


class Meter:
    """Counts the requests of memory in one root against the limit of a day; all its processes count together.

    Processes that ask at the same moment can pass the limit by one request each. What can't be written down, as on a
    full disk, is counted as long as this process lives.
    """

    def __init__(self, files: FileStore, config: SpendingConfig, clock: Clock) -> None:
        """Keep the record in `files`; nothing is read or written yet."""
        self._journal = SpendingJournal(files)
        self._config = config
        self._clock = clock
        self._unwritten: dict[date, Spent] = {}
        self._asking = 0

    @property
    def config(self) -> SpendingConfig:
        """The limit."""
        return self._config

    async def spent(self) -> Spent:
        """Return what was spent today."""
        today = self._clock.today()
        unwritten = self._unwritten.get(today, Spent())
        try:
            return await self._journal.spent_on(today) + unwritten
        except StorageError as error:
            _LOG.warning("What was spent today can't be read: %s", error)
            return unwritten

    async def refusal(self, *, tokens: int = 0) -> str:
        """Return why no request of about so many `tokens` is to be made today; empty when one may be."""
        return refusal(await self.spent(), self._config, tokens=self._asking + tokens)

    def metered(self, model: ChatModel, purpose: str, *, scope: Scope | None = None) -> "Metered":
        """Return `model` as memory asks it: for `purpose`, such as `flush`, on behalf of `scope`."""
        return Metered(model=model, meter=self, purpose=purpose, scope=scope)

    @contextmanager
    def asking(self, tokens: int) -> Iterator[None]:
        """Count `tokens` as used while a request is made."""
        self._asking += tokens
        try:
            yield
        finally:
            self._asking -= tokens

    async def note(self, asked: Asked) -> None:
        """Write a request down; a cancellation waits until that is done."""
        with anyio.CancelScope(shield=True):
            try:
                await self._journal.note(asked)
            except StorageError as error:
                _LOG.warning("A request of memory was not written down: %s", error)
                self._unwritten[asked.day] = self._unwritten.get(asked.day, Spent()) + asked.spent

    def request(self, model: str, purpose: str, scope: Scope | None) -> Asked:
        """Return the record of a request that is made now."""
        parts = scope.parts() if scope else {}
        return Asked(
            day=self._clock.today(),
            at=rfc3339(self._clock.now()),
            purpose=purpose,
            model=model,
            user=parts.get("user", ""),
            agent=parts.get("agent", ""),
            session=parts.get("session", ""),
        )


@dataclass(frozen=True, kw_only=True)
class Metered(Around):
    """A `ChatModel` whose requests are counted by `meter`."""

    meter: Meter
    purpose: str
    scope: Scope | None = None

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the model inside.

        Raises:
            SpendingLimitReached: the day's limit leaves no room for this request; it was not made.
        """
        asked, tokens = await self._allowed(messages, tools)
        with self.meter.asking(tokens):
            try:
                reply = await self.model.complete(messages, tools=tools, schema=schema)
            except BaseException as error:
                await self.meter.note(replace(asked, error=type(error).__name__))
                raise
            await self.meter.note(_answered(asked, reply, tokens))
        return reply

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the events of the model inside. Raises as `complete` does, before the first one."""
        asked, tokens = await self._allowed(messages, tools)
        done: Asked | None = None
        error = "GeneratorExit"
        try:
            with self.meter.asking(tokens):
                async with closing_events(self.model.stream(messages, tools=tools, schema=schema)) as events:
                    async for event in events:
                        if isinstance(event, Finished):
                            done = _answered(asked, event.reply, tokens)
                        yield event
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            await self.meter.note(done or replace(asked, error=error))

    async def _allowed(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> tuple[Asked, int]:
        estimate = estimate_request(messages, tools=tools)
        tokens = estimate.total
        if why := await self.meter.refusal(tokens=tokens):
            raise SpendingLimitReached(f"{SpendingLimitReached.__doc__} Today {why}.")
        return self.meter.request(self.name, self.purpose, self.scope), tokens


def _answered(asked: Asked, reply: Reply, tokens: int) -> Asked:
    """Return the record with what the reply used; what its provider does not count is estimated."""
    usage = reply.usage
    output = usage.output or estimate_message(reply.message)
    return replace(asked, model=reply.model or asked.model, input=usage.input or tokens, output=output, cost=reply.cost)
