"""Tasks of one session in a task group of the test, with nothing on a disk."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
from anyio.abc import TaskGroup

from hand_clock import HandClock
from ricordo.clock import MonotonicIds
from ricordo.errors import TaskNotFound
from ricordo.jobs import Task, TaskProgress, TaskState
from ricordo.jobs.tasks import TaskType, TaskWork

__all__ = ["HandTasks", "hand_tasks"]


class HandTasks:
    """Runs what it is given at once; `records` may be written over by a test."""

    def __init__(self, group: TaskGroup, clock: HandClock) -> None:
        self.records: dict[str, Task] = {}
        self.seconds: list[float | None] = []
        self._group = group
        self._clock = clock
        self._ids = MonotonicIds(clock)
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._ends: dict[str, anyio.Event] = {}

    async def start(
        self,
        type: TaskType,  # noqa: A002  (as in the house)
        title: str,
        work: TaskWork,
        *,
        worker: str = "",
        seconds: float | None = None,
    ) -> Task:
        now = self._clock.now()
        task = Task(
            id=self._ids.new(), type=type, title=title, worker=worker, state="running",
            created_at=now, last_seen_at=now, agent="main", session="s1",
        )  # fmt: skip
        self.records[task.id] = task
        self.seconds.append(seconds)
        self._scopes[task.id] = anyio.CancelScope()
        self._ends[task.id] = anyio.Event()
        self._group.start_soon(self._run, task.id, work)
        return task

    async def _run(self, key: str, work: TaskWork) -> None:
        def report(progress: TaskProgress) -> None:
            self.records[key] = replace(self.records[key], progress=progress)

        state: TaskState = "cancelled"
        result = error = ""
        try:
            with self._scopes[key]:
                result = await work(report)
                state = "completed"
        except RuntimeError as failed:
            state, error = "failed", str(failed)
        self.records[key] = replace(
            self.records[key], state=state, result=result, error=error, ended_at=self._clock.now()
        )
        self._ends[key].set()

    async def cancel(self, task_id: str) -> Task:
        task = await self.get(task_id)
        if task.id in self._scopes:
            self._scopes[task.id].cancel()
            await self._ends[task.id].wait()
        else:
            self.records[task.id] = replace(task, cancelling=True)
        return self.records[task.id]

    async def get(self, task_id: str) -> Task:
        found = [task for key, task in self.records.items() if task_id and key.endswith(task_id)]
        if len(found) != 1:
            raise TaskNotFound
        return found[0]

    async def tasks(self) -> tuple[Task, ...]:
        return tuple(self.records.values())

    async def wait(self, task_id: str | None = None, *, seconds: float | None = None) -> None:
        with anyio.move_on_after(seconds):
            for key, end in self._ends.items():
                if task_id in {None, key}:
                    await end.wait()


@asynccontextmanager
async def hand_tasks(clock: HandClock | None = None) -> AsyncIterator[HandTasks]:
    """Give tasks; what still runs at the end is cancelled."""
    async with anyio.create_task_group() as group:
        yield HandTasks(group, clock or HandClock())
        group.cancel_scope.cancel()
