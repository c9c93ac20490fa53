"""Dedupe: a read that was made again with the same answer becomes a pointer to the latest one.

Reads are the same when the tool, its arguments and all of the answer are; another range of a file is another read. The
latest of an unbroken run of them stays whole. Where another answer, or one that is no longer there, stands between two
equal ones, the file changed meanwhile, or may have, and both stay.

Invariants: only the parts of results change; ids, order, calls, names, times and usage stay. What is a pointer is known
by the metadata. The latest read is never touched, nor an error, nor a result that nobody asked for.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from anyio.lowlevel import checkpoint

from ricordo.compaction.config import DedupeReadsConfig
from ricordo.compaction.contract import Act, Reduction, Window
from ricordo.compaction.plan import measured
from ricordo.compaction.reports import changed, unchanged
from ricordo.compaction.results import CLEARED, REPEATED, Answer, answers, records, shorter, with_pointer
from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Message
from ricordo.messages.jsontext import loads

__all__ = ["DedupeReads"]

_Spot: TypeAlias = tuple[str, int]
_LONGEST_NAME = 60


class DedupeReads:
    """Lets earlier reads point to the latest one; see the module."""

    act: Act = "dedupe"

    def __init__(self, config: DedupeReadsConfig | None = None) -> None:
        """Look at the tools that `config` names, by default those that read files and memory."""
        self._config = config or DedupeReadsConfig()

    async def reduce(self, window: Window) -> Reduction:
        """Return the window with pointers for what was read again, when that takes off enough.

        A forced one gets them however little that takes off.
        """
        await checkpoint()
        total = sum(measured(window.messages, window.ratio))
        messages = _deduped(window.messages, self._config)
        gained = total - sum(measured(messages, window.ratio)) if messages else 0
        least = 1 if window.forced else max(1, self._config.min_tokens)
        if not messages or gained < least:
            told = f"pointers would take off {gained} tokens, less than {least}" if gained else "nothing was read again"
            return unchanged(self.act, window, told, total)
        return changed(self.act, window, messages, window.forced or "read again")


def _deduped(messages: Sequence[Message], config: DedupeReadsConfig) -> list[Message] | None:
    """Return the messages with pointers; None when nothing was read again."""
    found = list(messages)
    moved: dict[_Spot, Answer] = {}
    for earlier, latest in _repeats(messages, config):
        at, part = earlier.place.message, earlier.place.part
        found[at] = _pointing(found[at], part, earlier.tool, latest, messages)
        moved[messages[at].id, part] = latest
    if not moved:
        return None
    return [_moved(message, moved, messages) for message in found]


def _repeats(messages: Sequence[Message], config: DedupeReadsConfig) -> Iterator[tuple[Answer, Answer]]:
    """Yield each read that a later one repeats, with the latest of its run."""
    reads: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for answer in answers(messages):
        if answer.call and answer.call.name in config.tool_names:
            reads[answer.call.name, _normal(answer.call.arguments)].append(answer)
    for same in reads.values():
        latest: Answer | None = None
        for answer in reversed(same):
            message = messages[answer.place.message]
            if answer.place.part in records(message, REPEATED):
                continue
            if answer.place.part in records(message, CLEARED) or answer.result.is_error:
                latest = None
            elif latest is None or answer.result.parts != latest.result.parts:
                latest = answer
            elif shorter(answer.result, _text(answer.tool, message, messages[latest.place.message])):
                yield answer, latest


def _pointing(message: Message, part: int, tool: str, latest: Answer, messages: Sequence[Message]) -> Message:
    target = messages[latest.place.message]
    record: Mapping[str, JsonValue] = {"tool": tool, "same": target.id, "at": latest.place.part}
    return with_pointer(message, part, _text(tool, message, target), REPEATED, record)


def _moved(message: Message, moved: Mapping[_Spot, Answer], messages: Sequence[Message]) -> Message:
    """Return a message with pointers whose read became a pointer itself: they go to the latest one now."""
    for part, record in records(message, REPEATED).items():
        same, at, tool = record.get("same"), record.get("at"), record.get("tool")
        if isinstance(same, str) and same and isinstance(at, int) and isinstance(tool, str) and (same, at) in moved:
            message = _pointing(message, part, tool, moved[same, at], messages)
    return message


def _text(tool: str, message: Message, latest: Message) -> str:
    where = f", in message {latest.id}" if latest.id else ""
    opened = f" `expand` with `m:{message.id}` shows it here." if message.id else ""
    name = " ".join(tool.split())[:_LONGEST_NAME]
    return f"[{name} gave exactly this again later{where}: see there.{opened}]"


def _normal(arguments: str) -> str:
    """Return arguments in one writing; those that are no JSON as they are."""
    try:
        return json.dumps(loads(arguments), sort_keys=True)
    except (InvalidMessage, RecursionError):
        return f"?{arguments}"
