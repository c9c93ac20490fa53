"""The content blocks of Anthropic's messages.

Invariant: writing a part that was read here gives the block again, apart from fields that no part has.
"""

from collections.abc import Mapping

from ricordo.errors import InvalidMessage
from ricordo.messages.dialects.kept import read_unknown, make_unknown
from ricordo.messages.dialects.media import (
    UNKNOWN_TYPE,
    parse_data_uri,
    make_data_uri,
    guess_media_type,
    is_file_id,
    is_url,
)
from ricordo.messages.jsontext import dumps, loads, require_object, require_objects, require_text
from ricordo.messages.types import JsonValue, Media, Part, Text, Thinking, ToolCall, ToolResult, Unknown

__all__ = ["DIALECT", "list_blocks", "read_block", "write_block"]

DIALECT = "anthropic"
_MEDIA_FAMILIES = {"image": "image", "document": "application"}


def list_blocks(content: JsonValue, where: str) -> list[dict[str, JsonValue]]:
    """Return `content` as blocks: a string is one text, nothing is none.

    Raises:
        InvalidMessage: it is neither a string nor a list of objects; the text names the position.
    """
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else require_objects(content, where)


def read_block(block: Mapping[str, JsonValue], where: str) -> Part:
    """Read one block; a type that is not known, or media in an unknown form, is kept verbatim.

    Raises:
        InvalidMessage: the block lacks what its type needs; the text names the position.
    """
    kind = require_text(block.get("type"), f"{where}.type")
    if kind == "thinking":
        signature = block.get("signature")
        said = require_text(block.get("thinking"), f"{where}.thinking")
        return Thinking(
            text=said, signature=None if signature is None else require_text(signature, f"{where}.signature")
        )
    if kind == "tool_use":
        arguments = dumps(require_object(block.get("input", {}), f"{where}.input"))
        return ToolCall(
            id=require_text(block.get("id"), f"{where}.id"),
            name=require_text(block.get("name"), f"{where}.name"),
            arguments=arguments,
        )
    if kind == "tool_result":
        blocks = list_blocks(block.get("content"), f"{where}.content")
        return ToolResult(
            call_id=require_text(block.get("tool_use_id"), f"{where}.tool_use_id"),
            parts=tuple(_read_content(inner, f"{where}.content[{i}]") for i, inner in enumerate(blocks)),
            is_error=block.get("is_error") is True,
        )
    return _read_content(block, where)


def write_block(part: Part) -> dict[str, JsonValue] | None:
    """Write `part` as a block; None when that can't be said: an empty text, thinking without a seal, foreign parts."""
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text else None
        case Thinking():
            sealed = part.signature is not None
            return {"type": "thinking", "thinking": part.text, "signature": part.signature} if sealed else None
        case Media():
            return _write_media(part)
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": _input_object(part.arguments)}
        case ToolResult():
            return _write_result(part)
        case Unknown():
            return read_unknown(part, DIALECT)


def _write_result(result: ToolResult) -> dict[str, JsonValue]:
    content: list[JsonValue] = [block for inner in result.parts if (block := write_block(inner))]
    value: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
    return value | ({"is_error": True} if result.is_error else {})


def _read_content(block: Mapping[str, JsonValue], where: str) -> Text | Media | Unknown:
    kind = require_text(block.get("type"), f"{where}.type")
    if kind == "text":
        return Text(text=require_text(block.get("text"), f"{where}.text"))
    media = _read_media(kind, block, where) if kind in _MEDIA_FAMILIES else None
    return make_unknown(DIALECT, kind, block) if media is None else media


def _read_media(kind: str, block: Mapping[str, JsonValue], where: str) -> Media | None:
    source = require_object(block.get("source"), f"{where}.source")
    name = block.get("title")
    name = name if isinstance(name, str) else None
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            return Media(media_type=media_type, uri=make_data_uri(media_type, data), name=name)
        case {"type": "url", "url": str(url)}:
            media_type = guess_media_type(url, "image") if kind == "image" else "application/pdf"
            return Media(media_type=media_type, uri=url, name=name)
        case {"type": "file", "file_id": str(file_id)}:
            return Media(media_type="image/*" if kind == "image" else UNKNOWN_TYPE, uri=file_id, name=name)
        case _:
            return None


def _write_media(media: Media) -> dict[str, JsonValue] | None:
    family = media.media_type.partition("/")[0]
    kind = "image" if family == "image" else "document"
    inside = parse_data_uri(media.uri)
    source: dict[str, JsonValue]
    if family not in ("image", "application", "text"):
        return None
    if inside:
        source = {"type": "base64", "media_type": inside[0], "data": inside[1]}
    elif is_url(media.uri):
        source = {"type": "url", "url": media.uri}
    elif is_file_id(media.uri):
        source = {"type": "file", "file_id": media.uri}
    else:
        return None
    block: dict[str, JsonValue] = {"type": kind, "source": source}
    return block | {"title": media.name} if kind == "document" and media.name is not None else block


def _input_object(arguments: str) -> dict[str, JsonValue]:
    """Return the arguments as an object; a text that is none stands under `arguments`, since the shape wants one."""
    try:
        value = loads(arguments)
    except InvalidMessage:
        return {"arguments": arguments}
    return value if isinstance(value, dict) else {"arguments": arguments}
