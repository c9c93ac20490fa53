"""A recorded conversation, to be lived through again: what was said, what the model replied, what the tools answered.

The replies and the results are those of the record; everything around them happens anew: what is sent, what leaves the
window, what is learned. The clock shows the times of the record, so a memory of October is dated in October.

Invariant: each message of the record but the system's is in exactly one turn, in its order.
"""

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo.errors import ReplyInvalid, ToolFailed
from ricordo.messages import JsonValue, Message, Text, ToolResult, ToolSpec
from ricordo.models import Finished, Reply, ReplyEvent, TextDelta
from ricordo.tokens import estimate_message

if TYPE_CHECKING:
    from ricordo.tools import ToolContext, ToolOutput

__all__ = ["RecordedClock", "RecordedModel", "RecordedTool", "RecordedTurn", "recorded_turns"]


@dataclass(kw_only=True)
class RecordedTurn:
    """What was said in one turn, the replies to it in their order, and what the tools answered to each call's id.

    `messages` are all of them as they were recorded.
    """

    messages: list[Message] = field(default_factory=list)
    given: list[Message] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)
    results: defaultdict[str, deque[ToolResult]] = field(default_factory=lambda: defaultdict(deque))


def recorded_turns(messages: Iterable[Message]) -> list[RecordedTurn]:
    """Cut one session into turns: each begins with what a person said after a reply."""
    turns: list[RecordedTurn] = []
    for message in messages:
        if message.role == "system":
            continue
        said = replace(message, parts=tuple(part for part in message.parts if not isinstance(part, ToolResult)))
        begins = message.role == "user" and bool(said.parts)
        if not turns or (begins and turns[-1].replies):
            turns.append(RecordedTurn())
        turns[-1].messages.append(message)
        for result in message.tool_results:
            turns[-1].results[result.call_id].append(result)
        if begins:
            turns[-1].given.append(said)
        elif message.role == "assistant":
            turns[-1].replies.append(message)
    return turns


class RecordedClock:
    """Shows the newest time that was recorded so far, the machine's own before the first."""

    def __init__(self) -> None:
        """Begin without a time."""
        self._time: datetime | None = None

    def show(self, messages: Sequence[Message]) -> None:
        """Go on to the time of the last of these; time never runs backwards."""
        times = [message.time for message in messages if message.time]
        if times:
            self._time = max([*times, *([self._time] if self._time else [])])

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return (self._time or datetime.now(UTC)).astimezone(UTC)

    def today(self) -> date:
        """Return the date where the user lives."""
        return self.now().astimezone().date()


class RecordedModel:
    """A model that says again what was said. `begin` hands it the turn to be lived through.

    `largest` are the estimated tokens of the largest window it was sent.
    """

    def __init__(self, clock: RecordedClock) -> None:
        """Let `clock` show when each reply was given."""
        self.name = "recorded"
        self.window: int | None = None
        self.largest = 0
        self._clock = clock
        self._replies: Iterator[Message] = iter(())

    def begin(self, turn: RecordedTurn) -> None:
        """Reply with what was replied in this turn."""
        self._replies = iter(turn.replies)

    def left(self) -> list[Message]:
        """Return the replies that were not asked for: those after one that called no tool."""
        left = list(self._replies)
        self._clock.show(left)
        return left

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the next reply. Raises `ReplyInvalid` when the record ends with a question."""
        del tools, schema
        self.largest = max(self.largest, await run_sync(_tokens, messages))
        message = next(self._replies, None)
        if message is None:
            raise ReplyInvalid("The record ends here: nothing was replied.")
        self._clock.show([message])
        parts = message.parts or (Text(text=""),)
        return Reply(message=replace(message, parts=parts), stop="tools" if message.tool_calls else "end")

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """Give the next reply, its text as one piece."""
        reply = await self.complete(messages, tools=tools, schema=schema)
        if reply.message.text:
            yield TextDelta(text=reply.message.text)
        yield Finished(reply=reply)


def _tokens(messages: Sequence[Message]) -> int:
    return sum(estimate_message(message) for message in messages if message.role != "system")


class RecordedTool:
    """A tool that answers again what it answered."""

    def __init__(self, name: str) -> None:
        """Stand for the tool `name`; `begin` hands it the results of a turn."""
        description = f"{name}, as it was recorded"
        self.spec = ToolSpec(name=name, description=description, parameters={"type": "object"})
        self._results: Mapping[str, deque[ToolResult]] = {}

    def begin(self, turn: RecordedTurn) -> None:
        """Answer the calls of this turn."""
        self._results = turn.results

    async def __call__(self, arguments: Mapping[str, JsonValue], context: "ToolContext") -> "ToolOutput":
        """Return the recorded result of the call. Raises `ToolFailed` for a recorded error, and where there is none."""
        del arguments
        waiting = self._results.get(context.call_id)
        if not waiting:
            raise ToolFailed("The record holds no result of this call.")
        result = waiting.popleft()
        if result.is_error:
            raise ToolFailed(result.text)
        return list(result.parts)
