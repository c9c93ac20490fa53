"""What the fields of a message are called in different places: one table for each thing a message has.

Invariant: these readers never raise; what is missing or of the wrong type is None, and the caller decides what that
means.
"""

from collections.abc import Iterable, Mapping

from ricordo.messages.types import JsonValue, Role

__all__ = [
    "CONTENT_KEYS",
    "ID_KEYS",
    "MESSAGE_LISTS",
    "NAME_KEYS",
    "PARENT_KEYS",
    "ROLE_KEYS",
    "SESSION_KEYS",
    "TIME_KEYS",
    "first_value",
    "read_identifier",
    "read_role",
]

MESSAGE_LISTS = ("messages", "chat_messages", "conversation", "conversations", "history", "turns")
SESSION_KEYS = ("session", "session_id", "sessionId", "conversation_id", "conversationId", "thread_id")
ID_KEYS = ("id", "uuid", "message_id", "dia_id")
PARENT_KEYS = ("parent", "parent_id", "parent_uuid", "parent_message_uuid", "parent_message_id")
ROLE_KEYS = ("role", "sender", "from", "author", "speaker")
NAME_KEYS = ("name", "speaker", "sender_name", "username")
TIME_KEYS = ("time", "timestamp", "created_at", "create_time", "createdAt", "date", "datetime", "ts")
CONTENT_KEYS = ("content", "parts", "text", "value", "body", "message")

_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "customer": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}


def first_value(record: Mapping[str, JsonValue], keys: Iterable[str]) -> JsonValue:
    """Return the value of the first of `keys` that has one that is not null; None when there is none."""
    return next((record[key] for key in keys if record.get(key) is not None), None)


def read_identifier(value: JsonValue) -> str | None:
    """Return an id as text: a string that is not blank, or a whole number; None for anything else."""
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def read_role(record: Mapping[str, JsonValue]) -> tuple[Role, str | None] | None:
    """Return the role of a message and the speaker's name when the role was given as one; None when there is no role.

    Whoever speaks under a name of their own, and not under a role, is a person: their role is user.
    """
    for key in ROLE_KEYS:
        value = record.get(key)
        if isinstance(value, dict):
            value = value.get("role")
        if not isinstance(value, str) or not value.strip():
            continue
        known = _ROLES.get(value.strip().casefold())
        if known is not None:
            return known, None
        if key in {"speaker", "sender", "from"}:
            return "user", value.strip()
    return None
