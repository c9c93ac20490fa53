"""Tasks in a root that can only be read: what is recorded is seen and stays, and new work is done all the same."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hand_clock import HandClock
from ricordo.errors import AlreadyExists, StorageReadOnly, TaskNotFound
from ricordo.jobs import MemoryTaskStore, Task, complete_task
from ricordo.jobs.tasks import ReadOnlyTaskStore
from ricordo.jobs.tasks.contract import request_cancel

pytestmark = pytest.mark.anyio

CLOCK = HandClock()
NOW = CLOCK.now()
OLD = Task(
    id="old", type="dream", title="Dream", state="running", created_at=NOW, last_seen_at=NOW - timedelta(hours=1)
)
DONE = replace(OLD, id="done", state="completed", result="Dreamed.", ended_at=NOW)
NEW = replace(OLD, id="new", last_seen_at=NOW, created_at=NOW + timedelta(seconds=1))


async def opened() -> tuple[ReadOnlyTaskStore, MemoryTaskStore]:
    recorded = MemoryTaskStore()
    for task in (OLD, DONE):
        await recorded.add(task)
    return ReadOnlyTaskStore(recorded, clock=CLOCK), recorded


@pytest.mark.req("AS-TASK-01")
async def test_what_is_recorded_is_shown_and_what_is_new_beside_it() -> None:
    tasks, recorded = await opened()
    await tasks.add(NEW)
    assert [(task.id, task.state) for task in await tasks.all()] == [
        ("done", "completed"), ("old", "orphaned"), ("new", "running")
    ]  # fmt: skip
    assert (await tasks.get("done"), (await tasks.get("old")).state) == (DONE, "orphaned")
    assert (await tasks.update("new", lambda task: complete_task(task, "Done.", NOW))).result == "Done."
    assert (await tasks.get("new")).state == "completed"
    assert await recorded.all() == (DONE, OLD)
    with pytest.raises(TaskNotFound):
        await tasks.get("nothing")
    with pytest.raises(TaskNotFound):
        await tasks.update("nothing", replace)
    with pytest.raises(AlreadyExists):
        await tasks.add(NEW)


@pytest.mark.req("AS-TASK-01")
async def test_a_recorded_task_is_not_said_to_be_changed() -> None:
    tasks, recorded = await opened()
    with pytest.raises(StorageReadOnly, match="stays as it is"):
        await tasks.update("old", lambda task: request_cancel(task, NOW))
    assert await tasks.update("done", lambda task: request_cancel(task, NOW)) == DONE
    assert await recorded.all() == (DONE, OLD)
