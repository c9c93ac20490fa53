"""Queue: the inbox, where work waits that must not hold up a turn. Jobs name messages and never hold content.

A job is durable when `put` returns. It is worked on under a lease: when the worker dies, the lease runs out and
somebody else takes the job. One job waits for each key; asking again for work that waits widens it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

__all__ = ["Job", "JobRecord", "JobState", "Lease", "JobOutcome", "JobQueue"]

JobState = Literal["waiting", "running", "done", "failed", "dropped"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A piece of work: `kind` such as `flush` or `consolidate`, for a session of an agent, or for the whole root.

    `first` and `last` are the ids of the messages it is about, both included; None for from the cursor on, and up to
    the newest. `user` is who is named on what it writes, empty for whom the root names. It is due at `after`, at
    once when None, and is to be done by `deadline`, after which it goes first. `key` tells jobs that are one and
    the same; without one it is made of kind, agent, session and user. `signals` name what the messages hold, such as a
    correction, and `trace` is the trace of whoever asked last. `id` is given by the inbox, which
    also counts in `attempts` how often the job was tried. It is no try when a lease ran out, its process was killed, or
    it was given back without an error.
    """

    kind: str
    agent: str = ""
    session: str = ""
    user: str = ""
    first: str | None = None
    last: str | None = None
    after: datetime | None = None
    deadline: datetime | None = None
    key: str = ""
    signals: frozenset[str] = frozenset()
    trace: str = ""
    id: str = ""
    attempts: int = 0


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to do `job` until `until`; `token` tells this lease from an older one of the same job."""

    job: Job
    token: str
    until: datetime


@dataclass(frozen=True, kw_only=True)
class JobOutcome:
    """How a job ended: what it counted, and the type of the error where there was one; never content."""

    state: Literal["done", "failed", "dropped"]
    counts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """A job as it stands: when it came in, and its outcome, the last error included when it is to be tried again.

    `until` is when the lease of a running one runs out.
    """

    job: Job
    state: JobState
    created: datetime
    changed: datetime
    outcome: JobOutcome | None = None
    until: datetime | None = None


class JobQueue(Protocol):
    """The inbox of one root. Every call may raise `StorageBusy`, `StorageFull`, `StorageReadOnly`, `StorageFailed`."""

    async def put(self, job: Job) -> Job:
        """Add `job` durably and return it as it waits.

        A waiting one of its key is widened instead: to the older `first`, the newer `last`, the later `after`, though
        none past the sooner `deadline`, and all `signals`; it is due at once when one of the two is. So is one for
        the same session that names no user, or any where `job` names none: then it is done for the user who is
        named. One that runs is not touched, the new one waits beside it.
        """
        ...

    async def begin(self, job: Job, *, seconds: float) -> Lease | None:
        """Add `job` as `put` does and take it at once, in one durable step, whenever it would have been due.

        None when one of its key runs; then it waits beside it.
        """
        ...

    async def lease(
        self, *, seconds: float, kinds: Collection[str] | None = None, key: str | None = None
    ) -> Lease | None:
        """Take the next job that is due, of these `kinds` and this `key`, for `seconds`; None when nothing is due.

        Those past their deadline come first, then those of the user whose last turn is longest ago, then the oldest.
        Jobs of one key never run at once.
        """
        ...

    async def renew(self, lease: Lease, *, seconds: float) -> Lease:
        """Hold the lease for `seconds` more from now. Raises `LeaseLost`."""
        ...

    async def complete(self, lease: Lease, outcome: JobOutcome) -> None:
        """End the job. Raises `LeaseLost` when the lease is no longer this one."""
        ...

    async def release(self, lease: Lease, *, error: str | None = None, after: datetime | None = None) -> None:
        """Give the job back, due at `after`, with the type of the `error` that kept it. Raises `LeaseLost`.

        With an `error` it counts as failed; one that failed too often ends as failed. Without one nothing is counted.
        """
        ...

    async def make_due(self, *, keys: Collection[str] | None = None, kinds: Collection[str] | None = None) -> int:
        """Make what waits out a pause due at once, of these `keys` and `kinds`, all when None; return how many."""
        ...

    async def withdraw(self, job_id: str) -> bool:
        """Remove a job that waits as if it had never been put; False for one that runs or has ended."""
        ...

    async def jobs(
        self,
        *,
        states: Collection[JobState] | None = None,
        kinds: Collection[str] | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """Return at most `limit` jobs, newest first; all states and kinds when None.

        Ended ones are kept for a while.
        """
        ...

    async def close(self) -> None:
        """Close the inbox; a second time does nothing."""
        ...
