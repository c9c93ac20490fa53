"""Detects the shape of a JSON value in a history: message, conversation, dialogue, transcript row, or unknown."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.importers.chatgpt import is_chatgpt, read_branch
from ricordo.messages.importers.records import (
    CONTENT_KEYS,
    MESSAGE_LISTS,
    SESSION_KEYS,
    first_value,
    read_identifier,
    read_role,
)
from ricordo.messages.types import JsonValue

__all__ = [
    "SUPPORTED_FORMATS",
    "HistoryShape",
    "MessageList",
    "NumberedDialogue",
    "SingleMessage",
    "UnknownShape",
    "find_shapes",
    "is_claude_code",
    "read_session",
]


SUPPORTED_FORMATS = (
    "Understood are: a list of messages with role and content; an object with messages, chat_messages, conversation, "
    "conversations, history or turns; JSON lines of messages or of conversations; ChatGPT's "
    "conversations.json; a Claude Code transcript; a Codex rollout; a dialogue with "
    "speaker_a and session_1. LangChain's messages_to_dict is not read yet."
)
_NESTED_LISTS = 3
_DIALOGUE_SESSION = lazy_compile(r"session_\d{1,6}", re.ASCII)
_CLAUDE_CODE_TYPES = frozenset({"user", "assistant", "system", "attachment"})
_OTHER_CONTENT = ("tool_calls", "function_call", "thinking")


@dataclass(frozen=True, kw_only=True)
class SingleMessage:
    """One message on its own; `session` is the id it names, None if it names none."""

    record: dict[str, JsonValue]
    session: str | None


@dataclass(frozen=True, kw_only=True)
class MessageList:
    """A list of messages and the id of their session, None if there is none."""

    messages: Sequence[JsonValue]
    session: str | None


@dataclass(frozen=True, kw_only=True)
class NumberedDialogue:
    """A dialogue of two people in numbered sessions; `sample` is its id, None if it has none."""

    record: Mapping[str, JsonValue]
    sample: str | None


@dataclass(frozen=True, kw_only=True)
class UnknownShape:
    """Valid JSON that is not a part of a conversation."""


HistoryShape: TypeAlias = SingleMessage | MessageList | NumberedDialogue | UnknownShape


def is_claude_code(value: JsonValue) -> bool:
    """Return whether `value` is a row of a Claude Code transcript, linked into its chain of rows."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("uuid"), str)
        and "parentUuid" in value
        and value.get("type") in _CLAUDE_CODE_TYPES
    )


def read_session(value: JsonValue) -> str | None:
    """Return the id of the session that a record names; None if it names none."""
    return read_identifier(first_value(value, SESSION_KEYS)) if isinstance(value, dict) else None


def find_shapes(value: JsonValue, depth: int = 0) -> list[HistoryShape]:
    """Return the shapes in `value`, in order; empty for an empty list."""
    if isinstance(value, list):
        return _find_in_list(value, depth)
    if not isinstance(value, dict):
        return [UnknownShape()]
    if _is_message(value):
        return [SingleMessage(record=value, session=read_session(value))]
    return _find_in_object(value)


def _find_in_list(values: list[JsonValue], depth: int) -> list[HistoryShape]:
    if any(isinstance(value, dict) and _is_message(value) for value in values):
        return [MessageList(messages=values, session=None)]
    if depth == _NESTED_LISTS:
        return [UnknownShape()]
    return [shape for value in values for shape in find_shapes(value, depth + 1)]


def _find_in_object(value: dict[str, JsonValue]) -> list[HistoryShape]:
    inner = value.get("conversation")
    if isinstance(inner, dict) and _is_dialogue(inner):
        return [NumberedDialogue(record=inner, sample=read_identifier(first_value(value, ("sample_id", "id"))))]
    if _is_dialogue(value):
        return [NumberedDialogue(record=value, sample=read_identifier(first_value(value, ("sample_id", "id"))))]
    session = read_identifier(first_value(value, (*SESSION_KEYS, "id", "uuid")))
    if is_chatgpt(value):
        return [MessageList(messages=read_branch(value), session=session)]
    candidates = (value.get(key) for key in MESSAGE_LISTS)
    messages = next((items for items in candidates if isinstance(items, list)), None)
    return [UnknownShape()] if messages is None else [MessageList(messages=messages, session=session)]


def _is_dialogue(value: Mapping[str, JsonValue]) -> bool:
    return isinstance(value.get("speaker_a"), str) and any(_DIALOGUE_SESSION.fullmatch(key) for key in value)


def _is_message(value: Mapping[str, JsonValue]) -> bool:
    return read_role(value) is not None and any(key in value for key in (*CONTENT_KEYS, *_OTHER_CONTENT))
