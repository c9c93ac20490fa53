"""What a provider is told of thinking and temperature in one request, so that it takes both. Pure.

Claude models before adaptive thinking are given a budget for it. It has to be smaller than the reply, no temperature
goes with it, and while tools are at work each reply that called them has to begin with its own thought: where one does
not, because another model made it or its seal is broken, they do not think in that request.
"""

from collections.abc import Sequence
from typing import cast

from pydantic_ai.models import Model
from pydantic_ai.profiles.anthropic import ANTHROPIC_THINKING_BUDGET_MAP
from pydantic_ai.settings import ModelSettings, ThinkingLevel

from ricordo.messages import Message, Thinking

__all__ = ["thinking_settings"]

_MIN_BUDGET = 1_024


def thinking_settings(
    model: Model,
    sent: Sequence[Message],
    *,
    thinking: bool | str | None,
    temperature: float | None,
    limit: int | None,
) -> ModelSettings:
    """Return pydantic-ai's settings for a request with these messages and a reply of at most `limit` tokens."""
    found: dict[str, object] = {}
    level = cast("ThinkingLevel | None", thinking)
    if level and model.system == "anthropic":
        budget = _thinking_budget(model, level)
        if budget is not None and limit is not None and limit <= budget:
            budget = limit // 2
            found["anthropic_thinking"] = {"type": "enabled", "budget_tokens": budget}
        if budget is not None and (budget < _MIN_BUDGET or not _has_thinking_throughout(sent)):
            level, found = None, {}
        else:
            temperature = None
    if level is not None:
        found["thinking"] = level
    if temperature is not None:
        found["temperature"] = temperature
    # the settings of single providers stand in their own modules, which load their packages
    return cast("ModelSettings", found)


def _thinking_budget(model: Model, level: ThinkingLevel) -> int | None:
    """Return the tokens that a Claude model is given for thinking; None for one that decides that itself."""
    is_adaptive = model.profile.get("anthropic_supports_adaptive_thinking", False)
    return None if is_adaptive else ANTHROPIC_THINKING_BUDGET_MAP[level]


def _has_thinking_throughout(sent: Sequence[Message]) -> bool:
    """Tell whether each reply that called tools since the user last spoke begins with a thought."""
    for message in reversed(sent):
        if message.role == "user":
            return True
        if message.tool_calls and not isinstance(message.parts[0], Thinking):
            return False
    return True
