"""Reads JSON values, each with its line, from bytes of any origin: lines, the elements of one list, or one document.

Lines and the elements of a list are read one at a time, so memory use depends on the longest of them and a source may
be of any size. Any other document is read whole, up to `DOCUMENT_LIMIT`. Bytes that are not UTF-8 become U+FFFD, NaN
and the infinities become null; both are reported once. Bytes with the mark of UTF-16 are read as UTF-16.

Invariants: at most `LINE_LIMIT` of one line are in memory. A broken line is one problem and never ends the reading.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from itertools import islice
from tempfile import TemporaryFile
from typing import BinaryIO, TypeAlias, cast

from ricordo.errors import InvalidMessage
from ricordo.importers.json_stream import (
    BYTE_ORDER_MARK,
    JsonRecord,
    Leniency,
    Report,
    StreamReader,
    decode_text,
    find_stream,
)
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.types import JsonValue

__all__ = [
    "DOCUMENT_LIMIT",
    "LINE_LIMIT",
    "FileLine",
    "JsonContent",
    "Opener",
    "as_utf8",
    "examine_content",
    "read_lines",
]


_MIB = 1024 * 1024
LINE_LIMIT = 32 * _MIB
DOCUMENT_LIMIT = 128 * _MIB
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1024 * 1024
_PROGRESS_STEP = 64 * 1024
# this many other lines may come before the first record in a file of lines
_LINES_TO_A_RECORD = 1_000
_ERROR_POSITION = lazy_compile(r"(?: at)?: line 1 column (\d+) \(char \d+\)", re.ASCII)

Opener: TypeAlias = Callable[[], BinaryIO]
"""Opens the bytes from their beginning, as UTF-8; it may be called several times."""


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
    return (raw.removeprefix(BYTE_ORDER_MARK) if first else raw).strip(b" \t\r\n")


def _skip_rest(file: BinaryIO, raw: bytes) -> int:
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(LINE_LIMIT)
        skipped += len(raw)
    return skipped


@dataclass(frozen=True, kw_only=True)
class _Document:
    """One JSON value that was read whole."""

    record: JsonRecord
    leniency: Leniency = field(default_factory=Leniency)


@dataclass(frozen=True, kw_only=True)
class JsonContent:
    """Bytes whose JSON records can be read more than once.

    They are lines, or what `stream` reads as it comes; else `document` is the one record, or the reason why there is
    none.
    """

    opener: Opener
    stream: StreamReader | None = None
    document: _Document | str | None = None

    def records(self, report: Report, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
        """Yield the records in order; `report` gets each broken one, and `on_bytes` how many bytes have been read."""
        on_step = _throttle_progress(on_bytes)
        match self.document:
            case None if self.stream is not None:
                with self.opener() as file:
                    yield from self.stream(file, report, on_step)
            case None:
                yield from _read_records(self.opener, report, on_step)
            case str():
                report(1, self.document)
            case _Document():
                self.document.leniency.report(report)
                yield self.document.record


def examine_content(opener: Opener, size: int) -> JsonContent | None:
    """Read the beginning of the bytes and decide how to read them; None if they are blank.

    Raises what `opener` raises.
    """
    with opener() as file:
        stream = None if _holds_several_values(file) else find_stream(file)
    if stream is not None:
        return JsonContent(opener=opener, stream=stream)
    first = next(read_lines(opener), None)
    if first is None:
        return None
    if _is_record_line(first):
        return JsonContent(opener=opener)
    document = _read_document(opener, size, first.number)
    if isinstance(document, str) and any(map(_is_record_line, islice(read_lines(opener), _LINES_TO_A_RECORD))):
        return JsonContent(opener=opener)
    return JsonContent(opener=opener, document=document)


def _holds_several_values(file: BinaryIO) -> bool:
    """Tell whether the first line is a value of its own and another record follows; the file is then at its start."""
    pieces = iter(partial(file.readline, _CHUNK), b"")
    end = b""
    for piece in pieces:
        end = piece.strip()[-1:] or end
        if end and piece.endswith(b"\n"):
            break
    start = next((text[:1] for piece in pieces if (text := piece.strip())), b"")
    file.seek(0)
    return end in (b"]", b"}") and start in (b"[", b"{")


def _read_document(opener: Opener, size: int, line: int) -> _Document | str:
    if size > DOCUMENT_LIMIT:
        return f"The file has more than {DOCUMENT_LIMIT // _MIB} MiB and is neither JSON lines nor one list."
    with opener() as file:
        raw = file.read()
    leniency = Leniency()
    try:
        value = _load_leniently(raw.removeprefix(BYTE_ORDER_MARK), line, leniency)
    except InvalidMessage as error:
        return str(error)
    return _Document(record=JsonRecord(value=value, line=line), leniency=leniency)


def _read_records(opener: Opener, report: Report, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
    leniency = Leniency()
    for line in read_lines(opener, on_bytes):
        parsed = _parse_line(line, leniency)
        if isinstance(parsed, str):
            report(line.number, parsed)
        else:
            yield parsed
    leniency.report(report)


def _parse_line(line: FileLine, leniency: Leniency) -> JsonRecord | str:
    if line.too_long:
        return f"The line is longer than {LINE_LIMIT // _MIB} MiB and was skipped."
    if b"\0" in line.content:
        return "The line holds NUL bytes: it was not written to its end, or the file is not UTF-8 text."
    try:
        return JsonRecord(value=_load_leniently(line.content, line.number, leniency), line=line.number)
    except InvalidMessage as error:
        return _ERROR_POSITION.sub(r" at column \1", str(error))


def _load_leniently(raw: bytes, line: int, leniency: Leniency) -> JsonValue:
    """Read one JSON value and count its deviations in `leniency`. Raises `InvalidMessage`."""
    text, replaced = decode_text(raw)
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
    parsed = _parse_line(line, Leniency())
    return isinstance(parsed, JsonRecord) and isinstance(parsed.value, list | dict)


def _throttle_progress(on_bytes: Callable[[int], None]) -> Callable[[int], None]:
    reported = 0

    def step(bytes_read: int) -> None:
        nonlocal reported
        if bytes_read - reported >= _PROGRESS_STEP:
            reported = bytes_read
            on_bytes(bytes_read)

    return step
