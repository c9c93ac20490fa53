"""SessionFactory: creates all parts of a session. Their modules define what they do."""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentStore
from ricordo.agent.compaction_middleware import CompactionMiddleware, create_meter
from ricordo.agent.compactions import Compactions
from ricordo.agent.contract import StepMiddleware, TurnMiddleware
from ricordo.agent.forgotten import create_forgotten_middleware, read_unforgotten_messages
from ricordo.agent.loop import AgentLoop
from ricordo.agent.memory_context import TurnMemories
from ricordo.agent.options import AgentOptions
from ricordo.agent.permissions import PathResolver
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
from ricordo.agent.session_services import SessionServices, create_rereader, create_session_services
from ricordo.agent.session_state import SessionState, TurnRunner, mark_delivered, messages_from_state, resume_window
from ricordo.agent.sub_agent_workers import LocalWorker, create_workers, load_sub_agent_models
from ricordo.agent.sub_agents import SubAgent
from ricordo.agent.tool_sets import ToolSet, reader_name
from ricordo.agent.tools import Tool, ToolContext
from ricordo.agent.turn_middleware import ExtractionMiddleware, MaintenanceMiddleware, TranscriptRecorder, UsageTotals
from ricordo.context.compaction_extraction import CompactionExtraction
from ricordo.context.config import TurnRecallConfig
from ricordo.context.contract import ExtractionHandover, StrategyContext
from ricordo.context.pipeline import CompactionContext, CompactionPipelines
from ricordo.context.strategies import Reductions, with_recommended
from ricordo.context.strategies.summarize import RereadFile
from ricordo.context.tool_results import set_read_tool
from ricordo.errors import ScopeMismatch
from ricordo.extraction.preprocessing import ProcessingConfig, detect_signals
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.messages import Message
from ricordo.messages.tokens import Tokens
from ricordo.models import ChatModel
from ricordo.models.config import OFFLINE
from ricordo.models.contract import declared_window
from ricordo.runtime.guarded_models import prepare_memory_model
from ricordo.runtime.models import load_agent_model
from ricordo.runtime.roots import ROOT_FOLDER
from ricordo.runtime.settings import Settings
from ricordo.runtime.workspace import Dependencies, Workspace, scratch_files
from ricordo.search.contract import Answer
from ricordo.stores.contract import KeepsSessions, LayeredMemory
from ricordo.workspace.agent_state import AgentState, StoredState
from ricordo.workspace.layout import DEFAULT_AGENT, WORKSPACE, transcript_path
from ricordo.workspace.sessions import read_owner
from ricordo.workspace.transcript import Transcript, read_transcript

__all__ = ["SessionFactory", "choose_reductions"]


_LOG = logging.getLogger("ricordo.agent")
_DEFAULT_INSTRUCTIONS = "You are a helpful assistant. Say so when you do not know something."
_REQUESTS_PER_SUMMARY = 4
"""Approximate maximum number of requests for one summary: it is written, retried, and split into parts."""


def choose_reductions(options: AgentOptions, settings: Settings, window: int | None) -> Reductions:
    """Return the reductions of an agent: as given, completed if recommended, and a sub-agent's own over its parent's.

    `window` is that of the agent's model, in tokens; None if unknown.
    """
    on = options.reductions
    if options.recommended:
        on = with_recommended(on, settings.reductions, window)
    return {**on, **options.parent.own_reductions} if options.parent else on


@dataclass(frozen=True, kw_only=True)
class SessionFactory:
    """Creates one session from these values; `root` is absolute, and `is_writable` says whether it is writable."""

    options: AgentOptions
    parts: Dependencies
    root: Path
    workspace: Workspace | None
    memory: AgentStore
    is_writable: bool

    async def create_session(self) -> AgentSession:
        """Return the open session. Raises: ScopeMismatch if it belongs to another user."""
        options, parts, workspace = self.options, self.parts, self.workspace
        model = await self._load_model()
        session_state = await self._load_session_state(options.session or options.scope.session or self._create_name())
        name = session_state.state.session
        meter = create_meter(model, ratio=session_state.state.ratio)
        session_state.set_ratio_source(lambda: meter.ratio)
        compactions = self._create_compactions(session_state)
        flush, reductions = (
            self._create_extraction(),
            choose_reductions(options, parts.settings, declared_window(model)),
        )
        services = create_session_services(
            session_state, session=name, options=options, parts=parts, workspace=workspace, root=self.root,
            path_resolver=PathResolver(self._folder, (workspace.folder if workspace else self.root) / WORKSPACE),
            is_writable=self.is_writable,
        )  # fmt: skip
        loaded_options = replace(
            options, model=model, sub_agents=await load_sub_agent_models(options.sub_agents, parts)
        )
        tools = self._create_tools(loaded_options, compactions, reductions, services, session_state.state)
        compaction_context = replace(
            self._compaction_context(reductions, flush, session_state),
            reread=self._create_rereader(tools, services, name),
        )
        custom_strategies = options.strategies
        pipelines = (
            await CompactionPipelines.create(reductions, model, compaction_context, scratch_files())
            if custom_strategies is None
            else CompactionPipelines.from_strategies(custom_strategies)
        )
        memories = self._create_turn_memories(session_state, model)
        reminder = ReminderMiddleware(
            memories.wrap_reminder(services.compose_reminder) if memories else services.compose_reminder
        )
        totals = UsageTotals()
        base = _DEFAULT_INSTRUCTIONS if options.instructions is None else options.instructions
        compaction_middleware = CompactionMiddleware(
            pipelines.per_request,
            meter=meter,
            emitter=parts.emitter,
            retries=pipelines.overflow_retries,
            record_reduction=compactions.record,
            get_undone=lambda: session_state.state.undone,
            overflow_strategies=pipelines.on_overflow,
        )
        prompt = PromptMiddleware(
            self._create_prompt(model), base=base, window=lambda: session_state.state.window,
            rebuild=options.memory.refresh == "step", location=self.memory.label,
        )  # fmt: skip
        forgotten_middleware, parent_middleware = (
            create_forgotten_middleware(workspace, self.memory.store),
            self._parent_middleware,
        )
        loop = AgentLoop(
            model,
            tools=tools,
            instructions=base,
            steps=[
                *forgotten_middleware,
                prompt,
                reminder,
                compaction_middleware,
                prompt.complete,
                reminder.refresh_reminder,
                session_state.observe_request,
                *parent_middleware,
            ],
            turns=self._turn_middleware(totals, flush),
            record=services.task_delivery.wrap_recorder(session_state.record),
            gate=services.gate,
            limits=replace(options.limits, max_iters=options.limits.max_iters or parts.settings.max_iters),
            emitter=parts.emitter,
        )
        return AgentSession(
            name=name,
            scope=options.scope,
            agent=self._agent,
            model=model,
            tools=tools,
            instructions=base,
            turn_runner=TurnRunner(scope=options.scope, run=loop.run, session_state=session_state),
            compactions=compactions,
            services=services,
            add_reminder=reminder.add_reminder,
            prompt=prompt,
            meter=meter,
            strategies=pipelines.on_demand,
            memory=self.memory,
            dry_run_strategies=pipelines.dry_run,
            emitter=parts.emitter,
            compaction=reductions.get("compaction"),
            extraction=flush,
            workspace=workspace,
            is_recorded=self.is_writable,
            settings=parts.settings,
            closing=self._create_closing(name, model, totals, services),
            turn_memories=memories,
        )

    @property
    def _agent(self) -> str:
        return self.options.scope.agent or DEFAULT_AGENT

    @property
    def _user(self) -> str:
        return self.options.scope.user or ""

    @cached_property
    def _redactor(self) -> Redactor:
        return self.workspace.memory_root.redactor if self.workspace else Redactor(secrets.token_bytes(32))

    @property
    def _folder(self) -> Path:
        folder = self.options.builtin_tools.working_directory
        return self.root.parent if folder is None else Path(folder)

    def _create_name(self) -> str:
        return f"{self.parts.clock.now():%Y-%m-%d-%Hh%M}-{self.parts.ids.new()[-6:]}"

    def _create_prompt(self, model: ChatModel) -> PromptBuilder:
        """Return the builder of the system prompt; without memory tools and hooks it has no memory."""
        options, settings = self.options, self.parts.settings
        shows = settings.preamble_tokens and options.remembers
        return PromptBuilder(
            self._folder, self.workspace, Tokens(settings.preamble_tokens) if shows else None, clock=self.parts.clock,
            max_tokens=prompt_budget(settings.workspace_tokens, declared_window(model)), memory=self.memory,
            max_memories=settings.recalled_memories, own_tools=[tool.spec.name for tool in options.tools],
            sessions_path=self._session_files, emitter=self.parts.emitter,
            rule_files=list_rule_files(self.root, options, self.workspace),
            profile=create_profile_view(options, settings.injection, self.workspace, self.memory),
        )  # fmt: skip

    def _create_turn_memories(self, session_state: SessionState, model: ChatModel) -> TurnMemories | None:
        """Return the memories for each turn; None if that is off, and for a model that quotes memory itself."""
        options, settings = self.options, self.parts.settings
        config = settings.turn_recall
        if config is None and options.recommended and "turn_recall" not in settings.origins:
            config = TurnRecallConfig()
        is_asked = options.remembers and options.parent is None
        if config is None or not config.is_on or not is_asked or not self.memory.is_active:
            return None
        if isinstance(model, QuotingModel):
            return None
        return TurnMemories(
            self.memory.store, config, session_state, clock=self.parts.clock, emitter=self.parts.emitter
        )

    @property
    def _session_files(self) -> str:
        """The folder in which file tools find the session files of the store; empty if they can't."""
        place = self.memory.folder if self.memory.store.offers(KeepsSessions) else None
        if place is None or not place.is_relative_to(self._folder.absolute()):
            return ""
        if self.workspace and place == (self.workspace.folder / WORKSPACE).absolute():
            return "/"
        inside = place.relative_to(self._folder.absolute())
        return "" if ROOT_FOLDER in inside.parts else f"{inside}/"

    def _create_extraction(self) -> ExtractionMiddleware | None:
        if self.workspace is None or not (self.is_writable and self._is_learning):
            return None
        return ExtractionMiddleware(
            self.workspace.inbox,
            config=self.parts.settings.inbox,
            clock=self.parts.clock,
            signals=partial(detect_signals, config=ProcessingConfig(detector=self.parts.settings.signal_detector)),
            on_enqueue=self.workspace.worker.track,
            emitter=self.parts.emitter,
        )

    @property
    def _is_learning(self) -> bool:
        """Whether facts are extracted from messages, which requires the root's own memory."""
        flush = self.parts.settings.flush
        is_on = flush is not None and flush.is_enabled
        return self.options.memory.hooks and is_on and (self.memory.is_own or self.workspace is None)

    def _compaction_context(
        self, reductions: Reductions, flush: ExtractionMiddleware | None, session_state: SessionState
    ) -> CompactionContext:
        place, name = self.workspace.memory_root if self.workspace else None, session_state.state.session
        before_drop = partial(flush.before_drop, self.options.scope, self._agent, name) if flush else None
        return CompactionContext(
            strategies=StrategyContext(
                redactor=self._redactor,
                files=place.files if place and self.is_writable else None,
                reader_tool=reader_name(self.options.tools),
            ),
            before_drop=before_drop,
            handover=self._create_handover(reductions, name) if flush else None,
            is_recorded=self.is_writable,
            find_original=session_state.find_recorded,
            prepare_model=partial(self._prepare_model, purpose="summary", session=name),
            resolve_address=partial(self.parts.settings.resolve_address, agent=self.parts.model),
            clock=self.parts.clock,
        )

    def _create_rereader(self, tools: Sequence[Tool], services: SessionServices, name: str) -> RereadFile | None:
        """Return the function that reads files again after a compaction; None without file tools."""
        if not (self.options.builtin_tools.files or self.options.builtin_tools.shell):
            return None
        context = ToolContext(call_id="", scope=self.options.scope, agent=self._agent, session=name)
        return create_rereader(tools, services.gate, context)

    def _prepare_model(self, model: ChatModel, *, purpose: str, session: str) -> ChatModel:
        """Return the model for use by memory; usage is only counted if the root is writable."""
        meter = self.workspace.meter if self.workspace and self.is_writable else None
        scope = replace(self.options.scope, agent=self._agent, session=session)
        return prepare_memory_model(model, purpose, redactor=self._redactor, meter=meter, scope=scope)

    def _create_handover(self, reductions: Reductions, name: str) -> ExtractionHandover | None:
        """Return the handover that extracts facts in the request for a summary; None if extraction makes its own."""
        if self.workspace is None or self.workspace.flush.config.has_own_request:
            return None
        compaction = reductions.get("compaction")
        seconds = compaction.summary_seconds if compaction else 60.0
        return CompactionExtraction(
            self.workspace.inbox,
            flush=self.workspace.flush,
            worker=self.workspace.worker,
            agent=self._agent,
            session=name,
            user=self._user,
            seconds=_REQUESTS_PER_SUMMARY * seconds,
            may_learn=self.workspace.flush.may_learn,
        )

    def _create_compactions(self, session_state: SessionState) -> Compactions:
        place = self.workspace.memory_root if self.workspace else None
        return Compactions(
            session_state,
            files=place.files if place else None,
            writable=self.is_writable,
            redactor=place.redactor if place else None,
            clock=self.parts.clock,
            emitter=self.parts.emitter,
            scope=self.options.scope,
        )

    def _turn_middleware(self, totals: UsageTotals, flush: ExtractionMiddleware | None) -> list[TurnMiddleware]:
        """Return the middleware around each turn."""
        if self.workspace is None:
            return [totals]
        maintain = MaintenanceMiddleware(self.workspace.worker.wake, self.workspace.running_turns)
        return [totals, maintain, flush] if flush else [totals, maintain]

    def _create_closing(
        self, name: str, model: ChatModel, totals: UsageTotals, services: SessionServices
    ) -> SessionClosing | None:
        """Return the session's closing; None if its store keeps no sessions, and for a sub-agent."""
        options = self.options
        session_store = self.memory.store.offers(KeepsSessions)
        remembers = options.remembers
        if session_store is None or not remembers or options.parent is not None:
            return None
        if self.memory.is_own and not self.is_writable:
            return None
        mode: ClosingMode = options.memory.closing_summary or ("off" if self.memory.is_own else "sync")

        async def load_messages(session: str) -> Sequence[Message]:
            if self.workspace is None or not self.is_writable:
                return totals.messages if session == name else ()
            return await read_unforgotten_messages(self.workspace.memory_root, self._agent, session)

        return SessionClosing(
            session=name,
            scope=options.scope,
            session_store=session_store,
            model=self._prepare_model(model, purpose="closing summary", session=name),
            mode=mode,
            load_messages=load_messages,
            totals=totals,
            todos=lambda: services.session_state.work_state.todos,
            emitter=self.parts.emitter,
        )

    async def _load_session_state(self, name: str) -> SessionState:
        """Return the session state, resumed from the saved state and the transcript."""
        agent, workspace = self._agent, self.workspace
        if workspace is None:
            return SessionState(
                AgentState(agent=agent, session=name, user=self._user, learns=self._is_learning), self._redactor
            )
        files, path = workspace.memory_root.files, transcript_path(agent, name)
        states = self.options.memory.states or workspace.state_store
        stored = await states.load(agent, name)
        if stored.set_aside:
            _LOG.warning("The state of session %s can't be read and was set aside as %s.", name, stored.set_aside)
        owner = stored.state.user or await self._read_lost_owner(stored)
        if owner not in {"", self._user}:
            raise ScopeMismatch(f"The session {name} is another user's: open a session of your own.")
        transcript = Transcript(files, path, session=name, redactor=workspace.memory_root.redactor)
        logged = (await read_transcript(files, path)).messages
        restored = () if logged or not self.is_writable else messages_from_state(stored.state)
        if restored:
            _LOG.warning("The transcript of session %s is gone: what its state still holds is written again.", name)
            logged = (await transcript.append(restored)).messages
        window = resume_window(stored.state.window, stored.state.last, logged)
        window = tuple(set_read_tool(message, reader_name(self.options.tools)) for message in window)
        # A session that was started without a user stays open to everybody.
        user = owner or ("" if logged or stored.state.window else self._user)
        # Messages that wait for extraction from an earlier time are still extracted.
        was_learning = bool(logged) and not stored.set_aside and stored.state.learns
        work_state = mark_delivered(stored.state.work_state, logged)
        last = logged[-1].id if logged else ""
        learns = self._is_learning or was_learning
        state = replace(stored.state, window=window, last=last, user=user, learns=learns, work_state=work_state)
        if not self.is_writable:
            return SessionState(state, self._redactor)
        record = TranscriptRecorder(
            transcript, scope=self.options.scope, clock=self.parts.clock, emitter=self.parts.emitter
        )
        return SessionState(state, states=states, version=stored.version, record=record, logged=logged)

    async def _read_lost_owner(self, stored: StoredState) -> str:
        """Return the owner of a session whose state was set aside; the current user if that is unknown too."""
        files = self.workspace.memory_root.files if self.workspace else None
        info = await files.info(stored.set_aside) if files and stored.set_aside else None
        if files is None or info is None:
            return ""
        owner = await read_owner(files, info)
        return self._user if owner is None else owner

    def _create_tools(
        self,
        options: AgentOptions,
        compactions: Compactions,
        reductions: Reductions,
        services: SessionServices,
        state: AgentState,
    ) -> tuple[Tool, ...]:
        background = options.builtin_tools.shell and options.parent is None
        tool_set = ToolSet(
            options=options, parts=self.parts, root=self.root, folder=self._folder, workspace=self.workspace,
            memory=self.memory, is_writable=self.is_writable, reductions=reductions, session=state.session,
            tasks=services.task_runner if background else None,
        )  # fmt: skip

        def create_worker(spec: SubAgent) -> LocalWorker:
            return LocalWorker(
                spec=spec,
                parent=options,
                session=state.session,
                session_state=services.session_state,
                ids=self.parts.ids,
                create_session=self._create_sub_session,
            )

        workers = create_workers(
            options.sub_agents, parent=self._agent, list_tools=tool_set.inheritable_names, create_local=create_worker
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
        return await replace(self, options=options).create_session()

    @property
    def _parent_middleware(self) -> Sequence[StepMiddleware]:
        return [self.options.parent.middleware] if self.options.parent else []

    async def _load_model(self) -> ChatModel:
        model = self.options.model
        if isinstance(model, str) and model != OFFLINE:
            return await run_sync(partial(load_agent_model, model, self.parts.settings))
        loaded = QuotingModel() if isinstance(model, str) else model
        if isinstance(loaded, QuotingModel):
            search = self._search_root if self.memory.is_own else self._search_other_store
            loaded.set_search(search, keeps=self.is_writable)
        return loaded

    async def _search_root(self, text: str) -> Answer | None:
        layers = self.memory.store.offers(LayeredMemory)
        places = await layers.places() if layers else []
        sources = [await place.source(self.options.scope) for place in places]
        return await quote_from_sources(sources, text, now=self.parts.clock.now())

    async def _search_other_store(self, text: str) -> Answer | None:
        now = self.parts.clock.now()
        return await quote_from_store(self.memory.store, text, now=now, folder=self.memory.folder)
