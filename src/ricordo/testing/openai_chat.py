"""The wire protocol of OpenAI and compatible servers: chat completions and embeddings.

Embeddings are made from the hashed words of a text, so texts that share words are close to each other.
"""

import base64
import hashlib
import math
import struct
from collections.abc import Sequence

from ricordo.errors import InvalidMessage
from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue, Usage
from ricordo.messages.formats import from_openai
from ricordo.messages.json_text import require_integer, require_object
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
from ricordo.testing.script import Fail, ScriptedReply, split_pieces

__all__ = ["OPENAI_CHAT", "embeddings_protocol", "hash_to_vector", "openai_error_body"]


_FINISH_REASONS: dict[StopReason, str] = {
    "end": "stop",
    "tools": "tool_calls",
    "length": "length",
    "refused": "content_filter",
    "window": "length",
}
_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def openai_error_body(fail: Fail) -> JsonValue:
    """Return the body of an error, with the defaults of the provider for fields that `fail` does not set."""
    if fail.body is not None:
        return fail.body
    kind = "server_error" if fail.status >= 500 else _ERROR_TYPES.get(fail.status, "invalid_request_error")
    return {"error": {"message": fail.message, "type": fail.type or kind, "param": fail.param, "code": fail.code}}


def _read_request(body: RequestBody) -> ParsedRequest:
    tools = [require_object(tool.get("function"), "tools.function") for tool in read_tools(body)]
    response_format = read_optional_record(body, "response_format", "request") or {}
    json_schema = read_optional_record(response_format, "json_schema", "response_format") or {}
    return ParsedRequest(
        messages=tuple(from_openai(body.get("messages"))),
        tools=tuple(read_tool(tool, parameters="parameters", path="tools.function") for tool in tools),
        schema=read_optional_record(json_schema, "schema", "json_schema"),
    )


def _write_reply(answer: ScriptedReply, body: RequestBody) -> JsonValue:
    message: dict[str, JsonValue] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_call_record(answer, index) for index in range(len(answer.calls))]
    choice: JsonValue = {
        "index": 0,
        "message": message,
        "finish_reason": _FINISH_REASONS[answer.stop],
        "logprobs": None,
    }
    return {**_reply_head(answer, body, "chat.completion"), "choices": [choice], "usage": _usage_record(answer.usage)}


def _write_frames(answer: ScriptedReply, body: RequestBody) -> list[EventFrame]:
    def chunk(delta: JsonValue, *, finish: str | None = None, is_content: bool = False) -> EventFrame:
        choice: JsonValue = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return make_event_frame({**head, "choices": [choice]}, is_content=is_content)

    head = _reply_head(answer, body, "chat.completion.chunk")
    thoughts: list[JsonValue] = [{"reasoning_content": piece} for piece in split_pieces(answer.thinking)]
    text_deltas: list[JsonValue] = [{"content": piece} for piece in split_pieces(answer.text or "")]
    called = (delta for index in range(len(answer.calls)) for delta in _call_deltas(answer, index))
    calls: list[JsonValue] = [{"tool_calls": [delta]} for delta in called]
    opening = chunk({"role": "assistant", "content": None if answer.text is None else ""})
    content = [chunk(delta, is_content=True) for delta in (*thoughts, *text_deltas, *calls)]
    options = read_optional_record(body, "stream_options", "request") or {}
    usage = (
        [make_event_frame({**head, "choices": [], "usage": _usage_record(answer.usage)})]
        if options.get("include_usage")
        else []
    )
    return [
        opening,
        *content,
        chunk({}, finish=_FINISH_REASONS[answer.stop]),
        *usage,
        EventFrame(text="data: [DONE]\n\n"),
    ]


def _reply_head(answer: ScriptedReply, body: RequestBody, kind: str) -> dict[str, JsonValue]:
    return {"id": f"chatcmpl-{answer.number}", "object": kind, "created": 0, "model": body.get("model")}


def _call_record(answer: ScriptedReply, index: int) -> JsonValue:
    call = answer.calls[index]
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _call_deltas(answer: ScriptedReply, index: int) -> list[JsonValue]:
    call = answer.calls[index]
    opening: JsonValue = {
        "index": index,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    argument_deltas: list[JsonValue] = [
        {"index": index, "function": {"arguments": piece}} for piece in split_pieces(call.arguments)
    ]
    return [opening, *argument_deltas]


def _usage_record(usage: Usage) -> JsonValue:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
    }


OPENAI_CHAT = WireProtocol(
    read=_read_request,
    whole=_write_reply,
    frames=_write_frames,
    error=openai_error_body,
    error_frame=lambda fail: make_event_frame(openai_error_body(fail)),
)
"""The path `/v1/chat/completions`."""


_WORD = lazy_compile(r"\w+")


def hash_to_vector(text: str, dimension: int) -> list[float]:
    """Return a vector of length 1 that depends only on the words of `text`, not on their case or order."""
    vector = [0.0] * dimension
    for word in _WORD.findall(text.casefold()) or [""]:
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[int.from_bytes(digest[:8], "big") % dimension] += 1.0
    norm = math.sqrt(sum(value * value for value in vector))
    return [value / norm for value in vector]


def embeddings_protocol(dimension: int) -> WireProtocol:
    """Return the path `/v1/embeddings`, with vectors of `dimension` numbers unless a request sets another length."""
    return WireProtocol(
        read=_read_embedding_request,
        whole=lambda _, body: _write_embeddings(body, dimension),
        frames=lambda _answer, _body: [],
        error=openai_error_body,
        error_frame=lambda fail: make_event_frame(openai_error_body(fail)),
    )


def _read_embedding_request(body: RequestBody) -> ParsedRequest:
    _read_texts(body.get("input"))
    return ParsedRequest()


def _write_embeddings(body: RequestBody, dimension: int) -> JsonValue:
    texts = _read_texts(body.get("input"))
    requested = body.get("dimensions")
    vector_dimension = dimension if requested is None else require_integer(requested, "dimensions")
    is_packed = body.get("encoding_format") == "base64"
    data: list[JsonValue] = []
    for index, text in enumerate(texts):
        vector = hash_to_vector(text, vector_dimension)
        data.append(
            {"object": "embedding", "index": index, "embedding": _pack_base64(vector) if is_packed else [*vector]}
        )
    token_count = sum(len(_WORD.findall(text)) for text in texts)
    return {
        "object": "list",
        "data": data,
        "model": body.get("model"),
        "usage": {"prompt_tokens": token_count, "total_tokens": token_count},
    }


def _read_texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidMessage("input: a string or a list of strings is needed.")
    return [item for item in value if isinstance(item, str)]


def _pack_base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
