"""Asking again after a failure that may pass, with growing pauses; what to do is decided by `plan`.

Whoever waits is told why: each new try is a warning of the logger `ricordo.models`.

Invariant: a stream is started again only while nothing of it was given, so nobody reads the beginning of a reply twice.
A cancellation is no failure and goes through at once.
"""

import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import anyio

from ricordo.errors import ModelError
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models.around import ModelWrapper
from ricordo.models.closing import closing_events
from ricordo.models.config import RetryConfig
from ricordo.models.contract import Reply, ReplyEvent
from ricordo.models.plan import RetryState, next_delay

__all__ = ["RetryPolicy", "RetryingModel", "Sleep"]

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
