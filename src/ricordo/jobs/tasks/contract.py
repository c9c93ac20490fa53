"""Tasks: the record of a piece of background work, for everyone who wants to see or stop it.

The record is in a file of the workspace before the work begins, so the work of a killed process is known.

Invariants: a task that ended never changes. A task whose process sends no heartbeats becomes `orphaned`, and only its
own end changes that. A record that can't be read is never overwritten.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from ricordo.lazy import dataclass
from ricordo.messages import JsonValue

__all__ = ["ReportProgress", "Task", "TaskProgress", "TaskState", "TaskStore", "TaskType", "TaskWork"]


TaskType: TypeAlias = Literal["local_bash", "local_agent", "remote_agent", "dream"]
"""A command, a sub-agent of this process, a remote sub-agent, or a consolidation of memory."""
TaskState: TypeAlias = Literal["pending", "running", "completed", "failed", "cancelled", "orphaned"]


@dataclass(frozen=True, kw_only=True)
class TaskProgress:
    """The progress of a task: `done` of `total` steps (None if unknown), and a description in words."""

    done: int = 0
    total: int | None = None
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task: `title` describes it, `worker` names the sub-agent that does it.

    `agent` and `session` are those it works for, `user` is their user; all are empty for work of the whole root. `seen`
    is the time of its last heartbeat. `result` is set if it completed, `error` if it failed, was cancelled or orphaned.
    `cancelling` is true if somebody requested to stop it. `extra` holds fields of other versions.
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
        """Whether its state is final; an orphaned task may still resume and end."""
        return self.state in {"completed", "failed", "cancelled"}


ReportProgress: TypeAlias = Callable[[TaskProgress], None]
"""Reports the progress of a task. It is cheap and may be called at any rate: records are written periodically."""
TaskWork: TypeAlias = Callable[[ReportProgress], Awaitable[str]]
"""The work of a task; it returns the result. An exception makes the task fail."""


class TaskStore(Protocol):
    """The tasks of one session of an agent, or of a root."""

    async def all(self) -> tuple[Task, ...]:
        """Return every task, oldest first. Raises: DocumentInvalid for a record that can't be read."""
        ...

    async def get(self, task_id: str) -> Task:
        """Return the task with this full id; cheap while nothing changes, so it may be called every second.

        Raises: TaskNotFound; DocumentInvalid for a record that can't be read.
        """
        ...

    async def add(self, task: Task) -> None:
        """Add a task durably. Raises: AlreadyExists for an existing id; StorageError."""
        ...

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        """Replace a task durably by the result of `change`, and return the stored task.

        A task that has ended is not changed, whatever `change` returns. Raises: TaskNotFound; StorageError.
        """
        ...
