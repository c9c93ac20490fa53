"""Agents: an open root, a model and tools put together to one session. What the parts do is decided in their rooms."""

import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.compaction.config import CompactionConfig
from ricordo.compaction.contract import Strategy
from ricordo.errors import (
    DocumentInvalid,
    InvalidInput,
    InvalidScope,
    InvalidSetting,
    RicordoError,
    ScopeError,
    StorageError,
    StorageFailed,
)
from ricordo.events import Event, Sink
from ricordo.files.disk import Disk
from ricordo.guard import has_secret
from ricordo.harness.conversation import Conversation, Keeper
from ricordo.harness.loop import Harness
from ricordo.harness.offline import OFFLINE
from ricordo.harness.taking_up import taken_up
from ricordo.middleware import StepMiddleware
from ricordo.middleware.compact import CompactWindow
from ricordo.middleware.evict import EvictResults
from ricordo.middleware.flush import FlushJobs
from ricordo.middleware.inject import Inject
from ricordo.middleware.maintain import Maintain
from ricordo.middleware.measure import Measure
from ricordo.middleware.transcript import TranscriptRecord
from ricordo.middleware.update import UpdateMemory
from ricordo.models import ChatModel
from ricordo.models.provider import load_model
from ricordo.recall.hits import Answer
from ricordo.runtime.assembly import Parts, Workspace, open_workspace, working_files
from ricordo.runtime.offline import QuotingModel, found_for
from ricordo.runtime.prompt import Prompt, Renewal
from ricordo.runtime.reductions import Reductions, evictions, shrinkers
from ricordo.runtime.roots import nearest_root
from ricordo.runtime.session import Session
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.state import AgentState
from ricordo.stores.capabilities import Layers
from ricordo.tokens import Tokens
from ricordo.tools import Approve, Tool
from ricordo.tools.file_tools import file_tools
from ricordo.tools.memory_tools import memory_tools
from ricordo.workspace.layout import DEFAULT_AGENT, transcript_path
from ricordo.workspace.transcript import Transcript, read_log

__all__ = ["AgentOptions", "open_session"]

_LOG = logging.getLogger("ricordo.agent")
_BASE = "You are a helpful assistant. Say so when you do not know something."
_CORRECTING = frozenset({"forget", "undo"})


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """What describes an agent; see `HarnessAgent` for each. With `recommended` every reduction that is None is on."""

    model: str | ChatModel
    scope: Scope
    root: Path | None = None
    session: str | None = None
    instructions: str | None = None
    tools: tuple[Tool, ...] = ()
    reductions: Reductions = field(default_factory=Reductions)
    recommended: bool = False
    memory_tools: bool = True
    memory_hooks: bool = True
    require_memory: bool = False
    file_tools: bool = False
    shell: bool = False
    working_directory: Path | None = None
    approve: Approve | None = None
    max_iters: int | None = None
    on_event: Sink | None = None
    settings: Settings | None = None
    clock: Clock | None = None
    disk: Disk | None = None

    def __post_init__(self) -> None:
        """Refuse a turn of no request, and secrets where a folder or a file is named after them."""
        if self.max_iters is not None and self.max_iters < 1:
            raise InvalidSetting(f"max_iters is at least 1, not {self.max_iters}.")
        if any(map(has_secret, (*self.scope.parts().values(), self.session or ""))):
            raise InvalidScope("A part of the scope, or the session, holds a secret: files would be named after it.")


@asynccontextmanager
async def open_session(options: AgentOptions) -> AsyncIterator[Session]:
    """Open the root, take up the session or begin it, and close everything at the end.

    A root that can't be opened is told to the log once, and the session goes on without memory, unless that is
    required; one that can only be read is told too, and nothing of the session is kept. Raises: ScopeMismatch;
    InvalidSetting; ModelNotFound, ModelKeyMissing, ExtraMissing; with `require_memory` what kept the root closed.
    """
    given = options.settings
    root = await run_sync(_located, options.root or (given.root if given else None))
    settings = given or await run_sync(_settings, root)
    prompts = _Prompts()
    parts = Parts.standard(
        settings=settings, clock=options.clock, disk=options.disk, sink=prompts.told_too(options.on_event)
    )
    async with AsyncExitStack() as stack:
        workspace = await _opened(stack, root, options.scope, parts, required=options.require_memory)
        keeps = workspace is not None and await run_sync(_is_writable, root)
        if workspace and not keeps:
            _LOG.warning("The memory in %s can only be read: nothing that is said now is kept.", root)
        making = _Making(options=options, parts=parts, root=root, workspace=workspace, keeps=keeps)
        session = await making.session()
        prompts.session = session
        yield session


class _Prompts:
    """Lets a session's prompt be written anew once a person had something forgotten, or took a write back."""

    session: Session | None = None

    def told_too(self, other: Sink | None) -> Sink:
        """Return a sink that tells `other` as well."""

        def hear(event: Event) -> None:
            if self.session and event.stage in _CORRECTING and event.status == "finished":
                self.session.inject.refresh(self.session.name)
            if other:
                other(event)

        return hear


def _located(named: Path | None) -> Path:
    return (named or Settings.from_environment().root or nearest_root()).absolute()


def _settings(root: Path) -> Settings:
    try:
        return Settings.load(root)
    except DocumentInvalid:
        raise
    except StorageError:
        # a root that can't be read is told when it is opened
        return Settings.load()


def _is_writable(root: Path) -> bool:
    return os.access(root, os.W_OK)


async def _opened(stack: AsyncExitStack, root: Path, scope: Scope, parts: Parts, *, required: bool) -> Workspace | None:
    try:
        return await stack.enter_async_context(open_workspace(root, scope, parts))
    except (ScopeError, InvalidInput):
        raise
    except (RicordoError, OSError) as error:
        if required and isinstance(error, RicordoError):
            raise
        if required:
            raise StorageFailed(f"{root} can't be opened: {error}") from error
        _LOG.warning("The memory in %s can't be opened, so this session goes on without one: %s", root, error)
        return None


@dataclass(frozen=True, kw_only=True)
class _Making:
    """Makes one session of these; `root` is absolute, and `keeps` tells whether it can be written to."""

    options: AgentOptions
    parts: Parts
    root: Path
    workspace: Workspace | None
    keeps: bool

    @property
    def agent(self) -> str:
        return self.options.scope.agent or DEFAULT_AGENT

    @property
    def folder(self) -> Path:
        return self.options.working_directory or self.root.parent

    async def session(self) -> Session:
        options, parts, workspace = self.options, self.parts, self.workspace
        layers = workspace.store.offers(Layers) if workspace else None
        model = await self._model(layers, keeps=self.keeps)
        name = options.session or options.scope.session or self._new_name()
        keeper = await self._keeper(name)
        measure = Measure(model=model.name, limit=model.window, ratio=keeper.state.ratio)
        keeper.learn_from(lambda: measure.ratio)
        prompt = Prompt(self.folder, workspace, self._budget(), clock=parts.clock)
        inject = Inject(prompt)
        learns = self.keeps and options.memory_hooks
        flush = FlushJobs(workspace.inbox, emitter=parts.emitter) if workspace and learns else None
        on = options.reductions.recommended(parts.settings, model.window) if options.recommended else options.reductions
        evict, shrink = (
            evictions(on.tool_result_eviction, workspace if self.keeps else None),
            await self._shrinkers(on, model, flush, name),
        )
        asked = shrink if on.compaction else [*shrink, *await self._shrinkers(_ON_DEMAND, model, flush, name)]
        tools = self._tools()
        base = _BASE if options.instructions is None else options.instructions
        renewal = Renewal(inject, base=base, window=lambda: keeper.state.window)
        harness = Harness(
            model,
            tools=tools,
            instructions=base,
            steps=[
                inject,
                *self._steps(evict, shrink, measure, recover=on.compaction is not None),
                renewal,
                UpdateMemory(prompt, inject, base=base),
                keeper.watch,
            ],
            turns=[Maintain(workspace.worker.wake), flush] if workspace and flush else [],
            record=keeper.record,
            max_iters=options.max_iters or parts.settings.max_iters,
            emitter=parts.emitter,
        )
        return Session(
            name=name,
            scope=options.scope,
            agent=self.agent,
            model=model,
            tools=tools,
            base=base,
            conversation=Conversation(scope=options.scope, run=harness.run, keeper=keeper),
            inject=inject,
            prompt=prompt,
            measure=measure,
            strategies=(*evict, *asked),
            emitter=parts.emitter,
            flush=flush,
            workspace=workspace,
            layers=layers,
            keeps=self.keeps,
            settings=parts.settings,
        )

    def _budget(self) -> Tokens | None:
        """Return how long the preamble may be; None when memory stays out of the prompt."""
        tokens = self.parts.settings.preamble_tokens
        return Tokens(tokens) if tokens and (self.options.memory_tools or self.options.memory_hooks) else None

    def _new_name(self) -> str:
        return f"{self.parts.clock.now():%Y-%m-%d-%Hh%M}-{self.parts.ids.new()[-6:]}"

    async def _keeper(self, name: str) -> Keeper:
        """Return what keeps the window, taken up where state and transcript left it."""
        agent, workspace = self.agent, self.workspace
        if workspace is None:
            return Keeper(AgentState(agent=agent, session=name))
        files, path = workspace.place.files, transcript_path(agent, name)
        stated = await workspace.states.load(agent, name)
        if stated.set_aside:
            _LOG.warning("The state of session %s can't be read and was set aside as %s.", name, stated.set_aside)
        logged = (await read_log(files, path)).messages
        window = taken_up(stated.state.window, stated.state.last, logged)
        state = replace(stated.state, window=window, last=logged[-1].id if logged else "")
        if not self.keeps:
            return Keeper(state)
        transcript = Transcript(files, path, session=name, redactor=workspace.place.redactor)
        record = TranscriptRecord(
            transcript, scope=self.options.scope, clock=self.parts.clock, emitter=self.parts.emitter
        )
        return Keeper(state, states=workspace.states, version=stated.version, record=record)

    def _tools(self) -> tuple[Tool, ...]:
        options, workspace = self.options, self.workspace
        place = workspace.place if workspace else None
        tools = list(options.tools)
        if options.memory_tools:
            store, files = (workspace.store, workspace.place.files) if workspace else (None, None)
            tools += memory_tools(store, files, clock=self.parts.clock)
        if place and (options.file_tools or options.shell):
            tools += file_tools(
                place.files,
                working_files(self.folder, self.root, self.parts),
                changes=place.changes,
                approve=options.approve,
                folder=self.folder,
                redactor=place.redactor,
                root=self.root,
                shell=options.shell,
            )
        return tuple(tools)

    def _steps(
        self, evict: Sequence[Strategy], shrink: Sequence[Strategy], measure: Measure, *, recover: bool
    ) -> list[StepMiddleware]:
        """Return what makes the window of a request smaller; the prompt is added outside of it, to be counted."""
        emitter = self.parts.emitter
        return [
            *(EvictResults(strategy, measure=measure, emitter=emitter) for strategy in evict),
            CompactWindow(shrink, measure=measure, emitter=emitter, recover=recover),
        ]

    async def _shrinkers(
        self, on: Reductions, model: ChatModel, flush: FlushJobs | None, name: str
    ) -> Sequence[Strategy]:
        before = partial(flush.before_drop, self.options.scope, self.agent, name) if flush else None
        return await shrinkers(on, model, before_summary=before, base_url=self.parts.settings.base_url)

    async def _model(self, layers: Layers | None, *, keeps: bool) -> ChatModel:
        model = self.options.model
        if isinstance(model, str) and model != OFFLINE:
            return await run_sync(partial(load_model, model, base_url=self.parts.settings.base_url))
        found = QuotingModel() if isinstance(model, str) else model
        if isinstance(found, QuotingModel):
            found.look_with(partial(self._found, layers), keeps=keeps)
        return found

    async def _found(self, layers: Layers | None, text: str) -> Answer | None:
        sources = [await place.source() for place in await layers.places()] if layers else []
        return await found_for(sources, text, now=self.parts.clock.now())


_ON_DEMAND = Reductions(compaction=CompactionConfig())
"""What a person's wish for a smaller window sets going where compaction is off."""
