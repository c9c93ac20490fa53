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

from ricordo.clock import Clock, format_rfc3339
from ricordo.errors import ReplyInvalid, SpendingLimitReached, StorageError
from ricordo.files import FileStore
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.messages.jsontext import dumps
from ricordo.models import ChatModel, Reply
from ricordo.models.around import ModelWrapper
from ricordo.models.closing import closing_events
from ricordo.models.contract import ReplyFinished, ReplyEvent
from ricordo.models.limits import limit_replies
from ricordo.scopes import Scope
from ricordo.spending.config import SpendingConfig
from ricordo.spending.journal import RequestRecord, Reservation, SpendingJournal
from ricordo.spending.plan import MIN_REPLY_ALLOWANCE, SpendingTotal, max_reply_tokens, max_prompt_tokens, find_refusal
from ricordo.tokens import estimate_message, estimate_request, estimate_text
from ricordo.uncut import run_even_if_cancelled

if TYPE_CHECKING:
    from datetime import date

__all__ = ["SpendingMeter", "MeteredModel"]

_LOCK = "spending"
_LOG = logging.getLogger("ricordo.spending")


@dataclass(frozen=True, kw_only=True)
class _RequestAllowance:
    """A request that may be made: its record so far, and how many tokens its prompt and its reply take at most."""

    record: RequestRecord
    estimate: int
    prompt: int
    reply: int

    @property
    def max_tokens(self) -> int:
        return self.prompt + self.reply


class SpendingMeter:
    """Counts the requests of memory in one root against the limit of a day; all its processes count together.

    What can't be written down, as on a full disk, is counted as long as this process lives.
    """

    def __init__(self, files: FileStore, config: SpendingConfig, clock: Clock) -> None:
        """Keep the record in `files`; nothing is read or written yet."""
        self._files = files
        self._journal = SpendingJournal(files)
        self._config = config
        self._clock = clock
        self._unwritten_totals: dict[date, SpendingTotal] = {}
        self._unwritten_reservations: dict[str, int] = {}
        """What is reserved and could not be written down, by its id."""

    @property
    def config(self) -> SpendingConfig:
        """The limit."""
        return self._config

    async def read_today(self) -> SpendingTotal:
        """Return what was spent today, and what requests that have not ended may take yet."""
        today = self._clock.today()
        unwritten = self._unwritten_totals.get(today, SpendingTotal()) + SpendingTotal(
            reserved=sum(self._unwritten_reservations.values())
        )
        try:
            return await self._journal.read_day(today) + unwritten
        except StorageError as error:
            _LOG.warning("What was spent today can't be read: %s", error)
            return unwritten

    async def find_refusal(self, *, tokens: int = 0) -> str:
        """Return why no request of about so many `tokens` is to be made today; empty when one may be."""
        return find_refusal(await self.read_today(), self._config, tokens=tokens)

    def wrap(self, model: ChatModel, purpose: str, *, scope: Scope | None = None) -> "MeteredModel":
        """Return `model` as memory asks it: for `purpose`, such as `flush`, on behalf of `scope`."""
        return MeteredModel(model=model, meter=self, purpose=purpose, scope=scope)

    async def reserve(self, asked: RequestRecord, estimate: int) -> _RequestAllowance:
        """Reserve what a request with a prompt of about `estimate` tokens may take.

        Raises: SpendingLimitReached if the limit leaves no room for it.
        """
        try:
            async with self._files.lock(_LOCK):
                return await self._make_allowance(asked, estimate)
        except StorageError as error:
            _LOG.warning("Other processes can't be told of a request of memory: %s", error)
            return await self._make_allowance(asked, estimate)

    async def _make_allowance(self, asked: RequestRecord, estimate: int) -> _RequestAllowance:
        prompt, spent = max_prompt_tokens(estimate), await self.read_today()
        reply = max_reply_tokens(spent, self._config, prompt=prompt)
        if not reply:
            least = min(MIN_REPLY_ALLOWANCE, self._config.reply_tokens)
            why = find_refusal(spent, self._config, tokens=prompt + least)
            raise SpendingLimitReached(f"{SpendingLimitReached.__doc__} Today {why}.")
        name = secrets.token_hex(4)
        try:
            await self._journal.reserve(Reservation(day=asked.day, at=asked.at, id=name, tokens=prompt + reply))
        except StorageError:
            self._unwritten_reservations[name] = prompt + reply
        return _RequestAllowance(record=replace(asked, settles=name), estimate=estimate, prompt=prompt, reply=reply)

    async def record_request(self, asked: RequestRecord) -> None:
        """Write a request down, which settles what was reserved for it; a cancellation waits until that is done."""
        try:
            await run_even_if_cancelled(partial(self._journal.append_request, asked))
        except StorageError as error:
            _LOG.warning("A request of memory was not written down: %s", error)
            self._unwritten_totals[asked.day] = self._unwritten_totals.get(asked.day, SpendingTotal()) + asked.total
            self._unwritten_reservations.pop(asked.settles, None)

    def create_request(self, model: str, purpose: str, scope: Scope | None) -> RequestRecord:
        """Return the record of a request that is made now."""
        parts = scope.parts() if scope else {}
        return RequestRecord(
            day=self._clock.today(),
            at=format_rfc3339(self._clock.now()),
            purpose=purpose,
            model=model,
            user=parts.get("user", ""),
            agent=parts.get("agent", ""),
            session=parts.get("session", ""),
        )


@dataclass(frozen=True, kw_only=True)
class MeteredModel(ModelWrapper):
    """A `ChatModel` whose requests are counted by `meter`."""

    meter: SpendingMeter
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
        allowed = await self._reserve(messages, tools, schema)
        model = limit_replies(self.model, allowed.reply)
        try:
            reply = await model.complete(messages, tools=tools, schema=schema)
        except BaseException as error:
            await self.meter.record_request(_record_failure(allowed, error))
            raise
        await self.meter.record_request(_record_reply(allowed, reply))
        return reply

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the events of the model inside. Raises as `complete` does, before the first one."""
        allowed = await self._reserve(messages, tools, schema)
        model = limit_replies(self.model, allowed.reply)
        done = replace(allowed.record, error="GeneratorExit")
        try:
            async with closing_events(model.stream(messages, tools=tools, schema=schema)) as events:
                async for event in events:
                    if isinstance(event, ReplyFinished):
                        done = _record_reply(allowed, event.reply)
                    yield event
        except BaseException as error:
            if done.error:
                done = _record_failure(allowed, error)
            raise
        finally:
            await self.meter.record_request(done)

    async def _reserve(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> _RequestAllowance:
        form = estimate_text(dumps(dict(schema))) if schema else 0
        estimate = estimate_request(messages, tools=tools).total + form
        return await self.meter.reserve(self.meter.create_request(self.name, self.purpose, self.scope), estimate)


def _record_failure(allowed: _RequestAllowance, error: BaseException) -> RequestRecord:
    """Return the record of a request that failed; a reply that can't be used took its tokens all the same."""
    reply = error.reply if isinstance(error, ReplyInvalid) else None
    asked = _record_reply(allowed, reply) if isinstance(reply, Reply) else allowed.record
    return replace(asked, error=type(error).__name__)


def _record_reply(allowed: _RequestAllowance, reply: Reply) -> RequestRecord:
    """Return the record with what the reply used; what its provider does not count is estimated."""
    usage = reply.usage
    given, output = usage.input or allowed.estimate, usage.output or estimate_message(reply.message)
    over = max(0, given + output - allowed.max_tokens)
    model = reply.model or allowed.record.model
    return replace(allowed.record, model=model, input=given, output=output, cost=reply.cost, over=over)
