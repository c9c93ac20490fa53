"""Background tasks, work that survives cancellation, yield points for long work, and worker threads.

A shielded cancel scope does not stop `asyncio.Task.cancel`, and a thread can't be stopped: a caller that stops waiting
for a thread would release locks while the thread still writes. So `run_to_completion` waits for the end of the work.

Invariants: when `run_to_completion` returns or raises, its work has ended or never began. A yield point can take time
or raise, but never changes a result, so pure functions stay pure.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import TaskGroup

from ricordo.errors import InvalidSetting

__all__ = [
    "NoYield",
    "Opening",
    "ThreadJob",
    "YieldPolicy",
    "background_group",
    "background_task",
    "compute",
    "find_cancellation",
    "run_even_if_cancelled",
    "run_in_thread",
    "run_to_completion",
    "unwrap_cancellation",
    "use_yield_policy",
    "yield_point",
]


@asynccontextmanager
async def background_task(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `work` while the block runs, and cancel it when the block ends.

    An error of the block is raised unchanged, not wrapped in an exception group as by a task group. An error of `work`
    ends the block and is raised from it.
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
    """Yield a task group that runs while the block does; at the end its tasks are cancelled and awaited.

    Errors are raised as by `background_task`.
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


class Opening(AbstractAsyncContextManager[_T], Awaitable[_T]):
    """Something to open, once: `async with opening as value`, or `value = await opening` and later `close`.

    It is opened and closed in a task of its own, so one task may open it and another one close it, and no cancel scope
    of either is left open. An error or a cancellation of an `async with` block reaches the background work of the
    value, as it would without that task.
    """

    def __init__(self, make: "Callable[[Opening[_T]], AbstractAsyncContextManager[_T]]") -> None:
        """Open and close what `make` returns for this opening."""
        self._context = make(self)
        self._values: list[_T] = []
        self._is_started = False
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._block_error: Exception | None = None

    def __await__(self) -> Generator[Any, None, _T]:
        """Open it and return its value. Raises: InvalidSetting if it was opened before; what opening it raises."""
        return self.__aenter__().__await__()

    async def __aenter__(self) -> _T:
        """Open it and return its value, as awaiting it does."""
        if self._is_started:
            raise InvalidSetting("An opening is used once: call `open` again.")
        self._is_started, self._scope = True, anyio.CancelScope()
        self._opened, self._closing, self._ended = anyio.Event(), anyio.Event(), anyio.Event()
        if _on_asyncio():
            self._task = asyncio.create_task(self._run())
        else:
            import trio

            trio.lowlevel.spawn_system_task(self._run, context=copy_context())
        await self._wait_or_cancel(self._opened)
        if not self._values:
            await self.close()
        return self._values[0]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; after an error or a cancellation of the block at once, without finishing its work."""
        if isinstance(error, Exception) and not self._ended.is_set():
            self._block_error = error
        elif error is not None:
            self._scope.cancel()
        try:
            await self.close()
        except Exception as raised:
            if raised is not error:
                raise

    async def close(self) -> None:
        """Close the value and wait until it is closed; when called again, only wait.

        A cancellation makes it close at once. Raises what closing raises, once.
        """
        if not self._is_started:
            return
        self._closing.set()
        await self._wait_or_cancel(self._ended)
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def _wait_or_cancel(self, event: anyio.Event) -> None:
        """Wait for `event`; a cancellation is passed on to the task, and raised when that has ended."""
        try:
            await event.wait()
        except anyio.get_cancelled_exc_class():
            self._scope.cancel()
            await run_even_if_cancelled(self._ended.wait)
            raise

    async def _run(self) -> None:
        """Open the value, wait until it should close, and close it."""
        try:
            with self._scope:
                async with self._context as value:
                    self._values.append(value)
                    self._opened.set()
                    await self._closing.wait()
                    if self._block_error is not None:
                        raise self._block_error  # noqa: TRY301 - the context handles the error of the block
        except Exception as error:  # noqa: BLE001 - it is raised by `close`
            self._error = error
        finally:
            self._opened.set()
            self._ended.set()


class ThreadJob(Generic[_T]):
    """A function that runs once in a thread, in the context of the code that created the job."""

    def __init__(self, act: Callable[[], _T]) -> None:
        """Store `act` without running it."""
        self.is_done = False
        self.error: BaseException | None = None
        self._function = act
        self._context = copy_context()
        self._results: list[_T] = []
        self._on_end: Callable[[], object] | None = None

    def start(self, on_end: Callable[[], object]) -> None:
        """Run the function in a thread, which calls `on_end` after it."""
        self._on_end = on_end
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
                # the traceback references this frame
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
        """Call `on_end`, unless the event loop that waited for the job is closed."""
        assert self._on_end is not None
        try:
            self._on_end()
        except RuntimeError:
            return


class _WorkerThread(threading.Thread):
    """A thread that runs the jobs in `queue`; None ends it. It is idle while it is in `_idle_threads`."""

    def __init__(self) -> None:
        super().__init__(name="ricordo worker", daemon=True)
        self.queue: SimpleQueue[ThreadJob[Any] | None] = SimpleQueue()

    def run(self) -> None:
        while self._run_next():
            pass

    def _run_next(self) -> bool:
        """Run the next job and return True; return False when the thread should end."""
        try:
            work = self.queue.get(timeout=_IDLE_SECONDS)
        except Empty:
            return not _remove_idle(self)
        if work is None:
            return False
        work.run()
        # marked as idle before the notification, so that whoever receives it can use this thread for its next job
        _idle_threads.append(self)
        work.notify()
        return True


_idle_threads: list[_WorkerThread] = []


def _remove_idle(thread: _WorkerThread) -> bool:
    """Remove a thread from the idle threads; return False if it was already taken for a job."""
    try:
        _idle_threads.remove(thread)
    except ValueError:
        return False
    return True


def _join_all() -> None:
    """Wait for all jobs to end, since stopping a thread could leave a half-written file."""
    threads = [thread for thread in threading.enumerate() if isinstance(thread, _WorkerThread)]
    for thread in threads:
        thread.queue.put(None)
    for thread in threads:
        thread.join()


atexit.register(_join_all)


if hasattr(os, "register_at_fork"):
    # a forked child has no threads of its parent
    os.register_at_fork(after_in_child=_idle_threads.clear)


_Given = TypeVarTuple("_Given")
_limiters: "WeakKeyDictionary[asyncio.AbstractEventLoop, anyio.CapacityLimiter]" = WeakKeyDictionary()


async def run_to_completion(act: Callable[[], Coroutine[object, object, _T]]) -> _T:
    """Return the result of `act`; a cancellation that arrives meanwhile is raised after `act` has ended."""
    await anyio.lowlevel.checkpoint_if_cancelled()
    return await run_even_if_cancelled(act)


async def run_even_if_cancelled(act: Callable[[], Coroutine[object, object, _T]]) -> _T:
    """Do the same as `run_to_completion`, but also run `act` when the task is already being cancelled.

    Use it for work that must always happen, such as releasing a lock.
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
    """Run `act` with the arguments `given` in a thread and return its result, like `run_to_completion`.

    It needs fewer turns of the event loop, and takes one of the threads of anyio's default limiter.
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
    # with a scope cancellation the caller gets the result, such as a lease to release, and is cancelled at its next
    # await
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
    """Return the result of `act`, a pure computation: run it here for a `size` up to `at_once`, else in a thread.

    A switch to a thread costs about 0.1 ms, too much for a short computation. A long one would block the event loop.
    """
    return act() if size <= at_once else await run_in_thread(act)


def _on_asyncio() -> bool:
    """Return whether asyncio runs this task; trio cancels only by scopes."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


class YieldPolicy(Protocol):
    """How a piece of work yields to more urgent work."""

    async def pause(self) -> None:
        """Return when the next step may begin; called between two steps."""
        ...

    def yield_now(self) -> None:
        """Return when the step may continue.

        It is called within a step, in a worker thread, every few milliseconds or less often.
        """
        ...


class NoYield:
    """The policy of work that never yields."""

    async def pause(self) -> None:
        """Return immediately."""

    def yield_now(self) -> None:
        """Return immediately."""


_YIELD_HANDLER: ContextVar[Callable[[], None] | None] = ContextVar("give_way", default=None)


def yield_point() -> None:
    """Let more urgent work go first. Raises the errors of the current yield policy, when the work is cancelled."""
    to = _YIELD_HANDLER.get()
    if to is not None:
        to()


@contextmanager
def use_yield_policy(policy: YieldPolicy) -> Iterator[None]:
    """Apply `policy` to the block and to the threads it starts. Do not hold a lock that a turn may wait for."""
    before = _YIELD_HANDLER.set(policy.yield_now)
    try:
        yield
    finally:
        _YIELD_HANDLER.reset(before)


_TRIO_TIMEOUT = "TooSlowError"


def find_cancellation(error: BaseException) -> BaseException | None:
    """Return the cancellation that `error` is or that caused it; None if there is none.

    It searches exception groups, contexts and cyclic chains of causes."""
    kind = anyio.get_cancelled_exc_class()
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop(0)
        if isinstance(current, kind):
            return current
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, TimeoutError) or type(current).__name__ == _TRIO_TIMEOUT:
            continue
        inside = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        before = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        waiting += [*inside, *([before] if before is not None else [])]
    return None


@contextmanager
def unwrap_cancellation() -> Iterator[None]:
    """Raise the wrapped cancellation itself if an exception from this block wraps one."""
    try:
        yield
    except BaseException as error:
        cancelled = find_cancellation(error)
        if cancelled is None or cancelled is error:
            raise
        raise cancelled from None
