"""Tool calls and results as programs write them, brought into the one form that the dialects read.

Told apart by what is there: arguments as JSON text or as an object, names beside or inside `function`, the single
`function_call` of older chats. A call without an id is named after its tool, and so is a result that only names its
tool: they find each other by the order of their turns.
"""

from collections.abc import Mapping

from ricordo.importers.fields import first, identifier
from ricordo.messages.jsontext import dumps
from ricordo.messages.types import JsonValue

__all__ = ["tool_call_id", "tool_calls", "with_call_id"]

_BLOCK_IDS = {"tool_use": "id", "tool_result": "tool_use_id"}


def tool_calls(value: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the tool calls of a message, each with id, type and function where they can be told; empty without any."""
    given = value.get("tool_calls")
    calls = list(given) if isinstance(given, list) else [] if given is None else [given]
    legacy = value.get("function_call")
    return [_call(call) for call in (calls if legacy is None else [*calls, {"function": legacy}])]


def tool_call_id(value: Mapping[str, JsonValue]) -> str:
    """Return the id of the call that a tool's message answers; the name of its tool stands in for a missing id."""
    return identifier(first(value, ("tool_call_id", "toolCallId", "call_id"))) or _named_after(value)


def with_call_id(block: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a block of content with the id that calls and results need; other blocks as they are."""
    kind = block.get("type")
    key = _BLOCK_IDS.get(kind) if isinstance(kind, str) else None
    return block if key is None or isinstance(block.get(key), str) else {**block, key: _named_after(block)}


def _call(call: JsonValue) -> JsonValue:
    if not isinstance(call, dict) or call.get("type") == "custom":
        return call
    inner = call.get("function")
    function = inner if isinstance(inner, dict) else call
    arguments = first(function, ("arguments", "args"))
    return {
        "id": identifier(call.get("id")) or _named_after(function),
        "type": "function",
        "function": {
            "name": function.get("name"),
            "arguments": arguments if isinstance(arguments, str) else dumps(arguments or {}),
        },
    }


def _named_after(value: Mapping[str, JsonValue]) -> str:
    name = identifier(value.get("name"))
    return "" if name is None else f"function-{name}"
