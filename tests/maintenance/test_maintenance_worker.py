"""The worker: what waits is done, what fails waits again, and nobody is held up or told of it."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hand_clock import HandClock
from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.errors import ModelUnavailable, StorageFull
from ricordo.events import Emitter, Event
from ricordo.extraction import FlushResult, JobWorker
from ricordo.extraction.worker import DrainResult, WorkerPace
from ricordo.jobs import Inbox, Job, Lease
from ricordo.jobs.schedule import FlushSignal, at_most_every, backoff
from ricordo.storage import Connection
from ricordo.workspace.ledger import LedgerBlock

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
LEARNED = FlushResult(
    blocks=(LedgerBlock(path="x.md", offset=0, data=b"-", entries=(Entry(content="x"),)),), messages=3
)


class CountingInbox(Inbox):
    """An inbox that counts how often it was asked, and can be full."""

    asked = renewed = idle = 0
    full = False

    async def lease(self, **given: Any) -> Lease | None:
        self.asked += 1
        if self.full:
            raise StorageFull
        lease = await super().lease(**given)
        self.idle += lease is None
        return lease

    async def renew(self, lease: Lease, *, seconds: float) -> Lease:
        self.renewed += 1
        return await super().renew(lease, seconds=seconds)

    async def begin(self, job: Job, *, seconds: float) -> Lease | None:
        if self.full:
            raise StorageFull
        return await super().begin(job, seconds=seconds)


@dataclass
class Bench:
    """A worker with an inbox, whose flushes do what `acts` says for their session, by default learn something."""

    inbox: CountingInbox
    clock: HandClock
    events: list[Event] = field(default_factory=list)
    flushed: list[str] = field(default_factory=list)
    acts: dict[str, Any] = field(default_factory=dict)
    consolidated: int = 0
    maintained: list[datetime] = field(default_factory=list)

    async def flush(self, job: Job) -> FlushResult:
        if job.session in self.acts:
            await self.acts[job.session]()
        self.flushed.append(job.session)
        return LEARNED

    async def consolidate(self) -> Mapping[str, int]:
        self.consolidated += 1
        return {"entries": 4}

    async def maintain(self) -> Mapping[str, int]:
        self.maintained.append(self.clock.now())
        return {"steps": 4}

    def worker(
        self,
        *,
        pace: WorkerPace | None = None,
        consolidating: bool = False,
        maintaining: bool = False,
        interval: timedelta = timedelta(hours=6),
        tidy: Callable[[], Awaitable[object]] | None = None,
        workers: int = 1,
    ) -> JobWorker:
        return JobWorker(
            self.inbox,
            flush=self.flush,
            consolidate=self.consolidate if consolidating else None,
            maintain=self.maintain if maintaining else None,
            interval=interval,
            tidy=tidy,
            emitter=Emitter(self.clock, (self.events.append,)),
            clock=self.clock,
            pace=pace or WorkerPace(patience=0.05),
            workers=workers,
        )

    async def put(self, *sessions: str) -> None:
        for session in sessions:
            await self.inbox.put(Job(kind="flush", session=session))

    async def states(self) -> dict[str, str]:
        return {record.job.session: record.state for record in await self.inbox.jobs()}

    def outcomes(self) -> list[tuple[str, str | None]]:
        return [(event.status, event.error) for event in self.events if event.status != "started"]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = HandClock()
    made = Bench(CountingInbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock)), clock)
    yield made
    await made.inbox.close()


async def unavailable() -> None:
    raise ModelUnavailable


async def broken() -> None:
    raise ZeroDivisionError


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for has no event
        await anyio.sleep(0.001)


async def forever() -> None:
    await anyio.sleep(math.inf)


@pytest.mark.req("AS-BUG-14", "DF-C21")
async def test_draining_does_what_is_due_and_tells_how_many(bench: Bench) -> None:
    await bench.put("a", "b")
    await bench.inbox.put(Job(kind="flush", session="later", not_before=NOW + timedelta(seconds=30)))
    assert await bench.worker().drain(seconds=30) == DrainResult(done=2, left=1)
    assert bench.flushed == ["a", "b"]
    [first, *_] = await bench.inbox.jobs(states={"done"})
    assert first.outcome is not None
    assert first.outcome.counts == {"messages": 3, "entries": 1}
    assert bench.outcomes() == [("finished", None)] * 2
    assert await bench.worker().drain(seconds=30) == DrainResult(left=1)


@pytest.mark.req("DF-B1")
async def test_a_job_that_fails_waits_with_its_error_and_holds_up_no_other(bench: Bench) -> None:
    bench.acts = {"a": unavailable, "b": broken}
    await bench.put("a", "b", "c")
    assert await bench.worker().drain(seconds=30) == DrainResult(done=1, failed=2, left=2)
    errors = {r.job.session: r.outcome.error for r in await bench.inbox.jobs(states={"waiting"}) if r.outcome}
    assert errors == {"a": "ModelUnavailable", "b": "ZeroDivisionError"}
    assert bench.outcomes() == [("failed", "ModelUnavailable"), ("failed", "ZeroDivisionError"), ("finished", None)]
    assert {event.stage for event in bench.events} == {"drain"}
    bench.acts = {}
    assert (await bench.worker().drain(seconds=30)).done == 0
    bench.clock.turn(seconds=30)
    assert (await bench.worker().drain(seconds=30)).done == 2


@pytest.mark.req("DF-B1")
async def test_a_job_that_goes_on_failing_ends_as_failed(bench: Bench) -> None:
    bench.acts = {"a": unavailable}
    await bench.put("a")
    for pause in (30, 60, 120, 240):
        assert (await bench.worker().drain(seconds=30)).failed == 1
        bench.clock.turn(seconds=pause - 1)
        assert await bench.worker().drain(seconds=30) == DrainResult(left=1), "each pause is twice the last"
        bench.clock.turn(seconds=1)
    assert (await bench.worker().drain(seconds=30)).failed == 1
    assert await bench.states() == {"a": "failed"}
    assert await bench.worker().drain(seconds=30) == DrainResult()


@pytest.mark.req("AS-BUG-14", "DF-C21")
async def test_what_does_not_end_in_time_goes_back_at_once(bench: Bench) -> None:
    bench.acts = {"a": forever}
    await bench.put("a", "b")
    assert await bench.worker().drain(seconds=0.05) == DrainResult(left=2)
    assert await bench.states() == {"a": "waiting", "b": "waiting"}
    bench.acts = {}
    assert (await bench.worker().drain(seconds=30)).done == 2


async def test_as_many_jobs_are_done_at_a_time_as_there_are_workers(bench: Bench) -> None:
    at_work, most, enough = 0, 0, anyio.Event()

    async def busy() -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        if most == 3:
            enough.set()
        await enough.wait()
        at_work -= 1

    names = [f"s{number}" for number in range(7)]
    bench.acts.update(dict.fromkeys(names, busy))
    await bench.put(*names)
    assert await bench.worker(workers=3).drain(seconds=30) == DrainResult(done=7)
    assert most == 3
    assert sorted(bench.flushed) == names


@pytest.mark.req("AS-BUG-14", "DF-C18")
async def test_a_job_that_hangs_holds_up_no_other_worker_that_is_woken_for_new_work(bench: Bench) -> None:
    bench.acts["hangs"] = forever
    await bench.put("hangs")
    worker = bench.worker(workers=2)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.serve)
        await bench.put("new")
        worker.wake()
        await until(lambda: bench.flushed == ["new"])
        # what was done is settled a moment later
        while (await bench.states())["new"] == "running":  # noqa: ASYNC110 - nobody is told of it
            await anyio.sleep(0.002)
        group.cancel_scope.cancel()
    assert await bench.states() == {"hangs": "waiting", "new": "done"}


@pytest.mark.req("AS-BUG-14", "DF-C18", "DF-C21")
async def test_what_was_asked_for_here_does_not_wait_for_a_pause_when_the_worker_ends(bench: Bench) -> None:
    later = bench.clock.now() + timedelta(seconds=30)
    worker = bench.worker()
    async with worker.lifespan(closing_seconds=30):
        worker.track(await bench.inbox.put(Job(kind="flush", session="ours", not_before=later)))
        await bench.inbox.put(Job(kind="flush", session="theirs", not_before=later))
    assert await bench.states() == {"ours": "done", "theirs": "waiting"}


@pytest.mark.req("AS-BUG-14", "DF-C21")
async def test_a_cancelled_drain_gives_its_job_back(bench: Bench) -> None:
    began = anyio.Event()

    async def begin() -> None:
        began.set()
        await forever()

    bench.acts = {"a": begin}
    await bench.put("a")

    async def drain() -> None:
        await bench.worker().drain(seconds=30)
        raise AssertionError("the cancellation was swallowed")

    async with anyio.create_task_group() as group:
        group.start_soon(drain)
        await began.wait()
        group.cancel_scope.cancel()
    [record] = await bench.inbox.jobs()
    assert (record.state, record.outcome) == ("waiting", None)


@pytest.mark.req("AS-CHAIN-03")
@pytest.mark.parametrize("at_once", [False, True], ids=["drain", "at once"])
async def test_a_cancellation_while_a_job_is_taken_leaves_no_lease_behind(tmp_path: Path, at_once: bool) -> None:
    scope, loop = anyio.CancelScope(), anyio.lowlevel.current_token()
    taking = False

    def commit(connection: Connection) -> None:
        connection.execute("COMMIT")
        if taking:
            anyio.from_thread.run_sync(scope.cancel, token=loop)

    clock = HandClock()
    inbox = CountingInbox(tmp_path / "queue.db", clock=clock, ids=MonotonicIds(clock), commit=commit)
    bench = Bench(inbox, clock, acts={"a": forever})
    await bench.put("a")
    worker, taking = bench.worker(), True
    with scope:
        await (worker.run_now(Job(kind="flush", session="a")) if at_once else worker.drain(seconds=30))
    taking = False
    assert scope.cancelled_caught
    [record] = await inbox.jobs()
    assert (record.state, record.outcome) == ("waiting", None)
    await inbox.close()


@pytest.mark.req("DF-B24")
async def test_a_lease_is_renewed_as_long_as_the_work_goes_on(bench: Bench) -> None:
    async def until_renewed_twice() -> None:
        await until(lambda: bench.inbox.renewed >= 2)

    bench.acts = {"a": until_renewed_twice}
    await bench.put("a")
    assert (await bench.worker(pace=WorkerPace(lease=0.03)).drain(seconds=60)).done == 1


@pytest.mark.req("DF-B1")
async def test_jobs_of_a_kind_that_nobody_here_can_do_are_left(bench: Bench) -> None:
    await bench.put("a")
    await bench.inbox.put(Job(kind="consolidate"))
    await bench.inbox.put(Job(kind="newer"))
    assert (await bench.worker().drain(seconds=30, kinds={"consolidate"})).done == 0
    assert (await bench.worker(consolidating=True).drain(seconds=30, kinds={"consolidate"})).done == 1
    assert bench.flushed == []
    assert bench.consolidated == 1


async def test_trouble_of_the_inbox_is_reported_and_not_raised(bench: Bench) -> None:
    await bench.put("a")
    bench.inbox.full = True
    assert await bench.worker().drain(seconds=30) == DrainResult(left=1)
    assert bench.outcomes() == [("failed", "StorageFull")]


@pytest.mark.req("AS-TRIG-04", "CC-GATES")
async def test_ten_flushes_within_half_an_hour_ask_for_no_consolidation_and_the_one_after_it_for_one(
    bench: Bench,
) -> None:
    worker = bench.worker(consolidating=True)
    for number in range(10):
        await bench.put(f"s{number}")
        await worker.drain(seconds=30)
        bench.clock.turn(minutes=2, seconds=59)
    assert bench.consolidated == 0
    for number in range(10, 20):
        bench.clock.turn(seconds=11)
        await bench.put(f"s{number}")
        await worker.drain(seconds=30)
    assert bench.consolidated == 1


@pytest.mark.req("AS-CONS-06")
async def test_what_was_learned_is_consolidated_when_the_worker_ends(bench: Bench) -> None:
    async with bench.worker(consolidating=True).lifespan(closing_seconds=30):
        await bench.put("s1")
    assert bench.consolidated == 1
    async with bench.worker(consolidating=True).lifespan(closing_seconds=30):
        pass
    assert bench.consolidated == 1


@pytest.mark.req("AS-MAINT-01", "AS-BUG-14")
async def test_tidying_comes_last_and_neither_its_failure_nor_its_hanging_holds_up_the_end(bench: Bench) -> None:
    seen: list[list[str]] = []

    async def tidy() -> None:
        seen.append([*bench.flushed])

    async def fail() -> None:
        raise StorageFull

    async with bench.worker(tidy=tidy).lifespan(closing_seconds=30):
        await bench.put("a", "b")
    assert [sorted(flushed) for flushed in seen] == [["a", "b"]]
    async with bench.worker(tidy=fail).lifespan(closing_seconds=30):
        pass
    assert bench.outcomes()[-1] == ("failed", "StorageFull")
    async with bench.worker(tidy=anyio.sleep_forever).lifespan(closing_seconds=0.01):
        pass


@pytest.mark.req("AS-MAINT-01", "AS-CONS-06", "AS-BUG-14", "DF-C18")
async def test_serving_does_what_comes_when_it_is_woken_and_when_it_is_due(bench: Bench) -> None:
    pace = WorkerPace(shortest_pause=0.01, longest_pause=math.inf)
    worker = bench.worker(pace=pace)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.serve)
        await bench.inbox.put(Job(kind="flush", session="a", not_before=NOW + timedelta(milliseconds=50)))
        worker.wake()
        await until(lambda: bench.inbox.asked >= 2)
        bench.clock.turn(seconds=1)
        await until(lambda: bench.flushed == ["a"])
        await bench.put("b")
        worker.wake()
        await until(lambda: bench.flushed == ["a", "b"])
        group.cancel_scope.cancel()


async def serve_for(worker: JobWorker, bench: Bench, hours: int) -> None:
    """Let the worker look once an hour."""

    async def looked() -> None:
        idle = bench.inbox.idle
        worker.wake()
        await until(lambda: bench.inbox.idle > idle)

    async with anyio.create_task_group() as group:
        group.start_soon(worker.serve)
        await looked()
        for _ in range(hours):
            bench.clock.turn(hours=1)
            await looked()
        group.cancel_scope.cancel()


@pytest.mark.req("AS-TRIG-03", "AS-MAINT-01", "AS-CONS-06", "CC-GATES")
async def test_a_full_cycle_runs_every_six_hours_whoever_is_alive(bench: Bench) -> None:
    await bench.put("first")
    begun = bench.clock.now()
    await serve_for(bench.worker(maintaining=True), bench, hours=7)
    await serve_for(bench.worker(maintaining=True), bench, hours=18)
    assert [(when - begun).total_seconds() / 3600 for when in bench.maintained] == [6, 12, 18, 24]


@pytest.mark.req("AS-TRIG-03", "AS-CONS-06", "CC-GATES")
async def test_an_interval_of_ones_own_counts_from_the_last_cycle_and_a_clock_set_back_does_not_stop_it(
    bench: Bench,
) -> None:
    worker = bench.worker(maintaining=True, interval=timedelta(hours=2))
    await bench.put("first")
    await serve_for(worker, bench, hours=2)
    assert len(bench.maintained) == 1
    bench.clock.turn(days=-30)
    await serve_for(bench.worker(maintaining=True, interval=timedelta(hours=2)), bench, hours=2)
    assert len(bench.maintained) == 2


@pytest.mark.req("AS-MAINT-01", "AS-TRIG-03")
async def test_where_nothing_was_ever_asked_for_no_cycle_runs_and_no_inbox_is_made(
    bench: Bench, tmp_path: Path
) -> None:
    await serve_for(bench.worker(maintaining=True), bench, hours=8)
    assert bench.maintained == []
    assert not (tmp_path / "queue.db").exists()


async def test_serving_sleeps_while_what_waits_cannot_be_done(bench: Bench) -> None:
    await bench.put("a")
    assert await bench.inbox.lease(seconds=60) is not None
    await bench.put("a")
    before = bench.inbox.asked
    with anyio.move_on_after(0.3):
        await bench.worker().serve()
    assert bench.inbox.asked - before <= 2


@pytest.mark.req("AS-FLUSH-03", "AS-TRIG-04")
async def test_work_done_at_once_is_in_the_inbox_while_it_is_done_and_asks_for_a_consolidation(bench: Bench) -> None:
    seen: list[dict[str, str]] = []

    async def look() -> None:
        seen.append(await bench.states())

    bench.acts = {"a": look}
    worker = bench.worker(consolidating=True)
    bench.clock.turn(minutes=30)
    assert await worker.run_now(Job(kind="flush", session="a")) == LEARNED
    assert seen == [{"a": "running"}]
    assert (await bench.states())["a"] == "done"
    assert (await worker.drain(seconds=30)).done == 1
    assert bench.consolidated == 1


@pytest.mark.req("DF-C18", "DF-B1")
async def test_work_done_at_once_that_fails_is_raised_and_waits(bench: Bench) -> None:
    bench.acts = {"a": unavailable}
    with pytest.raises(ModelUnavailable):
        await bench.worker().run_now(Job(kind="flush", session="a"))
    assert await bench.states() == {"a": "waiting"}
    assert await bench.worker().drain(seconds=30) == DrainResult(left=1), "not before its pause"
    bench.acts = {}
    bench.clock.turn(seconds=30)
    assert (await bench.worker().drain(seconds=30)).done == 1


@pytest.mark.req("AS-BUG-14")
async def test_without_a_usable_inbox_work_is_done_all_the_same(bench: Bench) -> None:
    bench.inbox.full = True
    assert await bench.worker().run_now(Job(kind="flush", session="a")) == LEARNED
    assert bench.outcomes() == [("failed", "StorageFull")]


async def test_who_finds_the_session_taken_waits_for_its_turn_though_not_for_long(bench: Bench) -> None:
    worker = bench.worker(pace=WorkerPace(patience=60))
    other = await bench.inbox.begin(Job(kind="flush", session="a"), seconds=60)
    assert other is not None

    async def end_later() -> None:
        await anyio.sleep(0.05)
        assert bench.flushed == []
        await bench.inbox.release(other)

    async with anyio.create_task_group() as group:
        group.start_soon(end_later)
        await worker.run_now(Job(kind="flush", session="a"))
    assert bench.flushed == ["a"]
    assert await bench.states() == {"a": "done"}
    await bench.inbox.begin(Job(kind="flush", session="a"), seconds=60)
    await bench.worker().run_now(Job(kind="flush", session="a"))
    assert bench.flushed == ["a", "a"]


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3)])
async def test_an_error_of_the_block_comes_out_as_it_was_raised(bench: Bench, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        async with bench.worker().lifespan(closing_seconds=1):
            raise error
    assert raised.value is error


@pytest.mark.req("AS-BUG-14")
async def test_what_waits_is_worked_off_while_the_block_runs_and_after_it(bench: Bench) -> None:
    await bench.put("a")
    async with bench.worker().lifespan(closing_seconds=30):
        await until(lambda: bench.flushed == ["a"])
        await bench.put("b")
    assert bench.flushed == ["a", "b"]


async def test_a_cancelled_block_is_not_followed_by_work(bench: Bench) -> None:
    with anyio.CancelScope() as scope:
        async with bench.worker().lifespan(closing_seconds=30):
            await bench.put("a")
            scope.cancel()
            await anyio.sleep(math.inf)
    assert scope.cancelled_caught
    assert await bench.states() == {"a": "waiting"}


@pytest.mark.req("DF-B1")
@given(st.integers(1, 10_000))
def test_the_pause_after_a_failure_grows_to_an_hour(attempts: int) -> None:
    assert timedelta(seconds=30) <= backoff(attempts) <= backoff(attempts + 1) <= timedelta(hours=1)
    assert backoff(1) == timedelta(seconds=30)
    assert backoff(100) == timedelta(hours=1)


@pytest.mark.req("AS-TRIG-04", "AS-CONS-06", "CC-GATES")
@given(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3600)))
def test_a_signal_counts_when_something_was_written_and_the_last_is_long_enough_ago(
    entries: int, since: int | None
) -> None:
    last = None if since is None else NOW - timedelta(seconds=since)
    for minutes in (30, 90):
        due = at_most_every(timedelta(minutes=minutes))(FlushSignal(now=NOW, last=last, entries=entries))
        assert due == (entries > 0 and (since is None or since >= 60 * minutes))
