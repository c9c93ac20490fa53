"""Tasks: work in the background of an agent, its record in a file, and the one list of all of it."""

from ricordo.tasks.contract import Progress, Report, Task, TaskState, TaskStore, TaskType, Work
from ricordo.tasks.files import FileTasks
from ricordo.tasks.in_memory import MemoryTasks
from ricordo.tasks.keeping import TaskPace, tracked
from ricordo.tasks.listing import Listed, ask_to_stop, find_task, list_tasks
from ricordo.tasks.read_only import ReadOnlyTasks
from ricordo.tasks.runner import TaskRunner

__all__ = [
    "FileTasks",
    "Listed",
    "MemoryTasks",
    "Progress",
    "ReadOnlyTasks",
    "Report",
    "Task",
    "TaskPace",
    "TaskRunner",
    "TaskState",
    "TaskStore",
    "TaskType",
    "Work",
    "ask_to_stop",
    "find_task",
    "list_tasks",
    "tracked",
]
