"""Opening an agent: its root and its store, and all parts of its session, which are closed at the end."""

import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentResources, AgentStore, note_not_opened, open_agent_store, uses_root_memory
from ricordo.agent.compaction_middleware import CompactionMiddleware, create_meter
from ricordo.agent.compactions import Compactions
from ricordo.agent.contract import TurnMiddleware, compose
from ricordo.agent.forgotten import create_forgotten_middleware, read_unforgotten_messages
from ricordo.agent.loop import AgentLoop
from ricordo.agent.memory_context import TurnMemories
from ricordo.agent.options import AgentOptions, SubAgent
from ricordo.agent.prompt_builder import (
    PromptBuilder,
    PromptMiddleware,
    create_profile_view,
    list_rule_files,
    prompt_budget,
)
from ricordo.agent.quoting_model import QuotingModel, quote_from_sources, quote_from_store
from ricordo.agent.reminder import ReminderMiddleware
from ricordo.agent.session import AgentSession
from ricordo.agent.session_closing import ClosingMode, SessionClosing
from ricordo.agent.session_services import (
    SessionServices,
    ToolSet,
    create_rereader,
    create_session_services,
    reader_name,
)
from ricordo.agent.session_state import SessionState, TurnRunner, load_session_state
from ricordo.agent.sub_agent_workers import LocalWorker, create_workers, load_sub_agent_models
from ricordo.agent.tools import Approval, ApprovalHandler, Tool, ToolContext
from ricordo.agent.turn_middleware import ExtractionMiddleware, MaintenanceMiddleware, UsageTotals
from ricordo.concurrency import run_even_if_cancelled
from ricordo.context.compaction_extraction import CompactionExtraction
from ricordo.context.config import TurnRecallConfig
from ricordo.context.contract import ExtractionHandover, StrategyContext
from ricordo.context.pipeline import CompactionContext, CompactionPipelines
from ricordo.context.strategies import Reductions, with_recommended
from ricordo.context.strategies.summarize import RereadFile
from ricordo.errors import (
    DocumentInvalid,
    RicordoError,
    StorageError,
)
from ricordo.events import Event, EventSink
from ricordo.extraction.preprocessing import ProcessingConfig, detect_signals
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.tokens import Tokens
from ricordo.models import ChatModel
from ricordo.models.config import OFFLINE
from ricordo.models.contract import declared_window
from ricordo.runtime.guarded_models import prepare_memory_model
from ricordo.runtime.models import load_agent_model
from ricordo.runtime.roots import ROOT_FOLDER, default_root
from ricordo.runtime.settings import Settings
from ricordo.runtime.workspace import Dependencies, Workspace, open_workspace, scratch_files
from ricordo.scope import Scope
from ricordo.search.contract import Answer
from ricordo.stores import Store
from ricordo.stores.contract import KeepsSessions, LayeredMemory
from ricordo.workspace.agent_state import AgentState
from ricordo.workspace.layout import WORKSPACE

__all__ = ["SessionFactory", "choose_reductions", "open_session"]


_LOG = logging.getLogger("ricordo.agent")
_REQUESTS_PER_SUMMARY = 4
"""Approximate maximum number of requests for one summary: it is written, retried, and split into parts."""


def choose_reductions(options: AgentOptions, settings: Settings, window: int | None) -> Reductions:
    """Return the reductions of an agent: as given, completed if recommended, and a sub-agent's own over its parent's.

    `window` is that of the agent's model, in tokens; None if unknown.
    """
    on = options.reductions
    if options.recommended:
        on = with_recommended(on, settings.reductions, window)
    return {**on, **options.parent.reductions} if options.parent else on


def create_session_name(parts: Dependencies) -> str:
    """Return a name for a new session, with the time of its start."""
    return f"{parts.clock.now():%Y-%m-%d-%Hh%M}-{parts.ids.new()[-6:]}"


@dataclass(frozen=True, kw_only=True)
class SessionFactory:
    """Creates the sessions of one agent and of its sub-agents."""

    resources: AgentResources

    async def create_session(self) -> AgentSession:
        """Return the open session. Raises: ScopeMismatch if it belongs to another user."""
        options, parts, workspace = self._options, self._parts, self._workspace
        model = self._connect_model()
        name = options.session or options.scope.session or create_session_name(parts)
        session_state = await load_session_state(self.resources, name, reader_tool=reader_name(options.tools))
        meter = create_meter(model, ratio=session_state.state.ratio)
        session_state.set_ratio_source(lambda: meter.ratio)
        compactions = self._create_compactions(session_state)
        extraction = self._create_extraction()
        reductions = choose_reductions(options, parts.settings, declared_window(model))
        services = create_session_services(self.resources, session_state)
        tools = self._create_tools(model, compactions, reductions, services, session_state.state)
        pipelines = await self._create_pipelines(
            model, reductions, extraction, session_state, reread=self._create_rereader(tools, services, name)
        )
        memories = self._create_turn_memories(session_state, model)
        reminder = ReminderMiddleware(
            memories.wrap_reminder(services.compose_reminder) if memories else services.compose_reminder
        )
        prompt = PromptMiddleware(
            self._create_prompt(model), base=options.instructions or "", window=lambda: session_state.state.window,
            rebuild=options.memory.refresh == "step", location=self._memory.label,
        )  # fmt: skip
        steps = [
            *create_forgotten_middleware(workspace, self._memory.store),
            prompt,
            reminder,
            CompactionMiddleware(
                pipelines.per_request,
                meter=meter,
                emitter=parts.emitter,
                retries=pipelines.overflow_retries,
                record_reduction=compactions.record,
                get_undone=lambda: session_state.state.messages_at_undo,
                overflow_strategies=pipelines.on_overflow,
            ),
            prompt.complete,
            reminder.refresh_reminder,
            session_state.observe_request,
            *([options.parent.middleware] if options.parent else ()),
        ]
        totals = UsageTotals()
        loop = AgentLoop(
            model,
            tools=tools,
            instructions=options.instructions or "",
            steps=steps,
            turns=self._turn_middleware(totals, extraction),
            record=services.task_delivery.wrap_recorder(session_state.record),
            gate=services.permission_gate,
            limits=options.limits,
            emitter=parts.emitter,
        )
        return AgentSession(
            resources=self.resources,
            model=model,
            tools=tools,
            turn_runner=TurnRunner(scope=options.scope, run=loop.run, session_state=session_state),
            services=services,
            prompt=prompt,
            reminder=reminder,
            meter=meter,
            pipelines=pipelines,
            compactions=compactions,
            wrap_step=partial(compose, steps),
            compaction=reductions.get("compaction"),
            extraction=extraction,
            closing=self._create_closing(name, model, totals, services),
            turn_memories=memories,
        )

    @property
    def _options(self) -> AgentOptions:
        return self.resources.options

    @property
    def _parts(self) -> Dependencies:
        return self.resources.parts

    @property
    def _workspace(self) -> Workspace | None:
        return self.resources.workspace

    @property
    def _memory(self) -> AgentStore:
        return self.resources.memory

    def _create_prompt(self, model: ChatModel) -> PromptBuilder:
        """Return the builder of the system prompt; without memory tools and hooks it has no memory."""
        options, settings = self._options, self._parts.settings
        shows = settings.preamble_tokens and options.remembers
        return PromptBuilder(
            self.resources.folder, self._workspace, Tokens(settings.preamble_tokens) if shows else None,
            clock=self._parts.clock,
            max_tokens=prompt_budget(settings.workspace_tokens, declared_window(model)), memory=self._memory,
            max_memories=settings.recalled_memories, own_tools=[tool.spec.name for tool in options.tools],
            sessions_path=self._session_files, emitter=self._parts.emitter,
            rule_files=list_rule_files(self.resources), profile=create_profile_view(self.resources),
        )  # fmt: skip

    def _create_turn_memories(self, session_state: SessionState, model: ChatModel) -> TurnMemories | None:
        """Return the memories for each turn; None if that is off, and for a model that quotes memory itself."""
        options, settings = self._options, self._parts.settings
        config = settings.turn_recall
        is_asked = options.remembers and options.parent is None
        if config is None or not config.is_on or not is_asked or not self._memory.is_active:
            return None
        if isinstance(model, QuotingModel):
            return None
        return TurnMemories(
            self._memory.store, config, session_state, clock=self._parts.clock, emitter=self._parts.emitter
        )

    @property
    def _session_files(self) -> str:
        """The folder in which file tools find the session files of the store; empty if they can't."""
        place = self._memory.folder if self._memory.store.offers(KeepsSessions) else None
        if place is None or not place.is_relative_to(self.resources.folder.absolute()):
            return ""
        if self._workspace and place == (self._workspace.folder / WORKSPACE).absolute():
            return "/"
        inside = place.relative_to(self.resources.folder.absolute())
        return "" if ROOT_FOLDER in inside.parts else f"{inside}/"

    def _create_extraction(self) -> ExtractionMiddleware | None:
        if self._workspace is None or not (self.resources.is_writable and self.resources.is_learning):
            return None
        return ExtractionMiddleware(
            self._workspace.inbox,
            config=self._parts.settings.inbox,
            clock=self._parts.clock,
            signals=partial(detect_signals, config=ProcessingConfig(detector=self._parts.settings.signal_detector)),
            on_enqueue=self._workspace.worker.track,
            emitter=self._parts.emitter,
        )

    async def _create_pipelines(
        self,
        model: ChatModel,
        reductions: Reductions,
        extraction: ExtractionMiddleware | None,
        session_state: SessionState,
        *,
        reread: RereadFile | None,
    ) -> CompactionPipelines:
        """Return the strategies of the session: the program's own, or those of its reductions."""
        options, place, session = self._options, self.resources.place, session_state.state.session
        if options.strategies is not None:
            return CompactionPipelines.from_strategies(options.strategies)
        compaction_context = CompactionContext(
            strategies=StrategyContext(
                redactor=self.resources.redactor,
                files=place.files if place and self.resources.is_writable else None,
                reader_tool=reader_name(options.tools),
            ),
            before_drop=partial(extraction.before_drop, options.scope, options.agent, session) if extraction else None,
            handover=self._create_handover(reductions, session) if extraction else None,
            is_recorded=self.resources.is_writable,
            find_original=session_state.find_recorded,
            read_file_again=reread,
            prepare_model=partial(self._prepare_model, purpose="summary", session=session),
            resolve_address=partial(self._parts.settings.resolve_address, agent=self._parts.model),
            clock=self._parts.clock,
        )
        return await CompactionPipelines.create(reductions, model, compaction_context, scratch_files())

    def _create_rereader(self, tools: Sequence[Tool], services: SessionServices, name: str) -> RereadFile | None:
        """Return the function that reads files again after a compaction; None without file tools."""
        options = self._options
        if not (options.builtin_tools.files or options.builtin_tools.shell):
            return None
        context = ToolContext(call_id="", scope=options.scope, agent=options.agent, session=name)
        return create_rereader(tools, services.permission_gate, context)

    def _prepare_model(self, model: ChatModel, *, purpose: str, session: str) -> ChatModel:
        """Return the model for use by memory; usage is only counted if the root is writable."""
        meter = self._workspace.meter if self._workspace and self.resources.is_writable else None
        scope = replace(self._options.scope, agent=self._options.agent, session=session)
        return prepare_memory_model(model, purpose, redactor=self.resources.redactor, meter=meter, scope=scope)

    def _create_handover(self, reductions: Reductions, name: str) -> ExtractionHandover | None:
        """Return the handover that extracts facts in the request for a summary; None if extraction makes its own."""
        if self._workspace is None or self._workspace.flush.config.has_own_request:
            return None
        compaction = reductions.get("compaction")
        seconds = compaction.summary_seconds if compaction else 60.0
        return CompactionExtraction(
            self._workspace.inbox,
            flush=self._workspace.flush,
            worker=self._workspace.worker,
            agent=self._options.agent,
            session=name,
            user=self._options.user,
            seconds=_REQUESTS_PER_SUMMARY * seconds,
            may_learn=self._workspace.flush.may_learn,
        )

    def _create_compactions(self, session_state: SessionState) -> Compactions:
        place = self.resources.place
        return Compactions(
            session_state,
            files=place.files if place else None,
            writable=self.resources.is_writable,
            redactor=place.redactor if place else None,
            clock=self._parts.clock,
            emitter=self._parts.emitter,
            scope=self._options.scope,
        )

    def _turn_middleware(self, totals: UsageTotals, flush: ExtractionMiddleware | None) -> list[TurnMiddleware]:
        """Return the middleware around each turn."""
        if self._workspace is None:
            return [totals]
        maintain = MaintenanceMiddleware(self._workspace.worker.wake, self._workspace.running_turns)
        return [totals, maintain, flush] if flush else [totals, maintain]

    def _create_closing(
        self, name: str, model: ChatModel, totals: UsageTotals, services: SessionServices
    ) -> SessionClosing | None:
        """Return the session's closing; None if its store keeps no sessions, and for a sub-agent."""
        options = self._options
        session_store = self._memory.store.offers(KeepsSessions)
        remembers = options.remembers
        if session_store is None or not remembers or options.parent is not None:
            return None
        if self._memory.is_own and not self.resources.is_writable:
            return None
        mode: ClosingMode = options.memory.closing_summary or ("off" if self._memory.is_own else "sync")

        async def load_messages(session: str) -> Sequence[Message]:
            if self._workspace is None or not self.resources.is_writable:
                return totals.messages if session == name else ()
            return await read_unforgotten_messages(self._workspace.memory_root, self._options.agent, session)

        return SessionClosing(
            session=name,
            scope=options.scope,
            session_store=session_store,
            model=self._prepare_model(model, purpose="closing summary", session=name),
            mode=mode,
            load_messages=load_messages,
            totals=totals,
            todos=lambda: services.session_state.work_state.todos,
            emitter=self._parts.emitter,
        )

    def _create_tools(
        self,
        model: ChatModel,
        compactions: Compactions,
        reductions: Reductions,
        services: SessionServices,
        state: AgentState,
    ) -> tuple[Tool, ...]:
        options = replace(self._options, model=model)
        background = options.builtin_tools.shell and options.parent is None
        tool_set = ToolSet(
            resources=self.resources,
            reductions=reductions,
            session=state.session,
            tasks=services.task_runner if background else None,
        )

        def create_worker(spec: SubAgent) -> LocalWorker:
            return LocalWorker(
                spec=spec,
                parent=options,
                session=state.session,
                session_state=services.session_state,
                ids=self._parts.ids,
                create_session=self._create_sub_session,
            )

        workers = create_workers(
            options.sub_agents,
            parent=options.agent,
            list_tools=tool_set.inheritable_names,
            create_local=create_worker,
        )
        session_tools = services.create_tools(workers, planning=options.builtin_tools.planning, background=background)
        tools = tool_set.build(compactions, session_tools, state.window)
        if options.parent is None:
            services.permissions.set_tool_names(
                {tool.spec.name for tool in tools} | tool_set.inheritable_names(), options.permissions
            )
        return tools

    async def _create_sub_session(self, options: AgentOptions) -> AgentSession:
        """Open the session of a sub-agent, next to this one."""
        return await SessionFactory(resources=replace(self.resources, options=options)).create_session()

    def _connect_model(self) -> ChatModel:
        """Return the agent's model; the model `offline` gets access to memory."""
        model = QuotingModel() if isinstance(self._options.model, str) else self._options.model
        if isinstance(model, QuotingModel):
            search = self._search_root if self._memory.is_own else self._search_other_store
            model.set_search(search, keeps=self.resources.is_writable)
        return model

    async def _search_root(self, text: str) -> Answer | None:
        layers = self._memory.store.offers(LayeredMemory)
        places = await layers.places() if layers else []
        sources = [await place.source(self._options.scope) for place in places]
        return await quote_from_sources(sources, text, now=self._parts.clock.now())

    async def _search_other_store(self, text: str) -> Answer | None:
        now = self._parts.clock.now()
        return await quote_from_store(self._memory.store, text, now=now, folder=self._memory.folder)


_NO_STORE = "none:"
_CORRECTION_STAGES = frozenset({"forget", "undo"})


@asynccontextmanager
async def open_session(options: AgentOptions) -> AsyncIterator[AgentSession]:
    """Open the root and the store, resume or start the session, and close everything at the end.

    A root or store that can't be opened is logged once, and the session runs without memory, unless memory is required.
    A read-only root is logged too, and nothing of the session is saved. The store is closed before the root, also if
    the block raises. An incognito session opens neither. Raises: RootNotTrusted; ScopeMismatch; InvalidSetting;
    ModelNotFound, ModelKeyMissing, ExtraMissing; with a `required` memory the error from opening the root or the store.
    """
    root = await run_sync(_locate_root, options)
    settings = await run_sync(_load_settings, options, root)
    options = replace(options.with_defaults(settings, root), approve=_serialize_approvals(options.approve))
    prompts = _PromptInvalidator()
    parts = Dependencies.create(
        settings=settings, clock=options.clock, disk=options.disk, sink=prompts.wrap_sink(options.on_event)
    )
    model = await _load_model(options, settings)
    parts = replace(parts, model=None if isinstance(model, str) else model)
    sub_agents = await load_sub_agent_models(options.sub_agents, parts)
    name = options.session or options.scope.session or create_session_name(parts)
    options = replace(options, model=model, model_settings=None, sub_agents=sub_agents, session=name)
    async with AsyncExitStack() as stack:
        workspace = None
        if not options.memory.incognito:
            scope = replace(options.scope, session=name)
            workspace = await _open_workspace(stack, root, scope, parts, required=options.memory.required)
        if workspace and not options.memory.keeps_session:
            stack.push_async_callback(_end_session, workspace)
        folders = [root, workspace.folder] if workspace else []
        is_writable = bool(folders) and all([await run_sync(_is_writable, folder) for folder in folders])
        if workspace and not is_writable:
            _LOG.warning("The memory in %s can only be read: nothing that is said now is kept.", root)
            if workspace.memory_root.usage:
                workspace.memory_root.usage.disable()
        memory = await _open_store(stack, options, parts, root=root, workspace=workspace)
        resources = AgentResources(
            options=options,
            parts=parts,
            root=root,
            folder=Path(options.builtin_tools.working_directory or root.parent),
            workspace=workspace,
            memory=memory,
            is_writable=is_writable,
        )
        session = await SessionFactory(resources=resources).create_session()
        stack.push_async_callback(session.turn_runner.session_state.close)
        prompts.session = session
        await stack.enter_async_context(session.services.task_runner.lifespan())
        if session.turn_memories:
            await stack.enter_async_context(session.turn_memories.search_in_background())
        if session.closing:
            await stack.enter_async_context(session.closing.close_on_exit())
        yield session


class _PromptInvalidator:
    """Invalidates a session's prompt after a person had something forgotten or undid a write."""

    session: AgentSession | None = None

    def wrap_sink(self, other: EventSink | None) -> EventSink:
        """Return a sink that also passes events to `other`."""

        def handle_event(event: Event) -> None:
            if self.session and event.stage in _CORRECTION_STAGES and event.status == "finished":
                self.session.prompt.invalidate()
            if other:
                other(event)

        return handle_event


def _serialize_approvals(approve: ApprovalHandler | None) -> ApprovalHandler | None:
    """Return a handler that asks one question at a time, for the agent and its sub-agents together."""
    if approve is None:
        return None
    lock = anyio.Lock()

    async def ask_alone(asked: Approval) -> bool:
        async with lock:
            return await approve(asked)

    return ask_alone


def _locate_root(options: AgentOptions) -> Path:
    root = options.memory.root or (options.settings.root if options.settings else None)
    machine = options.settings or Settings.from_environment()
    return Path(root or Settings.from_environment().root or default_root(machine.worktrees)).absolute()


def _load_settings(options: AgentOptions, root: Path) -> Settings:
    """Return the settings of the root with those that the agent's own arguments decide.

    Raises: RootNotTrusted, InvalidSetting, DocumentInvalid.
    """
    settings = _read_settings(root, options.settings, trusted=options.memory.trusted)
    if options.settings is None and options.recommended:
        settings = settings.with_default_embedder()
    if options.memory.incognito:
        # The root is not opened, but the rules in it are still read.
        settings.check_trust(root)
    if isinstance(options.model, str) and options.model != OFFLINE:
        settings = settings.with_model(options.model)
    if not uses_root_memory(options.memory.store, settings, root):
        settings = replace(settings, consolidation=None)
    if options.recommended and settings.turn_recall is None and "turn_recall" not in settings.origins:
        settings = replace(settings, turn_recall=TurnRecallConfig())
    eviction = options.reductions.get("tool_result_eviction")
    if eviction is not None:
        # The files that this agent evicts are cleaned up by its own configuration.
        settings = replace(settings, reductions={**settings.reductions, "tool_result_eviction": eviction})
    return replace(settings, flush=options.memory.flush) if options.memory.flush else settings


def _read_settings(root: Path, settings: Settings | None, *, trusted: bool) -> Settings:
    """Return the settings for the root. Raises: RootNotTrusted, InvalidSetting, DocumentInvalid."""
    effective = settings or Settings.from_environment()
    effective = effective.with_trusted_root(root) if trusted else effective
    try:
        effective.check_trust(root)
    except StorageError:
        # A root that can't be read is reported when it is opened.
        return settings or Settings.load(own=True)
    try:
        return effective if settings else Settings.load(root, trusted=trusted)
    except DocumentInvalid:
        raise
    except StorageError:
        return Settings.load(own=True)


async def _load_model(options: AgentOptions, settings: Settings) -> str | ChatModel:
    """Return the agent's model, which memory uses too; `offline` stays a name."""
    if not isinstance(options.model, str) or options.model == OFFLINE:
        return options.model
    return await run_sync(partial(load_agent_model, options.model, settings, options.model_settings))


async def _open_store(
    stack: AsyncExitStack, options: AgentOptions, parts: Dependencies, *, root: Path, workspace: Workspace | None
) -> AgentStore:
    """Return the agent's store; for an incognito agent one that saves nothing. A store passed open is closed anyway."""
    open_store = partial(
        open_agent_store,
        scope=options.scope,
        parts=parts,
        root=root,
        workspace=workspace,
        required=options.memory.required,
    )
    if not options.memory.incognito:
        return await stack.enter_async_context(open_store(options.memory.store))
    if isinstance(options.memory.store, Store):
        await stack.enter_async_context(open_store(options.memory.store))
    return await stack.enter_async_context(open_store(_NO_STORE))


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


async def _end_session(workspace: Workspace) -> None:
    """Erase what was remembered for the session alone; what fails is logged, and the next process does it."""
    try:
        await run_even_if_cancelled(workspace.end_session)
    except StorageError as error:
        _LOG.warning("What was remembered for the session alone is erased by the next process: %s", error)


async def _open_workspace(
    stack: AsyncExitStack, root: Path, scope: Scope, parts: Dependencies, *, required: bool
) -> Workspace | None:
    try:
        return await stack.enter_async_context(open_workspace(root, scope, parts))
    except (RicordoError, OSError) as error:
        note_not_opened(error, f"The memory in {root}", "this session goes on without one", required=required)
        return None
