"""Marks: messages that nobody said. Memory writes into a conversation too, and must not learn from itself.

A mark stands in the metadata under one key, so it survives every codec; it says what the message is: a `summary` of
what was dropped, recalled `memory`, a `notice` of the harness, the beginning of a reply that was `cut` off, or a
`reminder` of where the agent stands, which is made for one request.

A message that a person pinned is carried through every compaction word for word; that is no mark of its kind.

Invariant: what is marked is never extracted, and never searched as if somebody had said it, but for what was `cut`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from ricordo.messages.types import Message

__all__ = ["Mark", "is_pinned", "get_mark", "with_mark", "with_pin", "with_delivered_results", "delivered_results"]

Mark = Literal["summary", "memory", "notice", "cut", "reminder"]
_MARKS: tuple[Mark, ...] = get_args(Mark)
_MARK_KEY = "ricordo"
_PINNED_KEY = "ricordo.pinned"
_DELIVERED_KEY = "ricordo.told"


def with_mark(message: Message, mark: Mark) -> Message:
    """Return `message` with the mark, its other metadata kept."""
    return replace(message, metadata={**message.metadata, _MARK_KEY: mark})


def get_mark(message: Message) -> Mark | None:
    """Return the mark of a message; None when somebody said it."""
    found = message.metadata.get(_MARK_KEY)
    return next((mark for mark in _MARKS if mark == found), None)


def with_pin(message: Message, *, on: bool = True) -> Message:
    """Return `message` as one that a person pinned, or no longer pinned."""
    others = {key: value for key, value in message.metadata.items() if key != _PINNED_KEY}
    return replace(message, metadata={**others, _PINNED_KEY: True} if on else others)


def is_pinned(message: Message) -> bool:
    """Tell whether a person pinned this message."""
    return message.metadata.get(_PINNED_KEY) is True


def with_delivered_results(message: Message, ids: Sequence[str]) -> Message:
    """Return a reply as one to a request that told of these results of background tasks; without `ids` as it is.

    So the telling is durable with the reply, and is made again where there was none.
    """
    return replace(message, metadata={**message.metadata, _DELIVERED_KEY: list(ids)}) if ids else message


def delivered_results(message: Message) -> tuple[str, ...]:
    """Return the results that the request told of which this message answers; empty for nearly all."""
    found = message.metadata.get(_DELIVERED_KEY)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()
