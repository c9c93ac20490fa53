"""Threads for short work such as reading a file, which are used again.

A thread that has nothing to do ends after some seconds. A process that ends lets what is at work come to its end.
"""

import atexit
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

__all__ = ["ThreadJob"]

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
