"""Messages in the transcripts of hosts: the lines of Gemini CLI and of VS Code, and the database of opencode.

What a host puts before or beside the words of a person, such as its own context, what hooks gave and its summaries, was
said by nobody and is left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ricordo.errors import InvalidMessage
from ricordo.importers.codex import RolloutItem
from ricordo.importers.fields import read_identifier
from ricordo.importers.records import JsonRecord
from ricordo.messages import JsonValue
from ricordo.messages.json_text import loads
from ricordo.storage.foreign import read_rows

__all__ = ["read_copilot_items", "read_gemini_items", "read_opencode_items"]


_Record = Mapping[str, JsonValue]
_HOOK_CONTEXT, _HOOK_CONTEXT_END = "<hook_context>", "</hook_context>"
_SESSION_CONTEXT = "<session_context>"
_COMMANDS = ("/", "?")
_OPENCODE_QUERY = """
SELECT message.id, message.time_created, message.data, part.data FROM message JOIN part ON part.message_id = message.id
WHERE message.session_id = ? AND message.time_created > ? AND message.time_created <= ?
ORDER BY message.time_created, message.id, part.id
"""


def read_gemini_items(records: Iterable[JsonRecord]) -> Iterator[RolloutItem]:
    """Give what was said and what tools answered in lines of Gemini CLI, in their order.

    A message that is written again, as when its tools have answered, counts as it was written last.
    """
    rows: dict[str, tuple[int, _Record]] = {}
    for record in records:
        row = _as_record(record.value)
        name = read_identifier(row.get("id"))
        if name and row.get("type") in ("user", "gemini"):
            rows[name] = (record.line, row)
    for name, (line, row) in rows.items():
        text = "\n".join(filter(None, map(_clean_gemini_text, _list_texts(row.get("content")))))
        is_user = row["type"] == "user"
        if is_user and text.startswith((_SESSION_CONTEXT, *_COMMANDS)):
            continue
        tools = [] if is_user else _list_records(row.get("toolCalls"))
        calls = [_make_call(tool.get("id"), tool.get("name"), tool.get("args")) for tool in tools]
        message = _make_message("user" if is_user else "assistant", text, calls)
        results = [(tool.get("id"), _read_gemini_output(tool)) for tool in tools]
        yield from _give_items(name, line, row.get("timestamp"), message, results)


def read_copilot_items(records: Iterable[JsonRecord]) -> Iterator[RolloutItem]:
    """Give what was said and what tools answered in lines of VS Code, in their order."""
    for record in records:
        row = _as_record(record.value)
        name, data = read_identifier(row.get("id")), _as_record(row.get("data"))
        content = data.get("content")
        text = content if isinstance(content, str) else ""
        message: dict[str, JsonValue] | None = None
        match row.get("type"):
            case "user.message":
                message = _make_message("user", text, [])
            case "assistant.message":
                tools = _list_records(data.get("toolRequests"))
                calls = [_make_call(each.get("toolCallId"), each.get("name"), each.get("arguments")) for each in tools]
                message = _make_message("assistant", text, calls)
            case "tool.execution_complete":
                message = _make_result(data.get("toolCallId"), _as_record(data.get("result")).get("content"))
        if name and message is not None:
            yield RolloutItem(line=record.line, message=message, id=name, time=row.get("timestamp"))


def read_opencode_items(database: Path, session: str, *, start: int, end: int) -> Iterator[RolloutItem]:
    """Give what was said and what tools answered in a session of opencode after `start` and up to `end`, in
    milliseconds since 1970, in order.

    Raises: FileNotFoundError, StorageError.
    """
    rows: dict[str, tuple[int, _Record, list[_Record]]] = {}
    for name, time, message, part in read_rows(database, _OPENCODE_QUERY, (session, start, end)):
        known = rows.setdefault(str(name), (_as_number(time), _load_record(message), []))
        known[2].append(_load_record(part))
    for name, (time, row, parts) in rows.items():
        if row.get("role") not in ("user", "assistant") or row.get("summary") is True:
            continue
        texts = [str(each.get("text")) for each in parts if each.get("type") == "text" and not _is_of_host(each)]
        tools = [(each, _as_record(each.get("state"))) for each in parts if each.get("type") == "tool"]
        calls = [_make_call(each.get("callID"), each.get("tool"), state.get("input")) for each, state in tools]
        message = _make_message(str(row["role"]), _unquote("\n".join(texts)), calls)
        results = [(each.get("callID"), state.get("output", state.get("error"))) for each, state in tools]
        yield from _give_items(name, time, time, message, results)


def _is_of_host(part: _Record) -> bool:
    """Return whether opencode or a plugin wrote a part, or the person hid it from the model."""
    return bool(part.get("synthetic") or part.get("ignored"))


def _read_gemini_output(tool: _Record) -> JsonValue:
    """Return the text that a tool answered, as a line of Gemini CLI has it."""
    responses = [_as_record(each.get("functionResponse")).get("response") for each in _list_records(tool.get("result"))]
    return "\n".join(_as_text(each.get("output", dict(each))) for each in map(_as_record, responses) if each)


def _give_items(
    name: str,
    line: int,
    time: JsonValue,
    message: dict[str, JsonValue] | None,
    results: Sequence[tuple[JsonValue, JsonValue]],
) -> Iterator[RolloutItem]:
    if message is not None:
        yield RolloutItem(line=line, message=message, id=name, time=time)
    for call, output in results:
        result = _make_result(call, output)
        if result is not None:
            yield RolloutItem(line=line, message=result, id=f"{name}-{call}", time=time)


def _make_message(role: str, text: str, calls: list[JsonValue]) -> dict[str, JsonValue] | None:
    if not text.strip() and not calls:
        return None
    return {"role": role, "content": text or None, **({"tool_calls": calls} if calls else {})}


def _make_call(call: JsonValue, name: JsonValue, arguments: JsonValue) -> JsonValue:
    return {"id": call, "function": {"name": name, "arguments": _as_text(arguments)}}


def _make_result(call: JsonValue, output: JsonValue) -> dict[str, JsonValue] | None:
    return {"role": "tool", "tool_call_id": call, "content": output} if isinstance(output, str) and output else None


def _unquote(text: str) -> str:
    """Return a text without the quotes that `opencode run` puts around all of an argument."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]
    return text[1:-1] if is_quoted else text


def _clean_gemini_text(text: str) -> str:
    while text.lstrip().startswith(_HOOK_CONTEXT):
        text = text.partition(_HOOK_CONTEXT_END)[2].lstrip()
    return text


def _list_texts(content: JsonValue) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = (part for part in _list_records(content) if not part.get("thought"))
    return [text for part in parts if isinstance(text := part.get("text"), str)]


def _as_record(value: JsonValue) -> _Record:
    return value if isinstance(value, dict) else {}


def _list_records(value: JsonValue) -> list[_Record]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _load_record(text: object) -> _Record:
    with suppress(InvalidMessage):
        return _as_record(loads(text) if isinstance(text, str) else None)
    return {}


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _as_number(value: object) -> int:
    return value if isinstance(value, int) else 0
