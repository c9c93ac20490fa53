"""Where a memory stands: its file and line, in whichever of the visible roots holds it."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ricordo.cli.context import Target
from ricordo.errors import EntryNotFound, FileMissing, SessionNotFound

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.messages import Message
    from ricordo.workspace.entry import Entry

__all__ = ["Origin", "Position", "origins_of", "position_of", "position_of_newest"]


@dataclass(frozen=True, kw_only=True)
class Position:
    """A line of a file that can be opened from here."""

    file: str
    line: int

    def __str__(self) -> str:
        """Write it as editors take it."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A message that a memory rests on, and where it stands in its transcript."""

    message: "Message"
    position: Position


async def position_of(target: Target, entry_id: str) -> Position | None:
    """Return where the memory stands; None when it stands in no file."""
    from ricordo.audit import find_entry
    from ricordo.runtime.assembly import files_of

    for label, folder in target.folders().items():
        if folder.is_dir():
            with suppress(EntryNotFound):
                found = await find_entry(files_of(folder), entry_id)
                return Position(file=target.file(found.path, label), line=found.line)
    return None


async def position_of_newest(target: Target, entry: "Entry") -> Position | None:
    """Return where a memory stands that was just saved: near the end of the ledger of its day, or else anywhere."""
    from ricordo.runtime.assembly import files_of
    from ricordo.workspace.layout import ledger_path

    path = ledger_path(datetime.now().astimezone().date())
    for label, folder in target.folders().items():
        with suppress(FileMissing):
            lines = (await files_of(folder).read(path)).data.split(b"\n")
            mark = f"^{entry.id}".encode()
            line = next((number for number in range(len(lines), 0, -1) if lines[number - 1].endswith(mark)), 0)
            start = next((number for number in range(line, 0, -1) if lines[number - 1].startswith(b"- ")), 0)
            if start:
                return Position(file=target.file(path, label), line=start)
    return await position_of(target, entry.id)


async def origins_of(target: Target, memory: "Memory", entry: "Entry") -> list[Origin]:
    """Return the messages that `entry` rests on, in their order; empty when their transcript is not here."""
    if entry.source.session is None:
        return []
    try:
        session = await memory.session(entry.source.session)
    except SessionNotFound:
        return []
    file = target.file(session.info.path)
    return [
        Origin(message=message, position=Position(file=file, line=line))
        for message, line in zip(session.messages, session.lines, strict=True)
        if message.id in entry.source.messages
    ]
