"""Conversion of conversations to and from OpenAI's chat completions.

A single plain text is a string, null means absent, a refusal is a part of the content. Blocks of unknown types are kept
verbatim as `Unknown` of the kind `openai:<type>`, other unknown fields in the metadata under `openai`.

`to_openai` leaves out what the format can't express: thinking that did not come from a chat completion, unknown parts
from other formats, media that a provider can't fetch, and whether a result is an error. A message with several results
becomes several messages.

Invariant: `to_openai(from_openai(value))` keeps the whole content of `value`.
"""

from collections.abc import Iterable, Mapping

from ricordo.errors import InvalidMessage
from ricordo.messages.formats.media import (
    UNKNOWN_TYPE,
    guess_media_type,
    is_file_id,
    is_url,
    make_data_uri,
    parse_data_uri,
)
from ricordo.messages.formats.passthrough import ExtraFields, find_extra, make_unknown, read_extra, read_unknown
from ricordo.messages.json_text import require_object, require_objects, require_text
from ricordo.messages.types import JsonValue, Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown

__all__ = ["CUSTOM_TOOL", "from_openai", "read_call", "read_content", "to_openai", "write_call", "write_content"]


CUSTOM_TOOL = "custom"
"""The type of a call whose input is free text."""
_DIALECT = "openai"


def read_content(
    value: Mapping[str, JsonValue], path: str
) -> list[tuple[Text | Media | Unknown, dict[str, JsonValue]]]:
    """Return the content of a message as parts, each with its original block; a refusal comes last.

    Raises: InvalidMessage if a block lacks a field of its type; the text names the position.
    """
    content = value.get("content")
    blocks: list[dict[str, JsonValue]] = []
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    elif content is not None:
        blocks = require_objects(content, f"{path}.content")
    parts = [(_read_block(block, f"{path}.content[{index}]"), block) for index, block in enumerate(blocks)]
    if isinstance(value.get("refusal"), str):
        refusal: dict[str, JsonValue] = {"type": "refusal", "refusal": value["refusal"]}
        parts.append((make_unknown(_DIALECT, "refusal", refusal), refusal))
    return parts


def write_content(part: Part) -> dict[str, JsonValue] | None:
    """Return `part` as a block of content; None if the format can't express it."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Media):
        return _write_media(part)
    return read_unknown(part, _DIALECT)


def read_call(value: Mapping[str, JsonValue], path: str) -> ToolCall:
    """Read a tool call; the free text input of a custom tool becomes its arguments.

    Raises: InvalidMessage if the call lacks its id, name or arguments; the text names the position.
    """
    is_custom = value.get("type") == CUSTOM_TOOL
    kind, field = (CUSTOM_TOOL, "input") if is_custom else ("function", "arguments")
    called = require_object(value.get(kind), f"{path}.{kind}")
    return ToolCall(
        id=require_text(value.get("id"), f"{path}.id"),
        name=require_text(called.get("name"), f"{path}.{kind}.name"),
        arguments=require_text(called.get(field), f"{path}.{kind}.{field}"),
    )


def write_call(call: ToolCall, *, is_custom: bool = False) -> dict[str, JsonValue]:
    """Return `call` as the call of a function, or of a custom tool."""
    if is_custom:
        return {"id": call.id, "type": CUSTOM_TOOL, CUSTOM_TOOL: {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _read_block(block: Mapping[str, JsonValue], path: str) -> Text | Media | Unknown:
    kind = require_text(block.get("type"), f"{path}.type")
    if kind == "text":
        return Text(text=require_text(block.get("text"), f"{path}.text"))
    if kind == "image_url":
        url = require_text(
            require_object(block.get("image_url"), f"{path}.image_url").get("url"), f"{path}.image_url.url"
        )
        return Media(media_type=guess_media_type(url, "image"), uri=url)
    if kind == "input_audio":
        audio = require_object(block.get("input_audio"), f"{path}.input_audio")
        media_type = f"audio/{require_text(audio.get('format'), f'{path}.input_audio.format')}"
        data = require_text(audio.get("data"), f"{path}.input_audio.data")
        return Media(media_type=media_type, uri=make_data_uri(media_type, data))
    if kind == "file":
        return _read_file(block, path)
    return make_unknown(_DIALECT, kind, block)


def _read_file(block: Mapping[str, JsonValue], path: str) -> Media | Unknown:
    file = require_object(block.get("file"), f"{path}.file")
    uri, name = file.get("file_data") or file.get("file_id"), file.get("filename")
    if not isinstance(uri, str) or not isinstance(name, str | None):
        return make_unknown(_DIALECT, "file", block)
    data_uri = parse_data_uri(uri)
    return Media(media_type=data_uri[0] if data_uri else UNKNOWN_TYPE, uri=uri, name=name)


def _write_media(media: Media) -> dict[str, JsonValue] | None:
    family = media.media_type.partition("/")[0]
    data_uri = parse_data_uri(media.uri)
    if family == "image" and (data_uri or is_url(media.uri)):
        return {"type": "image_url", "image_url": {"url": media.uri}}
    if family == "audio" and data_uri:
        return {
            "type": "input_audio",
            "input_audio": {"data": data_uri[1], "format": data_uri[0].removeprefix("audio/")},
        }
    if not data_uri and not is_file_id(media.uri):
        return None
    file: dict[str, JsonValue] = {"file_data" if data_uri else "file_id": media.uri}
    return {"type": "file", "file": file | ({"filename": media.name} if media.name is not None else {})}


_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_KNOWN_FIELDS = {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"}
_THINKING = ("reasoning_content", "reasoning")
"""The fields in which servers of this format put the reasoning of the model."""
# Ricordo's own notes among the kept fields; a colon separates them from fields of a server.
_THINKING_SOURCE_KEY = ":thinking"
_LEGACY_CALL_KEY = ":function_call"
_BLOCKS_KEY = ":blocks"


def from_openai(values: JsonValue) -> list[Message]:
    """Read the `messages` of a request; read the `message` of a reply as a list of one.

    Raises: InvalidMessage if it can't be parsed; the text names the position.
    """
    functions: dict[str, str] = {}
    messages = []
    for index, value in enumerate(require_objects(values, "messages")):
        path = f"messages[{index}]"
        role = require_text(value.get("role"), f"{path}.role")
        if role not in _ROLES:
            raise InvalidMessage(f"{path}.role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
        if role in ("tool", "function"):
            messages.append(_read_result(value, functions, path))
        else:
            messages.append(_read_message(value, functions, path, f"function-{index}"))
    return messages


def to_openai(messages: Iterable[Message]) -> list[dict[str, JsonValue]]:
    """Return `messages` as the `messages` of a request."""
    return [value for message in messages for value in _write(message)]


def _read_message(value: Mapping[str, JsonValue], functions: dict[str, str], path: str, function_id: str) -> Message:
    fields = {key: item for key, item in value.items() if key not in _KNOWN_FIELDS and item is not None}
    parts: list[Part] = []
    part_extras: dict[int, dict[str, JsonValue]] = {}
    source = next((key for key in _THINKING if isinstance(fields.get(key), str)), None)
    if source is not None:
        parts.append(Thinking(text=require_text(fields.pop(source), path)))
        fields[_THINKING_SOURCE_KEY] = source
    for part, block in [*read_content(value, path), *_read_calls(value, path)]:
        is_custom = block.get("type") == CUSTOM_TOOL
        encoded = write_call(part, is_custom=is_custom) if isinstance(part, ToolCall) else write_content(part)
        extra_fields = find_extra(block, encoded) if encoded else {}
        if encoded and (extra_fields or is_custom):
            part_extras[len(parts)] = {"of": encoded["type"], "fields": extra_fields}
        parts.append(part)
    if value.get("function_call") is not None:
        legacy = require_object(value["function_call"], f"{path}.function_call")
        name = require_text(legacy.get("name"), f"{path}.function_call.name")
        arguments = require_text(legacy.get("arguments", "{}"), f"{path}.function_call.arguments")
        parts.append(ToolCall(id=function_id, name=name, arguments=arguments))
        functions[name] = function_id
        fields[_LEGACY_CALL_KEY] = True
    if value["role"] == "developer":
        fields["role"] = "developer"
    return Message(
        role=_ROLES[require_text(value["role"], path)],
        parts=tuple(parts),
        name=_optional_text(value, "name", path),
        metadata=ExtraFields(message=fields, parts=part_extras).to_metadata(_DIALECT),
    )


def _read_calls(value: Mapping[str, JsonValue], path: str) -> list[tuple[ToolCall, dict[str, JsonValue]]]:
    calls = require_objects(value.get("tool_calls") or [], f"{path}.tool_calls")
    return [(read_call(call, f"{path}.tool_calls[{index}]"), call) for index, call in enumerate(calls)]


def _read_result(value: Mapping[str, JsonValue], functions: Mapping[str, str], path: str) -> Message:
    fields = {key: item for key, item in value.items() if key not in _KNOWN_FIELDS and item is not None}
    name = _optional_text(value, "name", path)
    if value["role"] == "function":
        fields["role"] = "function"
        called = require_text(name, f"{path}.name")
        call_id = functions.get(called, f"function-{called}")
    else:
        call_id = require_text(value.get("tool_call_id"), f"{path}.tool_call_id")
    content = read_content(value, path)
    result = ToolResult(call_id=call_id, parts=tuple(part for part, _ in content), name=name)
    blocks: list[JsonValue] = [
        {"of": encoded.get("type"), "fields": find_extra(block, encoded)} if (encoded := write_content(part)) else {}
        for part, block in content
    ]
    if any(isinstance(block, dict) and block.get("fields") for block in blocks):
        fields[_BLOCKS_KEY] = blocks
    return Message(role="tool", parts=(result,), metadata=ExtraFields(message=fields).to_metadata(_DIALECT))


def _write(message: Message) -> list[dict[str, JsonValue]]:
    extra = read_extra(message, _DIALECT)
    encoded_messages = [_write_result(part, extra) for part in message.parts if isinstance(part, ToolResult)]
    if not encoded_messages or any(not isinstance(part, ToolResult) for part in message.parts):
        encoded_messages.append(_write_message(message, extra))
    return encoded_messages


def _write_message(message: Message, extra: ExtraFields) -> dict[str, JsonValue]:
    fields = dict(extra.message)
    source, is_function = fields.pop(_THINKING_SOURCE_KEY, None), fields.pop(_LEGACY_CALL_KEY, False)
    blocks: list[JsonValue] = []
    calls: list[JsonValue] = []
    value: dict[str, JsonValue] = {"role": "user" if message.role == "tool" else message.role}
    for index, part in enumerate(message.parts):
        if isinstance(part, Thinking) and isinstance(source, str):
            value[source] = part.text
        elif isinstance(part, ToolCall) and is_function is True:
            value["function_call"] = {"name": part.name, "arguments": part.arguments}
        elif isinstance(part, ToolCall):
            said_call = write_call(part, is_custom=extra.parts.get(index, {}).get("of") == CUSTOM_TOOL)
            calls.append(extra.restore_part(index, said_call, "type"))
        elif not isinstance(part, Thinking | ToolResult) and (encoded := write_content(part)):
            blocks.append(extra.restore_part(index, encoded, "type"))
    value["content"] = _simplify_content(blocks, None if message.role == "assistant" else "")
    if calls and message.role == "assistant":
        value["tool_calls"] = calls
    if message.name is not None:
        value["name"] = message.name
    return {**value, **fields}


def _write_result(result: ToolResult, extra: ExtraFields) -> dict[str, JsonValue]:
    fields = dict(extra.message)
    stored_blocks = fields.pop(_BLOCKS_KEY, None)
    by_index = (
        {i: b for i, b in enumerate(stored_blocks) if isinstance(b, dict)} if isinstance(stored_blocks, list) else {}
    )
    inner = ExtraFields(parts=by_index)
    encoded_parts = [(index, write_content(part)) for index, part in enumerate(result.parts)]
    blocks: list[JsonValue] = [
        inner.restore_part(index, encoded, "type") for index, encoded in encoded_parts if encoded
    ]
    value: dict[str, JsonValue] = {"role": "tool"}
    if fields.get("role") != "function":
        value["tool_call_id"] = result.call_id
    if result.name is not None:
        value["name"] = result.name
    value["content"] = _simplify_content(blocks, "")
    is_message = "role" not in fields or fields["role"] == "function"
    return {**value, **fields} if is_message else value


def _simplify_content(blocks: list[JsonValue], empty: JsonValue) -> JsonValue:
    """Return the blocks, a string if they are one plain text, or `empty` if there are none."""
    if not blocks:
        return empty
    only = blocks[0]
    if len(blocks) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return blocks


def _optional_text(value: Mapping[str, JsonValue], name: str, path: str) -> str | None:
    text = value.get(name)
    return None if text is None else require_text(text, f"{path}.{name}")
