"""Old thoughts: what a model thought in earlier turns goes from the window; the transcript keeps it.

Pure. A thought that goes leaves an empty one in its place, so that the places of the parts hold, and which is not sent.
Invariant: the thoughts since a user last spoke stay, as Claude has to see those of the tools that are at work.
"""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.compaction.stays import can_open_conversation
from ricordo.messages import Message, Part, Thinking, get_mark

__all__ = ["remove_old_thoughts"]


def remove_old_thoughts(messages: Sequence[Message], keep_turns: int) -> tuple[Message, ...]:
    """Return the messages without the thoughts before the newest `keep_turns` turns; a message without any is the same.

    A turn begins where a user says something; 1 is the turn that goes on.
    """
    begun = [at for at, message in enumerate(messages) if can_open_conversation(message) and get_mark(message) is None]
    end = begun[-keep_turns] if len(begun) >= keep_turns else 0
    return (*map(_remove_thoughts, messages[:end]), *messages[end:])


def _remove_thoughts(message: Message) -> Message:
    parts = tuple(map(_empty_thought, message.parts))
    return message if parts == message.parts else replace(message, parts=parts)


def _empty_thought(part: Part) -> Part:
    return Thinking(text="") if isinstance(part, Thinking) else part
