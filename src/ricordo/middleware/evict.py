"""Evict: wide tool results leave the window before its size is looked at."""

from ricordo.clock import SystemClock
from ricordo.compaction import Strategy
from ricordo.events import Emitter
from ricordo.middleware.contract import Request, Response, Step
from ricordo.middleware.measure import Measure
from ricordo.middleware.reduce import reduce_request

__all__ = ["EvictResults"]


class EvictResults:
    """Step middleware that runs an eviction strategy over each window; put it outside of `CompactWindow`."""

    def __init__(self, strategy: Strategy, *, measure: Measure | None = None, emitter: Emitter | None = None) -> None:
        """Run `strategy`."""
        self._strategy = strategy
        self._measure = measure or Measure()
        self._emitter = emitter or Emitter(SystemClock())

    async def __call__(self, request: Request, step: Step) -> Response:
        """Go on with what is left of the window."""
        return await step(await reduce_request(request, [self._strategy], self._measure, self._emitter))
