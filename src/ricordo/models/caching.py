"""Prompt caching: what a provider is told so that it keeps the beginning of a conversation and reads it for less.

Anthropic keeps what stands before a breakpoint that the request sets, four of them at most: one after the tools, one
after the system prompt, and one after the newest message, which moves on with each request. A reminder is part of one
request alone, so that one stands before it: nobody reads what is kept behind it. OpenAI keeps beginnings by itself; a
key lets requests with one beginning come to one machine. Other servers are told nothing they might refuse.

Invariant: what is set depends on the request alone, and no key says whose it is.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from ricordo.messages import Message, ToolSpec, Unknown, get_mark

__all__ = ["CachingMode", "cache_key", "cache_settings", "choose_caching", "with_breakpoint"]

CachingMode: TypeAlias = Literal["none", "breakpoints", "key"]
"""How a provider is told what to keep: not at all, by Anthropic's breakpoints, or by OpenAI's key."""

_OPENAI_HOST = "api.openai.com"
_KEY_BYTES = 16
_CACHE_POINT = Message(role="user", parts=(Unknown(kind="pydantic-ai:cache-point", raw='{"kind":"cache-point"}'),))


def choose_caching(model: Model) -> CachingMode:
    """Return what this model's provider takes; a key goes to OpenAI's own servers, as others may refuse the field."""
    if model.system == "anthropic":
        return "breakpoints"
    is_openai = model.system == "openai" and urlsplit(model.base_url or "").hostname == _OPENAI_HOST
    return "key" if is_openai else "none"


def cache_settings(
    caching: CachingMode, model: str, messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> ModelSettings:
    """Return pydantic-ai's settings for one request; none where nothing is to be kept.

    A single question, without tools and without a reply, gets no breakpoint after its message: nobody goes on from it,
    and Anthropic charges a quarter more for what it is asked to keep.
    """
    match caching:
        case "breakpoints":
            settings: dict[str, object] = {
                "anthropic_cache_tool_definitions": True,
                "anthropic_cache_instructions": True,
                "anthropic_cache_messages": _is_ongoing(messages, tools) and not _ends_with_reminder(messages),
            }
        case "key":
            key = cache_key(model, messages)
            settings = {"openai_prompt_cache_key": key} if key else {}
        case "none":
            settings = {}
    # the settings of single providers stand in their own modules, which load their packages
    return cast("ModelSettings", settings)


def with_breakpoint(caching: CachingMode, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Sequence[Message]:
    """Return `messages` with what pydantic-ai takes for a breakpoint, where `cache_settings` asks for none of its own.

    It stands after the newest message of a user or a tool before the reminder: what an assistant said last, which
    happens only in a record, may end in thoughts, which can't bear one.
    """
    if caching != "breakpoints" or not (_is_ongoing(messages, tools) and _ends_with_reminder(messages)):
        return messages
    for at in reversed(range(len(messages) - 1)):
        message = messages[at]
        if message.tool_results or (message.role == "user" and message.text.strip()):
            return (*messages[: at + 1], _CACHE_POINT, *messages[at + 1 :])
    return messages


def _is_ongoing(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bool:
    return bool(tools) or any(message.role == "assistant" for message in messages)


def _ends_with_reminder(messages: Sequence[Message]) -> bool:
    return bool(messages) and get_mark(messages[-1]) == "reminder"


def cache_key(model: str, messages: Sequence[Message]) -> str:
    """Return 32 hex digits for the model and its system prompt; empty without a system prompt."""
    system = "\n\n".join(message.text for message in messages if message.role == "system")
    text = f"{model}\0{system}".encode("utf-8", "replace")
    return blake2b(text, digest_size=_KEY_BYTES).hexdigest() if system else ""
