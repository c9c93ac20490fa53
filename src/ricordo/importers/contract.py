"""What an importer is, and what it gives: messages of conversations, and memories of another system.

An importer is one file for one format. It needs two functions, `recognizes` and `read`, so a module is one. It stands
in the table of `ricordo.importers.registry`, or in an installed package as an entry point of the group
`ricordo.importers`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date, datetime
from pathlib import Path
from typing import Protocol, TypeAlias

from ricordo.importers.source import ImportSource
from ricordo.lazy import dataclass
from ricordo.messages.types import JsonValue, Message

__all__ = ["FoundHistory", "HistoryFinder", "ImportedItem", "ImportedMemory", "ImportedMessage", "Importer"]


@dataclass(frozen=True, kw_only=True)
class ImportedMessage:
    """One message of a conversation, with its own time and id where the source has them.

    `session` is the same each time the source is read, even after it has grown at its end. An importer gives the
    source's own id; `read_items` makes it safe as a folder name (ASCII letters, digits, `-`, `_`, `.`). `line` counts
    from 1 and is the line of the message, or of the record that contains it.
    """

    session: str
    message: Message
    line: int


@dataclass(frozen=True, kw_only=True)
class ImportedMemory:
    """One memory that another system learned; it becomes an entry.

    `id` is the other system's own id, by which the memory is known again when the source is imported a second time;
    without one its kind and text are. `time` is when it was saved there, None if unknown, `until` the last day on which
    it holds, None for no end. `user` is whose memory it is, None for the person who imports. `metadata` holds every
    other field of the source as it was, so that nothing is lost. `line` is the line of the record, from 1.
    """

    text: str
    line: int
    kind: str = "fact"
    id: str = ""
    time: datetime | None = None
    until: date | None = None
    user: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


ImportedItem: TypeAlias = ImportedMessage | ImportedMemory


class Importer(Protocol):
    """One format of another program. A module with these two functions is an importer."""

    def recognizes(self, source: ImportSource, /) -> bool:
        """Return whether `source` has this format. It looks at the name, at `first_records` and at `children`, and
        does not read all of the source.

        A folder or an archive is offered before what lies in it. Answer True for one only if its files belong
        together; otherwise each of them is offered alone.
        """

    def read(self, source: ImportSource, /) -> Iterator[ImportedItem]:
        """Give messages and memories in the order of the source, as they are read.

        A record that is not understood is given to `source.report` with its line, and the reading goes on. Raises:
        HistoryUnreadable, FileMissing, StorageFailed, as `source` does.
        """


@dataclass(frozen=True, kw_only=True)
class FoundHistory:
    """A file or folder that a program wrote on this machine, and the name of its format.

    `folder` is where the program worked when it wrote it, None if unknown. With `everywhere` it is about the person and
    holds for all projects.
    """

    source: ImportSource
    form: str
    folder: Path | None = None
    everywhere: bool = False


class HistoryFinder(Protocol):
    """What an importer has besides, if its program keeps a history on this machine."""

    def find(self, home: Path, environment: Mapping[str, str], /) -> Iterator[FoundHistory]:
        """Give everything that the program wrote, oldest sessions first; nothing if it was never used here.

        `home` is the user's home folder; `environment` may say that the program keeps its files elsewhere.
        """
