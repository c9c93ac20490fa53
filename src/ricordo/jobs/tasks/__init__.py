"""Tasks: background work of an agent, the records of tasks in files, and the list of all tasks."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.jobs.tasks.contract import ReportProgress, Task, TaskProgress, TaskState, TaskStore, TaskType, TaskWork
    from ricordo.jobs.tasks.runner import TaskPace, TaskRunner, track_task
    from ricordo.jobs.tasks.store import (
        FileTaskStore,
        MemoryTaskStore,
        ReadOnlyTaskStore,
        TaskListing,
        find_task,
        list_tasks,
        request_stop,
    )

__all__ = [
    "FileTaskStore",
    "MemoryTaskStore",
    "ReadOnlyTaskStore",
    "ReportProgress",
    "Task",
    "TaskListing",
    "TaskPace",
    "TaskProgress",
    "TaskRunner",
    "TaskState",
    "TaskStore",
    "TaskType",
    "TaskWork",
    "find_task",
    "list_tasks",
    "request_stop",
    "track_task",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".contract": "ReportProgress Task TaskProgress TaskState TaskStore TaskType TaskWork",
        ".runner": "TaskPace TaskRunner track_task",
        ".store": "FileTaskStore MemoryTaskStore ReadOnlyTaskStore TaskListing find_task list_tasks request_stop",
    },
)
