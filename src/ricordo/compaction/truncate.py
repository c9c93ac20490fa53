"""Truncate: clip the long arguments of older tool calls, without a model.

Invariants: the arguments stay JSON of the same shape, and only strings in them get shorter; calls, ids, order,
metadata, times and usage stay. What is clipped once is not clipped again. Arguments that are no JSON stay as they are.
"""

from collections.abc import Sequence
from dataclasses import replace

from anyio.lowlevel import checkpoint

from ricordo.compaction.config import TruncateArgsConfig
from ricordo.compaction.contract import Act, Reduction, Window
from ricordo.compaction.plan import trigger_reason, count_message_tokens, find_tail_start
from ricordo.compaction.reports import changed_reduction, unchanged_reduction
from ricordo.errors import InvalidMessage
from ricordo.guard import cut
from ricordo.messages import JsonValue, Message, Part, ToolCall, find_cut_points
from ricordo.messages.jsontext import dumps, loads
from ricordo.tokens import safe_boundary

__all__ = ["TruncateArgs", "clip_arguments"]


class TruncateArgs:
    """Clips the arguments of the calls before the tail that its configuration keeps."""

    act: Act = "truncate"

    def __init__(self, config: TruncateArgsConfig) -> None:
        """Clip as `config` says."""
        self._config = config

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with clipped arguments, once a threshold is met; forced, whatever the thresholds say."""
        await checkpoint()
        tokens = count_message_tokens(window.messages, window.ratio)
        config = self._config
        total = sum(tokens) + window.overhead
        reason = trigger_reason(window, total, messages=config.trigger_messages, tokens=config.trigger_tokens)
        if not reason:
            return unchanged_reduction(self.act, window, "below the thresholds", sum(tokens))
        keeps_from = _find_tail(window, config, tokens)
        older = [_clip_message(message, config) for message in window.messages[:keeps_from]]
        if all(new is old for new, old in zip(older, window.messages, strict=False)):
            return unchanged_reduction(self.act, window, "no argument is too long", sum(tokens))
        return changed_reduction(self.act, window, (*older, *window.messages[keeps_from:]), reason)


def clip_arguments(arguments: str, config: TruncateArgsConfig) -> str:
    """Return JSON arguments with their too long strings clipped; the same text when there is none or it is no JSON."""
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
