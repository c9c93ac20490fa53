"""Running reductions of the window, so that everybody can see them: each run tells how it began and how it ended."""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.compaction import Reduction, StrategyReport, Strategy, Window
from ricordo.compaction.cancelled import unwrap_cancellation
from ricordo.compaction.ladder import RecordReduction, run_pipeline
from ricordo.errors import RicordoError
from ricordo.events import Emitter, StageProgress
from ricordo.middleware.contract import ModelRequest
from ricordo.middleware.measure import RequestMeter, MeasuredRequest
from ricordo.scopes import Scope

__all__ = ["reduce_request", "run_strategy"]


async def run_strategy(
    strategy: Strategy, measured: MeasuredRequest, emitter: Emitter, scope: Scope | None
) -> Reduction:
    """Run one strategy and report it, a skipped or failed run too, with messages and tokens before and after.

    One that raises an error of ours has failed and leaves the window as it was: nobody's turn ends because of it.
    """
    window = measured.window
    report = StrategyReport(
        act=strategy.act,
        status="failed",
        messages_before=len(window.messages),
        messages_after=len(window.messages),
        tokens_before=measured.tokens,
        tokens_after=measured.tokens,
    )
    with emitter.stage(strategy.act, scope) as progress:
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
    measure: RequestMeter,
    emitter: Emitter,
    *,
    forced: str = "",
    limit: int | None = None,
    target: int | None = None,
    focus: str = "",
    undone: int = 0,
    noted: RecordReduction | None = None,
) -> tuple[ModelRequest, tuple[StrategyReport, ...]]:
    """Return `request` with what is left of its window after each of `strategies` in turn, and what each did.

    The request is the same when nothing got smaller. `limit` in tokens takes the place of the model's window; for what
    else is told to the strategies see `Window`, and for `noted` the ladder.
    """

    async def run_in_request(strategy: Strategy, window: Window) -> Reduction:
        measured = await measure.measure(replace(request, window=window.messages), forced=window.forced, limit=limit)
        told = replace(
            measured.window, target=window.target, focus=window.focus, undone=window.undone, shortens=window.shortens
        )
        return await run_strategy(strategy, replace(measured, window=told), emitter, request.turn.scope)

    turn = request.turn
    window = Window(
        messages=request.window,
        agent=turn.agent,
        session=turn.session,
        ratio=measure.ratio,
        forced=forced,
        target=target,
        focus=focus,
        undone=undone,
    )
    left, reports = await run_pipeline(window, strategies, run=run_in_request, noted=noted)
    same = left.messages == request.window
    return (request if same else replace(request, window=left.messages)), reports


def _report_sizes(progress: StageProgress, report: StrategyReport) -> None:
    progress.counts.update(
        messages_before=report.messages_before,
        messages_after=report.messages_after,
        tokens_before=report.tokens_before,
        tokens_after=report.tokens_after,
    )


def _report_outcome(progress: StageProgress, report: StrategyReport, forced: str) -> None:
    """Say why the run ended as it did; of a forced one, what forced it."""
    reason = ": ".join(dict.fromkeys(part for part in (forced, report.reason) if part)) or report.status
    match report.status:
        case "failed":
            progress.failed = reason
        case "skipped":
            progress.skipped = reason
        case "done":
            progress.reason = "; ".join(filter(None, (reason, report.note)))
