"""The settings of one request: prompt caching, thinking and temperature.

Anthropic caches everything before a breakpoint, with at most four breakpoints: after the tools, after the part of the
system prompt that all sessions share, and after the newest message that is not a reminder. OpenAI gets a key shared by
requests with the same beginning. Other servers get nothing that they might reject. Claude models before adaptive
thinking get a thinking budget smaller than the reply, and no temperature; they do not think if a reply with tool calls
lacks its own thinking.

Invariant: the settings depend on the request alone, and no key identifies a user.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Literal, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import Model
from pydantic_ai.profiles.anthropic import ANTHROPIC_THINKING_BUDGET_MAP
from pydantic_ai.settings import ModelSettings, ThinkingLevel

from ricordo.messages import Message, Text, Thinking, ToolSpec, Unknown, get_mark
from ricordo.messages.types import volatile_end

__all__ = [
    "CachingMode",
    "cache_key",
    "cache_settings",
    "choose_caching",
    "split_volatile_end",
    "thinking_settings",
    "with_breakpoint",
]


CachingMode: TypeAlias = Literal["none", "breakpoints", "key"]
"""How prompt caching is requested: not at all, by Anthropic's breakpoints, or by OpenAI's key."""
_OPENAI_HOST = "api.openai.com"
_KEY_BYTES = 16
_CACHE_POINT = Message(role="user", parts=(Unknown(kind="pydantic-ai:cache-point", raw='{"kind":"cache-point"}'),))


def choose_caching(model: Model) -> CachingMode:
    """Return the caching mode of this model. Only OpenAI's own servers get a key, as others may reject the field."""
    if model.system == "anthropic":
        return "breakpoints"
    is_openai = model.system == "openai" and urlsplit(model.base_url or "").hostname == _OPENAI_HOST
    return "key" if is_openai else "none"


def cache_settings(
    caching: CachingMode, model: str, messages: Sequence[Message], tools: Sequence[ToolSpec]
) -> ModelSettings:
    """Return pydantic-ai's settings for one request; empty if nothing is cached.

    A single question without tools and without a reply gets no breakpoint after its message: no later request continues
    it, and Anthropic charges a quarter more for cached input.
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
    # The settings of single providers are in their own modules, which import their packages.
    return cast("ModelSettings", settings)


def with_breakpoint(caching: CachingMode, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Sequence[Message]:
    """Return `messages` with pydantic-ai's cache point, where `cache_settings` sets no breakpoint for messages.

    The cache point follows the newest user or tool message before the reminder. A last assistant message, which occurs
    only in a transcript, may end in thinking, which cannot have a breakpoint.
    """
    if caching != "breakpoints" or not (_is_ongoing(messages, tools) and _ends_with_reminder(messages)):
        return messages
    for index in reversed(range(len(messages) - 1)):
        message = messages[index]
        if message.tool_results or (message.role == "user" and message.text.strip()):
            return (*messages[: index + 1], _CACHE_POINT, *messages[index + 1 :])
    return messages


def split_volatile_end(
    caching: CachingMode, messages: Sequence[Message], prepared: Sequence[Message]
) -> tuple[Sequence[Message], list[InstructionPart] | None]:
    """Return `prepared` without the volatile end of the system prompt, and that end, which follows the breakpoint.

    The prompt stays whole for providers without breakpoints, and if other system messages of `messages` follow it.
    """
    end = next((volatile_end(message) for message in messages if message.role == "system"), "")
    system = prepared[0].text
    stable = system.removesuffix(end).rstrip("\n")
    if caching != "breakpoints" or not end or not stable or not system.endswith(end):
        return prepared, None
    shortened = replace(prepared[0], parts=(Text(text=stable),))
    return (shortened, *prepared[1:]), [InstructionPart(content=end, dynamic=True)]


def _is_ongoing(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bool:
    return bool(tools) or any(message.role == "assistant" for message in messages)


def _ends_with_reminder(messages: Sequence[Message]) -> bool:
    return bool(messages) and get_mark(messages[-1]) == "reminder"


def cache_key(model: str, messages: Sequence[Message]) -> str:
    """Return 32 hex digits for the model and its system prompt; empty without a system prompt."""
    system = "\n\n".join(message.text for message in messages if message.role == "system")
    text = f"{model}\0{system}".encode("utf-8", "replace")
    return blake2b(text, digest_size=_KEY_BYTES).hexdigest() if system else ""


_MIN_BUDGET = 1_024


def thinking_settings(
    model: Model,
    messages: Sequence[Message],
    *,
    thinking: bool | str | None,
    temperature: float | None,
    limit: int | None,
) -> ModelSettings:
    """Return pydantic-ai's settings for a request with these messages and a reply of at most `limit` tokens."""
    settings: dict[str, object] = {}
    level = cast("ThinkingLevel | None", thinking)
    if level and model.system == "anthropic":
        budget = _thinking_budget(model, level)
        if budget is not None and limit is not None and limit <= budget:
            budget = limit // 2
            settings["anthropic_thinking"] = {"type": "enabled", "budget_tokens": budget}
        if budget is not None and (budget < _MIN_BUDGET or not _has_thinking_throughout(messages)):
            level, settings = None, {}
        else:
            temperature = None
    if level is not None:
        settings["thinking"] = level
    if temperature is not None:
        settings["temperature"] = temperature
    # The settings of single providers are in their own modules, which import their packages.
    return cast("ModelSettings", settings)


def _thinking_budget(model: Model, level: ThinkingLevel) -> int | None:
    """Return the thinking budget of a Claude model in tokens; None for a model that decides it itself."""
    is_adaptive = model.profile.get("anthropic_supports_adaptive_thinking", False)
    return None if is_adaptive else ANTHROPIC_THINKING_BUDGET_MAP[level]


def _has_thinking_throughout(messages: Sequence[Message]) -> bool:
    """Return whether each reply with tool calls since the last user message begins with thinking."""
    for message in reversed(messages):
        if message.role == "user":
            return True
        if message.tool_calls and not isinstance(message.parts[0], Thinking):
            return False
    return True
