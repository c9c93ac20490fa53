"""The stream of a reply that came whole: its text as one piece, then its end."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models.contract import ReplyFinished, Reply, ReplyEvent, TextDelta

__all__ = ["WholeReplies", "reply_events"]


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
