"""How jobs of one key become one: pure decisions about what waits."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from ricordo.queue.contract import Job, JobRecord

__all__ = ["is_same_work", "job_key", "find_unresolved_failures", "widen_job"]


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
