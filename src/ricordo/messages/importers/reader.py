"""Reading a history: whatever form it has, messages with their session, one after the other.

A session's own id is kept when it is safe as a folder name, and made safe otherwise; a conversation without an id is
named after its file and its first message, so a file that grows keeps it.

Invariant: nothing in a file ends the reading but its end. The one error is a file with no conversation in it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from ricordo.errors import HistoryUnreadable, InvalidMessage
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.codec import fingerprint
from ricordo.messages.importers.chat import read_chat_message, read_item, read_row
from ricordo.messages.importers.claude_code import find_chain, read_rows
from ricordo.messages.importers.codex import is_codex, read_items, read_session_id
from ricordo.messages.importers.dialogue import iterate_sessions, read_dialogue_turn
from ricordo.messages.importers.records import (
    HistoryFile,
    ImportedMessage,
    ImportProblem,
    JsonRecord,
    ProblemHandler,
    open_history,
    utf8_size,
)
from ricordo.messages.importers.shapes import (
    SUPPORTED_FORMATS,
    MessageList,
    NumberedDialogue,
    SingleMessage,
    UnknownShape,
    find_shapes,
    is_claude_code,
    read_session,
)
from ricordo.messages.types import JsonValue, Message

__all__ = ["SessionNames", "read_history", "safe_session_id"]


_SAFE_NAME = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_UNSAFE_RUN = lazy_compile(r"[^A-Za-z0-9_]+", re.ASCII)
_SLUG_LENGTH = 60


def safe_session_id(raw: str) -> str:
    """Return `raw` if it is safe as a folder name, else its slug and eight hexadecimal digits of its digest."""
    if _SAFE_NAME.fullmatch(raw) and not raw.endswith("."):
        return raw
    digest = blake2b(raw.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{_slugify(raw)}-{digest}"


def _slugify(raw: str) -> str:
    return _UNSAFE_RUN.sub("-", raw).strip("-_")[:_SLUG_LENGTH].strip("-_").lower() or "session"


class SessionNames:
    """Names the conversations of one file; two without ids that begin alike get different names, in their order."""

    def __init__(self, stem: str) -> None:
        """Name after `stem`, the name of the file without its ending."""
        self._slug = _slugify(stem)
        self._given: Counter[str] = Counter()

    def derive(self, first: Message) -> str:
        """Return the name of one more conversation without an id that begins with `first`."""
        name = f"{self._slug}-{fingerprint(first)[:8]}"
        self._given[name] += 1
        return name if self._given[name] == 1 else f"{name}-{self._given[name]}"


def read_history(
    path: Path, *, on_problem: ProblemHandler, on_progress: Callable[[int, int], None] | None = None
) -> Iterator[ImportedMessage]:
    """Give the messages of the history in `path`, in the order of the file, as they are read.

    `on_problem` gets each record that had to be skipped, and what was read with losses.
    `on_progress` gets the bytes read and the bytes to read; a
    transcript that is read twice counts twice. Messages keep the ids of the file where it has them and they are
    unique in their session; the others have an empty id.

    Raises:
        FileMissing: there is no such file; raised at once. HistoryUnreadable: it is a folder, empty, or (at its end) no
        record of it was a message; the text names the forms that are. StorageFailed: the system refuses to read it.
    """
    utf8_size(path)
    return _read_file(path, on_problem, on_progress or _ignore)


def _read_file(
    path: Path, on_problem: ProblemHandler, on_progress: Callable[[int, int], None]
) -> Iterator[ImportedMessage]:
    source = open_history(path)
    read = _choose_reader(source)
    empty = True
    for imported in _with_unique_ids(read(source, on_problem, on_progress)):
        empty = False
        yield imported
    if empty:
        raise HistoryUnreadable(f"{path} holds no conversation. {SUPPORTED_FORMATS}")


def _choose_reader(source: HistoryFile) -> "_Reader":
    """Return the reader of the format of the first record that is a part of any conversation."""
    for record in source.records(_ignore, _ignore):
        for is_own, read in _OWN_FORMATS.items():
            if is_own(record.value):
                return read
        if any(not isinstance(shape, UnknownShape) for shape in find_shapes(record.value)):
            return _read_chats
    return _read_chats


def _read_claude_code(
    source: HistoryFile, on_problem: ProblemHandler, on_progress: Callable[[int, int], None]
) -> Iterator[ImportedMessage]:
    total = 2 * source.size
    chain = find_chain(source.records(on_problem, lambda done: on_progress(done, total)))
    second = source.records(_ignore, lambda done: on_progress(source.size + done, total))
    fallback = safe_session_id(source.path.stem)
    for row in read_rows(second, chain):
        session = safe_session_id(row.session) if row.session else fallback
        try:
            message = read_row(row)
        except InvalidMessage as error:
            on_problem(ImportProblem(path=str(source.path), line=row.line, reason=str(error)))
        else:
            yield ImportedMessage(session=session, message=message, line=row.line)


def _read_codex(
    source: HistoryFile, on_problem: ProblemHandler, on_progress: Callable[[int, int], None]
) -> Iterator[ImportedMessage]:
    names = (read_session_id(record.value) for record in source.records(_ignore, _ignore))
    session = safe_session_id(next((name for name in names if name), source.path.stem))
    records = source.records(on_problem, lambda done: on_progress(done, source.size))
    for item in read_items(records, session):
        try:
            message = read_item(item)
        except InvalidMessage as error:
            on_problem(ImportProblem(path=str(source.path), line=item.line, reason=str(error)))
        else:
            yield ImportedMessage(session=session, message=message, line=item.line)


def _read_chats(
    source: HistoryFile, on_problem: ProblemHandler, on_progress: Callable[[int, int], None]
) -> Iterator[ImportedMessage]:
    reader = _ChatReader(path=source.path, on_problem=on_problem)
    for record in source.records(on_problem, lambda done: on_progress(done, source.size)):
        yield from reader.read(record)


@dataclass(kw_only=True)
class _ChatReader:
    """Reads the records of one file; remembers the session that messages without one of their own belong to."""

    path: Path
    on_problem: ProblemHandler
    current: str | None = None
    names: SessionNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = SessionNames(self.path.stem)

    def read(self, record: JsonRecord) -> Iterator[ImportedMessage]:
        for shape in find_shapes(record.value):
            match shape:
                case SingleMessage():
                    yield from self._read_single(shape, record.line)
                case MessageList():
                    yield from self._read_message_list(shape, record.line)
                case NumberedDialogue():
                    yield from self._read_dialogue(shape, record.line)
                case UnknownShape():
                    self._report_problem(record.line, "The record is no message and holds none.")

    def _read_single(self, single: SingleMessage, line: int) -> Iterator[ImportedMessage]:
        message = self._read_message(single.record, line)
        if message is None:
            return
        if single.session is not None:
            self.current = safe_session_id(single.session)
        elif self.current is None:
            self.current = self.names.derive(message)
        yield ImportedMessage(session=self.current, message=message, line=line)

    def _read_message_list(self, conversation: MessageList, line: int) -> Iterator[ImportedMessage]:
        current = None if conversation.session is None else safe_session_id(conversation.session)
        for value in conversation.messages:
            message = self._read_message(value, line)
            if message is None:
                continue
            session_id = read_session(value)
            if session_id is not None:
                current = safe_session_id(session_id)
            elif current is None:
                current = self.names.derive(message)
            yield ImportedMessage(session=current, message=message, line=line)

    def _read_dialogue(self, dialogue: NumberedDialogue, line: int) -> Iterator[ImportedMessage]:
        base = None if dialogue.sample is None else safe_session_id(dialogue.sample)
        for number, turns, time in iterate_sessions(dialogue.record):
            for turn in turns:
                try:
                    message = read_dialogue_turn(turn, time)
                except InvalidMessage as error:
                    self._report_problem(line, f"session_{number}: {error}")
                    continue
                base = base or self.names.derive(message)
                yield ImportedMessage(session=f"{base}-session-{number}", message=message, line=line)

    def _read_message(self, value: JsonValue, line: int) -> Message | None:
        try:
            return read_chat_message(value)
        except InvalidMessage as error:
            self._report_problem(line, str(error))
            return None

    def _report_problem(self, line: int, reason: str) -> None:
        self.on_problem(ImportProblem(path=str(self.path), line=line, reason=reason))


def _with_unique_ids(imported: Iterable[ImportedMessage]) -> Iterator[ImportedMessage]:
    """Empty an id that was there before in its session: the transcript gives that message one of its own."""
    seen: dict[str, set[str]] = {}
    for each in imported:
        ids = seen.setdefault(each.session, set())
        repeated = each.message.id in ids
        ids.add(each.message.id)
        yield replace(each, message=replace(each.message, id="")) if repeated else each


def _ignore(*_: object) -> None:
    return None


_Reader: TypeAlias = Callable[[HistoryFile, ProblemHandler, Callable[[int, int], None]], Iterator[ImportedMessage]]
_OWN_FORMATS: Mapping[Callable[[JsonValue], bool], _Reader] = {
    is_claude_code: _read_claude_code,
    is_codex: _read_codex,
}
"""Formats with a reader of their own: how a record of each is recognised, and what reads a file of it."""
