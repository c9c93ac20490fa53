"""From a file to its JSON records: one for each line, or the whole file as one.

A file is read line by line when its first line that is not blank is a JSON object or list of its own; memory then
depends on the longest line, not on the file. Otherwise (a pretty-printed file, or one line above `LINE_LIMIT`) the
whole file is tried as one document, up to `DOCUMENT_LIMIT`. When it is none, but some line near its beginning is a
record, it is a file of lines with a broken beginning; else the file is one problem, not one for each of its lines.

What other programs write beside strict JSON is read all the same, and told once for the file: bytes that are not UTF-8
become U+FFFD, NaN and the infinities become null.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ricordo.errors import HistoryUnreadable, InvalidMessage
from ricordo.importers.contract import ImportProblem
from ricordo.importers.lines import LINE_LIMIT, FileLine, open_utf8, read_lines, utf8_size
from ricordo.messages.types import JsonValue

__all__ = ["DOCUMENT_LIMIT", "JsonRecord", "ProblemHandler", "HistoryFile", "open_history"]

DOCUMENT_LIMIT = 128 * 1024 * 1024
_MIB = 1024 * 1024
_PROGRESS_STEP = 64 * 1024
# so many lines of something else may stand before the first record of a file of lines
_LINES_TO_A_RECORD = 1_000
_ERROR_POSITION = re.compile(r"(?: at)?: line 1 column (\d+) \(char \d+\)", re.ASCII)

ProblemHandler = Callable[[ImportProblem], None]


@dataclass(frozen=True, kw_only=True)
class JsonRecord:
    """One JSON value of a file and the line it begins on, from 1."""

    value: JsonValue
    line: int


@dataclass(kw_only=True)
class _Leniency:
    """How much in a file was no strict JSON and was read all the same, and the line where that began."""

    replaced: int = 0
    nulls: int = 0
    line: int = 0

    def count(self, replaced: int, nulls: int, line: int) -> None:
        if (replaced or nulls) and not self.line:
            self.line = line
        self.replaced += replaced
        self.nulls += nulls

    def report(self, path: Path, on_problem: ProblemHandler) -> None:
        told = [
            f"bytes that were no UTF-8 and are replaced by U+FFFD: {self.replaced:,}" if self.replaced else "",
            f"numbers that were NaN or infinite and are taken as null: {self.nulls:,}" if self.nulls else "",
        ]
        if self.line:
            reason = f"read all the same: {'; '.join(filter(None, told))}"
            on_problem(ImportProblem(path=str(path), line=self.line, reason=reason, skipped=False))


@dataclass(frozen=True, kw_only=True)
class JsonHistory:
    """A file that is one JSON value."""

    record: JsonRecord
    leniency: _Leniency = field(default_factory=_Leniency)


@dataclass(frozen=True, kw_only=True)
class HistoryFile:
    """A file whose records can be read more than once.

    `document` is None for a file of lines, and the reason when the file is neither lines nor a document.
    """

    path: Path
    size: int
    document: JsonHistory | str | None = None

    def records(self, on_problem: ProblemHandler, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
        """Give the records in order, tell `on_problem` of each that is broken and `on_bytes` how far the reading is."""
        match self.document:
            case None:
                yield from self._lines(on_problem, _throttle_progress(on_bytes))
            case str():
                on_problem(ImportProblem(path=str(self.path), line=1, reason=self.document))
            case JsonHistory():
                self.document.leniency.report(self.path, on_problem)
                yield self.document.record
        on_bytes(self.size)

    def _lines(self, on_problem: ProblemHandler, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
        leniency = _Leniency()
        for line in read_lines(self.path, on_bytes):
            found = _parse_line(line, leniency)
            if isinstance(found, str):
                on_problem(ImportProblem(path=str(self.path), line=line.number, reason=found))
            else:
                yield found
        leniency.report(self.path, on_problem)


def open_history(path: Path) -> HistoryFile:
    """Look at the beginning of `path` and decide how it is read.

    Raises:
        FileMissing: there is no such file.
        HistoryUnreadable: it is a folder, or empty.
        StorageFailed: the system refuses to open it.
    """
    size = utf8_size(path)
    first = next(read_lines(path), None)
    if first is None:
        raise HistoryUnreadable(f"{path} is empty.")
    if _is_record_line(first):
        return HistoryFile(path=path, size=size)
    document = _read_document(path, size, first.number)
    if isinstance(document, str) and any(map(_is_record_line, islice(read_lines(path), _LINES_TO_A_RECORD))):
        return HistoryFile(path=path, size=size)
    return HistoryFile(path=path, size=size, document=document)


def _read_document(path: Path, size: int, line: int) -> JsonHistory | str:
    if size > DOCUMENT_LIMIT:
        return f"The file has more than {DOCUMENT_LIMIT // _MIB} MiB and is not in JSON lines."
    with open_utf8(path) as file:
        raw = file.read()
    leniency = _Leniency()
    try:
        value = _load_leniently(raw.removeprefix(codecs.BOM_UTF8), line, leniency)
    except InvalidMessage as error:
        return str(error)
    return JsonHistory(record=JsonRecord(value=value, line=line), leniency=leniency)


def _parse_line(line: FileLine, leniency: _Leniency) -> JsonRecord | str:
    if line.too_long:
        return f"The line is longer than {LINE_LIMIT // _MIB} MiB and was skipped."
    if b"\0" in line.content:
        return "The line holds NUL bytes: it was not written to its end, or the file is not UTF-8 text."
    try:
        return JsonRecord(value=_load_leniently(line.content, line.number, leniency), line=line.number)
    except InvalidMessage as error:
        return _ERROR_POSITION.sub(r" at column \1", str(error))


def _load_leniently(raw: bytes, line: int, leniency: _Leniency) -> JsonValue:
    """Read one JSON value and count in `leniency` what had to be read around. Raises `InvalidMessage`."""
    try:
        text, replaced = raw.decode("utf-8"), 0
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        replaced = len(raw) - len(raw.decode("utf-8", "ignore").encode("utf-8"))
    nulls: list[str] = []
    try:
        value: JsonValue = json.loads(text, parse_constant=nulls.append)
    except ValueError as error:
        raise InvalidMessage(f"This is not JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidMessage("This JSON is nested too deeply.") from error
    leniency.count(replaced, len(nulls), line)
    return value


def _is_record_line(line: FileLine) -> bool:
    found = _parse_line(line, _Leniency())
    return isinstance(found, JsonRecord) and isinstance(found.value, list | dict)


def _throttle_progress(on_bytes: Callable[[int], None]) -> Callable[[int], None]:
    reported = 0

    def step(done: int) -> None:
        nonlocal reported
        if done - reported >= _PROGRESS_STEP:
            reported = done
            on_bytes(done)

    return step
