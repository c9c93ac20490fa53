"""Ready-made errors in the shapes of the providers, so that what handles them is tested against the real thing."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from ricordo.testing.script import Fail

__all__ = ["OverflowShape", "overflow", "overloaded_error", "rate_limit_error", "server_error"]

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
    """Return the error with which a provider refuses a request of `size` tokens in a window of `window` tokens.

    The fields `window` and `size` of the result are those that the message names; several providers name none. Some
    servers shorten the prompt silently instead: that is a good reply whose usage is small.
    """
    return replace(_OVERFLOW_SHAPES[shape](window, size), overflow=True, in_stream=in_stream)


def rate_limit_error(retry_after: float | None = None) -> Fail:
    """Return the error of a provider that asks to wait `retry_after` seconds, or does not say how long."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    message = "Rate limit reached: too many tokens per minute."
    return Fail(429, message, code="rate_limit_exceeded", headers=headers)


def server_error(status: int = 500) -> Fail:
    """Return the error of a provider that has failed."""
    return Fail(status, "The server had an error.")


def overloaded_error(*, in_stream: bool = False) -> Fail:
    """Return the error of a provider with too much to do, which often comes in the middle of a stream."""
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
