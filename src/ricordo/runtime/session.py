"""Session: one session of an agent, open, and what can be asked of it besides the next reply."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio.to_thread import run_sync

from ricordo.compaction import Report, Strategy
from ricordo.consolidation.consolidate import Consolidated
from ricordo.errors import StorageError
from ricordo.events import Emitter
from ricordo.harness.conversation import Conversation
from ricordo.messages import Message
from ricordo.middleware import Request, Turn
from ricordo.middleware.flush import FlushJobs
from ricordo.middleware.inject import Inject
from ricordo.middleware.measure import Measure
from ricordo.middleware.reduce import reduce_window
from ricordo.models import ChatModel
from ricordo.runtime.assembly import Workspace
from ricordo.runtime.prompt import Prompt
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.stores.capabilities import Layers
from ricordo.tokens import RequestEstimate, estimate_request, estimate_text
from ricordo.tools import Tool

__all__ = ["ContextReport", "Session"]

_PAUSE = 0.02


@dataclass(frozen=True, kw_only=True)
class ContextReport:
    """What the next request is made of: tokens by part, as far as they are known before the provider counts them.

    `ratio` is what the provider's counts have taught; `limit` is the model's window, None where it is not known.
    """

    session: str
    model: str
    messages: int
    estimate: RequestEstimate
    ratio: float = 1.0
    limit: int | None = None

    @property
    def tokens(self) -> int:
        """All of the request, corrected."""
        return round(self.estimate.input * self.ratio)


@dataclass(frozen=True, kw_only=True)
class Session:
    """One session of an agent, open. Where it `keeps` nothing, as without a `workspace`, it ends with the process.

    `strategies` are what makes the window smaller when a person asks for it; `flush` is None when nothing is learned.
    """

    name: str
    scope: Scope
    agent: str
    model: ChatModel
    tools: tuple[Tool, ...]
    base: str
    conversation: Conversation
    inject: Inject
    prompt: Prompt
    measure: Measure
    strategies: tuple[Strategy, ...]
    emitter: Emitter
    flush: FlushJobs | None = None
    workspace: Workspace | None = None
    layers: Layers | None = None
    keeps: bool = False
    settings: Settings | None = None

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Take in what was said without asking the model, and let it be learned from."""
        stored = await self.conversation.record(messages)
        if self.flush and self.workspace:
            await self.flush.ask(self.scope, self.agent, self.name)
            self.workspace.worker.wake()
        return stored

    async def system_prompt(self) -> str:
        """Return the system prompt, made now if no request was made yet."""
        return (await self.inject.prepared(self._request())).system

    async def context(self) -> ContextReport:
        """Return the size of the next request."""
        request = await self.inject.prepared(self._request())
        estimate = await run_sync(partial(estimate_request, request.window, system=request.system, tools=request.tools))
        memory = min(estimate.system, estimate_text(self.prompt.preamble))
        return ContextReport(
            session=self.name,
            model=self.model.name,
            messages=len(request.window),
            estimate=replace(estimate, system=estimate.system - memory, memory=memory),
            ratio=self.measure.ratio,
            limit=self.model.window,
        )

    async def compact(self) -> tuple[Report, ...]:
        """Run every reduction now, forced, and return what each did."""
        reports: list[Report] = []

        async def reduced(window: tuple[Message, ...]) -> tuple[Message, ...]:
            for strategy in self.strategies:
                request = await self.inject.prepared(replace(self._request(), window=window))
                measured = await self.measure.measured(request, forced="asked")
                reduction = await reduce_window(strategy, measured, self.emitter, self.scope)
                reports.append(reduction.report)
                window = reduction.messages
            return window

        await self.conversation.rework(reduced)
        if any(report.act == "compact" and report.status == "done" for report in reports):
            self.inject.refresh(self.name)
        return tuple(reports)

    async def clear(self) -> None:
        """Begin with an empty window and a new prompt."""

        async def nothing(window: tuple[Message, ...]) -> tuple[Message, ...]:
            del window
            return ()

        await self.conversation.rework(nothing)
        self.inject.refresh(self.name)

    async def settle(self, *, seconds: float) -> int:
        """Work off the inbox, wait for what others work on, and return how many jobs are left."""
        workspace = self.workspace
        if workspace is None:
            return 0
        with anyio.move_on_after(seconds), suppress(StorageError):
            await workspace.worker.drain(seconds=math.inf)
            while await _has_due(workspace):
                await anyio.sleep(_PAUSE)
                await workspace.worker.drain(seconds=math.inf)
        return (await workspace.worker.drain(seconds=0)).left

    async def consolidate(self) -> Consolidated:
        """Make curated memory of what the ledgers hold, however recent the last time is."""
        curation = self.workspace.curation if self.workspace else None
        if curation is None:
            return Consolidated(skipped="consolidation is switched off" if self.workspace else "memory is off")
        return await curation.run(force=True)

    def _request(self) -> Request:
        window = self.conversation.keeper.state.window
        turn = Turn(scope=self.scope, agent=self.agent, session=self.name, messages=(), window=window)
        return Request(turn=turn, system=self.base, window=window, tools=tuple(tool.spec for tool in self.tools))


async def _has_due(workspace: Workspace) -> bool:
    """Tell whether a job runs, or waits for nothing but a worker."""
    kinds = {"flush", "consolidate"} if workspace.curation else {"flush"}
    unended = await workspace.inbox.jobs(states={"waiting", "running"}, kinds=kinds, limit=1000)
    now = workspace.place.clock.now()
    return any(each.state == "running" or each.job.after is None or each.job.after <= now for each in unended)
