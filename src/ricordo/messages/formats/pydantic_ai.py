"""Conversion of conversations to and from pydantic-ai, in the JSON form of its `ModelMessagesTypeAdapter`.

It reads the output of `dump_python(messages, mode="json")`, and writes the input of `validate_python`, without
importing pydantic-ai. Parts of unknown kinds are kept verbatim as `Unknown` of the kind `pydantic-ai:<part_kind>`,
other unknown fields in the metadata under `pydantic-ai`. `to_pydantic_ai` leaves out what the format can't express:
names of speakers, unknown parts from other formats, and media that are neither inline nor a URL.

Invariant: `to_pydantic_ai(from_pydantic_ai(values))` validates to the same messages. A request of several parts becomes
several messages, and one request again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from ricordo.errors import InvalidMessage
from ricordo.messages.formats.media import is_url, make_data_uri, parse_data_uri
from ricordo.messages.formats.passthrough import (
    ExtraFields,
    find_extra,
    make_unknown,
    merge_extra,
    read_extra,
    read_unknown,
)
from ricordo.messages.json_text import dumps, loads, require_object, require_objects, require_text
from ricordo.messages.types import (
    JsonValue,
    Media,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
)

__all__ = [
    "DIALECT",
    "from_pydantic_ai",
    "read_prompt",
    "read_request_part",
    "read_response_part",
    "to_pydantic_ai",
    "write_prompt",
    "write_request_part",
    "write_response_part",
]


DIALECT = "pydantic-ai"
_URL_KINDS = {"image-url": "image/*", "audio-url": "audio/*", "video-url": "video/*", "document-url": "application/pdf"}
_TO_URL_SAFE = str.maketrans("+/", "-_")
_FROM_URL_SAFE = str.maketrans("-_", "+/")


def read_prompt(content: JsonValue, path: str) -> list[tuple[Text | Media | Unknown, JsonValue]]:
    """Return the content of a user prompt as parts, each with its original item.

    Raises: InvalidMessage if an item is neither a string nor an object with a kind; the text names the position.
    """
    if isinstance(content, str):
        return [(Text(text=content), content)]
    if not isinstance(content, list):
        raise InvalidMessage(f"{path}: a string or a list is needed.")
    return [(_read_item(item, f"{path}[{index}]"), item) for index, item in enumerate(content)]


def write_prompt(part: Part) -> JsonValue:
    """Return `part` as an item of a user prompt; None if the format can't express it."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Media):
        return _write_media(part)
    block = read_unknown(part, DIALECT)
    return block if block is not None and "part_kind" not in block else None


def read_request_part(value: Mapping[str, JsonValue], path: str) -> tuple[Role, Part]:
    """Read a part of a request that is not a user prompt, and return it with the role of its message.

    Raises: InvalidMessage if the part lacks a field of its kind; the text names the position.
    """
    kind = require_text(value.get("part_kind"), f"{path}.part_kind")
    if kind == "system-prompt":
        return "system", Text(text=require_text(value.get("content"), f"{path}.content"))
    is_retry = kind == "retry-prompt" and value.get("tool_name") is not None
    if kind == "tool-return" or is_retry:
        content = value.get("content")
        result = ToolResult(
            call_id=require_text(value.get("tool_call_id"), f"{path}.tool_call_id"),
            parts=(Text(text=content if isinstance(content, str) else dumps(content)),),
            name=require_text(value.get("tool_name"), f"{path}.tool_name"),
            is_error=is_retry or value.get("outcome", "success") != "success",
        )
        return "tool", result
    return "user", make_unknown(DIALECT, kind, value)


def write_request_part(part: Part, role: Role, *, is_value: bool = False) -> dict[str, JsonValue]:
    """Return `part`, of a message with `role`, as a part of a request; empty if the format can't express it."""
    if isinstance(part, Text) and role == "system":
        return {"part_kind": "system-prompt", "content": part.text}
    if isinstance(part, ToolResult):
        return {
            "part_kind": "tool-return",
            "tool_name": part.name or "unknown",
            "tool_call_id": part.call_id,
            "content": _parse_value(part.text) if is_value else _result_content(part),
            "outcome": "failed" if part.is_error else "success",
        }
    return read_unknown(part, DIALECT) or {}


def _result_content(result: ToolResult) -> JsonValue:
    """Return the content of a result: its text, or a list with the text and the media that can be expressed."""
    media = [encoded for part in result.parts if isinstance(part, Media) and (encoded := _write_media(part))]
    return [*([result.text] if result.text else []), *media] if media else result.text


def read_response_part(value: Mapping[str, JsonValue], path: str) -> Part:
    """Read a part of a response.

    Raises: InvalidMessage if the part lacks a field of its kind; the text names the position.
    """
    kind = require_text(value.get("part_kind"), f"{path}.part_kind")
    if kind == "text":
        return Text(text=require_text(value.get("content"), f"{path}.content"))
    if kind == "thinking":
        signature = value.get("signature")
        text = require_text(value.get("content"), f"{path}.content")
        return Thinking(
            text=text, signature=None if signature is None else require_text(signature, f"{path}.signature")
        )
    if kind == "tool-call":
        arguments = value.get("args")
        return ToolCall(
            id=require_text(value.get("tool_call_id"), f"{path}.tool_call_id"),
            name=require_text(value.get("tool_name"), f"{path}.tool_name"),
            arguments=arguments if isinstance(arguments, str) else dumps({} if arguments is None else arguments),
        )
    return make_unknown(DIALECT, kind, value)


def write_response_part(part: Part, *, is_value: bool = False) -> dict[str, JsonValue]:
    """Return `part` as a part of a response; empty if the format can't express it."""
    match part:
        case Text():
            return {"part_kind": "text", "content": part.text}
        case Thinking():
            sealed: dict[str, JsonValue] = {} if part.signature is None else {"signature": part.signature}
            return {"part_kind": "thinking", "content": part.text, **sealed}
        case ToolCall():
            arguments = _parse_value(part.arguments) if is_value else part.arguments
            return {"part_kind": "tool-call", "tool_name": part.name, "tool_call_id": part.id, "args": arguments}
        case _:
            return read_unknown(part, DIALECT) or {}


def _read_item(item: JsonValue, path: str) -> Text | Media | Unknown:
    if isinstance(item, str):
        return Text(text=item)
    if not isinstance(item, dict):
        raise InvalidMessage(f"{path}: a string or an object is needed.")
    kind = require_text(item.get("kind"), f"{path}.kind")
    match item:
        case {"kind": "binary", "data": str(data), "media_type": str(media_type)}:
            return Media(media_type=media_type, uri=make_data_uri(media_type, data.translate(_FROM_URL_SAFE)))
        case {"url": str(url)} if kind in _URL_KINDS:
            stored_type = item.get("media_type")
            return Media(media_type=stored_type if isinstance(stored_type, str) else _URL_KINDS[kind], uri=url)
        case _:
            return make_unknown(DIALECT, kind, item)


def _write_media(media: Media) -> dict[str, JsonValue] | None:
    data_uri = parse_data_uri(media.uri)
    if data_uri:
        return {"kind": "binary", "data": data_uri[1].translate(_TO_URL_SAFE), "media_type": data_uri[0]}
    if not is_url(media.uri):
        return None
    family = media.media_type.partition("/")[0]
    kind = f"{family}-url" if f"{family}-url" in _URL_KINDS else "document-url"
    value: dict[str, JsonValue] = {"kind": kind, "url": media.uri}
    return value if media.media_type.endswith("/*") else value | {"media_type": media.media_type}


def _parse_value(text: str) -> JsonValue:
    """Return the value of the JSON text `text`, or the text itself if it is no longer JSON after an edit."""
    try:
        return loads(text)
    except InvalidMessage:
        return text


# Ricordo's own notes among the kept fields; a colon separates them from fields of pydantic-ai.
_REQUEST_KEY = ":request"


def from_pydantic_ai(values: JsonValue) -> list[Message]:
    """Read dumped messages.

    Raises: InvalidMessage if they can't be parsed; the text names the position.
    """
    messages: list[Message] = []
    for index, value in enumerate(require_objects(values, "messages")):
        path = f"messages[{index}]"
        kind = require_text(value.get("kind"), f"{path}.kind")
        if kind == "request":
            messages += _read_request(value, path)
        elif kind == "response":
            messages.append(_read_response(value, path))
        else:
            raise InvalidMessage(f"{path}.kind: request or response is needed, not {kind!r}.")
    return messages


def to_pydantic_ai(messages: Iterable[Message]) -> list[dict[str, JsonValue]]:
    """Return `messages` in a form that pydantic-ai validates; messages between two replies become one request."""
    encoded_messages: list[dict[str, JsonValue]] = []
    parts: list[JsonValue] = []
    names: dict[str, str] = {}
    for message in messages:
        names.update((call.id, call.name) for call in message.tool_calls)
        if message.role == "assistant":
            encoded_messages.append(_write_response(message))
            continue
        fields = read_extra(message, DIALECT).message.get(_REQUEST_KEY)
        if isinstance(fields, dict) or not encoded_messages or encoded_messages[-1]["kind"] != "request":
            parts = []
            started: dict[str, JsonValue] = {"kind": "request", "parts": parts}
            encoded_messages.append(started | fields if isinstance(fields, dict) else started)
        parts += _write_request_parts(_with_result_names(message, names))
    return encoded_messages


def _with_result_names(message: Message, names: Mapping[str, str]) -> Message:
    """Give each result without a name the name of its call, which pydantic-ai requires."""
    return replace(
        message,
        parts=tuple(
            replace(part, name=names.get(part.call_id)) if isinstance(part, ToolResult) and part.name is None else part
            for part in message.parts
        ),
    )


def _read_request(value: Mapping[str, JsonValue], path: str) -> list[Message]:
    request_parts = require_objects(value.get("parts"), f"{path}.parts")
    messages = [_read_request_message(part, f"{path}.parts[{index}]") for index, part in enumerate(request_parts)]
    fields: dict[str, JsonValue] = {
        key: item for key, item in value.items() if key not in ("kind", "parts") and item is not None
    }
    first = messages[0] if messages else Message(role="user")
    extra = read_extra(first, DIALECT)
    marked = ExtraFields(message={**extra.message, _REQUEST_KEY: fields}, parts=extra.parts)
    return [
        Message(role=first.role, parts=first.parts, time=first.time, metadata=marked.to_metadata(DIALECT)),
        *messages[1:],
    ]


def _read_request_message(value: Mapping[str, JsonValue], path: str) -> Message:
    time = _read_time(value.get("timestamp"))
    if value.get("part_kind") == "user-prompt":
        pairs = read_prompt(value.get("content"), f"{path}.content")
        part_extras = {i: _find_part_extra(item, write_prompt(part), "kind") for i, (part, item) in enumerate(pairs)}
        encoded: dict[str, JsonValue] = {"part_kind": "user-prompt", "content": value.get("content")}
        fields = find_extra(value, encoded | _timestamp_field(time))
        parts: tuple[Part, ...] = tuple(part for part, _ in pairs)
        return Message(
            role="user",
            parts=parts,
            time=time,
            metadata=ExtraFields(message=fields, parts=part_extras).to_metadata(DIALECT),
        )
    role, part = read_request_part(value, path)
    is_value = _is_json_value(value, "content")
    encoded_part = write_request_part(part, role, is_value=is_value) | _timestamp_field(time)
    extras = {0: _find_part_extra(dict(value), encoded_part, "part_kind", is_value=is_value)}
    return Message(role=role, parts=(part,), time=time, metadata=ExtraFields(parts=extras).to_metadata(DIALECT))


def _write_request_parts(message: Message) -> list[JsonValue]:
    """Return the request parts for `message`: one prompt for all content of the user, other parts one by one."""
    extra = read_extra(message, DIALECT)
    fields = {key: item for key, item in extra.message.items() if key != _REQUEST_KEY}
    stamp = _timestamp_field(message.time)
    encoded_parts: list[JsonValue] = []
    prompt: list[JsonValue] = []
    for index, part in enumerate(message.parts):
        if message.role == "user" and (item := write_prompt(part)) is not None:
            prompt.append(extra.restore_part(index, item, "kind") if isinstance(item, dict) else item)
        elif encoded := write_request_part(part, message.role, is_value=_was_json_value(extra, index)):
            encoded_parts.append(extra.restore_part(index, encoded | stamp, "part_kind"))
    if prompt:
        content = prompt[0] if len(prompt) == 1 and isinstance(prompt[0], str) else prompt
        prompt_part: dict[str, JsonValue] = {"part_kind": "user-prompt", "content": content}
        encoded_parts.append(merge_extra(prompt_part | stamp, fields))
    return encoded_parts


def _read_response(value: Mapping[str, JsonValue], path: str) -> Message:
    response_parts = require_objects(value.get("parts"), f"{path}.parts")
    parts = tuple(read_response_part(part, f"{path}.parts[{index}]") for index, part in enumerate(response_parts))
    part_extras = {}
    for index, (part, block) in enumerate(zip(parts, response_parts, strict=True)):
        is_value = _is_json_value(block, "args")
        part_extras[index] = _find_part_extra(
            block, write_response_part(part, is_value=is_value), "part_kind", is_value=is_value
        )
    usage = _read_usage(value.get("usage"), f"{path}.usage")
    message = Message(role="assistant", parts=parts, time=_read_time(value.get("timestamp")), usage=usage)
    rest: dict[str, JsonValue] = {key: item for key, item in value.items() if key != "parts"}
    fields = find_extra(rest, _write_response(message))
    return Message(
        role="assistant",
        parts=parts,
        time=message.time,
        usage=message.usage,
        metadata=ExtraFields(message=fields, parts=part_extras).to_metadata(DIALECT),
    )


def _write_response(message: Message) -> dict[str, JsonValue]:
    extra = read_extra(message, DIALECT)
    encoded_parts = [
        (index, write_response_part(part, is_value=_was_json_value(extra, index)))
        for index, part in enumerate(message.parts)
    ]
    parts: list[JsonValue] = [
        extra.restore_part(index, encoded, "part_kind") for index, encoded in encoded_parts if encoded
    ]
    value: dict[str, JsonValue] = {"kind": "response", "parts": parts, **_timestamp_field(message.time)}
    if message.usage is not None:
        value["usage"] = {
            "input_tokens": message.usage.input,
            "output_tokens": message.usage.output,
            "cache_read_tokens": message.usage.cache_read,
            "cache_write_tokens": message.usage.cache_write,
        }
    return merge_extra(value, extra.message)


def _read_usage(value: JsonValue, path: str) -> Usage | None:
    if value is None:
        return None
    counts = require_object(value, path)

    def count(name: str) -> int:
        value = counts.get(name)
        return value if isinstance(value, int) else 0

    return Usage(
        input=count("input_tokens"),
        output=count("output_tokens"),
        cache_read=count("cache_read_tokens"),
        cache_write=count("cache_write_tokens"),
    )


def _find_part_extra(
    original: JsonValue, encoded: JsonValue, tag: str, *, is_value: bool = False
) -> dict[str, JsonValue]:
    """Return the extra fields of one part; empty if its kind and fields are complete."""
    if not isinstance(original, dict) or not isinstance(encoded, dict):
        return {}
    extra_fields = find_extra(original, encoded)
    extra: dict[str, JsonValue] = {"of": encoded.get(tag), "fields": extra_fields} if extra_fields or is_value else {}
    return extra | {"value": True} if is_value else extra


def _is_json_value(block: Mapping[str, JsonValue], name: str) -> bool:
    """Return whether a call's arguments or a tool's result are a JSON value, not JSON text."""
    is_tool = block.get("part_kind") in ("tool-call", "tool-return", "retry-prompt")
    return is_tool and not isinstance(block.get(name), str) and (name == "content" or block.get(name) is not None)


def _was_json_value(extra: ExtraFields, index: int) -> bool:
    return extra.parts.get(index, {}).get("value") is True


def _read_time(value: JsonValue) -> datetime | None:
    """Return a time with a time zone; other values stay among the extra fields."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _timestamp_field(time: datetime | None) -> dict[str, JsonValue]:
    return {} if time is None else {"timestamp": time.astimezone(UTC).isoformat().replace("+00:00", "Z")}
