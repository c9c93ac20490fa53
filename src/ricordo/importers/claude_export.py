"""The export of Claude.ai: conversations, what Claude remembers, projects and the user.

Each of its files is understood alone, so an export may come as several archives, unpacked, or in part. Of a
conversation with branches the one that counts is read. What Claude remembers is a text in Markdown; each of its
paragraphs and list items is a memory, known again by its place under its heading.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ricordo.errors import InvalidMessage
from ricordo.importers.branches import Branch, find_branch
from ricordo.importers.chat_message import read_chat_message, with_fields
from ricordo.importers.contract import ImportedItem, ImportedMemory, ImportedMessage
from ricordo.importers.fields import parse_time, read_identifier, read_list, read_object, read_text
from ricordo.importers.sessions import SessionNames
from ricordo.importers.source import ImportSource
from ricordo.lazy import lazy_compile
from ricordo.messages.types import JsonValue

__all__ = ["read", "recognizes"]


_Fields: TypeAlias = Mapping[str, JsonValue]
_NAME = "claude.ai"
_MEMORY_KEYS = ("conversations_memory", "project_memories")


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a file of the export."""
    return any(_choose_reader(record.value) is not None for record in source.first_records)


def read(source: ImportSource) -> Iterator[ImportedItem]:
    """Give the messages of conversations, and the memories in what the file has besides."""
    names = SessionNames(Path(source.filename).stem)
    for record in source.records():
        # one file for each conversation, or one list in a list
        values = record.value if isinstance(record.value, list) else [record.value]
        for value in values:
            read_value = _choose_reader(value)
            if read_value is None:
                source.report(record.line, "The record is no conversation, memory, project or user of the export.")
            else:
                yield from read_value(read_object(value), record.line, source, names)


_Reader: TypeAlias = Callable[[_Fields, int, ImportSource, SessionNames], Iterator[ImportedItem]]


def _choose_reader(value: JsonValue) -> _Reader | None:
    """Return the reader of this record of the export; None for a record of another kind."""
    record = read_object(value)
    if isinstance(record.get("chat_messages"), list) and "uuid" in record:
        return _read_conversation
    if any(key in record for key in _MEMORY_KEYS):
        return _read_memories
    if "uuid" in record and ("prompt_template" in record or "is_starter_project" in record):
        return _read_project
    if "uuid" in record and "full_name" in record and "email_address" in record:
        return _read_user
    return None


def _read_conversation(record: _Fields, line: int, source: ImportSource, names: SessionNames) -> Iterator[ImportedItem]:
    session = read_identifier(record.get("uuid"))
    summary = read_text(record.get("summary"))
    if summary:
        yield ImportedMemory(
            text=summary,
            line=line,
            kind="session-summary",
            id=f"{session or ''}/summary",
            time=parse_time(record.get("updated_at")) or parse_time(record.get("created_at")),
            metadata={"conversation": session, "title": record.get("name")},
        )
    project = read_object(record.get("project"))
    about: _Fields = {"title": read_identifier(record.get("name")), "project": read_identifier(project.get("name"))}
    for value in _choose_branch(read_list(record.get("chat_messages")), record, line, source):
        try:
            message = read_chat_message(value)
        except InvalidMessage as error:
            source.report(line, str(error))
            continue
        session = session or names.derive(message)
        yield ImportedMessage(session=session, message=with_fields(message, _NAME, about), line=line)
        about = {}


def _choose_branch(messages: list[JsonValue], record: _Fields, line: int, source: ImportSource) -> list[JsonValue]:
    """Return the messages of the branch that counts; all of them where they form no tree."""
    by_id: dict[str, JsonValue] = {}
    nodes: dict[str, Branch] = {}
    for message in messages:
        fields = read_object(message)
        name, time = read_identifier(fields.get("uuid")), parse_time(fields.get("created_at"))
        if name is None or name in by_id or "parent_message_uuid" not in fields:
            return messages
        by_id[name] = message
        nodes[name] = Branch(
            parent=read_identifier(fields["parent_message_uuid"]), time=time.timestamp() if time else 0.0
        )
    branch = find_branch(nodes, read_identifier(record.get("current_leaf_message_uuid")))
    if left := len(messages) - len(branch):
        source.report(line, f"messages that were edited or answered anew are left out: {left:,}", skipped=False)
    return [by_id[name] for name in branch]


def _read_memories(record: _Fields, line: int, source: ImportSource, names: SessionNames) -> Iterator[ImportedItem]:
    user, time = read_identifier(record.get("account_uuid")), parse_time(record.get("updated_at"))
    texts: list[tuple[str, JsonValue, _Fields]] = [("conversations", record.get("conversations_memory"), {})]
    for project, text in read_object(record.get("project_memories")).items():
        texts.append((f"projects/{project}", text, {"project": project}))
    for value in read_list(record.get("memory_files")):
        file = read_object(value)
        path = read_text(file.get("path")) or read_text(file.get("name")) or read_text(file.get("file_name"))
        texts.append((f"files/{path}", file.get("content"), {"file": path}))
        if not read_text(file.get("content")):
            source.report(line, "A memory file has no content that is understood.")
    for place, text, about in texts:
        for memory in _split_memory(read_text(text), place):
            yield replace(memory, line=line, time=time, user=user, metadata={**about, **memory.metadata})


_HEADING = lazy_compile(r"(?:#{1,6}[ \t]+(.*?)[ \t]*#*|\*\*([^*\n]+)\*\*:?|__([^_\n]+)__:?)[ \t]*")
_ITEM = lazy_compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_RULE = lazy_compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")


def _split_memory(text: str, place: str) -> Iterator[ImportedMemory]:
    """Give each paragraph and list item of a text in Markdown; its heading goes along in the metadata."""
    count: Counter[str] = Counter()
    for heading, content in _split_markdown(text):
        count[heading] += 1
        yield ImportedMemory(
            text=content,
            line=0,
            id=f"{place}/{heading.casefold()}/{count[heading]}",
            metadata={"source": f"memory of {place.partition('/')[0]}", "section": heading or None},
        )


def _split_markdown(text: str) -> Iterator[tuple[str, str]]:
    """Give the paragraphs and list items of a text, each with the heading above it, empty without one."""
    heading, waiting = "", list[str]()
    for line in [*text.splitlines(), ""]:
        title = _HEADING.fullmatch(line)
        begins_anew = title is not None or not line.strip() or _RULE.fullmatch(line) or _ITEM.match(line)
        if begins_anew and waiting:
            yield heading, "\n".join(waiting)
            waiting = []
        if title is not None:
            heading = re.sub(r"\s+", " ", title[1] or title[2] or title[3]).strip(" :*")
        elif line.strip() and not _RULE.fullmatch(line):
            waiting.append(_ITEM.sub("", line, count=1).strip() if begins_anew else line.strip())


def _read_project(record: _Fields, line: int, source: ImportSource, names: SessionNames) -> Iterator[ImportedItem]:
    # the project that comes with an account is Anthropic's own
    if record.get("is_starter_project") is True:
        return
    project = read_identifier(record.get("uuid")) or ""
    name, time = read_text(record.get("name")), parse_time(record.get("updated_at") or record.get("created_at"))
    about: dict[str, JsonValue] = {"project": name or project}
    rest = {key: value for key, value in record.items() if key in {"is_private", "created_at", "updated_at"}}
    description, instructions = read_text(record.get("description")), read_text(record.get("prompt_template"))
    if name or description:
        text = f"Project {name}: {description}" if name and description else f"Project {name or description}"
        yield ImportedMemory(
            text=text, line=line, id=f"projects/{project}", time=time, metadata={**about, **rest, "source": "project"}
        )
    if instructions:
        yield ImportedMemory(
            text=instructions,
            line=line,
            kind="convention",
            id=f"projects/{project}/instructions",
            time=time,
            metadata={**about, "source": "instructions of a project"},
        )
    for value in read_list(record.get("docs")):
        document = read_object(value)
        content, title = read_text(document.get("content")), read_text(document.get("filename"))
        if not content:
            source.report(line, "A document of a project has no text.")
            continue
        yield ImportedMemory(
            text=content,
            line=line,
            kind="document",
            id=f"projects/{project}/docs/{read_identifier(document.get('uuid')) or title}",
            time=parse_time(document.get("created_at")),
            metadata={**about, "source": "document of a project", "filename": title},
        )


def _read_user(record: _Fields, line: int, source: ImportSource, names: SessionNames) -> Iterator[ImportedItem]:
    name, user = read_text(record.get("full_name")), read_identifier(record.get("uuid"))
    if name:
        yield ImportedMemory(
            text=f"The user's name is {name}.",
            line=line,
            id=f"users/{user or ''}",
            user=user,
            metadata={"source": "account"},
        )
