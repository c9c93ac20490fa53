"""Conversion of conversations to and from LangChain, in the form of its `messages_to_dict`.

A message keeps its id. Blocks of content that repeat a tool call are left out, because LangChain's providers write them
again from the calls. Blocks of unknown types are kept verbatim as `Unknown`, other fields in the metadata under
`langchain`; a tool's artifact, which no model sees, is not kept.
"""

from collections.abc import Iterable, Mapping, Sequence

from ricordo.errors import InvalidMessage
from ricordo.messages.formats.passthrough import ExtraFields, find_extra, make_unknown, read_extra, read_unknown
from ricordo.messages.json_text import dumps, loads, require_object, require_objects, require_text
from ricordo.messages.types import JsonValue, Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown

__all__ = ["from_langchain", "to_langchain"]


_DIALECT = "langchain"
_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system"}
_TYPES: dict[Role, str] = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}
_REPEATED_CALLS = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call", "input_json_delta"})
_KEPT_FIELDS = ("additional_kwargs", "response_metadata")
_CALL_FIELDS = frozenset({"tool_calls", "function_call"})


def from_langchain(values: JsonValue) -> list[Message]:
    """Read what `messages_to_dict` writes. Raises: InvalidMessage for a message without its fields, or of another
    type; the text names the position.
    """
    return [_read(value, f"messages[{index}]") for index, value in enumerate(require_objects(values, "messages"))]


def to_langchain(messages: Iterable[Message]) -> list[dict[str, JsonValue]]:
    """Return `messages` as `messages_from_dict` reads them; a message with several results becomes several."""
    return [value for message in messages for value in _write(message)]


def _read(value: Mapping[str, JsonValue], path: str) -> Message:
    kind, data = require_text(value.get("type"), f"{path}.type"), require_object(value.get("data"), f"{path}.data")
    identity, name = data.get("id"), data.get("name")
    given_id = identity if isinstance(identity, str) else ""
    blocks = _list_blocks(data.get("content"), f"{path}.content")
    if kind == "tool":
        call_id = require_text(data.get("tool_call_id"), f"{path}.tool_call_id")
        result = ToolResult(
            call_id=call_id,
            parts=tuple(_read_result_block(block) for block in blocks),
            name=name if isinstance(name, str) else None,
            is_error=data.get("status") == "error",
        )
        return Message(role="tool", id=given_id, parts=(result,))
    if kind not in _ROLES:
        raise InvalidMessage(f"{path}.type: one of tool, {', '.join(_ROLES)} is needed, not {kind!r}.")
    parts = [_read_block(block) for block in blocks]
    extras: dict[int, Mapping[str, JsonValue]] = {}
    for index, (part, block) in enumerate(zip(parts, blocks, strict=True)):
        if (written := _write_block(part)) is not None and (extra := find_extra(block, written)):
            extras[index] = {"of": written.get("type"), "fields": extra}
    fields: dict[str, JsonValue] = {key: kept for key in _KEPT_FIELDS if (kept := _without_calls(data.get(key)))}
    return Message(
        role=_ROLES[kind],
        id=given_id,
        name=name if isinstance(name, str) else None,
        parts=(*parts, *_read_calls(data, path)),
        metadata=ExtraFields(message=fields, parts=extras).to_metadata(_DIALECT),
    )


def _without_calls(fields: JsonValue) -> dict[str, JsonValue]:
    return {key: value for key, value in fields.items() if key not in _CALL_FIELDS} if isinstance(fields, dict) else {}


def _list_blocks(content: JsonValue, path: str) -> list[dict[str, JsonValue]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        raise InvalidMessage(f"{path}: a text or a list of blocks is needed.")
    blocks: list[JsonValue] = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    return [block for block in require_objects(blocks, path) if block.get("type") not in _REPEATED_CALLS]


def _read_block(block: Mapping[str, JsonValue]) -> Text | Thinking | Unknown:
    kind, thought, signature = block.get("type"), block.get("thinking"), block.get("signature")
    if kind == "thinking" and isinstance(thought, str):
        return Thinking(text=thought, signature=signature if isinstance(signature, str) else None)
    return _read_result_block(block)


def _read_result_block(block: Mapping[str, JsonValue]) -> Text | Unknown:
    kind, text = block.get("type"), block.get("text")
    return Text(text=text) if kind == "text" and isinstance(text, str) else make_unknown(_DIALECT, str(kind), block)


def _read_calls(data: Mapping[str, JsonValue], path: str) -> list[ToolCall]:
    read: list[ToolCall] = []
    for key in ("tool_calls", "invalid_tool_calls"):
        for index, call in enumerate(require_objects(data.get(key) or [], f"{path}.{key}")):
            where, arguments = f"{path}.{key}[{index}]", call.get("args")
            read.append(
                ToolCall(
                    id=require_text(call.get("id"), f"{where}.id"),
                    name=require_text(call.get("name"), f"{where}.name"),
                    arguments=arguments if isinstance(arguments, str) else dumps(arguments or {}),
                )
            )
    return read


def _write(message: Message) -> list[dict[str, JsonValue]]:
    values = [_write_result(part, message.id) for part in message.parts if isinstance(part, ToolResult)]
    rest = [(index, part) for index, part in enumerate(message.parts) if not isinstance(part, ToolResult)]
    if not rest and values:
        return values
    extra = read_extra(message, _DIALECT)
    blocks: list[JsonValue] = [
        extra.restore_part(index, block, "type") for index, part in rest if (block := _write_block(part)) is not None
    ]
    role = "user" if message.role == "tool" else message.role
    data: dict[str, JsonValue] = {"id": message.id or None, "name": message.name, "content": _simplify(blocks)}
    data.update({key: value for key, value in extra.message.items() if key in _KEPT_FIELDS})
    if role == "assistant":
        data.update(_write_calls([part for _, part in rest if isinstance(part, ToolCall)]))
    return [*values, {"type": _TYPES[role], "data": data}]


def _write_calls(calls: Sequence[ToolCall]) -> dict[str, JsonValue]:
    valid: list[JsonValue] = []
    invalid: list[JsonValue] = []
    for call in calls:
        try:
            arguments: JsonValue = dict(require_object(loads(call.arguments or "{}"), "arguments"))
            valid.append({"type": "tool_call", "id": call.id, "name": call.name, "args": arguments})
        except InvalidMessage as error:
            written = {"type": "invalid_tool_call", "id": call.id, "name": call.name, "args": call.arguments}
            invalid.append({**written, "error": str(error)})
    return {"tool_calls": valid, "invalid_tool_calls": invalid}


def _write_result(result: ToolResult, message_id: str) -> dict[str, JsonValue]:
    blocks: list[JsonValue] = [block for part in result.parts if (block := _write_block(part)) is not None]
    data: dict[str, JsonValue] = {"id": message_id or None, "name": result.name, "content": _simplify(blocks)}
    return {
        "type": "tool",
        "data": {**data, "tool_call_id": result.call_id, "status": "error" if result.is_error else "success"},
    }


def _write_block(part: Part) -> dict[str, JsonValue] | None:
    """Return a part as a block of content; None for a call, and for a part that the format can't express."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking():
            signature = {} if part.signature is None else {"signature": part.signature}
            return {"type": "thinking", "thinking": part.text, **signature}
        case Media():
            return {"type": "image_url", "image_url": {"url": part.uri}}
        case Unknown():
            return read_unknown(part, _DIALECT)
    return None


def _simplify(blocks: list[JsonValue]) -> JsonValue:
    """Return a text where the blocks are one plain text or none, which every provider accepts of everybody."""
    if not blocks:
        return ""
    only = blocks[0]
    return only["text"] if len(blocks) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"} else blocks
