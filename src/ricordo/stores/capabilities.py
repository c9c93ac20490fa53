"""Capabilities: what a backend may offer beyond save, recall and preamble, found by type with `store.offers(...)`."""

from typing import Protocol, runtime_checkable

from ricordo.audit import HistoryItem, MarkAct
from ricordo.stores.place import Place
from ricordo.workspace.entry import Entry

__all__ = ["Forgets", "Layers", "Lists", "Marks", "Undoes"]


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
class Marks(Protocol):
    """A backend in which a person can pin an entry, and confirm it."""

    async def mark(self, entry_id: str, act: MarkAct, *, who: str) -> Entry:
        """Pin, unpin or confirm an entry and return it as it is now. Raises `EntryNotFound`."""
        ...


@runtime_checkable
class Undoes(Protocol):
    """A backend that knows what was written and can take it back."""

    async def history(self, *, limit: int | None = None) -> list[HistoryItem]:
        """Return at most `limit` writes (all when None), newest first. Raises: InvalidQuery if it is below 1."""
        ...

    async def undo(self, change_id: str | None, *, who: str) -> HistoryItem:
        """Take back one write, the newest when none is named. Raises `ChangeNotFound`, `UndoRefused`."""
        ...


@runtime_checkable
class Layers(Lists, Forgets, Marks, Undoes, Protocol):
    """A backend over visible workspaces, with everything that people do to what is remembered there."""

    async def places(self) -> list[Place]:
        """Return the visible places that exist, narrowest first."""
        ...
