"""A model around another one: people know it by the name of the one inside, and it has that one's window.

It delegates everything, so one that changes one thing says only that.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models.closing import closing_events
from ricordo.models.contract import ChatModel, Reply, ReplyEvent
from ricordo.models.limits import declared_window, limit_replies, max_messages
from ricordo.models.reached import get_base_url
from ricordo.models.shown import RequestBody, request_body

__all__ = ["ModelWrapper"]


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
