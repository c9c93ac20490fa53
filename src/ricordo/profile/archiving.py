"""The archive of a profile: what left it for want of room, or was merged, as entries that searching finds.

They stand in the archived ledger of the day, which nothing consolidates. Invariant: an entry has the id of its fact, so
that whoever archives twice writes once.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ricordo.clock import Clock
from ricordo.errors import FileMissing
from ricordo.files import FileStore
from ricordo.guard.redact import Redactor
from ricordo.profile.gate import parse_confidence
from ricordo.scopes import Scope
from ricordo.workspace.categories import kind_for_category
from ricordo.workspace.entry import Entry, Source
from ricordo.workspace.layout import LEDGERS
from ricordo.workspace.ledger import append_block, read_entries, render_block
from ricordo.workspace.profile import Fact, parse_profile_time

__all__ = ["FactArchive", "LedgerArchive", "archive_entry_id"]

FactArchive: TypeAlias = Callable[[Sequence[Fact]], Awaitable[None]]
"""Keeps facts that leave a profile; may raise the errors of storage, and then they stay in it."""

_ARCHIVE_TAG = "profile"
_ARCHIVE_LOCK = "profile-archive"


def archive_entry_id(fact: Fact) -> str:
    """Return the id of the entry that a fact has in the archive."""
    return "".join(mark if mark.isascii() and mark.isalnum() else "-" for mark in fact.id)[:64]


@dataclass(frozen=True, kw_only=True)
class LedgerArchive:
    """Archives into the ledgers of a workspace; `scope` says whose facts they are."""

    files: FileStore
    clock: Clock
    redactor: Redactor
    scope: Scope | None = None

    async def __call__(self, facts: Sequence[Fact]) -> None:
        """Append the facts that today's archive does not hold yet, durably. Raises: StorageError."""
        day = self.clock.today()
        path = f"{LEDGERS}/archive/{day.isoformat()}.md"
        async with self.files.lock(_ARCHIVE_LOCK):
            try:
                held = {(each.entry.id, each.entry.content) for each in await read_entries(self.files, path)}
            except FileMissing:
                held = set()
            entries = [self._to_entry(fact) for fact in facts if fact.content.strip()]
            fresh = [entry for entry in entries if (entry.id, self.redactor.clean(entry.content)) not in held]
            if fresh:
                block = await render_block(self.files, day, fresh, self.redactor)
                await append_block(self.files, replace(block, path=path))

    def _to_entry(self, fact: Fact) -> Entry:
        known = fact.source.thread not in {"", "unknown", "manual", "import", "consolidation"}
        return Entry(
            id=archive_entry_id(fact),
            time=self.clock.now(),
            since=parse_profile_time(fact.created_at),
            content=fact.content,
            kind=kind_for_category(fact.category),
            tags=(_ARCHIVE_TAG,),
            scope=self.scope,
            by="flush",
            confidence=parse_confidence(fact.confidence) or 0.0,
            source=Source(
                session=fact.source.thread if known else None,
                messages=tuple(filter(None, fact.source.messages)) if known else (),
                quote=(fact.source.quote or None) if known else None,
            ),
        )
