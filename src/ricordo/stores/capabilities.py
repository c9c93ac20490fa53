"""Capabilities: what a backend may offer beyond save, recall and preamble, found by type with `store.offers(...)`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Protocol, runtime_checkable

from ricordo.audit import HistoryItem, MarkAct, MemoryUsage, UsageAct
from ricordo.messages import Usage
from ricordo.stores.place import MemoryRoot
from ricordo.workspace.entry import Entry
from ricordo.workspace.tombstones import Tombstone

__all__ = [
    "Closes",
    "Forgets",
    "KeepsSessions",
    "KeepsTombstones",
    "LayeredMemory",
    "Lists",
    "Marks",
    "RecordsUsage",
    "SessionNotes",
    "Undoes",
]


@runtime_checkable
class Lists(Protocol):
    """A backend that can show everything it keeps."""

    async def entries(self) -> list[Entry]:
        """Return all entries, newest first."""
        ...

    async def get(self, entry_id: str) -> Entry:
        """Return one entry. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class Forgets(Protocol):
    """A backend that can take an entry out again."""

    async def forget(self, entry_id: str, *, who: str, why: str = "") -> Entry:
        """Remove an entry everywhere and return it. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class KeepsTombstones(Protocol):
    """A backend that keeps a record without content of each entry that was forgotten; each that forgets has to.

    Such an entry is not taken in again: `Store.save` asks for it when an entry comes with an id or a time of its own.
    """

    async def tombstones(self) -> tuple[Tombstone, ...]:
        """Return the record of each entry that was forgotten, oldest first. Raises `StorageError`."""
        ...

    async def tombstone_of(self, entry: Entry) -> Tombstone | None:
        """Return the record by which an entry is known as forgotten: by its id, or by words that are older.

        None for an entry that was not forgotten. Raises `StorageError`.
        """
        ...


@runtime_checkable
class Marks(Protocol):
    """A backend in which a person can pin an entry, and confirm it."""

    async def render_mark(self, entry_id: str, act: MarkAct, *, who: str) -> Entry:
        """Pin, unpin or confirm an entry and return it as it is now. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class Undoes(Protocol):
    """A backend that knows what was written and can take it back."""

    async def history(self, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes (all when None), newest first. Raises: InvalidQuery if it is below 1."""
        ...

    async def undo(self, change_id: str | None, *, who: str) -> HistoryItem:
        """Take back one write, the newest act of a person when none is named.

        Raises `ChangeNotFound`, `UndoRefused`.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class SessionNotes:
    """What is known of a session when it ends, besides what was saved in it.

    `started` and `ended` are times in UTC. `turns` counts what a person said. `cost` is in US dollars, None where it is
    not known. `usage` and `cost` are what the session took since it was closed before, `closing_usage` and
    `closing_cost` what the requests that summed it up took since then: the file has the sums. `summary` is one
    paragraph, `tags` are
    single words in lower case. With `pending` the summary is a digest made by rules, until one is made. `open_threads`
    are what was left open, `files_read` what was read.
    """

    session: str
    started: datetime | None = None
    ended: datetime | None = None
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None
    summary: str = ""
    tags: tuple[str, ...] = ()
    pending: bool = False
    decisions: tuple[str, ...] = ()
    open_threads: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    closing_usage: Usage = field(default_factory=Usage)
    closing_cost: Decimal | None = None


@runtime_checkable
class KeepsSessions(Protocol):
    """A backend that keeps a file for each session: what it was about, and what was saved in it."""

    async def close_session(self, notes: SessionNotes) -> str:
        """Write the file of a session, with what was saved in it, and return its path; empty where there is nothing.

        A second time replaces what was written before, but for usage and cost, which are added up. Raises
        `StorageError`, and then what was saved is kept.
        """
        ...

    async def pending_sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that have no summary yet, oldest first."""
        ...


@runtime_checkable
class RecordsUsage(Protocol):
    """A backend that notes when a memory was shown, used and confirmed, apart from what the memory says.

    Noting waits for nothing and writes nothing at once; no ranking goes by it.
    """

    def record_use(self, act: UsageAct, ids: Iterable[str], *, how: str, source: str = "", session: str = "") -> None:
        """Note what happens now to the memories with these ids.

        `how` is one word, such as `recall`; `source` is the label of their place, as a hit has it.
        """
        ...

    def record_prompt(self, text: str, *, session: str = "") -> None:
        """Note that a prompt shows the memories in `text`."""
        ...

    async def usage(self, entry_id: str) -> MemoryUsage:
        """Return what is known of one memory, by its whole id. Raises `StorageError`."""
        ...


@runtime_checkable
class Closes(Protocol):
    """A backend that holds something back until it is closed."""

    async def close(self) -> None:
        """Write what is held back, durably; a second time does nothing. Raises `StorageError`."""
        ...


@runtime_checkable
class LayeredMemory(Lists, Forgets, Marks, Undoes, Protocol):
    """A backend over visible workspaces, with everything that people do to what is remembered there."""

    async def places(self) -> list[MemoryRoot]:
        """Return the visible places that exist, narrowest first."""
        ...
