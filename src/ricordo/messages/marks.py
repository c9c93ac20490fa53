"""Marks: messages that nobody said. Memory writes into a conversation too, and must not learn from itself.

A mark stands in the metadata under one key, so it survives every codec; it says what the message is: a `summary` of
what was dropped, recalled `memory`, a `notice` of the harness, or the beginning of a reply that was `cut` off.

Invariant: what is marked is never extracted, and never searched as if somebody had said it, but for what was `cut`.
"""

from dataclasses import replace
from typing import Literal, get_args

from ricordo.messages.types import Message

__all__ = ["Mark", "mark_of", "marked"]

Mark = Literal["summary", "memory", "notice", "cut"]
_KEY = "ricordo"


def marked(message: Message, mark: Mark) -> Message:
    """Return `message` with the mark, its other metadata kept."""
    return replace(message, metadata={**message.metadata, _KEY: mark})


def mark_of(message: Message) -> Mark | None:
    """Return the mark of a message; None when somebody said it."""
    found = message.metadata.get(_KEY)
    return next((mark for mark in get_args(Mark) if mark == found), None)
