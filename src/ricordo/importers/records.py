"""Reads JSON values, each with its line, from bytes of any origin: lines, the elements of one list, or one document.

Lines and the elements of a list are read one at a time, so memory use depends on the longest of them and a source may
be of any size. Any other document is read whole, up to `DOCUMENT_LIMIT`. Bytes that are not UTF-8 become U+FFFD, NaN
and the infinities become null; both are reported once. Bytes with the mark of UTF-16 are read as UTF-16.

Invariants: at most `LINE_LIMIT` of one line and `DOCUMENT_LIMIT` of one element are in memory. A broken line is one
problem and never ends the reading; a broken element ends the list, as nothing tells where the next one begins.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice
from tempfile import TemporaryFile
from typing import BinaryIO, Protocol, TypeAlias, cast

from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.types import JsonValue

__all__ = [
    "DOCUMENT_LIMIT",
    "LINE_LIMIT",
    "FileLine",
    "JsonContent",
    "JsonRecord",
    "Opener",
    "Report",
    "as_utf8",
    "examine_content",
    "read_lines",
]


_MIB = 1024 * 1024
LINE_LIMIT = 32 * _MIB
DOCUMENT_LIMIT = 128 * _MIB
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1024 * 1024
_PROGRESS_STEP = 64 * 1024
# this many other lines may come before the first record in a file of lines
_LINES_TO_A_RECORD = 1_000
_ERROR_POSITION = lazy_compile(r"(?: at)?: line 1 column (\d+) \(char \d+\)", re.ASCII)

Opener: TypeAlias = Callable[[], BinaryIO]
"""Opens the bytes from their beginning, as UTF-8; it may be called several times."""


class Report(Protocol):
    """Takes the reason why the record in a line was skipped, or was read with a change."""

    def __call__(self, line: int, reason: str, *, skipped: bool = True) -> None: ...


@dataclass(frozen=True, kw_only=True)
class JsonRecord:
    """One JSON value and the line where it begins, from 1."""

    value: JsonValue
    line: int


@dataclass(frozen=True, kw_only=True)
class FileLine:
    """One non-blank line: its number from 1, its bytes (empty when `too_long`), and the offset after it."""

    number: int
    content: bytes
    end: int
    too_long: bool = False


def as_utf8(file: BinaryIO) -> BinaryIO:
    """Return `file` from its beginning, or a copy in UTF-8 if it has the byte order mark of UTF-16."""
    mark = file.read(2)
    file.seek(0)
    if mark not in _UTF_16:
        return file
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    copy = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - the caller closes it
    with file:
        while chunk := file.read(_CHUNK):
            copy.write(decoder.decode(chunk).encode("utf-8"))
        copy.write(decoder.decode(b"", final=True).encode("utf-8"))
    copy.seek(0)
    return copy


def read_lines(opener: Opener, on_end: Callable[[int], None] | None = None) -> Iterator[FileLine]:
    """Yield the non-blank lines in order; `on_end` gets the offset after each line, including blank ones.

    Raises what `opener` raises.
    """
    with opener() as file:
        number = end = 0
        while raw := file.readline(LINE_LIMIT + 1):
            number += 1
            end += len(raw)
            too_long = len(raw) > LINE_LIMIT
            if too_long:
                end += _skip_rest(file, raw)
            content = b"" if too_long else _strip_line(raw, first=number == 1)
            if on_end is not None:
                on_end(end)
            if content or too_long:
                yield FileLine(number=number, content=content, end=end, too_long=too_long)


def _strip_line(raw: bytes, *, first: bool) -> bytes:
    return (raw.removeprefix(_BOM) if first else raw).strip(b" \t\r\n")


def _skip_rest(file: BinaryIO, raw: bytes) -> int:
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(LINE_LIMIT)
        skipped += len(raw)
    return skipped


@dataclass(kw_only=True)
class _Leniency:
    """The number of values that are not strict JSON but were read anyway, and the line of the first one."""

    replaced: int = 0
    nulls: int = 0
    line: int = 0

    def count(self, replaced: int, nulls: int, line: int) -> None:
        if (replaced or nulls) and not self.line:
            self.line = line
        self.replaced += replaced
        self.nulls += nulls

    def report(self, report: Report) -> None:
        repairs = [
            f"bytes that were no UTF-8 and are replaced by U+FFFD: {self.replaced:,}" if self.replaced else "",
            f"numbers that were NaN or infinite and are taken as null: {self.nulls:,}" if self.nulls else "",
        ]
        if self.line:
            report(self.line, f"read all the same: {'; '.join(filter(None, repairs))}", skipped=False)


@dataclass(frozen=True, kw_only=True)
class _Document:
    """One JSON value that was read whole."""

    record: JsonRecord
    leniency: _Leniency = field(default_factory=_Leniency)


@dataclass(frozen=True, kw_only=True)
class JsonContent:
    """Bytes whose JSON records can be read more than once.

    They are lines, or the elements of one list with `is_list`; else `document` is the one record, or the reason why
    there is none.
    """

    opener: Opener
    is_list: bool = False
    document: _Document | str | None = None

    def records(self, report: Report, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
        """Yield the records in order; `report` gets each broken one, and `on_bytes` how many bytes have been read."""
        match self.document:
            case None:
                read = _read_elements if self.is_list else _read_records
                yield from read(self.opener, report, _throttle_progress(on_bytes))
            case str():
                report(1, self.document)
            case _Document():
                self.document.leniency.report(report)
                yield self.document.record


def examine_content(opener: Opener, size: int) -> JsonContent | None:
    """Read the beginning of the bytes and decide how to read them; None if they are blank.

    Raises what `opener` raises.
    """
    lines = list(islice(read_lines(opener), 2))
    if not lines:
        return None
    first = lines[0]
    if _begins_list(opener) and not _is_whole_list(lines):
        return JsonContent(opener=opener, is_list=True)
    if _is_record_line(first):
        return JsonContent(opener=opener)
    document = _read_document(opener, size, first.number)
    if isinstance(document, str) and any(map(_is_record_line, islice(read_lines(opener), _LINES_TO_A_RECORD))):
        return JsonContent(opener=opener)
    return JsonContent(opener=opener, document=document)


def _is_whole_list(lines: list[FileLine]) -> bool:
    """Tell whether the first line is a list of its own and another record follows it."""
    return len(lines) > 1 and lines[0].content.endswith(b"]") and lines[1].content.startswith((b"[", b"{"))


def _begins_list(opener: Opener) -> bool:
    """Tell whether the bytes begin with a list whose first element can be read, or which is empty."""
    problems: list[str] = []

    def note(line: int, reason: str, *, skipped: bool = True) -> None:
        del line, skipped
        problems.append(reason)

    with opener() as file:
        if not file.read(_CHUNK).removeprefix(_BOM).lstrip(b" \t\r\n").startswith(b"["):
            return False
    next(_read_elements(opener, note, _ignore), None)
    return not problems


def _ignore(*_: object) -> None:
    return None


def _read_document(opener: Opener, size: int, line: int) -> _Document | str:
    if size > DOCUMENT_LIMIT:
        return f"The file has more than {DOCUMENT_LIMIT // _MIB} MiB and is neither JSON lines nor one list."
    with opener() as file:
        raw = file.read()
    leniency = _Leniency()
    try:
        value = _load_leniently(raw.removeprefix(_BOM), line, leniency)
    except InvalidMessage as error:
        return str(error)
    return _Document(record=JsonRecord(value=value, line=line), leniency=leniency)


def _read_records(opener: Opener, report: Report, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
    leniency = _Leniency()
    for line in read_lines(opener, on_bytes):
        parsed = _parse_line(line, leniency)
        if isinstance(parsed, str):
            report(line.number, parsed)
        else:
            yield parsed
    leniency.report(report)


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
    """Read one JSON value and count its deviations in `leniency`. Raises `InvalidMessage`."""
    text, replaced = _decode(raw)
    nulls: list[str] = []
    try:
        value: JsonValue = json.loads(text, parse_constant=nulls.append)
    except ValueError as error:
        raise InvalidMessage(f"This is not JSON: {error}.") from error
    except RecursionError as error:
        raise InvalidMessage("This JSON is nested too deeply.") from error
    leniency.count(replaced, len(nulls), line)
    return value


def _decode(raw: bytes) -> tuple[str, int]:
    """Return the text, and how many bytes of it were no UTF-8."""
    try:
        return raw.decode("utf-8"), 0
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), len(raw) - len(raw.decode("utf-8", "ignore").encode("utf-8"))


def _is_record_line(line: FileLine) -> bool:
    parsed = _parse_line(line, _Leniency())
    return isinstance(parsed, JsonRecord) and isinstance(parsed.value, list | dict)


_SPACE = " \t\r\n"
_SPACE_PATTERN = lazy_compile(f"[{_SPACE}]*")
# an element whose text ends before its end fails within so many characters of the end, or in a string that is open
_LONGEST_TOKEN = 24


class _ElementReader:
    """Reads the elements of one list from a text that comes in pieces; it holds no more than the current element."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self.line, self.leniency = 1, _Leniency()
        self._file, self._on_bytes = file, on_bytes
        self._text, self._position, self._bytes_read, self._rest = "", 0, 0, b""
        self._nulls: list[str] = []
        self._decoder = json.JSONDecoder(parse_constant=self._nulls.append)

    def skip_to_token(self) -> str:
        """Go to the next character that is no space, and return it; empty at the end."""
        while True:
            end = _SPACE_PATTERN.match(self._text, self._position).end()  # type: ignore[union-attr]  # may be empty
            self._move(end)
            if end < len(self._text):
                return self._text[end]
            if not self._read_more():
                return ""

    def skip_character(self) -> None:
        """Go past the current character."""
        self._move(self._position + 1)

    def read_value(self) -> JsonRecord:
        """Read the value that begins here. Raises: InvalidMessage if it is broken, or longer than a document may be."""
        line = self.line
        while True:
            self._nulls.clear()
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except RecursionError as error:
                raise InvalidMessage("This JSON is nested too deeply.") from error
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - _LONGEST_TOKEN
                if not is_cut or not self._read_more(double=True):
                    raise InvalidMessage(f"This is not JSON: {error.msg}.") from error
            else:
                # a number may go on in the next piece
                if end < len(self._text) or not self._read_more():
                    self.leniency.count(0, len(self._nulls), line)
                    self._move(end)
                    return JsonRecord(value=value, line=line)

    def _move(self, position: int) -> None:
        self.line += self._text.count("\n", self._position, position)
        self._position = position

    def _read_more(self, *, double: bool = False) -> bool:
        """Read a further piece, or with `double` as much again as there is, so that the time stays linear."""
        waiting = len(self._text) - self._position
        if waiting > DOCUMENT_LIMIT:
            raise InvalidMessage(f"One element has more than {DOCUMENT_LIMIT // _MIB} MiB.")
        raw = self._file.read(max(_CHUNK, waiting if double else 0))
        if not raw and not self._rest:
            return False
        self._bytes_read += len(raw)
        self._on_bytes(self._bytes_read)
        piece = self._rest + raw
        # a character of several bytes may go on in the next piece
        length = len(piece) if not raw else next((end for end in range(len(piece), 0, -1) if piece[end - 1] < 0x80), 0)
        text, replaced = _decode(piece[:length])
        self._rest = piece[length:]
        self.leniency.count(replaced, 0, self.line)
        self._text, self._position = self._text[self._position :] + text, 0
        return True


def _read_elements(opener: Opener, report: Report, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
    """Yield the elements of the list that the bytes are, each with its line."""
    with opener() as file:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        reader = _ElementReader(file, on_bytes)
        try:
            yield from _iterate_elements(reader)
        except InvalidMessage as error:
            report(reader.line, f"{error} What follows in the file was not read.")
        reader.leniency.report(report)


def _iterate_elements(reader: _ElementReader) -> Iterator[JsonRecord]:
    if reader.skip_to_token() != "[":
        raise InvalidMessage("A list begins with [.")
    reader.skip_character()
    while (token := reader.skip_to_token()) != "]":
        if not token:
            raise InvalidMessage("The list has no end: the file was not written to its end.")
        yield reader.read_value()
        if reader.skip_to_token() == ",":
            reader.skip_character()
        elif reader.skip_to_token() not in ("]", ""):
            raise InvalidMessage("Between two elements of a list stands a comma.")
    reader.skip_character()
    if reader.skip_to_token():
        raise InvalidMessage("Something follows the end of the list.")


def _throttle_progress(on_bytes: Callable[[int], None]) -> Callable[[int], None]:
    reported = 0

    def step(bytes_read: int) -> None:
        nonlocal reported
        if bytes_read - reported >= _PROGRESS_STEP:
            reported = bytes_read
            on_bytes(bytes_read)

    return step
