"""The inbox does what a list of jobs in plain Python does, whatever it is asked to do in whatever order."""

import tempfile
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.clock import MonotonicIds
from ricordo.errors import LeaseLost
from ricordo.jobs import Inbox, Job, JobOutcome
from ricordo.jobs.job_table import InboxLimits

LEASE = 10


class Turned:
    def __init__(self) -> None:
        self.time = datetime.fromisoformat("2026-11-21T08:00:00+00:00")

    def now(self) -> datetime:
        return self.time

    def today(self) -> Any:
        return self.time.date()


@dataclass
class Asked:
    """One job of the model; `order` is that of asking."""

    order: int
    session: str
    asked: list[int]
    after: datetime | None
    state: str = "waiting"
    until: datetime | None = None
    failures: int = 0


@dataclass
class Model:
    """What the inbox promises, in the simplest way."""

    now: datetime
    jobs: list[Asked] = field(default_factory=list)
    orders: int = 0

    def one(self, session: str, state: str) -> Asked | None:
        return next((job for job in self.jobs if job.session == session and job.state == state), None)

    def put(self, session: str, number: int, after: datetime | None) -> Asked:
        job = self.one(session, "waiting")
        if job is None:
            self.orders += 1
            job = Asked(self.orders, session, [], after)
            self.jobs.append(job)
        job.asked.append(number)
        job.after = None if after is None or job.after is None else max(after, job.after)
        return job

    def back(self, job: Asked, *, failed: bool, after: datetime | None) -> None:
        job.until, job.failures = None, job.failures + failed
        if job.failures >= 3:
            job.state = "failed"
            return
        beside = self.one(job.session, "waiting")
        if beside:
            self.jobs.remove(beside)
            job.asked += beside.asked
        job.state, job.after = "waiting", after

    def expire(self) -> None:
        for job in sorted(self.jobs, key=lambda job: job.order):
            if job.state == "running" and job.until is not None and job.until <= self.now:
                self.back(job, failed=True, after=None)

    def lease(self) -> Asked | None:
        self.expire()
        for job in sorted(self.jobs, key=lambda job: job.order):
            due = job.after is None or job.after <= self.now
            if job.state == "waiting" and due and self.one(job.session, "running") is None:
                job.state, job.until = "running", self.now + timedelta(seconds=LEASE)
                return job
        return None

    def shown(self) -> list[tuple[str, str, str, str, datetime | None]]:
        newest_first = sorted(self.jobs, key=lambda job: -job.order)
        return [(job.session, job.state, str(job.asked[0]), str(job.asked[-1]), job.after) for job in newest_first]


ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put", "put", "later", "lease", "lease", "begin", "renew", "settle", "release", "fail", "turn"]
        ),
        st.sampled_from(["a", "b"]),
        st.integers(1, 12),
    ),
    max_size=40,
)


@pytest.mark.req("DF-B2", "DF-C16", "DF-C18", "DF-B1")
@given(ACTS)
def test_the_inbox_does_what_a_simple_list_does(acts: list[tuple[str, str, int]]) -> None:
    anyio.run(_compared, acts)


async def _compared(acts: list[tuple[str, str, int]]) -> None:
    clock = Turned()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queue.db"
        inbox = Inbox(path, clock=clock, ids=MonotonicIds(clock), limits=InboxLimits(max_failures=3))
        try:
            await _played(inbox, clock, acts)
        finally:
            await inbox.close()


async def _played(inbox: Inbox, clock: Turned, acts: list[tuple[str, str, int]]) -> None:
    model = Model(clock.time)
    held: deque[tuple[Any, Asked]] = deque()
    for number, (act, session, seconds) in enumerate(acts):
        asked = Job(kind="flush", session=session, first_id=str(number), last_id=str(number))
        later = clock.time + timedelta(seconds=seconds)
        if act == "turn":
            clock.time += timedelta(seconds=seconds)
            model.now = clock.time
        elif act in {"put", "later"}:
            after = later if act == "later" else None
            model.put(session, number, after)
            await inbox.put(replace(asked, not_before=after))
        elif act == "begin":
            model.expire()
            job = model.put(session, number, None)
            lease = await inbox.begin(asked, seconds=LEASE)
            assert (lease is None) == (model.one(session, "running") is not None)
            if lease is not None:
                job.state, job.until = "running", clock.time + timedelta(seconds=LEASE)
                held.append((lease, job))
        elif act == "lease":
            expected, lease = model.lease(), await inbox.lease(seconds=LEASE)
            assert (lease.job.session if lease else None) == (expected.session if expected else None)
            if lease is not None and expected is not None:
                held.append((lease, expected))
        elif held:
            await _end(inbox, model, act, *held.popleft(), later)
        assert [
            (record.job.session, record.state, record.job.first_id, record.job.last_id, record.job.not_before)
            for record in await inbox.jobs()
        ] == model.shown()


async def _end(inbox: Inbox, model: Model, act: str, lease: Any, job: Asked, later: datetime) -> None:
    lost = job.until != lease.expires_at or job.state != "running"
    try:
        if act == "settle":
            await inbox.complete(lease, JobOutcome(state="done"))
        elif act == "renew":
            await inbox.renew(lease, seconds=LEASE)
        else:
            await inbox.release(lease, error="Broken" if act == "fail" else None, after=later)
    except LeaseLost:
        assert lost
        return
    assert not lost, "a lost lease was still good"
    if act == "settle":
        job.state, job.until = "done", None
    elif act == "renew":
        job.until = model.now + timedelta(seconds=LEASE)
    else:
        model.back(job, failed=act == "fail", after=later)
