"""Overdue work of a root: waiting jobs, permanently failed jobs, and sessions without a job.

Invariant: finding it changes nothing, and resuming it requests no work that is waiting already.
"""

from collections.abc import Sequence

from ricordo.errors import StorageError
from ricordo.extraction.cursor import find_unextracted_sessions
from ricordo.jobs import Job, JobQueue, JobRecord
from ricordo.jobs.contract import find_unresolved_failures, is_same_work
from ricordo.lazy import dataclass
from ricordo.storage import FileStore
from ricordo.workspace.history.checks import Check

__all__ = ["OverdueWork", "check_unlearned", "find_overdue_work", "resume_overdue_work"]


_MAX_JOBS = 1_000
_MAX_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class OverdueWork:
    """Jobs that wait or run, and jobs that failed too often without a later success, each newest first.

    `behind` are jobs for sessions with messages that were not extracted and no waiting job, such as after the inbox was
    deleted.
    """

    waiting: Sequence[JobRecord] = ()
    failed: Sequence[JobRecord] = ()
    behind: Sequence[Job] = ()


async def find_overdue_work(queue: JobQueue, files: FileStore) -> OverdueWork:
    """Return the overdue work. Raises: StorageError if the inbox or a transcript cannot be read."""
    newest_first = await queue.jobs(limit=_MAX_JOBS)
    waiting = [record for record in newest_first if record.state in {"waiting", "running"}]
    failed = find_unresolved_failures(newest_first)
    existing_jobs = [record.job for record in (*waiting, *failed)]
    sessions = [
        Job(kind="flush", agent=agent, session=session) for agent, session in await find_unextracted_sessions(files)
    ]
    behind = [job for job in sessions if not any(is_same_work(job, each) for each in existing_jobs)]
    return OverdueWork(waiting=waiting, failed=failed, behind=behind)


async def check_unlearned(queue: JobQueue, files: FileStore) -> Check:
    """Return the check for sessions with messages that were not extracted and no waiting job.

    A session with a running turn is among them until the turn ends. Another check reports an unreadable inbox.
    """
    try:
        behind = [job.session for job in (await find_overdue_work(queue, files)).behind]
    except StorageError:
        behind = []
    detail = "sessions that were not learned from to their end, for which no job waits"
    if behind:
        suffix = f" and {len(behind) - _MAX_NAMED} more" if len(behind) > _MAX_NAMED else ""
        detail += f"; `ricordo maintain` asks for them again: {', '.join(behind[:_MAX_NAMED])}{suffix}"
    return Check(name="unlearned", ok=True, count=len(behind), detail=detail)


async def resume_overdue_work(queue: JobQueue, overdue: OverdueWork, *, retry: bool = False) -> None:
    """Make all overdue work due at once; with `retry` also failed jobs, with a new count of attempts."""
    retried = [
        Job(kind=job.kind, agent=job.agent, session=job.session, user=job.user)
        for job in (record.job for record in overdue.failed)
    ]
    for job in (*overdue.behind, *(retried if retry else ())):
        await queue.put(job)
    await queue.make_due()
