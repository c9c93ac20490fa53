"""Compact: the window gets smaller before a request when it is due, and once more when the model refuses its size."""

from collections.abc import Sequence
from dataclasses import replace

import anyio

from ricordo.clock import SystemClock
from ricordo.compaction import Strategy
from ricordo.errors import ModelOverflow
from ricordo.events import Emitter
from ricordo.middleware.contract import Request, Response, Step, TurnEvent
from ricordo.middleware.measure import Measure
from ricordo.middleware.reduce import reduce_request

__all__ = ["CompactWindow"]


class CompactWindow:
    """Step middleware that runs reductions in their order and learns from each reply how large requests really are."""

    def __init__(
        self,
        strategies: Sequence[Strategy],
        *,
        measure: Measure | None = None,
        emitter: Emitter | None = None,
        recover: bool = False,
    ) -> None:
        """Run `strategies`, in their order.

        Middleware that adds to the system prompt stands outside of this, to be counted.

        With `recover`, a request that overflows the model's window is made once more after forced reductions; a second
        overflow, one that nothing could be done about, and one in the middle of a streamed reply are raised.
        """
        self._strategies = tuple(strategies)
        self._measure = measure or Measure()
        self._emitter = emitter or Emitter(SystemClock())
        self._recover = recover

    async def __call__(self, request: Request, step: Step) -> Response:
        """Go on with what is left of the window. Raises `ModelOverflow`."""
        reduced = await reduce_request(request, self._strategies, self._measure, self._emitter)
        watched, heard = _watched(reduced)
        try:
            response = await step(watched)
        except ModelOverflow as overflow:
            if not self._recover or heard.is_set():
                raise
            reduced = await self._forced(reduced, overflow)
            response = await step(reduced)
        await self._measure.learn(replace(reduced, window=response.window), response.reply.usage.input)
        return response

    async def _forced(self, request: Request, overflow: ModelOverflow) -> Request:
        """Return the request with a smaller window. Raises `overflow` when it did not get any smaller."""
        await self._measure.learn(request, overflow.size or 0)
        smaller = await reduce_request(
            request, self._strategies, self._measure, self._emitter, forced="overflow", limit=overflow.window
        )
        if smaller.window == request.window:
            raise overflow
        return smaller


def _watched(request: Request) -> tuple[Request, anyio.Event]:
    """Return the request, and an event that is set as soon as anything is heard of its reply."""
    heard = anyio.Event()
    listener = request.turn.listener
    if listener is None:
        return request, heard

    async def noting(event: TurnEvent) -> None:
        heard.set()
        await listener(event)

    return replace(request, turn=replace(request.turn, listener=noting)), heard
