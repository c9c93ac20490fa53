"""Models around another one: with a timeout, with retries; and the closing of their streams.

Each new try is a warning of the logger `ricordo.models`.

Invariants: what would fail again in the same way (an overflow, a refusal, a missing key) is not tried again, and a
stream only while nothing of it was given. No timeout is active while the caller has the control. A cancellation goes
through at once.
"""

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias, TypeVar

import anyio

from ricordo.errors import InvalidSetting, ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable, ReplyInvalid
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models.config import RetryConfig
from ricordo.models.contract import (
    ChatModel,
    Reply,
    ReplyEvent,
    ReplyFinished,
    RequestBody,
    TextDelta,
    declared_window,
    get_base_url,
    limit_replies,
    max_messages,
    request_body,
)

__all__ = [
    "MIN_REPLY_TOKENS",
    "REPLY_MARGIN",
    "ModelWrapper",
    "RetryPolicy",
    "RetryState",
    "RetryingModel",
    "Sleep",
    "TimedModel",
    "WholeReplies",
    "closing_events",
    "limit_reply_tokens",
    "next_delay",
    "reply_events",
]


@asynccontextmanager
async def closing_events(events: AsyncIterator[ReplyEvent]) -> AsyncIterator[AsyncIterator[ReplyEvent]]:
    """Hand on `events`, and close them at the end if they can be closed, so that no connection stays open."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


def reply_events(reply: Reply) -> Iterator[ReplyEvent]:
    """Give the events of a stream that ends with `reply`; one without text has no piece."""
    if reply.message.text:
        yield TextDelta(text=reply.message.text)
    yield ReplyFinished(reply=reply)


class WholeReplies(ABC):
    """What `ChatModel`s have in common whose replies come whole: their stream."""

    @abstractmethod
    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply."""

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the same reply, its text as one piece."""
        for event in reply_events(await self.complete(messages, tools=tools, schema=schema)):
            yield event


@dataclass(frozen=True, kw_only=True)
class ModelWrapper:
    """What every `ChatModel` around another one has in common."""

    model: ChatModel

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    @property
    def window(self) -> int | None:
        """The window of the model inside, in tokens."""
        return self.model.window

    @property
    def base_url(self) -> str | None:
        """The address of the model inside, as far as it is known."""
        return get_base_url(self.model)

    @property
    def declared_window(self) -> int | None:
        """The window with which a session with the model inside begins, in tokens."""
        return declared_window(self.model)

    @property
    def max_messages(self) -> int | None:
        """How many messages one request to the model inside may have."""
        return max_messages(self.model)

    async def request_body(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> RequestBody | None:
        """Return the request that the model inside would write; None where it can't show it."""
        return await request_body(self.model, await self.sent(messages), tools=tools, schema=schema)

    async def sent(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return what the model inside is sent for `messages`; here the same."""
        return messages

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the model inside."""
        return await self.model.complete(await self.sent(messages), tools=tools, schema=schema)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the events of the model inside."""
        sent = await self.sent(messages)
        async with closing_events(self.model.stream(sent, tools=tools, schema=schema)) as events:
            async for event in events:
                yield event

    def with_reply_limit(self, tokens: int) -> Self:
        """Return this model around the one inside with replies of at most so many tokens."""
        return replace(self, model=limit_replies(self.model, tokens))


@dataclass(frozen=True, kw_only=True)
class TimedModel(ModelWrapper):
    """A `ChatModel` with limits in seconds: `seconds` for a whole reply, `stall_seconds` between parts of a stream."""

    seconds: float
    stall_seconds: float

    def __post_init__(self) -> None:
        """Refuse limits that nothing can keep."""
        if min(self.seconds, self.stall_seconds) <= 0:
            raise InvalidSetting("The timeouts of a model are seconds above 0.")

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the model inside.

        Raises:
            ModelTimeout: it took longer than `seconds`.
        """
        with anyio.move_on_after(self.seconds):
            return await self.model.complete(messages, tools=tools, schema=schema)
        raise ModelTimeout(f"{self.name} did not answer within {self.seconds:g} s.")

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the events of the model inside.

        Raises:
            ModelTimeout: the whole took longer than `seconds`, or one part came later than `stall_seconds`.
        """
        used = 0.0
        async with closing_events(self.model.stream(messages, tools=tools, schema=schema)) as events:
            while True:
                limit = min(self.stall_seconds, self.seconds - used)
                begun = anyio.current_time()
                event: ReplyEvent | None = None
                with anyio.move_on_after(limit) as scope:
                    event = await anext(events, None)
                if scope.cancelled_caught:
                    raise ModelTimeout(f"{self.name} sent nothing more for {limit:g} s in the middle of its reply.")
                if event is None:
                    return
                used += anyio.current_time() - begun
                yield event


MIN_REPLY_TOKENS = 256
"""A reply of fewer tokens is not asked for."""
REPLY_MARGIN = 64
"""Tokens left free between a prompt and the longest reply to it."""
_MIN_REPLY_SHARE = 16
_TRANSIENT_ERRORS = (ModelRateLimited, ModelUnavailable, ModelTimeout)


@dataclass(frozen=True, kw_only=True)
class RetryState:
    """What was tried of one call: its failures, those of them that were invalid replies, and the seconds waited."""

    failures: int = 0
    invalid: int = 0
    waited: float = 0.0

    def add_failure(self, error: ModelError) -> "RetryState":
        """Return these tries and one more, which failed with `error`."""
        invalid = self.invalid + isinstance(error, ReplyInvalid)
        return RetryState(failures=self.failures + 1, invalid=invalid, waited=self.waited)

    def add_pause(self, seconds: float) -> "RetryState":
        """Return these tries after a pause of `seconds`."""
        return RetryState(failures=self.failures, invalid=self.invalid, waited=self.waited + seconds)


def next_delay(config: RetryConfig, error: ModelError, tries: RetryState, *, chance: float) -> float | None:
    """Return the pause in seconds before the next try; None when there is none.

    `tries` includes the one that failed with `error`; `chance` is from 0 to 1. An invalid reply is asked for once more,
    at once, unless it says something: who asked decides what that is worth. What the provider asks to wait counts
    as the least pause.
    """
    if tries.failures >= config.attempts:
        return None
    if isinstance(error, ReplyInvalid):
        return 0.0 if tries.invalid <= 1 and not error.said else None
    if not isinstance(error, _TRANSIENT_ERRORS):
        return None
    # Doubling with random shortening keeps many clients from coming back at once: M. Brooker, "Exponential Backoff And
    # Jitter", 2015, whose "equal jitter" is a jitter of 0.5.
    doubled = config.first_delay * 2.0 ** min(tries.failures - 1, 60)
    delay = min(doubled, config.longest_delay) * (1 - config.jitter * chance)
    asked = error.retry_after if isinstance(error, ModelRateLimited) else None
    if asked is not None:
        if asked > config.longest_delay:
            return None
        delay = max(delay, asked)
    return delay if tries.waited + delay <= config.total_delay else None


def limit_reply_tokens(wanted: int, window: int, *, prompt: int) -> int:
    """Return how many tokens a reply may take where `wanted` are asked for: what a `window` leaves beside the prompt.

    `prompt` is an estimate, which may be too high: a sixteenth of the window is always allowed, and at least 256.
    """
    least = min(wanted, max(MIN_REPLY_TOKENS, window // _MIN_REPLY_SHARE))
    return max(least, min(wanted, window - prompt - REPLY_MARGIN))


_LOG = logging.getLogger("ricordo.models")
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """What is done between tries: `sleep` waits so many seconds, `chance` gives a number from 0 to 1."""

    config: RetryConfig = field(default_factory=RetryConfig)
    sleep: Sleep = anyio.sleep
    chance: Callable[[], float] = random.random

    async def wait_to_retry(self, error: ModelError, tries: RetryState) -> RetryState:
        """Return the tries with this failure, after the pause before the next one.

        Raises:
            ModelError: `error` itself, when there is no next try.
        """
        failed = tries.add_failure(error)
        delay = next_delay(self.config, error, failed, chance=self.chance())
        if delay is None:
            raise error
        _LOG.warning("Asking again %s: %s", f"in {delay:.1f} s" if delay > 0 else "at once", error)
        if delay > 0:
            await self.sleep(delay)
        return failed.add_pause(delay)

    async def run(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Return what `call` returns, called again after failures that may pass.

        Raises:
            ModelError: the last failure.
        """
        tries = RetryState()
        while True:
            try:
                return await call()
            except ModelError as error:
                tries = await self.wait_to_retry(error, tries)


@dataclass(frozen=True, kw_only=True)
class RetryingModel(ModelWrapper):
    """A `ChatModel` that asks the one inside again: see `RetryConfig`."""

    config: RetryConfig = field(default_factory=RetryConfig)
    sleep: Sleep = anyio.sleep
    chance: Callable[[], float] = random.random

    @property
    def _policy(self) -> RetryPolicy:
        return RetryPolicy(config=self.config, sleep=self.sleep, chance=self.chance)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the first reply that came whole; see `ChatModel` for the errors, of which the last is raised."""
        return await self._policy.run(lambda: self.model.complete(messages, tools=tools, schema=schema))

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the events of the first stream that began; a failure after its first event is raised."""
        tries = RetryState()
        while True:
            begun = False
            try:
                async with closing_events(self.model.stream(messages, tools=tools, schema=schema)) as events:
                    async for event in events:
                        begun = True
                        yield event
            except ModelError as error:
                if begun:
                    raise
                tries = await self._policy.wait_to_retry(error, tries)
            else:
                return
