"""Chat completions, as OpenAI and everything that is compatible with it speaks them."""

from ricordo.messages import JsonValue, Usage
from ricordo.messages.dialects import from_openai
from ricordo.messages.jsontext import record
from ricordo.models import Stop
from ricordo.testing.answer import Answer, pieces
from ricordo.testing.script import Fail
from ricordo.testing.wire import Asked, Body, Frame, Wire, event, optional_record, tool_spec, tools_of

__all__ = ["OPENAI_CHAT", "openai_error"]

_FINISH: dict[Stop, str] = {
    "end": "stop",
    "tools": "tool_calls",
    "length": "length",
    "refused": "content_filter",
    "window": "length",
}
_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def openai_error(fail: Fail) -> JsonValue:
    """Return the body of an error; what `fail` does not name has the provider's default."""
    if fail.body is not None:
        return fail.body
    kind = "server_error" if fail.status >= 500 else _ERROR_TYPES.get(fail.status, "invalid_request_error")
    return {"error": {"message": fail.message, "type": fail.type or kind, "param": fail.param, "code": fail.code}}


def _read(body: Body) -> Asked:
    tools = [record(tool.get("function"), "tools.function") for tool in tools_of(body)]
    form = optional_record(body, "response_format", "request") or {}
    described = optional_record(form, "json_schema", "response_format") or {}
    return Asked(
        messages=tuple(from_openai(body.get("messages"))),
        tools=tuple(tool_spec(tool, parameters="parameters", where="tools.function") for tool in tools),
        schema=optional_record(described, "schema", "json_schema"),
    )


def _whole(answer: Answer, body: Body) -> JsonValue:
    message: dict[str, JsonValue] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_call(answer, index) for index in range(len(answer.calls))]
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": _FINISH[answer.stop], "logprobs": None}
    return {**_head(answer, body, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}


def _frames(answer: Answer, body: Body) -> list[Frame]:
    def chunk(delta: JsonValue, *, finish: str | None = None, is_content: bool = False) -> Frame:
        choice: JsonValue = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return event({**head, "choices": [choice]}, is_content=is_content)

    head = _head(answer, body, "chat.completion.chunk")
    thoughts: list[JsonValue] = [{"reasoning_content": piece} for piece in pieces(answer.thinking)]
    said: list[JsonValue] = [{"content": piece} for piece in pieces(answer.text or "")]
    called = (delta for index in range(len(answer.calls)) for delta in _call_deltas(answer, index))
    calls: list[JsonValue] = [{"tool_calls": [delta]} for delta in called]
    opening = chunk({"role": "assistant", "content": None if answer.text is None else ""})
    content = [chunk(delta, is_content=True) for delta in (*thoughts, *said, *calls)]
    options = optional_record(body, "stream_options", "request") or {}
    usage = [event({**head, "choices": [], "usage": _usage(answer.usage)})] if options.get("include_usage") else []
    return [opening, *content, chunk({}, finish=_FINISH[answer.stop]), *usage, Frame(text="data: [DONE]\n\n")]


def _head(answer: Answer, body: Body, kind: str) -> dict[str, JsonValue]:
    return {"id": f"chatcmpl-{answer.number}", "object": kind, "created": 0, "model": body.get("model")}


def _call(answer: Answer, index: int) -> JsonValue:
    call = answer.calls[index]
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _call_deltas(answer: Answer, index: int) -> list[JsonValue]:
    call = answer.calls[index]
    opening: JsonValue = {
        "index": index,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    more: list[JsonValue] = [{"index": index, "function": {"arguments": piece}} for piece in pieces(call.arguments)]
    return [opening, *more]


def _usage(usage: Usage) -> JsonValue:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
    }


OPENAI_CHAT = Wire(
    read=_read,
    whole=_whole,
    frames=_frames,
    error=openai_error,
    error_frame=lambda fail: event(openai_error(fail)),
)
"""The path `/v1/chat/completions`."""
