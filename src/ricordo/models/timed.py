"""A model that answers in time or fails: a hang, or a stream that stops half-way, never holds up a turn for good.

Invariant: no timeout is active while the caller has the control, so a slow reader of a stream is never at fault.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

import anyio

from ricordo.errors import InvalidSetting, ModelTimeout
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.models.around import ModelWrapper
from ricordo.models.closing import closing_events
from ricordo.models.contract import Reply, ReplyEvent

__all__ = ["TimedModel"]


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
