"""The one list: every task of a root, whoever runs it, as the documents of the workspace say.

Invariant: reading changes nothing; a task without a sign of life is shown as orphaned and stays as it was written. One
document that can't be read hides no other.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from anyio.to_thread import run_sync

from ricordo.errors import FileMissing, StorageError, TaskNotFound
from ricordo.files import FileStore
from ricordo.guard.redact import Redactor
from ricordo.scopes import path_part
from ricordo.tasks.codec import decode
from ricordo.tasks.contract import Task
from ricordo.tasks.files import FileTasks
from ricordo.tasks.plan import named, oldest_first, stopped, swept
from ricordo.workspace.layout import ROOT_TASKS, WORKSPACE

__all__ = ["Listed", "ask_to_stop", "find_task", "list_tasks"]

_AGENTS = f"{WORKSPACE}/agents"
_DOCUMENT = re.compile(rf"{_AGENTS}/([^/]+)/tasks/([^/]+)\.json")
_FOLDER = re.compile(rf"{_AGENTS}(?:/[^/]+(?:/tasks)?)?")


@dataclass(frozen=True, kw_only=True)
class Listed:
    """The tasks of a root, newest first, and the paths of the documents and folders that can't be read, sorted."""

    tasks: tuple[Task, ...] = ()
    unreadable: tuple[str, ...] = ()


async def list_tasks(
    files: FileStore,
    *,
    agent: str | None = None,
    session: str | None = None,
    user: str | None = None,
    now: datetime,
) -> Listed:
    """Return the tasks of the root, newest first; those without a sign of life are shown as orphaned.

    With an `agent` or a `session` only theirs, without those of the whole root; with a `user` those of that user and
    of nobody.
    """
    found: list[Task] = []
    unreadable: list[str] = []
    for path, tasks in await _read(files, agent, session):
        if tasks is None:
            unreadable.append(path)
        else:
            found += [swept(task, now) for task in tasks if user is None or task.user in {"", user}]
    return Listed(tasks=oldest_first(found)[::-1], unreadable=tuple(sorted(unreadable)))


async def find_task(files: FileStore, task_id: str) -> tuple[str, Task]:
    """Return the task with this id, or the only one whose id begins or ends so, and the path of its document.

    Six characters are needed at least. Raises: TaskNotFound; InvalidQuery if there is more than one.
    """
    paths: dict[str, str] = {}
    found: list[Task] = []
    unreadable = 0
    for path, tasks in await _read(files, None, None):
        unreadable += tasks is None
        for task in tasks or ():
            found.append(task)
            paths[task.id] = path
    try:
        task = named(found, task_id)
    except TaskNotFound as error:
        if unreadable:
            raise TaskNotFound(f"{error} {unreadable} of the documents can't be read.") from error
        raise
    return paths[task.id], task


async def ask_to_stop(files: FileStore, redactor: Redactor, task_id: str, *, now: datetime) -> Task:
    """Ask a task to stop, which the process that runs it sees, and return it as it is then.

    One that nobody runs any more is cancelled at once, one that ended stays as it is. Raises: as `find_task`;
    StorageError.
    """
    path, task = await find_task(files, task_id)
    return await FileTasks(files, path, redactor).update(task.id, lambda found: stopped(found, now))


async def _read(files: FileStore, agent: str | None, session: str | None) -> list[tuple[str, tuple[Task, ...] | None]]:
    """Return the documents with their tasks, None for what can't be read."""
    closed = await files.unreadable(_AGENTS)
    found: list[tuple[str, tuple[Task, ...] | None]] = [(path, None) for path in closed if _FOLDER.fullmatch(path)]
    listed = [info.path for info in await files.list(_AGENTS) if _is_wanted(info.path, agent, session)]
    for path in [*listed, *([ROOT_TASKS] if agent is None and session is None else [])]:
        try:
            stored = await files.read(path)
            found.append((path, (await run_sync(decode, stored.data)).tasks))
        except FileMissing:
            continue
        except StorageError:
            found.append((path, None))
    return found


def _is_wanted(path: str, agent: str | None, session: str | None) -> bool:
    match = _DOCUMENT.fullmatch(path)
    if match is None:
        return False
    return (agent is None or match[1] == path_part(agent)) and (session is None or match[2] == session)
