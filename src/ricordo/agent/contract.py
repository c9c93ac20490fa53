"""Turns, model requests, their results, and middleware around both. A middleware is a callable given the next one.

Values are passed in and out; nothing is changed in place. A middleware that shortens the window passes on a request
with a shorter one, and the response says which window was sent. `TurnStream` gives a turn's events as they happen.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from types import TracebackType
from typing import Generic, Literal, Self, TypeAlias, TypeVar

import anyio

from ricordo.agent.tools.schema import OutputType
from ricordo.errors import RicordoError
from ricordo.messages import Message, ToolCall, ToolResult, ToolSpec, Usage
from ricordo.models import Delta, Reply
from ricordo.scope import Scope

__all__ = [
    "ModelRequest",
    "ModelResponse",
    "Recorder",
    "StepHandler",
    "StepMiddleware",
    "ToolFinished",
    "ToolStarted",
    "Turn",
    "TurnEnding",
    "TurnEvent",
    "TurnHandler",
    "TurnListener",
    "TurnMiddleware",
    "TurnResult",
    "TurnStream",
    "TypedResult",
    "compose",
]


_Output = TypeVar("_Output")
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
TurnEnding = Literal["end", "max_iters", "limit", "length", "refused", "window"]


@dataclass(frozen=True, kw_only=True)
class ToolStarted:
    """A tool begins to work."""

    call: ToolCall


@dataclass(frozen=True, kw_only=True)
class ToolFinished:
    """A tool has answered."""

    result: ToolResult


TurnEvent: TypeAlias = Delta | ToolStarted | ToolFinished
TurnListener: TypeAlias = Callable[[TurnEvent], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One call of the agent: what was said to it, and the window that it goes on from.

    `listener` hears what happens as it happens; with one the model is asked for a stream. `output` is what it is to be
    answered with, None for words.
    """

    scope: Scope
    agent: str
    session: str
    messages: tuple[Message, ...]
    window: tuple[Message, ...] = ()
    listener: TurnListener | None = None
    output: OutputType | None = None


@dataclass(frozen=True, kw_only=True)
class TurnResult:
    """What a turn came to: the reply, and every message that it added, the given ones first.

    `window` is what the next turn goes on from. `steps` counts the requests to the model.
    """

    message: Message
    messages: tuple[Message, ...] = ()
    window: tuple[Message, ...] = ()
    steps: int = 0
    ending: TurnEnding = "end"
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None

    def __str__(self) -> str:
        """The text of the reply."""
        return self.message.text


@dataclass(frozen=True, kw_only=True)
class TypedResult(TurnResult, Generic[_Output]):
    """What a turn came to that was asked for a type: `output` is a value of it."""

    output: _Output


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One request to the model: the system prompt, the window, and the tools it may call; `step` counts from 1.

    `reminder` is sent after the window and is part of none: nothing records it, and nothing shortens it.
    """

    turn: Turn
    system: str
    window: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    step: int = 1
    reminder: Message | None = None


@dataclass(frozen=True, kw_only=True)
class ModelResponse:
    """The model's reply, and the window and the reminder that were sent for it."""

    reply: Reply
    window: tuple[Message, ...]
    reminder: Message | None = None


Recorder: TypeAlias = Callable[[Sequence[Message]], Awaitable[tuple[Message, ...]]]
"""Makes messages durable and returns them as they are stored, with their ids. May raise `StorageError`; then none of
them is stored."""
StepHandler: TypeAlias = Callable[[ModelRequest], Awaitable[ModelResponse]]
StepMiddleware: TypeAlias = Callable[[ModelRequest, StepHandler], Awaitable[ModelResponse]]
TurnHandler: TypeAlias = Callable[[Turn], Awaitable[TurnResult]]
TurnMiddleware: TypeAlias = Callable[[Turn, TurnHandler], Awaitable[TurnResult]]


def compose(
    middleware: Sequence[Callable[[_Given, Callable[[_Given], Awaitable[_Made]]], Awaitable[_Made]]],
    innermost: Callable[[_Given], Awaitable[_Made]],
) -> Callable[[_Given], Awaitable[_Made]]:
    """Return one handler of many: the first is outermost, and the last is handed `innermost`."""

    def wrap(
        inner: Callable[[_Given], Awaitable[_Made]],
        outer: Callable[[_Given, Callable[[_Given], Awaitable[_Made]]], Awaitable[_Made]],
    ) -> Callable[[_Given], Awaitable[_Made]]:
        return lambda given: outer(given, inner)

    return reduce(wrap, reversed(middleware), innermost)


class TurnStream:
    """Iterate it once for the events; afterwards `result` is the whole turn."""

    def __init__(self) -> None:
        """Wait for a turn."""
        self._send, self._receive = anyio.create_memory_object_stream[TurnEvent](math.inf)
        self._result: TurnResult | None = None
        self._error: RicordoError | None = None

    def __enter__(self) -> Self:
        """Be listened to."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget what nobody listened to."""
        self._send.close()
        self._receive.close()

    @property
    def result(self) -> TurnResult:
        """What the turn came to. Raises what the turn raised, and `RicordoError` before its end."""
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise RicordoError("The turn has not ended: iterate over its events first.")
        return self._result

    async def emit(self, event: TurnEvent) -> None:
        """Pass an event on."""
        self._send.send_nowait(event)

    async def run(self, turn: Callable[[], Awaitable[TurnResult]]) -> None:
        """Carry the turn out; its error is raised where its events are read."""
        try:
            self._result = await turn()
        except RicordoError as error:
            self._error = error
        finally:
            self._send.close()

    def __aiter__(self) -> Self:
        """Give the events as they come."""
        return self

    async def __anext__(self) -> TurnEvent:
        """Return the next event. Raises what the turn raised."""
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            return await self._receive.receive()
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration
