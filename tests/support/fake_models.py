"""A model that plays what a test tells it, and tools made of functions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import anyio
import anyio.lowlevel

from ricordo.agent import ToolContext, ToolOutput
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolSpec, Usage
from ricordo.models import Delta, Reply, ReplyEvent, ReplyFinished, StopReason, TextDelta

__all__ = ["FakeModel", "FunctionTool", "Hanging", "call", "calling", "reply", "say"]


@dataclass(frozen=True, kw_only=True)
class Hanging:
    """The model says `pieces` and then waits for ever; `reached` is set when it does."""

    pieces: tuple[Delta, ...] = ()
    reached: anyio.Event = field(default_factory=anyio.Event)


Item = Reply | BaseException | Hanging | tuple[Sequence[Delta], Reply | BaseException]


class FakeModel:
    """Plays items, one for each request: a reply, an error, a wait, or pieces and then a reply or an error."""

    def __init__(self, *items: Item, window: int | None = None) -> None:
        """Play `items`; a request after the last one fails the test."""
        self.name = "fake"
        self.window = window
        self.asked: list[tuple[Message, ...]] = []
        self.told: list[tuple[ToolSpec, ...]] = []
        self._items = list(items)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the reply of the next item."""
        events = [event async for event in self.stream(messages, tools=tools, schema=schema)]
        assert isinstance(events[-1], ReplyFinished)
        return events[-1].reply

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the next item."""
        self.asked.append(tuple(messages))
        self.told.append(tuple(tools))
        item = self._items.pop(0)
        await anyio.lowlevel.checkpoint()
        pieces, end = item if isinstance(item, tuple) else ((), item)
        if isinstance(end, Hanging):
            for piece in end.pieces:
                yield piece
            end.reached.set()
            await anyio.sleep_forever()
        for piece in pieces:
            yield piece
        if isinstance(end, BaseException):
            raise end
        assert isinstance(end, Reply)
        if not pieces and end.message.text:
            yield TextDelta(text=end.message.text)
        yield ReplyFinished(reply=end)


class FunctionTool:
    """A tool that does what `act` does, with any JSON object as arguments."""

    def __init__(self, name: str, act: Callable[[Mapping[str, JsonValue], ToolContext], Awaitable[ToolOutput]]) -> None:
        """Call `act` under `name`."""
        self.spec = ToolSpec(
            name=name, description=f"Do {name}.", parameters={"type": "object", "properties": {"path": {}, "line": {}}}
        )
        self._act = act

    async def __call__(self, arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutput:
        """Do it."""
        return await self._act(arguments, context)


def call(name: str, arguments: str = "{}", *, id: str = "") -> ToolCall:  # noqa: A002  (the field's name)
    return ToolCall(id=id or f"id-{name}", name=name, arguments=arguments)


def calling(*calls: ToolCall, text: str = "", stop: StopReason = "tools", usage: Usage | None = None) -> Reply:
    parts = (*((Text(text=text),) if text else ()), *calls)
    return Reply(message=Message(role="assistant", parts=parts), stop=stop, usage=usage or Usage(), cost=Decimal(1))


def reply(text: str, *, stop: StopReason = "end", usage: Usage | None = None, cost: Decimal | None = None) -> Reply:
    message = Message(role="assistant", parts=(Text(text=text),))
    return Reply(message=message, stop=stop, usage=usage or Usage(), cost=cost)


def say(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))
