"""One awaited call under a record: what it returns and raises is the caller's, and the record says the same."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from hand_clock import HandClock
from ricordo.errors import AlreadyExists, StorageFull, TaskCancelled, ToolFailed
from ricordo.events import Emitter, Event
from ricordo.jobs import MemoryTaskStore, ReportProgress, Task, TaskPace
from ricordo.jobs.tasks import TaskWork, track_task

pytestmark = pytest.mark.anyio

QUICK = TaskPace(poll=0.002)
CLOCK = HandClock()
DREAM = Task(id="dream-1", type="dream", title="Consolidate", created_at=CLOCK.now(), last_seen_at=CLOCK.now())


class Closing(MemoryTaskStore):
    """A store in memory that is full for its next `failures` changes."""

    failures = 0

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        if self.failures:
            self.failures -= 1
            raise StorageFull
        return await super().update(task_id, change)


async def dreamt(store: MemoryTaskStore, work: TaskWork) -> str:
    return await track_task(store, DREAM, work, clock=CLOCK, pace=QUICK)


async def forever(_: ReportProgress) -> str:
    await anyio.sleep_forever()
    return "Never."


async def test_the_result_is_returned_and_recorded() -> None:
    store = MemoryTaskStore()
    events: list[Event] = []

    async def work(_: ReportProgress) -> str:
        assert (await store.get("dream-1")).state == "running"
        return "3 topics."

    emitter = Emitter(CLOCK, (events.append,))
    assert await track_task(store, DREAM, work, clock=CLOCK, pace=QUICK, emitter=emitter) == "3 topics."
    assert await store.all() == (replace(DREAM, state="completed", result="3 topics.", ended_at=CLOCK.now()),)
    assert [(event.stage, event.status) for event in events] == [("task", "started"), ("task", "finished")]


async def test_what_it_raises_is_raised_and_recorded() -> None:
    store = MemoryTaskStore()
    failure = ToolFailed("There is no ledger.")

    async def work(_: ReportProgress) -> str:
        raise failure

    with pytest.raises(ToolFailed) as raised:
        await dreamt(store, work)
    assert raised.value is failure
    assert [(task.state, task.error) for task in await store.all()] == [("failed", "There is no ledger.")]


@pytest.mark.req("HE-C3-task")
async def test_its_record_can_cancel_it() -> None:
    store = MemoryTaskStore()

    async def work(report: ReportProgress) -> str:
        await store.update("dream-1", lambda task: replace(task, cancelling=True))
        return await forever(report)

    with pytest.raises(TaskCancelled, match="asked to stop"):
        await dreamt(store, work)
    assert [task.state for task in await store.all()] == ["cancelled"]


@pytest.mark.req("AS-TASK-01")
async def test_a_record_that_somebody_ended_ends_the_work() -> None:
    store = MemoryTaskStore()

    async def work(report: ReportProgress) -> str:
        await store.update("dream-1", lambda task: replace(task, state="cancelled", error="Taken for lost."))
        return await forever(report)

    with pytest.raises(TaskCancelled, match="Taken for lost"):
        await dreamt(store, work)
    assert [task.error for task in await store.all()] == ["Taken for lost."]


async def test_who_cancels_the_caller_finds_it_recorded() -> None:
    store = MemoryTaskStore()
    began = anyio.Event()

    async def work(report: ReportProgress) -> str:
        began.set()
        return await forever(report)

    async with anyio.create_task_group() as group:
        group.start_soon(dreamt, store, work)
        await began.wait()
        group.cancel_scope.cancel()
    assert [(task.state, task.error) for task in await store.all()] == [
        ("cancelled", "Its process stopped it before it ended.")
    ]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_time_limit_of_asyncio_is_recorded_too() -> None:
    store = MemoryTaskStore()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(dreamt(store, forever), 0.01)
    assert [task.state for task in await store.all()] == ["cancelled"]


async def test_nothing_begins_where_it_cannot_be_recorded() -> None:
    store = MemoryTaskStore()
    await store.add(DREAM)
    with pytest.raises(AlreadyExists):
        await dreamt(store, forever)
    assert await store.all() == (DREAM,)


@pytest.mark.parametrize(("failures", "state"), [(1, "completed"), (3, "running")])
async def test_an_end_is_tried_three_times_and_the_result_returned_whatever_comes(failures: int, state: str) -> None:
    store = Closing()

    async def work(_: ReportProgress) -> str:
        store.failures = failures
        return "3 topics."

    assert await dreamt(store, work) == "3 topics."
    assert [task.state for task in await store.all()] == [state]
