"""Processes that add tasks at once, and processes that are killed at their tasks.

`task_driver.py added <folder> <processes> <each>` prints what the document holds when all have added their tasks.
`task_driver.py killed <folder>` prints, for a kill at each step of the disk of a task's life and one while it works,
what the next process finds.
"""

import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import anyio

import ricordo
from disks import KillingDisk
from forking import Emit, in_child
from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.jobs import FileTaskStore, ReportProgress, Task, TaskRunner
from ricordo.jobs.tasks import list_tasks
from ricordo.storage import Disk
from ricordo.storage.local import LocalFiles
from ricordo.workspace import tasks_path

PATH = tasks_path("main", "s1")
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def store(root: Path, disk: Disk | None = None) -> FileTaskStore:
    return FileTaskStore(LocalFiles(root, disk=disk), PATH, Redactor(bytes(32)))


async def add(root: Path, process: int, each: int) -> None:
    tasks = store(root)
    for number in range(each):
        made = Task(id=f"{process}-{number}", type="dream", title="Dream", created_at=NOON, last_seen_at=NOON)
        await tasks.add(made)


def added(root: Path, processes: int, each: int) -> None:
    children = []
    for process in range(processes):
        child = os.fork()
        if child == 0:
            try:
                anyio.run(add, root, process, each)
            except BaseException as error:  # noqa: BLE001 - a forked child must not run on into its parent's code
                print(repr(error), file=sys.stderr)
                os._exit(1)
            os._exit(0)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    found = anyio.run(store(root).all)
    print(json.dumps({"failed": len(failed), "ids": sorted(task.id for task in found)}))


def runner(root: Path, clock: HandClock, disk: Disk | None = None) -> TaskRunner:
    return TaskRunner(
        store(root, disk),
        agent="main",
        session="s1",
        user="me",
        clock=clock,
        ids=MonotonicIds(clock),
        emitter=Emitter(clock),
    )


async def live(root: Path, disk: Disk | None, emit: Emit, *, kills: bool) -> None:
    async def work(report: ReportProgress) -> str:
        del report
        emit("begun")
        if kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return "Done."

    one = runner(root, HandClock(NOON), disk)
    async with one.lifespan():
        task = await one.start("local_bash", "Build", work)
        emit(f"started {task.id}")
        await one.wait()
        emit("ended")


async def states(root: Path, clock: HandClock) -> list[str]:
    listed = await list_tasks(LocalFiles(root), now=clock.now())
    return [task.state for task in listed.tasks] + [f"unreadable {path}" for path in listed.unreadable]


async def found(root: Path) -> dict[str, list[str]]:
    clock = HandClock(NOON)
    at_once = await states(root, clock)
    clock.turn(minutes=9, seconds=59)
    just_before = await states(root, clock)
    clock.turn(1)
    later = await states(root, clock)
    swept: list[str] = [task.state for task in await runner(root, clock).tasks()]
    written: list[str] = [task.state for task in await store(root).all()]
    return {"at once": at_once, "before": just_before, "later": later, "swept": swept, "written": written}


def killed(folder: Path) -> None:
    step, lived = 0, False
    while not lived:
        root, kills = folder / str(step), step == 0
        disk = None if kills else KillingDisk(step, halves=True)
        lived, told = in_child(lambda emit: live(root, disk, emit, kills=kills))  # noqa: B023 - called at once
        print(json.dumps({"step": step, "lived": lived, "told": told, **anyio.run(found, root)}))
        step += 1


def main() -> None:
    print(json.dumps(ricordo.__file__))
    if sys.argv[1] == "added":
        added(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        killed(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
