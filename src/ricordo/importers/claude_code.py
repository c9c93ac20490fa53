"""Claude Code transcripts: rows that know their parent, of which one chain is the conversation.

The chain is walked from the last row up to the first; at a compaction it goes on where the transcript says the
history was. Rewound attempts are not on it. Two kinds of rows hang beside it and belong to it: the other parts of an
answer with several tool calls, and the results of those calls. A row whose parent can't be found follows the row
before it in the file, so that one torn line costs that line and not the history before it.

Only the ids of rows are held in memory: the file is read once for the chain and once for the messages.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ricordo.importers.fields import read_identifier
from ricordo.importers.records import JsonRecord
from ricordo.importers.shapes import is_claude_code
from ricordo.messages.types import JsonValue

__all__ = ["TranscriptRow", "find_chain", "read_rows"]

_CONVERSATION = frozenset({"user", "assistant"})
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


def find_chain(records: Iterable[JsonRecord]) -> frozenset[str]:
    """Return the ids of the rows that make up the conversation; empty when there is none."""
    nodes: dict[str, _Node] = {}
    before: str | None = None
    last: str | None = None
    for record in records:
        row = record.value
        if not isinstance(row, dict) or not is_claude_code(row) or row.get("isSidechain") is True:
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
    """Give the rows on `iterate_causes` that somebody said or a tool answered, in the order of the file, each once."""
    seen: set[str] = set()
    for record in records:
        row = record.value
        if not isinstance(row, dict) or not is_claude_code(row):
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
    at = last
    while at is not None and at not in chain:
        chain.add(at)
        node = nodes[at]
        at = node.parent if node.parent is None or node.parent in nodes else node.before
    return chain


def _with_parallel_calls(chain: set[str], nodes: Mapping[str, _Node]) -> set[str]:
    answers = {nodes[uuid].answer for uuid in chain} - {None}
    whole = chain | {uuid for uuid, node in nodes.items() if node.answer in answers}
    return whole | {uuid for uuid, node in nodes.items() if node.is_result and node.parent in whole}


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
