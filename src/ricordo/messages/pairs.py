"""Matching tool calls with their results, and the points where a conversation can be cut without separating them.

A result belongs to the nearest earlier call with its id that has no result yet, or else to the nearest earlier call
with its id. A call without a result is pending while it is in the last run of assistant messages, and no cut is made
after it. In an earlier run the call is abandoned and does not limit cuts.

Invariant: no call before a cut point has a result, present or still expected, at or after the cut point.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ricordo.messages.types import Message, ToolCall, ToolResult

__all__ = [
    "MessageGroup",
    "Pairing",
    "PartPosition",
    "count_provider_items",
    "find_cut_points",
    "find_orphan_results",
    "find_safe_cut",
    "pair_calls",
    "split_groups",
]


@dataclass(frozen=True, kw_only=True, order=True)
class PartPosition:
    """The position of a part: the index of its message, and the index of the part in that message."""

    message: int
    part: int


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """The calls and results of a conversation.

    `answered` holds pairs of call and result, in the order of the results. `orphans` are results without an earlier
    call. `abandoned` and `pending` are calls without a result, as defined in the module docstring.
    """

    answered: tuple[tuple[PartPosition, PartPosition], ...] = ()
    orphans: tuple[PartPosition, ...] = ()
    abandoned: tuple[PartPosition, ...] = ()
    pending: tuple[PartPosition, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MessageGroup:
    """Messages that must stay together: the indexes from `start` up to, but not including, `stop`."""

    start: int
    stop: int


def pair_calls(messages: Sequence[Message]) -> Pairing:
    """Match every result to its call."""
    unanswered: dict[str, list[PartPosition]] = {}
    latest: dict[str, PartPosition] = {}
    answered: list[tuple[PartPosition, PartPosition]] = []
    without_call: list[PartPosition] = []
    for place, part in _calls_and_results(messages):
        if isinstance(part, ToolCall):
            unanswered.setdefault(part.id, []).append(place)
            latest[part.id] = place
        elif part.call_id not in latest:
            without_call.append(place)
        else:
            waiting = unanswered.get(part.call_id)
            answered.append((waiting.pop() if waiting else latest[part.call_id], place))
    left = sorted(place for places in unanswered.values() for place in places)
    live = _find_last_assistant_run(messages)
    return Pairing(
        answered=tuple(answered),
        orphans=tuple(without_call),
        abandoned=tuple(place for place in left if place.message < live),
        pending=tuple(place for place in left if place.message >= live),
    )


def count_provider_items(message: Message) -> int:
    """Return how many messages a provider may count for `message`, at least 1.

    Each call and each result may count as one message, and so may the other parts.
    """
    beside = [part for part in message.parts if not isinstance(part, ToolCall | ToolResult)]
    others = len(beside) if message.role == "assistant" else min(1, len(beside))
    return max(1, len(message.parts) - len(beside) + others)


def find_cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return every index where a cut separates no call from its result, ascending.

    A cut at `i` separates `messages[:i]` from `messages[i:]`. 0 is always included. The number of messages is included
    unless a call is pending.
    """
    reach = list(range(len(messages)))
    pairing = pair_calls(messages)
    for call, result in pairing.answered:
        reach[call.message] = max(reach[call.message], result.message)
    for place in pairing.pending:
        reach[place.message] = len(messages)
    points = [0]
    furthest = -1
    for index, end in enumerate(reach):
        furthest = max(furthest, end)
        if furthest == index:
            points.append(index + 1)
    return tuple(points)


def find_safe_cut(messages: Sequence[Message], wanted: int) -> int:
    """Return the greatest cut point that is at most `wanted`.

    0 means that nothing can be cut off: everything up to `wanted` is one group, or `wanted` is not positive. A value
    above the number of messages counts as that number.
    """
    return max((point for point in find_cut_points(messages) if point <= wanted), default=0)


def split_groups(messages: Sequence[Message]) -> tuple[MessageGroup, ...]:
    """Split the conversation at every cut point into the smallest groups that must stay together, in order.

    A group with a pending call extends to the end.
    """
    points = find_cut_points(messages)
    ends = points if points[-1] == len(messages) else (*points, len(messages))
    return tuple(MessageGroup(start=start, stop=stop) for start, stop in pairwise(ends))


def find_orphan_results(messages: Sequence[Message]) -> tuple[PartPosition, ...]:
    """Return the positions of results without an earlier call; model providers refuse such results."""
    return pair_calls(messages).orphans


def _calls_and_results(messages: Sequence[Message]) -> Iterator[tuple[PartPosition, ToolCall | ToolResult]]:
    for index, message in enumerate(messages):
        for position, part in enumerate(message.parts):
            if isinstance(part, ToolCall | ToolResult):
                yield PartPosition(message=index, part=position), part


def _find_last_assistant_run(messages: Sequence[Message]) -> int:
    """Return the index where the last unbroken run of assistant messages starts; 0 when there is none."""
    index = len(messages)
    while index > 0 and messages[index - 1].role != "assistant":
        index -= 1
    while index > 0 and messages[index - 1].role == "assistant":
        index -= 1
    return index
