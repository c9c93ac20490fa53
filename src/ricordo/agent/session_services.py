"""What a session has beside its window: plan mode, todos, permission rules, background tasks, and its tools.

An incognito session reads no memory and records nothing; its root is not opened. Rules written by people still apply
there, and a refusal does not quote the memory of the rule. After a compaction files are read again by the agent's own
tool and within its rules. The tools that a model gets follow from the options of the agent.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentResources, AgentStore
from ricordo.agent.compactions import Compactions
from ricordo.agent.contract import ModelRequest
from ricordo.agent.options import AgentOptions
from ricordo.agent.permissions import MemoryRules, PathResolver, Permissions, RuleGate, RuleSource
from ricordo.agent.reminder import PLAN_BUDGET, TaskDelivery, build_reminder, build_reminder_message
from ricordo.agent.session_state import SessionState
from ricordo.agent.tools import Tool, ToolContext
from ricordo.agent.tools.expand import ExpandedMessages, expand_tool
from ricordo.agent.tools.file_roots import FileRoots, SharedFiles
from ricordo.agent.tools.file_search import grep_files_tool
from ricordo.agent.tools.files import file_tools, read_file_tool
from ricordo.agent.tools.memory import forget_tool, memory_tools
from ricordo.agent.tools.memory_files import memory_files_tool
from ricordo.agent.tools.plan_mode import PlanMode, plan_tools
from ricordo.agent.tools.sessions import session_tools
from ricordo.agent.tools.tasks import SessionTasks, SubAgentWorker, TaskList, spawn_tool, task_tools
from ricordo.agent.tools.todos import todo_write_tool
from ricordo.context.config import ToolResultEvictionConfig
from ricordo.context.strategies import Reductions
from ricordo.context.strategies.summarize import RereadFile
from ricordo.context.tool_results import READ_TOOL, evicted_parts
from ricordo.errors import RicordoError
from ricordo.guard.permissions import PermissionRule
from ricordo.jobs.tasks import FileTaskStore, MemoryTaskStore, ReadOnlyTaskStore, Task, TaskRunner, TaskStore
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message
from ricordo.messages.tokens import estimate_text
from ricordo.runtime.roots import cache_folder, list_root_layers
from ricordo.runtime.settings import OPT_IN_TOOLS
from ricordo.runtime.workspace import Dependencies, root_files, scratch_files, working_directory_files
from ricordo.scope import Scope, encode_folder_name
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import FileStore
from ricordo.stores import Forgets, Lists
from ricordo.stores.contract import LayeredMemory
from ricordo.workspace.agent_state import UNKNOWN_RULES, WorkState, WorkStateHolder
from ricordo.workspace.history.masked_files import MaskedFiles
from ricordo.workspace.layout import ROOT_TASKS, WORKSPACE, tasks_path

__all__ = [
    "MEMORY_TOOLS",
    "SESSION_TOOLS",
    "SessionServices",
    "ToolSet",
    "create_rereader",
    "create_session_services",
    "reader_name",
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
    layers = list_root_layers(root, scope, parts.settings.data, parts.settings.team)
    read = MemoryRules(
        _ReadOnlyRoots(roots=tuple(_ReadOnlyRoot(label=each.label, files=root_files(each.folder)) for each in layers))
    )

    async def load_rules() -> tuple[PermissionRule, ...]:
        return tuple(replace(rule, reason="") for rule in await read())

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
    permission_gate: RuleGate
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
        if work_state == WorkState(delivered_results=work_state.delivered_results) and tasks == ():
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
        session_state=session_state, task_runner=runner, permission_gate=gate,
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


MEMORY_TOOLS = frozenset({"remember", "recall", "memory_search", "memory_get"})
"""Tools that a sub-agent gets only if they are named or its memory tools are enabled."""
SESSION_TOOLS = frozenset({"session_list", "session_history", "session_search"})
"""Tools that a sub-agent gets only if they are named, because they read the messages of its parent's user."""


_RESULT_READER = "read_result"


def reader_name(tools: Sequence[Tool]) -> str:
    """Return the name of the tool that reads evicted results, distinct from the program's own `tools`."""
    return _RESULT_READER if any(tool.spec.name == READ_TOOL for tool in tools) else READ_TOOL


@dataclass(frozen=True, kw_only=True)
class ToolSet:
    """Builds the tools of one session. `tasks` lets the shell run commands in the background."""

    resources: AgentResources
    reductions: Reductions
    session: str
    tasks: SessionTasks | None = None

    @property
    def _options(self) -> AgentOptions:
        return self.resources.options

    @property
    def _memory(self) -> AgentStore:
        return self.resources.memory

    @property
    def _place(self) -> MemoryRoot | None:
        return self.resources.place

    def build(
        self, compactions: Compactions, work_tools: Sequence[Tool] = (), window: Sequence[Message] = ()
    ) -> tuple[Tool, ...]:
        """Return the tools in the order in which the model sees them; a sub-agent gets only those it may have.

        `work_tools` are the tools for plans, todos and tasks. The tool that expands compactions is always included. The
        tool that reads evicted results is included if eviction is on or the `window` has evicted results.
        """
        allowed_tools = [tool for tool in [*self.list_inheritable(), *self._session_tools()] if self._is_allowed(tool)]
        names = {tool.spec.name for tool in allowed_tools}
        for name in sorted({*self._opt_in_names} - names):
            _LOG.warning("The tool `%s` is not there: the store of this session lacks what it needs.", name)
        reader_tools = [tool for tool in self._result_reader_tools(window) if tool.spec.name not in names]
        return (*allowed_tools, *self._expand_tools(compactions), *reader_tools, *work_tools)

    def list_inheritable(self) -> list[Tool]:
        """Return the tools that a sub-agent can get: all except those that belong to one session."""
        return [*self._options.tools, *self._memory_tools(), *self._opt_in_tools(), *self._file_tools()]

    def inheritable_names(self) -> frozenset[str]:
        """Return the names that a sub-agent's tools may have."""
        return (
            frozenset(tool.spec.name for tool in self.list_inheritable())
            | MEMORY_TOOLS
            | SESSION_TOOLS
            | {*OPT_IN_TOOLS}
        )

    @property
    def _own_names(self) -> frozenset[str]:
        return frozenset(tool.spec.name for tool in self._options.tools)

    def _is_allowed(self, tool: Tool) -> bool:
        parent = self._options.parent
        return parent is None or parent.has_tool(tool.spec.name)

    def _memory_tools(self) -> Sequence[Tool]:
        is_asked = self._options.builtin_tools.memory or self._inherits_any(MEMORY_TOOLS)
        if self._memory.status == "off" or not is_asked:
            return ()
        place = self._place if self._memory.is_own else None
        return memory_tools(
            self._memory.store if self._memory.is_active else None,
            place.files if place else None,
            shared=self._shared_files.files if self._shared_files else None,
            clock=self.resources.parts.clock,
            redactor=place.redactor if place else None,
        )

    @property
    def _shared_files(self) -> SharedFiles | None:
        """The files that the project shares, if the user has a separate place."""
        shared = self.resources.workspace.shared if self.resources.workspace else None
        return SharedFiles(files=shared, root=self.resources.root) if shared else None

    @property
    def _opt_in_names(self) -> list[str]:
        """The names of the enabled opt-in tools, except those replaced by a tool of the program with the same name."""
        if not self._memory.is_active:
            return []
        opt_in = self._options.builtin_tools.opt_in or ()
        requested = [
            name
            for name in OPT_IN_TOOLS
            if (self._options.builtin_tools.memory and name in opt_in) or self._inherits_any({name})
        ]
        return [name for name in requested if name not in self._own_names]

    def _opt_in_tools(self) -> Sequence[Tool]:
        """Return the enabled opt-in tools that the store and the root support."""
        store, place = self._memory.store, self._place
        tools: list[Tool] = []
        for name in self._opt_in_names:
            if name == "forget" and store.offers(Lists) is not None and store.offers(Forgets) is not None:
                tools.append(forget_tool(store, approve=self._options.approve))
            if name == "memory" and place is not None:
                changes = place.changes if self.resources.is_writable else None
                tools.append(memory_files_tool(place.files, changes, redactor=place.redactor, root=Path(place.folder)))
        return tools

    def _inherits_any(self, tools: AbstractSet[str]) -> bool:
        """Return whether a sub-agent gets one of these tools, whatever its parent has."""
        parent = self._options.parent
        return parent is not None and any(map(parent.has_tool, tools - self._own_names))

    def _session_tools(self) -> Sequence[Tool]:
        options, place = self._options, self._place
        if place is None or not (options.builtin_tools.sessions or self._inherits_any(SESSION_TOOLS)):
            return ()
        return session_tools(self._visible_files(place), agent=options.agent, user=options.user, expand=True)

    def _expand_tools(self, compactions: Compactions) -> Sequence[Tool]:
        """Return the tool that expands reductions; a person can ask for it in any configuration.

        Messages of other sessions are available only with the session tools.
        """
        place = self._place
        if place is None:
            return (expand_tool(compactions.expand, agent=self._options.agent, user=self._options.user),)

        async def expand(handle: str) -> ExpandedMessages:
            expanded, forgotten = await compactions.expand(handle), await place.read_forgotten()
            messages = tuple(forgotten.mask_message(message, self.session) for message in expanded.messages)
            return replace(expanded, messages=messages)

        files = self._visible_files(place) if self._options.builtin_tools.sessions else None
        return (expand_tool(expand, files, agent=self._options.agent, user=self._options.user),)

    def _file_tools(self) -> Sequence[Tool]:
        builtin_tools, approve = self._options.builtin_tools, self._options.approve
        if not (builtin_tools.files or builtin_tools.shell):
            return ()
        if self._options.memory.incognito:
            return self._incognito_file_tools()
        place, consolidation = self._place, self.resources.parts.settings.consolidation
        if place is None:
            return ()
        return file_tools(
            self._visible_files(place),
            working_directory_files(self.resources.folder, self.resources.root, self.resources.parts, place.files),
            changes=place.changes,
            approve=approve,
            folder=self.resources.folder,
            redactor=place.redactor,
            root=Path(place.folder),
            closed_folder=self.resources.root,
            shared=self._shared_files,
            shell=builtin_tools.shell,
            tasks=self.tasks,
            bounds=consolidation.bounds if consolidation else None,
        )

    def _incognito_file_tools(self) -> Sequence[Tool]:
        """Return the file tools of an incognito session: they can't access the root, and their workspace is empty.

        The locks of the folder are in the cache, so that nothing is written into the root.
        """
        root, folder, parts = self.resources.root, self.resources.folder, self.resources.parts
        working = working_directory_files(folder, cache_folder(parts.settings.cache, root), parts)
        approve, shell = self._options.approve, self._options.builtin_tools.shell
        return file_tools(
            scratch_files(), working, approve=approve, folder=folder, root=root, shell=shell, tasks=self.tasks
        )

    def _visible_files(self, place: MemoryRoot) -> FileStore:
        """Return the files of a root as the model may read them."""
        return MaskedFiles(place.files, place.key)

    def _result_reader_tools(self, window: Sequence[Message]) -> Sequence[Tool]:
        """Return the tools that read results evicted in this session, if there are no other file tools."""
        config = self.reductions.get("tool_result_eviction")
        workspace, place = self.resources.workspace, self._place
        is_on = any(map(evicted_parts, window)) or (config and self.resources.is_writable)
        if workspace is None or place is None or not is_on:
            return ()
        config = config or ToolResultEvictionConfig()
        folder = f"{config.eviction_path.strip('/')}/{encode_folder_name(self.session)}"
        roots = FileRoots(place.files, root=workspace.folder, below=folder)
        reader = read_file_tool(roots, place.redactor, name=reader_name(self._options.tools))
        return (reader, grep_files_tool(roots, place.redactor))
