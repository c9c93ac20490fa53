"""A message as some program wrote it becomes a `Message`: fields and tool calls are normalized for `formats`.

A call without an id is named after its tool, and so is a result that only names its tool. Content that is neither text
nor parts, and a message that says nothing at all, are broken. A time that can't be read is kept in the metadata under
`time`.
"""

import mimetypes
from collections.abc import Mapping
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.importers.fields import (
    CONTENT_KEYS,
    ID_KEYS,
    NAME_KEYS,
    PARENT_KEYS,
    TIME_KEYS,
    first_value,
    parse_time,
    read_identifier,
    read_list,
    read_object,
    read_role,
)
from ricordo.messages.formats import from_anthropic, from_openai
from ricordo.messages.formats.media import UNKNOWN_TYPE
from ricordo.messages.json_text import dumps
from ricordo.messages.types import JsonValue, Media, Message, Role

__all__ = [
    "read_call_id",
    "read_chat_message",
    "read_content_message",
    "read_tool_calls",
    "with_call_id",
    "with_fields",
    "with_time",
]


_BLOCK_IDS = {"tool_use": "id", "tool_result": "tool_use_id"}


def read_tool_calls(value: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the tool calls of a message, each with id, type and function where they are known; empty without any."""
    tool_calls = value.get("tool_calls")
    calls = list(tool_calls) if isinstance(tool_calls, list) else [] if tool_calls is None else [tool_calls]
    legacy = value.get("function_call")
    return [_normalize_call(call) for call in (calls if legacy is None else [*calls, {"function": legacy}])]


def read_call_id(value: Mapping[str, JsonValue]) -> str:
    """Return the id of the call that a tool's message answers; the name of its tool stands in for a missing id."""
    return read_identifier(first_value(value, ("tool_call_id", "toolCallId", "call_id"))) or _id_from_name(value)


def with_call_id(block: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a block of content with the id that calls and results need; other blocks as they are."""
    kind = block.get("type")
    key = _BLOCK_IDS.get(kind) if isinstance(kind, str) else None
    return block if key is None or isinstance(block.get(key), str) else {**block, key: _id_from_name(block)}


def _normalize_call(call: JsonValue) -> JsonValue:
    if not isinstance(call, dict) or call.get("type") == "custom":
        return call
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    arguments = first_value(function, ("arguments", "args"))
    return {
        "id": read_identifier(call.get("id")) or _id_from_name(function),
        "type": "function",
        "function": {
            "name": function.get("name"),
            "arguments": arguments if isinstance(arguments, str) else dumps(arguments or {}),
        },
    }


def _id_from_name(value: Mapping[str, JsonValue]) -> str:
    name = read_identifier(value.get("name"))
    return "" if name is None else f"function-{name}"


_ANTHROPIC_BLOCKS = (
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "image",
    "document",
    "search_result",
)


def read_chat_message(value: JsonValue) -> Message:
    """Read one message.

    Raises:
        InvalidMessage: it is no object, has no role that is understood, or holds nothing.
    """
    if not isinstance(value, dict):
        raise InvalidMessage("A message is an object.")
    role_and_speaker = read_role(value)
    if role_and_speaker is None:
        raise InvalidMessage("The message has no role that is understood.")
    role, speaker = role_and_speaker
    message = _convert_message(role, _read_content(value), _other_fields(value, role))
    message = replace(
        message,
        parts=message.parts + _read_attachments(value),
        id=read_identifier(first_value(value, ID_KEYS)) or "",
        name=speaker or _speaker_name(role, value),
        parent=read_identifier(first_value(value, PARENT_KEYS)),
    )
    return with_time(message, first_value(value, TIME_KEYS))


def read_content_message(role: JsonValue, value: Mapping[str, JsonValue], *, time: JsonValue) -> Message:
    """Read the content of a message whose role stands elsewhere. Raises: InvalidMessage as for `read_chat_message`."""
    return with_time(_convert_message(role, _read_content(value), {}), time)


def with_time(message: Message, time: JsonValue) -> Message:
    """Return `message` with the time that `time` is; one that can't be read is kept in the metadata.

    Raises: InvalidMessage if the message holds nothing.
    """
    if not message.parts:
        raise InvalidMessage("The message holds nothing.")
    parsed_time = parse_time(time)
    if parsed_time is not None or time is None:
        return replace(message, time=parsed_time)
    return replace(message, metadata={**message.metadata, "time": str(time)})


def with_fields(message: Message, name: str, fields: Mapping[str, JsonValue]) -> Message:
    """Return `message` with these fields of its source in the metadata under `name`; null ones are left out."""
    known: JsonValue = {key: value for key, value in fields.items() if value is not None}
    return replace(message, metadata={**message.metadata, name: known}) if known else message


def _convert_message(role: JsonValue, content: JsonValue, fields: Mapping[str, JsonValue]) -> Message:
    try:
        if not fields.get("tool_calls") and _is_anthropic(content):
            # there, what tools answered is said by the user
            return from_anthropic([{"role": "user" if role == "tool" else role, "content": content}])[0]
        return from_openai([{"role": role, "content": content, **fields}])[0]
    except InvalidMessage as error:
        raise InvalidMessage(str(error).removeprefix("messages[0].")) from error


def _is_anthropic(content: JsonValue) -> bool:
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)


def _read_content(value: Mapping[str, JsonValue]) -> JsonValue:
    content = next((value[key] for key in CONTENT_KEYS if value.get(key) not in (None, [], "")), None)
    if isinstance(content, dict):
        content = first_value(content, ("parts", "text"))
    if isinstance(content, list):
        return [_read_block(item) for item in content]
    if content is None or isinstance(content, str):
        return content
    raise InvalidMessage("The content of a message is a text or a list of parts.")


def _read_block(item: JsonValue) -> JsonValue:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, dict) and "type" not in item and isinstance(item.get("text"), str):
        return {**item, "type": "text"}
    return with_call_id(item) if isinstance(item, dict) else item


def _other_fields(value: Mapping[str, JsonValue], role: Role) -> dict[str, JsonValue]:
    if role == "tool":
        return {"tool_call_id": read_call_id(value), "name": read_identifier(value.get("name"))}
    refusal = value.get("refusal")
    calls = read_tool_calls(value)
    return {"refusal": refusal if isinstance(refusal, str) else None, **({"tool_calls": calls} if calls else {})}


def _speaker_name(role: Role, value: Mapping[str, JsonValue]) -> str | None:
    # the name of a tool's message is the tool's, and belongs to its result
    return None if role == "tool" else read_identifier(first_value(value, NAME_KEYS))


def _read_attachments(value: Mapping[str, JsonValue]) -> tuple[Media, ...]:
    """Return the files that were sent along; of one whose text was extracted, the text is the description."""
    files = [read_object(each) for key in ("attachments", "files") for each in read_list(value.get(key))]
    media = []
    for file in files:
        name, text = read_identifier(file.get("file_name")), read_identifier(file.get("extracted_content"))
        uri = read_identifier(file.get("file_uuid")) or name or ""
        if name or text:
            media_type = "text/plain" if text else mimetypes.guess_type(name or "")[0] or UNKNOWN_TYPE
            media.append(Media(media_type=media_type, uri=uri, name=name, description=text))
    return tuple(media)
