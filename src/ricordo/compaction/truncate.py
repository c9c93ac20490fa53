"""Truncate: clip the long arguments of older tool calls, without a model.

Invariants: the arguments stay JSON of the same shape, and only strings in them get shorter; calls, ids, order,
metadata, times and usage stay. What is clipped once is not clipped again. Arguments that are no JSON stay as they are.
"""

from collections.abc import Sequence
from dataclasses import replace

from anyio.lowlevel import checkpoint

from ricordo.compaction.config import TruncateArgsConfig
from ricordo.compaction.contract import Act, Reduction, Report, Window
from ricordo.compaction.plan import measured, tail_start
from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Message, Part, ToolCall, cut_points
from ricordo.messages.jsontext import dumps, loads
from ricordo.tokens import safe_boundary

__all__ = ["Truncate", "clipped_arguments"]


class Truncate:
    """Clips the arguments of the calls before the tail that its configuration keeps."""

    act: Act = "truncate"

    def __init__(self, config: TruncateArgsConfig) -> None:
        """Clip as `config` says."""
        self._config = config

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with clipped arguments, once a threshold is met; forced, whatever the thresholds say."""
        await checkpoint()
        tokens = measured(window.messages, window.ratio)
        reason = _cause(window, self._config, sum(tokens) + window.overhead)
        keeps_from = _kept_from(window, self._config, tokens) if reason else 0
        messages = (
            *(_clipped(message, self._config) for message in window.messages[:keeps_from]),
            *window.messages[keeps_from:],
        )
        changed = any(new is not old for new, old in zip(messages, window.messages, strict=True))
        report = Report(
            act="truncate",
            status="done" if changed else "skipped",
            reason=(reason if changed else "no argument is too long") if reason else "below the thresholds",
            messages_before=len(messages),
            messages_after=len(messages),
            tokens_before=sum(tokens),
            tokens_after=sum(measured(messages, window.ratio)) if changed else sum(tokens),
        )
        return Reduction(messages=messages if changed else window.messages, report=report)


def clipped_arguments(arguments: str, config: TruncateArgsConfig) -> str:
    """Return JSON arguments with their too long strings clipped; the same text when there is none or it is no JSON."""
    if len(arguments) <= config.max_arg_length:
        return arguments
    try:
        value = loads(arguments)
        clipped = _clipped_value(value, config)
        return arguments if clipped == value else dumps(clipped)
    except (InvalidMessage, RecursionError):
        return arguments


def _cause(window: Window, config: TruncateArgsConfig, total: int) -> str:
    if window.forced:
        return window.forced
    if config.trigger_messages and len(window.messages) >= config.trigger_messages:
        return f"{len(window.messages)} messages"
    return f"{total} tokens" if config.trigger_tokens and total >= config.trigger_tokens else ""


def _kept_from(window: Window, config: TruncateArgsConfig, tokens: Sequence[int]) -> int:
    if config.keep_tokens:
        return tail_start(cut_points(window.messages), tokens, config.keep_tokens)
    return max(0, len(tokens) - config.keep_messages)


def _clipped(message: Message, config: TruncateArgsConfig) -> Message:
    parts = tuple(_clipped_part(part, config) for part in message.parts)
    return (
        message
        if all(new is old for new, old in zip(parts, message.parts, strict=True))
        else replace(message, parts=parts)
    )


def _clipped_part(part: Part, config: TruncateArgsConfig) -> Part:
    if not isinstance(part, ToolCall):
        return part
    arguments = clipped_arguments(part.arguments, config)
    return part if arguments is part.arguments else replace(part, arguments=arguments)


def _clipped_value(value: JsonValue, config: TruncateArgsConfig) -> JsonValue:
    if isinstance(value, str) and len(value) > config.max_arg_length:
        return value[: safe_boundary(value, config.kept_chars)] + config.truncation_text
    if isinstance(value, list):
        return [_clipped_value(item, config) for item in value]
    if isinstance(value, dict):
        return {key: _clipped_value(item, config) for key, item in value.items()}
    return value
