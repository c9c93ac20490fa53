"""What a provider takes in a request: the limits of each protocol, as its documentation and its servers state them."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

__all__ = [
    "ANTHROPIC",
    "CHAT_COMPLETIONS",
    "OTHER_PROTOCOL",
    "RESPONSES",
    "RequestProtocol",
    "RequestRules",
    "select_rules",
]

RequestProtocol: TypeAlias = Literal["chat", "responses", "anthropic", "other"]

_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


@dataclass(frozen=True, kw_only=True)
class RequestRules:
    """The limits of one protocol.

    `max_name_length` and `max_id_length` are in characters, of the name of a tool and of the id of a call. `max_messages`
    is how many messages a request may have, None for no limit that is known; the protocol `responses` counts each
    text, call, thought and result as one. `user_last` says that a request may not end with the assistant.
    `reply_tokens` is how long a reply is asked for at most where nobody says, None where the protocol needs no number.
    `accepts_thinking` says that the model reads its earlier thoughts; in chat completions they
    stand in one of `thinking_fields`.
    `inline_types` are the media types that a request may hold in itself, `url_types` those that may stand at a URL: a type, or
    all of a family such as `image`.
    """

    protocol: RequestProtocol
    max_name_length: int = 64
    max_id_length: int = 40
    max_messages: int | None = None
    user_last: bool = False
    reply_tokens: int | None = None
    accepts_thinking: bool = True
    thinking_fields: frozenset[str] = frozenset({"reasoning", "reasoning_content"})
    inline_types: frozenset[str] = _IMAGE_TYPES | {"application/pdf"}
    url_types: frozenset[str] = frozenset({"image", "application/pdf"})


CHAT_COMPLETIONS = RequestRules(
    protocol="chat",
    max_messages=2_048,
    inline_types=_IMAGE_TYPES | {"application/pdf", "audio/wav", "audio/mpeg"},
)
"""OpenAI's chat completions, and every server that is compatible with them."""

RESPONSES = RequestRules(protocol="responses", max_messages=2_048)
"""OpenAI's responses."""

ANTHROPIC = RequestRules(
    protocol="anthropic",
    max_name_length=128,
    max_id_length=64,
    max_messages=100_000,
    user_last=True,
    reply_tokens=16_384,
)
"""Anthropic's messages."""

OTHER_PROTOCOL = RequestRules(protocol="other")
"""A provider without rules of its own here: the strictest of what the others ask for, without a count."""


def select_rules(model: object) -> RequestRules:
    """Return the rules of the protocol in which a model of pydantic-ai is asked."""
    names = {kind.__name__ for kind in type(model).__mro__}
    if "AnthropicModel" in names:
        return ANTHROPIC
    profile = getattr(model, "profile", {})
    if "OpenAIResponsesModel" in names:
        return replace(RESPONSES, accepts_thinking=bool(profile.get("openai_supports_encrypted_reasoning_content")))
    if "OpenAIChatModel" not in names:
        return OTHER_PROTOCOL
    own = profile.get("openai_chat_thinking_field")
    takes = profile.get("openai_chat_send_back_thinking_parts", "auto") in ("auto", "field")
    fields = frozenset({own}) if own else CHAT_COMPLETIONS.thinking_fields
    return replace(CHAT_COMPLETIONS, accepts_thinking=takes, thinking_fields=fields)
