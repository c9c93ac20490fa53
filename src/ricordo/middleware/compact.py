"""Compact: the window gets smaller before a request when it is due, and again when the model refuses its size.

Invariants: a reduction that can be undone is noted before anything goes on with it, and what is asked again is what
inner middleware keeps before it is sent. The error that is raised at the end is the provider's own. What nothing can
make smaller, and is larger than the model's window, is refused with a sentence before it is sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import anyio

from ricordo.clock import SystemClock
from ricordo.compaction import Strategy
from ricordo.compaction.ladder import RecordReduction
from ricordo.compaction.plan import overflow_target
from ricordo.compaction.summary_message import find_instructions
from ricordo.errors import ModelOverflow
from ricordo.events import Emitter
from ricordo.middleware.contract import ModelRequest, ModelResponse, StepHandler, TurnEvent
from ricordo.middleware.measure import RequestMeter
from ricordo.middleware.reduce import reduce_request
from ricordo.tokens import estimate_text

__all__ = ["CompactionMiddleware"]

_TOO_LARGE = "the request was larger than the model's window"
_TOO_MANY = "the request had more messages than the provider takes"


class CompactionMiddleware:
    """Step middleware that runs reductions in their order and learns from each reply how large requests really are."""

    def __init__(
        self,
        strategies: Sequence[Strategy],
        *,
        measure: RequestMeter | None = None,
        emitter: Emitter | None = None,
        retries: int = 0,
        noted: RecordReduction | None = None,
        undone: Callable[[], int] = int,
        refused: Sequence[Strategy] | None = None,
    ) -> None:
        """Run `strategies`, in their order.

        Middleware that adds to the system prompt stands outside of this, to be counted.

        A request that overflows the model's window is made again up to `overflow_retries` times, each time after forced
        reductions to a smaller target; one overflow more, one that nothing could be done about, and one in the middle
        of a streamed reply are raised. `noted` keeps what brings a window back, see the ladder. `undone` returns how
        many messages the window had when a person last undid a compaction, 0 for never. `refused` are run after an
        overflow, by default `strategies`.
        """
        self._strategies = tuple(strategies)
        self._overflow_strategies = self._strategies if refused is None else tuple(refused)
        self._measure = measure or RequestMeter()
        self._emitter = emitter or Emitter(SystemClock())
        self._retries = retries
        self._record_reduction = noted
        self._get_undone = undone

    async def __call__(self, request: ModelRequest, step: StepHandler) -> ModelResponse:
        """Go on with what is left of the window. Raises `ModelOverflow`, also for what never fits."""
        reduced, _ = await reduce_request(
            request,
            self._strategies,
            self._measure,
            self._emitter,
            undone=self._get_undone(),
            noted=self._record_reduction,
        )
        await self._check_fixed(reduced)
        sent, response = await self._send(reduced, step, self._retries, None)
        learned = replace(sent, window=response.window, reminder=response.reminder)
        await self._measure.learn(learned, response.reply.usage.input)
        return response

    async def _check_fixed(self, request: ModelRequest) -> None:
        """Raise `ModelOverflow` where what is always sent, whatever is reduced, is larger than the window."""
        limit = self._measure.limit
        if limit is None:
            return
        measured = await self._measure.measure(request)
        # a correction that is too high would refuse every request, and so never be corrected itself
        around = min(measured.window.overhead, measured.estimate.input - measured.estimate.messages)
        carried = sum(estimate_text(each.text) for each in find_instructions(request.window))
        pinned = round(carried * min(1.0, measured.window.ratio))
        if around + pinned > limit:
            text = _fixed_size_text(limit, around=around, pinned=pinned)
            raise ModelOverflow(text, window=limit, size=around + pinned)

    async def _send(
        self, request: ModelRequest, step: StepHandler, retries: int, target: int | None
    ) -> tuple[ModelRequest, ModelResponse]:
        """Return the response and the request that got it; `target` is what the messages were to take, None before
        the first overflow."""
        watched, heard = _watch_reply(request)
        try:
            return request, await step(watched)
        except ModelOverflow as overflow:
            if not retries or heard.is_set():
                raise
            smaller, target = await self._force_reduction(request, overflow, target)
            return await self._send(smaller, step, retries - 1, target)

    async def _force_reduction(
        self, request: ModelRequest, overflow: ModelOverflow, before: int | None
    ) -> tuple[ModelRequest, int]:
        """Return the request with a smaller window, and what its messages were to take.

        Raises `overflow` when it did not get any smaller.
        """
        await self._measure.learn(request, overflow.size or 0, answered=False)
        self._measure.learn_limits(window=overflow.window, messages=overflow.messages)
        with self._emitter.stage("overflow", request.turn.scope) as progress:
            measured = await self._measure.measure(request, limit=overflow.window)
            target = overflow_target(measured.window, measured.tokens, named=overflow.window is not None)
            target = target if before is None else min(target, before // 2)
            smaller, _ = await reduce_request(
                request,
                self._overflow_strategies,
                self._measure,
                self._emitter,
                forced="overflow",
                limit=overflow.window,
                target=target,
                noted=self._record_reduction,
            )
            left = await self._measure.measure(smaller, limit=overflow.window)
            progress.counts.update(
                messages_before=len(request.window),
                messages_after=len(smaller.window),
                tokens_before=measured.tokens,
                tokens_after=left.tokens,
                target=target,
            )
            progress.reason = _TOO_MANY if overflow.messages is not None else _TOO_LARGE
            if smaller.window == request.window:
                progress.failed = f"{progress.reason}, and nothing of it got smaller"
        if smaller.window == request.window:
            raise overflow
        return smaller, target


def _fixed_size_text(limit: int, *, around: int, pinned: int) -> str:
    """Say that what is always sent does not fit, and what to do."""
    more = f", and what is pinned or carried on about {pinned:,}" if pinned else ""
    return (
        f"The system prompt and the tools take about {around:,} tokens{more}, more than the model's window of "
        f"{limit:,}: shorten AGENTS.md, the rules or the instructions, unpin messages, offer fewer tools, or take a "
        "model with a larger window."
    )


def _watch_reply(request: ModelRequest) -> tuple[ModelRequest, anyio.Event]:
    """Return the request, and an event that is set as soon as anything is heard of its reply."""
    heard = anyio.Event()
    listener = request.turn.listener
    if listener is None:
        return request, heard

    async def note_event(event: TurnEvent) -> None:
        heard.set()
        await listener(event)

    return replace(request, turn=replace(request.turn, listener=note_event)), heard
