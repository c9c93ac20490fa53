"""From a file to its JSON records: one for each line, or the whole file as one.

A file is read line by line when its first line that is not blank is a JSON object or list of its own; memory then
depends on the longest line, not on the file. Otherwise (a pretty-printed file, or one line above `LINE_LIMIT`) the
whole file is tried as one document, up to `DOCUMENT_LIMIT`. When it is none, but some line near its beginning is a
record, it is a file of lines with a broken beginning; else the file is one problem, not one for each of its lines.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ricordo.errors import InvalidMessage
from ricordo.importers.contract import Problem
from ricordo.importers.lines import LINE_LIMIT, Line, opened, read_lines, size_of
from ricordo.messages.jsontext import loads
from ricordo.messages.types import JsonValue

__all__ = ["DOCUMENT_LIMIT", "Record", "Report", "Source", "open_source"]

DOCUMENT_LIMIT = 128 * 1024 * 1024
_MIB = 1024 * 1024
_PROGRESS_STEP = 64 * 1024
# so many lines of something else may stand before the first record of a file of lines
_LINES_TO_A_RECORD = 1_000
_ONLY_LINE = re.compile(r": line 1 column (\d+) \(char \d+\)", re.ASCII)
_UNDECODABLE = "Some bytes were no UTF-8 and are replaced by U+FFFD; the file is read all the same."

Report = Callable[[Problem], None]


@dataclass(frozen=True, kw_only=True)
class Record:
    """One JSON value of a file and the line it begins on, from 1."""

    value: JsonValue
    line: int


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file that is one JSON value; `lossy` when bytes that are not UTF-8 had to be replaced."""

    record: Record
    lossy: bool


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file whose records can be read more than once.

    `document` is None for a file of lines, and the reason when the file is neither lines nor a document.
    """

    path: Path
    size: int
    document: Document | str | None = None

    def records(self, on_problem: Report, on_bytes: Callable[[int], None]) -> Iterator[Record]:
        """Give the records in order, tell `on_problem` of each that is broken and `on_bytes` how far the reading is."""
        match self.document:
            case None:
                yield from self._lines(on_problem, _in_steps(on_bytes))
            case str():
                on_problem(Problem(path=str(self.path), line=1, reason=self.document))
            case Document():
                if self.document.lossy:
                    on_problem(Problem(path=str(self.path), line=self.document.record.line, reason=_UNDECODABLE))
                yield self.document.record
        on_bytes(self.size)

    def _lines(self, on_problem: Report, on_bytes: Callable[[int], None]) -> Iterator[Record]:
        for line in read_lines(self.path, on_bytes):
            found = _parsed(line)
            if isinstance(found, str):
                on_problem(Problem(path=str(self.path), line=line.number, reason=found))
            else:
                yield found


def open_source(path: Path) -> Source:
    """Look at the beginning of `path` and decide how it is read.

    Raises:
        FileMissing: there is no such file.
        HistoryUnreadable: it is a folder.
        StorageFailed: the system refuses to open it.
    """
    size = size_of(path)
    first = next(read_lines(path), None)
    if first is None or _holds_record(first):
        return Source(path=path, size=size)
    document = _document(path, size, first.number)
    if isinstance(document, str) and any(map(_holds_record, islice(read_lines(path), _LINES_TO_A_RECORD))):
        return Source(path=path, size=size)
    return Source(path=path, size=size, document=document)


def _document(path: Path, size: int, line: int) -> Document | str:
    if size > DOCUMENT_LIMIT:
        return f"The file has more than {DOCUMENT_LIMIT // _MIB} MiB and is not in JSON lines."
    with opened(path) as file:
        raw = file.read()
    text = raw.decode("utf-8-sig", "replace")
    try:
        return Document(record=Record(value=loads(text), line=line), lossy="\ufffd" in text and not _is_utf8(raw))
    except InvalidMessage as error:
        return str(error)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parsed(line: Line) -> Record | str:
    if line.too_long:
        return f"The line is longer than {LINE_LIMIT // _MIB} MiB and was skipped."
    if b"\0" in line.content:
        return "The line holds NUL bytes: it was not written to its end, or the file is not UTF-8 text."
    try:
        return Record(value=loads(line.content), line=line.number)
    except InvalidMessage as error:
        return _ONLY_LINE.sub(r" at column \1", str(error))


def _holds_record(line: Line) -> bool:
    found = _parsed(line)
    return isinstance(found, Record) and isinstance(found.value, list | dict)


def _in_steps(on_bytes: Callable[[int], None]) -> Callable[[int], None]:
    reported = 0

    def step(done: int) -> None:
        nonlocal reported
        if done - reported >= _PROGRESS_STEP:
            reported = done
            on_bytes(done)

    return step
