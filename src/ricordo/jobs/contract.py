"""JobQueue: where work waits that must not hold up a turn. Jobs name messages and never hold content.

A job is durable when `put` returns. It is done under a lease: when the worker dies, the lease runs out and somebody
else takes the job. One job waits for each key; asking again for work that waits widens it.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from ricordo.errors import InvalidSetting

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
    """When work that was asked for is done; the defaults are DeerFlow's debounce with a bound that it lacks.

    What a turn said waits until nothing was said in its session for `debounce_seconds`, and never longer than
    `max_wait_seconds` after it was first asked for; 0 is at once, one extraction for each turn. `workers` is how many
    jobs one process does at a time, at least 1.
    """

    debounce_seconds: float = 30.0
    max_wait_seconds: float = 120.0
    workers: int = 2

    def __post_init__(self) -> None:
        """Raise InvalidSetting for a time below 0, a bound below the pause, and no worker."""
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
        """Return from when on, and by when, what is asked for `now` is to be done; None for both is at once."""
        if not self.debounce_seconds:
            return None, None
        return now + timedelta(seconds=self.debounce_seconds), now + timedelta(seconds=self.max_wait_seconds)


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


def job_key(job: Job) -> str:
    """Return the key of a job, made of its kind, agent, session and user when it has none."""
    return job.key or json.dumps([job.kind, job.agent, job.session, job.user], ensure_ascii=False)


def is_same_work(one: Job, other: Job) -> bool:
    """Tell whether one of two jobs is enough: their key is the same, or one names the user and the other nobody.

    The latter holds for jobs about a session, whose keys were made here.
    """
    if job_key(one) == job_key(other):
        return True
    if not one.session or (one.user and other.user) or not all(map(_has_default_key, (one, other))):
        return False
    return job_key(replace(one, key="", user="")) == job_key(replace(other, key="", user=""))


def _has_default_key(job: Job) -> bool:
    return job_key(job) == job_key(replace(job, key=""))


def find_unresolved_failures(newest_first: Iterable[JobRecord]) -> list[JobRecord]:
    """Return the jobs that failed for good and whose work was not done since, newest first, one for each key."""
    settled: set[str] = set()
    found = []
    for record in newest_first:
        if record.state == "failed" and record.job.key not in settled:
            found.append(record)
        if record.state in {"done", "failed"}:
            settled.add(record.job.key)
    return found


def widen_job(waiting: Job, job: Job) -> Job:
    """Return `waiting`, which came before `job`, so that it does the work of both.

    Ids of messages have no order that can be told from them, so the order of asking stands for it: the first one's
    `first` is the older, the second one's `last` the newer. None is wider than any id. A named user stays named.
    Asking again makes it wait anew, but not past the deadline.
    """
    named = waiting if waiting.user else job
    deadline = _earliest(waiting.deadline, job.deadline)
    return replace(
        waiting,
        user=named.user,
        key=job_key(named),
        first=None if job.first is None else waiting.first,
        last=None if waiting.last is None else job.last,
        after=_next_due(waiting.after, job.after, deadline),
        deadline=deadline,
        signals=waiting.signals | job.signals,
        trace=job.trace or waiting.trace,
    )


def _next_due(waiting: datetime | None, asked: datetime | None, deadline: datetime | None) -> datetime | None:
    """Return from when on a job is due that waits, and was asked for again; a pause after a failure is not cut."""
    if waiting is None or asked is None:
        return None
    return max(waiting, asked if deadline is None else min(asked, deadline))


def _earliest(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((time for time in (one, other) if time is not None), default=None)
