"""TaskList: the background tasks of a session and of its root, in one list."""

from typing import get_args

from ricordo.clock import Clock
from ricordo.errors import InvalidSetting, TaskNotFound
from ricordo.jobs.tasks import Task, TaskStore, TaskType, TaskWork
from ricordo.jobs.tasks.runner import BlockingWork, TaskPace, TaskRunner, run_in_worker_thread
from ricordo.jobs.tasks.transitions import find_by_id, orphan_if_silent, request_cancel

__all__ = ["TaskList"]


_ORPHANED_AFTER = TaskPace().orphaned_after


class TaskList:
    """The tasks of one session: commands and sub-agents in the background, and the dreams of its root."""

    def __init__(self, runner: TaskRunner, root: TaskStore | None = None, *, clock: Clock) -> None:
        """List the tasks of `runner`, and the tasks in `root`, which belong to no session."""
        self._runner = runner
        self._root = root
        self._clock = clock

    @property
    def running_count(self) -> int:
        """The number of tasks of this session that run in this process."""
        return self._runner.running_count

    async def all(self) -> tuple[Task, ...]:
        """Return all tasks, newest first. Raises: DocumentInvalid for a record that can't be read."""
        tasks = [*await self._runner.tasks(), *await self._root_tasks()]
        return tuple(sorted(tasks, key=lambda task: (task.created, task.id), reverse=True))

    async def start(
        self,
        kind: TaskType,
        title: str,
        work: TaskWork | BlockingWork,
        *,
        worker: str = "",
        seconds: float | None = None,
    ) -> Task:
        """Start `work` in the background and return its record. It ends with the session.

        A function that is not async runs in a thread: it can't be stopped, so stopping it or ending the session waits
        for it. The task fails after `seconds`, never if None. The agent gets its result with the next request. Raises:
        InvalidSetting for invalid arguments; StorageError, and then nothing was started.
        """
        _check_start(kind, title, work, seconds)
        return await self._runner.start(kind, title, run_in_worker_thread(work), worker=worker, seconds=seconds)

    async def get(self, task_id: str) -> Task:
        """Return the task with this id, or the only one whose id begins or ends with it (at least six characters).

        Raises: TaskNotFound; InvalidQuery if several match; InvalidSetting for an id that is not a text.
        """
        _check_id(task_id)
        try:
            return await self._runner.get(task_id)
        except TaskNotFound:
            return find_by_id(await self._root_tasks(), task_id)

    async def cancel(self, task_id: str) -> Task:
        """Stop a task and return its record; another process is only asked to stop it. Raises as `get`."""
        _check_id(task_id)
        try:
            return await self._runner.cancel(task_id)
        except TaskNotFound:
            if self._root is None:
                raise
            record, now = find_by_id(await self._root_tasks(), task_id), self._clock.now()
            return await self._root.update(record.id, lambda task: request_cancel(task, now, after=_ORPHANED_AFTER))

    async def wait(self, task_id: str | None = None, *, seconds: float | None = None) -> None:
        """Wait at most `seconds` until a task of this session has ended, or all of them if None.

        Raises as `get`.
        """
        if task_id is not None:
            _check_id(task_id)
        _check_seconds(seconds)
        await self._runner.wait(task_id, seconds=seconds)

    async def _root_tasks(self) -> tuple[Task, ...]:
        """Return the root's tasks; one without a sign of life is shown as orphaned, but may come back."""
        if self._root is None:
            return ()
        now = self._clock.now()
        return tuple(orphan_if_silent(task, now, after=_ORPHANED_AFTER) for task in await self._root.all())


def _check_start(kind: object, title: object, work: object, seconds: object) -> None:
    """Check what types can't. Raises `InvalidSetting`."""
    if kind not in get_args(TaskType):
        raise InvalidSetting(f"A task is of the type {', '.join(get_args(TaskType))}, not {kind!r}.")
    if not isinstance(title, str) or not title.strip():
        raise InvalidSetting(f"The title of a task is a text that tells what it is about, not {title!r}.")
    if not callable(work):
        raise InvalidSetting(f"The work of a task is a function that takes a report, not {work!r}.")
    _check_seconds(seconds)
    if seconds is not None and not seconds:
        raise InvalidSetting("A task works for a number of seconds above 0, or for any time, not 0.")


def _check_seconds(seconds: object) -> None:
    if seconds is None:
        return
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds >= 0:
        raise InvalidSetting(f"Seconds are a number from 0 on, or None for no limit, not {seconds!r}.")


def _check_id(task_id: object) -> None:
    if not isinstance(task_id, str):
        raise InvalidSetting(f"The id of a task is a text, not {task_id!r}.")
