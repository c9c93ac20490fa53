"""Messages that a host hides from people: its own words, unless a person answered in one.

A host marks them in the metadata (`hide_from_ui`, and what other hosts call it). A hidden message is kept when it
carries the answer of a person to a question of the assistant: `human_input_response`, version 1, with what was asked
(`source`, `request_id`), what was answered (`value`) and, for a choice, which one (`option_id`).
"""

from collections.abc import Mapping

from ricordo.flush.uploads import metadata_value
from ricordo.messages import JsonValue, Message

__all__ = ["is_clarification_answer", "is_hidden"]

_HIDDEN_FLAGS = ("hide_from_ui", "is_visually_hidden_from_conversation", "isMeta")
_CLARIFICATION_KEY = "human_input_response"


def is_hidden(message: Message) -> bool:
    """Say whether a message was hidden from people and carries no well-formed answer of one."""
    hidden = any(metadata_value(message.metadata, flag) is True for flag in _HIDDEN_FLAGS)
    return hidden and not (
        message.role == "user" and is_clarification_answer(metadata_value(message.metadata, _CLARIFICATION_KEY))
    )


def is_clarification_answer(payload: JsonValue) -> bool:
    """Say whether `payload` is a whole answer of a person to a clarifying question."""
    if not isinstance(payload, Mapping) or payload.get("kind") != _CLARIFICATION_KEY:
        return False
    version = payload.get("version")
    if isinstance(version, bool) or version != 1:
        return False
    needed = ["source", "request_id", "value"]
    response = payload.get("response_kind")
    if response not in {"text", "option"}:
        return False
    return all(_is_nonblank(payload.get(key)) for key in [*needed, *(["option_id"] if response == "option" else [])])


def _is_nonblank(value: JsonValue) -> bool:
    return isinstance(value, str) and bool(value.strip())
