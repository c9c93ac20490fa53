"""The ladder: strategies one after the other, each with what the one before left of the window.

A step that took off too little of what it was started for lets the next stronger one act; what a step takes away for
good is noted before anybody goes on with the smaller window.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ricordo.compaction.contract import Reduction, Report, Strategy, Window

__all__ = ["Noted", "Run", "descend", "plainly"]

Run: TypeAlias = Callable[[Strategy, Window], Awaitable[Reduction]]
"""Runs a strategy and may tell others about it."""

Noted: TypeAlias = Callable[[Window, Reduction], Awaitable[None]]
"""Keeps, durably, what is needed to bring back the window as it was before a reduction with a handle. May raise
`StorageError`; then the window stays as it was, unless the provider refused it."""


async def plainly(strategy: Strategy, window: Window) -> Reduction:
    """Run a strategy and tell nobody."""
    return await strategy.reduce(window)


async def descend(
    window: Window, strategies: Sequence[Strategy], *, run: Run = plainly, noted: Noted | None = None
) -> tuple[Window, tuple[Report, ...]]:
    """Return what is left of the window after every strategy in turn, and what each did."""
    reports: list[Report] = []
    for strategy in strategies:
        reduction = await run(strategy, window)
        if noted and reduction.report.handle and reduction.report.status == "done":
            await noted(window, reduction)
        reports.append(reduction.report)
        window = replace(window, messages=reduction.messages)
    return window, tuple(reports)
