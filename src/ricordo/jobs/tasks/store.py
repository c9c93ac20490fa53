"""Task stores: a document of the workspace that many processes write, a store in memory, and a read-only one.

Each change replaces the version on which it is based. Secrets are replaced before anything is written or cut.

Invariants: a document that can't be read is copied to another name before it is overwritten, and each process adds its
own tasks again, so no task of a live process is lost. If the path is not a file, it is left unchanged.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from secrets import randbelow

import anyio
from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.errors import (
    AlreadyExists,
    DocumentInvalid,
    FileMissing,
    InvalidMessage,
    StorageBusy,
    StorageError,
    StorageReadOnly,
    TaskNotFound,
    VersionConflict,
)
from ricordo.guard.redact import Redactor
from ricordo.jobs.tasks.codec import TaskDocument, decode_tasks, encode_tasks
from ricordo.jobs.tasks.contract import (
    ORPHANED_AFTER,
    Task,
    TaskStore,
    apply_change,
    drop_oldest_ended,
    find_by_id,
    orphan_if_silent,
    request_cancel,
    sort_by_creation,
    truncate_task,
)
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.json_text import require_object
from ricordo.scope import encode_folder_name
from ricordo.storage import ABSENT, FileInfo, FileStore, StoredFile
from ricordo.storage.contract import quarantine_document
from ricordo.workspace.layout import ROOT_TASKS, WORKSPACE, parse_record_path, tasks_path

__all__ = [
    "FileTaskStore",
    "MemoryTaskStore",
    "ReadOnlyTaskStore",
    "TaskListing",
    "find_blocked_paths",
    "find_task",
    "is_not_a_file",
    "list_tasks",
    "request_stop",
]


_MAX_TRIES = 200
_MAX_PAUSE_MS = 40
_LOG = logging.getLogger("ricordo.tasks")


@dataclass(frozen=True, kw_only=True)
class _StoredTasks:
    """A document as it was read; `broken` holds the bytes of one that could not be decoded."""

    document: TaskDocument
    version: str
    broken: StoredFile | None = None


class FileTaskStore:
    """The tasks in the document at `path`, of one session or of a root.

    `quarantined_as` is the new name of the last document that could not be read, empty if there was none.
    """

    quarantined_as: str

    def __init__(self, files: FileStore, path: str, redactor: Redactor) -> None:
        """Read and write through `files`, and remove secrets with `redactor`."""
        self.quarantined_as = ""
        self._files = files
        self._path = path
        self._redactor = redactor
        self._last = TaskDocument()
        self._own: dict[str, Task] = {}
        self._seen: FileInfo | None = None
        self._write_lock = anyio.Lock()

    async def all(self) -> tuple[Task, ...]:
        """Return every task, oldest first. Raises: DocumentInvalid for a document that can't be read."""
        found = await self._read()
        if found.broken is not None:
            raise DocumentInvalid(f"The tasks in {self._path} can't be read; the file is left as it is.")
        return sort_by_creation(found.document.tasks)

    async def get(self, task_id: str) -> Task:
        """Return the task with this full id; the document is read only if its size or time changed.

        Two changes of other processes within one tick of the disk's clock that keep the size may be missed until the
        next update. Raises: TaskNotFound; DocumentInvalid for a document that can't be read.
        """
        info = await self._files.info(self._path)
        if info is None or info != self._seen:
            await self.all()
            self._seen = info
        return _get_task(self._with_own_tasks(self._last).tasks, task_id)

    async def add(self, task: Task) -> None:
        """Add a task durably. Raises: AlreadyExists for an existing id; StorageError."""

        def append_new(tasks: Sequence[Task]) -> Task:
            if any(each.id == task.id for each in tasks):
                raise AlreadyExists(f"There is a task {task.id} already.")
            return task

        new = await self._apply_change(append_new)
        if not new.has_ended:
            self._own[new.id] = new

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        """Replace a task durably by the result of `change`, and return the stored task.

        A task that has ended is not changed. Raises: TaskNotFound; DocumentInvalid if the document can't be read and
        the task is not known here; StorageError.
        """
        return await self._apply_change(lambda tasks: apply_change(_get_task(tasks, task_id), change))

    async def _apply_change(self, change: Callable[[Sequence[Task]], Task]) -> Task:
        """Write the task that `change` returns for the current tasks, and return it as written."""
        async with self._write_lock:
            for tried in range(_MAX_TRIES):
                found = await self._read()
                try:
                    return await self._write_change(found, change)
                except VersionConflict:
                    # another process was faster; a random pause avoids meeting it again
                    await anyio.sleep(randbelow(min(2 + tried, _MAX_PAUSE_MS)) / 1000)
        raise StorageBusy(f"{self._path} was changed by others each time it was to be written.")

    async def _write_change(self, found: _StoredTasks, change: Callable[[Sequence[Task]], Task]) -> Task:
        before = self._with_own_tasks(found.document)
        try:
            new = change(before.tasks)
        except TaskNotFound as error:
            if found.broken is None:
                raise
            raise DocumentInvalid(f"The tasks in {self._path} can't be read; the file is left as it is.") from error
        if any(new is each for each in found.document.tasks) and found.broken is None:
            return new
        new = await run_sync(_redact_task, new, self._redactor)
        tasks = sort_by_creation(({each.id: each for each in before.tasks} | {new.id: new}).values())
        after = replace(before, tasks=drop_oldest_ended(tasks))
        data = await run_sync(encode_tasks, after)
        if found.broken is not None:
            self.quarantined_as = await quarantine_document(self._files, self._path, found.broken)
            _LOG.warning("%s can't be read; it was kept as %s", self._path, self.quarantined_as)
        await self._files.replace(self._path, data, expected=found.version)
        self._remember_tasks(after)
        return new

    async def _read(self) -> _StoredTasks:
        """Read the document; for one that can't be read, use the last one that was read or written."""
        try:
            stored = await self._files.read(self._path)
        except FileMissing as error:
            if await is_not_a_file(self._files, self._path):
                raise DocumentInvalid(f"{self._path} is no file, so there are no tasks to be read or kept.") from error
            self._remember_tasks(TaskDocument())
            return _StoredTasks(document=TaskDocument(), version=ABSENT)
        try:
            document = await run_sync(decode_tasks, stored.data)
        except DocumentInvalid:
            return _StoredTasks(document=self._last, version=stored.version, broken=stored)
        self._remember_tasks(document)
        return _StoredTasks(document=document, version=stored.version)

    def _with_own_tasks(self, document: TaskDocument) -> TaskDocument:
        """Return `document` with the tasks of this process that it lacks."""
        there = {task.id for task in document.tasks}
        lost = tuple(task for task in self._own.values() if task.id not in there)
        return replace(document, tasks=document.tasks + lost)

    def _remember_tasks(self, document: TaskDocument) -> None:
        self._last = document
        for task in document.tasks:
            if task.id in self._own:
                self._own[task.id] = task
        self._own = {task.id: task for task in self._own.values() if not task.has_ended}


async def is_not_a_file(files: FileStore, path: str) -> bool:
    """Return whether the path exists but is not a file, such as a folder. Raises: StorageError."""
    if await files.info(path) is None:
        return False
    try:
        await files.read_from(path, 0, 0)
    except FileMissing:
        # the file may have been removed between the two calls
        return await files.info(path) is not None
    return False


def _get_task(tasks: Sequence[Task], task_id: str) -> Task:
    found = next((task for task in tasks if task.id == task_id), None)
    if found is None:
        raise TaskNotFound(f"No task has the id {task_id[:60]!r}: `ricordo tasks` shows the ids.")
    return found


def _redact_task(task: Task, redactor: Redactor) -> Task:
    """Return `task` with typed marks in place of secrets, and then truncated."""
    return truncate_task(
        replace(
            task,
            title=redactor.clean(task.title),
            worker=redactor.clean(task.worker),
            result=redactor.clean(task.result),
            error=redactor.clean(task.error),
            progress=replace(task.progress, text=redactor.clean(task.progress.text)),
            extra=require_object(redactor.clean_json({**task.extra}), "extra"),
        )
    )


class MemoryTaskStore:
    """The tasks of one session in a dictionary; the same contract as in a file, except durability and secrets."""

    def __init__(self) -> None:
        """Start without tasks."""
        self._tasks: dict[str, Task] = {}

    async def all(self) -> tuple[Task, ...]:
        """Return every task, oldest first."""
        return sort_by_creation(tuple(self._tasks.values()))

    async def get(self, task_id: str) -> Task:
        """Return the task with this full id. Raises: TaskNotFound."""
        if task_id not in self._tasks:
            raise TaskNotFound
        return self._tasks[task_id]

    async def add(self, task: Task) -> None:
        """Add a task. Raises: AlreadyExists for an existing id."""
        if task.id in self._tasks:
            raise AlreadyExists(f"There is a task {task.id} already.")
        self._store_task(task)

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        """Replace a task by the result of `change` and return it; an ended one is not changed. Raises: TaskNotFound."""
        new = truncate_task(apply_change(await self.get(task_id), change))
        self._store_task(new)
        return new

    def _store_task(self, task: Task) -> None:
        self._tasks[task.id] = truncate_task(task)
        self._tasks = {each.id: each for each in drop_oldest_ended(tuple(self._tasks.values()))}


class ReadOnlyTaskStore:
    """The tasks of `recorded`, which are read-only, and those of this process, in memory."""

    def __init__(self, recorded: TaskStore, *, clock: Clock, orphaned_after: timedelta = ORPHANED_AFTER) -> None:
        """Start with the recorded tasks."""
        self._recorded = recorded
        self._own = MemoryTaskStore()
        self._clock = clock
        self._after = orphaned_after

    async def all(self) -> tuple[Task, ...]:
        """Return every task, oldest first; a recorded one without heartbeats is shown as orphaned.

        Raises: DocumentInvalid for a record that can't be read.
        """
        now = self._clock.now()
        recorded = [orphan_if_silent(task, now, after=self._after) for task in await self._recorded.all()]
        return sort_by_creation([*recorded, *await self._own.all()])

    async def get(self, task_id: str) -> Task:
        """Return the task with this full id. Raises: TaskNotFound; DocumentInvalid."""
        try:
            return await self._own.get(task_id)
        except TaskNotFound:
            return orphan_if_silent(await self._recorded.get(task_id), self._clock.now(), after=self._after)

    async def add(self, task: Task) -> None:
        """Add a task that ends with the process. Raises: AlreadyExists for an existing id of this process."""
        await self._own.add(task)

    async def update(self, task_id: str, change: Callable[[Task], Task]) -> Task:
        """Replace a task of this process by the result of `change`, and return it.

        Raises: TaskNotFound; DocumentInvalid; StorageReadOnly for a recorded task that would change.
        """
        try:
            return await self._own.update(task_id, change)
        except TaskNotFound:
            task = await self.get(task_id)
        if apply_change(task, change) is not task:
            raise StorageReadOnly("The record of this task can't be written to, so it stays as it is.")
        return task


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
