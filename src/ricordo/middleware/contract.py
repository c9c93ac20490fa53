"""Middleware: what surrounds a turn, and each request to the model within it. A callable that is handed the next one.

Values flow in and out and nothing is changed in place: a middleware that shortens the window hands on a request with a
shorter one, and the response says which window was sent, from which the turn goes on.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import Generic, Literal, TypeAlias, TypeVar

from ricordo.messages import Message, ToolCall, ToolResult, ToolSpec, Usage
from ricordo.models import Delta, Reply
from ricordo.scopes import Scope
from ricordo.tools.output import OutputType

__all__ = [
    "TurnEnding",
    "Recorder",
    "ModelRequest",
    "ModelResponse",
    "StepHandler",
    "StepMiddleware",
    "ToolFinished",
    "ToolStarted",
    "Turn",
    "TurnEvent",
    "TurnHandler",
    "TurnListener",
    "TurnMiddleware",
    "TurnResult",
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
