"""Editing: a message of the window that a person takes out, or words otherwise. Pure.

What is changed is the window alone; the transcript keeps what was said, and the change can be undone as a compaction
can. Invariant: a call and its result go together.
"""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.compaction.contract import Reduction, Window
from ricordo.compaction.reports import changed_reduction
from ricordo.errors import MessageNotFound
from ricordo.messages import Message, Part, Text, count_fingerprints, split_groups, with_ids

__all__ = ["edit_message", "remove_message"]


def remove_message(window: Window, message_id: str) -> Reduction:
    """Return `window` without a message; with its calls go their results, and with a result its call.

    Raises: MessageNotFound.
    """
    messages = window.messages
    at = _find_position(messages, message_id)
    going = {at}
    if _is_paired(messages[at]):
        group = next(each for each in split_groups(messages) if each.start <= at < each.stop)
        going = {place for place in range(group.start, group.stop) if _is_paired(messages[place])}
    left = [message for place, message in enumerate(messages) if place not in going]
    gone = [messages[place] for place in sorted(going)]
    return changed_reduction("remove", window, left, "a person removed it", dropped=gone)


def edit_message(window: Window, message_id: str, text: str) -> Reduction:
    """Return `window` with `text` in the place of what a message says; its calls and results stay.

    What is put there is a message of its own. Raises: MessageNotFound.
    """
    messages = window.messages
    at = _find_position(messages, message_id)
    before = messages[at]
    worded = replace(before, id="", parts=_replace_text(before.parts, text))
    (after,) = with_ids([worded], session=window.session, known=count_fingerprints(messages))
    left = (*messages[:at], after, *messages[at + 1 :])
    return changed_reduction("edit", window, left, "a person worded it otherwise", dropped=[before])


def _find_position(messages: Sequence[Message], message_id: str) -> int:
    found = next((at for at, message in enumerate(messages) if message_id and message.id == message_id), None)
    if found is None:
        raise MessageNotFound(f"No message of the window has the id {message_id}.")
    return found


def _is_paired(message: Message) -> bool:
    return bool(message.tool_calls or message.tool_results)


def _replace_text(parts: Sequence[Part], text: str) -> tuple[Part, ...]:
    """Return the parts with `text` in the first text; the other texts become empty ones, so that all places hold."""
    first = next((at for at, part in enumerate(parts) if isinstance(part, Text)), None)
    if first is None:
        return (*parts, Text(text=text))
    return tuple(
        Text(text=text if at == first else "") if isinstance(part, Text) else part for at, part in enumerate(parts)
    )
