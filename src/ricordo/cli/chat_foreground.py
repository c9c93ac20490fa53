"""Foreground: the main thread of a chat. It prints, reads and hears signals while the chat runs on a loop beside it.

A terminal is read by a call that blocks, and only the main thread can be called away from it by a signal. So the loop
runs in a thread of its own and asks the foreground to do what has to do with the terminal, one thing after the other.

Invariant: a signal raises only while something is read; at any other time it asks the loop to stop what can be stopped,
so nothing is torn off in the middle of a write.
"""

import asyncio
import errno
import os
import signal
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
_HANG_UP: int = getattr(signal, "SIGHUP", 0)
_NUDGE = signal.SIGURG
_NUDGE_SECONDS = 0.05
_ENDING = tuple(number for number in (signal.SIGTERM, _HANG_UP) if number)


class Interrupted(Exception):
    """Ctrl-C was pressed while something was read, or a signal ended the chat: `Foreground.ended` tells which."""


class Foreground:
    """The terminal's side of a chat; `ended` is the signal that ended it, 0 for none.

    Set `closing` when the chat is being closed in order: the first signal that asks for just that then stops nothing.
    """

    def __init__(self) -> None:
        """Take over nothing before `run`."""
        self.ended = 0
        self.closing = False
        self._terminals = _open_terminals()
        self._acts: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._scopes: list[anyio.CancelScope] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reads = False
        self._told: int | None = None

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
            if self._told is None:
                return await work()
            self._loop.add_reader(self._told, self._nudge)
            try:
                return await work()
            finally:
                self._loop.remove_reader(self._told)

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
            result = self._read(act) if reads else self._written(act)
        except KeyboardInterrupt:
            outcome.set_exception(Interrupted())
        except BaseException as error:  # noqa: BLE001  (raised where it was asked for)
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    def _read(self, act: Callable[[], _T]) -> _T:
        try:
            self._reads = True
            self._leave_if_ended()
            return act()
        finally:
            self._reads = False

    def _written(self, act: Callable[[], _T]) -> _T:
        try:
            return act()
        except OSError as error:
            if error.errno != errno.EIO or not self._terminals:
                raise
        # the terminal is gone, and the signal that says so may still be on its way
        self.ended = self.ended or _HANG_UP
        self._let_go_of_the_terminal()
        return act()

    def _leave_if_ended(self) -> None:
        if self.ended:
            raise KeyboardInterrupt

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # what is ignored, such as the end of the terminal under nohup, stays ignored
        heard = [number for number in (signal.SIGINT, *_ENDING) if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._heard) for number in heard}
        before[_NUDGE] = signal.signal(_NUDGE, lambda number, frame: None)
        self._told, tells = os.pipe()
        os.set_blocking(tells, False)
        wakes = signal.set_wakeup_fd(tells, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakes)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._told)
            os.close(tells)

    def _nudge(self) -> None:
        """See to it that a signal is heard that came just before the main thread began to wait for a key."""
        if self._loop is not None and self._told is not None and set(os.read(self._told, 64)) != {_NUDGE}:
            main = threading.main_thread().ident
            assert main is not None
            self._loop.call_later(_NUDGE_SECONDS, signal.pthread_kill, main, _NUDGE)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        del frame
        # as soon as the end is told the chat may begin to learn, which this signal is not to stop
        running = self._scopes[-1:]
        if number == _HANG_UP:
            self._let_go_of_the_terminal()
        if number != signal.SIGINT:
            # a terminal's end is told more than once, and hurries nobody; nor does the first word to end what ends
            hurries = number != _HANG_UP and bool(self.ended)
            ends_already = bool(self.ended) or self.closing
            self.ended = self.ended or number
            if ends_already and not hurries:
                return
        if self._reads:
            # a second signal must not tear off what the first one set going
            self._reads = False
            raise KeyboardInterrupt
        if self._loop is not None and running:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(running[0].cancel)

    def _let_go_of_the_terminal(self) -> None:
        """Let what is still printed to a terminal that was closed go nowhere: writing to it would fail."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        while self._terminals:
            os.dup2(nowhere, self._terminals.pop())
        os.close(nowhere)


def _open_terminals() -> list[int]:
    return [number for number in range(3) if os.isatty(number)]
