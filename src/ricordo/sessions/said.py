"""What a message says and does, as texts. Pure.

Invariant: what memory wrote into a conversation, and what this room gave out itself, is no text that somebody said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ricordo.errors import InvalidMessage
from ricordo.guard import contains_fence
from ricordo.messages import JsonValue, Media, Message, Text, ToolCall, ToolResult
from ricordo.messages.jsontext import loads
from ricordo.sessions.reading import is_dialogue

__all__ = ["SESSION_FENCE", "SESSION_TOOL_NAMES", "MessageText", "message_texts", "searchable_texts"]

SESSION_FENCE = "past-session"
"""The name of the block in which past sessions are shown to a model."""

SESSION_TOOL_NAMES = frozenset({"session_list", "session_history", "session_search"})
"""The tools that show past sessions: a search finds neither its own words nor what it gave out."""

_MEMORY_FENCES = ("memory", SESSION_FENCE, "record")


@dataclass(frozen=True, kw_only=True)
class MessageText:
    """One text of a message: what was said, the arguments of a call of `tool`, or its result or error."""

    sort: Literal["text", "call", "result", "error"]
    text: str
    tool: str = ""


def message_texts(message: Message) -> tuple[MessageText, ...]:
    """Return the texts of a message in their order, media by their names; thoughts are left out."""
    return tuple(_iter_texts(message))


def searchable_texts(message: Message) -> tuple[MessageText, ...]:
    """Return the texts in which something is looked for; none of what nobody said.

    Arguments stand as they were written and, where that differs, with their escapes read.
    """
    if not is_dialogue(message):
        return ()
    found = []
    for piece in _iter_texts(message):
        if piece.tool in SESSION_TOOL_NAMES or any(contains_fence(piece.text, name) for name in _MEMORY_FENCES):
            continue
        found.append(piece)
        if piece.sort == "call" and "\\" in piece.text:
            found += [MessageText(sort="call", text=text, tool=piece.tool) for text in _iter_strings(piece.text)]
    return tuple(found)


def _iter_texts(message: Message) -> Iterator[MessageText]:
    for part in message.parts:
        match part:
            case Text():
                yield MessageText(sort="text", text=part.text)
            case Media():
                yield MessageText(sort="text", text=_render_media(part))
            case ToolCall():
                yield MessageText(sort="call", text=part.arguments, tool=part.name)
            case ToolResult():
                texts = (each.text if isinstance(each, Text) else _render_media(each) for each in part.parts)
                sort: Literal["error", "result"] = "error" if part.is_error else "result"
                yield MessageText(sort=sort, text="\n".join(texts), tool=part.name or "a tool")
            case _:
                continue


def _render_media(part: object) -> str:
    if not isinstance(part, Media):
        return ""
    return f"[{' '.join(filter(None, (part.media_type, part.name, part.description)))}]"


def _iter_strings(arguments: str) -> Iterator[str]:
    """Yield the keys and texts in the JSON text of arguments; none when it is not JSON."""
    try:
        left: list[JsonValue] = [loads(arguments)]
    except InvalidMessage:
        return
    while left:
        value = left.pop(0)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            left = [*value, *left]
        elif isinstance(value, dict):
            left = [*(each for pair in value.items() for each in pair), *left]
