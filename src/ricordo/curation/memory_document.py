"""A curated document as parts, so that generated parts can change while all others stay byte for byte. Pure.

A part is one line of text, or one bullet with all lines that belong to it and all its fields.

Invariant: an unchanged document is the same bytes, and an operation changes no bytes of other parts. A document that
had the fields of its entries in a comment has them there again.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from ricordo.lazy import dataclass, lazy_compile
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import collect_fields, inline_fields, parse_entries, without_field_comment
from ricordo.workspace.markdown import BYTE_ORDER_MARK, split_lines

__all__ = ["DocumentPart", "MemoryDocument", "parse_memory_document"]


_HEADING = lazy_compile(rb"(#{1,6})\s+(.*?)\s*#*\s*\Z")
_FENCE = lazy_compile(rb"(`{3,}|~{3,})")


@dataclass(frozen=True, kw_only=True)
class DocumentPart:
    """A line or a bullet, with the level-two heading above it as `section` (empty before the first).

    `heading` marks a heading, `fenced` a line in code or front matter.
    """

    data: bytes
    section: str = ""
    entry: Entry | None = None
    long: str | None = None
    heading: bool = False
    fenced: bool = False

    @property
    def is_blank(self) -> bool:
        """Tell whether the part is only white space."""
        return not self.data.strip()

    @property
    def is_named(self) -> bool:
        """Tell whether the part is an entry with its id in the line, so that it keeps its id when it moves."""
        return self.entry is not None and f"^{self.entry.id}".encode() in self.data


@dataclass(frozen=True)
class MemoryDocument:
    """The parts of one document, in order, and those that it was parsed from with their bytes."""

    parts: tuple[DocumentPart, ...] = ()
    source: tuple[tuple[DocumentPart, ...], bytes] = ((), b"")

    @cached_property
    def data(self) -> bytes:
        """The bytes of the document."""
        source_parts, source = self.source
        if self.parts == source_parts:
            return source
        inline = b"".join(part.data for part in self.parts)
        return collect_fields(inline) if without_field_comment(source) != source else inline

    @property
    def entries(self) -> list[Entry]:
        """The entries in order, whatever their state."""
        return [part.entry for part in self.parts if part.entry is not None]

    def with_parts(self, parts: Iterable[DocumentPart]) -> "MemoryDocument":
        """Return the document with other parts."""
        return replace(self, parts=tuple(parts))

    def without(self, ids: Collection[str]) -> "MemoryDocument":
        """Return the document without the bullets of these entries."""
        return self.with_parts(part for part in self.parts if part.entry is None or part.entry.id not in ids)

    def replace_entry(self, entry_id: str, part: DocumentPart) -> "MemoryDocument":
        """Return the document with `part` instead of the bullet of this entry."""
        return self.with_parts(part if old.entry and old.entry.id == entry_id else old for old in self.parts)

    def insert(self, part: DocumentPart, before: Callable[[DocumentPart], bool]) -> "MemoryDocument":
        """Return the document with `part` in its section, before the first part there that `before` accepts, else last.

        The section must exist.
        """
        within = [number for number, old in enumerate(self.parts) if old.section == part.section]
        index = next((number for number in within if before(self.parts[number])), None)
        if index is None:
            last = max((number for number in within if not self.parts[number].is_blank), default=None)
            if last is None:
                # an emptied document has no part to insert after
                return self._insert_at(within[-1] + 1 if within else 0, [part])
            # text after an unclosed fence is read as code
            while self.parts[last].fenced and not _is_outside_fence(self.parts[: last + 1]):
                last -= 1
            index = last + 1
            if self.parts[last].heading:
                return self._insert_first(index, part)
        return self._insert_at(index, [part])

    def insert_all(
        self, parts: Sequence[DocumentPart], before: Callable[[DocumentPart, DocumentPart], bool]
    ) -> "MemoryDocument":
        """Return the document with `parts` of one section, as if each were inserted separately, in one pass.

        `before` tells whether a new part goes before an existing one; the new parts are given in that order.
        """
        if not parts:
            return self
        remaining = deque(parts)
        new_parts: list[DocumentPart] = []
        for old in self.parts:
            if old.section == parts[0].section:
                while remaining and before(remaining[0], old):
                    new_parts.append(remaining.popleft())
            new_parts.append(old)
        document = self.with_parts(new_parts)
        if remaining:
            # once a part goes to the end, each further part follows it
            last = remaining.popleft()
            document = document.insert(last, lambda _: False)
            index = 1 + next(number for number, part in enumerate(document.parts) if part is last)
            document = document._insert_at(index, remaining)
        return document

    def with_section(self, title: str, section_order: Sequence[str]) -> "MemoryDocument":
        """Return the document with a section of this title, placed before the first that ranks after it, else last."""
        if any(part.heading and part.section == title for part in self.parts):
            return self
        later = set(section_order[section_order.index(title) + 1 :])
        index = next((number for number, part in enumerate(self.parts) if part.heading and part.section in later), None)
        closing = index is not None
        if index is None:
            index = self._end_index()
            closing = index < len(self.parts)
        heading = [DocumentPart(data=f"## {title}\n".encode(), section=title, heading=True)]
        if closing:
            heading.append(DocumentPart(data=b"\n", section=title))
        if index and not self.parts[index - 1].is_blank:
            heading.insert(0, DocumentPart(data=b"\n", section=self.parts[index - 1].section))
        return self._insert_at(index, heading)

    def without_section(self, title: str) -> "MemoryDocument":
        """Return the document without the section of this title, if it is empty."""
        within = [part for part in self.parts if part.section == title]
        if any(not part.heading and not part.is_blank for part in within) or sum(part.heading for part in within) != 1:
            return self
        return self.with_parts(part for part in self.parts if part.section != title)

    def _insert_first(self, index: int, part: DocumentPart) -> "MemoryDocument":
        """Return the document with the first part of a section after the heading before `index`; blank lines around."""
        blank = DocumentPart(data=b"\n", section=part.section)
        after = self.parts[index : index + 2]
        if not after or not after[0].is_blank:
            return self._insert_at(index, [blank, part])
        closing = [blank] if len(after) == 2 and not after[1].is_blank else []
        return self._insert_at(index + 1, [part, *closing])

    def _end_index(self) -> int:
        """Return the index after the last part, or before an unclosed fence."""
        end = len(self.parts)
        while end and self.parts[end - 1].fenced and not _is_outside_fence(self.parts[:end]):
            end -= 1
        return end

    def _insert_at(self, index: int, parts: Iterable[DocumentPart]) -> "MemoryDocument":
        before = list(self.parts[:index])
        for part in parts:
            if before and not before[-1].data.endswith(b"\n"):
                before.append(DocumentPart(data=b"\n", section=before[-1].section))
            before.append(part)
        return self.with_parts((*before, *self.parts[index:]))


def parse_memory_document(document: bytes, path: str) -> MemoryDocument:
    """Return the parts of a document."""
    parts: list[DocumentPart] = []
    state = _LineParser()
    offset = 0
    inline = inline_fields(document)
    for located in parse_entries(inline, path):
        parts += state.parse_lines(inline[offset : located.offset])
        end = located.offset + located.length
        block = inline[located.offset : end]
        parts.append(DocumentPart(data=block, section=state.section, entry=located.entry, long=located.long_path))
        offset = end
    parts += state.parse_lines(inline[offset:])
    return MemoryDocument(tuple(parts), (tuple(parts), document))


class _LineParser:
    """The current state of parsing: section, front matter and fence."""

    def __init__(self) -> None:
        self.section = ""
        self._fence = b""
        self._is_first_line = True
        self._in_front_matter = False

    def parse_lines(self, text: bytes) -> list[DocumentPart]:
        return [self._parse_line(line) for line in split_lines(text)]

    def _parse_line(self, data: bytes) -> DocumentPart:
        line = data.removeprefix(BYTE_ORDER_MARK) if self._is_first_line else data
        stripped = line.strip()
        first, self._is_first_line = self._is_first_line, False
        if self._in_front_matter or (first and stripped == b"---"):
            self._in_front_matter = first or stripped not in {b"---", b"..."}
            return DocumentPart(data=data, section=self.section, fenced=True)
        mark = _FENCE.match(line)
        if self._fence:
            if mark and mark[1].startswith(self._fence) and not stripped.strip(self._fence[:1]):
                self._fence = b""
            return DocumentPart(data=data, section=self.section, fenced=True)
        if mark:
            self._fence = mark[1]
            return DocumentPart(data=data, section=self.section, fenced=True)
        heading = _HEADING.match(line.rstrip(b"\r\n"))
        if heading and len(heading[1]) <= 2:
            self.section = heading[2].decode("utf-8", "replace") if len(heading[1]) == 2 else ""
            return DocumentPart(data=data, section=self.section, heading=len(heading[1]) == 2)
        return DocumentPart(data=data, section=self.section)


def _is_outside_fence(parts: Sequence[DocumentPart]) -> bool:
    """Tell whether a bullet after these parts would be parsed as a bullet."""
    data = b"".join(part.data for part in parts)
    probe = data + (b"" if data.endswith(b"\n") or not data else b"\n") + b"- probe\n"
    entries = parse_entries(probe, "")
    return (
        bool(entries) and entries[-1].offset + entries[-1].length == len(probe) and entries[-1].entry.content == "probe"
    )
