"""Reads a part of a host's transcript: whole lines from one byte up to another, as messages."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ricordo.errors import InvalidMessage
from ricordo.importers import claude_code, codex
from ricordo.importers.records import JsonRecord
from ricordo.importers.sessions import safe_session_id
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.json_text import loads

__all__ = ["TranscriptPart", "read_part"]


_PART_BYTES = 4_000_000
_MAX_LINE_BYTES = 32_000_000


@dataclass(frozen=True, kw_only=True)
class TranscriptPart:
    """Messages of a transcript by their session, and the byte after the last line that was read."""

    sessions: dict[str, list[Message]]
    end: int


def read_part(path: Path, form: str, *, start: int, end: int, session: str) -> TranscriptPart:
    """Return some megabytes of the transcript from the byte `start`, whole lines before `end`; it blocks on the disk.

    `form` is the format of the host's transcripts, and `session` the host's id for what names no session. The part
    ends at `start` if there is no whole line. A damaged line, and one that is longer than any message, is left out.
    Raises: OSError.
    """
    data, stop = _read_lines(path, start, end)
    records = list(_parse(data, start))
    sessions: dict[str, list[Message]] = {}
    for name, message in (
        _read_claude_code(records, session) if form == "claude-code" else _read_codex(records, session)
    ):
        sessions.setdefault(name, []).append(message)
    return TranscriptPart(sessions=sessions, end=stop)


def _read_lines(path: Path, start: int, end: int) -> tuple[bytes, int]:
    """Return whole lines from `start` on, and the byte after them; a line that is too long is skipped to its end."""
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(min(end - start, _PART_BYTES))
        while b"\n" not in data and start + len(data) < end and len(data) < _MAX_LINE_BYTES:
            data += file.read(min(end - start - len(data), _PART_BYTES))
        length = data.rfind(b"\n") + 1
        if length or start + len(data) >= end:
            return data[:length], start + length
        while chunk := file.read(min(end - file.tell(), _PART_BYTES)):
            if b"\n" in chunk:
                return b"", file.tell() - len(chunk) + chunk.index(b"\n") + 1
        return b"", end


def _parse(data: bytes, start: int) -> Iterator[JsonRecord]:
    """Give the JSON values of lines; the number of each is the byte at which it begins, which stays the same."""
    for line in data.split(b"\n"):
        with suppress(InvalidMessage):
            yield JsonRecord(value=loads(line), line=start)
        start += len(line) + 1


def _read_claude_code(records: list[JsonRecord], session: str) -> Iterator[tuple[str, Message]]:
    for row in claude_code.read_rows(records, claude_code.find_chain(records)):
        try:
            yield safe_session_id(row.session or session), claude_code.read_message(row)
        except InvalidMessage:
            continue


def _read_codex(records: list[JsonRecord], session: str) -> Iterator[tuple[str, Message]]:
    name = safe_session_id(session)
    for item in codex.read_items(records, name):
        try:
            yield name, codex.read_message(item)
        except InvalidMessage:
            continue
