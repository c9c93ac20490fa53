"""Notes that coding agents keep in Markdown: CLAUDE.md, AGENTS.md and GEMINI.md, and the files of a memory folder.

Each list item and each paragraph is one memory, with the heading above it. A block of code belongs to the text before
it. A link to another note is no memory. The front matter of a topic says of which kind its memories are.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ricordo.curation.memory_document import DocumentPart, parse_memory_document
from ricordo.curation.topics import entry_kind, read_topic
from ricordo.importers.contract import ImportedMemory
from ricordo.importers.source import ImportSource
from ricordo.lazy import lazy_compile

if TYPE_CHECKING:
    from ricordo.messages.types import JsonValue

__all__ = ["read", "recognizes"]


_INSTRUCTIONS = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md"})
_INDEX = "MEMORY.md"
_MAX_BYTES = 4 * 1024 * 1024
_FRONT_BYTES = 4_096
# a topic of a memory folder says what it is about, and of which type it is
_TOPIC = lazy_compile(rb"\s*---[ \t]*\r?\n(?=(?:.*\n){0,20}?description:)(?=(?:.*\n){0,20}?type:)")
_LINK = lazy_compile(r"\]\((?:\./)?[^)\s#]+\.md(?:#[^)]*)?\)")
_NUMBER = lazy_compile(r"\d{1,3}[.)][ \t]+")
# another file that the program reads in its place
_REFERENCE = lazy_compile(r"@[\w./~-]+")


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` is a file of notes, by its name, or by the front matter of a topic."""
    if source.is_container or not source.filename.endswith(".md"):
        return False
    if source.filename in {*_INSTRUCTIONS, _INDEX}:
        return True
    with source.open() as file:
        return _TOPIC.match(file.read(_FRONT_BYTES)) is not None


def read(source: ImportSource) -> Iterator[ImportedMemory]:
    """Give each list item and each paragraph, in order."""
    with source.open() as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        source.report(1, f"The notes have more than {_MAX_BYTES // 1024 // 1024} MiB; the rest was not read.")
        data = data[:_MAX_BYTES].rpartition(b"\n")[0]
    topic = read_topic(source.filename, data)
    is_topic = source.filename not in {*_INSTRUCTIONS, _INDEX}
    kind = "convention" if source.filename in _INSTRUCTIONS else entry_kind(topic.type) if is_topic else "fact"
    for line, heading, text in _iterate_texts(parse_memory_document(data, source.filename).parts):
        fields: dict[str, JsonValue] = {"heading": heading, "topic": topic.name if is_topic else ""}
        yield ImportedMemory(text=text, line=line, kind=kind, metadata=fields)
    source.add_progress(source.size)


def _iterate_texts(parts: tuple[DocumentPart, ...]) -> Iterator[tuple[int, str, str]]:
    """Give the line, the heading and the text of each item and paragraph."""
    line, heading, start, waiting = 1, "", 1, list[str]()
    for number, part in enumerate(parts):
        text = part.data.decode("utf-8", "replace").rstrip()
        is_heading = text.startswith("#") and not part.fenced
        is_item = part.entry is not None or (_NUMBER.match(text.lstrip()) is not None and not part.fenced)
        is_paragraph_end = not text and not (number + 1 < len(parts) and parts[number + 1].fenced)
        if is_heading or is_item or (is_paragraph_end and not part.fenced):
            yield from _finish(start, heading, waiting)
            waiting = []
        if is_heading:
            heading = text.strip("# \t")
        elif is_item:
            waiting, start = [part.entry.content if part.entry else _NUMBER.sub("", text.lstrip(), count=1)], line
        elif (text or part.fenced) and (waiting or not part.fenced):
            start = start if waiting else line
            waiting.append(text)
        line += part.data.count(b"\n")
    yield from _finish(start, heading, waiting)


def _finish(line: int, heading: str, lines: list[str]) -> Iterator[tuple[int, str, str]]:
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    if text and not _LINK.search(text) and not _REFERENCE.fullmatch(text) and text != "---":
        yield line, heading, text
