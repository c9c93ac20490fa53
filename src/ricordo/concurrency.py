"""Background tasks, work that a cancellation can't cut in two, points at which long work yields, and worker threads.

A shielded cancel scope does not hold off `asyncio.Task.cancel`, and a thread can't be stopped: who stops waiting for
one gives back locks while it still writes. So `run_to_completion` waits for the end, whoever cancels.

Invariants: when `run_to_completion` returns or raises, its work has ended or had not begun. Yielding takes time or ends
the work by an exception, and changes nothing of what it comes to, so what is pure stays pure.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

__all__ = [
    "NoYield",
    "ThreadJob",
    "YieldPolicy",
    "background_group",
    "background_task",
    "compute",
    "run_even_if_cancelled",
    "run_in_thread",
    "run_to_completion",
    "use_yield_policy",
    "yield_point",
]


@asynccontextmanager
async def background_task(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `work` while the block runs, and cancel it when the block ends.

    An error of the block comes out as it was raised, not in a group, as a task group would give it; an error of `work`
    ends the block and is raised in its place.
    """
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as raised:
        if len(raised.exceptions) > 1:
            raise
        alone = raised.exceptions[0]
        raise alone from alone.__cause__


@asynccontextmanager
async def background_group() -> AsyncIterator[TaskGroup]:
    """Give a group whose tasks run while the block does; at its end they are cancelled and waited for.

    Errors come out as those of `background_task`.
    """
    ready: list[TaskGroup] = []
    begun = anyio.Event()

    async def run_group() -> None:
        async with anyio.create_task_group() as group:
            ready.append(group)
            begun.set()
            await anyio.sleep_forever()

    async with background_task(run_group):
        await begun.wait()
        yield ready[0]


_IDLE_SECONDS = 10.0
_T = TypeVar("_T")


class ThreadJob(Generic[_T]):
    """A function that runs once in a thread, in the context of who made this."""

    def __init__(self, act: Callable[[], _T]) -> None:
        """Hold `act`, which does not run yet."""
        self.is_done = False
        self.error: BaseException | None = None
        self._function = act
        self._context = copy_context()
        self._results: list[_T] = []
        self._notify: Callable[[], object] | None = None

    def start(self, tell: Callable[[], object]) -> None:
        """Run it in a thread, which calls `notify` when it has ended."""
        self._notify = tell
        try:
            thread = _idle_threads.pop()
        except IndexError:
            thread = _WorkerThread()
            thread.start()
        thread.queue.put(self)

    def result(self) -> _T:
        """Return what the function returned, or raise what it raised."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                # the traceback holds this frame
                self.error = None
        return self._results.pop()

    def run(self) -> None:
        """Run the function in the calling thread."""
        try:
            self._results.append(self._context.run(self._function))
        except BaseException as error:  # noqa: BLE001 - it is raised by `result`
            self.error = error
        self.is_done = True

    def notify(self) -> None:
        """Tell that it has ended, unless the event loop that waited for it is closed."""
        assert self._notify is not None
        try:
            self._notify()
        except RuntimeError:
            return


class _WorkerThread(threading.Thread):
    """Runs what is put into `queue`; None ends it. It is idle when it is in `_idle_threads`."""

    def __init__(self) -> None:
        super().__init__(name="ricordo worker", daemon=True)
        self.queue: SimpleQueue[ThreadJob[Any] | None] = SimpleQueue()

    def run(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Run the next work and return True, or return False when there is none."""
        try:
            work = self.queue.get(timeout=_IDLE_SECONDS)
        except Empty:
            return not _remove_idle(self)
        if work is None:
            return False
        work.run()
        # idle before it is told, so that whoever is told has a thread for what comes next
        _idle_threads.append(self)
        work.notify()
        return True


_idle_threads: list[_WorkerThread] = []


def _remove_idle(thread: _WorkerThread) -> bool:
    """Take the thread out of the idle ones; return False when it has been chosen for work meanwhile."""
    try:
        _idle_threads.remove(thread)
    except ValueError:
        return False
    return True


def _join_all() -> None:
    """Wait for all work to end; a thread that is only stopped would leave half a file."""
    threads = [thread for thread in threading.enumerate() if isinstance(thread, _WorkerThread)]
    for thread in threads:
        thread.queue.put(None)
    for thread in threads:
        thread.join()


atexit.register(_join_all)


if hasattr(os, "register_at_fork"):
    # a forked child has none of the threads
    os.register_at_fork(after_in_child=_idle_threads.clear)


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
    """Return what `act` returns for what is `given`, in a thread: as `run_to_completion` does, with fewer turns of the
    event loop.

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


class YieldPolicy(Protocol):
    """How one piece of work behaves towards what is more urgent."""

    async def pause(self) -> None:
        """Return when the next step may begin; called between two steps."""
        ...

    def yield_now(self) -> None:
        """Return when the step may go on; called within one, in a worker thread, once in a few milliseconds or more."""
        ...


class NoYield:
    """The policy of work that nothing is more urgent than."""

    async def pause(self) -> None:
        """Wait for nothing."""

    def yield_now(self) -> None:
        """Wait for nothing."""


_YIELD_HANDLER: ContextVar[Callable[[], None] | None] = ContextVar("give_way", default=None)


def yield_point() -> None:
    """Let what is more urgent go first. Raises what the policy of the work raises, when the work is cancelled."""
    to = _YIELD_HANDLER.get()
    if to is not None:
        to()


@contextmanager
def use_yield_policy(policy: YieldPolicy) -> Iterator[None]:
    """Let the block, and the threads it begins, give way as `yield_policy` says; hold no lock that a turn
    may wait for.
    """
    before = _YIELD_HANDLER.set(policy.yield_now)
    try:
        yield
    finally:
        _YIELD_HANDLER.reset(before)
