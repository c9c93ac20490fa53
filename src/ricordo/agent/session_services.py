"""The services of a session other than its window: plan mode, todos, permission rules and background tasks.

An incognito session reads no memory and records nothing; its root is not opened. Rules written by people still apply
there, and a refusal does not quote the memory of the rule. After a compaction files are read again by the agent's own
tool and within its rules.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentResources
from ricordo.agent.contract import ModelRequest
from ricordo.agent.permissions import MemoryRules, PathResolver, Permissions, RuleGate, RuleSource
from ricordo.agent.reminder import PLAN_BUDGET, TaskDelivery, build_reminder, build_reminder_message
from ricordo.agent.session_state import SessionState
from ricordo.agent.tools import Tool, ToolContext
from ricordo.agent.tools.plan_mode import PlanMode, plan_tools
from ricordo.agent.tools.tasks import SubAgentWorker, TaskList, spawn_tool, task_tools
from ricordo.agent.tools.todos import todo_write_tool
from ricordo.context.strategies.summarize import RereadFile
from ricordo.context.tool_results import READ_TOOL
from ricordo.errors import RicordoError
from ricordo.guard.permissions import PermissionRule
from ricordo.jobs.tasks import FileTaskStore, MemoryTaskStore, ReadOnlyTaskStore, Task, TaskRunner, TaskStore
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message
from ricordo.messages.tokens import estimate_text
from ricordo.runtime.roots import list_root_layers
from ricordo.runtime.workspace import Dependencies, root_files
from ricordo.scope import Scope
from ricordo.storage import FileStore
from ricordo.stores.contract import LayeredMemory
from ricordo.workspace.agent_state import UNKNOWN_RULES, WorkState, WorkStateHolder
from ricordo.workspace.layout import ROOT_TASKS, WORKSPACE, tasks_path

__all__ = [
    "SessionServices",
    "create_rereader",
    "create_session_services",
]


@dataclass(frozen=True, kw_only=True)
class _ReadOnlyRoot:
    label: str
    files: FileStore


@dataclass(frozen=True, kw_only=True)
class _ReadOnlyRoots:
    """The roots that a scope can see, read without opening them."""

    roots: tuple[_ReadOnlyRoot, ...]

    async def places(self) -> tuple[RuleSource, ...]:
        return self.roots


def _create_incognito_rules(
    root: Path, scope: Scope, parts: Dependencies
) -> Callable[[], Awaitable[tuple[PermissionRule, ...]]]:
    """Return a function that reads the rules in `root` and the user's own root, without the text of the memories.

    It raises the errors of `MemoryRules`.
    """
    layers = list_root_layers(root, scope, parts.settings.data)
    read = MemoryRules(
        _ReadOnlyRoots(roots=tuple(_ReadOnlyRoot(label=each.label, files=root_files(each.folder)) for each in layers))
    )

    async def load_rules() -> tuple[PermissionRule, ...]:
        return tuple(replace(rule, why="") for rule in await read())

    return load_rules


_LOG = logging.getLogger("ricordo.agent")
_RULES_UNREADABLE = (
    "The rules or the plan of session %s could not be read, so a person is asked before each call, and with nobody to"
    ' ask none is made, until the rule `ask *` is taken back: by `permissions.remove("*")`, or in a chat by'
    " `/permissions remove *`."
)


@dataclass(kw_only=True)
class SessionServices:
    """The services of one session; `task_runner` works while the session is open.

    `plan_mode` is None if no plan can be saved.
    """

    session_state: WorkStateHolder
    task_runner: TaskRunner
    task_list: TaskList
    gate: RuleGate
    permissions: Permissions
    plan_mode: PlanMode | None = None
    task_delivery: TaskDelivery = field(init=False)
    _has_warned: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Create the delivery that lets tools mark task results as delivered."""
        self.task_delivery = TaskDelivery(self.session_state)

    def create_tools(
        self, workers: Mapping[str, SubAgentWorker], *, planning: bool, background: bool
    ) -> Sequence[Tool]:
        """Return the tools for plans and todos, and those for tasks if the session can have any."""
        tools: list[Tool] = []
        if planning:
            tools += [todo_write_tool(self.session_state), *(plan_tools(self.plan_mode) if self.plan_mode else ())]
        if workers:
            tools.append(spawn_tool(self.task_runner, workers, state_holder=self.task_delivery))
        if workers or background:
            tools += task_tools(self.task_runner, state_holder=self.task_delivery)
        return tools

    async def compose_reminder(self, request: ModelRequest) -> tuple[Message | None, tuple[str, ...]]:
        """Return the reminder of a request and the keys of the results in it; None if there is nothing to say."""
        work_state, tasks = self.session_state.work_state, await self._list_tasks()
        if work_state == WorkState(delivered=work_state.delivered) and tasks == ():
            return None, ()
        plan = await self._read_plan(work_state)
        reminder = await run_sync(partial(build_reminder, work_state, plan=plan, tasks=tasks, window=request.window))
        return (build_reminder_message(reminder.text), reminder.delivered_keys) if reminder.text else (None, ())

    async def _read_plan(self, work_state: WorkState) -> str | None:
        if self.plan_mode is None or not work_state.plan.path:
            return None
        try:
            text = await self.plan_mode.text()
        except RicordoError as error:
            self._warn_once("plan", error)
            return None
        # A plan of which only the beginning is shown may not be overwritten by a model that has not read the rest.
        if text is not None and await run_sync(estimate_text, text) <= PLAN_BUDGET.count:
            self.plan_mode.mark_shown(text)
        return text

    async def _list_tasks(self) -> tuple[Task, ...] | None:
        try:
            return await self.task_runner.tasks()
        except RicordoError as error:
            self._warn_once("tasks", error)
            return None

    def _warn_once(self, subject: str, error: RicordoError) -> None:
        """Log an error once; it ends no turn."""
        if not self._has_warned:
            _LOG.warning("The %s of this session can't be read: %s", subject, error)
        self._has_warned = True


def create_session_services(resources: AgentResources, session_state: SessionState) -> SessionServices:
    """Return the services of a session; a sub-agent uses its parent's plan mode and rules.

    An incognito session, which has no workspace, takes remembered rules from the root. Links in a call's arguments are
    resolved, so that a denial also applies to their targets.
    """
    options, parts, workspace = resources.options, resources.parts, resources.workspace
    session = session_state.state.session
    if UNKNOWN_RULES in session_state.work_state.permissions:
        _LOG.warning(_RULES_UNREADABLE, session)
    runner = TaskRunner(
        _choose_task_store(resources, tasks_path(options.agent, session)),
        agent=options.agent,
        session=session,
        user=options.user,
        clock=parts.clock,
        ids=parts.ids,
        emitter=parts.emitter,
        scope=options.scope,
    )
    place = resources.place
    planning = None
    if place and resources.is_writable:
        planning = PlanMode(
            session_state, place.files, place.changes, redactor=place.redactor, clock=parts.clock,
            approve=options.approve, session=session,
        )  # fmt: skip
    get_work_state = options.parent.get_state if options.parent else lambda: session_state.work_state
    gate = RuleGate(
        get_work_state, configured=(*options.permissions, *parts.settings.permission_rules),
        load_remembered=_choose_remembered_rules(resources), approve=options.approve,
        resolve_paths=PathResolver(resources.folder, (workspace.folder if workspace else resources.root) / WORKSPACE),
    )  # fmt: skip
    root_tasks = FileTaskStore(place.files, ROOT_TASKS, place.redactor) if place else None
    return SessionServices(
        session_state=session_state, task_runner=runner, gate=gate,
        task_list=TaskList(runner, root_tasks, clock=parts.clock),
        permissions=Permissions(session_state, parts.settings.permission_rules), plan_mode=planning,
    )  # fmt: skip


def _choose_remembered_rules(resources: AgentResources) -> Callable[[], Awaitable[tuple[PermissionRule, ...]]] | None:
    if resources.options.memory.incognito:
        return _create_incognito_rules(resources.root, resources.options.scope, resources.parts)
    layers = resources.workspace.store.offers(LayeredMemory) if resources.workspace else None
    return MemoryRules(layers) if layers else None


def _choose_task_store(resources: AgentResources, path: str) -> TaskStore:
    """Return the store of a session's tasks; in a read-only root the recorded tasks are only shown."""
    if resources.place is None:
        return MemoryTaskStore()
    recorded = FileTaskStore(resources.place.files, path, resources.place.redactor)
    return recorded if resources.is_writable else ReadOnlyTaskStore(recorded, clock=resources.parts.clock)


def create_rereader(tools: Sequence[Tool], gate: RuleGate, context: ToolContext) -> RereadFile | None:
    """Return a function that reads a page of a file again; None without the read tool.

    Files that a rule forbids, that a person would have to approve, or that can't be read are skipped.
    """
    reader = next((tool for tool in tools if tool.spec.name == READ_TOOL), None)
    if reader is None:
        return None

    async def reread_file(arguments: Mapping[str, JsonValue]) -> str:
        if not await gate.allows(reader, arguments):
            return ""
        try:
            return str(await reader(arguments, context))
        except RicordoError:
            return ""

    return reread_file
