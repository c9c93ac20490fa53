"""Read a history: whatever form it has, out come messages with their session, one after the other.

Nothing in a file ends the reading but the end of the file: a record that can't be used is reported and the next one
read. The one error is a file with no conversation in it at all.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ricordo.errors import HistoryUnreadable, InvalidMessage
from ricordo.importers.chat import read_chat, read_row
from ricordo.importers.claude_code import chain_of, rows_of
from ricordo.importers.contract import Imported, Problem
from ricordo.importers.dialogue import numbered_sessions, read_turn
from ricordo.importers.lines import size_of
from ricordo.importers.records import Record, Report, Source, open_source
from ricordo.importers.sessions import SessionNames, safe_name
from ricordo.importers.shapes import (
    UNDERSTOOD,
    Conversation,
    Dialogue,
    Foreign,
    Single,
    is_claude_code,
    session_of,
    shapes_in,
)
from ricordo.messages.types import JsonValue, Message

__all__ = ["read_history"]


def read_history(
    path: Path, *, on_problem: Report, on_progress: Callable[[int, int], None] | None = None
) -> Iterator[Imported]:
    """Give the messages of the history in `path`, in the order of the file, as they are read.

    `on_problem` gets each record that had to be skipped, and what was read with losses.
    `on_progress` gets the bytes read and the bytes to read; a
    transcript that is read twice counts twice. Messages keep the ids of the file where it has them and they are
    unique in their session; the others have an empty id.

    Raises:
        FileMissing: there is no such file; raised at once. HistoryUnreadable: it is a folder, empty, or (at its end) no
        record of it was a message; the text names the forms that are. StorageFailed: the system refuses to read it.
    """
    size_of(path)
    return _read(path, on_problem, on_progress or _ignore)


def _read(path: Path, on_problem: Report, on_progress: Callable[[int, int], None]) -> Iterator[Imported]:
    source = open_source(path)
    read = _claude_code if _holds_claude_code(source) else _any_chat
    empty = True
    for imported in _with_unique_ids(read(source, on_problem, on_progress)):
        empty = False
        yield imported
    if empty:
        raise HistoryUnreadable(f"{path} holds no conversation. {UNDERSTOOD}")


def _holds_claude_code(source: Source) -> bool:
    """Tell by the first record that is a part of any conversation."""
    for record in source.records(_ignore, _ignore):
        if is_claude_code(record.value):
            return True
        if any(not isinstance(shape, Foreign) for shape in shapes_in(record.value)):
            return False
    return False


def _claude_code(source: Source, on_problem: Report, on_progress: Callable[[int, int], None]) -> Iterator[Imported]:
    total = 2 * source.size
    chain = chain_of(source.records(on_problem, lambda done: on_progress(done, total)))
    second = source.records(_ignore, lambda done: on_progress(source.size + done, total))
    fallback = safe_name(source.path.stem)
    for row in rows_of(second, chain):
        session = safe_name(row.session) if row.session else fallback
        try:
            message = read_row(row)
        except InvalidMessage as error:
            on_problem(Problem(path=str(source.path), line=row.line, reason=str(error)))
        else:
            yield Imported(session=session, message=message, line=row.line)


def _any_chat(source: Source, on_problem: Report, on_progress: Callable[[int, int], None]) -> Iterator[Imported]:
    reader = _ChatReader(path=source.path, on_problem=on_problem)
    for record in source.records(on_problem, lambda done: on_progress(done, source.size)):
        yield from reader.read(record)


@dataclass(kw_only=True)
class _ChatReader:
    """Reads the records of one file; remembers the session that messages without one of their own belong to."""

    path: Path
    on_problem: Report
    current: str | None = None
    names: SessionNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = SessionNames(self.path.stem)

    def read(self, record: Record) -> Iterator[Imported]:
        for shape in shapes_in(record.value):
            match shape:
                case Single():
                    yield from self._single(shape, record.line)
                case Conversation():
                    yield from self._conversation(shape, record.line)
                case Dialogue():
                    yield from self._dialogue(shape, record.line)
                case Foreign():
                    self._report(record.line, "The record is no message and holds none.")

    def _single(self, single: Single, line: int) -> Iterator[Imported]:
        message = self._message(single.record, line)
        if message is None:
            return
        if single.session is not None:
            self.current = safe_name(single.session)
        elif self.current is None:
            self.current = self.names.derived(message)
        yield Imported(session=self.current, message=message, line=line)

    def _conversation(self, conversation: Conversation, line: int) -> Iterator[Imported]:
        current = None if conversation.session is None else safe_name(conversation.session)
        for value in conversation.messages:
            message = self._message(value, line)
            if message is None:
                continue
            named = session_of(value)
            if named is not None:
                current = safe_name(named)
            elif current is None:
                current = self.names.derived(message)
            yield Imported(session=current, message=message, line=line)

    def _dialogue(self, dialogue: Dialogue, line: int) -> Iterator[Imported]:
        base = None if dialogue.sample is None else safe_name(dialogue.sample)
        for number, turns, time in numbered_sessions(dialogue.record):
            for turn in turns:
                try:
                    message = read_turn(turn, time)
                except InvalidMessage as error:
                    self._report(line, f"session_{number}: {error}")
                    continue
                base = base or self.names.derived(message)
                yield Imported(session=f"{base}-session-{number}", message=message, line=line)

    def _message(self, value: JsonValue, line: int) -> Message | None:
        try:
            return read_chat(value)
        except InvalidMessage as error:
            self._report(line, str(error))
            return None

    def _report(self, line: int, reason: str) -> None:
        self.on_problem(Problem(path=str(self.path), line=line, reason=reason))


def _with_unique_ids(imported: Iterable[Imported]) -> Iterator[Imported]:
    """Empty an id that was there before in its session: the transcript gives that message one of its own."""
    seen: dict[str, set[str]] = {}
    for each in imported:
        ids = seen.setdefault(each.session, set())
        repeated = each.message.id in ids
        ids.add(each.message.id)
        yield replace(each, message=replace(each.message, id="")) if repeated else each


def _ignore(*_: object) -> None:
    return None
