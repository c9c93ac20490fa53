"""Which ledger can hold the newest: what is read stops as soon as no other ledger can hold anything newer."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio.to_thread import run_sync

from ricordo.audit.find import may_contain_id
from ricordo.clock import IdSource
from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.changes import read_newest_change_id
from ricordo.workspace.layout import LEDGERS, ledger_date
from ricordo.workspace.ledger import find_newest_id, read_newest_id

__all__ = [
    "LedgerOutline",
    "advance_ids",
    "may_be_saved",
    "sort_newest_first",
    "list_ledgers",
    "find_newest_time",
    "outline_ledger",
]

_TIME_FIELD = re.compile(rb"\[at:: ([^\]\\]{10,40})\]")
_BULLET_START = re.compile(rb"^[-*+] +(?=\S)", re.MULTILINE)
_EXTRACTED_FIELD = re.compile(rb"(?<!\\)\[by:: (?:flush|import)\]")


@dataclass(frozen=True, kw_only=True)
class LedgerOutline:
    """A ledger that was not parsed: no entry in it is newer than `newest_time`, and about `saved_count` of them were saved by
    somebody rather than extracted. `last_id` is the id in it that sorts last."""

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
