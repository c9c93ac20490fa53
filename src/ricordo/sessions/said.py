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
from ricordo.sessions.reading import is_said

__all__ = ["FENCE", "OWN_TOOLS", "Piece", "pieces", "searched"]

FENCE = "past-session"
"""The name of the block in which past sessions are shown to a model."""

OWN_TOOLS = frozenset({"session_list", "session_history", "session_search"})
"""The tools that show past sessions: a search finds neither its own words nor what it gave out."""

_SHOWN = ("memory", FENCE, "record")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One text of a message: what was said, the arguments of a call of `tool`, or its result or error."""

    sort: Literal["text", "call", "result", "error"]
    text: str
    tool: str = ""


def pieces(message: Message) -> tuple[Piece, ...]:
    """Return the texts of a message in their order, media by their names; thoughts are left out."""
    return tuple(_pieces(message))


def searched(message: Message) -> tuple[Piece, ...]:
    """Return the texts in which something is looked for; none of what nobody said.

    Arguments stand as they were written and, where that differs, with their escapes read.
    """
    if not is_said(message):
        return ()
    found = []
    for piece in _pieces(message):
        if piece.tool in OWN_TOOLS or any(contains_fence(piece.text, name) for name in _SHOWN):
            continue
        found.append(piece)
        if piece.sort == "call" and "\\" in piece.text:
            found += [Piece(sort="call", text=text, tool=piece.tool) for text in _strings(piece.text)]
    return tuple(found)


def _pieces(message: Message) -> Iterator[Piece]:
    for part in message.parts:
        match part:
            case Text():
                yield Piece(sort="text", text=part.text)
            case Media():
                yield Piece(sort="text", text=_media(part))
            case ToolCall():
                yield Piece(sort="call", text=part.arguments, tool=part.name)
            case ToolResult():
                texts = (each.text if isinstance(each, Text) else _media(each) for each in part.parts)
                sort: Literal["error", "result"] = "error" if part.is_error else "result"
                yield Piece(sort=sort, text="\n".join(texts), tool=part.name or "a tool")
            case _:
                continue


def _media(part: object) -> str:
    if not isinstance(part, Media):
        return ""
    return f"[{' '.join(filter(None, (part.media_type, part.name, part.description)))}]"


def _strings(arguments: str) -> Iterator[str]:
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
