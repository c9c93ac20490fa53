"""Dedupe: a read that was repeated with the same result becomes a pointer to the latest one.

Reads are the same if tool, arguments and the whole result are equal. If a different result is between two equal ones,
the file may have changed, and both stay.

Invariants: only the parts of results change. The latest read, errors and results without a call never change.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from anyio.lowlevel import checkpoint

from ricordo.context.config import DedupeReadsConfig
from ricordo.context.contract import Act, Reduction, StrategyContext, Window
from ricordo.context.plan import changed_reduction, count_message_tokens, unchanged_reduction
from ricordo.context.tool_results import (
    CLEARED_KEY,
    REPEATED_KEY,
    LocatedResult,
    is_shorter,
    locate_results,
    pointer_records,
    replace_with_pointer,
)
from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Message
from ricordo.messages.json_text import loads

__all__ = ["DedupeReads"]


_PartKey: TypeAlias = tuple[str, int]
_MAX_NAME_CHARS = 60


class DedupeReads:
    """Replaces earlier identical reads with pointers to the latest one. See the module docstring."""

    action: Act = "dedupe"

    def __init__(self, config: DedupeReadsConfig | None = None) -> None:
        """Deduplicate the tools of `config`, by default those that read files and memory."""
        self._config = config or DedupeReadsConfig()

    @classmethod
    def create(cls, config: DedupeReadsConfig, context: StrategyContext) -> "DedupeReads":
        """Return the strategy for a session."""
        del context
        return cls(config)

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with pointers for repeated reads, if that saves enough tokens.

        A forced window gets them however little that saves.
        """
        await checkpoint()
        total = sum(count_message_tokens(window.messages, window.ratio))
        messages = _deduplicate(window.messages, self._config)
        saved = total - sum(count_message_tokens(messages, window.ratio)) if messages else 0
        min_saved = 1 if window.forced else max(1, self._config.min_tokens)
        if not messages or saved < min_saved:
            hindrance = (
                f"pointers would take off {saved} tokens, less than {min_saved}" if saved else "nothing was read again"
            )
            return unchanged_reduction(self.action, window, hindrance, total)
        return changed_reduction(self.action, window, messages, window.forced or "read again")


def _deduplicate(messages: Sequence[Message], config: DedupeReadsConfig) -> list[Message] | None:
    """Return the messages with pointers; None if no read was repeated."""
    deduplicated = list(messages)
    moved: dict[_PartKey, LocatedResult] = {}
    for earlier, latest in _find_repeats(messages, config):
        index, part = earlier.position.message, earlier.position.part
        deduplicated[index] = _set_pointer(deduplicated[index], part, earlier.tool, latest, messages)
        moved[messages[index].id, part] = latest
    if not moved:
        return None
    return [_move_pointers(message, moved, messages) for message in deduplicated]


def _find_repeats(
    messages: Sequence[Message], config: DedupeReadsConfig
) -> Iterator[tuple[LocatedResult, LocatedResult]]:
    """Yield each read that a later one repeats, with the latest read of its run."""
    reads: dict[tuple[str, str], list[LocatedResult]] = defaultdict(list)
    for answer in locate_results(messages):
        if answer.call and answer.call.name in config.tool_names:
            reads[answer.call.name, _normalize_arguments(answer.call.arguments)].append(answer)
    for repeats in reads.values():
        latest: LocatedResult | None = None
        for answer in reversed(repeats):
            message = messages[answer.position.message]
            if answer.position.part in pointer_records(message, REPEATED_KEY):
                continue
            if answer.position.part in pointer_records(message, CLEARED_KEY) or answer.result.is_error:
                latest = None
            elif latest is None or answer.result.parts != latest.result.parts:
                latest = answer
            elif is_shorter(answer.result, _pointer_text(answer.tool, message, messages[latest.position.message])):
                yield answer, latest


def _set_pointer(message: Message, part: int, tool: str, latest: LocatedResult, messages: Sequence[Message]) -> Message:
    target = messages[latest.position.message]
    record: Mapping[str, JsonValue] = {"tool": tool, "same": target.id, "at": latest.position.part}
    return replace_with_pointer(message, part, _pointer_text(tool, message, target), REPEATED_KEY, record)


def _move_pointers(message: Message, moved: Mapping[_PartKey, LocatedResult], messages: Sequence[Message]) -> Message:
    """Return a message whose pointers to reads that became pointers themselves now lead to the latest read."""
    for part, record in pointer_records(message, REPEATED_KEY).items():
        target_id, target_part, tool = record.get("same"), record.get("at"), record.get("tool")
        if (
            isinstance(target_id, str)
            and target_id
            and isinstance(target_part, int)
            and isinstance(tool, str)
            and (target_id, target_part) in moved
        ):
            message = _set_pointer(message, part, tool, moved[target_id, target_part], messages)
    return message


def _pointer_text(tool: str, message: Message, latest: Message) -> str:
    location = f", in message {latest.id}" if latest.id else ""
    pointer = f" `expand` with `m:{message.id}` shows it here." if message.id else ""
    name = " ".join(tool.split())[:_MAX_NAME_CHARS]
    return f"[{name} gave exactly this again later{location}: see there.{pointer}]"


def _normalize_arguments(arguments: str) -> str:
    """Return arguments as canonical JSON; arguments that are not JSON keep their text, with a prefix."""
    try:
        return json.dumps(loads(arguments), sort_keys=True)
    except (InvalidMessage, RecursionError):
        return f"?{arguments}"
