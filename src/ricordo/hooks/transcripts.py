"""Reads a part of a host's transcript as messages: whole lines from one byte up to another, or what a database has from
one time up to another.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ricordo.errors import InvalidMessage
from ricordo.importers import claude_code, codex, copilot, gemini, opencode
from ricordo.importers.json_stream import JsonRecord
from ricordo.importers.sessions import safe_session_id
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.json_text import loads

__all__ = ["TranscriptPart", "read_part"]


_PART_BYTES = 4_000_000
_MAX_LINE_BYTES = 32_000_000
_DATABASE = "opencode"
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class TranscriptPart:
    """Messages of a transcript by their session, and how far it was read: the byte after the last line, or the time."""

    sessions: dict[str, list[Message]]
    end: int


def read_part(transcript: str, form: str, *, start: int, end: int, session: str) -> TranscriptPart:
    """Return some megabytes of the transcript from `start`, before `end`; it blocks on the disk.

    `form` is the format of the host's transcripts, and `session` the host's id for what names no session. Both ends are
    bytes, and whole lines are read; the part ends at `start` if there is none. In a database, `PATH#SESSION`, they are
    milliseconds since 1970. A damaged line, and one that is longer than any message, is left out.
    Raises: OSError, StorageError.
    """
    name = safe_session_id(session)
    if form == _DATABASE:
        path, _, session_id = transcript.rpartition("#")
        messages = opencode.read_messages(Path(path), session_id, start=start, end=end)
        return TranscriptPart(sessions={name: list(messages)}, end=end)
    data, stop = _read_lines(Path(transcript), start, end)
    records = list(_parse(data, start))
    if form == "claude-code":
        return TranscriptPart(sessions=_read_claude_code(records, session), end=stop)
    readers = {"gemini": gemini.read_messages, "copilot": copilot.read_messages}
    read = readers.get(form)
    found = read(records) if read else _read_messages(codex.read_items(records, name), codex.read_message)
    return TranscriptPart(sessions={name: list(found)}, end=stop)


def _read_claude_code(records: list[JsonRecord], session: str) -> dict[str, list[Message]]:
    sessions: dict[str, list[Message]] = {}
    for row in claude_code.read_rows(records, claude_code.find_chain(records)):
        name = safe_session_id(row.session or session)
        sessions.setdefault(name, []).extend(_read_messages([row], claude_code.read_message))
    return sessions


def _read_messages(items: Iterable[_T], read: Callable[[_T], Message]) -> Iterator[Message]:
    """Give the message of each item; one that is not understood is left out."""
    for item in items:
        with suppress(InvalidMessage):
            yield read(item)


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
