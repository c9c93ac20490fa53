"""Gemini CLI: the records of its chats, and the notes that it keeps.

A chat is a file of records, which are messages, new versions of a message, and what is rewound; in early versions it is
one document. Rewound messages are left out. A compression replaces the history of the window and takes no message out
of the file, so it is read as what was said before.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path

from ricordo.errors import InvalidMessage
from ricordo.importers.chat_message import read_chat_message
from ricordo.importers.contract import FoundHistory, ImportedMessage
from ricordo.importers.fields import read_identifier
from ricordo.importers.json_stream import JsonRecord
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json, dumps
from ricordo.messages.types import JsonValue, Message, with_mark

__all__ = ["find", "read", "read_messages", "recognizes"]


_REWIND, _UPDATE = "$rewindTo", "$set"
_ROLES = {"user": "user", "gemini": "assistant"}
# what the program itself puts in the place of a person's words
_HOST_TEXTS = ("/", "?", "<session_context>", "<hook_context>", "<state_snapshot>")
_HOOK_CONTEXT, _HOOK_CONTEXT_END = "<hook_context>", "</hook_context>"


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a chat: its first record names a session and the hash of a project."""
    first = source.first_records[0].value if source.first_records else None
    return isinstance(first, dict) and isinstance(first.get("sessionId"), str) and "projectHash" in first


@dataclass(kw_only=True)
class _Outline:
    """What the first reading of a chat finds: its session, the last line of each message, and the answered calls."""

    session: str = ""
    is_sub_agent: bool = False
    lines: dict[str, int] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    def add(self, value: JsonValue, line: int) -> None:
        """Take in one record."""
        if not isinstance(value, dict):
            return
        self.session = self.session or read_identifier(value.get("sessionId")) or ""
        self.is_sub_agent = self.is_sub_agent or value.get("kind") == "subagent"
        rewound = value.get(_REWIND)
        if isinstance(rewound, str) and rewound in self.lines:
            names = list(self.lines)
            for name in names[names.index(rewound) :]:
                del self.lines[name]
        for message, is_newer in _iterate_messages(value):
            message_id = read_identifier(message.get("id"))
            responses = {call for call, _ in _iterate_responses(message.get("content"))}
            # a copy may give an answer again as a message of another name
            is_known = not is_newer and (message_id in self.lines or (responses and responses <= self.answered))
            if message_id is not None and not is_known:
                self.lines[message_id] = line
                self.answered |= responses


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give the messages in their order, each in its newest version; the source is read twice."""
    outline = _Outline()
    for record in source.records(progress=(0.0, 0.5)):
        outline.add(record.value, record.line)
    given: set[str] = set()
    session = outline.session or Path(source.filename).stem
    for record in source.records(quiet=True, progress=(0.5, 1.0)):
        for message, _ in _iterate_messages(record.value):
            name = read_identifier(message.get("id"))
            if name is None or name in given or outline.lines.get(name) != record.line:
                continue
            given.add(name)
            try:
                converted = [*_convert(message, name, outline)]
            except InvalidMessage as error:
                source.report(record.line, str(error))
                continue
            yield from (ImportedMessage(session=session, message=each, line=record.line) for each in converted)


def read_messages(records: Sequence[JsonRecord]) -> Iterator[Message]:
    """Give the messages in a part of a chat, each in its newest version; one that is not understood is left out."""
    outline = _Outline()
    for record in records:
        outline.add(record.value, record.line)
    for record in records:
        for message, _ in _iterate_messages(record.value):
            name = read_identifier(message.get("id"))
            if name is not None and outline.lines.get(name) == record.line:
                # a version of its own line is given once
                del outline.lines[name]
                with suppress(InvalidMessage):
                    yield from _convert(message, name, outline)


def _iterate_messages(value: JsonValue) -> Iterator[tuple[dict[str, JsonValue], bool]]:
    """Give the messages of a record, and whether each is a new version rather than a copy of what was said before."""
    if not isinstance(value, dict):
        return
    update = value.get(_UPDATE)
    for holder in (value, update):
        messages = holder.get("messages") if isinstance(holder, dict) else None
        yield from (
            (each, False) for each in (messages if isinstance(messages, list) else ()) if isinstance(each, dict)
        )
    if isinstance(value.get("id"), str) and isinstance(value.get("type"), str):
        yield value, True


def _convert(message: Mapping[str, JsonValue], name: str, outline: _Outline) -> Iterator[Message]:
    """Give a message, and after it the results of its calls that no message of their own tells."""
    role = _ROLES.get(str(message.get("type")))
    if role is None:
        return
    for number, (answered, result) in enumerate(_iterate_responses(message.get("content"))):
        answer: dict[str, JsonValue] = {"role": "tool", "tool_call_id": answered, "content": result}
        yield _finish(answer, name if number == 0 else f"{name}-{number}", message)
    texts = [*_iterate_texts(message.get("content"))]
    if role == "user":
        texts = [text for text in map(_strip_context, texts) if text and _is_said(text)]
    calls = [each for each in _list(message.get("toolCalls")) if isinstance(each, dict)] if role != "user" else []
    if texts or calls:
        fields: dict[str, JsonValue] = {
            "role": role,
            "content": [{"type": "text", "text": text} for text in texts] or None,
        }
        if calls:
            fields["tool_calls"] = [_convert_call(call) for call in calls]
        read = _finish(fields, name, message)
        yield with_mark(read, "notice") if outline.is_sub_agent and role == "user" else read
    for call in calls:
        call_id = read_identifier(call.get("id")) or ""
        if call_id not in outline.answered and call.get("result") is not None:
            fields = {"role": "tool", "tool_call_id": call_id, "content": _read_result(call.get("result"))}
            yield _finish(fields, f"{name}-{call_id}", message)


def _finish(fields: dict[str, JsonValue], name: str, message: Mapping[str, JsonValue]) -> Message:
    return replace(read_chat_message({**fields, "time": message.get("timestamp")}), id=name)


def _convert_call(call: Mapping[str, JsonValue]) -> JsonValue:
    function: JsonValue = {"name": call.get("name"), "arguments": dumps(call.get("args") or {})}
    return {"id": call.get("id"), "type": "function", "function": function}


def _iterate_texts(content: JsonValue) -> Iterator[str]:
    for part in _list(content):
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        is_thought = isinstance(part, dict) and part.get("thought") is True
        if isinstance(text, str) and text.strip() and not is_thought:
            yield text


def _iterate_responses(content: JsonValue) -> Iterator[tuple[str, str]]:
    """Give the id and the text of each answer of a tool."""
    for part in _list(content):
        response = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(response, dict):
            yield read_identifier(response.get("id")) or "", _read_result([part])


def _read_result(result: JsonValue) -> str:
    texts = []
    for part in _list(result):
        response = part.get("functionResponse") if isinstance(part, dict) else None
        inner = response.get("response") if isinstance(response, dict) else part
        if isinstance(inner, dict):
            inner = next((inner[key] for key in ("output", "error", "text") if key in inner), inner)
        texts.append(inner if isinstance(inner, str) else dumps(inner))
    return "\n".join(texts) or " "


def _strip_context(text: str) -> str:
    """Return a text without what hooks gave, which without a terminal is put before a prompt."""
    while text.lstrip().startswith(_HOOK_CONTEXT):
        text = text.partition(_HOOK_CONTEXT_END)[2].lstrip()
    return text


def _is_said(text: str) -> bool:
    return not text.lstrip().startswith(_HOST_TEXTS)


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [] if value is None else [value]


def find(home: Path, environment: Mapping[str, str]) -> Iterator[FoundHistory]:
    """Give the chats of each project, oldest first by their names, then the notes of projects and of the person."""
    base = Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini"
    folders = _find_folders(base, environment)
    chats = [path for path in base.glob("tmp/*/chats/**/*.json*") if path.suffix in {".json", ".jsonl"}]
    for path in sorted(chats, key=lambda path: (path.name, path)):
        # a chat of an early version that was resumed lies beside its new file
        if path.suffix == ".json" and path.with_suffix(".jsonl").exists():
            continue
        project = path.relative_to(base / "tmp").parts[0]
        yield FoundHistory(source=ImportSource(path), form="gemini", folder=folders.get(project))
    for project, folder in folders.items():
        for path in [*sorted(base.glob(f"tmp/{project}/memory/*.md")), folder / "GEMINI.md"]:
            if path.is_file():
                yield FoundHistory(source=ImportSource(path), form="notes", folder=folder)
    if (base / "GEMINI.md").is_file():
        yield FoundHistory(source=ImportSource(base / "GEMINI.md"), form="notes", everywhere=True)


def _find_folders(base: Path, environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the folder of each project by the name of the folder of its files.

    In early versions that is a hash, which tells nothing, so it is compared with those of folders that are known.
    """
    registered = _read_registry(base / "projects.json")
    here = Path(environment.get("PWD") or Path.cwd())
    known_folders = [
        *map(Path, registered),
        *map(Path, _read_registry(base / "trustedFolders.json")),
        here,
        *here.parents,
    ]
    folders = {sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest(): folder for folder in known_folders}
    folders |= {name: Path(folder) for folder, name in registered.items()}
    for marker in base.glob("tmp/*/.project_root"):
        with suppress(OSError, UnicodeDecodeError):
            folders[marker.parent.name] = Path(marker.read_text(encoding="utf-8").strip())
    present = {path.name for path in base.glob("tmp/*") if path.is_dir()}
    return {name: folder for name, folder in folders.items() if name in present}


def _read_registry(path: Path) -> dict[str, str]:
    """Return the texts of a file that maps folders to something; empty if there is none."""
    with suppress(OSError, ValueError):
        value = decode_json(path.read_bytes())
        projects = value.get("projects", value) if isinstance(value, dict) else {}
        if isinstance(projects, dict):
            return {key: each for key, each in projects.items() if isinstance(each, str)}
    return {}
