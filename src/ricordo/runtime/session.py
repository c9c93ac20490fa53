"""Session: one session of an agent, open, and what can be asked of it besides the next reply."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync

from ricordo.compaction import Report
from ricordo.consolidation.consolidate import Consolidated
from ricordo.events import Emitter
from ricordo.harness.conversation import Conversation
from ricordo.harness.human import agents_file, rules
from ricordo.harness.prompt import memory_guidance, system_prompt
from ricordo.messages import Message
from ricordo.middleware import Request, Turn
from ricordo.middleware.inject import Inject
from ricordo.middleware.measure import Measure
from ricordo.middleware.reduce import Reducer, reduce_window
from ricordo.models import ChatModel
from ricordo.runtime.assembly import Workspace
from ricordo.scopes import Scope
from ricordo.stores.capabilities import Layers
from ricordo.tokens import RequestEstimate, Tokens, estimate_request, estimate_text
from ricordo.tools import Tool

__all__ = ["ContextReport", "Prompt", "Session"]


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


class Prompt:
    """Writes the system prompt of a session: what people wrote, then what memory holds."""

    def __init__(self, folder: Path, workspace: Workspace | None, budget: Tokens | None) -> None:
        """Read AGENTS.md in `folder` and the rules of `workspace`; without a `budget` no memory is shown."""
        self._folder = folder
        self._workspace = workspace
        self._budget = budget
        self.preamble = ""

    async def __call__(self, request: Request) -> str:
        """Return the prompt for a session's first request; `preamble` is the part of it that is memory."""
        workspace = self._workspace
        agents = await agents_file(self._folder)
        written = await rules(workspace.place.files) if workspace else ()
        self.preamble = await workspace.store.preamble(self._budget) if workspace and self._budget else ""
        return system_prompt(
            base=request.system,
            human=[*([agents] if agents else []), *written],
            guidance=memory_guidance([tool.name for tool in request.tools]),
            preamble=self.preamble,
        )


@dataclass(frozen=True, kw_only=True)
class Session:
    """One session of an agent, open. Without a `workspace` nothing of it outlives the process."""

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
    reducers: tuple[Reducer, ...]
    emitter: Emitter
    workspace: Workspace | None = None
    layers: Layers | None = None

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
            for reducer in self.reducers:
                request = await self.inject.prepared(replace(self._request(), window=window))
                measured = await self.measure.measured(request, forced="asked")
                reduction = await reduce_window(reducer, measured, self.emitter, self.scope)
                reports.append(reduction.report)
                window = reduction.messages
            return window

        await self.conversation.rework(reduced)
        return tuple(reports)

    async def settle(self, *, seconds: float) -> int:
        """Work off the inbox and return how many jobs are left."""
        return (await self.workspace.worker.drain(seconds=seconds)).left if self.workspace else 0

    async def consolidate(self) -> Consolidated:
        """Consolidate now."""
        curation = self.workspace.curation if self.workspace else None
        return await curation.run(force=True) if curation else Consolidated(skipped="consolidation is off")

    def _request(self) -> Request:
        window = self.conversation.keeper.state.window
        turn = Turn(scope=self.scope, agent=self.agent, session=self.name, messages=(), window=window)
        return Request(turn=turn, system=self.base, window=window, tools=tuple(tool.spec for tool in self.tools))
