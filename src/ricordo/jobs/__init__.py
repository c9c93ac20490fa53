"""Jobs: the durable queue of work that must not hold up a turn, its worker, and background tasks of agents."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.jobs.contract import InboxConfig, Job, JobOutcome, JobQueue, JobRecord, JobState, Lease

__all__ = ["InboxConfig", "Job", "JobOutcome", "JobQueue", "JobRecord", "JobState", "Lease"]

__getattr__ = lazy_exports(
    __name__,
    {
        ".contract": "InboxConfig Job JobOutcome JobQueue JobRecord JobState Lease",
    },
)
