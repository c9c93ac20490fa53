"""Tool results in a window, and the placeholders and pointers that can replace them. Pure functions.

Invariants: a replaced result is recognized by the message's metadata, never by its text. Ids, names, error flags and
order stay. `restore_original` restores the results of pointers exactly. The preview shows at most a quarter of an
evicted result from each end.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from ricordo.guard import cut
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue, Media, Message, PartPosition, Text, ToolCall, ToolResult, Unknown, pair_calls
from ricordo.messages.tokens import safe_boundary
from ricordo.messages.tokens.estimate import estimate_message

__all__ = [
    "CLEARED_KEY",
    "EVICTED_KEY",
    "READ_TOOL",
    "REPEATED_KEY",
    "EvictedPiece",
    "LocatedResult",
    "WidePiece",
    "evicted_parts",
    "evicted_paths",
    "is_shorter",
    "join_texts",
    "locate_results",
    "pointer_records",
    "replace_with_pointer",
    "replace_with_previews",
    "restore_original",
    "set_read_tool",
]


READ_TOOL = "read_file"
"""The default tool that reads evicted results."""
EVICTED_KEY = "ricordo.evicted"
"""Metadata key of the evicted pieces: `part` and `item` of each, and its `path`."""
_READ_ON = "Read it in pages: `{reader}` with that path"
_READ_ON_PATTERN = lazy_compile(re.escape(_READ_ON).replace(r"\{reader\}", r"\w+"))
_SIZE_UNITS = ("bytes", "KB", "MB", "GB")


@dataclass(frozen=True, kw_only=True)
class WidePiece:
    """A piece of a result that is too large: the index of its part in the message, its tool, and the text.

    `item` is the index within the result of a medium or of a part of unknown kind; None means all texts of the result,
    joined by newlines. `media_type` is set for a medium; `data` is the content of a binary medium.
    """

    part: int
    tool: str
    text: str = ""
    item: int | None = None
    media_type: str = ""
    data: bytes = b""


@dataclass(frozen=True, kw_only=True)
class EvictedPiece:
    """A piece that was written to a file: `path` as the agent's file tool reads it, `text` as it was stored.

    `kind` is the kind of content, such as JSON, and `reader` is the tool that reads the file.
    """

    piece: WidePiece
    path: str
    text: str = ""
    kind: str = "text"
    reader: str = "read_file"


def evicted_parts(message: Message) -> frozenset[tuple[int, int | None]]:
    """Return the evicted pieces of a message, as pairs of `WidePiece.part` and `WidePiece.item`."""
    records = message.metadata.get(EVICTED_KEY)
    pieces = [_parse_piece(each) for each in records] if isinstance(records, list) else []
    return frozenset(piece for piece in pieces if piece is not None)


def replace_with_previews(message: Message, evicted: Sequence[EvictedPiece], preview: int) -> Message:
    """Return the message with placeholders for `evicted`, each with up to `preview` characters from both ends."""
    parts = list(message.parts)
    earlier = message.metadata.get(EVICTED_KEY)
    records: list[JsonValue] = list(earlier) if isinstance(earlier, list) else []
    pieces = evicted_parts(message) | {(each.piece.part, each.piece.item) for each in evicted}
    for each in evicted:
        result = parts[each.piece.part]
        if isinstance(result, ToolResult):
            other_items = frozenset(item for part, item in pieces if part == each.piece.part and item is not None)
            parts[each.piece.part] = replace(result, parts=_replace_piece(result.parts, each, other_items, preview))
    records += [{"part": each.piece.part, "item": each.piece.item, "path": each.path} for each in evicted]
    return replace(message, parts=tuple(parts), metadata={**message.metadata, EVICTED_KEY: records})


def set_read_tool(message: Message, reader: str) -> Message:
    """Return the message with `reader` as the tool named in its placeholders; unchanged if it has no placeholders."""
    evicted = {part for part, _ in evicted_parts(message)}
    parts = tuple(
        replace(part, parts=tuple(_set_part_read_tool(each, reader) for each in part.parts))
        if at in evicted and isinstance(part, ToolResult)
        else part
        for at, part in enumerate(message.parts)
    )
    return message if parts == message.parts else replace(message, parts=parts)


def _set_part_read_tool(part: Text | Media | Unknown, reader: str) -> Text | Media | Unknown:
    if not isinstance(part, Text):
        return part
    return Text(text=_READ_ON_PATTERN.sub(_READ_ON.format(reader=reader), part.text, count=1))


def join_texts(result: ToolResult, others: AbstractSet[int]) -> str:
    """Return the texts of a result, joined by newlines, without the placeholders of evicted pieces."""
    texts = [item.text for at, item in enumerate(result.parts) if isinstance(item, Text) and at not in others]
    return "\n".join(texts)


def _replace_piece(
    parts: tuple[Text | Media | Unknown, ...], evicted: EvictedPiece, others: AbstractSet[int], preview: int
) -> tuple[Text | Media | Unknown, ...]:
    item = evicted.piece.item
    if item is not None:
        placeholder = (
            _medium_line(parts[item], evicted) if evicted.piece.media_type else _preview_text(evicted, preview)
        )
        return (*parts[:item], Text(text=placeholder), *parts[item + 1 :])
    text_indexes = [at for at, part in enumerate(parts) if isinstance(part, Text) and at not in others]
    placeholder = _preview_text(evicted, preview)
    # The other texts become empty, so that the indexes of the parts stay valid.
    return tuple(
        (Text(text=placeholder) if at == text_indexes[0] else Text(text="")) if at in text_indexes else part
        for at, part in enumerate(parts)
    )


def _preview_text(evicted: EvictedPiece, preview: int) -> str:
    text = evicted.text
    end_length = min(preview, len(text) // 4)
    head = cut(text, safe_boundary(text, end_length))
    start = safe_boundary(text, len(text) - end_length)
    omitted = start - len(head)
    return (
        f"[This result of {evicted.piece.tool} is too long: {evicted.kind}, {len(text):,} characters in "
        f"{_count_lines(text)}. All of it is in {evicted.path}. {_READ_ON.format(reader=evicted.reader)}, an "
        f"offset and a "
        f"limit. Its beginning and end:]\n"
        f"{head}\n[... {omitted:,} characters left out, see {evicted.path} ...]\n{text[start:]}"
    )


def _medium_line(part: Text | Media | Unknown, evicted: EvictedPiece) -> str:
    name = part.name if isinstance(part, Media) else None
    description = part.description if isinstance(part, Media) else None
    details = ", ".join(
        filter(
            None,
            (name, evicted.piece.media_type, _format_size(len(evicted.piece.data) or len(evicted.text)), description),
        )
    )
    return f"[A medium of an earlier result, {details}, is in {evicted.path}.]"


def _count_lines(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    return "one line" if lines == 1 else f"{lines:,} lines"


def _format_size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1_000 and unit < len(_SIZE_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.3g} {_SIZE_UNITS[unit]}"


def _parse_piece(record: JsonValue) -> tuple[int, int | None] | None:
    if not isinstance(record, Mapping):
        return None
    part, item = record.get("part"), record.get("item")
    if not isinstance(part, int) or not (item is None or isinstance(item, int)):
        return None
    return part, item


CLEARED_KEY = "ricordo.cleared"
"""Metadata key of the cleared results: `part` is the index of each in its message."""
REPEATED_KEY = "ricordo.repeated"
"""Metadata key of the results repeated later: `part`, the `tool`, and the position of the later result."""


@dataclass(frozen=True, kw_only=True)
class LocatedResult:
    """A result with its position; `tool` is empty if unknown, `call` is None for a result without a call."""

    position: PartPosition
    result: ToolResult
    tool: str
    call: ToolCall | None = None


def locate_results(messages: Sequence[Message]) -> tuple[LocatedResult, ...]:
    """Return every result, in order."""
    calls = {
        result: call_part
        for call, result in pair_calls(messages).answered
        if isinstance(call_part := messages[call.message].parts[call.part], ToolCall)
    }
    results = []
    for message_index, message in enumerate(messages):
        for part_index, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                place = PartPosition(message=message_index, part=part_index)
                call = calls.get(place)
                results.append(
                    LocatedResult(position=place, result=part, tool=part.name or (call.name if call else ""), call=call)
                )
    return tuple(results)


def pointer_records(message: Message, key: str) -> dict[int, Mapping[str, JsonValue]]:
    """Return the metadata records under `CLEARED_KEY` or `REPEATED_KEY`, by the index of the part."""
    values = message.metadata.get(key)
    records: dict[int, Mapping[str, JsonValue]] = {}
    for record in values if isinstance(values, list) else []:
        part = record.get("part") if isinstance(record, Mapping) else None
        if isinstance(record, Mapping) and isinstance(part, int):
            records[part] = record
    return records


def evicted_paths(message: Message, part: int) -> tuple[str, ...]:
    """Return the files of the evicted pieces of a result, as the agent's file tool reads them."""
    return tuple(
        dict.fromkeys(str(record["path"]) for record in _evicted_records(message) if record.get("part") == part)
    )


def replace_with_pointer(message: Message, part: int, text: str, key: str, record: Mapping[str, JsonValue]) -> Message:
    """Return the message with `text` in place of the result at `part`, recorded under `key`."""
    result = message.parts[part]
    if not isinstance(result, ToolResult):
        return message
    records: list[JsonValue] = [dict(each) for at, each in pointer_records(message, key).items() if at != part]
    pointer = replace(result, parts=(Text(text=text),))
    return replace(
        message,
        parts=(*message.parts[:part], pointer, *message.parts[part + 1 :]),
        metadata={**message.metadata, key: [*records, {"part": part, **record}]},
    )


def is_shorter(result: ToolResult, text: str) -> bool:
    """Return whether `text` takes fewer tokens than the result."""
    return _count_tokens(replace(result, parts=(Text(text=text),))) < _count_tokens(result)


def restore_original(message: Message, original: Message) -> Message:
    """Return `message` with its pointers replaced by the results in `original`, the message without pointers.

    A message without pointers is returned unchanged; so is a message whose id differs from that of `original`.
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
    records = message.metadata.get(EVICTED_KEY)
    return (
        [each for each in records if isinstance(each, Mapping) and "path" in each] if isinstance(records, list) else []
    )


def _count_tokens(result: ToolResult) -> int:
    return estimate_message(Message(role="tool", parts=(result,)))
