"""Jobs: the durable queue of work that must not hold up a turn, its worker, and background tasks of agents."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.jobs.contract import InboxConfig, Job, JobOutcome, JobQueue, JobRecord, JobState, Lease
    from ricordo.jobs.inbox import Inbox
    from ricordo.jobs.runs import BackgroundRun, list_background_runs, read_background_runs
    from ricordo.jobs.tasks import ReportProgress, TaskState
    from ricordo.jobs.tasks.codec import TaskDocument, decode_tasks, encode_tasks
    from ricordo.jobs.tasks.contract import Task, TaskProgress, complete_task
    from ricordo.jobs.tasks.runner import TaskPace, TaskRunner
    from ricordo.jobs.tasks.store import FileTaskStore, MemoryTaskStore

__all__ = [
    "BackgroundRun",
    "FileTaskStore",
    "Inbox",
    "InboxConfig",
    "Job",
    "JobOutcome",
    "JobQueue",
    "JobRecord",
    "JobState",
    "Lease",
    "MemoryTaskStore",
    "ReportProgress",
    "Task",
    "TaskDocument",
    "TaskPace",
    "TaskProgress",
    "TaskRunner",
    "TaskState",
    "complete_task",
    "decode_tasks",
    "encode_tasks",
    "list_background_runs",
    "read_background_runs",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".contract": "InboxConfig Job JobOutcome JobQueue JobRecord JobState Lease",
        ".inbox": "Inbox",
        ".runs": "BackgroundRun list_background_runs read_background_runs",
        ".tasks": "ReportProgress TaskState",
        ".tasks.codec": "TaskDocument decode_tasks encode_tasks",
        ".tasks.contract": "Task TaskProgress complete_task",
        ".tasks.runner": "TaskPace TaskRunner",
        ".tasks.store": "FileTaskStore MemoryTaskStore",
    },
)
