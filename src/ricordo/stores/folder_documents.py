"""What the documents of a memory folder say, in the layout that other tools write: an index and topics. Pure.

MEMORY.md lists topics, a link a line, and may say things itself; a topic is a front matter of name, description and
type, and text below it. A bullet with an id is an entry of its own, wherever it stands; all other text of a topic is
one memory. Invariant: a line that is added takes nothing away, and every other byte stays.
"""

import re
from collections.abc import Iterator, Mapping

from ricordo.consolidation.sheet import Part, parse_sheet
from ricordo.consolidation.topics import is_ours, kind_of, read_topic
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import Located, derived_id

__all__ = ["INDEX", "links_to", "located_in", "new_document", "with_link"]

INDEX = "MEMORY.md"
_TITLE = b"# Memory\n\n"
_LINK = re.compile(rb"\]\((?:\./)?([^)\s#]+\.md)(?:#[^)]*)?\)")
_READ_LINES = 199
"""How far down in the index other tools read: a link below it is not seen."""

_TOLD: Mapping[str, tuple[str, str]] = {
    "user": ("User", "What the user prefers"),
    "feedback": ("Feedback", "How to work: conventions, corrections and lessons"),
    "project": ("Project", "Facts, decisions and goals of the project"),
    "reference": ("Reference", "Where things are to be looked up"),
}


def located_in(path: str, data: bytes) -> list[Located]:
    """Return what a document says, in its order; a line of the index that only leads to a topic says nothing."""
    parts = parse_sheet(data, path).parts
    return _said_in_index(path, parts) if path == INDEX else _said_in_topic(path, data, parts)


def links_to(index: bytes, path: str) -> bool:
    """Tell whether the index leads to the topic at `path`."""
    return path.encode() in _LINK.findall(index)


def new_document(type_name: str) -> bytes:
    """Return the beginning of a topic for memories of this type."""
    name, description = _TOLD[type_name]
    front = f"---\nname: {name}\ndescription: {description}\ntype: {type_name}\n---\n"
    return f"{front}\n# {name}\n\n".encode()


def with_link(index: bytes, path: str, topic: bytes) -> bytes:
    """Return the index with a line that leads to the topic at `path`: below the last such line, else at its end."""
    told = read_topic(path, topic)
    name = re.sub(r"[\[\]()]", "", told.name) or path
    end = b"\r\n" if b"\r\n" in index else b"\n"
    line = f"- [{name}]({path})".encode() + (f": {told.description}".encode() if told.description else b"")
    lines = (index or _TITLE).splitlines(keepends=True)
    links = [number for number, each in enumerate(lines[:_READ_LINES], start=1) if _LINK.search(each)]
    at = links[-1] if links else len(lines)
    if not lines[at - 1].endswith((b"\n", b"\r")):
        lines[at - 1] += end
    return b"".join([*lines[:at], line, end, *lines[at:]])


def _said_in_index(path: str, parts: tuple[Part, ...]) -> list[Located]:
    found = []
    for line, offset, part in _placed(parts):
        text = part.data.decode("utf-8", "replace").strip()
        if part.entry is not None and not _LINK.search(part.data):
            found.append(_located(part.entry, path, line, offset, part))
        elif (
            part.entry is None and text and not part.fenced and not text.startswith("#") and not _LINK.search(part.data)
        ):
            found.append(_located(_by_hand(path, text, line), path, line, offset, part))
    return found


def _said_in_topic(path: str, data: bytes, parts: tuple[Part, ...]) -> list[Located]:
    entries = [
        _located(part.entry, path, line, offset, part)
        for line, offset, part in _placed(parts)
        if part.entry is not None and part.is_named
    ]
    topic = read_topic(path, data)
    front = next((number for number, part in enumerate(parts) if not part.fenced), len(parts))
    body = [part for part in parts[front if parts and parts[0].data.strip() == b"---" else 0 :] if not part.is_named]
    text = b"".join(part.data for part in body).decode("utf-8", "replace").strip()
    told = ": ".join(filter(None, (topic.name, topic.description)))
    if not text.lstrip("# ").removeprefix(topic.name).strip() and (entries or is_ours(data)):
        return entries
    whole = _by_hand(path, "\n\n".join(filter(None, (told, text))), 0, kind_of(topic.type))
    return [Located(entry=whole, path=path, line=1, end_line=1, offset=0, length=0), *entries]


def _placed(parts: tuple[Part, ...]) -> Iterator[tuple[int, int, Part]]:
    """Yield each part with its line, from 1, and its offset."""
    line, offset = 1, 0
    for part in parts:
        yield line, offset, part
        line += part.data.count(b"\n")
        offset += len(part.data)


def _located(entry: Entry, path: str, line: int, offset: int, part: Part) -> Located:
    last = line + max(part.data.rstrip().count(b"\n"), 0)
    return Located(entry=entry, path=path, line=line, end_line=last, offset=offset, length=len(part.data))


def _by_hand(path: str, text: str, number: int, kind: str = "fact") -> Entry:
    return Entry(content=text, kind=kind, by="hand", id=derived_id(path, text if number else "", number))
