"""TaskRunner: the background tasks of one session of an agent, in one process.

Invariants: a task is in the store before its work begins. An exception of the work ends only its own task. When the
`lifespan` block ends, none of its tasks runs any more, and those that had not ended are recorded as cancelled.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio

from ricordo.clock import Clock, IdSource
from ricordo.concurrency import background_group
from ricordo.errors import MemoryClosed, StorageError
from ricordo.events import Emitter
from ricordo.jobs.tasks.contract import Task, TaskStore, TaskType, TaskWork
from ricordo.jobs.tasks.tracker import TaskPace, TaskTracker
from ricordo.jobs.tasks.transitions import find_by_id, find_orphans, orphan_if_silent, request_cancel, sort_by_creation
from ricordo.scope import Scope

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = ["TaskRunner"]


_SESSION_ENDED = "the session ended before it did"
_CANCEL_SECONDS = 5.0
_DEFAULT_PACE = TaskPace()


class TaskRunner:
    """Runs work in the background, at most `most` tasks at once, and records each task in `store`."""

    def __init__(
        self,
        store: TaskStore,
        *,
        agent: str,
        session: str,
        user: str,
        clock: Clock,
        ids: IdSource,
        emitter: Emitter,
        scope: Scope | None = None,
        pace: TaskPace = _DEFAULT_PACE,
        most: int = 8,
    ) -> None:
        """Run tasks for `session` of `agent`, which belongs to `user` (empty: none); report to `emitter`."""
        self._store = store
        self._agent = agent
        self._session = session
        self._user = user
        self._clock = clock
        self._ids = ids
        self._emitter = emitter
        self._scope = scope
        self._pace = pace
        self._slots = anyio.Semaphore(most)
        self._trackers: dict[str, TaskTracker] = {}
        self._group: TaskGroup | None = None

    @property
    def running_count(self) -> int:
        """How many of its tasks have not ended, including those that wait to begin."""
        return sum(not keeping.done.is_set() for keeping in self._trackers.values())

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run tasks while the block runs; at its end, cancel those that still run and record that.

        An exception of the block is raised unchanged. Work that can't be cancelled is waited for.
        """
        async with background_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None

    async def start(
        self, task_type: TaskType, title: str, work: TaskWork, *, worker: str = "", seconds: float | None = None
    ) -> Task:
        """Start `work` in the background, and return its task, which is stored durably.

        The task is running, or pending while the maximum number of tasks runs. It fails after `seconds` of work.
        Raises: MemoryClosed outside of `lifespan`; StorageError, and then nothing was started.
        """
        self._require_group()
        holds = self._try_take_slot()
        keeping = self._create_tracker(task_type, title, worker, is_running=holds)
        try:
            await keeping.add()
            await self._start_tracker(keeping, work, seconds, holds)
            holds = False
        finally:
            if holds:
                self._slots.release()
        return keeping.task

    async def tasks(self) -> tuple[Task, ...]:
        """Return every task of the session, oldest first, including those of other processes.

        Tasks without heartbeats are orphaned first, but never one that runs here. Raises: StorageError.
        """
        now, after = self._clock.now(), self._pace.orphaned_after
        found = {task.id: task for task in await self._store.all()}
        for task in find_orphans(tuple(found.values()), now, after=after):
            if task.id not in self._trackers:
                found[task.id] = await self._orphan_task(task)
        unwritten = {each.task.id: each.task for each in self._trackers.values() if each.unwritten}
        return sort_by_creation((found | unwritten).values())

    async def get(self, task_id: str) -> Task:
        """Return the task with this id, or the only one whose id begins or ends with these six or more characters.

        Raises: TaskNotFound; InvalidQuery if there is more than one; StorageError.
        """
        return find_by_id(await self.tasks(), task_id)

    async def cancel(self, task_id: str) -> Task:
        """Cancel the task with this id, or a part of it as for `get`, and return the updated task.

        If it runs here, this waits for its end for at most 5 seconds. A task of another process is asked to stop, one
        without a process is cancelled, one that has ended is not changed. Raises: TaskNotFound; InvalidQuery;
        StorageError.
        """
        whole = task_id if task_id in self._trackers else (await self.get(task_id)).id
        keeping = self._trackers.get(whole)
        if keeping is None:
            now, after = self._clock.now(), self._pace.orphaned_after
            return await self._store.update(whole, lambda task: request_cancel(task, now, after=after))
        keeping.stop("It was cancelled.")
        with anyio.move_on_after(_CANCEL_SECONDS):
            await keeping.done.wait()
        return keeping.task

    async def wait(self, task_id: str | None = None, *, seconds: float | None = None) -> None:
        """Wait until the task has ended or is orphaned; without an id, until all tasks that run here have ended.

        It returns after `seconds` in any case. Raises: TaskNotFound; InvalidQuery; StorageError.
        """
        with anyio.move_on_after(seconds):
            if task_id is None:
                while left := [each for each in self._trackers.values() if not each.done.is_set()]:
                    await left[0].done.wait()
                return
            while True:
                keeping = self._trackers.get(task_id)
                if keeping is not None:
                    await keeping.done.wait()
                    return
                task = await self.get(task_id)
                if task.has_ended or task.state == "orphaned":
                    return
                if task.id not in self._trackers:
                    await anyio.sleep(self._pace.look)
                task_id = task.id

    def _require_group(self) -> "TaskGroup":
        if self._group is None:
            raise MemoryClosed("Background tasks run only while their session is open.")
        return self._group

    async def _start_tracker(self, keeping: TaskTracker, work: TaskWork, seconds: float | None, holds: bool) -> None:  # noqa: FBT001
        try:
            group = self._require_group()
        except MemoryClosed:
            await keeping.record_cancelled(_SESSION_ENDED)
            raise
        self._trackers[keeping.task.id] = keeping
        group.start_soon(self._run, keeping, work, seconds, holds)

    def _create_tracker(self, task_type: TaskType, title: str, worker: str, *, is_running: bool) -> TaskTracker:
        now = self._clock.now()
        task = Task(
            id=self._ids.new(),
            type=task_type,
            title=title,
            state="running" if is_running else "pending",
            worker=worker,
            agent=self._agent,
            session=self._session,
            user=self._user,
            created=now,
            seen=now,
        )
        return TaskTracker(
            self._store, task, clock=self._clock, pace=self._pace, emitter=self._emitter, scope=self._scope
        )

    def _try_take_slot(self) -> bool:
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            return False
        return True

    async def _run(self, keeping: TaskTracker, work: TaskWork, seconds: float | None, holds: bool) -> None:  # noqa: FBT001
        async def slot() -> None:
            nonlocal holds
            await self._slots.acquire()
            holds = True

        try:
            # an exception of the work is in its record, and ends neither the session nor another task
            with suppress(Exception, anyio.get_cancelled_exc_class()):
                await keeping.run(work, seconds=seconds, ready=None if holds else slot, left=_SESSION_ENDED)
        finally:
            if holds:
                self._slots.release()
        try:
            while keeping.unwritten:
                await anyio.sleep(self._pace.look)
                await keeping.write_end()
        finally:
            await keeping.write_end()
            del self._trackers[keeping.task.id]

    async def _orphan_task(self, task: Task) -> Task:
        """Mark `task` as orphaned durably; if the store can't be written to, it is only shown as orphaned."""
        now, after = self._clock.now(), self._pace.orphaned_after
        try:
            return await self._store.update(task.id, lambda found: orphan_if_silent(found, now, after=after))
        except StorageError as error:
            self._emitter.report_failure("task", self._scope, error, "record")
            return task
