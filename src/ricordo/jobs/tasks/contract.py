"""Task: a piece of work in the background, as its record says it, for whoever wants to see it or to stop it.

The record is in a file of the workspace before the work begins, so what a killed process was doing is known.

Invariants: a task that ended stays as it ended; one whose process gives no sign of life becomes `orphaned`, which only
its own end can change; a record that can't be read is never written over.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from ricordo.messages import JsonValue

__all__ = ["ReportProgress", "Task", "TaskProgress", "TaskState", "TaskStore", "TaskType", "TaskWork"]


TaskType: TypeAlias = Literal["local_bash", "local_agent", "remote_agent", "dream"]
"""A command, a sub-agent of this process, one that runs elsewhere, a consolidation of memory."""
TaskState: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled", "orphaned"]


@dataclass(frozen=True, kw_only=True)
class TaskProgress:
    """How far a task is: `done` of `total` steps (None when nobody knows how many), and in words what it does."""

    done: int = 0
    total: int | None = None
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task: `title` says what it is about, `worker` names the sub-agent that does it.

    `agent` and `session` are those it works for, `user` whose they are; all empty for the work of the whole root.
    `seen` is its last sign of life. `result` is there when it is completed, `error` when it failed, was cancelled or
    orphaned. `cancelling` tells that somebody wants it to stop. `extra` holds fields of other versions.
    """

    id: str
    type: TaskType
    title: str
    state: TaskState = "pending"
    worker: str = ""
    agent: str = ""
    session: str = ""
    user: str = ""
    created: datetime
    seen: datetime
    ended: datetime | None = None
    progress: TaskProgress = field(default_factory=TaskProgress)
    result: str = ""
    error: str = ""
    cancelling: bool = False
    extra: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether it is in a state that no further work changes; an orphaned one may still come back and end."""
        return self.state in {"completed", "failed", "cancelled"}


ReportProgress: TypeAlias = Callable[[TaskProgress], None]
"""Tells how far a task is. It costs next to nothing and may be called at any rate: records are written now and then."""
TaskWork: TypeAlias = Callable[[ReportProgress], Awaitable[str]]
"""What a task does; it returns its result. What it raises is the task's failure."""


class TaskStore(Protocol):
    """The tasks of one session of an agent, or of a root."""

    async def all(self) -> tuple[Task, ...]:
        """Return every task, oldest first. Raises: DocumentInvalid for a record that can't be read."""
        ...

    async def get(self, task_id: str) -> Task:
        """Return the task with this whole id; cheap while nothing changes, so it may be asked every second.

        Raises: TaskNotFound; DocumentInvalid for a record that can't be read.
        """
        ...

    async def add(self, task: Task) -> None:
        """Add a task durably. Raises: AlreadyExists for an id that there is; StorageError."""
        ...

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        """Go on with what `change` makes of a task, durably, and return it as it is then.

        A task that has ended stays as it is, whatever `change` says. Raises: TaskNotFound; StorageError.
        """
        ...
