"""Tasks of a session whose records can only be read: those recorded are shown, and new ones are in memory.

Invariant: nothing is written to what is recorded, and nobody is told that a recorded task was changed.
"""

from collections.abc import Callable
from datetime import timedelta

from ricordo.clock import Clock
from ricordo.errors import StorageReadOnly, TaskNotFound
from ricordo.tasks.contract import Task, TaskStore
from ricordo.tasks.in_memory import MemoryTaskStore
from ricordo.tasks.plan import ORPHANED_AFTER, apply_change, sort_by_creation, orphan_if_silent

__all__ = ["ReadOnlyTaskStore"]


class ReadOnlyTaskStore:
    """The tasks in `recorded`, and those of this process."""

    def __init__(self, recorded: TaskStore, *, clock: Clock, orphaned_after: timedelta = ORPHANED_AFTER) -> None:
        """Begin with what is recorded."""
        self._recorded = recorded
        self._own = MemoryTaskStore()
        self._clock = clock
        self._after = orphaned_after

    async def all(self) -> tuple[Task, ...]:
        """Return every task, oldest first; a recorded one without a sign of life is shown as orphaned.

        Raises: DocumentInvalid for a record that can't be read.
        """
        now = self._clock.now()
        recorded = [orphan_if_silent(task, now, after=self._after) for task in await self._recorded.all()]
        return sort_by_creation([*recorded, *await self._own.all()])

    async def get(self, task_id: str) -> Task:
        """Return the task with this whole id. Raises: TaskNotFound; DocumentInvalid."""
        try:
            return await self._own.get(task_id)
        except TaskNotFound:
            return orphan_if_silent(await self._recorded.get(task_id), self._clock.now(), after=self._after)

    async def add(self, task: Task) -> None:
        """Add a task that ends with the process. Raises: AlreadyExists for an id that there is here."""
        await self._own.add(task)

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        """Go on with what `change` makes of a task of this process, and return it as it is then.

        Raises: TaskNotFound; DocumentInvalid; StorageReadOnly for a recorded task that would change.
        """
        try:
            return await self._own.update(task_id, change)
        except TaskNotFound:
            task = await self.get(task_id)
        if apply_change(task, change) is not task:
            raise StorageReadOnly("The record of this task can't be written to, so it stays as it is.")
        return task
