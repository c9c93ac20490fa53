"""TaskRunner: the background tasks of one session of an agent, in one process, each with a `TaskTracker`.

The tracker keeps the record of a task while its work runs: heartbeats, progress, stop requests, and its end.

Invariants: a task is durable in the store before its work begins. Errors of the record never end the work. An exception
of the work is raised unchanged, and ends only its own task. A stop request of another process is noticed within one
`look`. A function that is not async never runs on the event loop, and is always waited for. When the
`lifespan` block ends, none of its tasks runs any more, and those that had not ended are recorded as cancelled.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, cast

import anyio
import anyio.lowlevel
from anyio.to_thread import run_sync

from ricordo.clock import Clock, IdSource
from ricordo.concurrency import background_group, background_task, run_even_if_cancelled, run_to_completion
from ricordo.errors import (
    AlreadyExists,
    MemoryClosed,
    RicordoError,
    StorageBusy,
    StorageError,
    TaskCancelled,
    TaskNotFound,
)
from ricordo.events import Emitter
from ricordo.jobs.tasks.contract import (
    ReportProgress,
    Task,
    TaskProgress,
    TaskStore,
    TaskType,
    TaskWork,
    apply_change,
    cancel_task,
    complete_task,
    fail_task,
    find_by_id,
    find_orphans,
    orphan_if_silent,
    record_heartbeat,
    request_cancel,
    sort_by_creation,
    truncate_task,
)
from ricordo.lazy import dataclass
from ricordo.scope import Scope

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

__all__ = [
    "BlockingWork",
    "TaskPace",
    "TaskRunner",
    "TaskTracker",
    "describe_error",
    "run_in_worker_thread",
    "track_task",
]


# two tries, so that the end of a session waits at most 2 seconds for a store that hangs
_END_SECONDS = 1.0
_END_RETRIES = 2


@dataclass(frozen=True, kw_only=True)
class TaskPace:
    """How often a record is read and written, in seconds.

    A heartbeat is written every `heartbeat` seconds; progress and stop requests of other processes are checked every
    `poll` seconds. A task without a heartbeat for `orphan` seconds is orphaned.
    """

    heartbeat: float = 30.0
    poll: float = 1.0
    orphan: float = 600.0

    @property
    def orphaned_after(self) -> timedelta:
        """`orphan` as a timedelta."""
        return timedelta(seconds=self.orphan)


_DEFAULT_PACE = TaskPace()


class TaskTracker:
    """Tracks one task, whose record is in `store`; `task` is the record as this process knows it.

    `done` is set when the work has ended and its end was written or could not be written; `unwritten` is true in the
    latter case.
    """

    def __init__(
        self,
        store: TaskStore,
        task: Task,
        *,
        clock: Clock,
        pace: TaskPace,
        emitter: Emitter | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Track `task` in `store`, and report to `emitter`."""
        self.task = task
        self.done = anyio.Event()
        self.unwritten = False
        self._store = store
        self._clock = clock
        self._pace = pace
        self._emitter = emitter or Emitter(clock)
        self._scope = scope
        self._progress = self._written_progress = task.progress
        self._results: list[str] = []
        self._ending: Callable[[Task], Task] = replace
        self._has_started = task.state == "running"
        self._stop = anyio.CancelScope()
        self._stop_reason = ""
        self._is_troubled = False

    def report(self, progress: TaskProgress) -> None:
        """Set the progress of the work, to be recorded at the next check. Raises: TypeError, ValueError if invalid."""
        total = None if progress.total is None else int(progress.total)
        self._progress = TaskProgress(done=int(progress.done), total=total, text=str(progress.text))

    def stop(self, why: str) -> None:
        """Cancel the work, or never begin it; `why` becomes the error of the record."""
        self._stop_reason = self._stop_reason or why
        self._stop.cancel()

    async def add(self) -> None:
        """Add the record durably. Raises: AlreadyExists; StorageError."""
        added = False

        async def act() -> None:
            nonlocal added
            await self._store.add(self.task)
            # the stored record has no secrets; this copy is truncated in the same way
            self.task = truncate_task(self.task)
            added = True

        try:
            await run_to_completion(act)
        except AlreadyExists:
            raise
        except StorageError:
            await self._cancel_record()
            raise
        except anyio.get_cancelled_exc_class():
            if added:
                await self.record_cancelled("The call that began it was cancelled.")
            raise

    async def record_cancelled(self, why: str) -> None:
        """Record that the task was cancelled without running its work."""
        now = self._clock.now()
        await self._end(lambda task: cancel_task(task, why, now))

    async def run(
        self,
        work: TaskWork,
        *,
        seconds: float | None = None,
        ready: Callable[[], Awaitable[None]] | None = None,
        left: str,
    ) -> str:
        """Run the work after `ready` has returned, record how it ended, and return its result.

        `left` is the error of the record if the process stops the task, such as when it exits. Raises: TaskCancelled if
        it was stopped; TimeoutError if the work took longer than `seconds`; exceptions of the work.
        """
        try:
            with self._emitter.stage("task", self._scope) as told:
                told.reason, told.counts[self.task.type] = self.task.type, 1
                try:
                    result = await self._run_work(work, seconds, ready)
                except TaskCancelled as error:
                    told.reason = "cancelled"
                    await self.record_cancelled(str(error))
                    raise
                except anyio.get_cancelled_exc_class():
                    # the work may have ended just before the cancellation
                    await (self._complete(self._results[0]) if self._results else self.record_cancelled(left))
                    raise
                except Exception as error:
                    words, now = describe_error(error), self._clock.now()
                    await self._end(lambda task: fail_task(task, words, now))
                    raise
                await self._complete(result)
                return result
        finally:
            self.done.set()

    async def write_end(self) -> None:
        """Write the end, or retry, if it is not written yet, even if the caller is cancelled."""
        if not self.unwritten:
            return

        async def act() -> None:
            with anyio.move_on_after(_END_SECONDS) as limit:
                self.task = await self._store.update(self.task.id, self._ending)
                self.unwritten = False
            if limit.cancelled_caught:
                raise StorageBusy("The end of a task could not be written in time.")

        try:
            await run_even_if_cancelled(act)
        except (StorageError, TaskNotFound) as error:
            self._report_trouble(error)

    async def _cancel_record(self) -> None:
        """Cancel a record whose write failed, as the disk may have stored it and readers would wait for the task."""
        why = "It did not begin: its record could not be written."
        with suppress(StorageError, TaskNotFound), anyio.move_on_after(_END_SECONDS, shield=True):
            await self._store.update(self.task.id, lambda task: cancel_task(task, why, self._clock.now()))

    async def _run_work(
        self, work: TaskWork, seconds: float | None, ready: Callable[[], Awaitable[None]] | None
    ) -> str:
        late = ""
        try:
            with self._stop:
                async with background_task(self._watch):
                    await self._begin(ready)
                    with anyio.move_on_after(seconds) as limit:
                        try:
                            self._results.append(str(await work(self.report)))
                        finally:
                            if limit.cancel_called and not self._results:
                                late = f"It did not end within {seconds:g} seconds."
        except Exception as error:
            then = f"Then it failed: {describe_error(error)}"
            if self._stop.cancel_called:
                raise TaskCancelled(f"{self._stop_reason} {then}") from error
            if late:
                raise TimeoutError(f"{late} {then}") from error
            raise
        if late:
            raise TimeoutError(late)
        if not self._results:
            raise TaskCancelled(self._stop_reason)
        return self._results[0]

    async def _begin(self, ready: Callable[[], Awaitable[None]] | None) -> None:
        if ready is not None:
            await ready()
        if not self._has_started:
            self._has_started = True
            await self._touch()
        # work that was stopped before this does not begin
        await anyio.lowlevel.checkpoint()

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(self._pace.poll)
            await self._touch()

    async def _touch(self) -> None:
        """Write a heartbeat if one is due, else only read the record."""
        progress, now = self._progress, self._clock.now()
        waited = self._has_started and self.task.state == "pending"
        is_due = (
            waited
            or progress != self._written_progress
            or now - self.task.last_seen_at >= timedelta(seconds=self._pace.heartbeat)
        )
        try:
            if is_due:
                works = self._has_started
                self.task = await self._store.update(
                    self.task.id, lambda task: record_heartbeat(task, now, progress=progress, works=works)
                )
                self._written_progress = progress
            else:
                self.task = await self._store.get(self.task.id)
            self._is_troubled = False
        except (StorageError, TaskNotFound) as error:
            self._report_trouble(error)
        if self.task.cancelling:
            self.stop("It was asked to stop.")
        elif self.task.has_ended:
            self.stop(self.task.error or "Its record says that it ended.")

    async def _complete(self, result: str) -> None:
        now = self._clock.now()
        await self._end(lambda task: complete_task(task, result, now))

    async def _end(self, change: Callable[[Task], Task]) -> None:
        """Write the end; if that fails, `task` is still set to it."""
        progress = self._progress
        # kept untruncated for retries: a store truncates only after it removed secrets
        self._ending = lambda task: replace(change(task), progress=progress)
        self.task, self.unwritten = truncate_task(apply_change(self.task, self._ending)), True
        await self.write_end()

    def _report_trouble(self, error: RicordoError) -> None:
        """Report the first of a series of record errors."""
        if not self._is_troubled:
            self._emitter.report_failure("task", self._scope, error, "record")
        self._is_troubled = True


async def track_task(
    store: TaskStore,
    task: Task,
    work: TaskWork,
    *,
    clock: Clock,
    pace: TaskPace = _DEFAULT_PACE,
    emitter: Emitter | None = None,
    scope: Scope | None = None,
) -> str:
    """Run `work` while tracking `task`, which is added as running before it begins, and return the result.

    The work is cancelled if its record requests that. Raises: StorageError, and then nothing was started;
    TaskCancelled; exceptions of the work.
    """
    running = replace(task, state="running", last_seen_at=max(task.last_seen_at, clock.now()))
    keeping = TaskTracker(store, running, clock=clock, pace=pace, emitter=emitter, scope=scope)
    await keeping.add()
    try:
        return await keeping.run(work, left="Its process stopped it before it ended.")
    finally:
        for _ in range(_END_RETRIES):
            if keeping.unwritten:
                await anyio.sleep(pace.poll)
                await keeping.write_end()


def describe_error(error: BaseException) -> str:
    """Return the text of an error, with its type unless it is our own; a group of one counts as its only error."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RicordoError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_P = ParamSpec("_P")
BlockingWork: TypeAlias = Callable[[ReportProgress], str]
"""Work that does not await: it may report its progress, and returns its result."""


def run_in_worker_thread(work: Callable[_P, Awaitable[str] | str]) -> Callable[_P, Awaitable[str]]:
    """Return async `work` unchanged, else a function that runs it in a thread, which can't be stopped."""
    if inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(type(work).__call__):
        return cast("Callable[_P, Awaitable[str]]", work)

    async def run(*args: _P.args, **kwargs: _P.kwargs) -> str:
        found: object = await run_sync(partial(work, *args, **kwargs))
        return str(await found if inspect.isawaitable(found) else found)

    return run


_SESSION_ENDED = "the session ended before it did"
_CANCEL_SECONDS = 5.0


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
                    await anyio.sleep(self._pace.poll)
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
            created_at=now,
            last_seen_at=now,
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
                await anyio.sleep(self._pace.poll)
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
