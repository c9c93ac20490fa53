"""Watching the reductions of agents: what they did, how long it took, and the windows around a summary."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from ricordo.agent import compaction_middleware as compact
from ricordo.agent.compaction_middleware import reduce_request
from ricordo.agent.contract import ModelRequest
from ricordo.context import StrategyReport
from ricordo.messages import Message

__all__ = ["Watch", "watched"]


@dataclass(kw_only=True)
class Watch:
    """What was seen since the last look; `summed` are the windows before and after the newest summary."""

    seconds: float = 0.0
    acts: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    summed: tuple[Sequence[Message], Sequence[Message]] | None = None

    def took(self) -> float:
        """Return the seconds since the last look, and begin anew."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch every reduction before a request; measuring the window counts as part of it."""
    watch = Watch()

    @wraps(reduce_request)
    async def timed(request: ModelRequest, *args: Any, **named: Any) -> tuple[ModelRequest, tuple[StrategyReport, ...]]:
        began = time.perf_counter()
        reduced, reports = await reduce_request(request, *args, **named)
        watch.seconds += time.perf_counter() - began
        watch.acts.update(report.action for report in reports if report.status == "done")
        watch.failed.update(report.action for report in reports if report.status == "failed")
        if any(report.action == "compact" and report.status == "done" for report in reports):
            watch.summed = (request.window, reduced.window)
        return reduced, reports

    vars(compact)["reduce_request"] = timed
    try:
        yield watch
    finally:
        vars(compact)["reduce_request"] = reduce_request
