"""Messages of LangChain: what `messages_to_dict` writes and stored histories hold, and what `dumpd` writes.

They are given to the reader of chats in the form that it knows, so lists, objects with `messages` and JSON lines of
them are understood in the same way. A block of content that repeats a tool call is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ricordo.importers.chat import ChatReader
from ricordo.importers.contract import ImportedMessage
from ricordo.importers.fields import MESSAGE_LISTS, TIME_KEYS, first_value, read_list, read_object, read_text
from ricordo.importers.source import ImportSource
from ricordo.messages.types import JsonValue

__all__ = ["read", "recognizes"]


_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "developer": "system",
}
_CLASS_ENDINGS = ("MessageChunk", "Message")
_REPEATED_CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta"})
_DEEPEST = 4


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` holds messages of LangChain."""
    return any(_holds_message(record.value) for record in source.first_records)


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give the messages in their order; one without a session belongs to that of the message before it."""
    reader = ChatReader(source=source)
    for record in source.records():
        yield from reader.read(replace(record, value=_convert(record.value)))


def _holds_message(value: JsonValue, depth: int = 0) -> bool:
    if _find_fields(value) is not None:
        return True
    inner = value if isinstance(value, list) else [each for _, each in _find_lists(value)]
    return depth < _DEEPEST and any(_holds_message(each, depth + 1) for each in inner)


def _find_lists(value: JsonValue) -> list[tuple[str, JsonValue]]:
    record = read_object(value)
    return [(key, record[key]) for key in MESSAGE_LISTS if isinstance(record.get(key), list)]


def _find_fields(value: JsonValue) -> tuple[str, Mapping[str, JsonValue]] | None:
    """Return the type of a message, such as `human`, and its fields; None if the value is no message of LangChain."""
    record = read_object(value)
    data, kind = record.get("data"), read_text(record.get("type"))
    if isinstance(data, dict) and ("content" in data or "tool_calls" in data) and kind:
        return _message_type(kind), data
    name = read_text(next(reversed(read_list(record.get("id"))), None))
    kwargs = record.get("kwargs")
    if "lc" in record and isinstance(kwargs, dict) and name.endswith(_CLASS_ENDINGS):
        return _message_type(read_text(kwargs.get("type")) or name), kwargs
    return None


def _message_type(name: str) -> str:
    """Return the type that a type or the name of a class means, in lower case."""
    for ending in _CLASS_ENDINGS:
        name = name.removesuffix(ending)
    return name.lower()


def _convert(value: JsonValue, depth: int = 0) -> JsonValue:
    """Return `value` with each message of LangChain as a message of a chat; anything else as it is."""
    found = _find_fields(value)
    if found is not None:
        return _convert_message(*found)
    if depth == _DEEPEST:
        return value
    if isinstance(value, list):
        return [_convert(each, depth + 1) for each in value]
    lists = _find_lists(value)
    return {**read_object(value), **{key: _convert(each, depth + 1) for key, each in lists}} if lists else value


def _convert_message(kind: str, fields: Mapping[str, JsonValue]) -> JsonValue:
    role = _ROLES.get(kind) or read_text(fields.get("role")) or kind
    extra, response = read_object(fields.get("additional_kwargs")), read_object(fields.get("response_metadata"))
    calls = [*read_list(fields.get("tool_calls")), *read_list(fields.get("invalid_tool_calls"))]
    calls = calls or read_list(extra.get("tool_calls"))
    message: dict[str, JsonValue] = {
        "id": fields.get("id"),
        "role": role,
        "name": fields.get("name"),
        "content": _convert_content(fields.get("content"), with_calls=bool(calls)),
        "time": first_value(extra, TIME_KEYS) or first_value(response, (*TIME_KEYS, "created")),
    }
    if role == "tool":
        return _convert_result(message, fields)
    if calls:
        message["tool_calls"] = calls
    elif "function_call" in extra:
        message["function_call"] = extra["function_call"]
    return message


def _convert_result(message: dict[str, JsonValue], fields: Mapping[str, JsonValue]) -> JsonValue:
    call = fields.get("tool_call_id")
    if fields.get("status") != "error":
        return {**message, "tool_call_id": call}
    result = {"type": "tool_result", "tool_use_id": call, "content": message["content"], "is_error": True}
    return {**message, "content": [result]}


def _convert_content(content: JsonValue, *, with_calls: bool) -> JsonValue:
    if not isinstance(content, list):
        return content
    return [
        _convert_block(block)
        for block in content
        if not (with_calls and read_text(read_object(block).get("type")) in _REPEATED_CALLS)
    ]


def _convert_block(block: JsonValue) -> JsonValue:
    fields = read_object(block)
    url, data = read_text(fields.get("url")), read_text(fields.get("base64") or fields.get("data"))
    match fields.get("type"):
        case "reasoning" if read_text(fields.get("reasoning")):
            return {"type": "thinking", "thinking": fields["reasoning"]}
        case "image" if url or data:
            media_type = read_text(fields.get("mime_type")) or "image/png"
            return {"type": "image_url", "image_url": {"url": url or f"data:{media_type};base64,{data}"}}
    return block
