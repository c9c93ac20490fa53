"""JobQueue: the durable queue of work that must not hold up a turn. Jobs name messages and never contain content.

A job is durable when `put` returns. It runs under a lease: if the worker dies, the lease expires and another worker
takes the job. At most one job waits for each key; adding another one with the same key widens the waiting job.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass

__all__ = [
    "InboxConfig",
    "Job",
    "JobOutcome",
    "JobQueue",
    "JobRecord",
    "JobState",
    "Lease",
    "find_unresolved_failures",
    "is_same_work",
    "job_key",
    "widen_job",
]


@dataclass(frozen=True, kw_only=True)
class InboxConfig:
    """When queued work runs. The defaults are DeerFlow's debounce plus an upper bound that DeerFlow lacks.

    The extraction of a turn waits until its session has been quiet for `debounce_seconds`, but at most
    `max_wait_seconds` after the first request; 0 means at once, one extraction for each turn. `workers` is how many
    jobs one process runs at a time, at least 1.
    """

    debounce_seconds: float = 30.0
    max_wait_seconds: float = 120.0
    workers: int = 2

    def __post_init__(self) -> None:
        """Raise InvalidSetting for a negative time, a `max_wait_seconds` below `debounce_seconds`, or no worker."""
        if not self.debounce_seconds >= 0:
            raise InvalidSetting(f"debounce_seconds is a number of at least 0, not {self.debounce_seconds}.")
        if not self.max_wait_seconds >= self.debounce_seconds:
            raise InvalidSetting(
                f"max_wait_seconds is a number of at least debounce_seconds ({self.debounce_seconds:g}), "
                f"not {self.max_wait_seconds}."
            )
        if self.workers < 1:
            raise InvalidSetting(f"workers is a whole number of at least 1, not {self.workers}.")

    def due_times(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Return the due time and the deadline for work requested at `now`; None for both means at once."""
        if not self.debounce_seconds:
            return None, None
        return now + timedelta(seconds=self.debounce_seconds), now + timedelta(seconds=self.max_wait_seconds)


JobState = Literal["waiting", "running", "done", "failed", "dropped"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A piece of work of a `kind` such as `flush` or `consolidate`, for a session of an agent, or for the whole root.

    `first_id` and `last_id` are the ids of its messages, both inclusive; None means from the cursor on, and up to the
    newest. `user` is the user to whom its entries belong, empty for the user of the root. It is due at `not_before`, at
    once if None, and after `deadline` it takes precedence. `key` identifies equal jobs; if empty, it is made from kind,
    agent, session and user. `signals` name features of the messages, such as a correction, and `trace` is the trace of
    the last request. The queue sets `id` and counts the attempts in `attempts`. An expired lease, a killed process, or
    a release without an error is not an attempt.
    """

    kind: str
    agent: str = ""
    session: str = ""
    user: str = ""
    first_id: str | None = None
    last_id: str | None = None
    not_before: datetime | None = None
    deadline: datetime | None = None
    key: str = ""
    signals: frozenset[str] = frozenset()
    trace: str = ""
    id: str = ""
    attempts: int = 0


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to run `job` until `expires_at`; `token` distinguishes this lease from an older one of the same job."""

    job: Job
    token: str
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class JobOutcome:
    """How a job ended: its counts, and the type of the error if there was one; never content."""

    state: Literal["done", "failed", "dropped"]
    counts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """The current state of a job: when it was added, and its outcome, including the last error if it will be retried.

    `leased_until` is when the lease of a running job expires.
    """

    job: Job
    state: JobState
    created_at: datetime
    changed_at: datetime
    outcome: JobOutcome | None = None
    leased_until: datetime | None = None


class JobQueue(Protocol):
    """The job queue of one root. Calls may raise `StorageBusy`, `StorageFull`, `StorageReadOnly`, `StorageFailed`."""

    async def put(self, job: Job) -> Job:
        """Add `job` durably and return it as it waits in the queue.

        A waiting job with the same key is widened instead: to the older `first`, the newer `last`, the later `after`
        (but not past the sooner `deadline`), and all `signals`. If either of the two is due at once, the result is. A
        waiting job of the same session is also widened if it or `job` names no user; the result has the user who is
        named. A running job is not changed; the new job waits in addition to it.
        """
        ...

    async def begin(self, job: Job, *, seconds: float) -> Lease | None:
        """Add `job` as `put` does and lease it at once, in one durable step, whatever its due time.

        Returns None if a job with its key is running; then the new job waits.
        """
        ...

    async def lease(
        self, *, seconds: float, kinds: Collection[str] | None = None, key: str | None = None
    ) -> Lease | None:
        """Lease the next due job of these `kinds` and this `key` for `seconds`; None if none is due.

        Jobs past their deadline come first, then those of the user whose last turn is longest ago, then the oldest.
        Jobs with the same key never run at the same time.
        """
        ...

    async def renew(self, lease: Lease, *, seconds: float) -> Lease:
        """Extend the lease to `seconds` from now. Raises `LeaseLost`."""
        ...

    async def complete(self, lease: Lease, outcome: JobOutcome) -> None:
        """End the job. Raises `LeaseLost` if the lease is no longer valid."""
        ...

    async def release(self, lease: Lease, *, error: str | None = None, after: datetime | None = None) -> None:
        """Return the job to the queue, due at `after`, with the type of the `error` that stopped it. Raises
        `LeaseLost`.

        With an `error` the attempt counts as failed, and too many failed attempts end the job as failed. Without one
        nothing is counted.
        """
        ...

    async def make_due(self, *, keys: Collection[str] | None = None, kinds: Collection[str] | None = None) -> int:
        """Make waiting jobs of these `keys` and `kinds` due at once, all if None; return how many."""
        ...

    async def withdraw(self, job_id: str) -> bool:
        """Remove a waiting job as if it had never been added; return False if it is running or has ended."""
        ...

    async def jobs(
        self,
        *,
        states: Collection[JobState] | None = None,
        kinds: Collection[str] | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """Return at most `limit` jobs, newest first; all states and kinds if None.

        Jobs that have ended are deleted after some time.
        """
        ...

    async def close(self) -> None:
        """Close the queue; closing it again does nothing."""
        ...


def job_key(job: Job) -> str:
    """Return the key of a job; if it has none, one made from its kind, agent, session and user."""
    return job.key or json.dumps([job.kind, job.agent, job.session, job.user], ensure_ascii=False)


def is_same_work(one: Job, other: Job) -> bool:
    """Return whether two jobs can be merged: their keys are equal, or only one of them names a user.

    The latter applies to jobs of a session with default keys.
    """
    if job_key(one) == job_key(other):
        return True
    if not one.session or (one.user and other.user) or not all(map(_has_default_key, (one, other))):
        return False
    return job_key(replace(one, key="", user="")) == job_key(replace(other, key="", user=""))


def _has_default_key(job: Job) -> bool:
    return job_key(job) == job_key(replace(job, key=""))


def find_unresolved_failures(newest_first: Iterable[JobRecord]) -> list[JobRecord]:
    """Return the failed jobs whose work has not been done since, newest first, one for each key."""
    settled: set[str] = set()
    found = []
    for record in newest_first:
        if record.state == "failed" and record.job.key not in settled:
            found.append(record)
        if record.state in {"done", "failed"}:
            settled.add(record.job.key)
    return found


def widen_job(waiting: Job, job: Job) -> Job:
    """Return `waiting`, which was added before `job`, widened to cover the work of both.

    Message ids have no order of their own, so the order of the requests decides: `first` of the earlier job is older,
    `last` of the later job is newer. None is wider than any id. A named user is kept. A new request restarts the wait,
    but not past the deadline.
    """
    named = waiting if waiting.user else job
    deadline = _earliest(waiting.deadline, job.deadline)
    return replace(
        waiting,
        user=named.user,
        key=job_key(named),
        first_id=None if job.first_id is None else waiting.first_id,
        last_id=None if waiting.last_id is None else job.last_id,
        not_before=_next_due(waiting.not_before, job.not_before, deadline),
        deadline=deadline,
        signals=waiting.signals | job.signals,
        trace=job.trace or waiting.trace,
    )


def _next_due(waiting: datetime | None, asked: datetime | None, deadline: datetime | None) -> datetime | None:
    """Return when a waiting job is due after a new request; the pause after a failure is not shortened."""
    if waiting is None or asked is None:
        return None
    return max(waiting, asked if deadline is None else min(asked, deadline))


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((time for time in (one, other) if time is not None), default=None)
