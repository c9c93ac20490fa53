"""Claude Code: the transcripts of its sessions and sub-agents, and the notes that it keeps.

Of a transcript the one chain of rows is read that is the conversation. It is followed from the last row up to the
first, across compactions; rewound attempts are not on it, the parts and results of parallel calls are. A row whose
parent can't be found follows the row before it, so one torn line costs that line only. Only the ids of rows are held in
memory.

A sub-agent has a transcript and a session of its own. What it was asked was written by a model, so it is marked as a
notice, from which nothing is learned.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ricordo.errors import InvalidMessage, RicordoError
from ricordo.importers.chat_message import read_content_message
from ricordo.importers.contract import FoundHistory, ImportedMessage
from ricordo.importers.fields import read_identifier
from ricordo.importers.json_stream import JsonRecord
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass
from ricordo.messages.json_text import loads
from ricordo.messages.types import JsonValue, Message, with_mark

__all__ = ["TranscriptRow", "find", "find_chain", "read", "read_message", "read_rows", "recognizes"]


_ROW_TYPES = ("user", "assistant", "system", "attachment")
_CONVERSATION = ("user", "assistant")
_SUB_AGENT = "agent-"
_HIDDEN_FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
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
    agent: str | None
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
    is_sub_agent = source.filename.startswith(_SUB_AGENT)
    chain = find_chain(source.records(progress=(0.0, 0.5)), is_sub_agent=is_sub_agent)
    stem = Path(source.filename).stem
    for row in read_rows(source.records(quiet=True, progress=(0.5, 1.0)), chain):
        try:
            message = read_message(row)
        except InvalidMessage as error:
            source.report(row.line, str(error))
            continue
        session = row.session or stem
        if is_sub_agent:
            session = f"{session}-{_SUB_AGENT}{row.agent or stem.removeprefix(_SUB_AGENT)}"
            message = with_mark(message, "notice") if message.role == "user" else message
        yield ImportedMessage(session=session, message=message, line=row.line)


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


def find_chain(records: Iterable[JsonRecord], *, is_sub_agent: bool = False) -> frozenset[str]:
    """Return the ids of the rows that make up the conversation; empty when there is none.

    Rows of sub-agents count only where the transcript is that of one: early versions wrote them between the others.
    """
    nodes: dict[str, _Node] = {}
    before: str | None = None
    last: str | None = None
    for record in records:
        row = record.value
        if not isinstance(row, dict) or not _is_row(row) or (row.get("isSidechain") is True and not is_sub_agent):
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
            agent=read_identifier(row.get("agentId")),
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


_LINES_TO_A_FOLDER = 50
_PROJECT_NOTES = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md")


def find(home: Path, environment: Mapping[str, str]) -> Iterator[FoundHistory]:
    """Give the transcripts, oldest first by their last change, then the notes of each project and of the person."""
    base = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    folders: dict[Path, Path] = {}
    transcripts = _sort_by_age([*base.glob("projects/*/*.jsonl"), *base.glob("projects/*/*/subagents/**/*.jsonl")])
    for path in transcripts:
        project = base / "projects" / path.relative_to(base / "projects").parts[0]
        folder = _read_first_folder(path)
        if folder is not None:
            folders.setdefault(project, folder)
        # a transcript without a folder in it was begun where the others beside it were
        yield FoundHistory(source=ImportSource(path), form="claude-code", folder=folder or folders.get(project))
    for project, folder in folders.items():
        notes = [*sorted((project / "memory").glob("*.md")), *(folder / name for name in _PROJECT_NOTES)]
        for path in notes:
            if path.is_file():
                yield FoundHistory(source=ImportSource(path), form="notes", folder=folder)
    if (base / "CLAUDE.md").is_file():
        yield FoundHistory(source=ImportSource(base / "CLAUDE.md"), form="notes", everywhere=True)


def _sort_by_age(paths: Iterable[Path]) -> list[Path]:
    times: dict[Path, int] = {}
    for path in paths:
        with suppress(OSError):
            if path.is_file():
                times[path] = path.stat().st_mtime_ns
    return sorted(times, key=lambda path: (times[path], path))


def _read_first_folder(path: Path) -> Path | None:
    """Return the folder in which a session was begun; None if its first rows name none."""
    with suppress(RicordoError):
        for line in islice(ImportSource(path).lines(), _LINES_TO_A_FOLDER):
            with suppress(InvalidMessage):
                row = loads(line.content)
                folder = row.get("cwd") if isinstance(row, dict) else None
                if isinstance(folder, str) and folder and "\0" not in folder:
                    return Path(folder)
    return None
