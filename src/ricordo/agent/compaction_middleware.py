"""Step middleware that compacts the window when it is due, and again when the model refuses its size.

Requests are measured in the provider's tokens, calibrated from the usage it reports.

Invariants: a reduction that can be undone is recorded before its window is used. The final error is the provider's own.
A request that can't be made to fit is refused with an explanation before it is sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.contract import ModelRequest, ModelResponse, StepHandler, TurnEvent
from ricordo.clock import SystemClock
from ricordo.concurrency import unwrap_cancellation
from ricordo.context import Reduction, Strategy, StrategyReport, Window
from ricordo.context.pipeline import RecordReduction, run_pipeline
from ricordo.context.plan import overflow_target
from ricordo.context.summary_message import find_instructions
from ricordo.errors import ModelOverflow, RicordoError
from ricordo.events import Emitter, Stage, StageProgress
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Calibration, RequestEstimate, TokenCorrection, estimate_request, estimate_text
from ricordo.models import ChatModel
from ricordo.models.contract import declared_window, max_messages
from ricordo.scope import Scope

__all__ = ["CompactionMiddleware", "MeasuredRequest", "RequestMeter", "create_meter", "reduce_request", "run_strategy"]


@dataclass(frozen=True, kw_only=True)
class MeasuredRequest:
    """A request as a window to reduce, and its estimated tokens before correction."""

    window: Window
    estimate: RequestEstimate

    @property
    def tokens(self) -> int:
        """The corrected number of tokens of the window's messages."""
        return round(self.estimate.messages * self.window.ratio)


class RequestMeter:
    """Measures the requests to one model. Share one between the middleware of a session."""

    def __init__(
        self, *, model: str = "", limit: int | None = None, ratio: float = 1.0, most_messages: int | None = None
    ) -> None:
        """Start with known values: the model's window in tokens (`limit`), the `ratio` of an earlier session (0.25 to
        4), and the maximum number of messages in a request.
        """
        self._model = model
        self._declared = limit
        self._refused_limit: int | None = None
        self._largest_answered = 0
        self._most_messages = most_messages
        self._calibration = Calibration(corrections={model: TokenCorrection(factor=min(max(ratio, 0.25), 4.0))})
        self._last: tuple[ModelRequest, RequestEstimate] | None = None

    @property
    def ratio(self) -> float:
        """The factor from estimated to actual tokens of messages; save it for the next session."""
        return self._calibration.corrections[self._model].factor

    @property
    def limit(self) -> int | None:
        """The model's window in tokens: the declared one, or a smaller one from a refusal; None if unknown."""
        return min((each for each in (self._declared, self._refused_limit) if each is not None), default=None)

    def learn_limits(self, *, window: int | None, messages: int | None) -> None:
        """Store the limits from a refusal: the model's window in tokens and the maximum number of messages.

        A window smaller than a request that was answered is ignored.
        """
        if window is not None and window >= self._largest_answered:
            self._refused_limit = window
        self._most_messages = messages or self._most_messages

    async def measure(self, request: ModelRequest, *, forced: str = "", limit: int | None = None) -> MeasuredRequest:
        """Return `request` as a window; `limit` in tokens replaces the model's limit.

        Tokens that the provider adds and the reminder count as overhead, because they can't be shortened.
        """
        estimate = await self._estimate(request)
        total = self._calibration.correct(self._model, estimate.input)
        window = Window(
            messages=request.window,
            agent=request.turn.agent,
            session=request.turn.session,
            overhead=max(0, total - round(estimate.messages * self.ratio)),
            limit=limit or self.limit,
            max_messages=self._most_messages,
            ratio=self.ratio,
            forced=forced,
        )
        return MeasuredRequest(window=window, estimate=estimate)

    async def learn(self, request: ModelRequest, reported: int, *, answered: bool = True) -> None:
        """Calibrate with the input tokens that the provider reported for `request`, cached ones included; 0 is ignored.

        `reported` is `Usage.input` of a reply, or `size` of an overflow, which was not `answered`. The window from a
        refusal is dropped once a larger request was answered.
        """
        if answered:
            self._largest_answered = max(self._largest_answered, reported)
            self._refused_limit = None if self._largest_answered > (self._refused_limit or 0) else self._refused_limit
        if reported > 0:
            estimated = (await self._estimate(request)).input
            self._calibration = self._calibration.observe(self._model, estimated=estimated, reported=reported)

    async def _estimate(self, request: ModelRequest) -> RequestEstimate:
        """Return the estimate, made in a worker thread because a large window takes long; the last one is cached."""
        if self._last and _is_same_request(self._last[0], request):
            return self._last[1]
        estimate = await run_sync(_estimate_tokens, request)
        self._last = (request, estimate)
        return estimate


def create_meter(model: ChatModel, *, ratio: float) -> RequestMeter:
    """Return a meter for `model`, initialized with its documented limits."""
    limit, message_limit = declared_window(model), max_messages(model)
    return RequestMeter(model=model.name, limit=limit, ratio=ratio, most_messages=message_limit)


def _is_same_request(one: ModelRequest, other: ModelRequest) -> bool:
    same_context = (one.system, one.tools, one.reminder) == (other.system, other.tools, other.reminder)
    return one.window is other.window and same_context


def _estimate_tokens(request: ModelRequest) -> RequestEstimate:
    return estimate_request(request.window, system=request.system, tools=request.tools, reminder=request.reminder)


async def run_strategy(
    strategy: Strategy, measured: MeasuredRequest, emitter: Emitter, scope: Scope | None
) -> Reduction:
    """Run one strategy and report it, also if skipped or failed, with messages and tokens before and after.

    A strategy that raises a RicordoError has failed and leaves the window unchanged; the turn continues.
    """
    window = measured.window
    report = StrategyReport(
        action=strategy.action,
        status="failed",
        messages_before=len(window.messages),
        messages_after=len(window.messages),
        tokens_before=measured.tokens,
        tokens_after=measured.tokens,
    )
    with emitter.stage(cast("Stage", strategy.action), scope) as progress:
        _report_sizes(progress, report)
        try:
            with unwrap_cancellation():
                reduction = await strategy.reduce(window)
        except RicordoError as error:
            reduction = Reduction(messages=window.messages, report=replace(report, reason=type(error).__name__))
        _report_sizes(progress, reduction.report)
        if reduction.report.note:
            progress.counts["notes"] = 1
        _report_outcome(progress, reduction.report, window.forced)
        return reduction


async def reduce_request(
    request: ModelRequest,
    strategies: Sequence[Strategy],
    meter: RequestMeter,
    emitter: Emitter,
    *,
    forced: str = "",
    limit: int | None = None,
    target: int | None = None,
    focus: str = "",
    undone: int = 0,
    record_reduction: RecordReduction | None = None,
) -> tuple[ModelRequest, tuple[StrategyReport, ...]]:
    """Return `request` with its window reduced by each of `strategies` in turn, and the report of each.

    The same request is returned if nothing got smaller. `limit` in tokens replaces the model's window. For the other
    arguments of the strategies see `Window`, for `record_reduction` see `run_pipeline`.
    """

    if not strategies:
        return request, ()

    async def run_in_request(strategy: Strategy, window: Window) -> Reduction:
        measured = await meter.measure(replace(request, window=window.messages), forced=window.forced, limit=limit)
        adjusted = replace(
            measured.window,
            target=window.target,
            focus=window.focus,
            messages_at_undo=window.messages_at_undo,
            may_truncate=window.may_truncate,
        )
        return await run_strategy(strategy, replace(measured, window=adjusted), emitter, request.turn.scope)

    turn = request.turn
    window = Window(
        messages=request.window,
        agent=turn.agent,
        session=turn.session,
        ratio=meter.ratio,
        forced=forced,
        target=target,
        focus=focus,
        messages_at_undo=undone,
    )
    reduced, reports = await run_pipeline(window, strategies, run=run_in_request, record_reduction=record_reduction)
    is_unchanged = reduced.messages == request.window
    return (request if is_unchanged else replace(request, window=reduced.messages)), reports


def _report_sizes(progress: StageProgress, report: StrategyReport) -> None:
    progress.counts.update(
        messages_before=report.messages_before,
        messages_after=report.messages_after,
        tokens_before=report.tokens_before,
        tokens_after=report.tokens_after,
    )


def _report_outcome(progress: StageProgress, report: StrategyReport, forced: str) -> None:
    """Set the reason for the outcome of a run, with the trigger of a forced run."""
    reason = ": ".join(dict.fromkeys(part for part in (forced, report.reason) if part)) or report.status
    match report.status:
        case "failed":
            progress.failed = reason
        case "skipped":
            progress.skipped = reason
        case "done":
            progress.reason = "; ".join(filter(None, (reason, report.note)))


_TOO_LARGE = "the request was larger than the model's window"
_TOO_MANY = "the request had more messages than the provider takes"


class CompactionMiddleware:
    """Step middleware that runs reductions in order and calibrates token counts with each reply."""

    def __init__(
        self,
        strategies: Sequence[Strategy],
        *,
        meter: RequestMeter | None = None,
        emitter: Emitter | None = None,
        retries: int = 0,
        record_reduction: RecordReduction | None = None,
        get_undone: Callable[[], int] = int,
        overflow_strategies: Sequence[Strategy] | None = None,
    ) -> None:
        """Run `strategies` in order.

        Middleware that adds to the system prompt must be outside of this one to be counted. A request that overflows
        the model's window is retried up to `retries` times, each time after forced reductions to a smaller target. The
        overflow is raised after the last retry, if nothing could be reduced, or in the middle of a streamed reply.
        `record_reduction` records how to restore a window, see `run_pipeline`. `get_undone` returns the number of
        messages in the window when a person last undid a compaction, 0 for never. `overflow_strategies` are the
        strategies after an overflow, by default `strategies`.
        """
        self._strategies = tuple(strategies)
        self._overflow_strategies = self._strategies if overflow_strategies is None else tuple(overflow_strategies)
        self._measure = meter or RequestMeter()
        self._emitter = emitter or Emitter(SystemClock())
        self._retries = retries
        self._record_reduction = record_reduction
        self._get_undone = get_undone

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Reduce the window and continue. Raises `ModelOverflow`, also for a request that can never fit."""
        reduced, _ = await reduce_request(
            request,
            self._strategies,
            self._measure,
            self._emitter,
            undone=self._get_undone(),
            record_reduction=self._record_reduction,
        )
        await self._check_fixed(reduced)
        sent, response = await self._send(reduced, step, self._retries, None)
        final_request = replace(sent, window=response.window, reminder=response.reminder)
        await self._measure.learn(final_request, response.reply.usage.input)
        return response

    async def _check_fixed(self, request: ModelRequest) -> None:
        """Raise `ModelOverflow` if the part of a request that can't be reduced is larger than the window."""
        limit = self._measure.limit
        if limit is None:
            return
        measured = await self._measure.measure(request)
        # A correction that is too high would refuse every request, so it would never be corrected itself.
        overhead = min(measured.window.overhead, measured.estimate.input - measured.estimate.messages)
        carried = sum(estimate_text(each.text) for each in find_instructions(request.window))
        pinned = round(carried * min(1.0, measured.window.ratio))
        if overhead + pinned > limit:
            text = _fixed_size_text(limit, overhead=overhead, pinned=pinned)
            raise ModelOverflow(text, window=limit, size=overhead + pinned)

    async def _send(
        self, request: ModelRequest, step: StepHandler, retries: int, target: int | None
    ) -> tuple[ModelRequest, ModelResponse]:
        """Return the response and the request that got it; `target` is the last target size of the messages, None
        before the first overflow.
        """
        observed, reply_started = _watch_reply(request)
        try:
            return request, await step(observed)
        except ModelOverflow as overflow:
            if not retries or reply_started.is_set():
                raise
            smaller, target = await self._force_reduction(request, overflow, target)
            return await self._send(smaller, step, retries - 1, target)

    async def _force_reduction(
        self, request: ModelRequest, overflow: ModelOverflow, previous_target: int | None
    ) -> tuple[ModelRequest, int]:
        """Return the request with a smaller window, and the target size of its messages.

        Raises `overflow` if the window did not get smaller.
        """
        await self._measure.learn(request, overflow.size or 0, answered=False)
        self._measure.learn_limits(window=overflow.window, messages=overflow.messages)
        with self._emitter.stage("overflow", request.turn.scope) as progress:
            measured = await self._measure.measure(request, limit=overflow.window)
            target = overflow_target(measured.window, measured.tokens, is_limit_reported=overflow.window is not None)
            target = target if previous_target is None else min(target, previous_target // 2)
            smaller, _ = await reduce_request(
                request,
                self._overflow_strategies,
                self._measure,
                self._emitter,
                forced="overflow",
                limit=overflow.window,
                target=target,
                record_reduction=self._record_reduction,
            )
            remaining = await self._measure.measure(smaller, limit=overflow.window)
            progress.counts.update(
                messages_before=len(request.window),
                messages_after=len(smaller.window),
                tokens_before=measured.tokens,
                tokens_after=remaining.tokens,
                target=target,
            )
            progress.reason = _TOO_MANY if overflow.messages is not None else _TOO_LARGE
            if smaller.window == request.window:
                progress.failed = f"{progress.reason}, and nothing of it got smaller"
        if smaller.window == request.window:
            raise overflow
        return smaller, target


def _fixed_size_text(limit: int, *, overhead: int, pinned: int) -> str:
    """Return the error text for a request whose fixed part does not fit, with advice."""
    more = f", and what is pinned or carried on about {pinned:,}" if pinned else ""
    return (
        f"The system prompt and the tools take about {overhead:,} tokens{more}, more than the model's window of "
        f"{limit:,}: shorten AGENTS.md, the rules or the instructions, unpin messages, offer fewer tools, or take a "
        "model with a larger window."
    )


def _watch_reply(request: ModelRequest) -> tuple[ModelRequest, anyio.Event]:
    """Return the request, and an event that is set when the first part of its reply arrives."""
    reply_started = anyio.Event()
    listener = request.turn.listener
    if listener is None:
        return request, reply_started

    async def note_event(event: TurnEvent) -> None:
        reply_started.set()
        await listener(event)

    return replace(request, turn=replace(request.turn, listener=note_event)), reply_started
