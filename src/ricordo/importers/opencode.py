"""opencode: the sessions in its database, and those of early versions in a folder of JSON files.

A message has parts, which are texts, files, and calls of tools with what they answered. What the program itself adds to
a message, and what was reverted, was said by nobody. A session within another one is that of a sub-agent: what it was
asked was written by a model, and is marked as a notice.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from ricordo.errors import DocumentInvalid, HistoryUnreadable, InvalidMessage, RicordoError, StorageFailed
from ricordo.importers.chat_message import read_chat_message
from ricordo.importers.contract import FoundHistory, ImportedMessage
from ricordo.importers.fields import read_identifier
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass
from ricordo.messages.json_text import dumps, loads
from ricordo.messages.types import JsonValue, Media, Message, with_mark
from ricordo.storage.foreign import is_database, read_rows

__all__ = ["find", "read", "read_messages", "recognizes"]


_DATABASE, _STORAGE = "opencode.db", "storage"
_FOLDERS = ("session", "message", "part")
_TABLES = frozenset({"session", "message", "part"})
_SESSIONS = "SELECT id, parent_id, directory, revert FROM session WHERE ? IN ('', directory) ORDER BY time_created, id"
_MESSAGES = """
SELECT message.id, message.data, part.id, part.data FROM message LEFT JOIN part ON part.message_id = message.id
WHERE message.session_id = ? AND message.time_created > ? AND message.time_created <= ?
ORDER BY message.time_created, message.id, part.id
"""
_EVER = 2**62
_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_DIRECTORIES = """
SELECT directory, MIN(time_created) FROM session GROUP BY directory ORDER BY MIN(time_created), directory
"""


@dataclass(frozen=True, kw_only=True)
class _Session:
    """A session: its id, whether it is that of a sub-agent, and the message from which on it was reverted."""

    id: str
    is_sub_agent: bool
    reverted_from: str = ""


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a database with sessions, messages and parts, or a folder of such files."""
    if source.is_container:
        return source.path.is_dir() and all((source.path / name).is_dir() for name in _FOLDERS)
    if not is_database(source.path):
        return False
    try:
        tables = {
            str(name) for (name,) in read_rows(source.path, "SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    except RicordoError:
        return False
    return tables >= _TABLES


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give the messages of each session, oldest session first; a part of a database are those of one directory."""
    position = 0
    for session, messages in _read_folder(source) if source.is_container else _read_database(source):
        for info, parts in messages:
            position += 1
            name = read_identifier(info.get("id"))
            if name is None or (session.reverted_from and name >= session.reverted_from):
                continue
            try:
                converted = [*_convert(name, info, parts, session)]
            except InvalidMessage as error:
                source.report(position, f"message {name}: {error}")
                continue
            yield from (ImportedMessage(session=session.id, message=each, line=position) for each in converted)


def read_messages(database: Path, session: str, *, start: int, end: int) -> Iterator[Message]:
    """Give the messages of one session after `start` and up to `end`, in milliseconds since 1970, in order.

    A message that is not understood is left out. Raises: DocumentInvalid, StorageError.
    """
    source = ImportSource(database)
    for info, parts in _read_messages(source, session, start=start, end=end):
        with suppress(InvalidMessage):
            yield from _convert(str(info["id"]), info, parts, _Session(id=session, is_sub_agent=False))


_Parts = list[dict[str, JsonValue]]
_Messages = Iterator[tuple[dict[str, JsonValue], _Parts]]


def _read_database(source: ImportSource) -> Iterator[tuple[_Session, _Messages]]:
    try:
        rows = list(read_rows(source.path, _SESSIONS, (source.part,)))
        for number, (name, parent, _, revert) in enumerate(rows, start=1):
            yield _make_session(name, parent, _load(revert)), _read_messages(source, str(name))
            source.add_progress(source.size * number // len(rows) - source.size * (number - 1) // len(rows))
    except (DocumentInvalid, StorageFailed) as error:
        raise HistoryUnreadable(f"{source.name} is no database of opencode that is understood: {error}") from error


def _read_messages(source: ImportSource, session: str, *, start: int = -1, end: int = _EVER) -> _Messages:
    rows = read_rows(source.path, _MESSAGES, (session, start, end))
    for (name, data), group in groupby(rows, key=lambda row: row[:2]):
        info = _load(data)
        if not isinstance(info, dict):
            source.report(1, f"message {name}: it is no JSON object.")
            continue
        parts = [(part_id, _load(part)) for _, _, part_id, part in group]
        yield {**info, "id": str(name)}, [{**part, "id": str(key)} for key, part in parts if isinstance(part, dict)]


def _read_folder(source: ImportSource) -> Iterator[tuple[_Session, _Messages]]:
    paths = sorted(source.path.glob("session/*/*.json"), key=lambda path: path.name, reverse=True)
    for path in paths:
        info = _load_file(source, path)
        if isinstance(info, dict) and isinstance(info.get("id"), str) and source.part in ("", info.get("directory")):
            yield (
                _make_session(info["id"], info.get("parentID"), info.get("revert")),
                _read_files(source, str(info["id"])),
            )


def _read_files(source: ImportSource, session: str) -> _Messages:
    for path in sorted((source.path / "message" / session).glob("*.json")):
        info = _load_file(source, path)
        parts = [_load_file(source, each) for each in sorted((source.path / "part" / path.stem).glob("*.json"))]
        if isinstance(info, dict):
            yield {**info, "id": path.stem}, [part for part in parts if isinstance(part, dict)]


def _load_file(source: ImportSource, path: Path) -> JsonValue:
    file = ImportSource(path)
    try:
        with file.open() as content:
            data = content.read()
        source.add_progress(len(data))
        return loads(data)
    except RicordoError as error:
        source.report(1, f"{path.name}: {error}")
        return None


def _load(text: object) -> JsonValue:
    """Return the JSON value of a column; None if it is none."""
    try:
        return loads(text) if isinstance(text, str | bytes) else None
    except InvalidMessage:
        return None


def _make_session(name: object, parent: object, revert: JsonValue) -> _Session:
    reverted = revert.get("messageID") if isinstance(revert, dict) else None
    return _Session(
        id=str(name), is_sub_agent=bool(parent), reverted_from=reverted if isinstance(reverted, str) else ""
    )


def _convert(name: str, info: Mapping[str, JsonValue], parts: _Parts, session: _Session) -> Iterator[Message]:
    """Give a message, and after it what its tools answered."""
    role = info.get("role")
    if role not in {"user", "assistant"}:
        raise InvalidMessage(f"its role is {role!r}.")
    times = info.get("time")
    time = times.get("created") if isinstance(times, dict) else None
    texts = [_unquote(str(part["text"])) for part in parts if part.get("type") == "text" and _is_said(part)]
    calls = [part for part in parts if part.get("type") == "tool" and isinstance(part.get("callID"), str)]
    files = [part for part in parts if part.get("type") == "file" and part.get("synthetic") is not True]
    if texts or calls or files:
        content: list[JsonValue] = [{"type": "text", "text": text} for text in texts]
        fields: dict[str, JsonValue] = {"role": role, "content": content or " ", "time": time}
        fields |= {"tool_calls": [_convert_call(part) for part in calls]} if calls else {}
        message = replace(read_chat_message(fields), id=name)
        own_parts = message.parts if texts else message.tool_calls
        message = replace(message, parts=(*own_parts, *map(_read_media, files)))
        is_asked = session.is_sub_agent and role == "user"
        is_summary = info.get("summary") is True
        yield with_mark(message, "summary" if is_summary else "notice") if is_asked or is_summary else message
    for part in calls:
        answer = _read_answer(part)
        if answer is not None:
            fields = {"role": "tool", "tool_call_id": part["callID"], "content": answer or " ", "time": time}
            yield replace(read_chat_message(fields), id=f"{name}-{part['callID']}")


def _is_said(part: Mapping[str, JsonValue]) -> bool:
    text = part.get("text")
    is_added = part.get("synthetic") is True or part.get("ignored") is True
    return isinstance(text, str) and bool(text.strip()) and not is_added


def _unquote(text: str) -> str:
    """Return a text without the quotes that `opencode run` puts around an argument with spaces."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]
    return text[1:-1] if is_quoted else text


def _convert_call(part: Mapping[str, JsonValue]) -> JsonValue:
    state = part.get("state")
    arguments = state.get("input") if isinstance(state, dict) else None
    function: JsonValue = {"name": part.get("tool"), "arguments": dumps(arguments or {})}
    return {"id": part.get("callID"), "type": "function", "function": function}


def _read_answer(part: Mapping[str, JsonValue]) -> str | None:
    """Return what a tool answered; None if it has not."""
    state = part.get("state")
    if not isinstance(state, dict) or state.get("status") not in {"completed", "error"}:
        return None
    answer = state.get("output") if state.get("status") == "completed" else state.get("error")
    return answer if isinstance(answer, str) else dumps(answer)


def _read_media(part: Mapping[str, JsonValue]) -> Media:
    url, name = part.get("url"), read_identifier(part.get("filename"))
    # the content of a file that was attached is in the address itself
    uri = url if isinstance(url, str) and not url.startswith("data:") else ""
    return Media(media_type=read_identifier(part.get("mime")) or "application/octet-stream", uri=uri, name=name)


def find(home: Path, environment: Mapping[str, str]) -> Iterator[FoundHistory]:
    """Give the sessions of each directory, oldest first, from the database, or else from the files before it."""
    base = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    database = Path(environment.get("OPENCODE_DB") or base / _DATABASE)
    if not is_database(database):
        yield from _find_in_folder(base / _STORAGE)
        return
    try:
        directories = [str(directory) for directory, _ in read_rows(database, _DIRECTORIES)]
    except RicordoError:
        # the import of the whole file says what is wrong with it
        yield FoundHistory(source=ImportSource(database), form="opencode")
        return
    for directory in directories:
        source = ImportSource(database, name=f"{database} ({directory})", part=directory)
        yield FoundHistory(source=source, form="opencode", folder=Path(directory))


def _find_in_folder(storage: Path) -> Iterator[FoundHistory]:
    directories: dict[str, None] = {}
    for path in sorted(storage.glob("session/*/*.json"), key=lambda path: path.name, reverse=True):
        try:
            info = loads(path.read_bytes())
        except (OSError, InvalidMessage):
            continue
        directory = info.get("directory") if isinstance(info, dict) else None
        if isinstance(directory, str) and "\0" not in directory:
            directories[directory] = None
    for directory in directories:
        source = ImportSource(storage, name=f"{storage} ({directory})", part=directory)
        yield FoundHistory(source=source, form="opencode", folder=Path(directory))
