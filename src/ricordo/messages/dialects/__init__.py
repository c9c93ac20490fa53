"""Conversations as other libraries write them, both ways."""

from ricordo.messages.dialects.anthropic import AnthropicPrompt, from_anthropic, to_anthropic
from ricordo.messages.dialects.openai import from_openai, to_openai
from ricordo.messages.dialects.pydantic_ai import from_pydantic_ai, to_pydantic_ai

__all__ = [
    "AnthropicPrompt",
    "from_anthropic",
    "from_openai",
    "from_pydantic_ai",
    "to_anthropic",
    "to_openai",
    "to_pydantic_ai",
]
