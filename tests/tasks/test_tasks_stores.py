"""What every store of tasks does, in a file and in memory alike."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ricordo.errors import AlreadyExists, TaskNotFound
from ricordo.guard import Redactor
from ricordo.jobs import FileTaskStore, MemoryTaskStore, Task, TaskState, complete_task
from ricordo.jobs.tasks import TaskStore
from ricordo.jobs.tasks.contract import MAX_RESULT, cancel_task, fail_task
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def task(task_id: str, *, state: TaskState = "running", minutes: int = 0) -> Task:
    made = NOON + timedelta(minutes=minutes)
    return Task(
        id=task_id, type="local_agent", title=f"The task {task_id}", state=state, created_at=made, last_seen_at=made
    )


@pytest.fixture(params=["in a file", "in memory"])
def store(request: pytest.FixtureRequest) -> TaskStore:
    if request.param == "in memory":
        return MemoryTaskStore()
    return FileTaskStore(InMemoryFiles(), "workspace/tasks.json", Redactor(bytes(32)))


async def test_there_are_no_tasks_at_first(store: TaskStore) -> None:
    assert await store.all() == ()
    with pytest.raises(TaskNotFound):
        await store.get("t1")
    with pytest.raises(TaskNotFound):
        await store.update("t1", lambda found: found)


@pytest.mark.req("AS-STATE-04")
async def test_what_was_added_is_there_oldest_first(store: TaskStore) -> None:
    for number, minutes in (("t2", 2), ("t1", 1), ("t3", 3)):
        await store.add(task(number, minutes=minutes))
    assert await store.all() == tuple(task(f"t{number}", minutes=number) for number in (1, 2, 3))
    assert await store.get("t2") == task("t2", minutes=2)


async def test_an_id_is_given_once(store: TaskStore) -> None:
    await store.add(task("t1"))
    with pytest.raises(AlreadyExists):
        await store.add(replace(task("t1"), title="Another"))
    assert await store.all() == (task("t1"),)


@pytest.mark.req("AS-STATE-04")
async def test_a_change_is_made_and_returned(store: TaskStore) -> None:
    await store.add(task("t1"))
    changed = await store.update("t1", lambda found: complete_task(found, "Done.", NOON))
    assert (changed.state, changed.result, changed.ended_at) == ("completed", "Done.", NOON)
    assert await store.all() == (changed,)
    assert await store.get("t1") == changed


@pytest.mark.parametrize(
    "end",
    [
        lambda found: complete_task(found, "Done.", NOON),
        lambda found: fail_task(found, "No.", NOON),
        lambda found: cancel_task(found, "Stopped.", NOON),
    ],
)
@pytest.mark.req("AS-TASK-01")
async def test_a_task_that_ended_stays_as_it_is_whatever_is_wanted(
    store: TaskStore, end: Callable[[Task], Task]
) -> None:
    await store.add(task("t1"))
    ended = await store.update("t1", end)
    wishes: list[Callable[[Task], Task]] = [
        lambda found: replace(found, state="running", ended_at=None),
        lambda found: replace(found, result="Other.", cancelling=True),
        lambda found: complete_task(found, "Again.", NOON),
        lambda found: fail_task(found, "Late.", NOON),
        lambda found: cancel_task(found, "Late.", NOON),
        lambda found: replace(found, state="orphaned"),
    ]
    for wish in wishes:
        assert await store.update("t1", wish) == ended
    assert await store.all() == (ended,)


async def test_what_a_change_raises_changes_nothing(store: TaskStore) -> None:
    await store.add(task("t1"))

    def refuse(_: Task) -> Task:
        raise KeyError("no")

    with pytest.raises(KeyError):
        await store.update("t1", refuse)
    assert await store.all() == (task("t1"),)


async def test_a_long_result_is_cut_with_a_notice(store: TaskStore) -> None:
    await store.add(task("t1"))
    found = await store.update("t1", lambda found: complete_task(found, "x" * 150_000, NOON))
    assert len(found.result) <= MAX_RESULT
    assert found.result.endswith("[cut: the result had 150,000 characters]")
    assert await store.all() == (found,)


async def test_the_oldest_ended_make_room_in_memory_too() -> None:
    store = MemoryTaskStore()
    await store.add(task("running"))
    for number in range(205):
        await store.add(complete_task(task(f"t{number:03}", minutes=1), "Done.", NOON + timedelta(seconds=number)))
    ids = [each.id for each in await store.all()]
    assert (len(ids), ids[0], ids[1]) == (200, "running", "t006")
