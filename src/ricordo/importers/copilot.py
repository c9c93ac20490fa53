"""The agents of VS Code: lines of events in the transcript that their hooks name."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.importers.chat_message import read_chat_message
from ricordo.importers.fields import read_identifier
from ricordo.importers.json_stream import JsonRecord
from ricordo.messages.types import JsonValue, Message

__all__ = ["read_messages"]


def read_messages(records: Iterable[JsonRecord]) -> Iterator[Message]:
    """Give what was said and what tools answered, in order; an event that is not understood is left out."""
    for record in records:
        event = record.value if isinstance(record.value, dict) else {}
        name, fields = read_identifier(event.get("id")), _read_event(event)
        if name and fields:
            with suppress(InvalidMessage):
                yield replace(read_chat_message({**fields, "time": event.get("timestamp")}), id=name)


def _read_event(event: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Return an event as the fields of a chat message; None for one that nobody said."""
    data = event.get("data")
    if not isinstance(data, dict):
        return None
    content = data.get("content")
    text = content if isinstance(content, str) and content.strip() else None
    match event.get("type"):
        case "user.message":
            return {"role": "user", "content": text} if text else None
        case "assistant.message":
            requests = data.get("toolRequests")
            calls = (
                [_convert_call(each) for each in requests if isinstance(each, dict)]
                if isinstance(requests, list)
                else []
            )
            return (
                {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
                if text or calls
                else None
            )
        case "tool.execution_complete":
            result = data.get("result")
            answer = result.get("content") if isinstance(result, dict) else None
            return {"role": "tool", "tool_call_id": data.get("toolCallId"), "content": answer} if answer else None
    return None


def _convert_call(request: dict[str, JsonValue]) -> JsonValue:
    function: JsonValue = {"name": request.get("name"), "arguments": request.get("arguments")}
    return {"id": request.get("toolCallId"), "type": "function", "function": function}
