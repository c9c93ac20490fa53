"""Expire: ledgers past their time go to the archive, where search still finds them and consolidation looks no more.

Invariant: a ledger that holds anything that was never consolidated stays where it is, however old it is.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta

from anyio.to_thread import run_sync

from ricordo.consolidation.cursor import load_cursor, find_unread_entries
from ricordo.errors import FileMissing, VersionConflict
from ricordo.files import ABSENT, FileStore, StoredFile
from ricordo.workspace.changes import Change, ChangeSets, Edit
from ricordo.workspace.layout import LEDGERS, archive_path, is_ledger, ledger_date

__all__ = ["EXPIRE_ACT", "archive_expired_ledgers", "find_expired_ledgers"]

EXPIRE_ACT = "expire"
"""What the change sets are called."""


async def find_expired_ledgers(files: FileStore, *, today: date, days: int | None) -> Sequence[str]:
    """Return the ledgers that are more than `days` old on `today` and consolidated to their end, by path."""
    if days is None:
        return ()
    before = today - timedelta(days=days)
    old = [info.path for info in await files.list(LEDGERS) if is_ledger(info.path) and _ledger_day(info.path) < before]
    if not old:
        return ()
    cursor = await load_cursor(files)
    seen = cursor.bullet_digests
    found = []
    for path in old:
        with suppress(FileMissing):
            data = (await files.read(path)).data
            if not await run_sync(find_unread_entries, path, data, cursor, seen):
                found.append(path)
    return found


async def archive_expired_ledgers(
    files: FileStore, changes: ChangeSets, *, today: date, days: int | None
) -> list[Change]:
    """Move them to the archive, each by a change set of its own; one that is written to meanwhile stays.

    Where the archive has a file of that day already, the ledger is added to its end. Raises: StorageError.
    """
    done = []
    for path in await find_expired_ledgers(files, today=today, days=days):
        with suppress(FileMissing, VersionConflict):
            edits = await _archive_edits(files, path)
            done.append(await changes.apply(edits, act=EXPIRE_ACT, who="maintenance", why=f"older than {days} days"))
    return done


async def _archive_edits(files: FileStore, path: str) -> list[Edit]:
    ledger, target = await files.read(path), archive_path(path)
    there = await _read_if_present(files, target)
    data = ledger.data
    if there is not None and there.data.strip() and there.data != data:
        data = there.data.rstrip(b"\n") + b"\n\n" + data
    return [
        Edit(path=target, expected=there.version if there else ABSENT, data=data),
        Edit(path=path, expected=ledger.version, data=None),
    ]


async def _read_if_present(files: FileStore, path: str) -> StoredFile | None:
    try:
        return await files.read(path)
    except FileMissing:
        return None


def _ledger_day(path: str) -> date:
    return ledger_date(path) or date.max
