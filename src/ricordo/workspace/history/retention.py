"""Retention of history: old change sets are removed by age and total size, but the newest always stay.

Only records and replaced contents are removed, never the content of a file. Records go before contents, so an
interruption leaves unreferenced contents, which the next run removes.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from ricordo.errors import FileMissing
from ricordo.lazy import dataclass
from ricordo.storage import ABSENT, FileInfo, FileStore
from ricordo.workspace.history.change_sets import (
    CHANGES_FOLDER,
    CHANGES_LOCK,
    OBJECTS_FOLDER,
    PENDING_FOLDER,
    Change,
    ChangeSets,
    HistoryConfig,
)

__all__ = ["HistoryConfig", "HistoryRetentionResult", "select_expired", "trim_history"]


@dataclass(frozen=True, kw_only=True)
class HistoryRetentionResult:
    """The number of removed change sets, and of bytes of replaced content removed with them."""

    changes: int = 0
    bytes: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {"changes": self.changes, "history_bytes": self.bytes}


async def trim_history(
    files: FileStore, changes: ChangeSets, *, now: datetime, config: HistoryConfig | None = None
) -> HistoryRetentionResult:
    """Remove the expired change sets. A second call right after it does nothing.

    While an interrupted change set is not rolled back, nothing is removed. Raises: StorageError.
    """
    async with files.lock(CHANGES_LOCK):
        if await files.list(PENDING_FOLDER):
            return HistoryRetentionResult()
        records = await changes.list_changes()
        readable = {change.id for change in records}
        infos = await files.list(CHANGES_FOLDER)
        if any(_change_id(info) not in readable for info in infos):
            # a record that can't be read may refer to any content
            return HistoryRetentionResult()
        contents = await files.list(OBJECTS_FOLDER)
        sizes = {_object_version(info): info.size for info in contents}
        expired = select_expired(records, sizes, now=now, config=config or HistoryConfig())
        for change_id in expired:
            with suppress(FileMissing):
                await files.delete(f"{CHANGES_FOLDER}/{change_id}.json")
        referenced = {version for change in records if change.id not in expired for version in _change_versions(change)}
        unreferenced = [info for info in contents if _object_version(info) not in referenced]
        for info in unreferenced:
            with suppress(FileMissing):
                await files.delete(info.path)
    return HistoryRetentionResult(changes=len(expired), bytes=sum(info.size for info in unreferenced))


def select_expired(
    records: Sequence[Change], sizes: dict[str, int], *, now: datetime, config: HistoryConfig
) -> list[str]:
    """Return the ids of the change sets to remove, oldest first. Pure.

    `sizes` are the stored bytes of each content, which several change sets may share.
    """
    newest_first = sorted(records, key=lambda change: change.id, reverse=True)
    kept_versions: set[str] = set()
    total = 0
    expired: list[str] = []
    for change in newest_first:
        age = now - change.at
        new_versions = {version for version in _change_versions(change) if version not in kept_versions}
        size = sum(sizes.get(version, 0) for version in new_versions)
        is_full = expired or total + size > config.max_bytes
        if age > timedelta(days=config.days) or (is_full and age > timedelta(days=config.least_days)):
            expired.append(change.id)
        else:
            kept_versions |= new_versions
            total += size
    return expired[::-1]


def _change_versions(change: Change) -> list[str]:
    return [version for file in change.files for version in (file.before, file.after) if version != ABSENT]


def _change_id(info: FileInfo) -> str:
    return info.path.rpartition("/")[2].removesuffix(".json")


def _object_version(info: FileInfo) -> str:
    return info.path.rpartition("/")[2].removesuffix(".z")
