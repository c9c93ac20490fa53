"""The items of a script, which say how a scripted model or server answers each request, and ready-made errors.

A script is a list that is played in order, one item for each request, or a function from the request to an item. The
same script works in process and over HTTP. `build_reply` fills in the ids, usage and finish reason that an item leaves
open.

Invariant: a script never restarts. A request after its last item is an error that names the request.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from typing import Literal, TypeAlias

from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue, Message, Part, Text, Thinking, ToolCall, ToolSpec, Usage
from ricordo.messages.tokens import cut_text, estimate_message, estimate_request
from ricordo.models import StopReason

__all__ = [
    "THINKING_SIGNATURE",
    "Call",
    "Calls",
    "Empty",
    "Fail",
    "Garbage",
    "HalfStream",
    "Hang",
    "Hold",
    "OverflowShape",
    "Playback",
    "PlayedItem",
    "RecordedRequest",
    "ReplyItem",
    "Respond",
    "Say",
    "ScriptItem",
    "ScriptLike",
    "ScriptUsedUp",
    "ScriptedReply",
    "build_reply",
    "overflow",
    "overloaded_error",
    "rate_limit_error",
    "server_error",
    "split_pieces",
]


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """One request to a model.

    `number` counts from 1. `messages` begin with the system messages. `path`, `headers` and `body` are the values that
    the server received, empty in process; header names are in lower case, and keys and cookies are replaced by `***`.
    `reply_limit` is the largest size of the reply in tokens; None if the request sets none.
    """

    number: int
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, JsonValue] | None = None
    streamed: bool = False
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    reply_limit: int | None = None


@dataclass(frozen=True)
class Say:
    """The model says `text`; for a request with a schema, `text` is JSON that should match it.

    `usage` is the usage that the provider reports, in tokens; None means an estimate.
    """

    text: str
    thinking: str = ""
    _: KW_ONLY
    usage: Usage | None = None
    stop: StopReason = "end"


@dataclass(frozen=True)
class Call:
    """The model calls a tool. A string as `arguments` is sent unchanged, valid JSON or not.

    An empty `id` becomes `call_<request>_<position>`, which is unique in the script.
    """

    name: str
    arguments: Mapping[str, JsonValue] | str = field(default_factory=dict)
    id: str = ""
    _: KW_ONLY
    usage: Usage | None = None


@dataclass(frozen=True, init=False)
class Calls:
    """The model says `text` and calls several tools at once; the usage of the single calls is ignored."""

    calls: tuple[Call, ...]
    text: str = ""
    thinking: str = ""
    usage: Usage | None = None

    def __init__(self, *calls: Call, text: str = "", thinking: str = "", usage: Usage | None = None) -> None:
        """Store the calls in their order."""
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "thinking", thinking)
        object.__setattr__(self, "usage", usage)


@dataclass(frozen=True, kw_only=True)
class Empty:
    """A valid reply without any content."""

    usage: Usage | None = None


ReplyItem: TypeAlias = Say | Call | Calls | Empty


@dataclass(frozen=True)
class Fail:
    """The provider answers with an error.

    `status` is the HTTP status. `type`, `code` and `param` are the fields of the provider's error; an empty `type` is
    derived from the status. `body` replaces the whole body. With `in_stream`, a streaming request gets status 200 and
    the error as an event of the stream. `overflow` means that the request was too large; `window` and `size`, in
    tokens, are the sizes in the message.
    """

    status: int
    message: str = "The provider failed."
    _: KW_ONLY
    type: str = ""
    code: str | int | None = None
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JsonValue = None
    in_stream: bool = False
    overflow: bool = False
    window: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Garbage:
    """A response of status 200 whose body is not JSON."""

    content: bytes = b"<html>not what you asked for"


@dataclass(frozen=True)
class Hang:
    """No response until the test releases it or the server stops; then the connection ends."""


@dataclass(frozen=True)
class HalfStream:
    """The connection ends after `after` pieces of the content; without streaming, in the middle of the body.

    With `clean` the stream ends properly, but without its closing event.
    """

    after: int
    reply: ReplyItem = field(default_factory=lambda: Say("This reply never comes to its end."))
    _: KW_ONLY
    clean: bool = False


@dataclass(frozen=True)
class Hold:
    """The reply is held back after its first piece, or as a whole without streaming, until the test releases it."""

    reply: ReplyItem


@dataclass(frozen=True)
class Respond:
    """A function computes the item from the request."""

    answer: "Callable[[RecordedRequest], ScriptItem]"


PlayedItem: TypeAlias = ReplyItem | Fail | Garbage | Hang | HalfStream | Hold
ScriptItem: TypeAlias = PlayedItem | Respond
ScriptLike: TypeAlias = Sequence[ScriptItem] | Callable[[RecordedRequest], ScriptItem]


class ScriptUsedUp(AssertionError):
    """A request came after the last item of the script."""


class Playback:
    """The position in a script; safe to use from several threads."""

    def __init__(self, script: ScriptLike) -> None:
        """Start at the first item."""
        self._script = script if callable(script) else tuple(script)
        self._position = 0
        self._lock = threading.Lock()

    def next_item(self, request: RecordedRequest) -> PlayedItem:
        """Return the item for `request`, after calling the function of a `Respond`.

        Raises: ScriptUsedUp if the script has no more items.
        """
        item = self._script(request) if callable(self._script) else self._take_item(self._script, request)
        while isinstance(item, Respond):
            item = item.answer(request)
        return item

    def _take_item(self, items: tuple[ScriptItem, ...], request: RecordedRequest) -> ScriptItem:
        with self._lock:
            if self._position == len(items):
                raise ScriptUsedUp(f"The script has {len(items)} items, and this is request {request.number}.")
            self._position += 1
            return items[self._position - 1]


OverflowShape = Literal[
    "openai-chat",
    "openai-responses",
    "anthropic",
    "anthropic-bytes",
    "gemini",
    "openrouter",
    "vllm",
    "llama.cpp",
    "ollama",
    "bedrock",
    "xai",
    "kimi",
    "lm-studio",
]


def overflow(shape: OverflowShape, *, window: int = 8_192, size: int = 9_000, in_stream: bool = False) -> Fail:
    """Return the error of a provider for a request of `size` tokens in a window of `window` tokens.

    The fields `window` and `size` of the result are the numbers in the message; several providers give none. Some
    servers silently shorten the prompt instead; script these as a normal reply with a small usage.
    """
    return replace(_OVERFLOW_SHAPES[shape](window, size), overflow=True, in_stream=in_stream)


def rate_limit_error(retry_after: float | None = None) -> Fail:
    """Return the error of a provider that asks to wait `retry_after` seconds; None means that it gives no time."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    message = "Rate limit reached: too many tokens per minute."
    return Fail(429, message, code="rate_limit_exceeded", headers=headers)


def server_error(status: int = 500) -> Fail:
    """Return the error of a provider that has failed."""
    return Fail(status, "The server had an error.")


def overloaded_error(*, in_stream: bool = False) -> Fail:
    """Return the error of an overloaded provider, which often arrives in the middle of a stream."""
    return Fail(529, "Overloaded", type="overloaded_error", in_stream=in_stream)


def _openai_chat(window: int, size: int) -> Fail:
    message = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens."
    )
    return Fail(400, message, code="context_length_exceeded", param="messages", window=window, size=size)


def _openai_responses(_window: int, _size: int) -> Fail:
    message = "Your input exceeds the context window of this model."
    return Fail(400, message, code="context_length_exceeded", param="input")


def _anthropic(window: int, size: int) -> Fail:
    return Fail(400, f"prompt is too long: {size} tokens > {window} maximum", window=window, size=size)


def _anthropic_bytes(_window: int, _size: int) -> Fail:
    return Fail(413, "Request exceeds the maximum size", type="request_too_large")


def _gemini(window: int, size: int) -> Fail:
    message = f"The input token count ({size}) exceeds the maximum number of tokens allowed ({window})."
    return Fail(
        400,
        message,
        body={"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}},
        window=window,
        size=size,
    )


def _openrouter(window: int, size: int) -> Fail:
    message = (
        f"This endpoint's maximum context length is {window} tokens. However, you requested about {size} tokens "
        f"({size} of text input)."
    )
    return Fail(400, message, body={"error": {"message": message, "code": 400}}, window=window, size=size)


def _vllm(window: int, size: int) -> Fail:
    message = f"This model's maximum context length is {window} tokens. However, your request has {size} input tokens."
    return Fail(400, message, type="BadRequestError", code=400, param="input_tokens", window=window, size=size)


def _llama_cpp(window: int, size: int) -> Fail:
    message = f"request ({size} tokens) exceeds the available context size ({window} tokens)"
    kind = "exceed_context_size_error"
    return Fail(
        400,
        message,
        type=kind,
        body={"error": {"code": 400, "message": message, "type": kind, "n_prompt_tokens": size, "n_ctx": window}},
        window=window,
        size=size,
    )


def _ollama(_window: int, _size: int) -> Fail:
    return Fail(400, "the input length exceeds the context length")


def _bedrock(_window: int, _size: int) -> Fail:
    return Fail(400, "Input is too long for requested model.")


def _xai(window: int, size: int) -> Fail:
    message = f"This model's maximum prompt length is {window} but the request contains {size} tokens."
    return Fail(400, message, window=window, size=size)


def _kimi(window: int, size: int) -> Fail:
    message = f"Your request exceeded model token limit: {window} (requested: {size})"
    return Fail(400, message, window=window, size=size)


def _lm_studio(_window: int, _size: int) -> Fail:
    return Fail(400, "The number of tokens to keep from the initial prompt is greater than the context length.")


_OVERFLOW_SHAPES: Mapping[OverflowShape, Callable[[int, int], Fail]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "anthropic-bytes": _anthropic_bytes,
    "gemini": _gemini,
    "openrouter": _openrouter,
    "vllm": _vllm,
    "llama.cpp": _llama_cpp,
    "ollama": _ollama,
    "bedrock": _bedrock,
    "xai": _xai,
    "kimi": _kimi,
    "lm-studio": _lm_studio,
}


THINKING_SIGNATURE = "c2NyaXB0ZWQ="
"""The signature of every scripted thinking part."""
_FRAME_TOKENS = 8
"""Tokens of a reply in addition to its text."""
_WORD = lazy_compile(r"\s*\S+\s*|\s+")


@dataclass(frozen=True, kw_only=True)
class ScriptedReply:
    """One reply. `text` is None if the reply has no text, which differs from the empty string."""

    number: int
    text: str | None
    thinking: str
    calls: tuple[ToolCall, ...]
    stop: StopReason
    usage: Usage

    @property
    def message(self) -> Message:
        """The reply as an assistant message."""
        return Message(role="assistant", parts=_message_parts(self.text, self.thinking, self.calls), usage=self.usage)


def build_reply(request: RecordedRequest, item: ReplyItem) -> ScriptedReply:
    """Fill in the values that `item` leaves open: ids from the number of the request, usage by an estimate."""
    text, thinking, calls = _item_content(item)
    stop: StopReason = item.stop if isinstance(item, Say) else "tools" if calls else "end"
    if request.reply_limit is not None and text and not calls and item.usage is None:
        full_text, text = text, cut_text(text, max(request.reply_limit - _FRAME_TOKENS, 1))
        stop = stop if text == full_text else "length"
    tool_calls = tuple(
        _build_tool_call(call, f"call_{request.number}_{index}") for index, call in enumerate(calls, start=1)
    )
    reply = Message(role="assistant", parts=_message_parts(text, thinking, tool_calls))
    usage = item.usage or Usage(
        input=estimate_request(request.messages, tools=request.tools).input, output=estimate_message(reply)
    )
    return ScriptedReply(number=request.number, text=text, thinking=thinking, calls=tool_calls, stop=stop, usage=usage)


def split_pieces(text: str) -> list[str]:
    """Split `text` like a stream: at words, a single word in two. The pieces join to the text, and none is empty."""
    words = _WORD.findall(text)
    if len(words) != 1 or len(text) < 2:
        return words
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def _item_content(item: ReplyItem) -> tuple[str | None, str, tuple[Call, ...]]:
    match item:
        case Say():
            return item.text, item.thinking, ()
        case Call():
            return None, "", (item,)
        case Calls():
            return item.text or None, item.thinking, item.calls
        case Empty():
            return None, "", ()


def _message_parts(text: str | None, thinking: str, calls: tuple[ToolCall, ...]) -> tuple[Part, ...]:
    thinking_parts = (Thinking(text=thinking, signature=THINKING_SIGNATURE),) if thinking else ()
    text_parts = () if text is None else (Text(text=text),)
    return (*thinking_parts, *text_parts, *calls)


def _build_tool_call(call: Call, default_id: str) -> ToolCall:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))
    return ToolCall(id=call.id or default_id, name=call.name, arguments=arguments)
