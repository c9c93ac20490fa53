"""Which ledger can hold the newest: what is read stops as soon as no other ledger can hold anything newer."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio.to_thread import run_sync

from ricordo.audit.find import may_hold
from ricordo.clock import Ids
from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.changes import newest_change
from ricordo.workspace.layout import LEDGERS, ledger_date
from ricordo.workspace.ledger import newest_id, newest_saved

__all__ = [
    "LedgerOutline",
    "follow_written",
    "may_be_saved",
    "newest_first",
    "newest_ledgers",
    "newest_time",
    "outline",
]

_TIME = re.compile(rb"\[at:: ([^\]\\]{10,40})\]")
_BULLET = re.compile(rb"^[-*+] +(?=\S)", re.MULTILINE)
_NOT_SAVED = re.compile(rb"(?<!\\)\[by:: (?:flush|import)\]")


@dataclass(frozen=True, kw_only=True)
class LedgerOutline:
    """A ledger that was not parsed: no entry in it is newer than `newest`, and about `saved` of them were saved by
    somebody rather than extracted. `last_id` is the id in it that sorts last."""

    path: str
    newest: datetime
    saved: int
    last_id: str = ""


async def newest_ledgers(files: FileStore, *, holding: str | None = None) -> list[LedgerOutline]:
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
        if holding is None or may_hold(data, holding):
            found.append(await run_sync(outline, info.path, data))
    return newest_first(found)


async def follow_written(files: FileStore, ids: Ids) -> None:
    """Make `ids` go on after what was written last to a root: its newest change set and the end of its last ledger."""
    with suppress(FileMissing, StorageError):
        ids.follow(await newest_change(files))
        ids.follow(await newest_saved(files))


def newest_first(ledgers: Iterable[LedgerOutline]) -> list[LedgerOutline]:
    """Return the ledgers, the one with the newest entry first."""
    return sorted(ledgers, key=lambda ledger: (ledger.newest, ledger.path), reverse=True)


def may_be_saved(bullet: bytes) -> bool:
    """Tell whether somebody may have saved the entry of this bullet, rather than that it was extracted."""
    return _NOT_SAVED.search(bullet) is None


def newest_time(data: bytes) -> datetime:
    """Return the latest time of an entry in a ledger; the earliest there is for none."""
    return max(map(_time, {match[1] for match in _TIME.finditer(data)}), default=_EARLIEST)


def outline(path: str, data: bytes) -> LedgerOutline:
    """Return the outline of a ledger."""
    newest = newest_time(data)
    saved = sum(1 for _ in _BULLET.finditer(data)) - sum(1 for _ in _NOT_SAVED.finditer(data))
    return LedgerOutline(path=path, newest=newest, saved=max(saved, 0), last_id=newest_id(data))


def _time(text: bytes) -> datetime:
    """Return the time that is written there; one that can't be read is no entry's time."""
    try:
        time = datetime.fromisoformat(text.decode("ascii"))
        return time.astimezone(UTC) if time.tzinfo else _EARLIEST
    except (ValueError, OverflowError):
        return _EARLIEST


_EARLIEST = datetime.min.replace(tzinfo=UTC)
