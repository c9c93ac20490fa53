"""Claude Code transcripts: where they are, and the one chain of rows in them that is the conversation.

They lie in a folder named after the working directory. The chain is followed from the last row up to the first, across
compactions; rewound attempts are not on it, the parts and results of parallel calls are. A row whose parent can't be
found follows the row before it, so one torn line costs that line only. Only the ids of rows are held in memory.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ricordo.errors import InvalidMessage, RicordoError
from ricordo.importers.chat_message import read_content_message
from ricordo.importers.contract import ImportedMessage
from ricordo.importers.fields import read_identifier
from ricordo.importers.records import JsonRecord
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass
from ricordo.messages.json_text import loads
from ricordo.messages.types import JsonValue, Message

__all__ = [
    "TranscriptRow",
    "find_chain",
    "find_claude_code",
    "read",
    "read_message",
    "read_rows",
    "recognizes",
    "transcript_folder_name",
]


_ROW_TYPES = ("user", "assistant", "system", "attachment")
_CONVERSATION = ("user", "assistant")
_HIDDEN_FLAGS = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
_MACHINE_TAGS = (
    "<command-",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
)


@dataclass(frozen=True, kw_only=True)
class TranscriptRow:
    """A row of the conversation: its message in the shape of the provider, and what the transcript says about it."""

    line: int
    message: Mapping[str, JsonValue]
    uuid: str
    parent: str | None
    session: str | None
    time: JsonValue


@dataclass(frozen=True, kw_only=True)
class _Node:
    parent: str | None
    before: str | None
    answer: str | None
    is_result: bool


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a transcript: it has rows that are linked into a chain."""
    return any(_is_row(record.value) for record in source.first_records)


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give the messages on the chain; the source is read twice."""
    chain = find_chain(source.records(progress=(0.0, 0.5)))
    for row in read_rows(source.records(quiet=True, progress=(0.5, 1.0)), chain):
        try:
            message = read_message(row)
        except InvalidMessage as error:
            source.report(row.line, str(error))
        else:
            yield ImportedMessage(session=row.session or Path(source.filename).stem, message=message, line=row.line)


def read_message(row: TranscriptRow) -> Message:
    """Read a row as a message; id and parent are the row's.

    Raises:
        InvalidMessage: the message in it has a shape that is not understood, or holds nothing.
    """
    message = read_content_message(row.message.get("role"), row.message, time=row.time)
    return replace(message, id=row.uuid, parent=row.parent)


def _is_row(value: JsonValue) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("uuid"), str)
        and "parentUuid" in value
        and value.get("type") in _ROW_TYPES
    )


def find_chain(records: Iterable[JsonRecord]) -> frozenset[str]:
    """Return the ids of the rows that make up the conversation; empty when there is none."""
    nodes: dict[str, _Node] = {}
    before: str | None = None
    last: str | None = None
    for record in records:
        row = record.value
        if not isinstance(row, dict) or not _is_row(row) or row.get("isSidechain") is True:
            continue
        uuid = str(row["uuid"])
        if uuid in nodes:
            continue
        nodes[uuid] = _make_node(row, before)
        before = uuid
        if row.get("type") in _CONVERSATION:
            last = uuid
    return frozenset(_with_parallel_calls(_walk_back(nodes, last), nodes))


def read_rows(records: Iterable[JsonRecord], chain: frozenset[str]) -> Iterator[TranscriptRow]:
    """Give the rows on `chain` that somebody said or a tool answered, in the order of the file, each once."""
    seen: set[str] = set()
    for record in records:
        row = record.value
        if not isinstance(row, dict) or not _is_row(row):
            continue
        uuid = str(row["uuid"])
        message = row.get("message")
        if uuid not in chain or uuid in seen or not isinstance(message, dict) or not _is_dialogue_row(row, message):
            continue
        seen.add(uuid)
        yield TranscriptRow(
            line=record.line,
            message=message,
            uuid=uuid,
            parent=_parent(row),
            session=read_identifier(row.get("sessionId")),
            time=row.get("timestamp"),
        )


def _make_node(row: Mapping[str, JsonValue], before: str | None) -> _Node:
    message = row.get("message")
    inner = message if isinstance(message, dict) else {}
    answer = read_identifier(inner.get("id")) if row.get("type") == "assistant" else None
    return _Node(parent=_parent(row), before=before, answer=answer, is_result=_has_result(inner))


def _parent(row: Mapping[str, JsonValue]) -> str | None:
    return read_identifier(row.get("parentUuid")) or read_identifier(row.get("logicalParentUuid"))


def _walk_back(nodes: Mapping[str, _Node], last: str | None) -> set[str]:
    chain: set[str] = set()
    node_id = last
    while node_id is not None and node_id not in chain:
        chain.add(node_id)
        node = nodes[node_id]
        node_id = node.parent if node.parent is None or node.parent in nodes else node.before
    return chain


def _with_parallel_calls(chain: set[str], nodes: Mapping[str, _Node]) -> set[str]:
    answers = {nodes[uuid].answer for uuid in chain} - {None}
    full_chain = chain | {uuid for uuid, node in nodes.items() if node.answer in answers}
    return full_chain | {uuid for uuid, node in nodes.items() if node.is_result and node.parent in full_chain}


def _has_result(message: Mapping[str, JsonValue]) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _is_dialogue_row(row: Mapping[str, JsonValue], message: Mapping[str, JsonValue]) -> bool:
    if row.get("type") not in _CONVERSATION or any(row.get(mark) is True for mark in _HIDDEN_FLAGS):
        return False
    if message.get("model") == "<synthetic>":
        return False
    return not (row.get("type") == "user" and _opening_text(message).lstrip().startswith(_MACHINE_TAGS))


def _opening_text(message: Mapping[str, JsonValue]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    opening = content[0] if isinstance(content, list) and content else None
    text = opening.get("text") if isinstance(opening, dict) else None
    return text if isinstance(text, str) else ""


_FOLDER_LENGTH = 200
_LINES_TO_A_DIRECTORY = 50


def find_claude_code(project: Path, home: Path) -> list[Path]:
    """Return the transcripts of sessions begun in `project`, oldest first by modification time; empty without any.

    `home` is the user's home directory. Transcripts of sub-agents are left out: what they found is in the session's
    own.
    """
    directories = dict.fromkeys([project.absolute(), project.resolve()])
    transcripts = {
        path: path.stat().st_mtime_ns
        for directory in directories
        for folder in _find_folders(home / ".claude" / "projects", directory)
        for path in sorted(folder.glob("*.jsonl"))
        if path.is_file() and not path.name.startswith("agent-") and _started_in(path, directories)
    }
    return sorted(transcripts, key=lambda path: (transcripts[path], path.name))


def transcript_folder_name(directory: Path) -> str:
    """Return the name of the folder for sessions begun in `directory`; a character beyond 16 bits counts as two."""
    units = "".join("--" if ord(character) > 0xFFFF else character for character in str(directory))
    return re.sub("[^A-Za-z0-9]", "-", units)


def _find_folders(projects: Path, directory: Path) -> list[Path]:
    name = transcript_folder_name(directory)
    if len(name) <= _FOLDER_LENGTH:
        return [projects / name] if (projects / name).is_dir() else []
    # a longer name is cut and ends in a digest of the whole
    return sorted(path for path in projects.glob(f"{name[:_FOLDER_LENGTH]}-*") if path.is_dir())


def _started_in(path: Path, directories: dict[Path, None]) -> bool:
    start_directory = _read_first_directory(path)
    return (
        start_directory is None
        or start_directory in directories
        or any(_is_same_path(start_directory, directory) for directory in directories)
    )


def _is_same_path(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _read_first_directory(path: Path) -> Path | None:
    try:
        for position, line in enumerate(ImportSource(path).lines()):
            if position == _LINES_TO_A_DIRECTORY:
                break
            directory = _read_directory(line.content)
            if directory is not None:
                return directory
    except RicordoError:
        return None
    return None


def _read_directory(content: bytes) -> Path | None:
    try:
        row = loads(content)
    except InvalidMessage:
        return None
    directory = row.get("cwd") if isinstance(row, dict) else None
    return Path(directory) if isinstance(directory, str) and "\0" not in directory else None
