"""Tasks: the record of a piece of background work, for everyone who wants to see or stop it, and its transitions.

The record is in a file of the workspace before the work begins, so the work of a killed process is known. The
transitions are pure functions that all stores and runners share.

Invariants: a task that ended never changes. A task whose process sends no heartbeats becomes `orphaned`, and only its
own end changes that. A running one never becomes pending again. `id`, `type` and `created` never change, `seen` never
goes backwards, and a stop request is not withdrawn. A record that can't be read is never overwritten. Only
`truncate_task` cuts texts; a store calls it after it removed the secrets.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeAlias

from ricordo.errors import InvalidQuery, TaskNotFound
from ricordo.guard.redact import cut
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue

__all__ = [
    "MAX_ERROR",
    "MAX_RESULT",
    "MAX_TASKS",
    "MAX_TITLE",
    "ORPHANED_AFTER",
    "ReportProgress",
    "Task",
    "TaskProgress",
    "TaskState",
    "TaskStore",
    "TaskType",
    "TaskWork",
    "apply_change",
    "cancel_task",
    "complete_task",
    "drop_oldest_ended",
    "fail_task",
    "find_by_id",
    "find_orphans",
    "orphan_if_silent",
    "record_heartbeat",
    "request_cancel",
    "sort_by_creation",
    "truncate_task",
]


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

    `agent` and `session` are those it works for, `user` is their user; all are empty for work of the whole root.
    `last_seen_at` is the time of its last heartbeat. `result` is set if it completed, `error` if it failed, was
    cancelled or orphaned. `cancelling` is true if somebody requested to stop it. `extra` holds fields of other
    versions.
    """

    id: str
    type: TaskType
    title: str
    state: TaskState = "pending"
    worker: str = ""
    agent: str = ""
    session: str = ""
    user: str = ""
    created_at: datetime
    last_seen_at: datetime
    ended_at: datetime | None = None
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


ORPHANED_AFTER = timedelta(minutes=10)
"""How long a task may go without a heartbeat."""
MAX_TASKS = 200
"""The maximum number of tasks in a document, unless more than this have not ended."""
MAX_TITLE = 80
"""The maximum number of characters of a title."""
MAX_RESULT = 100_000
"""The maximum number of characters of a result."""
MAX_ERROR = 2_000
"""The maximum number of characters of an error."""
MIN_ID_PART = 6
"""The minimum number of characters of a partial id."""
_PROCESS = lazy_compile(r"\bprocess \d+")


def apply_change(task: Task, change: Callable[[Task], Task]) -> Task:
    """Return the result of `change`, restricted to valid transitions; `task` itself if nothing changes."""
    if task.has_ended:
        return task
    new = change(task)
    new = replace(
        new,
        id=task.id,
        type=task.type,
        created_at=task.created_at,
        last_seen_at=max(task.last_seen_at, new.last_seen_at),
        cancelling=task.cancelling or new.cancelling,
    )
    if not new.has_ended:
        new = _restrict_transition(task, new)
    elif new.ended_at is None:
        new = replace(new, ended_at=new.last_seen_at)
    return task if new == task else new


def record_heartbeat(task: Task, now: datetime, *, progress: TaskProgress, works: bool) -> Task:
    """Return `task` with a heartbeat; with `works`, a pending task becomes running."""
    state: TaskState = "running" if works and task.state == "pending" else task.state
    return replace(task, state=state, last_seen_at=now, progress=progress)


def complete_task(task: Task, result: str, now: datetime) -> Task:
    """Return `task` completed with `result`."""
    return replace(task, state="completed", result=result, error="", last_seen_at=now, ended_at=now)


def fail_task(task: Task, error: str, now: datetime) -> Task:
    """Return `task` failed with `error`."""
    return replace(task, state="failed", error=error, last_seen_at=now, ended_at=now)


def cancel_task(task: Task, why: str, now: datetime) -> Task:
    """Return `task` cancelled, with `why` as its error."""
    return replace(task, state="cancelled", error=why, last_seen_at=now, ended_at=now)


def orphan_if_silent(task: Task, now: datetime, *, after: timedelta = ORPHANED_AFTER) -> Task:
    """Return `task`, as orphaned if it has not ended and had no heartbeat for `after` or longer."""
    if task.state not in {"pending", "running"} or now - task.last_seen_at < after:
        return task
    gone = "It gives no sign of life: the process that ran it is gone."
    return replace(task, state="orphaned", error=f"{gone}{_describe_leftover(task)}")


def request_cancel(task: Task, now: datetime, *, after: timedelta = ORPHANED_AFTER) -> Task:
    """Return `task` after a stop request of someone who does not run it.

    A task whose process is gone is cancelled at once; any other is asked to stop, which its process notices.
    """
    if task.has_ended:
        return task
    if orphan_if_silent(task, now, after=after).state == "orphaned":
        return cancel_task(task, f"It was cancelled after its process was gone.{_describe_leftover(task)}", now)
    return replace(task, cancelling=True)


def find_orphans(tasks: Sequence[Task], now: datetime, *, after: timedelta = ORPHANED_AFTER) -> tuple[Task, ...]:
    """Return the tasks without a heartbeat for `after` or longer, as orphaned, without those that already were."""
    return tuple(new for task in tasks if (new := orphan_if_silent(task, now, after=after)) is not task)


def drop_oldest_ended(tasks: Sequence[Task], most: int = MAX_TASKS) -> tuple[Task, ...]:
    """Return at most `most` tasks in order: those that ended first are dropped, those that have not ended never."""
    ended = sorted(
        (task for task in tasks if task.has_ended), key=lambda task: (task.ended_at or task.last_seen_at, task.id)
    )
    leaving = {task.id for task in ended[: max(0, len(tasks) - most)]}
    return tuple(task for task in tasks if task.id not in leaving)


def truncate_task(task: Task) -> Task:
    """Return `task` with a result of at most 100,000 characters, including the notice that it was cut.

    Its title is cut to 80 characters, its error to 2,000.
    """
    title, error, result = task.title, cut(task.error, MAX_ERROR), task.result
    if len(title) > MAX_TITLE:
        title = f"{cut(title, MAX_TITLE - 1).rstrip()}…"
    if len(result) > MAX_RESULT:
        notice = f"\n[cut: the result had {len(result):,} characters]"
        result = cut(result, MAX_RESULT - len(notice)) + notice
    new = replace(task, title=title, error=error, result=result)
    return task if new == task else new


def sort_by_creation(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return the tasks sorted by creation time."""
    return tuple(sorted(tasks, key=lambda task: (task.created_at, task.id)))


def find_by_id(tasks: Sequence[Task], wanted: str) -> Task:
    """Return the task with this id, or the only one whose id begins or ends with these six or more characters.

    Raises: TaskNotFound; InvalidQuery if there is more than one.
    """
    part = wanted if len(wanted) >= MIN_ID_PART else None
    found = [task for task in tasks if task.id == wanted]
    found = found or [task for task in tasks if part and (task.id.startswith(part) or task.id.endswith(part))]
    if not found:
        raise TaskNotFound(f"No task has the id {wanted[:60]!r}: `ricordo tasks` shows the ids.")
    if len(found) > 1:
        raise InvalidQuery(f"{len(found)} tasks have ids that begin or end with {wanted[:60]}: write more of the id.")
    return found[0]


def _describe_leftover(task: Task) -> str:
    """Return a text on processes that a task may have left running; empty if it surely left none."""
    if task.type != "local_bash" or task.state == "pending":
        return ""
    process = _PROCESS.search(task.progress.text)
    return f" Its command may still run{f' as {process[0]}' if process else ''}."


def _restrict_transition(task: Task, new: Task) -> Task:
    """Return `new` with a state that may follow that of `task`, and without an end time."""
    if task.state == "orphaned" or (task.state == "running" and new.state == "pending"):
        new = replace(new, state=task.state, error=task.error)
    return replace(new, ended_at=None)
