"""Clear: removes old thinking, then replaces old tool results with short pointers to the transcript.

Invariants: only thinking and the parts of results change; ids, order, calls, names, times and usage stay. Errors,
results that the assistant has not answered yet, and results shorter than their pointer stay. Thinking since the last
user message stays, because Claude needs it while tools run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from anyio.lowlevel import checkpoint

from ricordo.context.config import ClearResultsConfig
from ricordo.context.contract import Act, Reduction, StrategyContext, Window
from ricordo.context.plan import (
    can_open_conversation,
    changed_reduction,
    count_message_tokens,
    trigger_reason,
    unchanged_reduction,
)
from ricordo.context.tool_results import (
    CLEARED_KEY,
    REPEATED_KEY,
    LocatedResult,
    evicted_paths,
    is_shorter,
    locate_results,
    pointer_records,
    replace_with_pointer,
)
from ricordo.messages import Media, Message, Part, Text, Thinking, ToolResult, Unknown, get_mark

__all__ = ["ClearResults", "remove_old_thoughts"]


def remove_old_thoughts(messages: Sequence[Message], keep_turns: int) -> tuple[Message, ...]:
    """Return the messages without the thinking before the newest `keep_turns` turns; other messages are unchanged.

    A turn begins at a user message; the current turn counts as the first.
    """
    turn_starts = [
        at for at, message in enumerate(messages) if can_open_conversation(message) and get_mark(message) is None
    ]
    end = turn_starts[-keep_turns] if len(turn_starts) >= keep_turns else 0
    return (*map(_remove_thoughts, messages[:end]), *messages[end:])


def _remove_thoughts(message: Message) -> Message:
    parts = tuple(map(_empty_thought, message.parts))
    return message if parts == message.parts else replace(message, parts=parts)


def _empty_thought(part: Part) -> Part:
    return Thinking(text="") if isinstance(part, Thinking) else part


_MAX_NAME_CHARS = 60
_MAX_NAMED_MEDIA = 3


class ClearResults:
    """Clears old thinking and old tool results. See the module docstring."""

    action: Act = "clear"

    def __init__(self, config: ClearResultsConfig | None = None) -> None:
        """Clear by `config`, by default all but the newest five results."""
        self._config = config or ClearResultsConfig()

    @classmethod
    def create(cls, config: ClearResultsConfig, context: StrategyContext) -> "ClearResults":
        """Return the strategy for a session."""
        del context
        return cls(config)

    async def reduce(self, window: Window) -> Reduction:
        """Return the window without old thinking, if a threshold is met and that saves enough tokens.

        If it does not save enough, old results are cleared too. A forced window loses both, regardless of the
        thresholds and of the number of saved tokens.
        """
        await checkpoint()
        tokens = count_message_tokens(window.messages, window.ratio)
        config = self._config
        total = sum(tokens) + window.overhead
        reason = trigger_reason(window, total, messages=config.trigger_messages, tokens=config.trigger_tokens)
        if not reason:
            return unchanged_reduction(self.action, window, "below the thresholds", sum(tokens))
        messages = list(remove_old_thoughts(window.messages, config.keep_thinking))
        min_saved = 1 if window.forced else max(1, config.min_tokens)
        remaining_tokens = total - sum(tokens) + sum(count_message_tokens(messages, window.ratio))
        is_due = trigger_reason(
            window, remaining_tokens, messages=config.trigger_messages, tokens=config.trigger_tokens
        )
        if is_due or total - remaining_tokens < min_saved:
            for index, message in _clear_results(window.messages, config):
                messages[index] = message
        saved = sum(tokens) - sum(count_message_tokens(messages, window.ratio))
        if saved < min_saved:
            hindrance = (
                f"clearing would take off {saved} tokens, less than {min_saved}" if saved else "nothing is to clear"
            )
            return unchanged_reduction(self.action, window, hindrance, sum(tokens))
        return changed_reduction(self.action, window, messages, reason)


def _clear_results(messages: Sequence[Message], config: ClearResultsConfig) -> Iterator[tuple[int, Message]]:
    """Yield the index of each message with clearable results, and the message without them."""
    last_reply = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=-1)
    clearable = [
        (answer, handle)
        for answer in locate_results(messages)
        if _is_clearable(answer, messages[answer.position.message], config)
        and is_shorter(answer.result, handle := _pointer_text(answer, messages[answer.position.message]))
    ]
    cleared: dict[int, Message] = {}
    for answer, handle in clearable[: max(0, len(clearable) - config.keep_results)]:
        index = answer.position.message
        if index < last_reply:
            cleared[index] = replace_with_pointer(
                cleared.get(index, messages[index]), answer.position.part, handle, CLEARED_KEY, {}
            )
    yield from cleared.items()


def _is_clearable(answer: LocatedResult, message: Message, config: ClearResultsConfig) -> bool:
    """Return whether a result may be cleared. A result of an unknown tool stays, because its tool may be excluded."""
    excluded = not answer.tool or any(fnmatchcase(answer.tool, pattern) for pattern in config.excluded_tool_names)
    is_replaced = answer.position.part in pointer_records(
        message, CLEARED_KEY
    ) or answer.position.part in pointer_records(message, REPEATED_KEY)
    return not (excluded or is_replaced or answer.result.is_error)


def _pointer_text(answer: LocatedResult, message: Message) -> str:
    files = evicted_paths(message, answer.position.part)
    note = "; ".join(
        filter(None, ("" if files else _describe_size(answer.result.text), *_describe_media(answer.result)))
    )
    place = f" It is kept in {' and '.join(files)}." if files else ""
    hint = (
        f"`expand` with `m:{message.id}` shows it whole."
        if message.id
        else "`expand` can't show it: its message has no id."
    )
    return f"[An earlier result of {_clip_name(answer.tool)}{f' ({note})' if note else ''} was cleared.{place} {hint}]"


def _describe_size(text: str) -> str:
    if not text:
        return ""
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"{len(text):,} characters, {lines:,} {'line' if lines == 1 else 'lines'}"


def _describe_media(result: ToolResult) -> Iterator[str]:
    """Yield descriptions of non-text parts, such as `image/png chart.png`."""
    others = [part for part in result.parts if not isinstance(part, Text)]
    for part in others[:_MAX_NAMED_MEDIA]:
        yield _clip_name(" ".join(filter(None, _describe_part(part))))
    if len(others) > _MAX_NAMED_MEDIA:
        yield f"{len(others) - _MAX_NAMED_MEDIA} more media"


def _describe_part(part: Media | Text | Unknown) -> tuple[str, str]:
    match part:
        case Media():
            return part.media_type or "a medium", part.name or ""
        case Unknown():
            return part.kind, ""
        case Text():
            return "", ""


def _clip_name(name: str) -> str:
    return " ".join(name.split())[:_MAX_NAME_CHARS]
