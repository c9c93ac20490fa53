"""When maintenance does what: pure decisions about time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

__all__ = ["ConsolidationDue", "FlushSignal", "backoff", "at_most_every"]

_FIRST, _LONGEST = timedelta(seconds=30), timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class FlushSignal:
    """A flush wrote so many `entries` `now`; `last` is when a consolidation ended last, None when none is known."""

    now: datetime
    last: datetime | None
    entries: int


ConsolidationDue: TypeAlias = Callable[[FlushSignal], bool]
"""Decides whether a flush that wrote something asks for a consolidation."""


def at_most_every(pause: timedelta) -> ConsolidationDue:
    """Return the decision that drops signals sooner than `pause` after the last consolidation."""
    return lambda signal: signal.entries > 0 and (signal.last is None or signal.now - signal.last >= pause)


def backoff(attempts: int) -> timedelta:
    """Return how long a job that failed waits: 30 seconds after the first attempt, then twice as long, an hour at most.

    `attempts` is at least 1.
    """
    return min(_FIRST * (1 << min(max(attempts, 1) - 1, 16)), _LONGEST)
