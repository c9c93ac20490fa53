"""What stays in the window where a wide result was: its beginning and end, its size and kind, and how to read on.

Pure. Invariants: what is evicted is recognised by the message's metadata, never by its text; ids, names, error flags
and order stay; neither end that is shown is more than a quarter of the whole.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ricordo.guard import cut
from ricordo.messages import JsonValue, Media, Message, Text, ToolResult, Unknown
from ricordo.tokens import safe_boundary

__all__ = ["EVICTED", "Evicted", "Wide", "evicted_parts", "own_text", "with_evicted", "with_reader"]

EVICTED = "ricordo.evicted"
"""Where the metadata list what was moved to files: `part` and `item` of each, and its `path`."""

_READ_ON = "Read it in pages: `{reader}` with that path"
_ANY_READER = re.compile(re.escape(_READ_ON).replace(r"\{reader\}", r"\w+"))
_UNITS = ("bytes", "KB", "MB", "GB")


@dataclass(frozen=True, kw_only=True)
class Wide:
    """A piece of a result that is too wide: the index of its part in the message, its tool, and the text.

    `item` is the index within the result of a medium or of a part of unknown kind; None stands for all the result's
    texts, joined by newlines. `media_type` is set for a medium; the content of one that is no text is `data`.
    """

    part: int
    tool: str
    text: str = ""
    item: int | None = None
    media_type: str = ""
    data: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Evicted:
    """A wide piece that is in a file now: `path` as the agent's file tool reads it, `text` as it was stored.

    `kind` says what the text is, such as JSON, and `reader` which tool reads the file.
    """

    wide: Wide
    path: str
    text: str = ""
    kind: str = "text"
    reader: str = "read_file"


def evicted_parts(message: Message) -> frozenset[tuple[int, int | None]]:
    """Return which pieces of a message are evicted already, as pairs of `Wide.part` and `Wide.item`."""
    listed = message.metadata.get(EVICTED)
    found = [_piece(each) for each in listed] if isinstance(listed, list) else []
    return frozenset(piece for piece in found if piece is not None)


def with_evicted(message: Message, evicted: Sequence[Evicted], preview: int) -> Message:
    """Return the message with placeholders for `evicted`, each with up to `preview` characters of either end."""
    parts = list(message.parts)
    listed = message.metadata.get(EVICTED)
    records: list[JsonValue] = list(listed) if isinstance(listed, list) else []
    pieces = evicted_parts(message) | {(each.wide.part, each.wide.item) for each in evicted}
    for each in evicted:
        result = parts[each.wide.part]
        if isinstance(result, ToolResult):
            others = frozenset(item for part, item in pieces if part == each.wide.part and item is not None)
            parts[each.wide.part] = replace(result, parts=_replaced(result.parts, each, others, preview))
    records += [{"part": each.wide.part, "item": each.wide.item, "path": each.path} for each in evicted]
    return replace(message, parts=tuple(parts), metadata={**message.metadata, EVICTED: records})


def with_reader(message: Message, reader: str) -> Message:
    """Return the message with `reader` as the tool that its placeholders name; as it is where it has none."""
    done = {part for part, _ in evicted_parts(message)}
    parts = tuple(
        replace(part, parts=tuple(_naming(each, reader) for each in part.parts))
        if at in done and isinstance(part, ToolResult)
        else part
        for at, part in enumerate(message.parts)
    )
    return message if parts == message.parts else replace(message, parts=parts)


def _naming(part: Text | Media | Unknown, reader: str) -> Text | Media | Unknown:
    if not isinstance(part, Text):
        return part
    return Text(text=_ANY_READER.sub(_READ_ON.format(reader=reader), part.text, count=1))


def own_text(result: ToolResult, others: AbstractSet[int]) -> str:
    """Return the texts of a result, joined by newlines, without the items that stand for evicted pieces."""
    texts = [item.text for at, item in enumerate(result.parts) if isinstance(item, Text) and at not in others]
    return "\n".join(texts)


def _replaced(
    parts: tuple[Text | Media | Unknown, ...], evicted: Evicted, others: AbstractSet[int], preview: int
) -> tuple[Text | Media | Unknown, ...]:
    item = evicted.wide.item
    if item is not None:
        shown = _medium_line(parts[item], evicted) if evicted.wide.media_type else _preview(evicted, preview)
        return (*parts[:item], Text(text=shown), *parts[item + 1 :])
    own = [at for at, part in enumerate(parts) if isinstance(part, Text) and at not in others]
    shown = _preview(evicted, preview)
    # the other texts become empty ones, so that the places of the parts hold
    return tuple(
        (Text(text=shown) if at == own[0] else Text(text="")) if at in own else part for at, part in enumerate(parts)
    )


def _preview(evicted: Evicted, preview: int) -> str:
    text = evicted.text
    ends = min(preview, len(text) // 4)
    head = cut(text, safe_boundary(text, ends))
    start = safe_boundary(text, len(text) - ends)
    left = start - len(head)
    return (
        f"[This result of {evicted.wide.tool} is too long: {evicted.kind}, {len(text):,} characters in "
        f"{_counted(text)}. All of it is in {evicted.path}. {_READ_ON.format(reader=evicted.reader)}, an offset and a "
        f"limit. Its beginning and end:]\n"
        f"{head}\n[... {left:,} characters left out, see {evicted.path} ...]\n{text[start:]}"
    )


def _medium_line(part: Text | Media | Unknown, evicted: Evicted) -> str:
    name = part.name if isinstance(part, Media) else None
    description = part.description if isinstance(part, Media) else None
    told = ", ".join(
        filter(None, (name, evicted.wide.media_type, _size(len(evicted.wide.data) or len(evicted.text)), description))
    )
    return f"[A medium of an earlier result, {told}, is in {evicted.path}.]"


def _counted(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    return "one line" if lines == 1 else f"{lines:,} lines"


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1_000 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def _piece(record: JsonValue) -> tuple[int, int | None] | None:
    if not isinstance(record, Mapping):
        return None
    part, item = record.get("part"), record.get("item")
    if not isinstance(part, int) or not (item is None or isinstance(item, int)):
        return None
    return part, item
