"""The end of a session: what is remembered for it alone is removed, from files and index."""

import shutil
from pathlib import Path
from uuid import uuid4

from ricordo.concurrency import run_in_thread
from ricordo.curation.forget import forget_copies
from ricordo.errors import StorageFailed
from ricordo.runtime.roots import ENDED_PREFIX
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileStore
from ricordo.workspace.ledger import read_all_entries

__all__ = ["end_session_place"]


async def end_session_place(folder: Path, files: FileStore, place: MemoryRoot, index: Path) -> None:
    """Remove the place of a session at `folder`, with its index in the folder `index`.

    `files` are those of the folder. What was learned in the same words meanwhile is forgotten in `place`. After an
    interruption the next process finishes. Raises: StorageError.
    """
    if not folder.name.startswith(ENDED_PREFIX):
        entries = [located.entry for located in await read_all_entries(files)]
        change = entries and await forget_copies(
            place.files, place.changes, entries, key=place.key, who="session", user=place.scope.user or ""
        )
        if change:
            await place.index.refresh()
    await run_in_thread(_remove, folder, index)


def _remove(folder: Path, index: Path) -> None:
    try:
        # from here on nothing finds it
        removed = folder.rename(folder.with_name(f"{ENDED_PREFIX}{uuid4().hex}"))
        if index != folder:
            shutil.rmtree(index, ignore_errors=True)
        shutil.rmtree(removed)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageFailed(
            f"What was remembered for a session alone could not be removed: {error.strerror}."
        ) from error
