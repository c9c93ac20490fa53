"""Truncate: shortens long arguments of older tool calls and, as a last resort, the middle of long messages.

Invariants: truncated arguments stay JSON of the same shape, and are not truncated again. Messages, order, ids, calls
and results stay. The transcript holds the whole message before anything here shortens it.
"""

from collections.abc import Sequence
from dataclasses import replace

from anyio.lowlevel import checkpoint

from ricordo.context.config import TruncateArgsConfig
from ricordo.context.contract import Act, Reduction, StrategyContext, Window
from ricordo.context.plan import (
    changed_reduction,
    count_message_tokens,
    find_tail_start,
    trigger_reason,
    unchanged_reduction,
)
from ricordo.context.summary_message import is_carried_whole
from ricordo.errors import InvalidMessage
from ricordo.guard import cut, cut_start
from ricordo.messages import (
    JsonValue,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    find_cut_points,
    get_mark,
)
from ricordo.messages.json_text import dumps, loads
from ricordo.messages.tokens import safe_boundary

__all__ = ["TruncateArgs", "clip_arguments", "shorten_messages"]


class TruncateArgs:
    """Truncates the arguments of the calls before the tail that the configuration keeps."""

    action: Act = "truncate"

    def __init__(self, config: TruncateArgsConfig) -> None:
        """Truncate by `config`."""
        self._config = config

    @classmethod
    def create(cls, config: TruncateArgsConfig, context: StrategyContext) -> "TruncateArgs":
        """Return the strategy for a session."""
        del context
        return cls(config)

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with truncated arguments if a threshold is met or the window is forced."""
        await checkpoint()
        tokens = count_message_tokens(window.messages, window.ratio)
        config = self._config
        total = sum(tokens) + window.overhead
        reason = trigger_reason(window, total, messages=config.trigger_messages, tokens=config.trigger_tokens)
        if not reason:
            return unchanged_reduction(self.action, window, "below the thresholds", sum(tokens))
        tail_start = _find_tail(window, config, tokens)
        older = [_clip_message(message, config) for message in window.messages[:tail_start]]
        if all(new is old for new, old in zip(older, window.messages, strict=False)):
            return unchanged_reduction(self.action, window, "no argument is too long", sum(tokens))
        return changed_reduction(self.action, window, (*older, *window.messages[tail_start:]), reason)


def clip_arguments(arguments: str, config: TruncateArgsConfig) -> str:
    """Return JSON arguments with long strings truncated; the same text if there are none or it is not JSON."""
    if len(arguments) <= config.max_arg_length:
        return arguments
    try:
        value = loads(arguments)
        clipped = _clip_value(value, config)
        return arguments if clipped == value else dumps(clipped)
    except (InvalidMessage, RecursionError):
        return arguments


def _find_tail(window: Window, config: TruncateArgsConfig, tokens: Sequence[int]) -> int:
    if config.keep_tokens:
        return find_tail_start(find_cut_points(window.messages), tokens, config.keep_tokens)
    return max(0, len(tokens) - config.keep_messages)


def _clip_message(message: Message, config: TruncateArgsConfig) -> Message:
    parts = tuple(_clip_part(part, config) for part in message.parts)
    return (
        message
        if all(new is old for new, old in zip(parts, message.parts, strict=True))
        else replace(message, parts=parts)
    )


def _clip_part(part: Part, config: TruncateArgsConfig) -> Part:
    if not isinstance(part, ToolCall):
        return part
    arguments = clip_arguments(part.arguments, config)
    return part if arguments is part.arguments else replace(part, arguments=arguments)


def _clip_value(value: JsonValue, config: TruncateArgsConfig) -> JsonValue:
    if isinstance(value, str) and len(value) > config.max_arg_length:
        return cut(value, safe_boundary(value, config.kept_chars)) + config.truncation_text
    if isinstance(value, list):
        return [_clip_value(item, config) for item in value]
    if isinstance(value, dict):
        return {key: _clip_value(item, config) for key, item in value.items()}
    return value


_TEXT_LENGTHS = (16_000, 4_000, 1_000, 250, 60)
_TRUNCATION_TEXT = "...(argument truncated)"
_MIN_LENGTH_WITH_HANDLE = 250
_CUT_MARK = " [...]"


def shorten_messages(messages: Sequence[Message], max_tokens: int, *, ratio: float) -> tuple[Message, ...]:
    """Return the messages with texts cut to the first length that fits `max_tokens`.

    The lengths are 16,000, 4,000, 1,000, 250 and 60 characters. `max_tokens` is in tokens; even the shortest texts may
    exceed it. The texts of one result count together, and so do all arguments of one call. System messages, pinned
    messages and summaries stay.
    """
    shortened = tuple(messages)
    for length in _TEXT_LENGTHS:
        if sum(count_message_tokens(shortened, ratio)) <= max_tokens:
            break
        shortened = tuple(_shorten_message(message, length) for message in shortened)
    return shortened


def _shorten_message(message: Message, length: int) -> Message:
    if is_carried_whole(message) or get_mark(message) == "summary":
        return message
    has_handle = message.id and length >= _MIN_LENGTH_WITH_HANDLE
    pointer = f"; `expand` with `m:{message.id}` shows it whole" if has_handle else ""
    parts = tuple(_shorten_part(part, length, pointer) for part in message.parts)
    is_unchanged = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if is_unchanged else replace(message, parts=parts)


def _shorten_part(part: Part, length: int, pointer: str) -> Part:
    match part:
        case Text():
            return _shorten_text(part, length, pointer)
        case ToolResult():
            contents = _shorten_contents(part.parts, length, pointer)
            return part if contents is part.parts else replace(part, parts=contents)
        case ToolCall():
            arguments = _shorten_arguments(part.arguments, length)
            return part if arguments is part.arguments else replace(part, arguments=arguments)
        case _:
            return part


def _shorten_contents(
    parts: tuple[Text | Media | Unknown, ...], length: int, pointer: str
) -> tuple[Text | Media | Unknown, ...]:
    """Return the parts of a result, with its texts joined into one if they are too long together."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    if sum(map(len, texts)) <= length:
        return parts
    first = next(at for at, part in enumerate(parts) if isinstance(part, Text))
    joined = _shorten_text(Text(text="\n".join(texts)), length, pointer)
    # The other texts become empty, so that the indexes of the parts stay valid.
    return tuple(
        (joined if at == first else Text(text="")) if isinstance(part, Text) else part for at, part in enumerate(parts)
    )


def _shorten_arguments(arguments: str, length: int) -> str:
    """Return arguments with long strings truncated; if there are many short strings, only the beginning of all."""
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


def _shorten_text(part: Text, length: int, pointer: str) -> Text:
    if len(part.text) <= length:
        return part
    notice = f"\n[... {{left:,}} of {len(part.text):,} characters left out{pointer} ...]\n"
    end_length = (length - len(notice) - len(str(len(part.text)))) // 2
    if length < _MIN_LENGTH_WITH_HANDLE or end_length <= 0:
        return Text(text=f"{cut(part.text, max(0, length - len(_CUT_MARK)))}{_CUT_MARK}")
    head = cut(part.text, safe_boundary(part.text, end_length))
    start = safe_boundary(part.text, len(part.text) - end_length)
    # A boundary may be before the requested end.
    tail = cut_start(part.text, start) if len(part.text) - start <= 2 * end_length else ""
    omitted = len(part.text) - len(head) - len(tail)
    return Text(text=f"{head}{notice.format(left=omitted)}{tail}")
