"""Reads a history file of any origin into JSON values, each with its line.

A file is read line by line if its first non-blank line is a JSON object or list; memory use then depends on the longest
line. Otherwise the whole file is tried as one document, up to `DOCUMENT_LIMIT`. Bytes that are not UTF-8 become U+FFFD,
NaN and the infinities become null; both are reported once for the file. A file in UTF-16 is read as UTF-8.

Invariants: at most `LINE_LIMIT` of one line are in memory. A broken record is one `ImportProblem` and never ends the
reading.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from ricordo.errors import FileMissing, HistoryUnreadable, InvalidMessage, StorageFailed
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.types import JsonValue, Message, Role

__all__ = [
    "CONTENT_KEYS",
    "DOCUMENT_LIMIT",
    "ID_KEYS",
    "LINE_LIMIT",
    "MESSAGE_LISTS",
    "NAME_KEYS",
    "PARENT_KEYS",
    "ROLE_KEYS",
    "SESSION_KEYS",
    "TIME_KEYS",
    "FileLine",
    "HistoryFile",
    "ImportProblem",
    "ImportedMessage",
    "JsonRecord",
    "ProblemHandler",
    "first_value",
    "open_history",
    "open_utf8",
    "parse_time",
    "read_identifier",
    "read_lines",
    "read_role",
    "utf8_size",
]


@dataclass(frozen=True, kw_only=True)
class ImportedMessage:
    """One message of a history.

    `session` is safe as a folder name (ASCII letters, digits, `-`, `_`, `.`) and the same each time the file is read,
    even after the file has grown at its end. `line` counts from 1 and is the line of the message, or of the record that
    contains it.
    """

    session: str
    message: Message
    line: int


@dataclass(frozen=True, kw_only=True)
class ImportProblem:
    """A problem with a record: its line (from 1) and the reason, without quoting the record.

    The record was `skipped`, or else it was read with the change that the reason describes.
    """

    path: str
    line: int
    reason: str
    skipped: bool = True


LINE_LIMIT = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHUNK = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class FileLine:
    """One non-blank line: its number from 1, its bytes (empty when `too_long`), and the offset after it."""

    number: int
    content: bytes
    end: int
    too_long: bool = False


def open_utf8(path: Path) -> BinaryIO:
    """Open `path` for reading bytes as UTF-8, even if the file has the byte order mark of UTF-16.

    Raises: FileMissing if there is no such file; HistoryUnreadable for a folder; StorageFailed if the system refuses to
    open it.
    """
    try:
        return _as_utf8(path.open("rb"))
    except FileNotFoundError as error:
        raise FileMissing(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise HistoryUnreadable(f"{path} is a folder; name the file that holds the conversation.") from error
    except (OSError, ValueError) as error:
        raise StorageFailed(f"{path} can't be opened: {type(error).__name__}.") from error


def _as_utf8(file: BinaryIO) -> BinaryIO:
    if file.read(2) not in _UTF_16:
        file.seek(0)
        return file
    file.seek(0)
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    copy = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - the caller closes it
    with file:
        while chunk := file.read(_CHUNK):
            copy.write(decoder.decode(chunk).encode("utf-8"))
        copy.write(decoder.decode(b"", final=True).encode("utf-8"))
    copy.seek(0)
    return copy


def utf8_size(path: Path) -> int:
    """Return the size of `path` in bytes of UTF-8. Raises the errors of `open_utf8`."""
    with open_utf8(path) as file:
        return file.seek(0, 2)


def read_lines(path: Path, on_end: Callable[[int], None] | None = None) -> Iterator[FileLine]:
    """Yield the non-blank lines of `path` in order; `on_end` gets the offset after each line, including blank ones.

    Raises the errors of `open_utf8`.
    """
    with open_utf8(path) as file:
        number = 0
        while raw := file.readline(LINE_LIMIT + 1):
            number += 1
            too_long = len(raw) > LINE_LIMIT
            if too_long:
                _skip_rest(file, raw)
            content = b"" if too_long else _strip_line(raw, first=number == 1)
            end = file.tell()
            if on_end is not None:
                on_end(end)
            if content or too_long:
                yield FileLine(number=number, content=content, end=end, too_long=too_long)


def _strip_line(raw: bytes, *, first: bool) -> bytes:
    return (raw.removeprefix(_BOM) if first else raw).strip(b" \t\r\n")


def _skip_rest(file: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(LINE_LIMIT)


DOCUMENT_LIMIT = 128 * 1024 * 1024
_MIB = 1024 * 1024
_PROGRESS_STEP = 64 * 1024
# this many other lines may come before the first record in a file of lines
_LINES_TO_A_RECORD = 1_000
_ERROR_POSITION = lazy_compile(r"(?: at)?: line 1 column (\d+) \(char \d+\)", re.ASCII)
ProblemHandler = Callable[[ImportProblem], None]


@dataclass(frozen=True, kw_only=True)
class JsonRecord:
    """One JSON value of a file and the line where it begins, from 1."""

    value: JsonValue
    line: int


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

    def report(self, path: Path, on_problem: ProblemHandler) -> None:
        repairs = [
            f"bytes that were no UTF-8 and are replaced by U+FFFD: {self.replaced:,}" if self.replaced else "",
            f"numbers that were NaN or infinite and are taken as null: {self.nulls:,}" if self.nulls else "",
        ]
        if self.line:
            reason = f"read all the same: {'; '.join(filter(None, repairs))}"
            on_problem(ImportProblem(path=str(path), line=self.line, reason=reason, skipped=False))


@dataclass(frozen=True, kw_only=True)
class JsonHistory:
    """A file that is one JSON value."""

    record: JsonRecord
    leniency: _Leniency = field(default_factory=_Leniency)


@dataclass(frozen=True, kw_only=True)
class HistoryFile:
    """A file whose records can be read more than once.

    `document` is None for a file of lines, and a reason if the file is neither lines nor a document.
    """

    path: Path
    size: int
    document: JsonHistory | str | None = None

    def records(self, on_problem: ProblemHandler, on_bytes: Callable[[int], None]) -> Iterator[JsonRecord]:
        """Yield the records in order; call `on_problem` for each broken one and `on_bytes` with the progress."""
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
            parsed = _parse_line(line, leniency)
            if isinstance(parsed, str):
                on_problem(ImportProblem(path=str(self.path), line=line.number, reason=parsed))
            else:
                yield parsed
        leniency.report(self.path, on_problem)


def open_history(path: Path) -> HistoryFile:
    """Read the beginning of `path` and decide how to read the file.

    Raises: FileMissing if there is no such file; HistoryUnreadable for a folder or an empty file; StorageFailed if the
    system refuses to open it.
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
    """Read one JSON value and count its deviations in `leniency`. Raises `InvalidMessage`."""
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
    parsed = _parse_line(line, _Leniency())
    return isinstance(parsed, JsonRecord) and isinstance(parsed.value, list | dict)


def _throttle_progress(on_bytes: Callable[[int], None]) -> Callable[[int], None]:
    reported = 0

    def step(bytes_read: int) -> None:
        nonlocal reported
        if bytes_read - reported >= _PROGRESS_STEP:
            reported = bytes_read
            on_bytes(bytes_read)

    return step


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = lazy_compile(r"[+-]?\d{1,19}(\.\d+)?", re.ASCII)
_SPOKEN_PATTERN = lazy_compile(
    r"(\d{1,2}):(\d\d)\s*([ap])m on (\d{1,2}) ([a-z]{3})[a-z]*,? (\d{4})", re.ASCII | re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# seconds stay below 1e11 until the year 5138, so each finer unit is told by its size
_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9))


def parse_time(value: JsonValue) -> datetime | None:
    """Read `value` as an aware time in UTC; None when it is no time.

    Numbers (also as text) are seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _parse_timestamp(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _parse_timestamp(float(text)) if len(text) > 8 else None
    return _parse_spoken(text) or _parse_iso(text)


def _parse_timestamp(number: float) -> datetime | None:
    try:
        unit = next(unit for limit, unit in _UNITS if abs(number) < limit)
        return _EPOCH + timedelta(seconds=number / unit)
    except (OverflowError, StopIteration, ValueError):
        return None


def _parse_iso(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text.removesuffix(" UTC"))
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _parse_spoken(text: str) -> datetime | None:
    match = _SPOKEN_PATTERN.fullmatch(text)
    if match is None or match[5].lower() not in _MONTHS:
        return None
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    try:
        return datetime(
            int(match[6]), _MONTHS.index(match[5].lower()) + 1, int(match[4]), hour, int(match[2]), tzinfo=UTC
        )
    except ValueError:
        return None


MESSAGE_LISTS = ("messages", "chat_messages", "conversation", "conversations", "history", "turns")
SESSION_KEYS = ("session", "session_id", "sessionId", "conversation_id", "conversationId", "thread_id")
ID_KEYS = ("id", "uuid", "message_id", "dia_id")
PARENT_KEYS = ("parent", "parent_id", "parent_uuid", "parent_message_uuid", "parent_message_id")
ROLE_KEYS = ("role", "sender", "from", "author", "speaker")
NAME_KEYS = ("name", "speaker", "sender_name", "username")
TIME_KEYS = ("time", "timestamp", "created_at", "create_time", "createdAt", "date", "datetime", "ts")
CONTENT_KEYS = ("content", "parts", "text", "value", "body", "message")
_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "customer": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}


def first_value(record: Mapping[str, JsonValue], keys: Iterable[str]) -> JsonValue:
    """Return the value of the first of `keys` that has one that is not null; None when there is none."""
    return next((record[key] for key in keys if record.get(key) is not None), None)


def read_identifier(value: JsonValue) -> str | None:
    """Return an id as text: a string that is not blank, or a whole number; None for anything else."""
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def read_role(record: Mapping[str, JsonValue]) -> tuple[Role, str | None] | None:
    """Return the role of a message and the speaker's name when the role was given as one; None when there is no role.

    Whoever speaks under a name of their own, and not under a role, is a person: their role is user.
    """
    for key in ROLE_KEYS:
        value = record.get(key)
        if isinstance(value, dict):
            value = value.get("role")
        if not isinstance(value, str) or not value.strip():
            continue
        role = _ROLES.get(value.strip().casefold())
        if role is not None:
            return role, None
        if key in {"speaker", "sender", "from"}:
            return "user", value.strip()
    return None
