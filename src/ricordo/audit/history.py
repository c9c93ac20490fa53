"""History: every write of a root, newest first.

Replacements have a record of their own. An append to a ledger needs none: the block in the file tells when, by whom
and from which session. Its id is the id of its first entry, so it changes when that one is forgotten; the ids of all
its entries name it as well.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from ricordo.audit.ledgers import newest_ledgers
from ricordo.errors import FileMissing, InvalidQuery, StorageError
from ricordo.files import FileStore
from ricordo.workspace.changes import Change, ChangeSets
from ricordo.workspace.entry_codec import Located
from ricordo.workspace.ledger import read_entries

__all__ = ["HistoryItem", "blocks", "history", "undone_ids"]


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


async def history(
    files: FileStore, changes: ChangeSets, *, limit: int | None = None, holding: str | None = None
) -> list[HistoryItem]:
    """Return at most `limit` writes (all when None), newest first; empty for a new root.

    The newest ledgers are read first, and no more of them than `limit` needs. With `holding`, of the ledgers only
    those are read in which an id that begins so can be. Raises: InvalidQuery if `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidQuery(f"A history shows at least one write: the limit can't be {limit}.")
    records = await changes.records()
    undone = undone_ids(records)
    items = sorted((_of_change(change, change.id in undone) for change in records), key=_newest, reverse=True)
    for ledger in await newest_ledgers(files, holding=holding):
        if limit is not None and len(items) >= limit and items[limit - 1].at > ledger.newest:
            break
        items += [_of_block(block) async for block in blocks(files, ledger.path)]
        items = sorted(items, key=_newest, reverse=True)[:limit]
    return items[:limit]


def _newest(item: HistoryItem) -> tuple[datetime, str]:
    return item.at, item.id


async def blocks(files: FileStore, path: str) -> AsyncIterator[tuple[Located, ...]]:
    """Yield the blocks that were appended to one ledger, in its order; none when it can't be read."""
    try:
        located = await read_entries(files, path)
    except (FileMissing, StorageError):
        return
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


def undone_ids(records: Sequence[Change]) -> set[str]:
    """Return the ids that are undone now; an undo that was itself undone counts for nothing."""
    undone: set[str] = set()
    for change in sorted(records, key=lambda record: record.id, reverse=True):
        if change.undoes and change.id not in undone:
            undone.add(change.undoes)
    return undone
