"""The last resort: a message that is larger than the window keeps its beginning and end, and says where it stands.

Pure. Only texts, results and arguments get shorter, the longest first allowed length at a time, until it fits. The
whole message is in the transcript, where it was before anything here could shorten it.

Invariant: messages, order, ids, calls and results stay, and what is short enough is not touched.
"""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.compaction.config import TruncateArgsConfig
from ricordo.compaction.plan import measured
from ricordo.compaction.summary_message import carried
from ricordo.compaction.truncate import clipped_arguments
from ricordo.guard import cut
from ricordo.messages import Message, Part, Text, ToolCall, ToolResult, mark_of
from ricordo.tokens import safe_boundary

__all__ = ["shortened"]

_LENGTHS = (16_000, 4_000, 1_000)
_CLIPPED = "...(argument truncated)"


def shortened(messages: Sequence[Message], room: int, *, ratio: float, path: str) -> tuple[Message, ...]:
    """Return the messages with texts of at most 16,000, else 4,000, else 1,000 characters, whichever fits `room` first.

    `room` is in tokens; with the shortest texts it may still be exceeded. `path` is where the transcript stands, empty
    when there is none. System messages, what a person pinned, and summaries stay.
    """
    found = tuple(messages)
    for length in _LENGTHS:
        if sum(measured(found, ratio)) <= room:
            break
        found = tuple(_shortened(message, length, path) for message in found)
    return found


def _shortened(message: Message, length: int, path: str) -> Message:
    if carried(message) or mark_of(message) == "summary":
        return message
    where = f"; the whole is in {path}, message {message.id}" if path and message.id else ""
    parts = tuple(_part(part, length, where) for part in message.parts)
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if same else replace(message, parts=parts)


def _part(part: Part, length: int, where: str) -> Part:
    match part:
        case Text():
            return _text(part, length, where)
        case ToolResult():
            inner = tuple(_text(each, length, where) if isinstance(each, Text) else each for each in part.parts)
            same = all(new is old for new, old in zip(inner, part.parts, strict=True))
            return part if same else replace(part, parts=inner)
        case ToolCall():
            config = TruncateArgsConfig(max_arg_length=length, truncation_text=_CLIPPED)
            arguments = clipped_arguments(part.arguments, config)
            return part if arguments is part.arguments else replace(part, arguments=arguments)
        case _:
            return part


def _text(part: Text, length: int, where: str) -> Text:
    if len(part.text) <= length:
        return part
    said = f"\n[... {{left:,}} of {len(part.text):,} characters left out{where} ...]\n"
    ends = max(0, (length - len(said) - len(str(len(part.text)))) // 2)
    head = cut(part.text[: safe_boundary(part.text, ends)], ends)
    start = safe_boundary(part.text, len(part.text) - ends)
    # a boundary may lie before the end that was asked for
    tail = part.text[start:] if len(part.text) - start <= 2 * ends else ""
    left = len(part.text) - len(head) - len(tail)
    return Text(text=f"{head}{said.format(left=left)}{tail}")
