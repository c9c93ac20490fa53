"""The check of history: whether each change can still be told of and taken back."""

from ricordo.audit.check import Check
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.changes import ChangeSets

__all__ = ["check_history"]

_MOST = 3


async def check_history(files: FileStore) -> Check:
    """Return the check of the records of changes, and of the contents that they name."""
    clock = SystemClock()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    damaged = [f"{name} (its record)" for name in await changes.unreadable()]
    known: dict[str, bool] = {}
    for change in await changes.records():
        for version in (version for file in change.files for version in (file.before, file.after)):
            if version not in known:
                known[version] = await _is_whole(changes, version)
        if not all(known[version] for file in change.files for version in (file.before, file.after)):
            damaged.append(f"{change.id} (what it replaced)")
    detail = "changes whose record or contents are damaged, which can't be undone"
    shown = ", ".join(damaged[:_MOST]) + (", and more" if damaged[_MOST:] else "")
    return Check(name="history", ok=not damaged, count=len(damaged), detail=f"{detail}: {shown}" if damaged else detail)


async def _is_whole(changes: ChangeSets, version: str) -> bool:
    try:
        await changes.content(version)
    except FileMissing:
        # what was erased is gone, and so it is to be
        return True
    except StorageError:
        return False
    return True
