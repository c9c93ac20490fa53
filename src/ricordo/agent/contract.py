"""Turns, model requests, their results, and middleware around both.

A middleware is a callable that takes the value and the next handler. Values are never changed in place: a middleware
that shortens the window passes on a new request, and the response holds the window that was sent.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import field
from decimal import Decimal
from functools import reduce
from types import TracebackType
from typing import Generic, Literal, Self, TypeAlias, TypeVar

import anyio

from ricordo.agent.tools.schema import OutputType
from ricordo.errors import RicordoError
from ricordo.lazy import dataclass
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
    """A tool call was started."""

    call: ToolCall


@dataclass(frozen=True, kw_only=True)
class ToolFinished:
    """A tool call has returned a result."""

    result: ToolResult


TurnEvent: TypeAlias = Delta | ToolStarted | ToolFinished
TurnListener: TypeAlias = Callable[[TurnEvent], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One call of the agent: the new messages, and the window that they are added to.

    `listener` receives events as they happen; if it is set, the model is asked for a stream. `output` is the type of
    the answer, None for text.
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
    """The result of a turn: the reply, and every message that the turn added, the given messages first.

    `window` is the window for the next turn. `steps` is the number of requests to the model.
    """

    message: Message
    messages: tuple[Message, ...] = ()
    window: tuple[Message, ...] = ()
    steps: int = 0
    ending: TurnEnding = "end"
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None

    def __str__(self) -> str:
        """Return the text of the reply."""
        return self.message.text


@dataclass(frozen=True, kw_only=True)
class TypedResult(TurnResult, Generic[_Output]):
    """The result of a turn with an output type: `output` is a value of that type."""

    output: _Output


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One request to the model: the system prompt, the window, and the available tools; `step` counts from 1.

    `system_end` is the end of `system` that differs between sessions; a provider's cache breakpoint stands before it.
    `reminder` is sent after the window but is not part of it: it is never recorded or shortened.
    """

    turn: Turn
    system: str
    window: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    step: int = 1
    reminder: Message | None = None
    system_end: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelResponse:
    """The model's reply, and the window and reminder that were sent for it."""

    reply: Reply
    window: tuple[Message, ...]
    reminder: Message | None = None


Recorder: TypeAlias = Callable[[Sequence[Message]], Awaitable[tuple[Message, ...]]]
"""Makes messages durable and returns them as stored, with their ids. Raises `StorageError`, and then stores none."""
StepHandler: TypeAlias = Callable[[ModelRequest], Awaitable[ModelResponse]]
StepMiddleware: TypeAlias = Callable[[ModelRequest, StepHandler], Awaitable[ModelResponse]]
TurnHandler: TypeAlias = Callable[[Turn], Awaitable[TurnResult]]
TurnMiddleware: TypeAlias = Callable[[Turn, TurnHandler], Awaitable[TurnResult]]


def compose(
    middleware: Sequence[Callable[[_Given, Callable[[_Given], Awaitable[_Made]]], Awaitable[_Made]]],
    innermost: Callable[[_Given], Awaitable[_Made]],
) -> Callable[[_Given], Awaitable[_Made]]:
    """Return one handler made of several middleware: the first is outermost, the last calls `innermost`."""

    def wrap(
        inner: Callable[[_Given], Awaitable[_Made]],
        outer: Callable[[_Given, Callable[[_Given], Awaitable[_Made]]], Awaitable[_Made]],
    ) -> Callable[[_Given], Awaitable[_Made]]:
        return lambda given: outer(given, inner)

    return reduce(wrap, reversed(middleware), innermost)


class TurnStream:
    """The events of a turn. Iterate over it once; afterwards `result` is the result of the turn."""

    def __init__(self) -> None:
        """Create a stream without a turn; `run` starts one."""
        self._send, self._receive = anyio.create_memory_object_stream[TurnEvent](math.inf)
        self._result: TurnResult | None = None
        self._error: RicordoError | None = None

    def __enter__(self) -> Self:
        """Return the stream."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Discard unread events."""
        self._send.close()
        self._receive.close()

    @property
    def result(self) -> TurnResult:
        """The result of the turn. Raises the turn's error, or `RicordoError` before the turn has ended."""
        if self._error is not None:
            raise self._error
        if self._result is None:
            raise RicordoError("The turn has not ended: iterate over its events first.")
        return self._result

    async def emit(self, event: TurnEvent) -> None:
        """Add an event to the stream."""
        self._send.send_nowait(event)

    async def run(self, turn: Callable[[], Awaitable[TurnResult]]) -> None:
        """Run the turn. A `RicordoError` is stored and raised where the events are read."""
        try:
            self._result = await turn()
        except RicordoError as error:
            self._error = error
        finally:
            self._send.close()

    def __aiter__(self) -> Self:
        """Return the stream as the iterator of its events."""
        return self

    async def __anext__(self) -> TurnEvent:
        """Return the next event. Raises the turn's error after the last event."""
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            return await self._receive.receive()
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration
