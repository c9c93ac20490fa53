"""ChatGPT's own export: conversations whose messages are the nodes of a tree, and what the program remembers.

Of a conversation the branch that counts is read. The export has no list of the saved memories; they stand in what the
model was shown with a conversation, and in its messages to the tool `bio`, one memory a line. Custom instructions stand
in a hidden message. Each of these is given once, however many conversations repeat it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from ricordo.errors import InvalidMessage
from ricordo.importers.branches import Branch, find_branch
from ricordo.importers.chat_message import read_chat_message, with_fields
from ricordo.importers.contract import ImportedItem, ImportedMemory, ImportedMessage
from ricordo.importers.fields import (
    SESSION_KEYS,
    first_value,
    parse_time,
    read_identifier,
    read_list,
    read_object,
    read_text,
)
from ricordo.importers.json_stream import JsonRecord
from ricordo.importers.sessions import SessionNames
from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.types import JsonValue

__all__ = ["read", "recognizes"]


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a list of conversations as the export has them, or one of them."""
    return any(_is_conversation(record.value) for record in source.first_records)


def read(source: ImportSource) -> Iterator[ImportedItem]:
    """Give the messages of each conversation, first to last, and before them the memories that are new in it."""
    reader = _ExportReader(source=source)
    for record in source.records():
        yield from reader.read(record)
    reader.report_left_branches()


_HIDDEN_TYPES = frozenset({"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context"})
_EVERYBODY = ("all", None)
_MEMORY_TOOL = "bio"
_PROJECT_START = "g-p-"


def _is_conversation(value: JsonValue) -> bool:
    """Tell whether `value` is a conversation of an export: an object with a tree of nodes under `mapping`."""
    nodes = value.get("mapping") if isinstance(value, dict) else None
    return isinstance(nodes, dict) and any(isinstance(each, dict) and "message" in each for each in nodes.values())


@dataclass(kw_only=True)
class _ExportReader:
    """Reads the conversations of one file; knows the memories that were given, and counts the messages left out."""

    source: ImportSource
    names: SessionNames = field(init=False)
    given: set[int] = field(default_factory=set)
    left_messages: int = 0
    left_conversations: int = 0
    first_left: int = 0

    def __post_init__(self) -> None:
        self.names = SessionNames(Path(self.source.filename).stem)

    def read(self, record: JsonRecord) -> Iterator[ImportedItem]:
        """Give the memories and messages of one conversation."""
        conversation = record.value
        if not isinstance(conversation, dict) or not _is_conversation(conversation):
            self.source.report(record.line, "The record is no conversation.")
            return
        session = read_identifier(first_value(conversation, (*SESSION_KEYS, "id", "uuid")))
        messages, branch = _read_tree(conversation)
        for node in messages.values():
            yield from self._find_new(_read_memories(node, session), record.line)
        about = _describe(conversation)
        for name in branch:
            for value in _read_messages(messages[name]):
                try:
                    message = read_chat_message(value)
                except InvalidMessage as error:
                    self.source.report(record.line, str(error))
                    continue
                session = session or self.names.derive(message)
                yield ImportedMessage(session=session, message=with_fields(message, "chatgpt", about), line=record.line)
                about = {}
        self._count_left([messages[name] for name in messages.keys() - set(branch)], record.line)

    def _find_new(self, memories: Iterator[ImportedMemory], line: int) -> Iterator[ImportedMemory]:
        for memory in memories:
            key = hash((memory.kind, " ".join(memory.text.split())))
            if key not in self.given:
                self.given.add(key)
                yield replace(memory, line=line)

    def _count_left(self, messages: list[JsonValue], line: int) -> None:
        count = sum(1 for each in messages if next(_read_messages(each), None))
        if count:
            self.left_messages += count
            self.left_conversations += 1
            self.first_left = self.first_left or line

    def report_left_branches(self) -> None:
        """Report how many messages stand on branches that were left for others."""
        if self.left_messages:
            self.source.report(
                self.first_left,
                "messages that were edited or answered anew are left out: "
                f"{self.left_messages:,}, in conversations: {self.left_conversations:,}",
                skipped=False,
            )


def _read_tree(conversation: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], list[str]]:
    """Return the messages of a conversation by the ids of their nodes, and the nodes of the branch that counts."""
    nodes = {name: node for name, node in read_object(conversation.get("mapping")).items() if isinstance(node, dict)}
    branches = {
        name: Branch(parent=read_identifier(node.get("parent")), time=_message_time(node.get("message")))
        for name, node in nodes.items()
    }
    branch = find_branch(branches, read_identifier(conversation.get("current_node")))
    return {name: node.get("message") for name, node in nodes.items()}, branch


def _message_time(message: JsonValue) -> float:
    time = parse_time(read_object(message).get("create_time"))
    return time.timestamp() if time else 0.0


def _describe(conversation: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return what the first message tells of its conversation: its title, and the project or the GPT that it is of."""
    project = read_identifier(first_value(conversation, ("conversation_template_id", "gizmo_id")))
    place = "project" if project and project.startswith(_PROJECT_START) else "gpt"
    return {"title": read_identifier(conversation.get("title")), place: project}


def _read_messages(message: JsonValue) -> Iterator[JsonValue]:
    """Give a message in the form of a chat, with role, content, time and id of its own; none if nobody sees it."""
    if message is None:
        return
    if not isinstance(message, dict):
        yield message
        return
    author, content = message.get("author"), message.get("content")
    hidden = read_object(message.get("metadata")).get("is_visually_hidden_from_conversation") is True
    if hidden or read_text(read_object(content).get("content_type")) in _HIDDEN_TYPES:
        return
    blocks: JsonValue = [*_read_content(content), *_read_attachments(message)] if isinstance(content, dict) else content
    if blocks == []:
        return
    author_fields = read_object(author)
    plain = {"id": message.get("id"), "role": author_fields.get("role"), "time": message.get("create_time")}
    if author_fields.get("role") == "tool":
        yield {**plain, "name": author_fields.get("name"), "content": blocks}
    elif message.get("recipient") in _EVERYBODY:
        yield {**plain, "content": blocks}
    else:
        yield {**plain, "tool_calls": [{"name": message.get("recipient"), "arguments": {"content": blocks}}]}


def _read_content(content: Mapping[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    """Give the texts and pictures of a message; other parts are kept as they are. Empty texts are left out."""
    kind, parts = content.get("content_type"), content.get("parts")
    if isinstance(parts, list):
        for part in parts:
            yield from _read_part(part)
        return
    texts = [content.get(key) for key in ("title", "url", "domain", "text", "result", "summary")]
    text = "\n".join(each for each in texts if isinstance(each, str) and each.strip())
    if text:
        yield {"type": "text", "text": text}
    elif isinstance(kind, str) and len(content) > 1 and kind not in _TEXT_TYPES:
        yield {**content, "type": kind}


def _read_part(part: JsonValue) -> Iterator[dict[str, JsonValue]]:
    if isinstance(part, str):
        if part.strip():
            yield {"type": "text", "text": part}
    elif isinstance(part, dict):
        text, pointer, kind = part.get("text"), part.get("asset_pointer"), part.get("content_type")
        if isinstance(text, str):
            yield {"type": "text", "text": text}
        elif isinstance(pointer, str):
            yield {"type": "image_url", "image_url": {"url": pointer}}
        elif isinstance(kind, str):
            yield {**part, "type": kind}


def _read_attachments(message: Mapping[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    """Give the files that were sent along, by their names; pictures stand in the content already."""
    for attachment in read_list(read_object(message.get("metadata")).get("attachments")):
        fields = read_object(attachment)
        name = read_text(fields.get("name"))
        if name and not read_text(fields.get("mime_type")).startswith("image/"):
            yield {"type": "file", "file": {"file_id": read_identifier(fields.get("id")) or name, "filename": name}}


_TEXT_TYPES = frozenset({"text", "multimodal_text", "code", "execution_output", "tether_quote", "system_error"})
_NUMBERED = lazy_compile(r"^[ \t]*\d{1,4}\.[ \t]+(?:\[(\d{4}-\d\d-\d\d)\]\.?[ \t]*)?", re.ASCII | re.MULTILINE)
_BULLET = lazy_compile(r"^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+")
_HEADING = lazy_compile(r"^#[^\n]*(?:\n|$)|^Model Set Context:?\s*", re.IGNORECASE)
_CODE_BLOCK = lazy_compile(r"```(.*?)```", re.DOTALL)
_FORGET = ("forget ", "forget: ", "please forget ")


def _read_memories(message: JsonValue, session: str | None) -> Iterator[ImportedMemory]:
    """Give what the program remembers by this message: saved memories, and the user's custom instructions."""
    fields = read_object(message)
    content, metadata = read_object(fields.get("content")), read_object(fields.get("metadata"))
    found: Iterator[tuple[str, str, str, JsonValue]] = iter(())
    if content.get("content_type") == "model_editable_context":
        found = _split_saved_memories(read_text(content.get("model_set_context")), fields.get("create_time"))
    elif content.get("content_type") == "user_editable_context" or "user_context_message_data" in metadata:
        found = _read_instructions(content, read_object(metadata.get("user_context_message_data")))
    elif fields.get("recipient") == _MEMORY_TOOL:
        found = _split_notes(content, fields.get("create_time"))
    for place, kind, text, time in found:
        about = {"source": place, "conversation": session}
        yield ImportedMemory(text=text, kind=kind, time=parse_time(time), metadata=about, line=0)


def _split_saved_memories(text: str, time: JsonValue) -> Iterator[tuple[str, str, str, JsonValue]]:
    """Give the items of a numbered list, each with its own day if it has one; the lines of any other text."""
    rest = _HEADING.sub("", text, count=1)
    marks = list(_NUMBERED.finditer(rest))
    if not marks:
        yield from (("saved memory", "fact", each, time) for each in _split_lines(rest))
        return
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        item = rest[mark.end() : following.start() if following else None].strip()
        if item:
            yield "saved memory", "fact", item, mark[1] or time


def _split_notes(content: Mapping[str, JsonValue], time: JsonValue) -> Iterator[tuple[str, str, str, JsonValue]]:
    """Give the lines of a message to the tool that saves memories, without requests to forget something."""
    for line in _split_lines("\n".join(read_text(block.get("text")) for block in _read_content(content))):
        if not line.casefold().startswith(_FORGET):
            yield "note", "fact", line, time


def _read_instructions(
    content: Mapping[str, JsonValue], data: Mapping[str, JsonValue]
) -> Iterator[tuple[str, str, str, JsonValue]]:
    """Give what the user wrote about themselves, and how they want to be answered."""
    for kind, plain, wrapped in (
        ("fact", data.get("about_user_message"), content.get("user_profile")),
        ("preference", data.get("about_model_message"), content.get("user_instructions")),
    ):
        text = read_text(plain) or read_text(wrapped)
        block = _CODE_BLOCK.search(text)
        if text := (block[1] if block else text).strip():
            yield "custom instructions", kind, text, None


def _split_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if bare := _BULLET.sub("", line).strip():
            yield bare
