"""TaskTracker: the record of a task while its work runs, its heartbeat and progress, the wish to stop it, and its end.

Invariants: the work begins only after its record is durable; trouble with the record never ends the work; what the
work raises comes out as it was raised. A wish to stop that another process wrote is seen within one look. A function
that is not async never runs on the loop, and nobody goes on before it has ended.
"""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import ParamSpec, TypeAlias, cast

import anyio
import anyio.lowlevel
from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.concurrency import background_task, run_even_if_cancelled, run_to_completion
from ricordo.errors import AlreadyExists, RicordoError, StorageBusy, StorageError, TaskCancelled, TaskNotFound
from ricordo.events import Emitter
from ricordo.jobs.tasks.contract import ReportProgress, Task, TaskProgress, TaskStore, TaskWork
from ricordo.jobs.tasks.transitions import (
    apply_change,
    cancel_task,
    complete_task,
    fail_task,
    record_heartbeat,
    truncate_task,
)
from ricordo.scope import Scope

__all__ = ["BlockingWork", "TaskPace", "TaskTracker", "describe_error", "run_in_worker_thread", "track_task"]


# two tries, so that the end of a session waits for a hanging store 2 seconds at most
_END_SECONDS = 1.0
_END_RETRIES = 2


@dataclass(frozen=True, kw_only=True)
class TaskPace:
    """How often a record is touched, all in seconds.

    A sign of life is written every `heartbeat`; a change of the progress, and the wish of another process to stop the
    work, are looked for every `look`. A task without a sign of life for `orphan` is orphaned.
    """

    heartbeat: float = 30.0
    look: float = 1.0
    orphan: float = 600.0

    @property
    def orphaned_after(self) -> timedelta:
        """`orphan` as a span of time."""
        return timedelta(seconds=self.orphan)


_DEFAULT_PACE = TaskPace()


class TaskTracker:
    """Keeps the record of one task, which was added to `store` before; `task` is it as this process knows it.

    `done` is set when its work has ended and the end was written, or could not be. `unwritten` says that it could not.
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
        """Keep the record of `task` in `store`, and report to `emitter`."""
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
        """Take how far the work is; the record says so with the next look. Raises: TypeError or ValueError for none."""
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
            # what is stored has no secret any more; what is shown of it here is as long
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
        """Record that the task was cancelled without its work."""
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
        """Do the work once `ready` has returned, record how it ended, and return its result.

        `left` is the error of a task whose process stops it from outside, such as by its end. Raises: TaskCancelled
        when it was stopped; TimeoutError when the work took longer than `seconds`; what the work raises.
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
                    # the work may have ended just before
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
        """Write the end, or try again, where it is not written yet, whatever cancels."""
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
        """End the record that is to be none: a disk may fail after it has written, and who comes next would wait."""
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
        # who was stopped before this does not begin
        await anyio.lowlevel.checkpoint()

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(self._pace.look)
            await self._touch()

    async def _touch(self) -> None:
        """Write a sign of life when it is time for one, or else only look at the record."""
        progress, now = self._progress, self._clock.now()
        waited = self._has_started and self.task.state == "pending"
        is_due = (
            waited
            or progress != self._written_progress
            or now - self.task.seen >= timedelta(seconds=self._pace.heartbeat)
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
        """Write the end; where that fails, `task` is the end as it is to be."""
        progress = self._progress
        # it is what it was when it is tried again, and whole: a store cuts only what has no secret any more
        self._ending = lambda task: replace(change(task), progress=progress)
        self.task, self.unwritten = truncate_task(apply_change(self.task, self._ending)), True
        await self.write_end()

    def _report_trouble(self, error: RicordoError) -> None:
        """Report the first of a row of troubles with the record."""
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
    """Do `work` under the record of `task`, which is added as running before it begins, and return its result.

    It is cancelled when its record asks for that. Raises: StorageError, and then nothing began; TaskCancelled; what
    the work raises.
    """
    running = replace(task, state="running", seen=max(task.seen, clock.now()))
    keeping = TaskTracker(store, running, clock=clock, pace=pace, emitter=emitter, scope=scope)
    await keeping.add()
    try:
        return await keeping.run(work, left="Its process stopped it before it ended.")
    finally:
        for _ in range(_END_RETRIES):
            if keeping.unwritten:
                await anyio.sleep(pace.look)
                await keeping.write_end()


def describe_error(error: BaseException) -> str:
    """Return what an error says: our own their text, others their type and text, a group of one that one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, RicordoError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


_P = ParamSpec("_P")
BlockingWork: TypeAlias = Callable[[ReportProgress], str]
"""A piece of work that does not await: it may report how far it is, and returns its result."""


def run_in_worker_thread(work: Callable[_P, Awaitable[str] | str]) -> Callable[_P, Awaitable[str]]:
    """Return `work` as it is when it is async, else what runs it in a thread, which can't be stopped."""
    if inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(type(work).__call__):
        return cast("Callable[_P, Awaitable[str]]", work)

    async def run(*args: _P.args, **kwargs: _P.kwargs) -> str:
        found: object = await run_sync(partial(work, *args, **kwargs))
        return str(await found if inspect.isawaitable(found) else found)

    return run
