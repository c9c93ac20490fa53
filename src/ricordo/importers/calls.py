"""Tool calls and results as programs write them, brought into the one form that the dialects read.

Told apart by what is there: arguments as JSON text or as an object, names beside or inside `function`, the single
`function_call` of older chats. A call without an id is named after its tool, and so is a result that only names its
tool: they find each other by the order of their turns.
"""

from collections.abc import Mapping

from ricordo.importers.fields import first_value, read_identifier
from ricordo.messages.jsontext import dumps
from ricordo.messages.types import JsonValue

__all__ = ["read_call_id", "read_tool_calls", "with_call_id"]

_BLOCK_IDS = {"tool_use": "id", "tool_result": "tool_use_id"}


def read_tool_calls(value: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the tool calls of a message, each with id, type and function where they can be told; empty without any."""
    given = value.get("tool_calls")
    calls = list(given) if isinstance(given, list) else [] if given is None else [given]
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
