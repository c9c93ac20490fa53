"""Models that wrap another model, with a timeout or retries, and the closing of their streams.

The logger `ricordo.models` warns of each retry.

Invariants: an error that would repeat (an overflow, a refusal, a missing key) is not retried, and a stream is retried
only before its first event. No timeout runs while the caller has control. A cancellation passes through at once.
"""

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from typing import Self, TypeAlias, TypeVar

import anyio

from ricordo.errors import InvalidSetting, ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable, ReplyInvalid
from ricordo.lazy import dataclass
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
    """Pass on `events`, and close them at the end if they can be closed, so that no connection stays open."""
    try:
        yield events
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


def reply_events(reply: Reply) -> Iterator[ReplyEvent]:
    """Yield the events of a stream that ends with `reply`. A reply without text has no text event."""
    if reply.message.text:
        yield TextDelta(text=reply.message.text)
    yield ReplyFinished(reply=reply)


class WholeReplies(ABC):
    """Base class of `ChatModel`s that return whole replies. It provides `stream`."""

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
        """Yield the same reply, with its text as one event."""
        for event in reply_events(await self.complete(messages, tools=tools, schema=schema)):
            yield event


@dataclass(frozen=True, kw_only=True)
class ModelWrapper:
    """Base class of `ChatModel`s that wrap another one."""

    model: ChatModel

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self.model.name

    @property
    def window(self) -> int | None:
        """The window of the wrapped model, in tokens."""
        return self.model.window

    @property
    def base_url(self) -> str | None:
        """The base URL of the wrapped model, if known."""
        return get_base_url(self.model)

    @property
    def declared_window(self) -> int | None:
        """The window with which a session with the wrapped model begins, in tokens."""
        return declared_window(self.model)

    @property
    def max_messages(self) -> int | None:
        """The maximum number of messages in one request to the wrapped model."""
        return max_messages(self.model)

    async def request_body(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> RequestBody | None:
        """Return the request that the wrapped model would send; None if it cannot show it."""
        return await request_body(self.model, await self.sent(messages), tools=tools, schema=schema)

    async def sent(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages that are sent to the wrapped model; here they are unchanged."""
        return messages

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the wrapped model."""
        return await self.model.complete(await self.sent(messages), tools=tools, schema=schema)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Yield the events of the wrapped model."""
        outgoing = await self.sent(messages)
        async with closing_events(self.model.stream(outgoing, tools=tools, schema=schema)) as events:
            async for event in events:
                yield event

    def with_reply_limit(self, tokens: int) -> Self:
        """Return this wrapper around the wrapped model with replies of at most `tokens` tokens."""
        return replace(self, model=limit_replies(self.model, tokens))


@dataclass(frozen=True, kw_only=True)
class TimedModel(ModelWrapper):
    """A `ChatModel` with limits in seconds: `seconds` for a whole reply, `stall_seconds` between events of a stream."""

    seconds: float
    stall_seconds: float

    def __post_init__(self) -> None:
        """Reject limits that are not above 0."""
        if min(self.seconds, self.stall_seconds) <= 0:
            raise InvalidSetting("The timeouts of a model are seconds above 0.")

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the wrapped model.

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
        """Yield the events of the wrapped model.

        Raises:
            ModelTimeout: the reply took longer than `seconds`, or one event came later than `stall_seconds`.
        """
        elapsed = 0.0
        async with closing_events(self.model.stream(messages, tools=tools, schema=schema)) as events:
            while True:
                limit = min(self.stall_seconds, self.seconds - elapsed)
                started_at = anyio.current_time()
                event: ReplyEvent | None = None
                with anyio.move_on_after(limit) as scope:
                    event = await anext(events, None)
                if scope.cancelled_caught:
                    raise ModelTimeout(f"{self.name} sent nothing more for {limit:g} s in the middle of its reply.")
                if event is None:
                    return
                elapsed += anyio.current_time() - started_at
                yield event


MIN_REPLY_TOKENS = 256
"""The smallest reply limit to request, in tokens."""
REPLY_MARGIN = 64
"""Tokens left free between a prompt and the longest reply to it."""
_MIN_REPLY_SHARE = 16
_TRANSIENT_ERRORS = (ModelRateLimited, ModelUnavailable, ModelTimeout)


@dataclass(frozen=True, kw_only=True)
class RetryState:
    """The tries of one call so far: failures, invalid replies among them, and seconds waited."""

    failures: int = 0
    invalid: int = 0
    waited: float = 0.0

    def add_failure(self, error: ModelError) -> "RetryState":
        """Return this state with one more failed try."""
        invalid = self.invalid + isinstance(error, ReplyInvalid)
        return RetryState(failures=self.failures + 1, invalid=invalid, waited=self.waited)

    def add_pause(self, seconds: float) -> "RetryState":
        """Return this state after a pause of `seconds`."""
        return RetryState(failures=self.failures, invalid=self.invalid, waited=self.waited + seconds)


def next_delay(config: RetryConfig, error: ModelError, tries: RetryState, *, chance: float) -> float | None:
    """Return the pause in seconds before the next try; None if there is no next try.

    `tries` includes the try that failed with `error`; `chance` is from 0 to 1. An invalid reply is retried once, at
    once, unless it has text: then the caller decides what to do with it. The provider's requested wait is the minimum
    pause.
    """
    if tries.failures >= config.attempts:
        return None
    if isinstance(error, ReplyInvalid):
        return 0.0 if tries.invalid <= 1 and not error.said else None
    if not isinstance(error, _TRANSIENT_ERRORS):
        return None
    # Exponential backoff with jitter keeps clients from retrying at the same time: M. Brooker, "Exponential Backoff And
    # Jitter", 2015. Its "equal jitter" is a jitter of 0.5.
    doubled = config.first_delay * 2.0 ** min(tries.failures - 1, 60)
    delay = min(doubled, config.longest_delay) * (1 - config.jitter * chance)
    requested_delay = error.retry_after if isinstance(error, ModelRateLimited) else None
    if requested_delay is not None:
        if requested_delay > config.longest_delay:
            return None
        delay = max(delay, requested_delay)
    return delay if tries.waited + delay <= config.total_delay else None


def limit_reply_tokens(requested: int, window: int, *, prompt: int) -> int:
    """Return the maximum tokens of a reply: `requested`, limited to the part of `window` that the prompt leaves free.

    `prompt` is an estimate, which may be too high. A sixteenth of the window is always allowed, and at least 256
    tokens.
    """
    min_tokens = min(requested, max(MIN_REPLY_TOKENS, window // _MIN_REPLY_SHARE))
    return max(min_tokens, min(requested, window - prompt - REPLY_MARGIN))


_LOG = logging.getLogger("ricordo.models")
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Retries calls. `sleep` waits for a number of seconds, `random` returns a number from 0 to 1."""

    config: RetryConfig = field(default_factory=RetryConfig)
    sleep: Sleep = anyio.sleep
    random: Callable[[], float] = random.random

    async def wait_to_retry(self, error: ModelError, tries: RetryState) -> RetryState:
        """Return the state with this failure, after the pause before the next try.

        Raises:
            ModelError: `error` itself, if there is no next try.
        """
        failed = tries.add_failure(error)
        delay = next_delay(self.config, error, failed, chance=self.random())
        if delay is None:
            raise error
        _LOG.warning("Asking again %s: %s", f"in {delay:.1f} s" if delay > 0 else "at once", error)
        if delay > 0:
            await self.sleep(delay)
        return failed.add_pause(delay)

    async def run(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of `call`, which is retried after transient failures.

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
    """A `ChatModel` that retries calls of the wrapped model; see `RetryConfig`."""

    config: RetryConfig = field(default_factory=RetryConfig)
    sleep: Sleep = anyio.sleep
    random: Callable[[], float] = random.random

    @property
    def _policy(self) -> RetryPolicy:
        return RetryPolicy(config=self.config, sleep=self.sleep, random=self.random)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the first complete reply. Raises the last error; see `ChatModel` for the errors."""
        return await self._policy.run(lambda: self.model.complete(messages, tools=tools, schema=schema))

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Yield the events of the first stream that begins. A failure after its first event is raised."""
        tries = RetryState()
        while True:
            has_started = False
            try:
                async with closing_events(self.model.stream(messages, tools=tools, schema=schema)) as events:
                    async for event in events:
                        has_started = True
                        yield event
            except ModelError as error:
                if has_started:
                    raise
                tries = await self._policy.wait_to_retry(error, tries)
            else:
                return
