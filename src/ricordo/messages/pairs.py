"""Which call belongs to which result, and where a conversation may be cut without parting them.

A result belongs to the nearest call before it with its id that has no result yet, else to the nearest with its id.
A call without a result is pending while the last run of assistant messages contains it, so nothing after it is cut
off; later it is abandoned and binds nothing.

Invariant: at a cut point no call before it has its result, here or still to come, at or after it.
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
    """Where a part stands: the index of its message, and its own index in that."""

    message: int
    part: int


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """The calls and results of a conversation.

    `answered` holds each result with its call, in the order of the results; `orphans` the results without a call before
    them; `abandoned` and `pending` the calls without a result, see the module.
    """

    answered: tuple[tuple[PartPosition, PartPosition], ...] = ()
    orphans: tuple[PartPosition, ...] = ()
    abandoned: tuple[PartPosition, ...] = ()
    pending: tuple[PartPosition, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MessageGroup:
    """Messages that stay together: the indexes from `start` up to, not including, `stop`."""

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
    """Return for how many messages a provider may count `message`: each call and each result may be one, and so may
    what is said or thought beside them. At least 1."""
    beside = [part for part in message.parts if not isinstance(part, ToolCall | ToolResult)]
    others = len(beside) if message.role == "assistant" else min(1, len(beside))
    return max(1, len(message.parts) - len(beside) + others)


def find_cut_points(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return every index where a cut parts no call from its result, ascending.

    A cut at `i` puts `messages[:i]` on one side and `messages[i:]` on the other. 0 is always among them; the number of
    messages is, unless a call is pending.
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

    0 means that nothing can be cut off there: everything up to `wanted` is one group, or `wanted` is not positive. More
    than the number of messages counts as that number.
    """
    return max((point for point in find_cut_points(messages) if point <= wanted), default=0)


def split_groups(messages: Sequence[Message]) -> tuple[MessageGroup, ...]:
    """Split the conversation at every cut point: the smallest groups that must stay together, in order.

    A group with a pending call reaches to the end.
    """
    points = find_cut_points(messages)
    ends = points if points[-1] == len(messages) else (*points, len(messages))
    return tuple(MessageGroup(start=start, stop=stop) for start, stop in pairwise(ends))


def find_orphan_results(messages: Sequence[Message]) -> tuple[PartPosition, ...]:
    """Return where the results stand that no call before them asked for; a model provider refuses those."""
    return pair_calls(messages).orphans


def _calls_and_results(messages: Sequence[Message]) -> Iterator[tuple[PartPosition, ToolCall | ToolResult]]:
    for index, message in enumerate(messages):
        for position, part in enumerate(message.parts):
            if isinstance(part, ToolCall | ToolResult):
                yield PartPosition(message=index, part=position), part


def _find_last_assistant_run(messages: Sequence[Message]) -> int:
    """Return where the last unbroken run of assistant messages starts; 0 when there is none."""
    index = len(messages)
    while index > 0 and messages[index - 1].role != "assistant":
        index -= 1
    while index > 0 and messages[index - 1].role == "assistant":
        index -= 1
    return index
