"""JSON that is read as it comes: the elements of a long list, one after the other.

The list is the whole text, or stands in an object under a name that means a page of records, such as `results`. Each
element of a page is given as a page of its own, with that one element and the plain values before it.

Invariants: no more than the current element is held, and at most `ELEMENT_LIMIT` of it. A broken element is one
problem, and the reading goes on after it where its brackets show its end.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol, TypeAlias

from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.types import JsonValue

__all__ = [
    "BYTE_ORDER_MARK",
    "ELEMENT_LIMIT",
    "JsonRecord",
    "Leniency",
    "Report",
    "StreamReader",
    "decode_text",
    "find_stream",
    "read_elements",
    "read_page",
]


_MIB = 1024 * 1024
ELEMENT_LIMIT = 128 * _MIB
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK = 1024 * 1024
_SPACE = " \t\r\n"
_SPACE_PATTERN = lazy_compile(f"[{_SPACE}]*")
_STRUCTURE = lazy_compile(r'["{}\[\],]')
_STRING_END = lazy_compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
# an element whose text ends before its end fails within so many characters of the end, or in a string that is open
_LONGEST_TOKEN = 24
PAGE_LISTS = frozenset({"results", "memories", "relations", "entities"})
"""The names under which an object has a list of records that are understood one by one."""


class Report(Protocol):
    """Takes the reason why the record in a line was skipped, or was read with a change; `record` is its number."""

    def __call__(self, line: int, reason: str, *, skipped: bool = True, record: int = 0) -> None: ...


@dataclass(frozen=True, kw_only=True)
class JsonRecord:
    """One JSON value, the line where it begins, and its number in the list that it is from; both from 1, 0 for none."""

    value: JsonValue
    line: int
    number: int = 0


@dataclass(kw_only=True)
class Leniency:
    """The number of values that are not strict JSON but were read anyway, and the line of the first one."""

    replaced: int = 0
    nulls: int = 0
    line: int = 0

    def count(self, replaced: int, nulls: int, line: int) -> None:
        """Add what was read so in this line."""
        if (replaced or nulls) and not self.line:
            self.line = line
        self.replaced += replaced
        self.nulls += nulls

    def report(self, report: Report) -> None:
        """Report all of it as one problem, if there is any."""
        repairs = [
            f"bytes that were no UTF-8 and are replaced by U+FFFD: {self.replaced:,}" if self.replaced else "",
            f"numbers that were NaN or infinite and are taken as null: {self.nulls:,}" if self.nulls else "",
        ]
        if self.line:
            report(self.line, f"read all the same: {'; '.join(filter(None, repairs))}", skipped=False)


def decode_text(raw: bytes) -> tuple[str, int]:
    """Return the text, and how many bytes of it were no UTF-8."""
    try:
        return raw.decode("utf-8"), 0
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), len(raw) - len(raw.decode("utf-8", "ignore").encode("utf-8"))


class _JsonReader:
    """Reads values one by one from a text that comes in pieces."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None]) -> None:
        self.line, self.leniency = 1, Leniency()
        self._file, self._on_bytes = file, on_bytes
        self._text, self._position, self._bytes_read, self._rest = "", 0, 0, b""
        self._nulls: list[str] = []
        self._decoder = json.JSONDecoder(parse_constant=self._nulls.append)
        if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
            file.seek(0)

    def skip_to_token(self) -> str:
        """Go to the next character that is no space, and return it; empty at the end."""
        while True:
            end = _SPACE_PATTERN.match(self._text, self._position).end()  # type: ignore[union-attr]  # may be empty
            self._move(end)
            if end < len(self._text):
                return self._text[end]
            if not self._read_more():
                return ""

    def take(self, token: str) -> bool:
        """Go past the next token if it is this one, and return whether it is."""
        found = self.skip_to_token() == token
        if found:
            self._move(self._position + 1)
        return found

    def read_value(self) -> JsonValue:
        """Read the value that begins here. Raises: InvalidMessage if it is broken, or longer than an element may be."""
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
                    found: JsonValue = value
                    return found

    def skip_value(self) -> None:
        """Go past the value that begins here, whatever is wrong in it. Raises: InvalidMessage if it has no end."""
        depth = 0
        while True:
            mark = _STRUCTURE.search(self._text, self._position)
            if mark is None:
                self._move(len(self._text))
                self._read_more_of_value()
            elif mark[0] == '"':
                self._move(mark.start())
                self._skip_string()
            elif depth == 0 and mark[0] in ",]}":
                self._move(mark.start())
                return
            else:
                depth += {"{": 1, "[": 1, "}": -1, "]": -1, ",": 0}[mark[0]]
                self._move(mark.end())

    def _skip_string(self) -> None:
        while (end := _STRING_END.match(self._text, self._position + 1)) is None:
            self._read_more_of_value()
        self._move(end.end())

    def _read_more_of_value(self) -> None:
        if not self._read_more(double=True):
            raise InvalidMessage("The list has no end: the file was not written to its end.")

    def _move(self, position: int) -> None:
        self.line += self._text.count("\n", self._position, position)
        self._position = position

    def _read_more(self, *, double: bool = False) -> bool:
        """Read a further piece, or with `double` as much again as there is, so that the time stays linear."""
        waiting = len(self._text) - self._position
        if waiting > ELEMENT_LIMIT:
            raise InvalidMessage(f"One element has more than {ELEMENT_LIMIT // _MIB} MiB.")
        raw = self._file.read(max(_CHUNK, waiting if double else 0))
        if not raw and not self._rest:
            return False
        self._bytes_read += len(raw)
        self._on_bytes(self._bytes_read)
        piece = self._rest + raw
        # a character of several bytes may go on in the next piece
        length = len(piece) if not raw else next((end for end in range(len(piece), 0, -1) if piece[end - 1] < 0x80), 0)
        text, replaced = decode_text(piece[:length])
        self._rest = piece[length:]
        self.leniency.count(replaced, 0, self.line)
        self._text, self._position = self._text[self._position :] + text, 0
        return True


StreamReader: TypeAlias = Callable[[BinaryIO, Report, Callable[[int], None]], Iterator[JsonRecord]]
_PAGE = lazy_compile(rf'"(?:{"|".join(sorted(PAGE_LISTS))})"[{_SPACE}]*:[{_SPACE}]*\[')
_PEEKED = 64 * 1024


def find_stream(file: BinaryIO) -> StreamReader | None:
    """Return what reads the text if it is a list or a page whose first record can be read; else None."""
    problems: list[str] = []

    def note(line: int, reason: str, *, skipped: bool = True, record: int = 0) -> None:
        del line, skipped, record
        problems.append(reason)

    beginning = decode_text(file.read(_PEEKED).removeprefix(BYTE_ORDER_MARK))[0].lstrip(_SPACE)
    file.seek(0)
    if beginning.startswith("["):
        next(read_elements(file, note, _ignore), None)
        return None if problems else read_elements
    if beginning.startswith("{") and _PAGE.search(beginning):
        first = next(read_page(file, note, _ignore), None)
        return None if problems or first is None else read_page
    return None


def _ignore(bytes_read: int) -> None:
    del bytes_read


def read_elements(file: BinaryIO, report: Report, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
    """Yield the elements of the list that the text is, each with its line and number."""
    yield from _read_until_broken(_JsonReader(file, on_bytes), report, _iterate_list)


def read_page(file: BinaryIO, report: Report, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
    """Yield each element of the lists of a page as a page of its own; nothing for an object without such a list."""
    yield from _read_until_broken(_JsonReader(file, on_bytes), report, _iterate_page)


class _BrokenOff(InvalidMessage):
    """Nothing after this place can be read."""

    def __init__(self, reason: str, line: int, record: int = 0) -> None:
        super().__init__(reason)
        self.line, self.record = line, record


def _read_until_broken(
    reader: _JsonReader, report: Report, iterate: Callable[[_JsonReader, Report], Iterator[JsonRecord]]
) -> Iterator[JsonRecord]:
    try:
        yield from iterate(reader, report)
    except _BrokenOff as error:
        report(error.line, f"{error} What follows in the file was not read.", record=error.record)
    reader.leniency.report(report)


def _iterate_list(reader: _JsonReader, report: Report) -> Iterator[JsonRecord]:
    if not reader.take("["):
        raise _BrokenOff("A list begins with [.", reader.line)
    yield from _iterate_elements(reader, report)
    if reader.skip_to_token():
        raise _BrokenOff("Something follows the end of the list.", reader.line)


def _iterate_elements(reader: _JsonReader, report: Report) -> Iterator[JsonRecord]:
    """Yield the elements up to the end of the list, which has begun. Raises: _BrokenOff if it has no end."""
    number = 0
    while not reader.take("]"):
        if not reader.skip_to_token():
            raise _BrokenOff("The list has no end: the file was not written to its end.", reader.line)
        number += 1
        line = reader.line
        try:
            value = reader.read_value()
        except InvalidMessage as error:
            _skip_element(reader, _BrokenOff(str(error), line, number))
            report(line, str(error), record=number)
        else:
            yield JsonRecord(value=value, line=line, number=number)
        if not reader.take(",") and reader.skip_to_token() not in ("]", ""):
            raise _BrokenOff("Between two elements of a list stands a comma.", reader.line, number)


def _skip_element(reader: _JsonReader, broken: _BrokenOff) -> None:
    """Go past an element that can't be read. Raises: `broken` if it has no end."""
    try:
        reader.skip_value()
    except InvalidMessage as error:
        raise broken from error


def _iterate_page(reader: _JsonReader, report: Report) -> Iterator[JsonRecord]:
    plain: dict[str, JsonValue] = {}
    for name in _iterate_names(reader):
        if name not in PAGE_LISTS or not reader.take("["):
            value = _read_member(reader)
            plain |= {} if isinstance(value, list | dict) else {name: value}
            continue
        is_empty = True
        for element in _iterate_elements(reader, report):
            is_empty = False
            yield JsonRecord(value={**plain, name: [element.value]}, line=element.line, number=element.number)
        if is_empty:
            yield JsonRecord(value={**plain, name: []}, line=reader.line)
    if reader.skip_to_token():
        raise _BrokenOff("Something follows the end of the object.", reader.line)


def _iterate_names(reader: _JsonReader) -> Iterator[str]:
    """Yield the names of an object, each where its value begins. Raises: _BrokenOff if it is broken."""
    reader.take("{")
    while not reader.take("}"):
        name = _read_member(reader) if reader.skip_to_token() == '"' else None
        if not isinstance(name, str) or not reader.take(":"):
            raise _BrokenOff("This is not JSON: an object has names, each with a value.", reader.line)
        reader.skip_to_token()
        yield name
        if not reader.take(",") and reader.skip_to_token() != "}":
            raise _BrokenOff("Between two values of an object stands a comma.", reader.line)


def _read_member(reader: _JsonReader) -> JsonValue:
    line = reader.line
    try:
        return reader.read_value()
    except InvalidMessage as error:
        raise _BrokenOff(str(error), line) from error
