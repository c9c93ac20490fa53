"""The wire protocol of OpenAI responses: a reply is a list of items, and every event of a stream is numbered.

Consecutive input items of the assistant become one message, as they were one reply. Unknown types are kept verbatim. A
tool `t` of a namespace `n` is read as `n__t`, and a call of it is sent back with its namespace.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult, Unknown, Usage
from ricordo.messages.json_text import require_objects, require_text
from ricordo.testing.openai_chat import openai_error_body
from ricordo.testing.protocol import (
    EventFrame,
    ParsedRequest,
    RequestBody,
    WireProtocol,
    make_event_frame,
    read_optional_record,
    read_tool,
    read_tools,
)
from ricordo.testing.script import Fail, ScriptedReply, split_pieces

__all__ = ["OPENAI_RESPONSES", "read_input"]


_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_SEPARATOR = "__"
_TEXT_TYPES = {"input_text", "output_text", "summary_text", "text"}


def read_input(body: RequestBody) -> list[Message]:
    """Return the messages of a request, the instructions first.

    Raises: InvalidMessage for a request that can't be parsed.
    """
    instructions, input_value = body.get("instructions"), body.get("input")
    messages: list[Message] = []
    if isinstance(instructions, str) and instructions:
        messages.append(Message(role="system", parts=(Text(text=instructions),)))
    if isinstance(input_value, str):
        return [*messages, Message(role="user", parts=(Text(text=input_value),))]
    for item in require_objects(input_value, "input"):
        read = _read_item(item)
        if messages and read.role == messages[-1].role == "assistant":
            read = Message(role="assistant", parts=(*messages.pop().parts, *read.parts))
        messages.append(read)
    return messages


def _read_item(item: RequestBody) -> Message:
    kind = item.get("type") or "message"
    if kind == "message":
        role = require_text(item.get("role"), "input.role")
        if role not in _ROLES:
            raise InvalidMessage(f"input.role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
        return Message(role=_ROLES[role], parts=tuple(_read_content(item.get("content"))))
    if kind == "function_call_output":
        call_id = require_text(item.get("call_id"), "input.call_id")
        return Message(role="tool", parts=(ToolResult(call_id=call_id, parts=tuple(_read_content(item["output"]))),))
    return Message(role="assistant", parts=(_read_reply_item(str(kind), item),))


def _read_reply_item(kind: str, item: RequestBody) -> Part:
    if kind == "function_call":
        call_id, name, arguments = (
            require_text(item.get(key), f"input.{key}") for key in ("call_id", "name", "arguments")
        )
        return ToolCall(id=call_id, name=_full_name(item.get("namespace"), name), arguments=arguments)
    if kind == "reasoning":
        summary = "".join(
            require_text(part.get("text"), "summary") for part in require_objects(item.get("summary") or [], "summary")
        )
        return Thinking(text=summary)
    return Unknown(kind=f"openai:{kind}", raw=json.dumps(dict(item)))


def _read_content(content: JsonValue) -> Sequence[Text | Media | Unknown]:
    if isinstance(content, str):
        return [Text(text=content)]
    return [_read_part(part) for part in require_objects(content, "input.content")]


def _read_part(part: RequestBody) -> Text | Media | Unknown:
    kind = require_text(part.get("type"), "input.content.type")
    if kind in _TEXT_TYPES:
        return Text(text=require_text(part.get("text"), "input.content.text"))
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return Media(media_type="image/*", uri=str(part["image_url"]))
    return Unknown(kind=f"openai:{kind}", raw=json.dumps(dict(part)))


_INCOMPLETE_REASONS = {"length": "max_output_tokens", "window": "max_output_tokens", "refused": "content_filter"}


def _read_request(body: RequestBody) -> ParsedRequest:
    text_format = read_optional_record(read_optional_record(body, "text", "request") or {}, "format", "text") or {}
    tools = {name: tool for name, _, tool in _list_functions(body)}
    return ParsedRequest(
        messages=tuple(read_input(body)),
        tools=tuple(
            replace(read_tool(tool, parameters="parameters", path="tools"), name=name) for name, tool in tools.items()
        ),
        schema=read_optional_record(text_format, "schema", "text.format"),
        continues=body.get("previous_response_id") is not None or body.get("conversation") is not None,
    )


def _list_functions(body: RequestBody) -> Iterator[tuple[str, str, RequestBody]]:
    """Yield the full name, the namespace and the definition of each function that the request offers."""
    for tool in read_tools(body):
        namespace = str(tool.get("name") or "") if tool.get("type") == "namespace" else ""
        inner = require_objects(tool.get("tools") or [], "tools.tools") if namespace else [tool]
        for function in inner:
            if function.get("type") == "function":
                yield _full_name(namespace, require_text(function.get("name"), "tools.name")), namespace, function


def _full_name(namespace: JsonValue, name: str) -> str:
    return f"{namespace}{_SEPARATOR}{name}" if namespace else name


def _write_reply(answer: ScriptedReply, body: RequestBody) -> JsonValue:
    reason = _INCOMPLETE_REASONS.get(answer.stop)
    return {
        **_reply_head(answer, body),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _output_items(answer, body),
        "usage": _usage_record(answer.usage),
    }


def _reply_head(answer: ScriptedReply, body: RequestBody) -> dict[str, JsonValue]:
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": 0,
        "model": body.get("model"),
        "instructions": body.get("instructions"),
        "error": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
    }


def _output_items(answer: ScriptedReply, body: RequestBody) -> list[JsonValue]:
    number = answer.number
    items: list[JsonValue] = []
    if answer.thinking:
        items.append({"id": f"rs_{number}", "type": "reasoning", "summary": [_summary(answer.thinking)]})
    if answer.text is not None:
        message_fields: dict[str, JsonValue] = {"type": "message", "role": "assistant", "status": "completed"}
        items.append({"id": f"msg_{number}", **message_fields, "content": [_output_text(answer.text)]})
    namespaces = {name: namespace for name, namespace, _ in _list_functions(body) if namespace}
    return [*items, *(_call_item(answer, index, namespaces) for index in range(len(answer.calls)))]


def _call_item(answer: ScriptedReply, index: int, namespaces: Mapping[str, str]) -> JsonValue:
    call = answer.calls[index]
    namespace = namespaces.get(call.name)
    name: dict[str, JsonValue] = {"name": call.name}
    if namespace:
        name = {"namespace": namespace, "name": call.name.removeprefix(namespace + _SEPARATOR)}
    return {
        "id": f"fc_{answer.number}_{index + 1}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        **name,
        "arguments": call.arguments,
    }


def _summary(text: str) -> JsonValue:
    return {"type": "summary_text", "text": text}


def _output_text(text: str) -> JsonValue:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _write_frames(answer: ScriptedReply, body: RequestBody) -> list[EventFrame]:
    opening: JsonValue = {
        **_reply_head(answer, body),
        "status": "in_progress",
        "incomplete_details": None,
        "output": [],
    }
    response = _write_reply(answer, body)
    end = "response.incomplete" if answer.stop in _INCOMPLETE_REASONS else "response.completed"
    events: list[dict[str, JsonValue]] = [
        {"type": "response.created", "response": opening},
        {"type": "response.in_progress", "response": opening},
        *_item_events(answer, body),
        {"type": end, "response": response},
    ]
    return [_write_frame({**event, "sequence_number": number}) for number, event in enumerate(events)]


def _write_frame(event: dict[str, JsonValue]) -> EventFrame:
    kind = str(event["type"])
    return make_event_frame(event, name=kind, is_content=kind.endswith(".delta"))


def _item_events(answer: ScriptedReply, body: RequestBody) -> Iterator[dict[str, JsonValue]]:
    for index, item in enumerate(_output_items(answer, body)):
        assert isinstance(item, dict)
        kind = item["type"]
        position: dict[str, JsonValue] = {"item_id": item["id"], "output_index": index}
        emptied: dict[str, JsonValue] = {"status": "in_progress"}
        if kind == "reasoning":
            emptied, filling = {"summary": []}, _thinking_events(answer.thinking, position)
        elif kind == "message":
            emptied["content"], filling = [], _text_events(answer.text or "", position)
        else:
            filling = _argument_events(str(item["name"]), str(item["arguments"]), position)
            emptied["arguments"] = ""
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, **emptied}}
        yield from filling
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _thinking_events(text: str, item_position: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    position: dict[str, JsonValue] = {**item_position, "summary_index": 0}
    yield {"type": "response.reasoning_summary_part.added", **position, "part": _summary("")}
    for piece in split_pieces(text):
        yield {"type": "response.reasoning_summary_text.delta", **position, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **position, "text": text}
    yield {"type": "response.reasoning_summary_part.done", **position, "part": _summary(text)}


def _text_events(text: str, item_position: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    position: dict[str, JsonValue] = {**item_position, "content_index": 0}
    yield {"type": "response.content_part.added", **position, "part": _output_text("")}
    for piece in split_pieces(text):
        yield {"type": "response.output_text.delta", **position, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **position, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **position, "part": _output_text(text)}


def _argument_events(name: str, arguments: str, item_position: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    for piece in split_pieces(arguments):
        yield {"type": "response.function_call_arguments.delta", **item_position, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **item_position, "name": name, "arguments": arguments}


def _usage_record(usage: Usage) -> JsonValue:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def _error_frame(fail: Fail) -> EventFrame:
    body = openai_error_body(fail)
    return make_event_frame(
        {**(body if isinstance(body, dict) else {}), "type": "error", "sequence_number": 0}, name="error"
    )


OPENAI_RESPONSES = WireProtocol(
    read=_read_request, whole=_write_reply, frames=_write_frames, error=openai_error_body, error_frame=_error_frame
)
"""The path `/v1/responses`."""
