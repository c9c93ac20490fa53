"""What the documents of a memory folder say, in the layout that other tools write: an index and topics. Pure.

MEMORY.md lists topics, a link a line, and may say things itself; a topic is a front matter of name, description and
type, and text below it. A bullet with an id is an entry of its own, wherever it stands; all other text of a topic is
one memory. Invariant: a line that is added takes nothing away, and every other byte stays.
"""

import re
from collections.abc import Iterator, Mapping

from ricordo.consolidation.sheet import DocumentPart, parse_memory_document
from ricordo.consolidation.topics import is_generated, entry_kind, read_topic
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, derive_id

__all__ = ["INDEX", "has_link", "parse_document", "create_topic", "add_link"]

INDEX = "MEMORY.md"
_TITLE = b"# Memory\n\n"
_LINK = re.compile(rb"\]\((?:\./)?([^)\s#]+\.md)(?:#[^)]*)?\)")
_MAX_INDEX_LINES = 199
"""How far down in the index other tools read: a link below it is not seen."""

_TOPIC_TITLES: Mapping[str, tuple[str, str]] = {
    "user": ("User", "What the user prefers"),
    "feedback": ("Feedback", "How to work: conventions, corrections and lessons"),
    "project": ("Project", "Facts, decisions and goals of the project"),
    "reference": ("Reference", "Where things are to be looked up"),
}


def parse_document(path: str, data: bytes) -> list[LocatedEntry]:
    """Return what a document says, in its order; a line of the index that only leads to a topic says nothing."""
    parts = parse_memory_document(data, path).parts
    return _parse_index(path, parts) if path == INDEX else _parse_topic(path, data, parts)


def has_link(index: bytes, path: str) -> bool:
    """Tell whether the index leads to the topic at `path`."""
    return path.encode() in _LINK.findall(index)


def create_topic(type_name: str) -> bytes:
    """Return the beginning of a topic for memories of this type."""
    name, description = _TOPIC_TITLES[type_name]
    front = f"---\nname: {name}\ndescription: {description}\ntype: {type_name}\n---\n"
    return f"{front}\n# {name}\n\n".encode()


def add_link(index: bytes, path: str, topic: bytes) -> bytes:
    """Return the index with a line that leads to the topic at `path`: below the last such line, else at its end."""
    told = read_topic(path, topic)
    name = re.sub(r"[\[\]()]", "", told.name) or path
    end = b"\r\n" if b"\r\n" in index else b"\n"
    line = f"- [{name}]({path})".encode() + (f": {told.description}".encode() if told.description else b"")
    lines = (index or _TITLE).splitlines(keepends=True)
    links = [number for number, each in enumerate(lines[:_MAX_INDEX_LINES], start=1) if _LINK.search(each)]
    at = links[-1] if links else len(lines)
    if not lines[at - 1].endswith((b"\n", b"\r")):
        lines[at - 1] += end
    return b"".join([*lines[:at], line, end, *lines[at:]])


def _parse_index(path: str, parts: tuple[DocumentPart, ...]) -> list[LocatedEntry]:
    found = []
    for line, offset, part in _iter_positions(parts):
        text = part.data.decode("utf-8", "replace").strip()
        if part.entry is not None and not _LINK.search(part.data):
            found.append(_locate(part.entry, path, line, offset, part))
        elif (
            part.entry is None and text and not part.fenced and not text.startswith("#") and not _LINK.search(part.data)
        ):
            found.append(_locate(_create_manual_entry(path, text, line), path, line, offset, part))
    return found


def _parse_topic(path: str, data: bytes, parts: tuple[DocumentPart, ...]) -> list[LocatedEntry]:
    entries = [
        _locate(part.entry, path, line, offset, part)
        for line, offset, part in _iter_positions(parts)
        if part.entry is not None and part.is_named
    ]
    topic = read_topic(path, data)
    front = next((number for number, part in enumerate(parts) if not part.fenced), len(parts))
    body = [part for part in parts[front if parts and parts[0].data.strip() == b"---" else 0 :] if not part.is_named]
    text = b"".join(part.data for part in body).decode("utf-8", "replace").strip()
    told = ": ".join(filter(None, (topic.name, topic.description)))
    if not text.lstrip("# ").removeprefix(topic.name).strip() and (entries or is_generated(data)):
        return entries
    whole = _create_manual_entry(path, "\n\n".join(filter(None, (told, text))), 0, entry_kind(topic.type))
    return [LocatedEntry(entry=whole, path=path, line=1, end_line=1, offset=0, length=0), *entries]


def _iter_positions(parts: tuple[DocumentPart, ...]) -> Iterator[tuple[int, int, DocumentPart]]:
    """Yield each part with its line, from 1, and its offset."""
    line, offset = 1, 0
    for part in parts:
        yield line, offset, part
        line += part.data.count(b"\n")
        offset += len(part.data)


def _locate(entry: Entry, path: str, line: int, offset: int, part: DocumentPart) -> LocatedEntry:
    last = line + max(part.data.rstrip().count(b"\n"), 0)
    return LocatedEntry(entry=entry, path=path, line=line, end_line=last, offset=offset, length=len(part.data))


def _create_manual_entry(path: str, text: str, number: int, kind: str = "fact") -> Entry:
    return Entry(content=text, kind=kind, by="hand", id=derive_id(path, text if number else "", number))
