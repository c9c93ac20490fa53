"""Cancelling work at one of the points where it waits, so that a test can try every one of them in turn."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from itertools import count
from typing import Any, Literal, TypeAlias

import anyio

__all__ = ["How", "cancel_at", "ways"]

Work: TypeAlias = Coroutine[Any, Any, object]
How: TypeAlias = Literal["task", "task, again and again", "scope"]


def ways(backend: str) -> tuple[How, ...]:
    """Return the ways to cancel that an event loop knows."""
    return ("task", "task, again and again", "scope") if backend == "asyncio" else ("scope",)


async def cancel_at(point: int, act: Callable[[], Work], how: How) -> bool:
    """Run `act` and cancel it when it waits for the `point`-th time, from 0; tell whether it waited so often."""
    reached: list[int] = []
    if how == "scope":
        with anyio.CancelScope() as scope:
            await _Counted(act(), point, reached, once=True, cancel=scope.cancel)
        return bool(reached)

    async def run() -> None:
        task = asyncio.current_task()
        assert task is not None
        await _Counted(act(), point, reached, once=how == "task", cancel=task.cancel)

    await asyncio.wait([asyncio.ensure_future(run())])
    return bool(reached)


class _Counted(Awaitable[None]):
    """Work that is cancelled when it waits for the `point`-th time, or, unless `once`, again and again from then on."""

    def __init__(self, work: Work, point: int, reached: list[int], *, once: bool, cancel: Callable[[], object]) -> None:
        self._work = work
        self._point = point
        self._reached = reached
        self._once = once
        self._cancel = cancel

    def __await__(self) -> Generator[Any, Any, None]:
        work = self._work.__await__()
        waits = partial(next, work)
        for step in count():
            try:
                waits_for = waits()
            except StopIteration:
                return
            if step == self._point or (step > self._point and not self._once and step % 2):
                self._reached.append(step)
                self._cancel()
            try:
                waits = partial(work.send, (yield waits_for))
            except BaseException as error:  # noqa: BLE001 - it is passed on to the work, which raises it or not
                waits = partial(work.throw, error)
