"""Detects the shape of a JSON value in a history: message, conversation, dialogue, transcript row, or unknown.

ChatGPT's own export has conversations whose messages are the nodes of a tree. What counts is the branch that was open
last; without that mark, the branch with the newest message. Hidden messages, thoughts and settings are left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ricordo.lazy import dataclass, lazy_compile
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
_CLAUDE_CODE_TYPES = ("user", "assistant", "system", "attachment")
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
    if _is_chatgpt(value):
        return [MessageList(messages=_read_branch(value), session=session)]
    candidates = (value.get(key) for key in MESSAGE_LISTS)
    messages = next((items for items in candidates if isinstance(items, list)), None)
    return [UnknownShape()] if messages is None else [MessageList(messages=messages, session=session)]


def _is_dialogue(value: Mapping[str, JsonValue]) -> bool:
    return isinstance(value.get("speaker_a"), str) and any(_DIALOGUE_SESSION.fullmatch(key) for key in value)


def _is_message(value: Mapping[str, JsonValue]) -> bool:
    return read_role(value) is not None and any(key in value for key in (*CONTENT_KEYS, *_OTHER_CONTENT))


_HIDDEN_TYPES = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})
_EVERYBODY = ("all", None)


def _is_chatgpt(value: Mapping[str, JsonValue]) -> bool:
    """Tell whether `value` is a conversation of an export: an object with a tree of nodes under `mapping`."""
    nodes = value.get("mapping")
    return isinstance(nodes, dict) and any(isinstance(each, dict) and "message" in each for each in nodes.values())


def _read_branch(conversation: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the messages of the branch that counts, first to last, with role, content, time and id of their own."""
    mapping = conversation.get("mapping")
    nodes = {
        name: node for name, node in (mapping if isinstance(mapping, dict) else {}).items() if isinstance(node, dict)
    }
    node_id = read_identifier(conversation.get("current_node"))
    if node_id not in nodes:
        node_id = max(_find_leaves(nodes), key=lambda name: _node_time(nodes[name]), default=None)
    branch: dict[str, JsonValue] = {}
    while node_id is not None and node_id in nodes and node_id not in branch:
        branch[node_id] = nodes[node_id].get("message")
        node_id = read_identifier(nodes[node_id].get("parent"))
    return [message for each in reversed(branch.values()) for message in _read_messages(each)]


def _find_leaves(nodes: Mapping[str, dict[str, JsonValue]]) -> list[str]:
    parents = {read_identifier(node.get("parent")) for node in nodes.values()}
    # a tree that is damaged to a ring has no leaf
    return [name for name in nodes if name not in parents] or list(nodes)


def _node_time(node: Mapping[str, JsonValue]) -> float:
    message = node.get("message")
    time = message.get("create_time") if isinstance(message, dict) else None
    return float(time) if isinstance(time, int | float) else 0.0


def _read_messages(message: JsonValue) -> Iterator[JsonValue]:
    if message is None:
        return
    if not isinstance(message, dict):
        yield message
        return
    author, content, metadata = message.get("author"), message.get("content"), message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    if hidden or (isinstance(content, dict) and content.get("content_type") in _HIDDEN_TYPES):
        return
    parts = list(_read_parts(content)) if isinstance(content, dict) else content
    if parts == []:
        return
    author_fields = author if isinstance(author, dict) else {}
    plain = {"id": message.get("id"), "role": author_fields.get("role"), "time": message.get("create_time")}
    if author_fields.get("role") == "tool":
        yield {**plain, "name": author_fields.get("name"), "content": parts}
    elif message.get("recipient") in _EVERYBODY:
        yield {**plain, "content": parts}
    else:
        yield {**plain, "tool_calls": [{"name": message.get("recipient"), "arguments": {"content": parts}}]}


def _read_parts(content: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Give the texts and pictures of a message; a text that is empty is none."""
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content.get("text"), content.get("result")]:
        if isinstance(part, str) and part.strip():
            yield {"type": "text", "text": part}
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield {"type": "text", "text": part["text"]}
        elif isinstance(part, dict) and isinstance(part.get("asset_pointer"), str):
            yield {"type": "image_url", "image_url": {"url": part["asset_pointer"]}}
