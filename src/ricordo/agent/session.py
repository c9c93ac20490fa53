"""AgentSession: an open session of an agent and its operations other than sending a message."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import overload

from anyio.to_thread import run_sync

from ricordo.agent.agent_store import AgentResources
from ricordo.agent.compaction_middleware import RequestMeter, reduce_request
from ricordo.agent.compactions import Compactions
from ricordo.agent.contract import ModelRequest, ModelResponse, StepHandler, Turn
from ricordo.agent.loop import build_messages
from ricordo.agent.memory_context import TurnMemories
from ricordo.agent.prompt_builder import PromptMiddleware
from ricordo.agent.reminder import ReminderMiddleware
from ricordo.agent.session_closing import SessionClosing
from ricordo.agent.session_services import SessionServices
from ricordo.agent.session_state import TurnRunner, repair_window
from ricordo.agent.tools import Tool
from ricordo.agent.tools.schema import OutputType
from ricordo.agent.turn_middleware import ExtractionMiddleware
from ricordo.clock import SystemClock
from ricordo.context import CompactionConfig, Strategy, StrategyReport
from ricordo.context.pipeline import CompactionPipelines, RecordReduction
from ricordo.context.plan import resolve_thresholds
from ricordo.context.usage import ContextReport, build_context_report
from ricordo.curation.consolidator import ConsolidationResult
from ricordo.events import Emitter
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, Message, ToolSpec
from ricordo.messages.tokens import estimate_text
from ricordo.models import ChatModel, Reply
from ricordo.models.contract import RequestBody, request_body
from ricordo.runtime.workspace import Workspace
from ricordo.workspace.agent_state import AgentState
from ricordo.workspace.history.log import PERSON

__all__ = ["AgentSession", "CompactionResult", "RequestPreview"]


_ON_REQUEST = "asked"


@dataclass(frozen=True, kw_only=True)
class CompactionResult(Sequence[StrategyReport]):
    """The result of reducing the window: the report of each reduction, in order, and the usage before and after."""

    reports: tuple[StrategyReport, ...]
    before: ContextReport
    after: ContextReport

    @overload
    def __getitem__(self, place: int) -> StrategyReport: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[StrategyReport, ...]: ...

    def __getitem__(self, place: int | slice) -> StrategyReport | tuple[StrategyReport, ...]:
        """Return one report, or a slice of the reports."""
        return self.reports[place]

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.reports)


@dataclass(frozen=True, kw_only=True)
class RequestPreview:
    """A request that would be sent to a model: its name, the messages (system prompt first) and the tools.

    `schema` is the JSON schema of the reply, None for text. `body` is the URL and the JSON body of the request in the
    provider's protocol; None if the model can't show it.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    schema: Mapping[str, JsonValue] | None = None
    body: RequestBody | None = None


@dataclass(frozen=True, kw_only=True)
class AgentSession:
    """One open session of an agent. If `is_recorded` is False, as without a `workspace`, it ends with the process.

    The window is in the `session_state` of its turns. `pipelines` reduce it; `compactions` are those of the session, or
    only of this process if nothing is saved. `extraction` is None if no facts are extracted. `reminder` adds the
    reminder to a request, and `turn_memories` recalls the memories for it. `wrap_step` puts the middleware of a request
    around the model. `closing` summarizes the session; None if the store keeps no sessions.
    """

    resources: AgentResources
    model: ChatModel
    tools: tuple[Tool, ...]
    turn_runner: TurnRunner
    services: SessionServices
    prompt: PromptMiddleware
    reminder: ReminderMiddleware
    meter: RequestMeter
    pipelines: CompactionPipelines
    compactions: Compactions
    wrap_step: Callable[[StepHandler], StepHandler]
    compaction: CompactionConfig | None = None
    extraction: ExtractionMiddleware | None = None
    closing: SessionClosing | None = None
    turn_memories: TurnMemories | None = None

    @property
    def state(self) -> AgentState:
        """The state of the session as it is saved: the window, the plan, the todos and the rest."""
        return self.turn_runner.session_state.state

    @property
    def workspace(self) -> Workspace | None:
        """The open root; None if it is not open."""
        return self.resources.workspace

    async def record(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Record messages without calling the model, and queue them for extraction."""
        stored = await self.turn_runner.record(messages)
        if self.extraction and self.workspace:
            await self.extraction.enqueue(self.resources.options.scope, self.state.agent, self.state.session)
            self.workspace.worker.wake()
        return stored

    async def system_prompt(self, *, rebuild: bool = False) -> str:
        """Return the system prompt; build it if no request was made yet, or rebuild it with `rebuild`."""
        if rebuild:
            self.prompt.invalidate()
        return (await self.prompt.add_prompt(self._build_request())).system

    async def report_usage(self) -> ContextReport:
        """Return what fills the window of the next request."""
        return await self._report_usage(await self.prompt.add_prompt(self._build_request()))

    async def preview_request(
        self, messages: Sequence[Message] = (), output: OutputType | None = None
    ) -> RequestPreview:
        """Return the next request with `messages` added, before any reduction; nothing is sent or recorded."""
        request = await self.prompt.add_prompt(self._build_request())
        request = replace(request, window=(*request.window, *messages))
        request = await self.reminder.add_reminder(request)
        request_messages = build_messages(request)
        schema = output.schema if output else None
        body = await request_body(self.model, request_messages, tools=request.tools, schema=schema)
        return RequestPreview(
            model=self.model.name, messages=request_messages, tools=request.tools, schema=schema, body=body
        )

    async def prepare_request(self, messages: Sequence[Message] = ()) -> RequestPreview:
        """Return the request that a turn of `messages` would begin with, after all reductions; no model is asked.

        The window that it leaves is saved, but `messages` are neither part of the request nor recorded.
        """
        prepared: list[ModelRequest] = []

        async def keep(request: ModelRequest) -> ModelResponse:
            prepared.append(request)
            reply = Reply(message=Message(role="assistant"))
            return ModelResponse(reply=reply, window=request.window, reminder=request.reminder)

        async with self.turn_runner.session_state.turn_lock:
            request = self._build_request()
            request = replace(request, turn=replace(request.turn, messages=tuple(messages)))
            await self.wrap_step(keep)(request)
        (request,) = prepared
        return RequestPreview(model=self.model.name, messages=build_messages(request), tools=request.tools)

    async def compact(self, *, focus: str = "", dry_run: bool = False) -> CompactionResult:
        """Run every reduction now, forced; with `dry_run` no event is emitted and nothing is saved."""
        if dry_run:
            silent_emitter = Emitter(SystemClock())
            window = repair_window(self.state.window)
            return (await self._run_strategies(window, self.pipelines.dry_run, focus=focus, emitter=silent_emitter))[1]
        results: list[CompactionResult] = []

        async def reduce_window(window: tuple[Message, ...]) -> tuple[Message, ...]:
            reduced, compacted = await self._run_strategies(
                window,
                self.pipelines.on_demand,
                focus=focus,
                emitter=self.resources.parts.emitter,
                record_reduction=self.compactions.record,
            )
            results.append(compacted)
            return reduced

        await self.turn_runner.rewrite_window(reduce_window)
        (compacted,) = results
        if any(report.action == "compact" and report.status == "done" for report in compacted):
            self.prompt.invalidate()
        return compacted

    async def clear(self) -> None:
        """Start over with an empty window and a new prompt."""

        async def empty_window(window: tuple[Message, ...]) -> tuple[Message, ...]:
            del window
            return ()

        await self.turn_runner.rewrite_window(empty_window)
        self.prompt.invalidate()

    async def drain(self, *, seconds: float) -> int:
        """Run the jobs in the inbox, wait for jobs that others run, and return how many are left.

        Jobs of this process do not wait for a pause. With 0 seconds the jobs are only counted.
        """
        workspace = self.workspace
        if workspace is None:
            return 0
        if seconds > 0:
            await workspace.worker.make_due()
        return await workspace.worker.drain_all(seconds=seconds)

    async def flush_inbox(self, *, seconds: float) -> bool:
        """Drain the inbox; return whether it is empty and no job failed permanently meanwhile."""
        workspace = self.workspace
        if workspace is None:
            return True
        failed = await _failed_job_ids(workspace)
        return await self.drain(seconds=seconds) == 0 and await _failed_job_ids(workspace) <= failed

    async def consolidate(self, *, deep: bool = False) -> ConsolidationResult:
        """Consolidate the ledgers into curated memory, however recent the last time is; with `deep` read all again."""
        curation = self.workspace.curation if self.workspace else None
        if curation is None:
            return ConsolidationResult(skipped="consolidation is switched off" if self.workspace else "memory is off")
        return await curation.run(force=True, deep=deep, who=PERSON)

    async def _run_strategies(
        self,
        window: tuple[Message, ...],
        strategies: Sequence[Strategy],
        *,
        focus: str,
        emitter: Emitter,
        record_reduction: RecordReduction | None = None,
    ) -> tuple[tuple[Message, ...], CompactionResult]:
        """Run `strategies` over `window`; return the reduced window and the reports."""
        request = await self.prompt.add_prompt(replace(self._build_request(), window=window))
        reduced, reports = await reduce_request(
            request, strategies, self.meter, emitter, forced=_ON_REQUEST, focus=focus, record_reduction=record_reduction
        )
        before, after = await self._report_usage(request), await self._report_usage(reduced)
        return reduced.window, CompactionResult(reports=reports, before=before, after=after)

    async def _report_usage(self, request: ModelRequest) -> ContextReport:
        """Return what fills the window of a request that has its prompt, including its reminder."""
        request = await self.reminder.add_reminder(request)
        measured = await self.meter.measure(request)
        estimate, window = measured.estimate, measured.window
        memory = min(estimate.system, estimate_text(self.prompt.memory))
        config = self.compaction
        limit = (config.window if config else None) or window.limit
        report = partial(
            build_context_report,
            request.window,
            replace(estimate, system=estimate.system - memory, memory=memory),
            session=self.state.session,
            model=self.model.name,
            total=window.overhead + measured.tokens,
            ratio=window.ratio,
            limit=limit,
            ceiling=resolve_thresholds(config, limit).max_request_tokens if config else None,
        )
        return await run_sync(report)

    def _build_request(self) -> ModelRequest:
        options, state = self.resources.options, self.state
        window = repair_window(state.window)
        turn = Turn(scope=options.scope, agent=state.agent, session=state.session, messages=(), window=window)
        tools = tuple(tool.spec for tool in self.tools)
        return ModelRequest(turn=turn, system=options.instructions or "", window=window, tools=tools)


async def _failed_job_ids(workspace: Workspace) -> set[str]:
    """Return the ids of the jobs that failed permanently."""
    return {record.job.id for record in await workspace.inbox.jobs(states={"failed"}, limit=1000)}
