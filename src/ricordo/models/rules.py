"""What a provider takes in a request: the limits of each protocol, as its documentation and its servers state them."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

__all__ = ["ANTHROPIC", "CHAT_COMPLETIONS", "OTHER", "RESPONSES", "Protocol", "RequestRules", "rules_of"]

Protocol: TypeAlias = Literal["chat", "responses", "anthropic", "other"]

_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


@dataclass(frozen=True, kw_only=True)
class RequestRules:
    """The limits of one protocol.

    `longest_name` and `longest_id` are in characters, of the name of a tool and of the id of a call. `most_messages`
    is how many messages a request may have, None for no limit that is known; the protocol `responses` counts each
    text, call, thought and result as one. `user_last` says that a request may not end with the assistant.
    `reply_tokens` is how long a reply is asked for at most where nobody says, None where the protocol needs no number.
    `takes_thoughts` says that the model reads its earlier thoughts; in chat completions they
    stand in one of `thought_fields`.
    `inside` are the media types that a request may hold in itself, `fetched` those that may stand at a URL: a type, or
    all of a family such as `image`.
    """

    protocol: Protocol
    longest_name: int = 64
    longest_id: int = 40
    most_messages: int | None = None
    user_last: bool = False
    reply_tokens: int | None = None
    takes_thoughts: bool = True
    thought_fields: frozenset[str] = frozenset({"reasoning", "reasoning_content"})
    inside: frozenset[str] = _PICTURES | {"application/pdf"}
    fetched: frozenset[str] = frozenset({"image", "application/pdf"})


CHAT_COMPLETIONS = RequestRules(
    protocol="chat",
    most_messages=2_048,
    inside=_PICTURES | {"application/pdf", "audio/wav", "audio/mpeg"},
)
"""OpenAI's chat completions, and every server that is compatible with them."""

RESPONSES = RequestRules(protocol="responses", most_messages=2_048)
"""OpenAI's responses."""

ANTHROPIC = RequestRules(
    protocol="anthropic",
    longest_name=128,
    longest_id=64,
    most_messages=100_000,
    user_last=True,
    reply_tokens=16_384,
)
"""Anthropic's messages."""

OTHER = RequestRules(protocol="other")
"""A provider without rules of its own here: the strictest of what the others ask for, without a count."""


def rules_of(model: object) -> RequestRules:
    """Return the rules of the protocol in which a model of pydantic-ai is asked."""
    names = {kind.__name__ for kind in type(model).__mro__}
    if "AnthropicModel" in names:
        return ANTHROPIC
    profile = getattr(model, "profile", {})
    if "OpenAIResponsesModel" in names:
        return replace(RESPONSES, takes_thoughts=bool(profile.get("openai_supports_encrypted_reasoning_content")))
    if "OpenAIChatModel" not in names:
        return OTHER
    own = profile.get("openai_chat_thinking_field")
    takes = profile.get("openai_chat_send_back_thinking_parts", "auto") in ("auto", "field")
    fields = frozenset({own}) if own else CHAT_COMPLETIONS.thought_fields
    return replace(CHAT_COMPLETIONS, takes_thoughts=takes, thought_fields=fields)
