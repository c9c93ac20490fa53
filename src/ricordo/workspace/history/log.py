"""The log of a root: every write, newest first.

Replacements have a record of their own. An append to a ledger needs none: its block in the file tells when, by whom and
from which session, and its id is that of its first entry. Ledgers are read newest first, and no more than are needed.

Invariant: the order is that of ids, which never go backwards in a root, and within a ledger that of the file, so a
clock that was set back changes nothing.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from anyio.to_thread import run_sync

from ricordo.clock import IdSource, decode_id
from ricordo.concurrency import compute
from ricordo.errors import FileMissing, InvalidQuery, StorageError
from ricordo.storage import FileStore
from ricordo.workspace.entry_codec import LocatedEntry
from ricordo.workspace.history.change_sets import Change, ChangeSets, read_newest_change_id
from ricordo.workspace.layout import LEDGERS, ledger_date
from ricordo.workspace.ledger import find_newest_id, may_contain_id, read_entries, read_newest_id

__all__ = [
    "PERSON",
    "UNREADABLE_ACT",
    "HistoryItem",
    "LedgerOutline",
    "advance_ids",
    "find_newest_time",
    "find_undone_ids",
    "is_by_person",
    "iter_appends",
    "list_history",
    "list_ledgers",
    "may_be_saved",
    "outline_ledger",
    "sort_newest_first",
]


_TIME_FIELD = re.compile(rb"\[at:: ([^\]\\]{10,40})\]")
_BULLET_START = re.compile(rb"^[-*+] +(?=\S)", re.MULTILINE)
_EXTRACTED_FIELD = re.compile(rb"(?<!\\)\[by:: (?:flush|import)\]")


@dataclass(frozen=True, kw_only=True)
class LedgerOutline:
    """A ledger that was not parsed: no entry in it is newer than `newest_time`, and about `saved_count` of them were
    saved by somebody rather than extracted. `last_id` is the id in it that sorts last.
    """

    path: str
    newest_time: datetime
    saved_count: int
    last_id: str = ""


async def list_ledgers(files: FileStore, *, holding: str | None = None) -> list[LedgerOutline]:
    """Return the ledgers, the one with the newest entry first; only those that may hold an id that begins `holding`.

    A ledger that can't be read is left out.
    """
    found = []
    for info in await files.list(LEDGERS):
        if ledger_date(info.path) is None:
            continue
        try:
            data = (await files.read(info.path)).data
        except (FileMissing, StorageError):
            continue
        if holding is None or may_contain_id(data, holding):
            found.append(await run_sync(outline_ledger, info.path, data))
    return sort_newest_first(found)


async def advance_ids(files: FileStore, ids: IdSource) -> None:
    """Make `ids` go on after what was written last to a root: its newest change set and the end of its last ledger."""
    with suppress(FileMissing, StorageError):
        ids.follow(await read_newest_change_id(files))
        ids.follow(await read_newest_id(files))


def sort_newest_first(ledgers: Iterable[LedgerOutline]) -> list[LedgerOutline]:
    """Return the ledgers, the one with the newest entry first."""
    return sorted(ledgers, key=lambda ledger: (ledger.newest_time, ledger.path), reverse=True)


def may_be_saved(bullet: bytes) -> bool:
    """Tell whether somebody may have saved the entry of this bullet, rather than that it was extracted."""
    return _EXTRACTED_FIELD.search(bullet) is None


def find_newest_time(data: bytes) -> datetime:
    """Return the latest time of an entry in a ledger; the earliest there is for none."""
    return max(map(_parse_time, {match[1] for match in _TIME_FIELD.finditer(data)}), default=_EARLIEST)


def outline_ledger(path: str, data: bytes) -> LedgerOutline:
    """Return the outline of a ledger."""
    newest = find_newest_time(data)
    saved = sum(1 for _ in _BULLET_START.finditer(data)) - sum(1 for _ in _EXTRACTED_FIELD.finditer(data))
    return LedgerOutline(path=path, newest_time=newest, saved_count=max(saved, 0), last_id=find_newest_id(data))


def _parse_time(text: bytes) -> datetime:
    """Return the time that is written there; one that can't be read is no entry's time."""
    try:
        time = datetime.fromisoformat(text.decode("ascii"))
        return time.astimezone(UTC) if time.tzinfo else _EARLIEST
    except (ValueError, OverflowError):
        return _EARLIEST


_EARLIEST = datetime.min.replace(tzinfo=UTC)


_AT_ONCE = 500
"""So many writes are put in order in some milliseconds."""
PERSON = "user"
"""The writer of what a person asked for."""
UNREADABLE_ACT = "unreadable"
"""The act of a change whose record is damaged."""


@dataclass(frozen=True, kw_only=True)
class HistoryItem:
    """One write: `act` is what was done, `paths` the files it touched, `entries` the ids it added.

    `undone` tells that a later change took it back; `undoes` is the id of the change that this one takes back. `user`
    is the user whose act it is, empty where that is not known. A write has a greater `order` than all before it.
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
    user: str = ""
    order: tuple[str, int] = field(default=("", 0), compare=False, repr=False)


def is_by_person(item: HistoryItem) -> bool:
    """Tell whether a person did this, rather than an agent or what works in the background; no undo counts."""
    return item.who == PERSON and item.act != "undo"


async def list_history(
    files: FileStore,
    changes: ChangeSets,
    *,
    limit: int | None = None,
    holding: str | None = None,
    user: str | None = None,
) -> list[HistoryItem]:
    """Return at most `limit` writes (all when None), newest first; empty for a new root.

    The newest ledgers are read first, and no more of them than `limit` needs. With `holding`, of the ledgers only
    those are read in which an id that begins so can be. With `user` the acts of other users are left out. Raises:
    InvalidQuery if `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidQuery(f"A history shows at least one write: the limit can't be {limit}.")
    records = await changes.list_changes()
    found = await compute(partial(_HistoryBuilder, records, user), size=len(records), at_once=_AT_ONCE)
    found.add_unreadable(await changes.list_unreadable())
    for ledger, before in _order_ledgers(await list_ledgers(files, holding=holding)):
        if limit is not None and found.has_newest(limit, after=max(ledger.last_id, before)):
            break
        read = [block async for block in iter_appends(files, ledger.path)]
        await compute(partial(found.add_ledger, read, before), size=len(read), at_once=_AT_ONCE)
    return await compute(partial(found.newest, limit), size=found.count, at_once=_AT_ONCE)


class _HistoryBuilder:
    """The writes that were found so far."""

    def __init__(self, records: Sequence[Change], user: str | None) -> None:
        undone, by_id = find_undone_ids(records), {change.id: change for change in records}
        self._user = user
        self._items: dict[str, HistoryItem] = {}
        self._change_by_entry: dict[str, str] = {}
        for change in sorted(records, key=lambda change: change.id):
            head = change.part_of if change.part_of in by_id else change.id
            item = _change_to_item(by_id[head], head in undone)
            entries = (*self._items[head].entries, *change.entries) if head in self._items else change.entries
            self._items[head] = replace(item, entries=entries, order=(change.id, 0))
            self._change_by_entry |= dict.fromkeys(change.entries, head)

    def add_ledger(self, found: Iterable[tuple[LocatedEntry, ...]], before: str) -> None:
        """Add the blocks of one ledger; `before` is the greatest id in those before it."""
        last = before
        for number, block in enumerate(found, start=1):
            item = _append_to_item(block)
            last = max([last, *(name for name in item.entries if decode_id(name) is not None)])
            head = self._items.get(self._change_by_entry.get(item.id, ""))
            if head is None:
                self._items[item.id] = replace(item, order=(last, number))
            else:
                paths = tuple(dict.fromkeys([*head.paths, *item.paths]))
                self._items[head.id] = replace(head, paths=paths)

    def add_unreadable(self, ids: Iterable[str]) -> None:
        """Add the changes of which only the id can be told."""
        for name in ids:
            item = HistoryItem(
                id=name, at=_change_time(name), who="", act=UNREADABLE_ACT, why="Its record can't be read."
            )
            self._items[name] = replace(item, order=(name, 0))

    @property
    def count(self) -> int:
        """How many writes were found, those of other users too."""
        return len(self._items)

    def has_newest(self, limit: int, *, after: str) -> bool:
        """Tell whether the `limit` newest are known, when all that is not read comes before the id `after`."""
        if self.count < limit:
            return False
        items = self.newest(limit)
        is_placed = all(item.paths or item.undone or not item.entries for item in items)
        return len(items) == limit and is_placed and items[-1].order[0] > after

    def newest(self, limit: int | None) -> list[HistoryItem]:
        """Return at most `limit` of them, newest first."""
        seen = [item for item in self._items.values() if self._user is None or item.user in {"", self._user}]
        return sorted(seen, key=lambda item: item.order, reverse=True)[:limit]


def _change_time(change_id: str) -> datetime:
    """Return when a change was made, by its id; the beginning of time for a name that is no id."""
    value = decode_id(change_id)
    return datetime.fromtimestamp((value >> 80) / 1000, UTC) if value else datetime.min.replace(tzinfo=UTC)


def _order_ledgers(ledgers: Iterable[LedgerOutline]) -> list[tuple[LedgerOutline, str]]:
    """Return the ledgers, the last day first, each with the greatest id in those before it."""
    rows, last = list[tuple[LedgerOutline, str]](), ""
    for ledger in sorted(ledgers, key=lambda ledger: (str(ledger_date(ledger.path)), ledger.path)):
        rows.append((ledger, last))
        last = max(last, ledger.last_id)
    return rows[::-1]


async def iter_appends(files: FileStore, path: str) -> AsyncIterator[tuple[LocatedEntry, ...]]:
    """Yield the blocks that were appended to one ledger, in its order; none when it can't be read."""
    try:
        located = await read_entries(files, path)
    except (FileMissing, StorageError):
        return
    for block in _group_appends(located):
        yield block


def _group_appends(located: Iterable[LocatedEntry]) -> Iterator[tuple[LocatedEntry, ...]]:
    """Part entries that follow each other into what one append wrote; a bullet written by hand is none."""
    for written, block in groupby(located, key=_append_key):
        if written is not None:
            yield tuple(block)


def _append_key(found: LocatedEntry) -> tuple[datetime, str, str | None] | None:
    """Return what the bullets of one append have in common; what a user or an agent saves is an append of its own."""
    entry = found.entry
    if entry.time is None or entry.by == "hand":
        return None
    return entry.time, entry.by, entry.id if entry.by in {"user", "agent"} else entry.source.session


def _append_to_item(block: Sequence[LocatedEntry]) -> HistoryItem:
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
        user=(first.scope.user or "") if first.scope else "",
    )


def _change_to_item(change: Change, undone: bool) -> HistoryItem:  # noqa: FBT001
    return HistoryItem(
        id=change.id,
        at=change.at,
        who=change.who,
        act=change.act,
        why=change.why,
        paths=tuple(changed.path for changed in change.files),
        undoes=change.undoes,
        undone=undone,
        user=change.user,
    )


def find_undone_ids(records: Sequence[Change]) -> set[str]:
    """Return the ids that are undone now; an undo that was itself undone counts for nothing."""
    undone: set[str] = set()
    for change in sorted(records, key=lambda record: record.id, reverse=True):
        if change.undoes and change.id not in undone:
            undone.add(change.undoes)
    return undone
