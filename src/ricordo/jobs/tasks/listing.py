"""The list of all tasks of a root, whoever runs them, read from the documents of the workspace.

Invariant: listing changes nothing; a task without heartbeats is shown as orphaned, but its record is not changed. A
document that can't be read hides no other.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, InvalidMessage, StorageError, TaskNotFound
from ricordo.guard.redact import Redactor
from ricordo.jobs.tasks.codec import decode_tasks
from ricordo.jobs.tasks.contract import Task
from ricordo.jobs.tasks.store import FileTaskStore, is_not_a_file
from ricordo.jobs.tasks.transitions import find_by_id, orphan_if_silent, request_cancel, sort_by_creation
from ricordo.lazy import dataclass, lazy_compile
from ricordo.scope import encode_folder_name
from ricordo.storage import FileStore
from ricordo.workspace.layout import ROOT_TASKS, WORKSPACE, parse_record_path, tasks_path

__all__ = ["TaskListing", "find_blocked_paths", "find_task", "list_tasks", "request_stop"]


_AGENTS = f"{WORKSPACE}/agents"
_BELOW_DOCUMENT = lazy_compile(rf"({_AGENTS}/[^/]+/tasks/[^/]+\.json)/.+")
_TASKS_FOLDER = lazy_compile(rf"{_AGENTS}(?:/[^/]+(?:/tasks)?)?")


@dataclass(frozen=True, kw_only=True)
class TaskListing:
    """The tasks of a root, newest first, and the paths of unreadable documents and folders, sorted."""

    tasks: tuple[Task, ...] = ()
    unreadable: tuple[str, ...] = ()


async def list_tasks(
    files: FileStore,
    *,
    agent: str | None = None,
    session: str | None = None,
    user: str | None = None,
    now: datetime,
) -> TaskListing:
    """Return the tasks of the root, newest first; those without heartbeats are shown as orphaned.

    With an `agent` or a `session`, only their tasks are returned, without those of the whole root; with a `user`, only
    the tasks of that user and those without a user.
    """
    found: list[Task] = []
    unreadable: list[str] = []
    for path, tasks in await _read_documents(files, agent, session):
        if tasks is None:
            unreadable.append(path)
        else:
            found += [orphan_if_silent(task, now) for task in tasks if user is None or task.user in {"", user}]
    return TaskListing(tasks=sort_by_creation(found)[::-1], unreadable=tuple(sorted(unreadable)))


async def find_task(files: FileStore, task_id: str) -> tuple[str, Task]:
    """Return the task with this id, or the only one whose id begins or ends with it, and the path of its document.

    At least six characters are required. Raises: TaskNotFound; InvalidQuery if there is more than one.
    """
    paths: dict[str, str] = {}
    found: list[Task] = []
    unreadable = 0
    for path, tasks in await _read_documents(files, None, None):
        unreadable += tasks is None
        for task in tasks or ():
            found.append(task)
            paths[task.id] = path
    try:
        task = find_by_id(found, task_id)
    except TaskNotFound as error:
        if unreadable:
            raise TaskNotFound(f"{error} {unreadable} of the documents can't be read.") from error
        raise
    return paths[task.id], task


async def request_stop(files: FileStore, redactor: Redactor, task_id: str, *, now: datetime) -> Task:
    """Request that a task stops, which its process notices, and return the updated task.

    A task without a running process is cancelled at once; one that has ended is not changed. Raises: as `find_task`;
    StorageError.
    """
    path, task = await find_task(files, task_id)
    return await FileTaskStore(files, path, redactor).update(task.id, lambda found: request_cancel(found, now))


async def find_blocked_paths(files: FileStore, paths: Sequence[str]) -> list[str]:
    """Return the paths of task documents where something other than a file is, such as a folder, sorted.

    `paths` are the files of the agents: each session that they name may have a document, and so may the root.
    """
    places = {ROOT_TASKS}
    for path in paths:
        if below := _BELOW_DOCUMENT.fullmatch(path):
            places.add(below[1])
        record = parse_record_path(path)
        if record is not None and record.kind in {"state", "transcript"} and not record.is_set_aside:
            with suppress(InvalidMessage):
                name = tasks_path("any", record.session).rpartition("/")[2]
                places.add(f"{_AGENTS}/{record.folder}/tasks/{name}")
    return [place for place in sorted(places.difference(paths)) if await _is_blocked(files, place)]


async def _is_blocked(files: FileStore, path: str) -> bool:
    try:
        return await is_not_a_file(files, path)
    except StorageError:
        return False


async def _read_documents(
    files: FileStore, agent: str | None, session: str | None
) -> list[tuple[str, tuple[Task, ...] | None]]:
    """Return the documents with their tasks, None for those that can't be read."""
    closed = await files.list_unreadable(_AGENTS)
    found: list[tuple[str, tuple[Task, ...] | None]] = [
        (path, None) for path in closed if _TASKS_FOLDER.fullmatch(path)
    ]
    paths = [info.path for info in await files.list(_AGENTS)]
    root = [ROOT_TASKS] if agent is None and session is None else []
    others = [
        path for path in await find_blocked_paths(files, paths) if path in root or _is_wanted(path, agent, session)
    ]
    found += [(path, None) for path in others]
    for path in [*filter(lambda path: _is_wanted(path, agent, session), paths), *root]:
        try:
            stored = await files.read(path)
            found.append((path, (await run_sync(decode_tasks, stored.data)).tasks))
        except FileMissing:
            continue
        except StorageError:
            found.append((path, None))
    return found


def _is_wanted(path: str, agent: str | None, session: str | None) -> bool:
    record = parse_record_path(path)
    if record is None or record.kind != "tasks" or record.is_set_aside:
        return False
    return (agent is None or record.folder == encode_folder_name(agent)) and session in {None, record.session}
