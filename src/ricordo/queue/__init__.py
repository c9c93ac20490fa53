"""The inbox: the durable queue of work that must not hold up a turn."""

from ricordo.queue.contract import Job, JobRecord, JobState, Lease, Outcome, Queue

__all__ = ["Job", "JobRecord", "JobState", "Lease", "Outcome", "Queue"]
