"""Codex rollouts: what was said and which tools answered, among what the host keeps for itself.

A rollout has one line for each item. What the host puts in front of the user's words, such as its environment or the
instructions of a repository, was said by nobody and is left out, as are summaries and reasoning.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ricordo.errors import InvalidMessage, RicordoError
from ricordo.importers.chat_message import read_chat_message, with_time
from ricordo.importers.contract import FoundHistory, ImportedMessage
from ricordo.importers.fields import read_identifier
from ricordo.importers.json_stream import JsonRecord
from ricordo.importers.sessions import safe_session_id
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass
from ricordo.messages.json_text import loads
from ricordo.messages.types import JsonValue, Message

__all__ = ["RolloutItem", "find", "read", "read_items", "read_message", "recognizes"]


# tuples, as a value in the JSON of another program may have no hash
_LINE_TYPES = ("session_meta", "response_item", "turn_context", "event_msg", "world_state")
_SPEAKERS = ("user", "assistant")
_CALLS = ("function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_HOST_TEXTS = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "# AGENTS.md instructions",
)


@dataclass(frozen=True, kw_only=True)
class RolloutItem:
    """An item of the conversation as a chat message, its line, and its id, which is the same in each reading."""

    line: int
    message: Mapping[str, JsonValue]
    id: str
    time: JsonValue


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a rollout: its lines have a type that Codex writes, and a payload."""
    return any(
        isinstance(value, dict) and value.get("type") in _LINE_TYPES and isinstance(value.get("payload"), dict)
        for value in (record.value for record in source.first_records)
    )


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give what was said and what tools answered, in one session."""
    names = (_read_session_id(record.value) for record in source.records(quiet=True, progress=(0.0, 0.0)))
    session = safe_session_id(next((name for name in names if name), Path(source.filename).stem))
    for item in read_items(source.records(), session):
        try:
            message = read_message(item)
        except InvalidMessage as error:
            source.report(item.line, str(error))
        else:
            yield ImportedMessage(session=session, message=message, line=item.line)


def read_message(item: RolloutItem) -> Message:
    """Read an item as a message; the id is the item's.

    Raises:
        InvalidMessage: the item has a shape that is not understood, or holds nothing.
    """
    return with_time(replace(read_chat_message({**item.message}), id=item.id), item.time)


def _read_session_id(value: JsonValue) -> str | None:
    payload = value.get("payload") if isinstance(value, dict) and value.get("type") == "session_meta" else None
    return read_identifier(payload.get("id")) if isinstance(payload, dict) else None


def read_items(records: Iterable[JsonRecord], session: str) -> Iterator[RolloutItem]:
    """Give the items that somebody said or a tool answered, in their order; `session` makes their ids unique."""
    for record in records:
        row = record.value
        payload = row.get("payload") if isinstance(row, dict) and row.get("type") == "response_item" else None
        if not isinstance(row, dict) or not isinstance(payload, dict):
            continue
        message = _read_payload(payload)
        if message is None:
            continue
        number = read_identifier(row.get("ordinal")) or f"{row.get('timestamp')}-{record.line}"
        name = read_identifier(payload.get("id")) or f"{session}-{number}"
        yield RolloutItem(line=record.line, message=message, id=name, time=row.get("timestamp"))


def _read_payload(payload: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    kind = payload.get("type")
    if kind == "message" and payload.get("role") in _SPEAKERS:
        blocks = _read_blocks(payload.get("content"))
        return {"role": payload["role"], "content": blocks} if blocks else None
    call = read_identifier(payload.get("call_id")) or ""
    if kind in _CALLS:
        arguments = payload.get("arguments", payload.get("input"))
        function: dict[str, JsonValue] = {"name": payload.get("name"), "arguments": arguments}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": call, "function": function}]}
    if kind in _RESULTS:
        return {"role": "tool", "tool_call_id": call, "content": _read_output(payload.get("output"))}
    return None


def _read_blocks(content: JsonValue) -> list[JsonValue]:
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return [
        {"type": "text", "text": text}
        for text in texts
        if isinstance(text, str) and text.strip() and not text.lstrip().startswith(_HOST_TEXTS)
    ]


def _read_output(output: JsonValue) -> JsonValue:
    if isinstance(output, dict):
        output = output.get("content", output.get("output"))
    return output if isinstance(output, str) else _read_blocks(output)


_LINES_TO_A_FOLDER = 5


def find(home: Path, environment: Mapping[str, str]) -> Iterator[FoundHistory]:
    """Give the rollouts, oldest first by their names, and the notes of the person."""
    base = Path(environment.get("CODEX_HOME") or home / ".codex")
    rollouts = [*base.glob("sessions/**/rollout-*.jsonl"), *base.glob("archived_sessions/**/rollout-*.jsonl")]
    for path in sorted(rollouts, key=lambda path: path.name):
        yield FoundHistory(source=ImportSource(path), form="codex", folder=_read_folder(path))
    for path in (base / "AGENTS.md", base / "memories" / "MEMORY.md"):
        if path.is_file():
            yield FoundHistory(source=ImportSource(path), form="notes", everywhere=True)


def _read_folder(path: Path) -> Path | None:
    """Return the folder in which a session was begun; None if its first lines name none."""
    with suppress(RicordoError):
        for line in islice(ImportSource(path).lines(), _LINES_TO_A_FOLDER):
            with suppress(InvalidMessage):
                row = loads(line.content)
                payload = row.get("payload") if isinstance(row, dict) else None
                folder = payload.get("cwd") if isinstance(payload, dict) else None
                if isinstance(folder, str) and folder and "\0" not in folder:
                    return Path(folder)
    return None
