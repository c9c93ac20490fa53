"""Running reductions of the window, so that everybody can see them: each run tells how it began and how it ended."""

from collections.abc import Sequence
from dataclasses import replace

from ricordo.compaction import Reduction, Report, Strategy, Window
from ricordo.compaction.cancelled import unwrapped
from ricordo.compaction.ladder import Noted, descend
from ricordo.errors import RicordoError
from ricordo.events import Emitter, Progress
from ricordo.middleware.contract import Request
from ricordo.middleware.measure import Measure, Measured
from ricordo.scopes import Scope

__all__ = ["descend_request", "reduce_window"]


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
            with unwrapped():
                reduction = await strategy.reduce(window)
        except RicordoError as error:
            reduction = Reduction(messages=window.messages, report=replace(report, reason=type(error).__name__))
        _tell(progress, reduction.report)
        if reduction.report.note:
            progress.counts["notes"] = 1
        _end(progress, reduction.report, window.forced)
        return reduction


async def descend_request(
    request: Request,
    strategies: Sequence[Strategy],
    measure: Measure,
    emitter: Emitter,
    *,
    forced: str = "",
    limit: int | None = None,
    target: int | None = None,
    focus: str = "",
    undone: int = 0,
    noted: Noted | None = None,
) -> tuple[Request, tuple[Report, ...]]:
    """Return `request` with what is left of its window after each of `strategies` in turn, and what each did.

    The request is the same when nothing got smaller. `limit` in tokens takes the place of the model's window; for what
    else is told to the strategies see `Window`, and for `noted` the ladder.
    """

    async def run(strategy: Strategy, window: Window) -> Reduction:
        measured = await measure.measured(replace(request, window=window.messages), forced=window.forced, limit=limit)
        told = replace(
            measured.window, target=window.target, focus=window.focus, undone=window.undone, shortens=window.shortens
        )
        return await reduce_window(strategy, replace(measured, window=told), emitter, request.turn.scope)

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
    left, reports = await descend(window, strategies, run=run, noted=noted)
    same = left.messages == request.window
    return (request if same else replace(request, window=left.messages)), reports


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
            progress.reason = "; ".join(filter(None, (reason, report.note)))
