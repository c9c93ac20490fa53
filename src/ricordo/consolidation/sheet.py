"""Sheet: a memory document as parts, so that ours can change while what a person wrote stays to the byte. Pure.

A part is one line of text, or one bullet with everything that belongs to it. Invariant: the parts of a document joined
are the document, and no operation here changes the bytes of a part that it was not given.
"""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ricordo.workspace.document_text import MARK, split_lines
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries

__all__ = ["Part", "Sheet", "parse_sheet"]

_HEADING = re.compile(rb"(#{1,6})\s+(.*?)\s*#*\s*\Z")
_FENCE = re.compile(rb"(`{3,}|~{3,})")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A line or a bullet, with the heading of level two that it stands under (empty before the first).

    `heading` tells that it is a heading, `fenced` that it stands in code or front matter.
    """

    data: bytes
    section: str = ""
    entry: Entry | None = None
    long: str | None = None
    heading: bool = False
    fenced: bool = False

    @property
    def is_blank(self) -> bool:
        """Tell whether it is white space only."""
        return not self.data.strip()

    @property
    def is_named(self) -> bool:
        """Tell whether it is an entry whose id stands in its line, so that it can move without becoming another."""
        return self.entry is not None and f"^{self.entry.id}".encode() in self.data


@dataclass(frozen=True)
class Sheet:
    """The parts of one document in their order."""

    parts: tuple[Part, ...] = ()

    @property
    def data(self) -> bytes:
        """The document."""
        return b"".join(part.data for part in self.parts)

    @property
    def entries(self) -> list[Entry]:
        """The entries in their order, of whatever state."""
        return [part.entry for part in self.parts if part.entry is not None]

    def without(self, ids: Collection[str]) -> "Sheet":
        """Return the sheet without the bullets of these entries."""
        return Sheet(tuple(part for part in self.parts if part.entry is None or part.entry.id not in ids))

    def replaced(self, entry_id: str, part: Part) -> "Sheet":
        """Return the sheet with `part` in the place of the bullet of this entry."""
        return Sheet(tuple(part if old.entry and old.entry.id == entry_id else old for old in self.parts))

    def inserted(self, part: Part, before: Callable[[Part], bool]) -> "Sheet":
        """Return the sheet with `part` in its section, before the first part there that `before` takes, else last.

        The section is there already.
        """
        within = [number for number, old in enumerate(self.parts) if old.section == part.section]
        at = next((number for number in within if before(self.parts[number])), None)
        if at is None:
            last = max((number for number in within if not self.parts[number].is_blank), default=None)
            if last is None:
                # a document that somebody emptied has nothing to stand after
                return self._put(within[-1] + 1 if within else 0, [part])
            # what follows a fence that nothing closes is read as code
            while self.parts[last].fenced and not _closed(self.parts[: last + 1]):
                last -= 1
            at = last + 1
            if self.parts[last].heading:
                return self._opened(at, part)
        return self._put(at, [part])

    def grown(self, parts: Sequence[Part], before: Callable[[Part, Part], bool]) -> "Sheet":
        """Return the sheet with `parts` of one section, as if each were inserted by itself, in one pass.

        `before` tells whether a new part goes before one that is there; in that order the new ones are given.
        """
        if not parts:
            return self
        waiting = deque(parts)
        placed: list[Part] = []
        for old in self.parts:
            if old.section == parts[0].section:
                while waiting and before(waiting[0], old):
                    placed.append(waiting.popleft())
            placed.append(old)
        shown = Sheet(tuple(placed))
        if waiting:
            # after the first that goes to the end each further one follows the one before it
            last = waiting.popleft()
            shown = shown.inserted(last, lambda _: False)
            at = 1 + next(number for number, part in enumerate(shown.parts) if part is last)
            shown = shown._put(at, waiting)
        return shown

    def with_section(self, title: str, ranks: Sequence[str]) -> "Sheet":
        """Return the sheet with a section of this title, placed before the first that ranks after it, else last."""
        if any(part.heading and part.section == title for part in self.parts):
            return self
        later = set(ranks[ranks.index(title) + 1 :])
        at = next((number for number, part in enumerate(self.parts) if part.heading and part.section in later), None)
        closing = at is not None
        if at is None:
            at = self._end()
            closing = at < len(self.parts)
        heading = [Part(data=f"## {title}\n".encode(), section=title, heading=True)]
        if closing:
            heading.append(Part(data=b"\n", section=title))
        if at and not self.parts[at - 1].is_blank:
            heading.insert(0, Part(data=b"\n", section=self.parts[at - 1].section))
        return self._put(at, heading)

    def without_section(self, title: str) -> "Sheet":
        """Return the sheet without the section of this title, if nothing stands in it."""
        within = [part for part in self.parts if part.section == title]
        if any(not part.heading and not part.is_blank for part in within) or sum(part.heading for part in within) != 1:
            return self
        return Sheet(tuple(part for part in self.parts if part.section != title))

    def _opened(self, at: int, part: Part) -> "Sheet":
        """Return the sheet with the first part of a section, after the heading before `at`, blank lines around it."""
        blank = Part(data=b"\n", section=part.section)
        after = self.parts[at : at + 2]
        if not after or not after[0].is_blank:
            return self._put(at, [blank, part])
        closing = [blank] if len(after) == 2 and not after[1].is_blank else []
        return self._put(at + 1, [part, *closing])

    def _end(self) -> int:
        """Return the place after the last part, or before a fence that nothing closes."""
        end = len(self.parts)
        while end and self.parts[end - 1].fenced and not _closed(self.parts[:end]):
            end -= 1
        return end

    def _put(self, at: int, parts: Iterable[Part]) -> "Sheet":
        before = list(self.parts[:at])
        for part in parts:
            if before and not before[-1].data.endswith(b"\n"):
                before.append(Part(data=b"\n", section=before[-1].section))
            before.append(part)
        return Sheet((*before, *self.parts[at:]))


def parse_sheet(document: bytes, path: str) -> Sheet:
    """Return the parts of a document."""
    parts: list[Part] = []
    state = _State()
    offset = 0
    for found in parse_entries(document, path):
        parts += state.lines(document[offset : found.offset])
        end = found.offset + found.length
        block = document[found.offset : end]
        parts.append(Part(data=block, section=state.section, entry=found.entry, long=found.long))
        offset = end
    return Sheet((*parts, *state.lines(document[offset:])))


class _State:
    """Where in a document we are: its section, its front matter, its fence."""

    def __init__(self) -> None:
        self.section = ""
        self._fence = b""
        self._first = True
        self._front = False

    def lines(self, text: bytes) -> list[Part]:
        return [self._line(line) for line in split_lines(text)]

    def _line(self, data: bytes) -> Part:
        line = data.removeprefix(MARK) if self._first else data
        bare = line.strip()
        first, self._first = self._first, False
        if self._front or (first and bare == b"---"):
            self._front = first or bare not in {b"---", b"..."}
            return Part(data=data, section=self.section, fenced=True)
        mark = _FENCE.match(line)
        if self._fence:
            if mark and mark[1].startswith(self._fence) and not bare.strip(self._fence[:1]):
                self._fence = b""
            return Part(data=data, section=self.section, fenced=True)
        if mark:
            self._fence = mark[1]
            return Part(data=data, section=self.section, fenced=True)
        heading = _HEADING.match(line.rstrip(b"\r\n"))
        if heading and len(heading[1]) <= 2:
            self.section = heading[2].decode("utf-8", "replace") if len(heading[1]) == 2 else ""
            return Part(data=data, section=self.section, heading=len(heading[1]) == 2)
        return Part(data=data, section=self.section)


def _closed(parts: Sequence[Part]) -> bool:
    """Tell whether a bullet after these parts would be read as one."""
    data = b"".join(part.data for part in parts)
    probe = data + (b"" if data.endswith(b"\n") or not data else b"\n") + b"- probe\n"
    found = parse_entries(probe, "")
    return bool(found) and found[-1].offset + found[-1].length == len(probe) and found[-1].entry.content == "probe"
