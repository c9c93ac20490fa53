"""The runner: a record before the work, every end in the record, and nothing left behind when its block ends."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn

import anyio
import anyio.lowlevel
import pytest

from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.errors import InvalidQuery, MemoryClosed, StorageFull, TaskNotFound, ToolFailed
from ricordo.events import Emitter, Event
from ricordo.jobs import MemoryTaskStore, ReportProgress, Task, TaskPace, TaskProgress, TaskRunner, TaskState
from ricordo.jobs.tasks import TaskWork
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio

QUICK = TaskPace(heartbeat=30.0, poll=0.002, orphan=600.0)
SCOPE = Scope(user="me", project="shop")


class Troubled(MemoryTaskStore):
    """A store in memory that fails while `full`, and counts what is looked at, and what of it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.writes = 0
        self.looks = 0

    async def get(self, task_id: str) -> Task:
        self.looks += 1
        return await super().get(task_id)

    async def looked(self) -> None:
        """Wait until somebody has begun and ended a look after this call."""
        wanted = self.looks + 2
        await until(lambda: self.looks >= wanted)

    async def add(self, task: Task) -> None:
        self._check()
        await super().add(task)

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        self._check()
        return await super().update(task_id, change)

    def _check(self) -> None:
        self.looks += 1
        if self.full:
            raise StorageFull
        self.writes += 1


class Desk:
    """A runner with what it works with."""

    def __init__(self, store: MemoryTaskStore | None = None, *, most: int = 8) -> None:
        self.clock = HandClock()
        self.store = store or MemoryTaskStore()
        self.events: list[Event] = []
        self.runner = self.another(most=most)

    def another(self, *, most: int = 8) -> TaskRunner:
        return TaskRunner(
            self.store,
            agent="main",
            session="s1",
            user="me",
            clock=self.clock,
            ids=MonotonicIds(self.clock),
            emitter=Emitter(self.clock, (self.events.append,)),
            scope=SCOPE,
            pace=QUICK,
            most=most,
        )

    def told(self) -> list[tuple[str, str | None, str | None]]:
        return [(event.status, event.reason, event.error) for event in self.events if event.stage == "task"]

    async def became(self, task_id: str, state: TaskState) -> Task:
        with anyio.fail_after(10):
            while True:
                task = await self.store.get(task_id)
                if task.state == state:
                    return task
                await anyio.sleep(0.001)


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await anyio.sleep(0.001)


async def built(_: ReportProgress) -> str:
    return "Built."


async def forever(_: ReportProgress) -> str:
    await anyio.sleep_forever()
    return "Never."


def raising(error: Exception) -> TaskWork:
    async def work(_: ReportProgress) -> NoReturn:
        raise error

    return work


@pytest.mark.req("AS-STATE-04")
async def test_a_work_is_recorded_before_it_begins_and_its_result_after() -> None:
    desk = Desk()
    states: list[str] = []

    async def work(_: ReportProgress) -> str:
        states.extend(task.state for task in await desk.store.all())
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build it", work, worker="shell")
        assert (task.state, desk.runner.running_count) == ("running", 1)
        await desk.runner.wait()
        done = await desk.runner.get(task.id)
    assert states == ["running"]
    assert (task.title, task.worker, task.agent, task.session, task.user) == ("Build it", "shell", "main", "s1", "me")
    assert done == replace(task, state="completed", result="Built.", ended_at=desk.clock.now())
    assert desk.runner.running_count == 0
    assert desk.told() == [("started", None, None), ("finished", "local_bash", None)]
    assert {event.scope for event in desk.events} == {SCOPE}


@pytest.mark.req("AS-STATE-04")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ToolFailed("There is no compiler."), "There is no compiler."),
        (ValueError("odd"), "ValueError: odd"),
        (KeyError(), "KeyError"),
        (ValueError("x" * 5000), "ValueError: " + "x" * 1988),
        (ExceptionGroup("some", [ExceptionGroup("inner", [ToolFailed("No.")])]), "No."),
    ],
)
async def test_what_a_work_raises_is_its_failure_and_nobody_elses(error: Exception, words: str) -> None:
    desk = Desk()
    async with desk.runner.lifespan():
        other = await desk.runner.start("local_agent", "Other", forever)
        task = await desk.runner.start("local_bash", "Build", raising(error))
        await desk.runner.wait(task.id)
        assert (await desk.runner.get(other.id)).state == "running"
        found = await desk.runner.get(task.id)
    assert (found.state, found.error, found.result) == ("failed", words, "")
    assert ("failed", "local_bash", type(error).__name__) in desk.told()


async def test_a_work_that_takes_too_long_fails() -> None:
    desk = Desk()
    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", forever, seconds=0.01)
        await desk.runner.wait(task.id)
        found = await desk.runner.get(task.id)
    assert (found.state, found.error) == ("failed", "TimeoutError: It did not end within 0.01 seconds.")


async def test_a_work_that_fails_because_its_time_is_over_took_too_long() -> None:
    desk = Desk()

    async def work(report: ReportProgress) -> str:
        try:
            return await forever(report)
        except BaseException as error:
            raise ToolFailed("It was ended.") from error

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work, seconds=0.01)
        await desk.runner.wait(task.id)
        found = await desk.runner.get(task.id)
    words = "TimeoutError: It did not end within 0.01 seconds. Then it failed: It was ended."
    assert (found.state, found.error) == ("failed", words)


async def test_the_last_progress_is_in_the_record_of_the_end() -> None:
    desk = Desk()

    async def work(report: ReportProgress) -> str:
        report(TaskProgress(done=3, total=3, text="all built"))
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        await desk.runner.wait()
        assert (await desk.runner.get(task.id)).progress == TaskProgress(done=3, total=3, text="all built")


async def test_a_progress_that_is_none_fails_the_work_and_not_its_record() -> None:
    desk = Desk()

    async def work(report: ReportProgress) -> str:
        report(TaskProgress(done="some"))  # type: ignore[arg-type]
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        await desk.runner.wait()
        found = await desk.runner.get(task.id)
    assert (found.state, found.error.partition(":")[0]) == ("failed", "ValueError")


async def test_a_store_that_hangs_does_not_hold_up_the_end_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(MemoryTaskStore):
        async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
            await anyio.sleep_forever()
            return await super().update(task_id, change)

    monkeypatch.setattr("ricordo.jobs.tasks.runner._END_SECONDS", 0.005)
    desk = Desk(Hanging())
    with anyio.fail_after(10):
        async with desk.runner.lifespan():
            await desk.runner.start("local_bash", "Build", forever)
    assert ("failed", "record", "StorageBusy") in desk.told()


def test_a_runner_can_be_made_before_there_is_a_loop() -> None:
    desk = Desk(most=1)

    async def lived() -> list[str]:
        async with desk.runner.lifespan():
            for _ in range(2):
                await desk.runner.start("local_bash", "Build", built)
            await desk.runner.wait()
            return [task.state for task in await desk.runner.tasks()]

    assert anyio.run(lived) == ["completed", "completed"]


@pytest.mark.req("AS-TASK-01")
async def test_what_the_end_of_the_session_cuts_is_recorded_as_cancelled() -> None:
    desk = Desk(most=1)
    async with desk.runner.lifespan():
        running = await desk.runner.start("local_bash", "Build", forever)
        pending = await desk.runner.start("local_bash", "Build again", forever)
        assert (running.state, pending.state) == ("running", "pending")
    found = await desk.store.all()
    assert [(task.state, task.error) for task in found] == [("cancelled", "the session ended before it did")] * 2
    assert desk.runner.running_count == 0
    assert desk.told()[-1][:2] == ("failed", "cancelled")
    with pytest.raises(MemoryClosed):
        await desk.runner.start("local_bash", "Build", built)
    assert len(await desk.store.all()) == 2


async def test_an_error_of_the_block_comes_out_as_it_was_raised() -> None:
    desk = Desk()

    async def fails() -> None:
        async with desk.runner.lifespan():
            await desk.runner.start("local_bash", "Build", forever)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fails()
    assert [task.state for task in await desk.store.all()] == ["cancelled"]


async def test_a_cancelled_session_records_what_it_cuts() -> None:
    desk = Desk()
    with anyio.CancelScope() as session:
        async with desk.runner.lifespan():
            await desk.runner.start("local_bash", "Build", forever)
            session.cancel()
            await anyio.sleep_forever()
    assert [task.state for task in await desk.store.all()] == ["cancelled"]


# trio runs what was begun together in an order of chance
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_more_than_may_run_at_once_wait_and_begin_in_their_order() -> None:
    desk = Desk(most=2)
    begun: list[int] = []
    gates = [anyio.Event() for _ in range(4)]

    def numbered(number: int) -> TaskWork:
        async def work(_: ReportProgress) -> str:
            begun.append(number)
            await gates[number].wait()
            return str(number)

        return work

    async with desk.runner.lifespan():
        tasks = [await desk.runner.start("local_bash", "Build", numbered(number)) for number in range(4)]
        assert [task.state for task in tasks] == ["running", "running", "pending", "pending"]
        await until(lambda: len(begun) == 2)
        await anyio.wait_all_tasks_blocked()
        assert sorted(begun) == [0, 1]
        gates[1].set()
        await until(lambda: len(begun) == 3)
        assert [task.state for task in await desk.runner.tasks()] == ["running", "completed", "running", "pending"]
        assert begun[2:] == [2]
        for gate in gates:
            gate.set()
        await desk.runner.wait()
        assert [task.result for task in await desk.runner.tasks()] == ["0", "1", "2", "3"]


async def test_one_that_waits_can_be_cancelled_and_never_begins() -> None:
    desk = Desk(most=1)
    begun: list[str] = []

    async def work(_: ReportProgress) -> str:
        begun.append("begun")
        return ""

    async with desk.runner.lifespan():
        first = await desk.runner.start("local_bash", "Build", forever)
        second = await desk.runner.start("local_bash", "Build", work)
        assert (await desk.runner.cancel(second.id)).state == "cancelled"
        assert (await desk.runner.cancel(first.id)).state == "cancelled"
        third = await desk.runner.start("local_bash", "Build", work)
        await desk.runner.wait(third.id)
    assert begun == ["begun"]


@pytest.mark.req("AS-TASK-01", "HE-C3-task")
async def test_cancelling_ends_the_work_and_an_ended_task_stays() -> None:
    desk = Desk()
    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", forever)
        cancelled = await desk.runner.cancel(task.id[-8:])
        assert (cancelled.state, cancelled.error) == ("cancelled", "It was cancelled.")
        assert await desk.runner.cancel(task.id) == cancelled
        done = await desk.runner.start("local_bash", "Build", built)
        await desk.runner.wait(done.id)
        assert (await desk.runner.cancel(done.id)).state == "completed"
    assert ("failed", "cancelled", "TaskCancelled") in desk.told()


async def test_a_work_that_fails_on_its_way_out_is_cancelled_all_the_same() -> None:
    desk = Desk()
    began = anyio.Event()

    async def work(_: ReportProgress) -> str:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise ToolFailed("The process could not be ended.")

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        await began.wait()
        found = await desk.runner.cancel(task.id)
    assert (found.state, found.error) == (
        "cancelled",
        "It was cancelled. Then it failed: The process could not be ended.",
    )


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_work_that_cancels_itself_takes_no_other_with_it() -> None:
    desk = Desk()

    async def work(_: ReportProgress) -> str:
        raise anyio.get_cancelled_exc_class()

    async with desk.runner.lifespan():
        other = await desk.runner.start("local_bash", "Build", forever)
        task = await desk.runner.start("local_bash", "Build", work)
        await desk.runner.wait(task.id)
        await anyio.wait_all_tasks_blocked()
        assert (await desk.runner.get(task.id)).state == "cancelled"
        assert (await desk.runner.get(other.id)).state == "running"


async def test_another_process_stops_a_task_through_its_record() -> None:
    desk = Desk()
    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", forever)
        asked = await desk.another().cancel(task.id)
        assert (asked.state, asked.cancelling) == ("running", True)
        found = await desk.became(task.id, "cancelled")
    assert found.error == "It was asked to stop."


@pytest.mark.req("AS-TASK-01")
async def test_a_task_that_nobody_runs_is_cancelled_at_once_and_orphaned_when_looked_at() -> None:
    desk = Desk()
    now = desk.clock.now()
    lost = Task(id="lost-task", type="dream", title="Dream", state="running", created_at=now, last_seen_at=now)
    await desk.store.add(lost)
    await desk.store.add(replace(lost, id="lost-second", state="pending"))
    for number in range(5):
        await desk.store.add(replace(lost, id=f"lost-other-{number}"))
    assert (await desk.runner.cancel("lost-second")).cancelling
    desk.clock.turn(minutes=10)
    assert {task.state for task in await desk.runner.tasks()} == {"orphaned"}
    assert {task.state for task in await desk.store.all()} == {"orphaned"}
    await desk.runner.wait("lost-task")
    assert (await desk.runner.cancel("lost-task")).state == "cancelled"


@pytest.mark.req("AS-TASK-01")
async def test_a_task_that_runs_here_is_never_orphaned_here() -> None:
    desk = Desk()
    slow = replace(QUICK, poll=60.0)
    runner = TaskRunner(
        desk.store,
        agent="main",
        session="s1",
        user="",
        clock=desk.clock,
        ids=MonotonicIds(desk.clock),
        emitter=Emitter(desk.clock),
        pace=slow,
    )
    async with runner.lifespan():
        task = await runner.start("local_bash", "Build", forever)
        desk.clock.turn(hours=2)
        assert [each.state for each in await runner.tasks()] == ["running"]
        assert [each.state for each in await desk.another().tasks()] == ["orphaned"]
        assert (await runner.cancel(task.id)).state == "cancelled"


@pytest.mark.req("AS-TASK-01")
async def test_a_task_that_was_taken_for_an_orphan_still_ends_as_it_does() -> None:
    store = Troubled()
    desk = Desk(store)
    gate = anyio.Event()

    async def work(_: ReportProgress) -> str:
        await gate.wait()
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        await desk.store.update(task.id, lambda found: replace(found, state="orphaned", error="Lost."))
        desk.clock.turn(31)
        await store.looked()
        found = await desk.store.get(task.id)
        assert (found.state, found.last_seen_at) == ("orphaned", desk.clock.now())
        gate.set()
        await desk.runner.wait(task.id)
    done = await desk.store.get(task.id)
    assert (done.state, done.result, done.error) == ("completed", "Built.", "")


@pytest.mark.req("AS-TASK-01", "HE-C3-task")
async def test_signs_of_life_are_written_by_the_heartbeat_and_progress_with_the_next_look() -> None:
    store = Troubled()
    desk = Desk(store)
    gate, reported = anyio.Event(), anyio.Event()

    async def work(report: ReportProgress) -> str:
        report(TaskProgress(done=1, total=3, text="compiling"))
        reported.set()
        await gate.wait()
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        await reported.wait()
        await store.looked()
        assert (await store.get(task.id)).progress == TaskProgress(done=1, total=3, text="compiling")
        writes = store.writes
        desk.clock.turn(29)
        await store.looked()
        assert store.writes == writes
        desk.clock.turn(1)
        await store.looked()
        assert store.writes == writes + 1
        assert (await store.get(task.id)).last_seen_at == desk.clock.now()
        gate.set()
        await desk.runner.wait()


@pytest.mark.req("AS-STATE-04")
async def test_trouble_with_the_record_does_not_end_the_work_and_the_end_is_written_later() -> None:
    store = Troubled()
    desk = Desk(store)
    gate = anyio.Event()

    async def work(report: ReportProgress) -> str:
        report(TaskProgress(done=1))
        await gate.wait()
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        store.full = True
        await store.looked()
        gate.set()
        await desk.runner.wait(task.id)
        await store.looked()
        assert (await store.get(task.id)).state == "running"
        shown = await desk.runner.get(task.id)
        assert (shown.state, shown.result, desk.runner.running_count) == ("completed", "Built.", 0)
        store.full = False
        assert (await desk.became(task.id, "completed")).result == "Built."
    assert desk.told().count(("failed", "record", "StorageFull")) == 1
    assert desk.told()[-1][0] == "finished"


@pytest.mark.req("AS-STATE-04")
async def test_an_end_that_is_written_later_is_not_cut_before() -> None:
    class Seen(Troubled):
        ends: tuple[str, ...] = ()

        async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
            self.ends += (change(await super().get(task_id)).error,)
            return await super().update(task_id, change)

    store = Seen()
    desk = Desk(store)
    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "t" * 100, raising(ToolFailed("x" * 5000)))
        store.full = True
        await desk.runner.wait(task.id)
        ended = desk.clock.now()
        assert len((await desk.runner.get(task.id)).error) == 2_000
        desk.clock.turn(hours=1)
        store.full = False
        found = await desk.became(task.id, "failed")
    assert (len(found.title), len(found.error), found.ended_at) == (80, 2_000, ended)
    assert {len(error) for error in store.ends} == {5000}, "a store takes out the secrets, and then cuts"


async def test_an_end_that_could_not_be_written_is_tried_once_more_at_the_close() -> None:
    store = Troubled()
    desk = Desk(store)
    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", forever)
        store.full = True
        assert (await desk.runner.cancel(task.id)).state == "cancelled"
        assert (await store.get(task.id)).state == "running"
        store.full = False
    assert (await store.get(task.id)).state == "cancelled"


async def test_what_could_not_be_recorded_does_not_begin() -> None:
    store = Troubled()
    desk = Desk(store, most=1)
    async with desk.runner.lifespan():
        store.full = True
        with pytest.raises(StorageFull):
            await desk.runner.start("local_bash", "Build", forever)
        assert desk.runner.running_count == 0
        store.full = False
        assert (await desk.runner.start("local_bash", "Build", built)).state == "running"
        await desk.runner.wait()
    assert [event.status for event in desk.events] == ["started", "finished"]


async def test_a_start_that_is_cancelled_leaves_no_task_that_seems_to_run() -> None:
    class Slow(MemoryTaskStore):
        async def add(self, task: Task) -> None:
            await super().add(task)
            calling.cancel()
            await anyio.lowlevel.cancel_shielded_checkpoint()

    desk = Desk(Slow(), most=1)
    calling = anyio.CancelScope()
    async with desk.runner.lifespan():
        with calling:
            await desk.runner.start("local_bash", "Build", forever)
        states = [task.state for task in await desk.runner.tasks()]
        assert states.count("running") == desk.runner.running_count
        for task in await desk.runner.tasks():
            await desk.runner.cancel(task.id)
        assert (await desk.runner.start("local_bash", "Build", built)).state == "running"
        await desk.runner.wait()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_start_that_asyncio_cancels_is_recorded_as_cancelled() -> None:
    class Slow(MemoryTaskStore):
        async def add(self, task: Task) -> None:
            await super().add(task)
            adding.set()
            await gate.wait()

    desk, adding, gate = Desk(Slow(), most=1), anyio.Event(), anyio.Event()
    async with desk.runner.lifespan():
        starting = asyncio.create_task(desk.runner.start("local_bash", "Build", forever))
        await adding.wait()
        starting.cancel()
        await anyio.wait_all_tasks_blocked()
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        (task,) = await desk.runner.tasks()
        assert (task.state, task.error) == ("cancelled", "The call that began it was cancelled.")
        assert (await desk.runner.start("local_bash", "Build", built)).state == "running"
        await desk.runner.wait()


async def test_a_start_that_the_end_of_the_session_overtakes_is_recorded_as_cancelled() -> None:
    class Slow(MemoryTaskStore):
        async def add(self, task: Task) -> None:
            await super().add(task)
            adding.set()
            await gate.wait()

    desk, adding, gate = Desk(Slow()), anyio.Event(), anyio.Event()
    refused: list[str] = []

    async def begin() -> None:
        try:
            await desk.runner.start("local_bash", "Build", forever)
        except MemoryClosed as error:
            refused.append(str(error))

    async with anyio.create_task_group() as group:
        async with desk.runner.lifespan():
            group.start_soon(begin)
            await adding.wait()
        gate.set()
    assert len(refused) == 1
    assert [task.state for task in await desk.store.all()] == ["cancelled"]


async def test_a_task_that_is_cancelled_before_its_first_step_never_begins() -> None:
    desk = Desk()
    begun: list[str] = []

    async def work(_: ReportProgress) -> str:
        begun.append("begun")
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        assert (await desk.runner.cancel(task.id)).state == "cancelled"
    assert begun == []


async def test_a_work_that_ended_while_its_record_was_written_is_completed_though_the_session_ends() -> None:
    class Held(MemoryTaskStore):
        async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
            if not writing.is_set():
                writing.set()
                with anyio.CancelScope(shield=True):
                    await gate.wait()
            return await super().update(task_id, change)

    desk, writing, gate, ended = Desk(Held()), anyio.Event(), anyio.Event(), anyio.Event()

    async def work(report: ReportProgress) -> str:
        report(TaskProgress(done=1))
        await writing.wait()
        ended.set()
        return "Built."

    async def open_later() -> None:
        await ended.wait()
        await anyio.wait_all_tasks_blocked()
        gate.set()

    async with anyio.create_task_group() as group:
        group.start_soon(open_later)
        async with desk.runner.lifespan():
            await desk.runner.start("local_bash", "Build", work)
            await ended.wait()
    assert [(task.state, task.result) for task in await desk.store.all()] == [("completed", "Built.")]


async def test_an_unknown_or_ambiguous_task_is_named_as_such() -> None:
    desk = Desk()
    async with desk.runner.lifespan():
        for _ in range(2):
            await desk.runner.start("local_bash", "Build", built)
        await desk.runner.wait()
        (first, _) = await desk.runner.tasks()
        for call in (desk.runner.get, desk.runner.cancel, desk.runner.wait):
            with pytest.raises(TaskNotFound):
                await call("nothing-like-it")
        with pytest.raises(InvalidQuery):
            await desk.runner.get(first.id[:8])


async def test_waiting_ends_after_its_time_and_for_a_task_of_another_process_with_it() -> None:
    desk = Desk()
    other = desk.another()
    gate = anyio.Event()

    async def work(_: ReportProgress) -> str:
        await gate.wait()
        return "Built."

    async with desk.runner.lifespan():
        task = await desk.runner.start("local_bash", "Build", work)
        await desk.runner.wait(seconds=0.005)
        await other.wait(task.id, seconds=0.005)
        assert desk.runner.running_count == 1
        await other.wait()
        gate.set()
        await other.wait(task.id)
        assert (await other.get(task.id)).state == "completed"


@pytest.mark.req("AS-TASK-01")
async def test_a_store_that_cannot_be_swept_still_shows_what_is_lost() -> None:
    store = Troubled()
    desk = Desk(store)
    now = desk.clock.now() - timedelta(hours=1)
    await store.add(
        Task(id="lost-task", type="dream", title="Dream", state="running", created_at=now, last_seen_at=now)
    )
    store.full = True
    assert [task.state for task in await desk.runner.tasks()] == ["orphaned"]
    assert desk.told() == [("failed", "record", "StorageFull")]
