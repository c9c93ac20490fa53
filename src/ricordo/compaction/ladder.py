"""The ladder: strategies one after the other, each with what the one before left of the window.

A step that took off too little of what it was started for lets the next stronger one act; what a step takes away for
good is noted before anybody goes on with the smaller window. A window that the provider refused gets smaller by what
can be read again first, then by a summary, then by dropping; what is still too long is cut in the middle.

Invariants: the order is that of the given strategies, and no step is run twice. A reduction that can't be noted is not
taken, unless the provider refused the window as it is.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ricordo.compaction.cancelled import unwrap_cancellation
from ricordo.compaction.contract import Act, Reduction, StrategyReport, Strategy, Window
from ricordo.compaction.shorten import shorten_messages
from ricordo.errors import RicordoError

__all__ = ["RecordReduction", "RunStrategy", "run_pipeline", "run_silently"]

RunStrategy: TypeAlias = Callable[[Strategy, Window], Awaitable[Reduction]]
"""Runs a strategy and may tell others about it."""

RecordReduction: TypeAlias = Callable[[Window, Reduction], Awaitable[None]]
"""Keeps, durably, what is needed to bring back the window as it was before a reduction with a handle. May raise
`StorageError`; then the window stays as it was, unless the provider refused it."""

_MAX_REMAINING_SHARE = 0.8
_MIN_ESCALATION_TOKENS = 2_000
"""Below so many tokens a summary that was started by the number of messages is never followed by dropping: what it
would free is worth less than what it would take away."""


async def run_silently(strategy: Strategy, window: Window) -> Reduction:
    """Run a strategy and tell nobody."""
    return await strategy.reduce(window)


async def run_pipeline(
    window: Window,
    strategies: Sequence[Strategy],
    *,
    run: RunStrategy = run_silently,
    noted: RecordReduction | None = None,
) -> tuple[Window, tuple[StrategyReport, ...]]:
    """Return what is left of the window after every strategy in turn, and what each did.

    A summary that left more than 80 % of the tokens, whatever it was started for, is followed by dropping down to that,
    whatever the thresholds of dropping say; texts are shortened for it only where there were too many tokens. After an
    overflow, texts that are too long for the target are cut at the end.
    """
    reports: list[StrategyReport] = []
    most: int | None = None
    due = "tokens"
    for strategy in strategies:
        step = strategy if noted is None else _RecordingStrategy(strategy, noted)
        escalates = strategy.act == "drop" and most is not None and not window.forced
        given = replace(window, forced="progress", target=most, shortens=due == "tokens") if escalates else window
        reduction = await run(step, given)
        reports.append(reduction.report)
        window = replace(window, messages=reduction.messages)
        if strategy.act == "compact":
            most, due = _escalation_target(reduction.report), reduction.report.due
    if window.forced == "overflow" and window.target is not None:
        messages = shorten_messages(window.messages, window.target, ratio=window.ratio)
        window = replace(window, messages=messages)
    return window, tuple(reports)


@dataclass(frozen=True)
class _RecordingStrategy:
    """A strategy whose reductions are noted before they are handed back."""

    strategy: Strategy
    record: RecordReduction

    @property
    def act(self) -> Act:
        return self.strategy.act

    async def reduce(self, window: Window) -> Reduction:
        reduction = await self.strategy.reduce(window)
        report = reduction.report
        if not report.handle or report.status != "done":
            return reduction
        try:
            with unwrap_cancellation():
                await self.record(window, reduction)
        except RicordoError as error:
            why = f"it could not be noted: {type(error).__name__}"
            if window.forced == "overflow":
                note = "; ".join(filter(None, (report.note, f"{why}, so it can't be undone")))
                return replace(reduction, report=replace(report, note=note))
            return Reduction(messages=window.messages, report=_failure_report(report, why))
        return reduction


def _failure_report(report: StrategyReport, why: str) -> StrategyReport:
    return replace(
        report,
        status="failed",
        reason=why,
        messages_after=report.messages_before,
        tokens_after=report.tokens_before,
        handle="",
    )


def _escalation_target(report: StrategyReport) -> int | None:
    """Return how many tokens the messages may take at most, where a summary left more; else None."""
    if report.status != "done" or (report.due == "messages" and report.tokens_before < _MIN_ESCALATION_TOKENS):
        return None
    most = int(report.tokens_before * _MAX_REMAINING_SHARE)
    return most if report.tokens_after > most else None
