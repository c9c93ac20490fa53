"""Small exports of other programs in their own forms, made from plain texts; each is valid, and the same every time."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

__all__ = [
    "NOON",
    "bio_note",
    "chatgpt_conversation",
    "chatgpt_node",
    "claude_conversation",
    "claude_files",
    "langchain_dict",
    "langchain_dumped",
    "mem0_memory",
    "mem0_page",
    "memory_graph",
    "saved_memories",
    "write_zip",
]

NOON = datetime(2025, 3, 9, 12, tzinfo=UTC)


def chatgpt_node(
    name: str, parent: str | None, content: Any, role: str = "user", minute: int = 0, **more: Any
) -> dict[str, Any]:
    """Return a node; a text as content stands for one text part."""
    parts = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    message: dict[str, Any] = {
        "id": f"m-{name}",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": (NOON + timedelta(minutes=minute)).timestamp(),
        "content": parts,
        "status": "finished_successfully",
        "weight": 1.0,
        "recipient": "all",
        "metadata": {},
    }
    return {"id": name, "parent": parent, "children": [], "message": {**message, **more}}


def chatgpt_conversation(*nodes: Mapping[str, Any], current: str | None = None, name: str = "c-1", **more: Any) -> Any:
    """Return a conversation of these nodes below the root; the last one is open unless `current` names another."""
    root: dict[str, Any] = {"id": "root", "parent": None, "children": [], "message": None}
    return {
        "title": "Ports",
        "create_time": NOON.timestamp(),
        "mapping": {node["id"]: node for node in (root, *nodes)},
        "current_node": current or (nodes[-1]["id"] if nodes else "root"),
        "conversation_id": name,
        "id": name,
        **more,
    }


def bio_note(name: str, parent: str, text: str, minute: int = 0) -> dict[str, Any]:
    """Return the node of a message that saves memories."""
    return chatgpt_node(name, parent, text, "assistant", minute, recipient="bio")


def saved_memories(name: str, parent: str, *texts: str, day: str = "2024-12-05") -> dict[str, Any]:
    """Return the node by which a model is shown the saved memories."""
    listed = "\n".join(f"{number}. [{day}]. {text}" for number, text in enumerate(texts, 1))
    content = {"content_type": "model_editable_context", "model_set_context": f"# Model Set Context\n\n{listed}"}
    return chatgpt_node(name, parent, content, "assistant")


def claude_conversation(
    *texts: str, name: str = "7c0f", parents: Sequence[int | None] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a conversation in which the human and the assistant speak in turn.

    With `parents` each message names the one before it by its place, None for the first one of a branch.
    """
    messages = []
    for at, text in enumerate(texts):
        time = (NOON + timedelta(minutes=at)).isoformat()
        message: dict[str, Any] = {
            "uuid": f"{name}-{at}",
            "text": text,
            "content": [{"start_timestamp": time, "stop_timestamp": time, "type": "text", "text": text}],
            "sender": "human" if at % 2 == 0 else "assistant",
            "created_at": time,
            "updated_at": time,
            "attachments": [],
            "files": [],
        }
        if parents is not None:
            before = parents[at]
            message["parent_message_uuid"] = "0" * 8 if before is None else f"{name}-{before}"
        messages.append(message)
    return {
        "uuid": name,
        "name": "The lathe",
        "summary": "",
        "created_at": NOON.isoformat(),
        "updated_at": NOON.isoformat(),
        "account": {"uuid": "acc-1"},
        "chat_messages": messages,
        **more,
    }


def claude_files(memory: str = "", project_memory: str = "") -> dict[str, Any]:
    """Return the files of an export by their names."""
    return {
        "users.json": [
            {
                "uuid": "acc-1",
                "full_name": "Ada Lovelace",
                "email_address": "ada@example.org",
                "verified_phone_number": None,
            }
        ],
        "conversations.json": [claude_conversation("How do I oil the lathe?", "With a drop on each bearing.")],
        "memories.json": [
            {
                "conversations_memory": memory,
                "project_memories": {"p-1": project_memory} if project_memory else {},
                "account_uuid": "acc-1",
            }
        ],
        "projects.json": [
            {
                "uuid": "p-1",
                "name": "Workshop",
                "description": "Tables and chairs",
                "is_private": True,
                "is_starter_project": False,
                "prompt_template": "Measures are in millimetres.",
                "created_at": NOON.isoformat(),
                "updated_at": NOON.isoformat(),
                "creator": {"uuid": "acc-1", "full_name": "Ada Lovelace"},
                "docs": [
                    {"uuid": "d-1", "filename": "wood.md", "content": "Oak is hard.", "created_at": NOON.isoformat()}
                ],
            },
            {"uuid": "p-0", "name": "How to use Claude", "is_starter_project": True, "prompt_template": "", "docs": []},
        ],
    }


def mem0_memory(text: str, name: str = "id-1", **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "memory": text,
        "hash": "9c1e",
        "metadata": {"category": "tools"},
        "created_at": (NOON - timedelta(days=2)).isoformat(),
        "updated_at": NOON.isoformat(),
        "user_id": "ada",
        **more,
    }


def mem0_page(*texts: str, **more: Any) -> dict[str, Any]:
    return {"results": [mem0_memory(text, f"id-{number}") for number, text in enumerate(texts)], **more}


def memory_graph() -> list[dict[str, Any]]:
    """Return the lines of a knowledge graph."""
    return [
        {
            "type": "entity",
            "name": "Ada_Lovelace",
            "entityType": "person",
            "observations": ["Likes oak", "Ada_Lovelace lives in Ghent"],
        },
        {"type": "entity", "name": "Workshop", "entityType": "place", "observations": []},
        {"type": "relation", "from": "Ada_Lovelace", "to": "Workshop", "relationType": "works_in"},
    ]


_TYPES = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}


def langchain_dict(role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message as `messages_to_dict` writes it."""
    kind = _TYPES[role]
    fields = {
        "content": content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
        "name": None,
        "id": None,
    }
    return {"type": kind, "data": {**fields, **more}}


def langchain_dumped(role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message as `dumpd` writes it."""
    kind = _TYPES[role]
    name = {"ai": "AIMessage"}.get(kind, f"{kind.capitalize()}Message")
    kwargs = {"content": content, "type": kind, **more}
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


def write_zip(path: Path, files: Mapping[str, Any]) -> Path:
    """Write files into an archive; what is no text or bytes is written as JSON."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path
