"""Work that a cancellation may follow but not cut in two, whoever cancels.

A shielded cancel scope holds off the cancellation of other scopes, yet not `asyncio.Task.cancel`, of which
`asyncio.wait_for` is made. A thread that has begun can't be stopped at all: who stops waiting for it gives back locks
while it still writes.

Invariant: when `run_to_completion` returns or raises, `act` has ended, or had not begun.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread

from ricordo.threads import ThreadJob

__all__ = ["compute", "run_even_if_cancelled", "run_to_completion", "run_in_thread"]

_T = TypeVar("_T")
_Given = TypeVarTuple("_Given")

_limiters: "WeakKeyDictionary[asyncio.AbstractEventLoop, anyio.CapacityLimiter]" = WeakKeyDictionary()


async def run_to_completion(act: Callable[[], Coroutine[object, object, _T]]) -> _T:
    """Return what `act` returns; a cancellation that comes meanwhile is raised when it has ended."""
    await anyio.lowlevel.checkpoint_if_cancelled()
    return await run_even_if_cancelled(act)


async def run_even_if_cancelled(act: Callable[[], Coroutine[object, object, _T]]) -> _T:
    """Do what `run_to_completion` does, and run `act` even when the task is being cancelled already.

    It is for what has to happen in any case, such as giving back a lock.
    """
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        if not _on_asyncio():
            return await act()
        work = asyncio.ensure_future(act())
        while not work.done():
            try:
                await asyncio.wait([work])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is None:
        return work.result()
    raise cancelled from (None if work.cancelled() else work.exception())


async def run_in_thread(act: Callable[[*_Given], _T], *given: *_Given) -> _T:
    """Return what `act` returns for what is `given`, in a thread: as `run_to_completion` does, with fewer turns of the event loop.

    It takes one of the threads that anyio's default limiter allows.
    """
    if not _on_asyncio():
        return await anyio.to_thread.run_sync(act, *given)
    await anyio.lowlevel.checkpoint_if_cancelled()
    loop, work = asyncio.get_running_loop(), ThreadJob(partial(act, *given))
    limiter = _limiters.get(loop)
    if limiter is None:
        limiter = _limiters[loop] = anyio.to_thread.current_default_thread_limiter()
    try:
        limiter.acquire_on_behalf_of_nowait(work)
    except anyio.WouldBlock:
        await limiter.acquire_on_behalf_of(work)
    waiting = loop.create_future()

    def release() -> None:
        limiter.release_on_behalf_of(work)
        if not waiting.done():
            waiting.set_result(None)

    work.start(partial(loop.call_soon_threadsafe, release))
    # who cancels by a scope gets what was done, such as a lease to give back, and feels it at the next wait
    with anyio.CancelScope(shield=True):
        try:
            await waiting
        except asyncio.CancelledError as error:
            while not work.is_done:
                waiting = loop.create_future()
                with suppress(asyncio.CancelledError):
                    await waiting
            raise error from work.error
    return work.result()


async def compute(act: Callable[[], _T], *, size: int, at_once: int) -> _T:
    """Return what `act` returns, which only computes: at once for a `size` up to `at_once`, in a thread for more.

    A trip to a thread costs about 0.1 ms, which a short computation does not repay. A long one would keep the event
    loop from everything else.
    """
    return act() if size <= at_once else await run_in_thread(act)


def _on_asyncio() -> bool:
    """Tell whether asyncio drives this task; trio knows no cancellation but that of scopes."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False
