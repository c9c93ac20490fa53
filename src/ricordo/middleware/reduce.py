"""Running reductions of the window, so that everybody can see them: each run tells how it began and how it ended."""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.compaction import Reduction, Report, Strategy
from ricordo.errors import RicordoError
from ricordo.events import Emitter, Progress
from ricordo.middleware.contract import Request
from ricordo.middleware.measure import Measure, Measured
from ricordo.scopes import Scope

__all__ = ["reduce_request", "reduce_window"]


async def reduce_window(strategy: Strategy, measured: Measured, emitter: Emitter, scope: Scope | None) -> Reduction:
    """Run one strategy and report it, a skipped or failed run too, with messages and tokens before and after.

    One that raises an error of ours has failed and leaves the window as it was: nobody's turn ends because of it.
    """
    window = measured.window
    report = Report(
        act=strategy.act,
        status="failed",
        messages_before=len(window.messages),
        messages_after=len(window.messages),
        tokens_before=measured.tokens,
        tokens_after=measured.tokens,
    )
    with emitter.stage(strategy.act, scope) as progress:
        _tell(progress, report)
        try:
            reduction = await strategy.reduce(window)
        except RicordoError as error:
            reduction = Reduction(messages=window.messages, report=replace(report, reason=type(error).__name__))
        _tell(progress, reduction.report)
        if reduction.report.note:
            progress.counts["notes"] = 1
        _end(progress, reduction.report, window.forced)
        return reduction


async def reduce_request(
    request: Request,
    strategies: Sequence[Strategy],
    measure: Measure,
    emitter: Emitter,
    *,
    forced: str = "",
    limit: int | None = None,
) -> Request:
    """Return `request` after each of `strategies` in turn; the same window when nothing got smaller."""
    for strategy in strategies:
        measured = await measure.measured(request, forced=forced, limit=limit)
        reduction = await reduce_window(strategy, measured, emitter, request.turn.scope)
        if reduction.messages != request.window:
            request = replace(request, window=reduction.messages)
    return request


def _tell(progress: Progress, report: Report) -> None:
    progress.counts.update(
        messages_before=report.messages_before,
        messages_after=report.messages_after,
        tokens_before=report.tokens_before,
        tokens_after=report.tokens_after,
    )


def _end(progress: Progress, report: Report, forced: str) -> None:
    """Say why the run ended as it did; of a forced one, what forced it."""
    reason = ": ".join(dict.fromkeys(part for part in (forced, report.reason) if part)) or report.status
    match report.status:
        case "failed":
            progress.failed = reason
        case "skipped":
            progress.skipped = reason
        case "done":
            progress.reason = reason
