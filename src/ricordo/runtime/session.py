"""Session: one session of an agent, open, and what can be asked of it besides the next reply."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import overload

from anyio.to_thread import run_sync

from ricordo.audit.history import PERSON
from ricordo.clock import SystemClock
from ricordo.compaction import CompactionConfig, Report, Strategy
from ricordo.compaction.ladder import Noted
from ricordo.compaction.plan import thresholds
from ricordo.consolidation.consolidate import Consolidated
from ricordo.events import Emitter
from ricordo.harness.asking import messages_of
from ricordo.harness.compactions import Compactions
from ricordo.harness.conversation import Conversation
from ricordo.harness.taking_up import valid
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.middleware import Request, Turn
from ricordo.middleware.flush import FlushJobs
from ricordo.middleware.inject import Inject
from ricordo.middleware.measure import Measure
from ricordo.middleware.reduce import descend_request
from ricordo.models import ChatModel
from ricordo.models.shown import RequestBody, request_body
from ricordo.runtime.agent_store import AgentStore
from ricordo.runtime.assembly import Workspace
from ricordo.runtime.closing import SessionClosing
from ricordo.runtime.prompt import Prompt
from ricordo.runtime.settings import Settings
from ricordo.runtime.standing import Beside
from ricordo.runtime.turn_memories import TurnMemories
from ricordo.runtime.usage import ContextReport, context_report
from ricordo.scopes import Scope
from ricordo.stores.contract import Store
from ricordo.tokens import estimate_text
from ricordo.tools import Tool
from ricordo.tools.output import Output

__all__ = ["Compacted", "NextRequest", "Session"]

_ASKED = "asked"


@dataclass(frozen=True, kw_only=True)
class Compacted(Sequence[Report]):
    """What making the window smaller came to: what each reduction did, in order, and the request before and after."""

    reports: tuple[Report, ...]
    before: ContextReport
    after: ContextReport

    @overload
    def __getitem__(self, place: int) -> Report: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Report, ...]: ...

    def __getitem__(self, place: int | slice) -> Report | tuple[Report, ...]:
        """Return what one reduction did, or several."""
        return self.reports[place]

    def __len__(self) -> int:
        """Return how many reductions there were."""
        return len(self.reports)


@dataclass(frozen=True, kw_only=True)
class NextRequest:
    """What would be asked of a model: its name, the messages, the system prompt first, and the tools.

    `schema` is the JSON schema that the reply is to have, None for a text. `sent` is the address and the JSON of the
    request as its provider's protocol has it; None where the model can't show that.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    schema: Mapping[str, JsonValue] | None = None
    sent: RequestBody | None = None


@dataclass(frozen=True, kw_only=True)
class Session:
    """One session of an agent, open. Where it `keeps` nothing, as without a `workspace`, it ends with the process.

    `strategies` are what makes the window smaller when a person asks for it, `dry` what tells beforehand what they
    would do; `memory` is what is remembered with; `compactions` are those of the session, where nothing is kept
    those of this process; `compaction` says what is kept for the reply. `flush` is None when nothing is learned.
    `remind` gives a request its reminder, `memories` looks into memory for it. `closing` sums the session up; None
    where its store keeps no sessions.
    """

    name: str
    scope: Scope
    agent: str
    model: ChatModel
    tools: tuple[Tool, ...]
    base: str
    conversation: Conversation
    beside: Beside
    inject: Inject
    prompt: Prompt
    measure: Measure
    strategies: tuple[Strategy, ...]
    memory: AgentStore
    emitter: Emitter
    compactions: Compactions
    dry: tuple[Strategy, ...] = ()
    compaction: CompactionConfig | None = None
    flush: FlushJobs | None = None
    workspace: Workspace | None = None
    keeps: bool = False
    settings: Settings | None = None
    remind: Callable[[Request], Awaitable[Request]] | None = None
    closing: SessionClosing | None = None
    memories: TurnMemories | None = None

    @property
    def store(self) -> Store:
        """What the session remembers with: save, recall and preamble; one that keeps nothing where memory is off."""
        return self.memory.store

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Take in what was said without asking the model, and let it be learned from."""
        stored = await self.conversation.record(messages)
        if self.flush and self.workspace:
            await self.flush.ask(self.scope, self.agent, self.name)
            self.workspace.worker.wake()
        return stored

    async def system_prompt(self, *, anew: bool = False) -> str:
        """Return the system prompt, made now if no request was made yet, or if it is to be made `anew`."""
        if anew:
            self.inject.refresh(self.name)
        return (await self.inject.prepared(self._request())).system

    async def usage(self) -> ContextReport:
        """Return what fills the window of the next request."""
        return await self._usage(await self.inject.prepared(self._request()))

    async def request(self, messages: Sequence[Message] = (), output: Output | None = None) -> NextRequest:
        """Return what would be asked next, after `messages`, before any reduction; nothing is sent or kept."""
        request = await self.inject.prepared(self._request())
        request = replace(request, window=(*request.window, *messages))
        request = await self.remind(request) if self.remind else request
        said = messages_of(request)
        schema = output.schema if output else None
        sent = await request_body(self.model, said, tools=request.tools, schema=schema)
        return NextRequest(model=self.model.name, messages=said, tools=request.tools, schema=schema, sent=sent)

    async def compact(self, *, focus: str = "", dry_run: bool = False) -> Compacted:
        """Run every reduction now, forced; with `dry_run` nobody hears of it and nothing is kept."""
        if dry_run:
            unheard = Emitter(SystemClock())
            window = valid(self.conversation.keeper.state.window)
            return (await self._compacted(window, self.dry, focus=focus, emitter=unheard))[1]
        done: list[Compacted] = []

        async def reduced(window: tuple[Message, ...]) -> tuple[Message, ...]:
            found = self._compacted(
                window, self.strategies, focus=focus, emitter=self.emitter, noted=self.compactions.note
            )
            left, compacted = await found
            done.append(compacted)
            return left

        await self.conversation.rework(reduced)
        (compacted,) = done
        if any(report.act == "compact" and report.status == "done" for report in compacted):
            self.inject.refresh(self.name)
        return compacted

    async def clear(self) -> None:
        """Begin with an empty window and a new prompt."""

        async def nothing(window: tuple[Message, ...]) -> tuple[Message, ...]:
            del window
            return ()

        await self.conversation.rework(nothing)
        self.inject.refresh(self.name)

    async def settle(self, *, seconds: float) -> int:
        """Work off the inbox, wait for what others work on, and return how many jobs are left.

        What was asked for here does not wait for a pause; with 0 seconds the jobs are only counted.
        """
        workspace = self.workspace
        if workspace is None:
            return 0
        if seconds > 0:
            await workspace.worker.hasten()
        return await workspace.worker.settle(seconds=seconds)

    async def flushed(self, *, seconds: float) -> bool:
        """Settle, and tell whether nothing is left in the inbox and nothing failed for good meanwhile."""
        workspace = self.workspace
        if workspace is None:
            return True
        failed = await _failed(workspace)
        return await self.settle(seconds=seconds) == 0 and await _failed(workspace) <= failed

    async def consolidate(self, *, deep: bool = False) -> Consolidated:
        """Make curated memory of what the ledgers hold, with `deep` anew of all, however recent the last time is."""
        curation = self.workspace.curation if self.workspace else None
        if curation is None:
            return Consolidated(skipped="consolidation is switched off" if self.workspace else "memory is off")
        return await curation.run(force=True, deep=deep, who=PERSON)

    async def _compacted(
        self,
        window: tuple[Message, ...],
        strategies: Sequence[Strategy],
        *,
        focus: str,
        emitter: Emitter,
        noted: Noted | None = None,
    ) -> tuple[tuple[Message, ...], Compacted]:
        """Run `strategies` over `window` and return what is left of it, and what that came to."""
        request = await self.inject.prepared(replace(self._request(), window=window))
        reduced, reports = await descend_request(
            request, strategies, self.measure, emitter, forced=_ASKED, focus=focus, noted=noted
        )
        before, after = await self._usage(request), await self._usage(reduced)
        return reduced.window, Compacted(reports=reports, before=before, after=after)

    async def _usage(self, request: Request) -> ContextReport:
        """Return what fills the window of a request that has its prompt, with the reminder that it would have."""
        request = await self.remind(request) if self.remind else request
        measured = await self.measure.measured(request)
        estimate, window = measured.estimate, measured.window
        memory = min(estimate.system, estimate_text(self.prompt.preamble))
        config = self.compaction
        limit = (config.window if config else None) or window.limit
        report = partial(
            context_report,
            request.window,
            replace(estimate, system=estimate.system - memory, memory=memory),
            session=self.name,
            model=self.model.name,
            total=window.overhead + measured.tokens,
            ratio=window.ratio,
            limit=limit,
            ceiling=thresholds(config, limit).ceiling if config else None,
        )
        return await run_sync(report)

    def _request(self) -> Request:
        window = valid(self.conversation.keeper.state.window)
        turn = Turn(scope=self.scope, agent=self.agent, session=self.name, messages=(), window=window)
        return Request(turn=turn, system=self.base, window=window, tools=tuple(tool.spec for tool in self.tools))


async def _failed(workspace: Workspace) -> set[str]:
    """Return the jobs that failed for good."""
    return {record.job.id for record in await workspace.inbox.jobs(states={"failed"}, limit=1000)}
