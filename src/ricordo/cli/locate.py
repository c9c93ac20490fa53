"""Where a memory stands: its file and line, in whichever of the visible roots holds it."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ricordo.cli.context import Target
from ricordo.errors import EntryNotFound, SessionNotFound

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.messages import Message
    from ricordo.workspace.entry import Entry

__all__ = ["Origin", "Position", "origins_of", "position_of"]


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
