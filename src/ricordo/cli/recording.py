"""A recorded conversation to be replayed: its turns, and a model, tools and a clock that play them.

The replies and the results of tools are those of the record, and the clock shows its times.

Invariant: each message of the record except system messages is in exactly one turn, in its order.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from ricordo.errors import ReplyInvalid, ToolFailed
from ricordo.lazy import dataclass
from ricordo.messages import (
    JsonValue,
    Message,
    PartPosition,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    pair_calls,
)
from ricordo.messages.tokens import estimate_message
from ricordo.models import Reply
from ricordo.models.wrappers import WholeReplies

if TYPE_CHECKING:
    from ricordo.agent.tools import ToolContext, ToolOutput

__all__ = [
    "RecordedClock",
    "RecordedModel",
    "RecordedTool",
    "RecordedTurn",
    "split_turns",
    "strip_tool_results",
]


@dataclass(kw_only=True)
class RecordedTurn:
    """What was said in one turn, the replies to it in their order, and what the tools answered to each call's id.

    `messages` are all of them as they were recorded. Calls of one id are answered in the order of the calls, by None
    where the record holds no result. `stray_results` are results that no reply of a living turn asked for.
    """

    messages: list[Message] = field(default_factory=list)
    user_messages: list[Message] = field(default_factory=list)
    replies: list[Message] = field(default_factory=list)
    results: defaultdict[str, deque[ToolResult | None]] = field(default_factory=lambda: defaultdict(deque))
    stray_results: list[Message] = field(default_factory=list)

    @property
    def is_exchange(self) -> bool:
        """Whether the turn has a user message and a reply, so that it can be replayed."""
        return bool(self.user_messages and self.replies)


def split_turns(messages: Iterable[Message]) -> list[RecordedTurn]:
    """Cut one session into turns.

    Each begins with what a person said after a reply, or with a reply that nobody asked for after the last one.
    """
    dialogue = [message for message in messages if message.role != "system"]
    turns: list[RecordedTurn] = []
    turn_of: list[RecordedTurn] = []
    for message in dialogue:
        spoken = strip_tool_results(message)
        if not turns or _starts_turn(spoken, turns[-1]):
            turns.append(RecordedTurn())
        turns[-1].messages.append(message)
        turn_of.append(turns[-1])
        if message.role == "assistant":
            turns[-1].replies.append(message)
        elif message.role == "user" and spoken.parts:
            turns[-1].user_messages.append(spoken)
    _assign_results(dialogue, turn_of)
    return turns


def strip_tool_results(message: Message) -> Message:
    """Return the message without the results of tools, which some providers let a user say."""
    if message.role == "assistant":
        return message
    return replace(message, parts=tuple(part for part in message.parts if not isinstance(part, ToolResult)))


def _starts_turn(message: Message, turn: RecordedTurn) -> bool:
    if message.role == "assistant":
        return bool(turn.replies) and not turn.replies[-1].tool_calls
    return message.role == "user" and bool(message.parts) and bool(turn.replies)


def _assign_results(dialogue: Sequence[Message], turn_of: Sequence[RecordedTurn]) -> None:
    """Give each call of an exchange its result; what is left of the results are strays."""
    from ricordo.agent.tool_calls import deduplicate_call_ids

    result_positions: dict[PartPosition, PartPosition] = {}
    for call, result in pair_calls(dialogue).answered:
        result_positions.setdefault(call, result)
    assigned: set[PartPosition] = set()
    for index, (message, turn) in enumerate(zip(dialogue, turn_of, strict=True)):
        if message.role == "assistant" and turn.is_exchange:
            calls = [number for number, part in enumerate(message.parts) if isinstance(part, ToolCall)]
            places = {number: result_positions.get(PartPosition(message=index, part=number)) for number in calls}
            assigned.update(place for place in places.values() if place)
            # a server may give one id twice; the loop then tells the calls apart, and so must the record
            reply, _ = deduplicate_call_ids(message)
            turn.replies = [reply if each is message else each for each in turn.replies]
            for call_, place in zip(reply.tool_calls, _order_results(message, places), strict=True):
                part = dialogue[place.message].parts[place.part] if place else None
                turn.results[call_.id].append(part if isinstance(part, ToolResult) else None)
    for index, (message, turn) in enumerate(zip(dialogue, turn_of, strict=True)):
        stray = [
            part for number, part in _tool_results(message) if PartPosition(message=index, part=number) not in assigned
        ]
        if stray and turn.is_exchange:
            turn.stray_results.append(Message(role="tool", parts=tuple(stray), time=message.time))


def _order_results(message: Message, places: Mapping[int, PartPosition | None]) -> list[PartPosition | None]:
    """Return the places of the results for each call; among calls of one id the first has the first result."""
    waiting: defaultdict[str, list[PartPosition]] = defaultdict(list)
    for call, place in zip(message.tool_calls, places.values(), strict=True):
        waiting[call.id] += [place] if place else []
    queues = {
        call_id: deque(sorted(positions, key=lambda place: (place.message, place.part)))
        for call_id, positions in waiting.items()
    }
    return [queues[call.id].popleft() if queues[call.id] else None for call in message.tool_calls]


def _tool_results(message: Message) -> list[tuple[int, ToolResult]]:
    if message.role == "assistant":
        return []
    return [(number, part) for number, part in enumerate(message.parts) if isinstance(part, ToolResult)]


class RecordedClock:
    """Shows the newest time that was recorded so far, the machine's own before the first."""

    def __init__(self) -> None:
        """Begin without a time."""
        self._time: datetime | None = None

    def advance(self, messages: Sequence[Message]) -> None:
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


class RecordedModel(WholeReplies):
    """A model that gives the recorded replies. `start_turn` sets the turn to replay.

    `largest_tokens` are the estimated tokens of the largest window it was sent.
    """

    def __init__(self, clock: RecordedClock, *, on_window: Callable[[Sequence[Message]], None] | None = None) -> None:
        """Advance `clock` to the time of each reply; `on_window` gets each window that is sent."""
        self.name = "recorded"
        self.window: int | None = None
        self.largest_tokens = 0
        self._clock = clock
        self._on_window = on_window
        self._replies: Iterator[Message] = iter(())

    def start_turn(self, turn: RecordedTurn) -> None:
        """Reply with what was replied in this turn."""
        self._replies = iter(turn.replies)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> Reply:
        """Return the next reply. Raises `ReplyInvalid` when the record of the turn ends without one."""
        del tools, schema
        if self._on_window:
            self._on_window(messages)
        self.largest_tokens = max(self.largest_tokens, await run_sync(_window_tokens, messages))
        message = next(self._replies, None)
        if message is None:
            raise ReplyInvalid("The record ends here: nothing was replied.")
        self._clock.advance([message])
        parts = message.parts or (Text(text=""),)
        return Reply(message=replace(message, parts=parts), stop="tools" if message.tool_calls else "end")


def _window_tokens(messages: Sequence[Message]) -> int:
    return sum(estimate_message(message) for message in messages if message.role != "system")


class RecordedTool:
    """A tool that answers again what it answered."""

    def __init__(self, name: str) -> None:
        """Stand for the tool `name`; `start_turn` hands it the results of a turn."""
        description = f"{name}, as it was recorded"
        self.spec = ToolSpec(name=name, description=description, parameters={"type": "object"})
        self._results: Mapping[str, deque[ToolResult | None]] = {}

    def start_turn(self, turn: RecordedTurn) -> None:
        """Answer the calls of this turn."""
        self._results = turn.results

    async def __call__(self, arguments: Mapping[str, JsonValue], context: "ToolContext") -> "ToolOutput":
        """Return the recorded result of the call. Raises `ToolFailed` for a recorded error or without a result."""
        del arguments
        waiting = self._results.get(context.call_id)
        result = waiting.popleft() if waiting else None
        if result is None:
            raise ToolFailed("The record holds no result of this call.")
        if result.is_error:
            raise ToolFailed(result.text)
        return list(result.parts)
