"""Tasks: work in the background of an agent, its record in a file, and the one list of all of it."""

from ricordo.tasks.contract import TaskProgress, ReportProgress, Task, TaskState, TaskStore, TaskType, TaskWork
from ricordo.tasks.files import FileTaskStore
from ricordo.tasks.in_memory import MemoryTaskStore
from ricordo.tasks.keeping import TaskPace, track_task
from ricordo.tasks.listing import TaskListing, request_stop, find_task, list_tasks
from ricordo.tasks.read_only import ReadOnlyTaskStore
from ricordo.tasks.runner import TaskRunner

__all__ = [
    "FileTaskStore",
    "TaskListing",
    "MemoryTaskStore",
    "TaskProgress",
    "ReadOnlyTaskStore",
    "ReportProgress",
    "Task",
    "TaskPace",
    "TaskRunner",
    "TaskState",
    "TaskStore",
    "TaskType",
    "TaskWork",
    "request_stop",
    "find_task",
    "list_tasks",
    "track_task",
]
