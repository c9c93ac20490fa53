"""A change that is cancelled, however that is done, is whole or was never begun, and keeps its lock to its end."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.storage import ABSENT, Disk, compute_version
from ricordo.storage.local import LocalFiles
from ricordo.workspace import ChangeSets, Edit

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

Begun = Callable[[Coroutine[object, object, object], float], Coroutine[object, object, None]]
PAUSE = 0.02
OLD = {"workspace/a.md": b"a old\n", "workspace/b.md": b"b old\n"}
NEW = {"workspace/a.md": b"a new\n", "workspace/b.md": b"b new\n", "workspace/c.md": b"c new\n"}
EDITS = [
    Edit(path=path, expected_hash=compute_version(OLD[path]) if path in OLD else ABSENT, data=NEW[path]) for path in NEW
]


class SlowDisk(Disk):
    """A disk whose renames take a while, so that a cancellation meets a thread at its work."""

    def __init__(self, pause: float = PAUSE) -> None:
        self.slow = False
        self.pause = pause

    def exchange(self, source: str, target: str) -> bool:
        if self.slow:
            time.sleep(self.pause)
        return super().exchange(source, target)

    def rename_new(self, source: str, target: str) -> bool:
        if self.slow:
            time.sleep(self.pause)
        return super().rename_new(source, target)


async def cancelled_task(work: Coroutine[object, object, object], after: float) -> None:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(after)
    task.cancel()
    await asyncio.wait([task])


async def cancelled_twice(work: Coroutine[object, object, object], after: float) -> None:
    task = asyncio.ensure_future(work)
    for _ in range(2):
        await asyncio.sleep(after / 2)
        task.cancel()
    await asyncio.wait([task])


async def timed_out(work: Coroutine[object, object, object], after: float) -> None:
    try:
        await asyncio.wait_for(work, after)
    except TimeoutError:
        return


def change_sets(files: LocalFiles) -> ChangeSets:
    clock = SystemClock()
    return ChangeSets(files, clock=clock, ids=MonotonicIds(clock))


async def contents(files: LocalFiles) -> dict[str, bytes]:
    return {info.path: (await files.read(info.path)).data for info in await files.list("workspace")}


@pytest.mark.req("FC-UNDO")
@pytest.mark.parametrize("cancel", [cancelled_task, cancelled_twice, timed_out])
@pytest.mark.parametrize("step", range(11))
async def test_a_change_that_is_cancelled_natively_is_whole_or_was_never_begun(
    cancel: Begun, step: int, tmp_path: Path
) -> None:
    disk = SlowDisk()
    files = LocalFiles(tmp_path, disk=disk)
    for path, data in OLD.items():
        await files.create(path, data)
    disk.slow = True
    await cancel(change_sets(files).apply(EDITS, act="test", who="me"), (step + 0.5) * PAUSE)
    disk.slow = False
    other = LocalFiles(tmp_path, busy_seconds=1)
    await change_sets(other).recover()
    held = await contents(other)
    records = await change_sets(other).list_changes()
    assert held == (NEW if records else OLD)
    await asyncio.sleep(PAUSE * 2)
    assert await contents(other) == held
    assert await other.list("history/pending") == []


@pytest.mark.parametrize("cancel", [cancelled_task, timed_out])
async def test_a_lock_is_free_only_after_the_write_that_a_cancelled_task_had_begun(
    cancel: Begun, tmp_path: Path
) -> None:
    # long enough for the write to have begun on a busy machine
    disk = SlowDisk(10 * PAUSE)
    disk.slow = True
    files = LocalFiles(tmp_path, disk=disk)

    async def held() -> None:
        async with files.lock("mine"):
            await files.create("workspace/a.md", b"whole\n")

    await cancel(held(), 5 * PAUSE)
    async with LocalFiles(tmp_path, busy_seconds=1).lock("mine"):
        assert (await files.read("workspace/a.md")).data == b"whole\n"


@pytest.mark.parametrize("after", range(8))
async def test_a_task_cancelled_while_it_waits_for_a_lock_leaves_it_free(after: int, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path, busy_seconds=1)

    async def held() -> None:
        async with files.lock("mine"):
            await asyncio.sleep(1)

    await cancelled_task(held(), after * 0.0005)
    async with files.lock("mine"):
        pass
