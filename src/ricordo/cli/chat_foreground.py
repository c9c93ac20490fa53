"""Foreground: the main thread of a chat. It prints, reads and hears signals while the chat runs on a loop beside it.

A terminal is read by a call that blocks, and only the main thread can be called away from it by a signal. So the loop
runs in a thread of its own and asks the foreground to do what has to do with the terminal, one thing after the other.

Invariant: a signal raises only while something is read; at any other time it asks the loop to stop what can be stopped,
so nothing is torn off in the middle of a write.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from types import FrameType
from typing import TypeVar

import anyio

from ricordo.cli.context import run

__all__ = ["Foreground", "Interrupted"]

_T = TypeVar("_T")
_ENDING = tuple(found for name in ("SIGTERM", "SIGHUP") if (found := getattr(signal, name, None)) is not None)


class Interrupted(Exception):
    """Ctrl-C was pressed while something was read, or a signal ended the chat: `Foreground.ended` tells which."""


class Foreground:
    """The terminal's side of a chat; `ended` is the signal that ended it, 0 for none."""

    def __init__(self) -> None:
        """Take over nothing before `run`."""
        self.ended = 0
        self._acts: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._scopes: list[anyio.CancelScope] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reads = False

    def run(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Run `work` on a loop beside this thread, and do here what it asks for; return or raise what it comes to."""
        outcome: Future[_T] = Future()
        thread = threading.Thread(target=self._beside, args=(work, outcome), name="ricordo-chat", daemon=True)
        with self._hearing():
            thread.start()
            while (act := self._acts.get()) is not None:
                act()
            thread.join()
        return outcome.result()

    async def do(self, act: Callable[[], _T], *, reads: bool = False) -> _T:
        """Do `act` in the main thread and return what it returns; with `reads`, a signal ends it.

        Raises: Interrupted, and what `act` raises.
        """
        outcome: Future[_T] = Future()
        self._acts.put(partial(self._do, act, reads, outcome))
        return await asyncio.wrap_future(outcome)

    @contextmanager
    def stopping(self) -> Iterator[anyio.CancelScope]:
        """Let Ctrl-C, and every signal that ends the chat, cancel the block; `cancelled_caught` then tells."""
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                yield scope
            finally:
                self._scopes.remove(scope)

    def stop(self) -> None:
        """Cancel the innermost block that can be stopped."""
        if self._scopes:
            self._scopes[-1].cancel()

    def _beside(self, work: Callable[[], Awaitable[_T]], outcome: "Future[_T]") -> None:
        async def known() -> _T:
            self._loop = asyncio.get_running_loop()
            return await work()

        try:
            outcome.set_result(run(known))
        except BaseException as error:  # noqa: BLE001  (raised in the main thread)
            outcome.set_exception(error)
        finally:
            self._acts.put(None)

    def _do(self, act: Callable[[], _T], reads: bool, outcome: "Future[_T]") -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            self._reads = reads
            self._leave_if_ended()
            result = act()
            self._reads = False
        except KeyboardInterrupt:
            outcome.set_exception(Interrupted())
        except BaseException as error:  # noqa: BLE001  (raised where it was asked for)
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            self._reads = False

    def _leave_if_ended(self) -> None:
        if self._reads and self.ended:
            raise KeyboardInterrupt

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # what is ignored, such as the end of the terminal under nohup, stays ignored
        heard = [number for number in (signal.SIGINT, *_ENDING) if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._heard) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        del frame
        hangs_up = number == getattr(signal, "SIGHUP", None)
        if hangs_up and self.ended:
            # the end of a terminal is told more than once, and nobody meant to hurry by it
            return
        if hangs_up:
            _let_go_of_the_terminal()
        if number != signal.SIGINT:
            self.ended = self.ended or number
        if self._reads:
            # a second signal must not tear off what the first one set going
            self._reads = False
            raise KeyboardInterrupt
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.stop)


def _let_go_of_the_terminal() -> None:
    """Let what is still printed to a terminal that was closed go nowhere: writing to it would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream.isatty():
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
