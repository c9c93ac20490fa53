"""The last resort: a message that is larger than the window keeps its beginning and end, and says how to open it.

Pure. Only texts, results and arguments get shorter, the longest first allowed length at a time, until it fits. The
whole message is in the transcript, where it was before anything here could shorten it.

Invariant: messages, order, ids, calls and results stay, and what is short enough is not touched.
"""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.compaction.config import TruncateArgsConfig
from ricordo.compaction.plan import count_message_tokens
from ricordo.compaction.summary_message import is_carried_whole
from ricordo.compaction.truncate import clip_arguments
from ricordo.guard import cut, cut_start
from ricordo.messages import Media, Message, Part, Text, ToolCall, ToolResult, Unknown, get_mark
from ricordo.messages.jsontext import dumps
from ricordo.tokens import safe_boundary

__all__ = ["shorten_messages"]

_TEXT_LENGTHS = (16_000, 4_000, 1_000, 250, 60)
_TRUNCATION_TEXT = "...(argument truncated)"
_MIN_LENGTH_WITH_HANDLE = 250
_CUT_MARK = " [...]"


def shorten_messages(messages: Sequence[Message], room: int, *, ratio: float) -> tuple[Message, ...]:
    """Return the messages with texts of at most 16,000, else 4,000, 1,000, 250 or 60 characters, whichever fits `room`
    first.

    `room` is in tokens; with the shortest texts it may still be exceeded. The texts of one result count together, and
    so do all the arguments of one call. System messages, what a person pinned, and summaries stay.
    """
    found = tuple(messages)
    for length in _TEXT_LENGTHS:
        if sum(count_message_tokens(found, ratio)) <= room:
            break
        found = tuple(_shorten_message(message, length) for message in found)
    return found


def _shorten_message(message: Message, length: int) -> Message:
    if is_carried_whole(message) or get_mark(message) == "summary":
        return message
    named = message.id and length >= _MIN_LENGTH_WITH_HANDLE
    where = f"; `expand` with `m:{message.id}` shows it whole" if named else ""
    parts = tuple(_shorten_part(part, length, where) for part in message.parts)
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if same else replace(message, parts=parts)


def _shorten_part(part: Part, length: int, where: str) -> Part:
    match part:
        case Text():
            return _shorten_text(part, length, where)
        case ToolResult():
            inner = _shorten_contents(part.parts, length, where)
            return part if inner is part.parts else replace(part, parts=inner)
        case ToolCall():
            arguments = _shorten_arguments(part.arguments, length)
            return part if arguments is part.arguments else replace(part, arguments=arguments)
        case _:
            return part


def _shorten_contents(
    parts: tuple[Text | Media | Unknown, ...], length: int, where: str
) -> tuple[Text | Media | Unknown, ...]:
    """Return what a result holds, its texts as one where they are too long together."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if sum(map(len, texts)) <= length:
        return parts
    first = next(at for at, part in enumerate(parts) if isinstance(part, Text))
    joined = _shorten_text(Text(text="\n".join(texts)), length, where)
    # the other texts become empty ones, so that the places of the parts hold
    return tuple(
        (joined if at == first else Text(text="")) if isinstance(part, Text) else part for at, part in enumerate(parts)
    )


def _shorten_arguments(arguments: str, length: int) -> str:
    """Return arguments with their long strings clipped; where they are many short ones, the beginning of all."""
    clipped = clip_arguments(
        arguments,
        TruncateArgsConfig(
            max_arg_length=length,
            kept_chars=min(200, max(0, length - len(_TRUNCATION_TEXT))),
            truncation_text=_TRUNCATION_TEXT,
        ),
    )
    if len(clipped) <= max(2 * length, length + len(_TRUNCATION_TEXT)):
        return clipped
    return dumps({"arguments": f"{cut(clipped, safe_boundary(clipped, length))}{_TRUNCATION_TEXT}"})


def _shorten_text(part: Text, length: int, where: str) -> Text:
    if len(part.text) <= length:
        return part
    said = f"\n[... {{left:,}} of {len(part.text):,} characters left out{where} ...]\n"
    ends = (length - len(said) - len(str(len(part.text)))) // 2
    if length < _MIN_LENGTH_WITH_HANDLE or ends <= 0:
        return Text(text=f"{cut(part.text, max(0, length - len(_CUT_MARK)))}{_CUT_MARK}")
    head = cut(part.text, safe_boundary(part.text, ends))
    start = safe_boundary(part.text, len(part.text) - ends)
    # a boundary may lie before the end that was asked for
    tail = cut_start(part.text, start) if len(part.text) - start <= 2 * ends else ""
    left = len(part.text) - len(head) - len(tail)
    return Text(text=f"{head}{said.format(left=left)}{tail}")
