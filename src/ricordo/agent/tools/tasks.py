"""task_list, task_output, task_cancel and spawn: background work, as the agent that started it sees it.

Invariant: the end of a task that a tool showed is marked as delivered, so the reminder does not repeat it. If that
can't be saved, the end is shown twice rather than never.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Literal, Protocol, get_args

import anyio

from ricordo.agent.tools.contract import Tool
from ricordo.agent.tools.function import tool
from ricordo.agent.tools.paging import cut_page
from ricordo.clock import Clock, SystemClock
from ricordo.errors import InvalidSetting, StorageError, TaskNotFound, ToolFailed
from ricordo.jobs.tasks.contract import (
    ReportProgress,
    Task,
    TaskProgress,
    TaskStore,
    TaskType,
    TaskWork,
    find_by_id,
    orphan_if_silent,
    request_cancel,
)
from ricordo.jobs.tasks.runner import BlockingWork, TaskPace, TaskRunner, run_in_worker_thread
from ricordo.workspace.agent_state import WorkStateHolder

__all__ = [
    "DELIVERY_NOTE",
    "SessionTasks",
    "SubAgentWorker",
    "TaskList",
    "first_line",
    "short_id",
    "spawn_tool",
    "task_tools",
]


DELIVERY_NOTE = "Its result comes by itself, as a reminder: go on with something else, and don't ask for it."
"""How the result of a task arrives, as text for the model."""
_ID_SHOWN = 8
_MAX_LISTED = 50
_MAX_PAGE_CHARS = 20_000
_GRACE_SECONDS = 5.0
_UNITS = ((60, "s"), (60, "min"), (24, "h"))


class SessionTasks(Protocol):
    """The tasks of one session."""

    async def start(
        self, kind: TaskType, title: str, work: TaskWork, /, *, worker: str = "", seconds: float | None = None
    ) -> Task:
        """Start `work` in the background and return its record; it fails after `seconds`, never if None."""
        ...

    async def cancel(self, task_id: str) -> Task:
        """Stop a task, or ask the process that runs it to stop it; return its record. Raises `TaskNotFound`."""
        ...

    async def get(self, task_id: str) -> Task:
        """Return the task with this id, or the only one whose id begins or ends with it. Raises `TaskNotFound`."""
        ...

    async def tasks(self) -> tuple[Task, ...]:
        """Return all tasks, oldest first."""
        ...

    async def wait(self, task_id: str | None = None, *, seconds: float | None = None) -> object:
        """Wait at most `seconds` until a task has ended, or all of them if None. Raises `TaskNotFound`."""
        ...


class SubAgentWorker(Protocol):
    """A sub-agent that can be given work, in this process or elsewhere."""

    @property
    def name(self) -> str:
        """The name of the sub-agent."""
        ...

    @property
    def description(self) -> str:
        """What the sub-agent is good for, in one line for the model."""
        ...

    @property
    def type(self) -> Literal["local_agent", "remote_agent"]:
        """Whether it runs in this process."""
        ...

    @property
    def seconds(self) -> float | None:
        """The time limit in seconds; None for no limit."""
        ...

    async def __call__(self, prompt: str, report: ReportProgress) -> str:
        """Carry out `prompt` and return the result."""
        ...


def task_tools(
    tasks: SessionTasks, *, state_holder: WorkStateHolder | None = None, clock: Clock | None = None
) -> tuple[Tool, ...]:
    """Return task_list, task_output and task_cancel for the tasks of one session.

    The tools mark the ends of tasks that they show as delivered in `state_holder`. `clock` gives the age of a sign of
    life.
    """
    return (
        _list_tool(tasks, clock or SystemClock()),
        _output_tool(tasks, state_holder),
        _cancel_tool(tasks, state_holder),
    )


def spawn_tool(
    tasks: SessionTasks, workers: Mapping[str, SubAgentWorker], *, state_holder: WorkStateHolder | None = None
) -> Tool:
    """Return the tool that gives work to `workers`, by name; the model sees their descriptions.

    A result that was awaited is marked as delivered in `state_holder`. In plan mode, which `state_holder` also holds,
    remote workers are not called. Raises: InvalidSetting if there is no worker.
    """
    if not workers:
        raise InvalidSetting("A tool that starts sub-agents needs at least one of them.")
    descriptions = "\n".join(f"- {name}: {_one_line(worker.description)}" for name, worker in workers.items())

    async def spawn(
        prompt: Annotated[str, "what it is to do, with all that it has to know: it sees nothing of this conversation"],
        agent: Annotated[str, "the name of the sub-agent; may be left out where there is only one"] = "",
        title: Annotated[str, "a few words for the list of tasks"] = "",
        wait: Annotated[bool, "wait for the result, where nothing can be done without it"] = False,
    ) -> str:
        if not prompt.strip():
            raise ToolFailed("A sub-agent needs a prompt that says what it is to do.")
        name = agent.strip() or next(iter(workers))
        if name not in workers:
            raise ToolFailed(f"There is no sub-agent {name}. There are:\n{descriptions}")
        if not agent.strip() and len(workers) > 1:
            raise ToolFailed(f"Say which of the sub-agents is to do it:\n{descriptions}")
        worker = workers[name]
        if worker.type == "remote_agent" and state_holder is not None and state_holder.work_state.plan.active:
            raise ToolFailed(
                f"{name} was not asked: plan mode is on, and a sub-agent that runs elsewhere can't be held to what only"
                " reads. Plan what it is to do, and ask it when plan mode is left."
            )
        started = await tasks.start(
            worker.type, first_line(title) or first_line(prompt), partial(worker, prompt), worker=name,
            seconds=worker.seconds,
        )  # fmt: skip
        if wait:
            return await _wait_for_result(tasks, started, state_holder)
        return f"{name} works on it as task {short_id(started)}. {DELIVERY_NOTE}"

    return tool(spawn, description=f"{_SPAWN_DESCRIPTION}\n\nSub-agents:\n{descriptions}", effect="organizes")


_SPAWN_DESCRIPTION = (
    "Give a piece of work to a sub-agent, which does it in the background with a conversation of its own. Its result"
    " is told to you when it is there."
)


def short_id(task: Task) -> str:
    """Return the last characters of a task's id, which identify it."""
    return task.id[-_ID_SHOWN:]


def first_line(text: str) -> str:
    """Return the first nonblank line of a text, whole; empty for an empty text.

    It is cut when it is stored, after its secrets are removed.
    """
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _list_tool(tasks: SessionTasks, clock: Clock) -> Tool:
    async def task_list() -> str:
        """List the tasks of this session, oldest first: commands and sub-agents in the background."""
        session_tasks = await tasks.tasks()
        if not session_tasks:
            return "There are no tasks."
        omitted = len(session_tasks) - _MAX_LISTED
        rows = [_render_row(task, clock.now()) for task in session_tasks[-_MAX_LISTED:]]
        return "\n".join([f"[{omitted} older ones are left out]", *rows] if omitted > 0 else rows)

    return tool(task_list, effect="organizes")


def _output_tool(tasks: SessionTasks, state_holder: WorkStateHolder | None) -> Tool:
    async def task_output(
        task_id: Annotated[str, "the id of the task, or its last 8 characters"],
        offset: Annotated[int, "the first line of the result to show, from 1"] = 1,
        character: Annotated[int, "where in the first line to begin, from 0, for lines too long for one page"] = 0,
    ) -> str:
        """Show how far a task is, and its result when it has ended, page by page."""
        if offset < 1 or character < 0:
            raise ToolFailed("Lines count from 1, characters from 0.")
        task = await _find_task(tasks, task_id)
        rendered = _render_task(task, offset, character)
        await _mark_delivered(state_holder, task)
        return rendered

    return tool(task_output, effect="organizes")


def _cancel_tool(tasks: SessionTasks, state_holder: WorkStateHolder | None) -> Tool:
    async def task_cancel(task_id: Annotated[str, "the id of the task, or its last 8 characters"]) -> str:
        """Stop a task."""
        task = await _find_task(tasks, task_id)
        if task.has_ended:
            return f"Task {short_id(task)} had ended already: it is {task.state}."
        updated = await tasks.cancel(task.id)
        if not updated.has_ended:
            return f"Task {short_id(updated)} was asked to stop."
        if updated.state == "cancelled":
            await _mark_delivered(state_holder, updated)
            return f"Task {short_id(updated)} was cancelled."
        return f"Task {short_id(updated)} ended before it could be cancelled: it is {updated.state}."

    return tool(task_cancel, effect="organizes")


async def _find_task(tasks: SessionTasks, task_id: str) -> Task:
    try:
        return await tasks.get(task_id.strip().strip("`"))
    except TaskNotFound as error:
        raise ToolFailed("No task has this id: task_list shows them.") from error


async def _wait_for_result(tasks: SessionTasks, started: Task, state_holder: WorkStateHolder | None) -> str:
    """Return the result of a task when it has ended; a cancellation of the wait stops the task."""
    try:
        await tasks.wait(started.id)
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(_GRACE_SECONDS, shield=True):
            await tasks.cancel(started.id)
        raise
    task = await tasks.get(started.id)
    if not task.has_ended:
        return f"{task.worker} still works on it as task {short_id(task)}. {DELIVERY_NOTE}"
    await _mark_delivered(state_holder, task)
    if task.state == "completed":
        return task.result
    reason = f": {task.error}" if task.error else ""
    raise ToolFailed(f"{task.worker} did not do it: task {short_id(task)} is {task.state}{reason}")


async def _mark_delivered(state_holder: WorkStateHolder | None, task: Task) -> None:
    """Mark the end of this task as delivered; a task that may still come back is reported when it does."""
    if state_holder is None or not task.has_ended or task.id in state_holder.work_state.delivered_results:
        return
    with suppress(StorageError):
        await state_holder.update_work_state(
            lambda state: replace(
                state, delivered_results=(*(each for each in state.delivered_results if each != task.id), task.id)
            )
        )


def _render_task(task: Task, line: int, character: int) -> str:
    head = f"task {short_id(task)}, {_one_line(task.title)}: {task.state}"
    if task.state != "completed":
        facts = (head, _render_progress(task.progress), task.error)
        return f"[{', '.join(fact for fact in facts if fact)}]"
    page = cut_page(task.result, line=line, character=character, max_chars=_MAX_PAGE_CHARS)
    if page is None:
        raise ToolFailed(f"The result has nothing at line {line}, character {character}.")
    if page.total == 0:
        return f"[{head}, with an empty result]"
    more = ""
    if page.next_line is not None:
        character_hint = f", character={page.next_character}" if page.next_character else ""
        more = f". Read on with offset={page.next_line}{character_hint}"
    return f"[{head}, lines {page.start} to {page.end} of {page.total}{more}]\n{page.text}"


def _render_row(task: Task, now: datetime) -> str:
    label = f"{task.type} {task.worker}" if task.worker else task.type
    facts = (
        task.state,
        "asked to stop" if task.cancelling and not task.has_ended else "",
        "" if task.has_ended else _render_progress(task.progress),
        "" if task.has_ended else f"last sign of life {_render_age(task.last_seen_at, now)} ago",
    )
    return f"{short_id(task)} {label}: {_one_line(task.title)} ({', '.join(fact for fact in facts if fact)})"


def _render_progress(progress: TaskProgress) -> str:
    """Return the progress of a task in words; empty if nothing is known."""
    steps = f"{progress.done} of {progress.total}" if progress.total is not None else ""
    return " ".join(filter(None, (steps, _one_line(progress.text)))) or (str(progress.done) if progress.done else "")


def _render_age(time: datetime, now: datetime) -> str:
    amount = max((now - time).total_seconds(), 0.0)
    for step, unit in _UNITS:
        if amount < step:
            return f"{int(amount)} {unit}"
        amount /= step
    return f"{int(amount)} d"


def _one_line(text: str) -> str:
    return " ".join(text.split())


_ORPHANED_AFTER = TaskPace().orphaned_after


class TaskList:
    """The tasks of one session: commands and sub-agents in the background, and the dreams of its root."""

    def __init__(self, runner: TaskRunner, root: TaskStore | None = None, *, clock: Clock) -> None:
        """List the tasks of `runner`, and the tasks in `root`, which belong to no session."""
        self._runner = runner
        self._root = root
        self._clock = clock

    @property
    def running_count(self) -> int:
        """The number of tasks of this session that run in this process."""
        return self._runner.running_count

    async def all(self) -> tuple[Task, ...]:
        """Return all tasks, newest first. Raises: DocumentInvalid for a record that can't be read."""
        tasks = [*await self._runner.tasks(), *await self._root_tasks()]
        return tuple(sorted(tasks, key=lambda task: (task.created_at, task.id), reverse=True))

    async def start(
        self,
        kind: TaskType,
        title: str,
        work: TaskWork | BlockingWork,
        *,
        worker: str = "",
        seconds: float | None = None,
    ) -> Task:
        """Start `work` in the background and return its record. It ends with the session.

        A function that is not async runs in a thread: it can't be stopped, so stopping it or ending the session waits
        for it. The task fails after `seconds`, never if None. The agent gets its result with the next request. Raises:
        InvalidSetting for invalid arguments; StorageError, and then nothing was started.
        """
        _check_start(kind, title, work, seconds)
        return await self._runner.start(kind, title, run_in_worker_thread(work), worker=worker, seconds=seconds)

    async def get(self, task_id: str) -> Task:
        """Return the task with this id, or the only one whose id begins or ends with it (at least six characters).

        Raises: TaskNotFound; InvalidQuery if several match; InvalidSetting for an id that is not a text.
        """
        _check_id(task_id)
        try:
            return await self._runner.get(task_id)
        except TaskNotFound:
            return find_by_id(await self._root_tasks(), task_id)

    async def cancel(self, task_id: str) -> Task:
        """Stop a task and return its record; another process is only asked to stop it. Raises as `get`."""
        _check_id(task_id)
        try:
            return await self._runner.cancel(task_id)
        except TaskNotFound:
            if self._root is None:
                raise
            record, now = find_by_id(await self._root_tasks(), task_id), self._clock.now()
            return await self._root.update(record.id, lambda task: request_cancel(task, now, after=_ORPHANED_AFTER))

    async def wait(self, task_id: str | None = None, *, seconds: float | None = None) -> None:
        """Wait at most `seconds` until a task of this session has ended, or all of them if None.

        Raises as `get`.
        """
        if task_id is not None:
            _check_id(task_id)
        _check_seconds(seconds)
        await self._runner.wait(task_id, seconds=seconds)

    async def _root_tasks(self) -> tuple[Task, ...]:
        """Return the root's tasks; one without a sign of life is shown as orphaned, but may come back."""
        if self._root is None:
            return ()
        now = self._clock.now()
        return tuple(orphan_if_silent(task, now, after=_ORPHANED_AFTER) for task in await self._root.all())


def _check_start(kind: object, title: object, work: object, seconds: object) -> None:
    """Check what types can't. Raises `InvalidSetting`."""
    if kind not in get_args(TaskType):
        raise InvalidSetting(f"A task is of the type {', '.join(get_args(TaskType))}, not {kind!r}.")
    if not isinstance(title, str) or not title.strip():
        raise InvalidSetting(f"The title of a task is a text that tells what it is about, not {title!r}.")
    if not callable(work):
        raise InvalidSetting(f"The work of a task is a function that takes a report, not {work!r}.")
    _check_seconds(seconds)
    if seconds is not None and not seconds:
        raise InvalidSetting("A task works for a number of seconds above 0, or for any time, not 0.")


def _check_seconds(seconds: object) -> None:
    if seconds is None:
        return
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds >= 0:
        raise InvalidSetting(f"Seconds are a number from 0 on, or None for no limit, not {seconds!r}.")


def _check_id(task_id: object) -> None:
    if not isinstance(task_id, str):
        raise InvalidSetting(f"The id of a task is a text, not {task_id!r}.")
