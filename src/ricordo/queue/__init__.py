"""The inbox: the durable queue of work that must not hold up a turn."""

from ricordo.queue.config import InboxConfig
from ricordo.queue.contract import Job, JobRecord, JobState, Lease, JobOutcome, JobQueue

__all__ = ["InboxConfig", "Job", "JobRecord", "JobState", "Lease", "JobOutcome", "JobQueue"]
