"""A consolidation is a task that everybody can see and stop."""

from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from agents_at_work import SCOPE, settings
from places import place_of
from ricordo import HarnessAgent, Memory
from ricordo.clock import SystemClock
from ricordo.curation import consolidator as consolidate
from ricordo.jobs import Task, TaskPace
from ricordo.jobs.tasks import list_tasks, track_task
from ricordo.storage.local import LocalFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C3-task", "HE-C3-phases", "CC-DREAMCOPY", "CC-GATES")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".ricordo"


def agent(root: Path) -> HarnessAgent:
    return HarnessAgent("offline", memory=root, scope=SCOPE, settings=settings(root, consolidates=True))


async def saved(root: Path) -> None:
    async with Memory.open(root, scope=SCOPE, settings=settings(root, consolidates=True)) as memory:
        for number in range(3):
            await memory.remember(f"We decided to use tool {number} for module {number}.", kind="decision")


async def dreams(root: Path) -> list[Task]:
    listed = await list_tasks(LocalFiles(place_of(root)), now=SystemClock().now())
    return [task for task in listed.tasks if task.type == "dream"]


async def seen(one: HarnessAgent, text: str) -> Task:
    """Return the only task as soon as its record says that it is so far."""
    while (task := (await one.tasks.all())[0]).progress.text != text:  # noqa: ASYNC110  (others could not be told)
        await anyio.sleep(0.01)
    return task


@pytest.mark.req("AS-CONS-06")
async def test_a_consolidation_on_request_is_a_dream_that_says_what_it_came_to(root: Path) -> None:
    await saved(root)
    async with agent(root) as one:
        done = await one.consolidate()
        assert done.kept == 3
        (dream,) = await one.tasks.all()
    assert [dream] == await dreams(root)
    assert (dream.type, dream.state, dream.result) == ("dream", "completed", "3 kept, 0 merged, 0 superseded")
    assert (dream.progress.done, dream.progress.total) == (3, 4)


@pytest.mark.req("HE-C3-task")
async def test_a_dream_that_is_stopped_leaves_memory_as_it_was_and_is_no_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        track_task, "__kwdefaults__", {**(track_task.__kwdefaults__ or {}), "pace": TaskPace(poll=0.01)}
    )
    await saved(root)
    begun = anyio.Event()

    async def held(*args: object, **options: object) -> None:
        begun.set()
        await anyio.sleep_forever()

    curated = place_of(root) / "workspace" / "MEMORY.md"
    before = curated.read_bytes() if curated.exists() else None
    async with agent(root) as one:
        with monkeypatch.context() as patched:
            patched.setattr(consolidate, "run_sync", held)
            async with anyio.create_task_group() as group:

                @group.start_soon
                async def stopping() -> None:
                    await begun.wait()
                    dream = await seen(one, "placing 3 new entries")
                    assert dream.state == "running"
                    assert (await one.tasks.cancel(dream.id)).cancelling

                done = await one.consolidate()
        assert done.skipped == "it was stopped"
        (dream,) = await one.tasks.all()
        assert dream.state == "cancelled"
        assert (curated.read_bytes() if curated.exists() else None) == before
        assert (await one.consolidate()).kept == 3
