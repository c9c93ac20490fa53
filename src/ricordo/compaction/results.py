"""The results in a window, each with its tool and its call, and the pointer that can take a result's place.

Pure. A pointer is one short text in the result; the call, the id, the name and the error flag stay. Invariant: which
results are pointers is known by the message's metadata, never by its text, and `restore_original` takes them back exactly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.compaction.placeholder import EVICTED_KEY
from ricordo.messages import JsonValue, Message, PartPosition, Text, ToolCall, ToolResult, pair_calls
from ricordo.tokens.estimate import estimate_message

__all__ = [
    "CLEARED_KEY",
    "REPEATED_KEY",
    "LocatedResult",
    "locate_results",
    "evicted_paths",
    "pointer_records",
    "restore_original",
    "is_shorter",
    "replace_with_pointer",
]

CLEARED_KEY = "ricordo.cleared"
"""Where the metadata list the results that were cleared: `part` is the index of each in its message."""

REPEATED_KEY = "ricordo.repeated"
"""Where the metadata list the results that a later one repeats: `part`, the `tool`, and the later one's place."""


@dataclass(frozen=True, kw_only=True)
class LocatedResult:
    """A result at its place; `tool` is empty when nobody says which it was, `call` None when nobody asked for it."""

    place: PartPosition
    result: ToolResult
    tool: str
    call: ToolCall | None = None


def locate_results(messages: Sequence[Message]) -> tuple[LocatedResult, ...]:
    """Return every result, in order."""
    calls = {
        result: asked
        for call, result in pair_calls(messages).answered
        if isinstance(asked := messages[call.message].parts[call.part], ToolCall)
    }
    found = []
    for at, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                place = PartPosition(message=at, part=number)
                call = calls.get(place)
                found.append(
                    LocatedResult(place=place, result=part, tool=part.name or (call.name if call else ""), call=call)
                )
    return tuple(found)


def pointer_records(message: Message, key: str) -> dict[int, Mapping[str, JsonValue]]:
    """Return what the metadata say under `CLEARED_KEY` or `REPEATED_KEY`, by the index of the part."""
    listed = message.metadata.get(key)
    found: dict[int, Mapping[str, JsonValue]] = {}
    for record in listed if isinstance(listed, list) else []:
        part = record.get("part") if isinstance(record, Mapping) else None
        if isinstance(record, Mapping) and isinstance(part, int):
            found[part] = record
    return found


def evicted_paths(message: Message, part: int) -> tuple[str, ...]:
    """Return the files that hold what was evicted from a result, as the agent's file tool reads them."""
    return tuple(
        dict.fromkeys(str(record["path"]) for record in _evicted_records(message) if record.get("part") == part)
    )


def replace_with_pointer(message: Message, part: int, text: str, key: str, record: Mapping[str, JsonValue]) -> Message:
    """Return the message with `text` in the place of the result at `part`, noted under `key`."""
    result = message.parts[part]
    if not isinstance(result, ToolResult):
        return message
    noted: list[JsonValue] = [dict(each) for at, each in pointer_records(message, key).items() if at != part]
    pointer = replace(result, parts=(Text(text=text),))
    return replace(
        message,
        parts=(*message.parts[:part], pointer, *message.parts[part + 1 :]),
        metadata={**message.metadata, key: [*noted, {"part": part, **record}]},
    )


def is_shorter(result: ToolResult, text: str) -> bool:
    """Tell whether `text` takes fewer tokens than the result."""
    return _count_tokens(replace(result, parts=(Text(text=text),))) < _count_tokens(result)


def restore_original(message: Message, original: Message) -> Message:
    """Return `message` with what its pointers stand for, taken from `find_original`, the message before it had any.

    Without pointers it comes back as it is; so does one whose id is not that of `find_original`.
    """
    parts = {*pointer_records(message, CLEARED_KEY), *pointer_records(message, REPEATED_KEY)}
    if not parts or message.id != original.id or max(parts) >= len(original.parts):
        return message
    metadata = {
        key: value for key, value in message.metadata.items() if key not in {CLEARED_KEY, REPEATED_KEY, EVICTED_KEY}
    }
    evicted: list[JsonValue] = [dict(each) for each in _evicted_records(message) if each.get("part") not in parts]
    evicted += [dict(each) for each in _evicted_records(original) if each.get("part") in parts]
    return replace(
        message,
        parts=tuple(original.parts[at] if at in parts else part for at, part in enumerate(message.parts)),
        metadata={**metadata, **({EVICTED_KEY: evicted} if evicted else {})},
    )


def _evicted_records(message: Message) -> list[Mapping[str, JsonValue]]:
    listed = message.metadata.get(EVICTED_KEY)
    return [each for each in listed if isinstance(each, Mapping) and "path" in each] if isinstance(listed, list) else []


def _count_tokens(result: ToolResult) -> int:
    return estimate_message(Message(role="tool", parts=(result,)))
