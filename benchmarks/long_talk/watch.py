"""Watching the reductions of agents: what they did, how long it took, and the windows around a summary."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from ricordo.compaction import Report
from ricordo.messages import Message
from ricordo.middleware import compact
from ricordo.middleware.contract import Request
from ricordo.middleware.reduce import descend_request

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

    @wraps(descend_request)
    async def timed(request: Request, *args: Any, **named: Any) -> tuple[Request, tuple[Report, ...]]:
        began = time.perf_counter()
        reduced, reports = await descend_request(request, *args, **named)
        watch.seconds += time.perf_counter() - began
        watch.acts.update(report.act for report in reports if report.status == "done")
        watch.failed.update(report.act for report in reports if report.status == "failed")
        if any(report.act == "compact" and report.status == "done" for report in reports):
            watch.summed = (request.window, reduced.window)
        return reduced, reports

    vars(compact)["descend_request"] = timed
    try:
        yield watch
    finally:
        vars(compact)["descend_request"] = descend_request
