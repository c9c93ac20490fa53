"""Standing: what stands beside the window of a session, put together: its plan, its todos, its rules and its tasks."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.errors import RicordoError
from ricordo.harness.permissions import Permissions, StandingGate
from ricordo.harness.reminder import PLAN_BUDGET, reminder, reminder_message
from ricordo.harness.shown import Shown
from ricordo.harness.task_list import TaskList
from ricordo.messages import Message
from ricordo.middleware import Request
from ricordo.runtime.agent_options import AgentOptions
from ricordo.runtime.assembly import Parts, Workspace
from ricordo.runtime.incognito import silent_rules
from ricordo.state import KeepsStanding, Standing
from ricordo.state.codec import RULES_UNKNOWN
from ricordo.stores.capabilities import Layers
from ricordo.stores.rules import MemoryRules
from ricordo.tasks import FileTasks, MemoryTasks, ReadOnlyTasks, Task, TaskRunner, TaskStore
from ricordo.tokens import estimate_text
from ricordo.tools import Tool
from ricordo.tools.plan_tools import plan_tools
from ricordo.tools.planning import Planning
from ricordo.tools.real_paths import RealPaths
from ricordo.tools.task_tools import Worker, spawn_tool, task_tools
from ricordo.tools.todo_write import todo_write_tool
from ricordo.workspace.layout import DEFAULT_AGENT, ROOT_TASKS, tasks_path

__all__ = ["Beside", "beside_window"]

_LOG = logging.getLogger("ricordo.agent")
_RULES_UNKNOWN = (
    "The rules or the plan of session %s could not be read, so a person is asked before each call, and with nobody to"
    ' ask none is made, until the rule `ask *` is taken back: by `permissions.remove("*")`, or in a chat by'
    " `/permissions remove *`."
)


@dataclass(kw_only=True)
class Beside:
    """What stands beside the window of one session; `runner` works while the session is open.

    `planning` is None where no plan could be kept.
    """

    keeper: KeepsStanding
    runner: TaskRunner
    tasks: TaskList
    gate: StandingGate
    permissions: Permissions
    planning: Planning | None = None
    shown: Shown = field(init=False)
    _troubled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Let tools tell of tasks with what they return."""
        self.shown = Shown(self.keeper)

    def tools(self, workers: Mapping[str, Worker], *, planning: bool, background: bool) -> Sequence[Tool]:
        """Return the tools for what stands: those of plans and todos, and those of tasks where there can be any."""
        tools: list[Tool] = []
        if planning:
            tools += [todo_write_tool(self.keeper), *(plan_tools(self.planning) if self.planning else ())]
        if workers:
            tools.append(spawn_tool(self.runner, workers, keeper=self.shown))
        if workers or background:
            tools += task_tools(self.runner, keeper=self.shown)
        return tools

    async def remind(self, request: Request) -> tuple[Message | None, tuple[str, ...]]:
        """Return what a request is reminded of, and which results that tells; None where nothing stands."""
        standing, tasks = self.keeper.standing, await self._tasks()
        if standing == Standing(delivered=standing.delivered) and tasks == ():
            return None, ()
        plan = await self._plan(standing)
        found = await run_sync(partial(reminder, standing, plan=plan, tasks=tasks, window=request.window))
        return (reminder_message(found.text), found.told) if found.text else (None, ())

    async def _plan(self, standing: Standing) -> str | None:
        if self.planning is None or not standing.plan.path:
            return None
        try:
            text = await self.planning.text()
        except RicordoError as error:
            self._tell("plan", error)
            return None
        # one of which only the beginning is shown may not be written over by who has not seen the rest
        if text is not None and await run_sync(estimate_text, text) <= PLAN_BUDGET.count:
            self.planning.told(text)
        return text

    async def _tasks(self) -> tuple[Task, ...] | None:
        try:
            return await self.runner.tasks()
        except RicordoError as error:
            self._tell("tasks", error)
            return None

    def _tell(self, what: str, error: RicordoError) -> None:
        """Tell the log once: what can't be read ends no turn."""
        if not self._troubled:
            _LOG.warning("The %s of this session can't be read: %s", what, error)
        self._troubled = True


def beside_window(
    keeper: KeepsStanding,
    *,
    session: str,
    options: AgentOptions,
    parts: Parts,
    workspace: Workspace | None,
    keeps: bool,
    real: RealPaths | None = None,
    root: Path | None = None,
) -> Beside:
    """Return what stands beside the window of `session`; for a sub-agent its parent's plan mode and rules hold.

    `real` sees through the links in what a call names, so that a denial holds for what they lead to. `root` is whose
    remembered rules hold in an incognito session, which has no `workspace`.
    """
    if RULES_UNKNOWN in keeper.standing.permissions:
        _LOG.warning(_RULES_UNKNOWN, session)
    place = workspace.place if workspace and keeps else None
    agent, user = options.scope.agent or DEFAULT_AGENT, options.scope.user or ""
    runner = TaskRunner(
        _task_store(parts, workspace, tasks_path(agent, session), keeps=keeps), agent=agent, session=session, user=user,
        clock=parts.clock, ids=parts.ids, emitter=parts.emitter, scope=options.scope,
    )  # fmt: skip
    of_root = FileTasks(workspace.place.files, ROOT_TASKS, workspace.place.redactor) if workspace else None
    planning = None
    if place:
        planning = Planning(
            keeper, place.files, place.changes, redactor=place.redactor, clock=parts.clock, approve=options.approve,
            session=session,
        )  # fmt: skip
    layers = workspace.store.offers(Layers) if workspace else None
    remembered = MemoryRules(layers) if layers else None
    silent = silent_rules(root, options.scope, parts) if options.incognito and root else None
    held = options.parentage.standing if options.parentage else lambda: keeper.standing
    gate = StandingGate(
        held, given=(*options.permissions, *parts.settings.rules), remembered=silent or remembered,
        approve=options.approve,
        real=real,
    )  # fmt: skip
    return Beside(
        keeper=keeper, runner=runner, tasks=TaskList(runner, of_root, clock=parts.clock), gate=gate,
        permissions=Permissions(keeper, parts.settings.rules), planning=planning,
    )  # fmt: skip


def _task_store(parts: Parts, workspace: Workspace | None, path: str, *, keeps: bool) -> TaskStore:
    """Return where the tasks of a session are; in a root that can only be read, those recorded are shown."""
    if workspace is None:
        return MemoryTasks()
    recorded = FileTasks(workspace.place.files, path, workspace.place.redactor)
    return recorded if keeps else ReadOnlyTasks(recorded, clock=parts.clock)
