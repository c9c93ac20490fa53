"""History: every write of a root, newest first.

Replacements have a record of their own. An append to a ledger needs none: the block in the file tells when, by whom
and from which session; its id is the id of its first entry.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.changes import Change, ChangeSets
from ricordo.workspace.entry_codec import Located
from ricordo.workspace.layout import LEDGERS, ledger_date
from ricordo.workspace.ledger import read_entries

__all__ = ["HistoryItem", "blocks", "history"]


@dataclass(frozen=True, kw_only=True)
class HistoryItem:
    """One write: `act` is what was done, `paths` the files it touched, `entries` the ids it added.

    `undone` tells that a later change took it back; `undoes` is the id of the change that this one takes back.
    """

    id: str
    at: datetime
    who: str
    act: str
    why: str = ""
    paths: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    undoes: str | None = None
    undone: bool = False


async def history(files: FileStore, changes: ChangeSets, *, limit: int | None = None) -> list[HistoryItem]:
    """Return at most `limit` writes (all when None), newest first; empty for a new root."""
    records = await changes.records()
    undone = _undone(records)
    items = [_of_change(change, change.id in undone) for change in records]
    items += [_of_block(block) async for block in blocks(files)]
    return sorted(items, key=lambda item: (item.at, item.id), reverse=True)[:limit]


async def blocks(files: FileStore) -> AsyncIterator[tuple[Located, ...]]:
    """Yield the blocks that were appended to the ledgers, each in the order of its file."""
    for info in await files.list(LEDGERS):
        if ledger_date(info.path) is None:
            continue
        try:
            located = await read_entries(files, info.path)
        except (FileMissing, StorageError):
            continue
        for block in _blocks(located):
            yield block


def _blocks(located: Iterable[Located]) -> Iterator[tuple[Located, ...]]:
    """Part entries that follow each other into what one append wrote; a bullet written by hand is none."""
    for written, block in groupby(located, key=_append_of):
        if written is not None:
            yield tuple(block)


def _append_of(found: Located) -> tuple[datetime, str, str | None] | None:
    """Return what the bullets of one append have in common; what a user or an agent saves is an append of its own."""
    entry = found.entry
    if entry.time is None or entry.by == "hand":
        return None
    return entry.time, entry.by, entry.id if entry.by in {"user", "agent"} else entry.source.session


def _of_block(block: Sequence[Located]) -> HistoryItem:
    first = block[0].entry
    assert first.time is not None
    return HistoryItem(
        id=first.id,
        at=first.time,
        who=first.by,
        act="save" if first.by != "flush" else "extract",
        why=first.reason or "",
        paths=(block[0].path,),
        entries=tuple(found.entry.id for found in block),
    )


def _of_change(change: Change, undone: bool) -> HistoryItem:  # noqa: FBT001
    return HistoryItem(
        id=change.id,
        at=change.at,
        who=change.who,
        act=change.act,
        why=change.why,
        paths=tuple(changed.path for changed in change.files),
        undoes=change.undoes,
        undone=undone,
    )


def _undone(records: Sequence[Change]) -> set[str]:
    """Return the ids that are undone now; an undo that was itself undone counts for nothing."""
    undone: set[str] = set()
    for change in sorted(records, key=lambda record: record.id, reverse=True):
        if change.undoes and change.id not in undone:
            undone.add(change.undoes)
    return undone
