"""Messages, as Anthropic speaks them."""

import json
from collections.abc import Iterator
from dataclasses import replace

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Usage
from ricordo.messages.dialects import from_anthropic
from ricordo.models import Stop
from ricordo.testing.answer import SIGNATURE, Answer, pieces
from ricordo.testing.script import Fail
from ricordo.testing.wire import Asked, Body, Frame, Wire, event, optional_record, tool_spec, tools_of
from ricordo.tokens import estimate_request

__all__ = ["ANTHROPIC_COUNT", "ANTHROPIC_MESSAGES"]

_STOPS: dict[Stop, str] = {
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


_MOST_BREAKPOINTS = 4


def _read(body: Body) -> Asked:
    if (marks := _breakpoints(dict(body))) > _MOST_BREAKPOINTS:
        raise InvalidMessage(
            f"A maximum of {_MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {marks}."
        )
    output = optional_record(body, "output_config", "request") or {}
    form = optional_record(output, "format", "output_config") or {}
    return Asked(
        messages=tuple(from_anthropic(body.get("messages"), body.get("system"))),
        tools=tuple(tool_spec(tool, parameters="input_schema", where="tools") for tool in tools_of(body)),
        schema=optional_record(form, "schema", "output_config.format"),
    )


def _breakpoints(value: JsonValue) -> int:
    """Return how often `cache_control` is set in blocks and tools, at any depth."""
    if isinstance(value, list):
        return sum(map(_breakpoints, value))
    if not isinstance(value, dict):
        return 0
    return int(bool(value.get("cache_control"))) + sum(map(_breakpoints, value.values()))


def _whole(answer: Answer, body: Body) -> JsonValue:
    content: list[JsonValue] = [dict(block) for block, _ in _blocks(answer)]
    return {
        **_head(answer, body),
        "content": content,
        "stop_reason": _STOPS[answer.stop],
        "usage": _usage(answer.usage),
    }


def _head(answer: Answer, body: Body) -> dict[str, JsonValue]:
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _frames(answer: Answer, body: Body) -> list[Frame]:
    usage = _usage(answer.usage)
    opening = {**_head(answer, body), "usage": {**usage, "output_tokens": 1}}
    end: JsonValue = {"stop_reason": _STOPS[answer.stop], "stop_sequence": None}
    frames = [_event("message_start", message=opening)]
    for index, (_, deltas) in enumerate(_blocks(answer)):
        frames += _block_frames(index, deltas)
    frames.append(_event("message_delta", delta=end, usage={"output_tokens": answer.usage.output}))
    return [*frames, _event("message_stop")]


def _block_frames(index: int, deltas: list[dict[str, JsonValue]]) -> Iterator[Frame]:
    opening, *rest = deltas
    yield _event("content_block_start", index=index, content_block=opening)
    for delta in rest:
        yield _event("content_block_delta", is_content=True, index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _blocks(answer: Answer) -> Iterator[tuple[dict[str, JsonValue], list[dict[str, JsonValue]]]]:
    """Give each block whole, and as its opening with the deltas that fill it."""
    if answer.thinking:
        thinking: dict[str, JsonValue] = {"type": "thinking", "thinking": "", "signature": ""}
        seal: dict[str, JsonValue] = {"type": "signature_delta", "signature": SIGNATURE}
        whole: dict[str, JsonValue] = {**thinking, "thinking": answer.thinking, "signature": SIGNATURE}
        yield whole, [thinking, *_deltas("thinking_delta", "thinking", answer.thinking), seal]
    if answer.text is not None:
        text: dict[str, JsonValue] = {"type": "text", "text": ""}
        yield {**text, "text": answer.text}, [text, *_deltas("text_delta", "text", answer.text)]
    for call in answer.calls:
        tool: dict[str, JsonValue] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield (
            {**tool, "input": _input(call.arguments)},
            [
                tool,
                *_deltas("input_json_delta", "partial_json", call.arguments),
            ],
        )


def _deltas(kind: str, key: str, text: str) -> list[dict[str, JsonValue]]:
    return [{"type": kind, key: piece} for piece in pieces(text)]


def _input(arguments: str) -> JsonValue:
    """Return the arguments as the object that a whole reply holds; text that is no JSON is sent as a string."""
    try:
        value: JsonValue = json.loads(arguments)
    except ValueError:
        return arguments
    return value


def _count(_: Answer, body: Body) -> JsonValue:
    asked = _read(body)
    return {"input_tokens": estimate_request(asked.messages, tools=asked.tools).input}


def _usage(usage: Usage) -> dict[str, JsonValue]:
    fresh = usage.input - usage.cache_read - usage.cache_write
    if fresh < 0:
        raise InvalidMessage("The cached tokens of a usage are part of its input, and can't be more.")
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output,
    }


def _error(fail: Fail) -> JsonValue:
    if fail.body is not None:
        return fail.body
    kind = fail.type or _ERROR_TYPES.get(fail.status, "api_error" if fail.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": fail.message}, "request_id": "req_scripted"}


def _event(kind: str, *, is_content: bool = False, **fields: JsonValue) -> Frame:
    return event({"type": kind, **fields}, name=kind, is_content=is_content)


ANTHROPIC_MESSAGES = Wire(
    read=_read,
    whole=_whole,
    frames=_frames,
    error=_error,
    error_frame=lambda fail: event(_error(fail), name="error"),
)
"""The path `/v1/messages`."""

ANTHROPIC_COUNT = replace(ANTHROPIC_MESSAGES, whole=_count)
"""The path `/v1/messages/count_tokens`: an estimate."""
