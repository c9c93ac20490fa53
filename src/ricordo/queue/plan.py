"""How jobs of one key become one: pure decisions about what waits."""

import json
from dataclasses import replace
from datetime import datetime

from ricordo.queue.contract import Job

__all__ = ["key_of", "widened"]


def key_of(job: Job) -> str:
    """Return the key of a job, made of its kind, agent, session and user when it has none."""
    return job.key or json.dumps([job.kind, job.agent, job.session, job.user], ensure_ascii=False)


def widened(waiting: Job, job: Job) -> Job:
    """Return `waiting`, which came before `job`, so that it does the work of both.

    Ids of messages have no order that can be told from them, so the order of asking stands for it: the first one's
    `first` is the older, the second one's `last` the newer. None is wider than any id.
    """
    return replace(
        waiting,
        first=None if job.first is None else waiting.first,
        last=None if waiting.last is None else job.last,
        after=None if waiting.after is None or job.after is None else min(waiting.after, job.after),
        deadline=_sooner(waiting.deadline, job.deadline),
    )


def _sooner(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((time for time in (one, other) if time is not None), default=None)
