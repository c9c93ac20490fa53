"""The blocks of a chat completion: content and tool calls.

Invariant: writing a part that was read here gives the block again, apart from fields that no part has.
"""

from collections.abc import Mapping

from ricordo.messages.dialects.kept import read_unknown, make_unknown
from ricordo.messages.dialects.media import (
    UNKNOWN_TYPE,
    parse_data_uri,
    make_data_uri,
    guess_media_type,
    is_file_id,
    is_url,
)
from ricordo.messages.jsontext import require_object, require_objects, require_text
from ricordo.messages.types import JsonValue, Media, Part, Text, ToolCall, Unknown

__all__ = ["CUSTOM_TOOL", "read_call", "read_content", "write_call", "write_content"]

CUSTOM_TOOL = "custom"
"""The type of a call whose input is any text."""

_DIALECT = "openai"


def read_content(
    value: Mapping[str, JsonValue], where: str
) -> list[tuple[Text | Media | Unknown, dict[str, JsonValue]]]:
    """Return the content of a message as parts, each with the block that it came from; a refusal comes last.

    Raises:
        InvalidMessage: a block lacks what its type needs; the text names the position.
    """
    content = value.get("content")
    blocks: list[dict[str, JsonValue]] = []
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    elif content is not None:
        blocks = require_objects(content, f"{where}.content")
    found = [(_read_block(block, f"{where}.content[{index}]"), block) for index, block in enumerate(blocks)]
    if isinstance(value.get("refusal"), str):
        refusal: dict[str, JsonValue] = {"type": "refusal", "refusal": value["refusal"]}
        found.append((make_unknown(_DIALECT, "refusal", refusal), refusal))
    return found


def write_content(part: Part) -> dict[str, JsonValue] | None:
    """Write `part` as a block of content; None when that can't be said."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Media):
        return _write_media(part)
    return read_unknown(part, _DIALECT)


def read_call(value: Mapping[str, JsonValue], where: str) -> ToolCall:
    """Read a tool call; the input of a custom tool, which is any text, becomes its arguments.

    Raises:
        InvalidMessage: the call lacks its id, name or arguments; the text names the position.
    """
    is_custom = value.get("type") == CUSTOM_TOOL
    kind, given = (CUSTOM_TOOL, "input") if is_custom else ("function", "arguments")
    called = require_object(value.get(kind), f"{where}.{kind}")
    return ToolCall(
        id=require_text(value.get("id"), f"{where}.id"),
        name=require_text(called.get("name"), f"{where}.{kind}.name"),
        arguments=require_text(called.get(given), f"{where}.{kind}.{given}"),
    )


def write_call(call: ToolCall, *, is_custom: bool = False) -> dict[str, JsonValue]:
    """Write `call` as the call of a function, or of a custom tool."""
    if is_custom:
        return {"id": call.id, "type": CUSTOM_TOOL, CUSTOM_TOOL: {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _read_block(block: Mapping[str, JsonValue], where: str) -> Text | Media | Unknown:
    kind = require_text(block.get("type"), f"{where}.type")
    if kind == "text":
        return Text(text=require_text(block.get("text"), f"{where}.text"))
    if kind == "image_url":
        url = require_text(
            require_object(block.get("image_url"), f"{where}.image_url").get("url"), f"{where}.image_url.url"
        )
        return Media(media_type=guess_media_type(url, "image"), uri=url)
    if kind == "input_audio":
        audio = require_object(block.get("input_audio"), f"{where}.input_audio")
        media_type = f"audio/{require_text(audio.get('format'), f'{where}.input_audio.format')}"
        data = require_text(audio.get("data"), f"{where}.input_audio.data")
        return Media(media_type=media_type, uri=make_data_uri(media_type, data))
    if kind == "file":
        return _read_file(block, where)
    return make_unknown(_DIALECT, kind, block)


def _read_file(block: Mapping[str, JsonValue], where: str) -> Media | Unknown:
    file = require_object(block.get("file"), f"{where}.file")
    uri, name = file.get("file_data") or file.get("file_id"), file.get("filename")
    if not isinstance(uri, str) or not isinstance(name, str | None):
        return make_unknown(_DIALECT, "file", block)
    inside = parse_data_uri(uri)
    return Media(media_type=inside[0] if inside else UNKNOWN_TYPE, uri=uri, name=name)


def _write_media(media: Media) -> dict[str, JsonValue] | None:
    family = media.media_type.partition("/")[0]
    inside = parse_data_uri(media.uri)
    if family == "image" and (inside or is_url(media.uri)):
        return {"type": "image_url", "image_url": {"url": media.uri}}
    if family == "audio" and inside:
        return {"type": "input_audio", "input_audio": {"data": inside[1], "format": inside[0].removeprefix("audio/")}}
    if not inside and not is_file_id(media.uri):
        return None
    file: dict[str, JsonValue] = {"file_data" if inside else "file_id": media.uri}
    return {"type": "file", "file": file | ({"filename": media.name} if media.name is not None else {})}
