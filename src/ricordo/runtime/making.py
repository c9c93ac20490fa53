"""Making: the parts of an agent's session put together, in one place. What the parts do is decided in their rooms."""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.compaction.compact import Reread
from ricordo.compaction.contract import Handover
from ricordo.compaction.placeholder import with_reader
from ricordo.errors import ScopeMismatch
from ricordo.flush.processing import ProcessingConfig, signals_in
from ricordo.guard import Redactor
from ricordo.harness.compactions import Compactions
from ricordo.harness.conversation import Conversation, Keeper
from ricordo.harness.loop import Harness
from ricordo.harness.offline import OFFLINE
from ricordo.harness.sub_agents import SubAgent
from ricordo.harness.taking_up import rebuilt, taken_up, told_in
from ricordo.harness.turn_recall import TurnRecallConfig
from ricordo.maintenance.handover import CompactionHandover
from ricordo.messages import Message
from ricordo.middleware import StepMiddleware, TurnMiddleware
from ricordo.middleware.compact import CompactWindow
from ricordo.middleware.flush import FlushJobs
from ricordo.middleware.inject import Inject
from ricordo.middleware.maintain import Maintain
from ricordo.middleware.measure import measure_of
from ricordo.middleware.profile import ShowProfile
from ricordo.middleware.remind import Remind
from ricordo.middleware.tally import Tally
from ricordo.middleware.transcript import TranscriptRecord
from ricordo.middleware.update import UpdateMemory
from ricordo.models import ChatModel
from ricordo.models.limits import declared_window
from ricordo.recall.hits import Answer
from ricordo.runtime.agent_options import AgentOptions
from ricordo.runtime.agent_store import AgentStore
from ricordo.runtime.assembly import Parts, Workspace, scratch_files
from ricordo.runtime.closing import ClosingMode, SessionClosing
from ricordo.runtime.guarded_models import model_for_memory
from ricordo.runtime.named_model import load_named
from ricordo.runtime.offline import QuotingModel, found_for, found_in
from ricordo.runtime.prompt import Prompt, Renewal, prompt_room, written_in
from ricordo.runtime.reductions import Ladders, Reductions, Surroundings
from ricordo.runtime.rereading import rereading
from ricordo.runtime.roots import FOLDER
from ricordo.runtime.session import Session
from ricordo.runtime.shown_profile import shown_profile
from ricordo.runtime.standing import Beside, beside_window
from ricordo.runtime.still_said import hiding, still_said
from ricordo.runtime.sub_agents import LocalWorker, loaded, workers
from ricordo.runtime.tool_sets import ToolSet, reader_name
from ricordo.runtime.turn_memories import TurnMemories
from ricordo.sessions.owners import owner_of
from ricordo.state import AgentState, Stated
from ricordo.stores.capabilities import KeepsSessions, Layers
from ricordo.tokens import Tokens
from ricordo.tools import Tool, ToolContext
from ricordo.tools.real_paths import RealPaths
from ricordo.workspace.layout import DEFAULT_AGENT, WORKSPACE, transcript_path
from ricordo.workspace.transcript import Transcript, read_log

__all__ = ["Making"]

_LOG = logging.getLogger("ricordo.agent")
_BASE = "You are a helpful assistant. Say so when you do not know something."
_SUMMARY_REQUESTS = 4
"""How many requests one summary takes at most, about: it is written, asked for again, and in parts."""


@dataclass(frozen=True, kw_only=True)
class Making:
    """Makes one session of these; `root` is absolute, and `keeps` tells whether it can be written to."""

    options: AgentOptions
    parts: Parts
    root: Path
    workspace: Workspace | None
    memory: AgentStore
    keeps: bool

    async def session(self) -> Session:
        """Return the session, open. Raises: ScopeMismatch when it is another user's."""
        options, parts, workspace = self.options, self.parts, self.workspace
        model = await self._model()
        keeper = await self._keeper(options.session or options.scope.session or self._new_name())
        name = keeper.state.session
        measure = measure_of(model, ratio=keeper.state.ratio)
        keeper.learn_from(lambda: measure.ratio)
        compactions = self._compactions(keeper)
        prompt = self._prompt(model)
        inject = Inject(prompt)
        flush, on = self._flush(), self._reductions(model)
        beside = beside_window(
            keeper, session=name, options=options, parts=parts, workspace=workspace, keeps=self.keeps,
            real=RealPaths(self._folder, (workspace.folder if workspace else self.root) / WORKSPACE), root=self.root,
        )  # fmt: skip
        described = replace(options, model=model, sub_agents=await loaded(options.sub_agents, parts))
        tools = self._tools(described, compactions, on, beside, keeper.state)
        around = replace(self._surroundings(on, flush, keeper), reread=self._reread(tools, beside, name))
        ladders = await Ladders.made(on, model, around, scratch_files())
        memories = self._memories(keeper, model)
        remind = Remind(memories.reminding(beside.remind) if memories else beside.remind)
        tally = Tally()
        base = _BASE if options.instructions is None else options.instructions
        shrink = CompactWindow(
            ladders.each,
            measure=measure,
            emitter=parts.emitter,
            retries=on.retries,
            noted=compactions.note,
            undone=lambda: keeper.state.undone,
            refused=ladders.refused,
        )
        renewal = Renewal(inject, base=base, window=lambda: keeper.state.window)
        profile = ShowProfile(prompt, prompt.known)
        hide, watching = hiding(workspace, self.memory.store), self._watching
        update = UpdateMemory(prompt, inject, base=base, at_once=options.refresh == "step", where=self.memory.where)
        harness = Harness(
            model,
            tools=tools,
            instructions=base,
            steps=[*hide, inject, remind, shrink, renewal, profile, update, remind.again, keeper.watch, *watching],
            turns=self._around(tally, flush),
            record=beside.shown.recording(keeper.record),
            gate=beside.gate,
            max_iters=options.max_iters or parts.settings.max_iters,
            limits=options.turn_limits,
            emitter=parts.emitter,
        )
        return Session(
            name=name, scope=options.scope, agent=self._agent, model=model, tools=tools, base=base,
            conversation=Conversation(scope=options.scope, run=harness.run, keeper=keeper), compactions=compactions,
            beside=beside, remind=remind.reminded, inject=inject, prompt=prompt, measure=measure,
            strategies=ladders.asked, memory=self.memory, dry=ladders.tried,
            emitter=parts.emitter, compaction=on.compaction, flush=flush, workspace=workspace,
            keeps=self.keeps, settings=parts.settings, closing=self._closing(name, model, tally, beside),
            memories=memories,
        )  # fmt: skip

    @property
    def _agent(self) -> str:
        return self.options.scope.agent or DEFAULT_AGENT

    @property
    def _user(self) -> str:
        return self.options.scope.user or ""

    @cached_property
    def _redactor(self) -> Redactor:
        return self.workspace.place.redactor if self.workspace else Redactor(secrets.token_bytes(32))

    @property
    def _folder(self) -> Path:
        return self.options.working_directory or self.root.parent

    def _new_name(self) -> str:
        return f"{self.parts.clock.now():%Y-%m-%d-%Hh%M}-{self.parts.ids.new()[-6:]}"

    def _prompt(self, model: ChatModel) -> Prompt:
        """Return what writes the system prompt; memory stays out of it when neither tools nor hooks are on."""
        options, settings = self.options, self.parts.settings
        shows = settings.preamble_tokens and (options.memory_tools or options.memory_hooks)
        return Prompt(
            self._folder, self.workspace, Tokens(settings.preamble_tokens) if shows else None, clock=self.parts.clock,
            most=prompt_room(settings.workspace_tokens, declared_window(model)), memory=self.memory,
            recalled=settings.recalled_memories, own=[tool.spec.name for tool in options.tools],
            sessions=self._session_files, emitter=self.parts.emitter,
            written_in=written_in(self.root, options, self.workspace),
            profile=shown_profile(options, settings.injection, self.workspace, self.memory),
        )  # fmt: skip

    def _memories(self, keeper: Keeper, model: ChatModel) -> TurnMemories | None:
        """Return what reminds each turn of memories; None where that is off, and for what finds its answers there."""
        options, settings = self.options, self.parts.settings
        config = settings.turn_recall
        if config is None and options.recommended and "turn_recall" not in settings.origins:
            config = TurnRecallConfig()
        is_asked = (options.memory_tools or options.memory_hooks) and options.parentage is None
        if config is None or not config.is_on or not is_asked or not self.memory.keeps:
            return None
        if isinstance(model, QuotingModel):
            return None
        return TurnMemories(self.memory.store, config, keeper, clock=self.parts.clock, emitter=self.parts.emitter)

    @property
    def _session_files(self) -> str:
        """Below which folder file tools find the session files of the store; empty where they don't."""
        place = self.memory.folder if self.memory.store.offers(KeepsSessions) else None
        if place is None or not place.is_relative_to(self._folder.absolute()):
            return ""
        if self.workspace and place == (self.workspace.folder / WORKSPACE).absolute():
            return "/"
        inside = place.relative_to(self._folder.absolute())
        return "" if FOLDER in inside.parts else f"{inside}/"

    def _flush(self) -> FlushJobs | None:
        if self.workspace is None or not (self.keeps and self._learns):
            return None
        return FlushJobs(
            self.workspace.inbox,
            config=self.parts.settings.inbox,
            clock=self.parts.clock,
            signals=partial(signals_in, config=ProcessingConfig(detector=self.parts.settings.detector)),
            asked=self.workspace.worker.follow,
            emitter=self.parts.emitter,
        )

    @property
    def _learns(self) -> bool:
        """Whether what is said is learned from, which only the root's own memory is there for."""
        flush = self.parts.settings.flush
        is_on = flush is not None and flush.is_on
        return self.options.memory_hooks and is_on and (self.memory.is_own or self.workspace is None)

    def _reductions(self, model: ChatModel) -> Reductions:
        options = self.options
        on = options.reductions
        on = on.recommended(self.parts.settings, declared_window(model)) if options.recommended else on
        return options.parentage.reduced(on) if options.parentage else on

    def _surroundings(self, on: Reductions, flush: FlushJobs | None, keeper: Keeper) -> Surroundings:
        place, name = self.workspace.place if self.workspace else None, keeper.state.session
        later = partial(flush.before_drop, self.options.scope, self._agent, name) if flush else None
        return Surroundings(
            redactor=self._redactor,
            files=place.files if place and self.keeps else None,
            later=later, now=self._handover(on, name) if flush else None, recorded=self.keeps, original=keeper.recorded,
            metered=partial(self._metered, purpose="summary", session=name), reader=reader_name(self.options.tools),
            address=partial(self.parts.settings.address, agent=self.parts.model), clock=self.parts.clock,
        )  # fmt: skip

    def _reread(self, tools: Sequence[Tool], beside: Beside, name: str) -> Reread | None:
        """Return what reads files again after a compaction; None without file tools."""
        if not (self.options.file_tools or self.options.shell):
            return None
        context = ToolContext(call_id="", scope=self.options.scope, agent=self._agent, session=name)
        return rereading(tools, beside.gate, context)

    def _metered(self, model: ChatModel, *, purpose: str, session: str) -> ChatModel:
        """Return the model as memory asks it; where no root keeps a record nothing is counted."""
        meter = self.workspace.meter if self.workspace and self.keeps else None
        scope = replace(self.options.scope, agent=self._agent, session=session)
        return model_for_memory(model, purpose, redactor=self._redactor, meter=meter, scope=scope)

    def _handover(self, on: Reductions, name: str) -> Handover | None:
        """Return who takes what leaves the window, so that the request for its summary learns from it."""
        if self.workspace is None or self.workspace.flush.config.has_own_request:
            return None
        seconds = on.compaction.summary_seconds if on.compaction else 60.0
        return CompactionHandover(
            self.workspace.inbox,
            flush=self.workspace.flush,
            worker=self.workspace.worker,
            agent=self._agent,
            session=name,
            user=self._user,
            seconds=_SUMMARY_REQUESTS * seconds,
            may_learn=self.workspace.flush.may_learn,
        )

    def _compactions(self, keeper: Keeper) -> Compactions:
        place = self.workspace.place if self.workspace else None
        return Compactions(
            keeper,
            files=place.files if place else None,
            writable=self.keeps,
            redactor=place.redactor if place else None,
            clock=self.parts.clock,
            emitter=self.parts.emitter,
            scope=self.options.scope,
        )

    def _around(self, tally: Tally, flush: FlushJobs | None) -> list[TurnMiddleware]:
        """Return what surrounds each turn."""
        if self.workspace is None:
            return [tally]
        maintain = Maintain(self.workspace.worker.wake, self.workspace.turns)
        return [tally, maintain, flush] if flush else [tally, maintain]

    def _closing(self, name: str, model: ChatModel, tally: Tally, beside: Beside) -> SessionClosing | None:
        """Return what sums the session up; None where its store keeps no sessions, and for a sub-agent."""
        options = self.options
        keeps = self.memory.store.offers(KeepsSessions)
        remembers = options.memory_tools or options.memory_hooks
        if keeps is None or not remembers or options.parentage is not None:
            return None
        if self.memory.is_own and not self.keeps:
            return None
        mode: ClosingMode = options.closing_summary or ("off" if self.memory.is_own else "sync")

        async def said(session: str) -> Sequence[Message]:
            if self.workspace is None or not self.keeps:
                return tally.said if session == name else ()
            return await still_said(self.workspace.place, self._agent, session)

        return SessionClosing(
            session=name, scope=options.scope, keeps=keeps,
            model=self._metered(model, purpose="closing summary", session=name), mode=mode, said=said, tally=tally,
            todos=lambda: beside.keeper.standing.todos, emitter=self.parts.emitter,
        )  # fmt: skip

    async def _keeper(self, name: str) -> Keeper:
        """Return what keeps the window, taken up where state and transcript left it."""
        agent, workspace = self._agent, self.workspace
        if workspace is None:
            return Keeper(AgentState(agent=agent, session=name, user=self._user, learns=self._learns), self._redactor)
        files, path = workspace.place.files, transcript_path(agent, name)
        states = self.options.states or workspace.states
        stated = await states.load(agent, name)
        if stated.set_aside:
            _LOG.warning("The state of session %s can't be read and was set aside as %s.", name, stated.set_aside)
        owner = stated.state.user or await self._owner_set_aside(stated)
        if owner not in {"", self._user}:
            raise ScopeMismatch(f"The session {name} is another user's: open a session of your own.")
        transcript = Transcript(files, path, session=name, redactor=workspace.place.redactor)
        logged = (await read_log(files, path)).messages
        said = () if logged or not self.keeps else rebuilt(stated.state)
        if said:
            _LOG.warning("The transcript of session %s is gone: what its state still holds is written again.", name)
            logged = (await transcript.append(said)).messages
        window = taken_up(stated.state.window, stated.state.last, logged)
        window = tuple(with_reader(message, reader_name(self.options.tools)) for message in window)
        # what was begun without a user stays everybody's
        user = owner or ("" if logged or stated.state.window else self._user)
        # what waits to be learned from an earlier time is learned all the same
        before = bool(logged) and not stated.set_aside and stated.state.learns
        standing = told_in(stated.state.standing, logged)
        last = logged[-1].id if logged else ""
        learns = self._learns or before
        state = replace(stated.state, window=window, last=last, user=user, learns=learns, standing=standing)
        if not self.keeps:
            return Keeper(state, self._redactor)
        record = TranscriptRecord(
            transcript, scope=self.options.scope, clock=self.parts.clock, emitter=self.parts.emitter
        )
        return Keeper(state, states=states, version=stated.version, record=record, logged=logged)

    async def _owner_set_aside(self, stated: Stated) -> str:
        """Return whose session it was by a state that was set aside, the opener's when that can't be told either."""
        files = self.workspace.place.files if self.workspace else None
        info = await files.info(stated.set_aside) if files and stated.set_aside else None
        if files is None or info is None:
            return ""
        owner = await owner_of(files, info)
        return self._user if owner is None else owner

    def _tools(
        self, options: AgentOptions, compactions: Compactions, on: Reductions, beside: Beside, state: AgentState
    ) -> tuple[Tool, ...]:
        background = options.shell and options.parentage is None
        tool_set = ToolSet(
            options=options, parts=self.parts, root=self.root, folder=self._folder, workspace=self.workspace,
            memory=self.memory, keeps=self.keeps, on=on, session=state.session,
            tasks=beside.runner if background else None,
        )  # fmt: skip

        def local(described: SubAgent) -> LocalWorker:
            return LocalWorker(
                described=described, parent=options, session=state.session, keeper=beside.keeper, ids=self.parts.ids,
                begin=self._begin,
            )  # fmt: skip

        found = workers(options.sub_agents, parent=self._agent, known=tool_set.known, local=local)
        standing = beside.tools(found, planning=options.planning, background=background)
        tools = tool_set.tools(compactions, standing, state.window)
        if options.parentage is None:
            beside.permissions.know({tool.spec.name for tool in tools} | tool_set.known(), options.permissions)
        return tools

    async def _begin(self, options: AgentOptions) -> Session:
        """Open a session of a sub-agent, beside this one."""
        return await replace(self, options=options).session()

    @property
    def _watching(self) -> Sequence[StepMiddleware]:
        return [self.options.parentage.step] if self.options.parentage else []

    async def _model(self) -> ChatModel:
        model = self.options.model
        if isinstance(model, str) and model != OFFLINE:
            return await run_sync(partial(load_named, model, self.parts.settings))
        found = QuotingModel() if isinstance(model, str) else model
        if isinstance(found, QuotingModel):
            found.look_with(self._found, keeps=self.keeps)
        return found

    async def _found(self, text: str) -> Answer | None:
        now = self.parts.clock.now()
        if not self.memory.is_own:
            return await found_in(self.memory.store, text, now=now, folder=self.memory.folder)
        layers = self.memory.store.offers(Layers)
        return await found_for(
            [await place.source(self.options.scope) for place in await layers.places()] if layers else [], text, now=now
        )
