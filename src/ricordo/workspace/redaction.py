"""The way to disk: what a message or an entry says passes the guard before its first byte is written.

Only the writers of this room use these functions, and every writer of messages and entries does, so nothing stored or
derived ever holds a secret. The values that callers hold are left as they are.
"""

from dataclasses import replace
from typing import cast

from ricordo.errors import InvalidMessage
from ricordo.guard.redact import Redactor
from ricordo.messages import JsonValue, Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from ricordo.messages.jsontext import dumps, loads
from ricordo.workspace.entry import Entry

__all__ = ["redacted_entry", "redacted_message"]


def redacted_message(message: Message, redactor: Redactor) -> Message:
    """Return `message` with typed marks in the place of secrets: in text, arguments, results and metadata."""
    metadata = redactor.clean_json(cast("JsonValue", dict(message.metadata)))
    return replace(
        message,
        id=redactor.clean(message.id),
        parent=message.parent and redactor.clean(message.parent),
        parts=tuple(_part(part, redactor) for part in message.parts),
        name=redactor.clean(message.name) if message.name else message.name,
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def redacted_entry(entry: Entry, redactor: Redactor) -> Entry:
    """Return `entry` with typed marks in the place of secrets, in every text it carries."""
    source = replace(
        entry.source,
        session=entry.source.session and redactor.clean(entry.source.session),
        messages=tuple(map(redactor.clean, entry.source.messages)),
        quote=entry.source.quote and redactor.clean(entry.source.quote),
        origin=entry.source.origin and redactor.clean(entry.source.origin),
    )
    return replace(
        entry,
        content=redactor.clean(entry.content),
        kind=redactor.clean(entry.kind),
        tags=tuple(map(redactor.clean, entry.tags)),
        source=source,
        reason=entry.reason and redactor.clean(entry.reason),
        supersedes=entry.supersedes and redactor.clean(entry.supersedes),
        extra=tuple((redactor.clean(key), redactor.clean(value)) for key, value in entry.extra),
    )


def _part(part: Part, redactor: Redactor) -> Part:
    match part:
        case Text() | Thinking():
            return replace(part, text=redactor.clean(part.text))
        case ToolCall():
            return replace(
                part,
                id=redactor.clean(part.id),
                name=redactor.clean(part.name),
                arguments=_json_text(part.arguments, redactor),
            )
        case ToolResult():
            return replace(
                part,
                call_id=redactor.clean(part.call_id),
                name=part.name and redactor.clean(part.name),
                parts=tuple(_inner(inner, redactor) for inner in part.parts),
            )
        case Media() | Unknown():
            return _inner(part, redactor)


def _inner(part: Text | Media | Unknown, redactor: Redactor) -> Text | Media | Unknown:
    match part:
        case Text():
            return replace(part, text=redactor.clean(part.text))
        case Unknown():
            return replace(part, raw=_json_text(part.raw, redactor))
        case Media():
            uri = part.uri if part.uri.startswith("data:") else redactor.clean(part.uri)
            return replace(part, uri=uri, description=part.description and redactor.clean(part.description))


def _json_text(text: str, redactor: Redactor) -> str:
    """Clean JSON by its values, so that it stays JSON; what is not JSON is cleaned as text."""
    try:
        value = loads(text)
    except InvalidMessage:
        return redactor.clean(text)
    cleaned = redactor.clean_json(value)
    return text if cleaned == value else dumps(cleaned)
