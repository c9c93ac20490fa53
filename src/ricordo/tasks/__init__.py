"""Tasks: work in the background of an agent, its record in a file, and the one list of all of it."""

from ricordo.tasks.contract import Progress, Report, Task, TaskState, TaskStore, TaskType, Work

__all__ = ["Progress", "Report", "Task", "TaskState", "TaskStore", "TaskType", "Work"]
