"""What dropping never takes, and what goes together.

Pure. What stays: system messages and summaries, what a person pinned, and whatever the caller names. Invariant: calls
and results are parted nowhere; where a part of such a group stays, all of it does.
"""

from collections.abc import Collection, Sequence

from ricordo.messages import Media, Message, split_groups, is_pinned, get_mark

__all__ = ["find_droppable", "find_newest_request", "can_open_conversation"]


def find_droppable(messages: Sequence[Message], stop: int, keep: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """Return the indexes that may go before the cut point `stop`, group by group, oldest first.

    `keep` are indexes of further messages that stay.
    """
    staying = {at for at, message in enumerate(messages[:stop]) if _is_protected(message)} | set(keep)
    found = []
    for group in split_groups(messages):
        if group.stop > stop:
            break
        inside = range(group.start, group.stop)
        bound = any(at in staying and (messages[at].tool_calls or messages[at].tool_results) for at in inside)
        going = () if bound else tuple(at for at in inside if at not in staying)
        if going:
            found.append(going)
    return tuple(found)


def find_newest_request(messages: Sequence[Message]) -> int | None:
    """Return where the newest message stands in which a user asks something; None when there is none."""
    asked = (at for at in range(len(messages) - 1, -1, -1) if _is_request(messages[at]))
    return next(asked, None)


def can_open_conversation(message: Message) -> bool:
    """Tell whether a conversation can begin with this message by every provider's rules: a user says something."""
    return message.role == "user" and bool(message.text.strip()) and not message.tool_results


def _is_request(message: Message) -> bool:
    said = bool(message.text.strip()) or any(isinstance(part, Media) for part in message.parts)
    return message.role == "user" and get_mark(message) is None and said


def _is_protected(message: Message) -> bool:
    return message.role == "system" or is_pinned(message) or get_mark(message) == "summary"
