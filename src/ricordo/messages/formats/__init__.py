"""Conversion of conversations to and from the formats of other libraries."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.messages.formats.anthropic import AnthropicPrompt, from_anthropic, to_anthropic
    from ricordo.messages.formats.openai import from_openai, to_openai
    from ricordo.messages.formats.openai_responses import from_openai_responses, to_openai_responses
    from ricordo.messages.formats.pydantic_ai import from_pydantic_ai, to_pydantic_ai

__all__ = [
    "AnthropicPrompt",
    "from_anthropic",
    "from_openai",
    "from_openai_responses",
    "from_pydantic_ai",
    "to_anthropic",
    "to_openai",
    "to_openai_responses",
    "to_pydantic_ai",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".anthropic": "AnthropicPrompt from_anthropic to_anthropic",
        ".openai": "from_openai to_openai",
        ".openai_responses": "from_openai_responses to_openai_responses",
        ".pydantic_ai": "from_pydantic_ai to_pydantic_ai",
    },
)
