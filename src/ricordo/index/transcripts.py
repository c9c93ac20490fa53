"""Transcripts and evicted results to chunks: each message is one, a long one several on the same line.

What was said, the arguments of tool calls and the results of tools are found; system prompts and thinking are not, nor
is what nobody said: a summary, recalled memory or a notice (see `ricordo.messages.marks`). A line that is no message,
such as one that was torn off, is passed over and hides no other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.guard import Redactor
from ricordo.index.contract import Chunk
from ricordo.index.documents import SearchDocument
from ricordo.index.pieces import split_chunk
from ricordo.messages.codec import decode_message
from ricordo.messages.marks import get_mark
from ricordo.messages.types import Media, Message, Part, Text, ToolCall, ToolResult

__all__ = ["chunk_tool_result", "message_text", "speaker_line", "chunk_transcript"]


def chunk_transcript(
    document: SearchDocument, data: bytes, redactor: Redactor, *, first_line: int = 1, before: str = ""
) -> list[Chunk]:
    """Return the chunks of the messages in `data`, whose first line has the number `first_line`.

    `before` is the message that precedes them, as `speaker_line` gives it.
    """
    spoken = [
        pieces
        for number, message in _parse_messages(data.split(b"\n"), first_line)
        if _is_searchable(message)
        and (pieces := split_chunk(_message_chunk(document, message, number, redactor), one_line=True))
    ]
    chunks: list[Chunk] = []
    for at, pieces in enumerate(spoken):
        earlier = speaker_line(spoken[at - 1][-1]) if at else before
        later = speaker_line(spoken[at + 1][0]) if at + 1 < len(spoken) else ""
        chunks += [replace(piece, before=earlier, after=later) for piece in pieces]
    return chunks


def chunk_tool_result(document: SearchDocument, data: bytes) -> list[Chunk]:
    """Return the pieces of an evicted tool result, each with its lines; none of a picture or other data."""
    if not document.path.endswith(".txt") and b"\0" in data:
        return []
    text = data.decode("utf-8", "replace")
    whole = Chunk(
        path=document.path,
        line_number=1,
        end_line=text.rstrip("\n").count("\n") + 1,
        content=text,
        sort=document.sort,
        session=document.session,
    )
    return split_chunk(whole)


def message_text(message: Message) -> str:
    """Return what a message says and does as text: its words, its tool calls with arguments, its results."""
    return "\n".join(shown for part in message.parts if (shown := _part_text(part)))


def speaker_line(chunk: Chunk) -> str:
    """Return a message as its neighbours know it: who said what."""
    return f"{chunk.speaker}: {chunk.content}"


def _is_searchable(message: Message) -> bool:
    return message.role != "system" and get_mark(message) in {None, "cut"}


def _part_text(part: Part) -> str:
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f"{part.name} {part.arguments}"
        case ToolResult():
            return "\n".join(_part_text(inner) for inner in part.parts)
        case Media():
            return " ".join(filter(None, (part.name, part.description)))
        case _:
            return ""


def _parse_messages(lines: Iterable[bytes], first_line: int) -> Iterator[tuple[int, Message]]:
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        try:
            yield number, decode_message(line)
        except (InvalidMessage, RecursionError):
            continue


def _message_chunk(document: SearchDocument, message: Message, number: int, redactor: Redactor) -> Chunk:
    name = redactor.clean(message.name) if message.name else ""
    return Chunk(
        path=document.path,
        line_number=number,
        end_line=number,
        # what was written before a form of secrets was known may hold one
        content=redactor.clean(message_text(message)),
        sort=document.sort,
        kind="message",
        time=message.time,
        session=document.session,
        message=message.id,
        # what a tool printed is nobody's statement, whatever name it goes by
        speaker="tool" if message.role == "tool" or message.tool_results else name or message.role,
    )
