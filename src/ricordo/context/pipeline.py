"""The compaction pipeline: runs strategies in order, passes each the window of the previous one, and logs them.

If a summary saves too little, dropping follows. After an overflow, texts that are still too long are truncated.

Invariants: strategies run in the given order, each once. A reduction that cannot be recorded is discarded, unless the
provider rejected the window. Logs contain numbers and never content.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ricordo.context.cancellation import unwrap_cancellation
from ricordo.context.contract import Act, Reduction, Strategy, StrategyReport, Window
from ricordo.context.strategies.truncate import shorten_messages
from ricordo.errors import RicordoError

__all__ = ["LoggingStrategy", "RecordReduction", "RunStrategy", "run_pipeline", "run_silently"]


RunStrategy: TypeAlias = Callable[[Strategy, Window], Awaitable[Reduction]]
"""Runs a strategy and may notify observers."""
RecordReduction: TypeAlias = Callable[[Window, Reduction], Awaitable[None]]
"""Durably records what restores the window as it was before a reduction with a handle. May raise `StorageError`; then
the window is not changed, unless the provider rejected it."""
_MAX_REMAINING_SHARE = 0.8
_MIN_ESCALATION_TOKENS = 2_000
"""If a summary was triggered by the number of messages and there are fewer tokens than this, dropping never follows:
the tokens it would save are worth less than the messages it would remove."""


async def run_silently(strategy: Strategy, window: Window) -> Reduction:
    """Run a strategy without notifying anyone."""
    return await strategy.reduce(window)


async def run_pipeline(
    window: Window,
    strategies: Sequence[Strategy],
    *,
    run: RunStrategy = run_silently,
    noted: RecordReduction | None = None,
) -> tuple[Window, tuple[StrategyReport, ...]]:
    """Return the window after all strategies, and the report of each.

    If a summary leaves more than 80 % of the tokens, whatever triggered it, dropping follows down to that level
    regardless of its own thresholds. It truncates texts only where there were too many tokens. After an overflow, texts
    that are too long for the target are truncated at the end.
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
    """A strategy whose reductions are recorded before they are returned."""

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
    """Return the maximum number of tokens for the messages if the summary left more; else None."""
    if report.status != "done" or (report.due == "messages" and report.tokens_before < _MIN_ESCALATION_TOKENS):
        return None
    most = int(report.tokens_before * _MAX_REMAINING_SHARE)
    return most if report.tokens_after > most else None


_LEVELS = {"done": logging.INFO, "skipped": logging.DEBUG, "failed": logging.WARNING}


class LoggingStrategy:
    """Logs the reports of another strategy. See the module docstring."""

    def __init__(self, strategy: Strategy, *, log: logging.Logger | None = None) -> None:
        """Log to `log`, by default the logger `ricordo.compaction`.

        Finished steps are logged as info, failed steps as warnings, skipped steps as debug messages.
        """
        self._strategy = strategy
        self._log = log or logging.getLogger("ricordo.compaction")

    @property
    def act(self) -> Act:
        """The action of the strategy."""
        return self._strategy.act

    async def reduce(self, window: Window) -> Reduction:
        """Return the reduction of the strategy, and log its report."""
        try:
            found = await self._strategy.reduce(window)
        except Exception as error:
            self._log.warning("%s: failed with %s", self.act, type(error).__name__)
            raise
        report = found.report
        self._log.log(
            _LEVELS[report.status],
            "%s: %s, %s; %d to %d messages, %d to %d tokens",
            report.act,
            report.status,
            report.reason or "no reason given",
            report.messages_before,
            report.messages_after,
            report.tokens_before,
            report.tokens_after,
        )
        return found
