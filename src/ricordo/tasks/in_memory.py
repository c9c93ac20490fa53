"""Tasks in this process's memory, for tests and for work that must leave no trace."""

from collections.abc import Callable

from ricordo.errors import AlreadyExists, TaskNotFound
from ricordo.tasks.contract import Task
from ricordo.tasks.plan import apply_change, truncate_task, drop_oldest_ended, sort_by_creation

__all__ = ["MemoryTaskStore"]


class MemoryTaskStore:
    """The tasks of one session in a dictionary; the same contract as in a file, but for durability and secrets."""

    def __init__(self) -> None:
        """Start with no task."""
        self._tasks: dict[str, Task] = {}

    async def all(self) -> tuple[Task, ...]:
        """Return every task, oldest first."""
        return sort_by_creation(tuple(self._tasks.values()))

    async def get(self, task_id: str) -> Task:
        """Return the task with this whole id. Raises: TaskNotFound."""
        if task_id not in self._tasks:
            raise TaskNotFound
        return self._tasks[task_id]

    async def add(self, task: Task) -> None:
        """Add a task. Raises: AlreadyExists for an id that there is."""
        if task.id in self._tasks:
            raise AlreadyExists(f"There is a task {task.id} already.")
        self._store_task(task)

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        """Go on with what `change` makes of a task and return it; one that has ended stays. Raises: TaskNotFound."""
        new = truncate_task(apply_change(await self.get(task_id), change))
        self._store_task(new)
        return new

    def _store_task(self, task: Task) -> None:
        self._tasks[task.id] = truncate_task(task)
        self._tasks = {each.id: each for each in drop_oldest_ended(tuple(self._tasks.values()))}
