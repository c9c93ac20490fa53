"""Fields as other programs name them: roles, ids and times of messages."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from ricordo.lazy import lazy_compile
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
    "parse_time",
    "read_identifier",
    "read_list",
    "read_object",
    "read_role",
    "read_text",
]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = lazy_compile(r"[+-]?\d{1,19}(\.\d+)?", re.ASCII)
_SPOKEN_PATTERN = lazy_compile(
    r"(\d{1,2}):(\d\d)\s*([ap])m on (\d{1,2}) ([a-z]{3})[a-z]*,? (\d{4})", re.ASCII | re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# seconds stay below 1e11 until the year 5138, so the size shows each finer unit
_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9))


def parse_time(value: JsonValue) -> datetime | None:
    """Read `value` as an aware time in UTC; None when it is no time.

    Numbers (also as text) are seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _parse_timestamp(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _parse_timestamp(float(text)) if len(text) > 8 else None
    return _parse_spoken(text) or _parse_iso(text)


def _parse_timestamp(number: float) -> datetime | None:
    try:
        unit = next(unit for limit, unit in _UNITS if abs(number) < limit)
        return _EPOCH + timedelta(seconds=number / unit)
    except (OverflowError, StopIteration, ValueError):
        return None


def _parse_iso(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text.removesuffix(" UTC"))
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _parse_spoken(text: str) -> datetime | None:
    match = _SPOKEN_PATTERN.fullmatch(text)
    if match is None or match[5].lower() not in _MONTHS:
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    try:
        return datetime(
            int(match[6]), _MONTHS.index(match[5].lower()) + 1, int(match[4]), hour, int(match[2]), tzinfo=UTC
        )
    except ValueError:
        return None


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


def read_object(value: JsonValue) -> dict[str, JsonValue]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def read_list(value: JsonValue) -> list[JsonValue]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def read_text(value: JsonValue) -> str:
    """Return a text without the space around it; empty for anything else."""
    return value.strip() if isinstance(value, str) else ""


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
        role = _ROLES.get(value.strip().casefold())
        if role is not None:
            return role, None
        if key in {"speaker", "sender", "from"}:
            return "user", value.strip()
    return None
