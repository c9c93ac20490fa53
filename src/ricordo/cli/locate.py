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

__all__ = ["SourceMessage", "FileLocation", "load_source_messages", "locate_entry", "locate_new_entry"]


@dataclass(frozen=True, kw_only=True)
class FileLocation:
    """A line of a file that can be opened from here."""

    file: str
    line: int

    def __str__(self) -> str:
        """Write it as editors take it."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class SourceMessage:
    """A message that a memory rests on, and where it stands in its transcript."""

    message: "Message"
    position: FileLocation


async def locate_entry(target: Target, entry_id: str) -> FileLocation | None:
    """Return where the memory stands; None when it stands in no file."""
    from ricordo.audit import find_entry
    from ricordo.runtime.assembly import root_files

    for label, folder in target.folders().items():
        if folder.is_dir():
            with suppress(EntryNotFound):
                found = await find_entry(root_files(folder), entry_id)
                return FileLocation(file=target.display_path(found.path, label), line=found.line)
    return None


async def locate_new_entry(target: Target, entry: "Entry") -> FileLocation | None:
    """Return where a memory stands that was just saved: near the end of the ledger of its day, or else anywhere."""
    from ricordo.runtime.assembly import root_files
    from ricordo.workspace.layout import ledger_path

    path = ledger_path(datetime.now().astimezone().date())
    for label, folder in target.folders().items():
        with suppress(FileMissing):
            lines = (await root_files(folder).read(path)).data.split(b"\n")
            mark = f"^{entry.id}".encode()
            line = next((number for number in range(len(lines), 0, -1) if lines[number - 1].endswith(mark)), 0)
            start = next((number for number in range(line, 0, -1) if lines[number - 1].startswith(b"- ")), 0)
            if start:
                return FileLocation(file=target.display_path(path, label), line=start)
    return await locate_entry(target, entry.id)


async def load_source_messages(target: Target, memory: "Memory", entry: "Entry") -> list[SourceMessage]:
    """Return the messages that `entry` rests on, in their order; empty when their transcript is not here."""
    if entry.source.session is None:
        return []
    try:
        session = await memory.session(entry.source.session)
    except SessionNotFound:
        return []
    file = target.display_path(session.info.path)
    return [
        SourceMessage(message=message, position=FileLocation(file=file, line=line))
        for message, line in zip(session.messages, session.lines, strict=True)
        if message.id in entry.source.messages
    ]
