"""ChatGPT's own export: conversations whose messages are the nodes of a tree.

What counts is the branch that was open last; without that mark, the branch with the newest message. Hidden messages,
thoughts and settings are left out.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ricordo.errors import InvalidMessage
from ricordo.importers.chat_message import read_chat_message
from ricordo.importers.contract import ImportedMessage
from ricordo.importers.fields import SESSION_KEYS, first_value, read_identifier
from ricordo.importers.sessions import SessionNames
from ricordo.importers.source import ImportSource
from ricordo.messages.types import JsonValue

__all__ = ["read", "recognizes"]


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a list of conversations as the export has them, or one of them."""
    return any(_is_conversation(record.value) for record in source.first_records)


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give the messages of each conversation, first to last."""
    names = SessionNames(Path(source.filename).stem)
    for record in source.records():
        if not isinstance(record.value, dict) or not _is_conversation(record.value):
            source.report(record.line, "The record is no conversation.")
            continue
        session = read_identifier(first_value(record.value, (*SESSION_KEYS, "id", "uuid")))
        for value in _read_branch(record.value):
            try:
                message = read_chat_message(value)
            except InvalidMessage as error:
                source.report(record.line, str(error))
                continue
            session = session or names.derive(message)
            yield ImportedMessage(session=session, message=message, line=record.line)


_HIDDEN_TYPES = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})
_EVERYBODY = ("all", None)


def _is_conversation(value: JsonValue) -> bool:
    """Tell whether `value` is a conversation of an export: an object with a tree of nodes under `mapping`."""
    nodes = value.get("mapping") if isinstance(value, dict) else None
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
