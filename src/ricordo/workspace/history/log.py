"""The log of a root: every change, newest first.

Replacements have records. An append to a ledger needs none: its block in the file has its time, author and session, and
its id is that of the first entry. Ledgers are read newest first, and only as many as needed.

Invariant: the order is that of ids, which never go backwards in a root, and within a ledger that of the file, so
setting back the clock does not change it.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby

from anyio.to_thread import run_sync

from ricordo.clock import IdSource, decode_id
from ricordo.concurrency import compute
from ricordo.errors import FileMissing, InvalidQuery, StorageError
from ricordo.lazy import dataclass, lazy_compile
from ricordo.storage import FileStore
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.history.change_sets import Change, ChangeSets, read_newest_change_id
from ricordo.workspace.layout import LEDGERS, ledger_date
from ricordo.workspace.ledger import (
    find_newest_id,
    list_documents_with,
    load_long_entry,
    read_document_with,
    read_entries,
    read_newest_id,
)

__all__ = [
    "PERSON",
    "UNREADABLE_ACT",
    "HistoryItem",
    "advance_ids",
    "count_saved",
    "find_newest_time",
    "find_undone_ids",
    "is_by_person",
    "iter_appends",
    "list_history",
    "may_be_saved",
]


_TIME_FIELD = lazy_compile(rb"\[at:: ([^\]\\]{10,40})\]")
_BULLET_START = lazy_compile(rb"^[-*+] +(?=\S)", re.MULTILINE)
_EXTRACTED_FIELD = lazy_compile(rb"(?<!\\)\[by:: (?:flush|import)\]")


async def advance_ids(files: FileStore, ids: IdSource) -> None:
    """Advance `ids` past the last ids written to a root: its newest change set and the end of its last ledger."""
    with suppress(FileMissing, StorageError):
        ids.follow(await read_newest_change_id(files))
        ids.follow(await read_newest_id(files))


def may_be_saved(bullet: bytes) -> bool:
    """Return whether a user or an agent may have saved the entry of this bullet, rather than extraction."""
    return _EXTRACTED_FIELD.search(bullet) is None


def find_newest_time(data: bytes) -> datetime:
    """Return the latest time of an entry in a ledger; the minimum time for none."""
    return max(map(_parse_time, {match[1] for match in _TIME_FIELD.finditer(data)}), default=_EARLIEST)


def count_saved(data: bytes) -> int:
    """Return about how many entries of a ledger a user or an agent saved, without parsing it."""
    saved = sum(1 for _ in _BULLET_START.finditer(data)) - sum(1 for _ in _EXTRACTED_FIELD.finditer(data))
    return max(saved, 0)


def _parse_time(text: bytes) -> datetime:
    """Parse a time; return the minimum time if that fails."""
    try:
        time = datetime.fromisoformat(text.decode("ascii"))
        return time.astimezone(UTC) if time.tzinfo else _EARLIEST
    except (ValueError, OverflowError):
        return _EARLIEST


_EARLIEST = datetime.min.replace(tzinfo=UTC)


_AT_ONCE = 500
"""The number of changes that can be sorted in a few milliseconds."""
_TAIL_FACTOR = 4
"""How many bullets at the end of a ledger are parsed for each change to list, before all of them are."""
PERSON = "user"
"""The author name of changes that a person requested."""
UNREADABLE_ACT = "unreadable"
"""The act of a change whose record is damaged."""


@dataclass(frozen=True, kw_only=True)
class HistoryItem:
    """One change: `action` is the operation, `paths` the files it touched, `entries` the ids it added.

    `is_undone` says that a later change reverted it; `undoes` is the id of the change that this one reverts. `user` is
    the user who made it, empty if unknown. A change has a greater `order` than all earlier ones.
    """

    id: str
    at: datetime
    actor: str
    action: str
    reason: str = ""
    paths: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    undoes: str | None = None
    is_undone: bool = False
    user: str = ""
    order: tuple[str, int] = field(default=("", 0), compare=False, repr=False)


def is_by_person(item: HistoryItem) -> bool:
    """Return whether a person made this change, not an agent or a background job; an undo does not count."""
    return item.actor == PERSON and item.action != "undo"


async def list_history(
    files: FileStore,
    changes: ChangeSets,
    *,
    limit: int | None = None,
    holding: str | None = None,
    user: str | None = None,
) -> list[HistoryItem]:
    """Return at most `limit` changes (all if None), newest first; empty for a new root.

    The newest ledgers are read first, and only as many as `limit` needs. With `holding`, only ledgers that may contain
    an id starting with it are read. With `user`, changes of other users are left out. Raises: InvalidQuery if `limit`
    is below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidQuery(f"A history shows at least one write: the limit can't be {limit}.")
    records = await changes.list_changes()
    builder = await compute(partial(_HistoryBuilder, records, user), size=len(records), at_once=_AT_ONCE)
    builder.add_unreadable(await changes.list_unreadable())
    for path, last_id, before in await _list_ledgers(files, holding):
        if limit is not None and builder.has_newest(limit, after=max(last_id, before)):
            break
        if limit is not None:
            newest, earlier_id = await _read_last_appends(files, path, before, _TAIL_FACTOR * limit)
            builder.add_ledger(newest, earlier_id)
            if newest and builder.has_newest(limit, after=earlier_id):
                break
        read = [block async for block in iter_appends(files, path)]
        await compute(partial(builder.add_ledger, read, before), size=len(read), at_once=_AT_ONCE)
    return await compute(partial(builder.newest, limit), size=builder.count, at_once=_AT_ONCE)


class _HistoryBuilder:
    """Collects the changes found so far."""

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

    def add_ledger(self, blocks: Iterable[tuple[LocatedEntry, ...]], before: str) -> None:
        """Add the blocks of one ledger, or its last ones; `before` is the greatest id that comes before them."""
        last = before
        for block in blocks:
            item = _append_to_item(block)
            last = max([last, *(name for name in item.entries if decode_id(name) is not None)])
            head = self._items.get(self._change_by_entry.get(item.id, ""))
            if head is None:
                self._items[item.id] = replace(item, order=(last, block[0].offset + 1))
            else:
                paths = tuple(dict.fromkeys([*head.paths, *item.paths]))
                self._items[head.id] = replace(head, paths=paths)

    def add_unreadable(self, ids: Iterable[str]) -> None:
        """Add changes of which only the id is known."""
        for name in ids:
            item = HistoryItem(
                id=name, at=_change_time(name), actor="", action=UNREADABLE_ACT, reason="Its record can't be read."
            )
            self._items[name] = replace(item, order=(name, 0))

    @property
    def count(self) -> int:
        """The number of changes found, including those of other users."""
        return len(self._items)

    def has_newest(self, limit: int, *, after: str) -> bool:
        """Return whether the `limit` newest changes are known, if everything unread comes before the id `after`."""
        if self.count < limit:
            return False
        items = self.newest(limit)
        is_placed = all(item.paths or item.is_undone or not item.entries for item in items)
        return len(items) == limit and is_placed and items[-1].order[0] > after

    def newest(self, limit: int | None) -> list[HistoryItem]:
        """Return at most `limit` changes, newest first."""
        seen = [item for item in self._items.values() if self._user is None or item.user in {"", self._user}]
        return sorted(seen, key=lambda item: item.order, reverse=True)[:limit]


def _change_time(change_id: str) -> datetime:
    """Return the time of a change from its id; the minimum time for an invalid id."""
    value = decode_id(change_id)
    return datetime.fromtimestamp((value >> 80) / 1000, UTC) if value else datetime.min.replace(tzinfo=UTC)


async def _list_ledgers(files: FileStore, holding: str | None) -> list[tuple[str, str, str]]:
    """Return path, greatest id, and greatest id in all earlier ledgers of each ledger, last day first.

    With `holding`, only those that may contain an id starting with it. A ledger that can't be read is left out.
    """
    rows, before = list[tuple[str, str, str]](), ""
    documents = await (files.list(LEDGERS) if holding is None else list_documents_with(files, holding))
    ledgers = [info for info in documents if ledger_date(info.path) is not None]
    for info in sorted(ledgers, key=lambda info: (str(ledger_date(info.path)), info.path)):
        data = await read_document_with(files, info, holding or "")
        if data is not None:
            last_id = find_newest_id(data)
            rows.append((info.path, last_id, before))
            before = max(before, last_id)
    return rows[::-1]


async def _read_last_appends(
    files: FileStore, path: str, before: str, count: int
) -> tuple[list[tuple[LocatedEntry, ...]], str]:
    """Return blocks among the last `count` bullets of a ledger, and the greatest id before them or `before`.

    The result is empty for a short ledger, which is read as a whole.
    """
    try:
        data = (await files.read(path)).data
    except (FileMissing, StorageError):
        return [], before
    earlier = sum(1 for _ in _BULLET_START.finditer(data)) - count
    if earlier <= 0:
        return [], before

    def is_last(_bullet: bytes) -> bool:
        nonlocal earlier
        earlier -= 1
        return earlier < 0

    located = await run_sync(partial(parse_entries, data, path, only=is_last))
    # the first block may have begun in the part that was not parsed
    blocks = [*_group_appends([await load_long_entry(files, item) for item in located])][1:]
    return blocks, max(before, find_newest_id(data[: blocks[0][0].offset])) if blocks else before


async def iter_appends(
    files: FileStore, path: str, *, only: Callable[[bytes], bool] | None = None
) -> AsyncIterator[tuple[LocatedEntry, ...]]:
    """Yield the appended blocks of one ledger, in its order; nothing if it can't be read.

    `only` is as in `parse_entries`: blocks are without the other bullets.
    """
    try:
        located = await read_entries(files, path, only=only)
    except (FileMissing, StorageError):
        return
    for block in _group_appends(located):
        yield block


def _group_appends(located: Iterable[LocatedEntry]) -> Iterator[tuple[LocatedEntry, ...]]:
    """Group consecutive entries by the append that wrote them; bullets that a person typed are skipped."""
    for written, block in groupby(located, key=_append_key):
        if written is not None:
            yield tuple(block)


def _append_key(located: LocatedEntry) -> tuple[datetime, str, str | None] | None:
    """Return what the bullets of one append share; each entry saved by a user or an agent is a separate append."""
    entry = located.entry
    if entry.time is None or entry.by == "hand":
        return None
    return entry.time, entry.by, entry.id if entry.by in {"user", "agent"} else entry.source.session


def _append_to_item(block: Sequence[LocatedEntry]) -> HistoryItem:
    first = block[0].entry
    assert first.time is not None
    return HistoryItem(
        id=first.id,
        at=first.time,
        actor=first.by,
        action="save" if first.by != "flush" else "extract",
        reason=first.reason or "",
        paths=(block[0].path,),
        entries=tuple(located.entry.id for located in block),
        user=(first.scope.user or "") if first.scope else "",
    )


def _change_to_item(change: Change, undone: bool) -> HistoryItem:  # noqa: FBT001
    return HistoryItem(
        id=change.id,
        at=change.at,
        actor=change.actor,
        action=change.action,
        reason=change.reason,
        paths=tuple(changed.path for changed in change.files),
        undoes=change.undoes,
        is_undone=undone,
        user=change.user,
    )


def find_undone_ids(records: Sequence[Change]) -> set[str]:
    """Return the ids of changes that are undone now; an undo that was itself undone does not count."""
    undone: set[str] = set()
    for change in sorted(records, key=lambda record: record.id, reverse=True):
        if change.undoes and change.id not in undone:
            undone.add(change.undoes)
    return undone
