"""Conversations as OpenAI's chat completions have them, both ways.

Invariant: `to_openai(from_openai(value))` says all that `value` says. A single plain text stands as a string, null is
absent, a refusal is a part of the content. Blocks of unknown types travel verbatim as `Unknown` of the kind
`openai:<type>`; other unknown fields in the metadata under `openai`.

Left out by `to_openai`, because the shape can't say it: thinking that did not come from a chat completion, unknown
parts of other origin, media that a provider can't fetch, and whether a result is an error. A message that holds several
results becomes several.
"""

from collections.abc import Iterable, Mapping

from ricordo.errors import InvalidMessage
from ricordo.messages.dialects.kept import ExtraFields, find_extra, read_extra
from ricordo.messages.dialects.openai_blocks import CUSTOM_TOOL, read_call, read_content, write_call, write_content
from ricordo.messages.jsontext import require_object, require_objects, require_text
from ricordo.messages.types import JsonValue, Message, Part, Role, Thinking, ToolCall, ToolResult

__all__ = ["from_openai", "to_openai"]

_DIALECT = "openai"
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
"""Where servers of the same shape put what the model thought."""

# Notes of our own among the kept fields; a colon keeps them apart from what a server sends.
_THINKING_SOURCE_KEY = ":thinking"
_LEGACY_CALL_KEY = ":function_call"
_BLOCKS_KEY = ":blocks"


def from_openai(values: JsonValue) -> list[Message]:
    """Read the `messages` of a request; a reply's `message` reads as a list of one.

    Raises:
        InvalidMessage: the shape is not understood; the text names the position.
    """
    functions: dict[str, str] = {}
    found = []
    for index, value in enumerate(require_objects(values, "messages")):
        where = f"messages[{index}]"
        role = require_text(value.get("role"), f"{where}.role")
        if role not in _ROLES:
            raise InvalidMessage(f"{where}.role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
        if role in ("tool", "function"):
            found.append(_read_result(value, functions, where))
        else:
            found.append(_read_message(value, functions, where, f"function-{index}"))
    return found


def to_openai(messages: Iterable[Message]) -> list[dict[str, JsonValue]]:
    """Write `messages` as the `messages` of a request."""
    return [value for message in messages for value in _write(message)]


def _read_message(value: Mapping[str, JsonValue], functions: dict[str, str], where: str, function_id: str) -> Message:
    fields = {key: found for key, found in value.items() if key not in _KNOWN_FIELDS and found is not None}
    parts: list[Part] = []
    kept: dict[int, dict[str, JsonValue]] = {}
    source = next((key for key in _THINKING if isinstance(fields.get(key), str)), None)
    if source is not None:
        parts.append(Thinking(text=require_text(fields.pop(source), where)))
        fields[_THINKING_SOURCE_KEY] = source
    for part, block in [*read_content(value, where), *_read_calls(value, where)]:
        is_custom = block.get("type") == CUSTOM_TOOL
        said = write_call(part, is_custom=is_custom) if isinstance(part, ToolCall) else write_content(part)
        more = find_extra(block, said) if said else {}
        if said and (more or is_custom):
            kept[len(parts)] = {"of": said["type"], "fields": more}
        parts.append(part)
    if value.get("function_call") is not None:
        legacy = require_object(value["function_call"], f"{where}.function_call")
        name = require_text(legacy.get("name"), f"{where}.function_call.name")
        arguments = require_text(legacy.get("arguments", "{}"), f"{where}.function_call.arguments")
        parts.append(ToolCall(id=function_id, name=name, arguments=arguments))
        functions[name] = function_id
        fields[_LEGACY_CALL_KEY] = True
    if value["role"] == "developer":
        fields["role"] = "developer"
    return Message(
        role=_ROLES[require_text(value["role"], where)],
        parts=tuple(parts),
        name=_optional_text(value, "name", where),
        metadata=ExtraFields(message=fields, parts=kept).to_metadata(_DIALECT),
    )


def _read_calls(value: Mapping[str, JsonValue], where: str) -> list[tuple[ToolCall, dict[str, JsonValue]]]:
    calls = require_objects(value.get("tool_calls") or [], f"{where}.tool_calls")
    return [(read_call(call, f"{where}.tool_calls[{index}]"), call) for index, call in enumerate(calls)]


def _read_result(value: Mapping[str, JsonValue], functions: Mapping[str, str], where: str) -> Message:
    fields = {key: found for key, found in value.items() if key not in _KNOWN_FIELDS and found is not None}
    name = _optional_text(value, "name", where)
    if value["role"] == "function":
        fields["role"] = "function"
        called = require_text(name, f"{where}.name")
        call_id = functions.get(called, f"function-{called}")
    else:
        call_id = require_text(value.get("tool_call_id"), f"{where}.tool_call_id")
    content = read_content(value, where)
    result = ToolResult(call_id=call_id, parts=tuple(part for part, _ in content), name=name)
    blocks: list[JsonValue] = [
        {"of": said.get("type"), "fields": find_extra(block, said)} if (said := write_content(part)) else {}
        for part, block in content
    ]
    if any(isinstance(block, dict) and block.get("fields") for block in blocks):
        fields[_BLOCKS_KEY] = blocks
    return Message(role="tool", parts=(result,), metadata=ExtraFields(message=fields).to_metadata(_DIALECT))


def _write(message: Message) -> list[dict[str, JsonValue]]:
    kept = read_extra(message, _DIALECT)
    written = [_write_result(part, kept) for part in message.parts if isinstance(part, ToolResult)]
    if not written or any(not isinstance(part, ToolResult) for part in message.parts):
        written.append(_write_message(message, kept))
    return written


def _write_message(message: Message, kept: ExtraFields) -> dict[str, JsonValue]:
    fields = dict(kept.message)
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
            said_call = write_call(part, is_custom=kept.parts.get(index, {}).get("of") == CUSTOM_TOOL)
            calls.append(kept.restore_part(index, said_call, "type"))
        elif not isinstance(part, Thinking | ToolResult) and (said := write_content(part)):
            blocks.append(kept.restore_part(index, said, "type"))
    value["content"] = _simplify_content(blocks, None if message.role == "assistant" else "")
    if calls and message.role == "assistant":
        value["tool_calls"] = calls
    if message.name is not None:
        value["name"] = message.name
    return {**value, **fields}


def _write_result(result: ToolResult, kept: ExtraFields) -> dict[str, JsonValue]:
    fields = dict(kept.message)
    listed = fields.pop(_BLOCKS_KEY, None)
    by_index = {i: b for i, b in enumerate(listed) if isinstance(b, dict)} if isinstance(listed, list) else {}
    inner = ExtraFields(parts=by_index)
    written = [(index, write_content(part)) for index, part in enumerate(result.parts)]
    blocks: list[JsonValue] = [inner.restore_part(index, said, "type") for index, said in written if said]
    value: dict[str, JsonValue] = {"role": "tool"}
    if fields.get("role") != "function":
        value["tool_call_id"] = result.call_id
    if result.name is not None:
        value["name"] = result.name
    value["content"] = _simplify_content(blocks, "")
    own = "role" not in fields or fields["role"] == "function"
    return {**value, **fields} if own else value


def _simplify_content(blocks: list[JsonValue], empty: JsonValue) -> JsonValue:
    """Return the blocks, a string when they are one plain text, `empty` when there are none."""
    if not blocks:
        return empty
    only = blocks[0]
    if len(blocks) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return blocks


def _optional_text(value: Mapping[str, JsonValue], name: str, where: str) -> str | None:
    found = value.get(name)
    return None if found is None else require_text(found, f"{where}.{name}")
