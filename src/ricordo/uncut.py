"""Work that a cancellation may follow but not cut in two, whoever cancels.

A shielded cancel scope holds off the cancellation of other scopes, yet not `asyncio.Task.cancel`, of which
`asyncio.wait_for` is made. A thread that has begun can't be stopped at all: who stops waiting for it gives back locks
while it still writes.

Invariant: when `uncut` returns or raises, `act` has ended, or had not begun.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

__all__ = ["finish", "uncut", "uncut_in_thread"]

_T = TypeVar("_T")


async def uncut(act: Callable[[], Coroutine[object, object, _T]]) -> _T:
    """Return what `act` returns; a cancellation that comes meanwhile is raised when it has ended."""
    await anyio.lowlevel.checkpoint_if_cancelled()
    return await finish(act)


async def finish(act: Callable[[], Coroutine[object, object, _T]]) -> _T:
    """Do what `uncut` does, and run `act` even when the task is being cancelled already.

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


async def uncut_in_thread(act: Callable[[], _T]) -> _T:
    """Return what `act` returns in a thread: as `uncut` does, with fewer turns of the event loop."""
    if not _on_asyncio():
        return await anyio.to_thread.run_sync(act)
    work: Future[_T] = Future()
    try:
        return await anyio.to_thread.run_sync(_do, work, act)
    except asyncio.CancelledError as error:
        if work.cancel():
            raise
        ending = asyncio.wrap_future(work)
        with anyio.CancelScope(shield=True):
            while not ending.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([ending])
        raise error from ending.exception()


def _do(work: "Future[_T]", act: Callable[[], _T]) -> _T:
    """Return what `act` returns and tell `work`, unless that was cancelled before."""
    if not work.set_running_or_notify_cancel():
        raise asyncio.CancelledError
    try:
        result = act()
    except BaseException as error:
        work.set_exception(error)
        raise
    work.set_result(result)
    return result


def _on_asyncio() -> bool:
    """Tell whether asyncio drives this task; trio knows no cancellation but that of scopes."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False
