"""The wire protocol of Anthropic: messages and token counts."""

import json
from collections.abc import Iterator
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Usage
from ricordo.messages.formats import from_anthropic
from ricordo.messages.tokens import estimate_request
from ricordo.models import StopReason
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
from ricordo.testing.script import THINKING_SIGNATURE, Fail, ScriptedReply, split_pieces

__all__ = ["ANTHROPIC_COUNT", "ANTHROPIC_MESSAGES"]


_STOP_REASONS: dict[StopReason, str] = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refused": "refusal",
    "window": "model_context_window_exceeded",
}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


_MAX_BREAKPOINTS = 4


def _read_request(body: RequestBody) -> ParsedRequest:
    if (marks := _count_breakpoints(dict(body))) > _MAX_BREAKPOINTS:
        raise InvalidMessage(
            f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {marks}."
        )
    output = read_optional_record(body, "output_config", "request") or {}
    output_format = read_optional_record(output, "format", "output_config") or {}
    return ParsedRequest(
        messages=tuple(from_anthropic(body.get("messages"), body.get("system"))),
        tools=tuple(read_tool(tool, parameters="input_schema", path="tools") for tool in read_tools(body)),
        schema=read_optional_record(output_format, "schema", "output_config.format"),
    )


def _count_breakpoints(value: JsonValue) -> int:
    """Return how often `cache_control` is set in blocks and tools, at any depth."""
    if isinstance(value, list):
        return sum(map(_count_breakpoints, value))
    if not isinstance(value, dict):
        return 0
    return int(bool(value.get("cache_control"))) + sum(map(_count_breakpoints, value.values()))


def _write_reply(answer: ScriptedReply, body: RequestBody) -> JsonValue:
    content: list[JsonValue] = [dict(block) for block, _ in _blocks(answer)]
    return {
        **_reply_head(answer, body),
        "content": content,
        "stop_reason": _STOP_REASONS[answer.stop],
        "usage": _usage_record(answer.usage),
    }


def _reply_head(answer: ScriptedReply, body: RequestBody) -> dict[str, JsonValue]:
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _write_frames(answer: ScriptedReply, body: RequestBody) -> list[EventFrame]:
    usage = _usage_record(answer.usage)
    opening = {**_reply_head(answer, body), "usage": {**usage, "output_tokens": 1}}
    end: JsonValue = {"stop_reason": _STOP_REASONS[answer.stop], "stop_sequence": None}
    frames = [_event_frame("message_start", message=opening)]
    for index, (_, deltas) in enumerate(_blocks(answer)):
        frames += _block_frames(index, deltas)
    frames.append(_event_frame("message_delta", delta=end, usage={"output_tokens": answer.usage.output}))
    return [*frames, _event_frame("message_stop")]


def _block_frames(index: int, deltas: list[dict[str, JsonValue]]) -> Iterator[EventFrame]:
    opening, *rest = deltas
    yield _event_frame("content_block_start", index=index, content_block=opening)
    for delta in rest:
        yield _event_frame("content_block_delta", is_content=True, index=index, delta=delta)
    yield _event_frame("content_block_stop", index=index)


def _blocks(answer: ScriptedReply) -> Iterator[tuple[dict[str, JsonValue], list[dict[str, JsonValue]]]]:
    """Yield each block, complete, and as its opening and the deltas that fill it."""
    if answer.thinking:
        thinking: dict[str, JsonValue] = {"type": "thinking", "thinking": "", "signature": ""}
        signature_delta: dict[str, JsonValue] = {"type": "signature_delta", "signature": THINKING_SIGNATURE}
        thinking_block: dict[str, JsonValue] = {
            **thinking,
            "thinking": answer.thinking,
            "signature": THINKING_SIGNATURE,
        }
        yield thinking_block, [thinking, *_deltas("thinking_delta", "thinking", answer.thinking), signature_delta]
    if answer.text is not None:
        text: dict[str, JsonValue] = {"type": "text", "text": ""}
        yield {**text, "text": answer.text}, [text, *_deltas("text_delta", "text", answer.text)]
    for call in answer.calls:
        tool: dict[str, JsonValue] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield (
            {**tool, "input": _input_value(call.arguments)},
            [
                tool,
                *_deltas("input_json_delta", "partial_json", call.arguments),
            ],
        )


def _deltas(kind: str, key: str, text: str) -> list[dict[str, JsonValue]]:
    return [{"type": kind, key: piece} for piece in split_pieces(text)]


def _input_value(arguments: str) -> JsonValue:
    """Return the arguments as the object in a complete reply; text that is not JSON is sent as a string."""
    try:
        value: JsonValue = json.loads(arguments)
    except ValueError:
        return arguments
    return value


def _count_tokens(_: ScriptedReply, body: RequestBody) -> JsonValue:
    request = _read_request(body)
    return {"input_tokens": estimate_request(request.messages, tools=request.tools).input}


def _usage_record(usage: Usage) -> dict[str, JsonValue]:
    uncached = usage.input - usage.cache_read - usage.cache_write
    if uncached < 0:
        raise InvalidMessage("The cached tokens of a usage are part of its input, and can't be more.")
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
    }


def _error_body(fail: Fail) -> JsonValue:
    if fail.body is not None:
        return fail.body
    kind = fail.type or _ERROR_TYPES.get(fail.status, "api_error" if fail.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": fail.message}, "request_id": "req_scripted"}


def _event_frame(kind: str, *, is_content: bool = False, **fields: JsonValue) -> EventFrame:
    return make_event_frame({"type": kind, **fields}, name=kind, is_content=is_content)


ANTHROPIC_MESSAGES = WireProtocol(
    read=_read_request,
    whole=_write_reply,
    frames=_write_frames,
    error=_error_body,
    error_frame=lambda fail: make_event_frame(_error_body(fail), name="error"),
)
"""The path `/v1/messages`."""
ANTHROPIC_COUNT = replace(ANTHROPIC_MESSAGES, whole=_count_tokens)
"""The path `/v1/messages/count_tokens`, which answers with an estimate."""
