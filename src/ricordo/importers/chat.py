"""Conversations as programs write them: messages, lists of them, objects with such a list, or lines of any of these."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from ricordo.errors import InvalidMessage
from ricordo.importers.chat_message import read_chat_message
from ricordo.importers.contract import ImportedMessage
from ricordo.importers.fields import (
    CONTENT_KEYS,
    MESSAGE_LISTS,
    SESSION_KEYS,
    first_value,
    read_identifier,
    read_role,
)
from ricordo.importers.json_stream import JsonRecord
from ricordo.importers.sessions import SessionNames, safe_session_id
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass
from ricordo.messages.types import JsonValue, Message

__all__ = ["ChatReader", "read", "recognizes"]


_NESTED_LISTS = 3
_OTHER_CONTENT = ("tool_calls", "function_call", "thinking")


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` holds messages or lists of them."""
    return any(
        not isinstance(shape, _UnknownShape) for record in source.first_records for shape in _find_shapes(record.value)
    )


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give the messages in their order; one without a session belongs to that of the message before it."""
    reader = ChatReader(source=source)
    for record in source.records():
        yield from reader.read(record)


@dataclass(frozen=True, kw_only=True)
class _SingleMessage:
    """One message on its own; `session` is the id it names, None if it names none."""

    record: dict[str, JsonValue]
    session: str | None


@dataclass(frozen=True, kw_only=True)
class _MessageList:
    """A list of messages and the id of their session, None if there is none."""

    messages: Sequence[JsonValue]
    session: str | None


@dataclass(frozen=True, kw_only=True)
class _UnknownShape:
    """Valid JSON that is not a part of a conversation."""


_Shape: TypeAlias = _SingleMessage | _MessageList | _UnknownShape


def _read_session(value: JsonValue) -> str | None:
    """Return the id of the session that a record names; None if it names none."""
    return read_identifier(first_value(value, SESSION_KEYS)) if isinstance(value, dict) else None


def _find_shapes(value: JsonValue, depth: int = 0) -> list[_Shape]:
    """Return the shapes in `value`, in order; empty for an empty list."""
    if isinstance(value, list):
        return _find_in_list(value, depth)
    if not isinstance(value, dict):
        return [_UnknownShape()]
    if _is_message(value):
        return [_SingleMessage(record=value, session=_read_session(value))]
    return _find_in_object(value)


def _find_in_list(values: list[JsonValue], depth: int) -> list[_Shape]:
    if any(isinstance(value, dict) and _is_message(value) for value in values):
        return [_MessageList(messages=values, session=None)]
    if depth == _NESTED_LISTS:
        return [_UnknownShape()]
    return [shape for value in values for shape in _find_shapes(value, depth + 1)]


def _find_in_object(value: dict[str, JsonValue]) -> list[_Shape]:
    session = read_identifier(first_value(value, (*SESSION_KEYS, "id", "uuid")))
    candidates = (value.get(key) for key in MESSAGE_LISTS)
    messages = next((items for items in candidates if isinstance(items, list)), None)
    return [_UnknownShape()] if messages is None else [_MessageList(messages=messages, session=session)]


def _is_message(value: Mapping[str, JsonValue]) -> bool:
    return read_role(value) is not None and any(key in value for key in (*CONTENT_KEYS, *_OTHER_CONTENT))


@dataclass(kw_only=True)
class ChatReader:
    """Reads the records of one file; remembers the session that messages without one of their own belong to."""

    source: ImportSource
    current: str | None = None
    names: SessionNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = SessionNames(Path(self.source.filename).stem)

    def read(self, record: JsonRecord) -> Iterator[ImportedMessage]:
        """Yield the messages of a record in their order, and report it if it has none."""
        for shape in _find_shapes(record.value):
            match shape:
                case _SingleMessage():
                    yield from self._read_single(shape, record.line)
                case _MessageList():
                    yield from self._read_message_list(shape, record.line)
                case _UnknownShape():
                    self.source.report(record.line, "The record is no message and holds none.")

    def _read_single(self, single: _SingleMessage, line: int) -> Iterator[ImportedMessage]:
        message = self._read_message(single.record, line)
        if message is None:
            return
        if single.session is not None:
            self.current = safe_session_id(single.session)
        elif self.current is None:
            self.current = self.names.derive(message)
        yield ImportedMessage(session=self.current, message=message, line=line)

    def _read_message_list(self, conversation: _MessageList, line: int) -> Iterator[ImportedMessage]:
        current = None if conversation.session is None else safe_session_id(conversation.session)
        for value in conversation.messages:
            message = self._read_message(value, line)
            if message is None:
                continue
            session_id = _read_session(value)
            if session_id is not None:
                current = safe_session_id(session_id)
            elif current is None:
                current = self.names.derive(message)
            yield ImportedMessage(session=current, message=message, line=line)

    def _read_message(self, value: JsonValue, line: int) -> Message | None:
        try:
            return read_chat_message(value)
        except InvalidMessage as error:
            self.source.report(line, str(error))
            return None
