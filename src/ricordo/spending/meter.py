"""Meter: a model around another one that is asked by memory and not by a person: each request counts, up to the limit.

Before a request the most that it may take is reserved, for all processes to see: its prompt, and a reply that is no
longer than what is left of the day. So the limit holds as far as a provider keeps to the length of replies that it is
told, and counts prompts at most a quarter higher than they are estimated here; where one does not, the record says so.

Invariant: a request that the limit forbids is not made and raises `SpendingLimitReached`, a `ModelError`; whoever asked
then does what it does without a model.
"""

import logging
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ricordo.clock import Clock, rfc3339
from ricordo.errors import ReplyInvalid, SpendingLimitReached, StorageError
from ricordo.files import FileStore
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.messages.jsontext import dumps
from ricordo.models import ChatModel, Reply
from ricordo.models.around import Around
from ricordo.models.closing import closing_events
from ricordo.models.contract import Finished, ReplyEvent
from ricordo.models.limits import limited
from ricordo.scopes import Scope
from ricordo.spending.config import SpendingConfig
from ricordo.spending.journal import Asked, Reserved, SpendingJournal
from ricordo.spending.plan import LEAST_REPLY, Spent, allowed_reply, most_tokens, refusal
from ricordo.tokens import estimate_message, estimate_request, estimate_text
from ricordo.uncut import finish

if TYPE_CHECKING:
    from datetime import date

__all__ = ["Meter", "Metered"]

_LOCK = "spending"
_LOG = logging.getLogger("ricordo.spending")


@dataclass(frozen=True, kw_only=True)
class _Allowed:
    """A request that may be made: its record so far, and how many tokens its prompt and its reply take at most."""

    asked: Asked
    estimate: int
    prompt: int
    reply: int

    @property
    def most(self) -> int:
        return self.prompt + self.reply


class Meter:
    """Counts the requests of memory in one root against the limit of a day; all its processes count together.

    What can't be written down, as on a full disk, is counted as long as this process lives.
    """

    def __init__(self, files: FileStore, config: SpendingConfig, clock: Clock) -> None:
        """Keep the record in `files`; nothing is read or written yet."""
        self._files = files
        self._journal = SpendingJournal(files)
        self._config = config
        self._clock = clock
        self._unwritten: dict[date, Spent] = {}
        self._held: dict[str, int] = {}
        """What is reserved and could not be written down, by its id."""

    @property
    def config(self) -> SpendingConfig:
        """The limit."""
        return self._config

    async def spent(self) -> Spent:
        """Return what was spent today, and what requests that have not ended may take yet."""
        today = self._clock.today()
        unwritten = self._unwritten.get(today, Spent()) + Spent(reserved=sum(self._held.values()))
        try:
            return await self._journal.spent_on(today) + unwritten
        except StorageError as error:
            _LOG.warning("What was spent today can't be read: %s", error)
            return unwritten

    async def refusal(self, *, tokens: int = 0) -> str:
        """Return why no request of about so many `tokens` is to be made today; empty when one may be."""
        return refusal(await self.spent(), self._config, tokens=tokens)

    def metered(self, model: ChatModel, purpose: str, *, scope: Scope | None = None) -> "Metered":
        """Return `model` as memory asks it: for `purpose`, such as `flush`, on behalf of `scope`."""
        return Metered(model=model, meter=self, purpose=purpose, scope=scope)

    async def allowed(self, asked: Asked, estimate: int) -> _Allowed:
        """Reserve what a request with a prompt of about `estimate` tokens may take.

        Raises: SpendingLimitReached if the limit leaves no room for it.
        """
        try:
            async with self._files.lock(_LOCK):
                return await self._reserved(asked, estimate)
        except StorageError as error:
            _LOG.warning("Other processes can't be told of a request of memory: %s", error)
            return await self._reserved(asked, estimate)

    async def _reserved(self, asked: Asked, estimate: int) -> _Allowed:
        prompt, spent = most_tokens(estimate), await self.spent()
        reply = allowed_reply(spent, self._config, prompt=prompt)
        if not reply:
            least = min(LEAST_REPLY, self._config.reply_tokens)
            why = refusal(spent, self._config, tokens=prompt + least)
            raise SpendingLimitReached(f"{SpendingLimitReached.__doc__} Today {why}.")
        name = secrets.token_hex(4)
        try:
            await self._journal.reserve(Reserved(day=asked.day, at=asked.at, id=name, tokens=prompt + reply))
        except StorageError:
            self._held[name] = prompt + reply
        return _Allowed(asked=replace(asked, settles=name), estimate=estimate, prompt=prompt, reply=reply)

    async def note(self, asked: Asked) -> None:
        """Write a request down, which settles what was reserved for it; a cancellation waits until that is done."""
        try:
            await finish(partial(self._journal.note, asked))
        except StorageError as error:
            _LOG.warning("A request of memory was not written down: %s", error)
            self._unwritten[asked.day] = self._unwritten.get(asked.day, Spent()) + asked.spent
            self._held.pop(asked.settles, None)

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
        allowed = await self._allowed(messages, tools, schema)
        model = limited(self.model, allowed.reply)
        try:
            reply = await model.complete(messages, tools=tools, schema=schema)
        except BaseException as error:
            await self.meter.note(_failed(allowed, error))
            raise
        await self.meter.note(_answered(allowed, reply))
        return reply

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the events of the model inside. Raises as `complete` does, before the first one."""
        allowed = await self._allowed(messages, tools, schema)
        model = limited(self.model, allowed.reply)
        done = replace(allowed.asked, error="GeneratorExit")
        try:
            async with closing_events(model.stream(messages, tools=tools, schema=schema)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        done = _answered(allowed, event.reply)
                    yield event
        except BaseException as error:
            if done.error:
                done = _failed(allowed, error)
            raise
        finally:
            await self.meter.note(done)

    async def _allowed(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> _Allowed:
        form = estimate_text(dumps(dict(schema))) if schema else 0
        estimate = estimate_request(messages, tools=tools).total + form
        return await self.meter.allowed(self.meter.request(self.name, self.purpose, self.scope), estimate)


def _failed(allowed: _Allowed, error: BaseException) -> Asked:
    """Return the record of a request that failed; a reply that can't be used took its tokens all the same."""
    reply = error.reply if isinstance(error, ReplyInvalid) else None
    asked = _answered(allowed, reply) if isinstance(reply, Reply) else allowed.asked
    return replace(asked, error=type(error).__name__)


def _answered(allowed: _Allowed, reply: Reply) -> Asked:
    """Return the record with what the reply used; what its provider does not count is estimated."""
    usage = reply.usage
    given, output = usage.input or allowed.estimate, usage.output or estimate_message(reply.message)
    over = max(0, given + output - allowed.most)
    model = reply.model or allowed.asked.model
    return replace(allowed.asked, model=model, input=given, output=output, cost=reply.cost, over=over)
