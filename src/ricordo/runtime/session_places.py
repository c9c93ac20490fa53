"""The end of a session, which removes what is remembered for it alone, and the deletion of one."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from ricordo.concurrency import run_in_thread
from ricordo.curation import remove_session
from ricordo.curation.forget import forget_copies
from ricordo.errors import StorageFailed
from ricordo.runtime.roots import ENDED_PREFIX
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileStore
from ricordo.stores.contract import DeleteResult
from ricordo.stores.erase import require_free
from ricordo.workspace.history.log import PERSON
from ricordo.workspace.layout import agent_from_folder
from ricordo.workspace.ledger import read_all_entries
from ricordo.workspace.sessions import TranscriptCatalog, find_session

if TYPE_CHECKING:
    from ricordo.extraction.session_extraction import SessionExtraction
    from ricordo.jobs import JobQueue
    from ricordo.runtime.settings import Settings

__all__ = ["delete_session", "end_session_place", "stop_learning"]


_MOST_JOBS = 10_000


async def delete_session(
    place: MemoryRoot, inbox: "JobQueue", session_id: str, *, agent: str | None, cascade: bool, why: str,
    settings: "Settings | None",
) -> DeleteResult:  # fmt: skip
    """Delete a session as `Memory.delete_session` does."""
    session = (await find_session(place.files, session_id, agent=agent)).session
    removed = await remove_session(
        place.files, place.changes, session, cascade=cascade, key=place.key, who=PERSON,
        why=place.redactor.clean(why), config=settings.consolidation if settings else None,
    )  # fmt: skip
    # a job that runs before that finds nothing to read
    await _withdraw_jobs(inbox, {session})
    await place.index.refresh()
    entries = [await place.outward_async(entry) for entry in removed.entries]
    return DeleteResult(entries=tuple(entries), change_id=removed.change.id)


async def stop_learning(inbox: "JobQueue", flush: "SessionExtraction") -> None:
    """Let nothing more be learned from what the sessions of a place said until now. Raises: LegalHold; StorageError."""
    require_free(flush.place, [located.entry for located in await read_all_entries(flush.place.files)])
    overviews = await TranscriptCatalog(flush.place.files).list_overviews()
    await _withdraw_jobs(inbox, {each.session for each in overviews})
    for each in overviews:
        if (agent := agent_from_folder(each.agent)) is not None:
            await flush.skip(agent, each.session)


async def _withdraw_jobs(inbox: "JobQueue", sessions: Collection[str]) -> None:
    """Withdraw the waiting jobs of these sessions; one that runs finds nothing more to read."""
    for record in await inbox.jobs(states={"waiting"}, limit=_MOST_JOBS):
        if record.job.session in sessions:
            await inbox.withdraw(record.job.id)


async def end_session_place(folder: Path, files: FileStore, place: MemoryRoot, index: Path) -> int:
    """Remove the place of a session at `folder`, with its index in the folder `index`; return how much it held.

    `files` are those of the folder. What was learned in the same words meanwhile is forgotten in `place`. After an
    interruption the next process finishes. Raises: StorageError.
    """
    entries = []
    if not folder.name.startswith(ENDED_PREFIX):
        entries = [located.entry for located in await read_all_entries(files)]
        change = entries and await forget_copies(
            place.files, place.changes, entries, key=place.key, who="session", user=place.scope.user or ""
        )
        if change:
            await place.index.refresh()
    await run_in_thread(_remove, folder, index)
    return len(entries)


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
