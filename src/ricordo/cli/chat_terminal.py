"""The terminal of a chat: the main thread, which prints, reads and handles signals, and the printing of a turn.

A terminal is read by a call that blocks, and only the main thread can be called away from it by a signal. So the event
loop runs in a thread of its own and asks the main thread to do what has to do with the terminal, one thing after the
other.

Invariants: a signal raises only while something is read; at any other time it asks the loop to cancel what can be
cancelled, so no write is torn. Nothing that a model or a tool says reaches a terminal as a control sequence, however it
was cut into pieces.
"""

import asyncio
import errno
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
from typing import TYPE_CHECKING, TypeVar

import anyio

from ricordo.cli.render import dim, escape, print_line, print_note
from ricordo.cli.target import run_async

if TYPE_CHECKING:
    from ricordo.agent.contract import TurnEvent, TurnResult
    from ricordo.messages import ToolCall, ToolResult

__all__ = ["MainThreadRunner", "ReadInterrupted", "TurnPrinter"]


_T = TypeVar("_T")
_HANG_UP: int = getattr(signal, "SIGHUP", 0)
_REPEAT_SIGNAL = signal.SIGURG
_REPEAT_SECONDS = 0.05
_ENDING_SIGNALS = tuple(number for number in (signal.SIGTERM, _HANG_UP) if number)


class ReadInterrupted(Exception):
    """Ctrl-C was pressed while something was read, or a signal ended the chat: `MainThreadRunner.end_signal` tells
    which.
    """


class MainThreadRunner:
    """The terminal's side of a chat; `end_signal` is the signal that ended it, 0 for none.

    Set `is_closing` when the chat is being closed in order: the first signal that asks for just that then stops
    nothing.
    """

    def __init__(self) -> None:
        """Take over nothing before `run`."""
        self.end_signal = 0
        self.is_closing = False
        self._terminals = _list_terminals()
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._scopes: list[anyio.CancelScope] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_reading = False
        self._wakeup_pipe: int | None = None

    def run(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Run `work` on a loop beside this thread, and do here what it asks for; return or raise what it comes to."""
        outcome: Future[_T] = Future()
        thread = threading.Thread(target=self._run_loop, args=(work, outcome), name="ricordo-chat", daemon=True)
        with self._handle_signals():
            thread.start()
            while (act := self._calls.get()) is not None:
                act()
            thread.join()
        return outcome.result()

    async def call(self, act: Callable[[], _T], *, reads: bool = False) -> _T:
        """Do `act` in the main thread and return what it returns; with `reads`, a signal ends it.

        Raises: ReadInterrupted, and what `act` raises.
        """
        outcome: Future[_T] = Future()
        self._calls.put(partial(self._call, act, reads, outcome))
        return await asyncio.wrap_future(outcome)

    @contextmanager
    def cancel_on_signal(self) -> Iterator[anyio.CancelScope]:
        """Let Ctrl-C, and every signal that ends the chat, cancel the block; `cancelled_caught` then tells."""
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                yield scope
            finally:
                self._scopes.remove(scope)

    def cancel_innermost(self) -> None:
        """Cancel the innermost block that can be stopped."""
        if self._scopes:
            self._scopes[-1].cancel()

    def _run_loop(self, work: Callable[[], Awaitable[_T]], outcome: "Future[_T]") -> None:
        async def run_with_reader() -> _T:
            self._loop = asyncio.get_running_loop()
            if self._wakeup_pipe is None:
                return await work()
            self._loop.add_reader(self._wakeup_pipe, self._repeat_signal)
            try:
                return await work()
            finally:
                self._loop.remove_reader(self._wakeup_pipe)

        try:
            outcome.set_result(run_async(run_with_reader))
        except BaseException as error:  # noqa: BLE001  (raised in the main thread)
            outcome.set_exception(error)
        finally:
            self._calls.put(None)

    def _call(self, act: Callable[[], _T], reads: bool, outcome: "Future[_T]") -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            result = self._call_reading(act) if reads else self._call_writing(act)
        except KeyboardInterrupt:
            outcome.set_exception(ReadInterrupted())
        except BaseException as error:  # noqa: BLE001  (raised where it was asked for)
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    def _call_reading(self, act: Callable[[], _T]) -> _T:
        try:
            self._is_reading = True
            self._raise_if_ended()
            return act()
        finally:
            self._is_reading = False

    def _call_writing(self, act: Callable[[], _T]) -> _T:
        try:
            return act()
        except OSError as error:
            if error.errno != errno.EIO or not self._terminals:
                raise
        # the terminal is gone, and the signal that says so may still be on its way
        self.end_signal = self.end_signal or _HANG_UP
        self._detach_terminal()
        return act()

    def _raise_if_ended(self) -> None:
        if self.end_signal:
            raise KeyboardInterrupt

    @contextmanager
    def _handle_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # what is ignored, such as the end of the terminal under nohup, stays ignored
        signals = [number for number in (signal.SIGINT, *_ENDING_SIGNALS) if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._on_signal) for number in signals}
        before[_REPEAT_SIGNAL] = signal.signal(_REPEAT_SIGNAL, lambda number, frame: None)
        self._wakeup_pipe, write_fd = os.pipe()
        os.set_blocking(write_fd, False)
        previous_wakeup_fd = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(previous_wakeup_fd)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._wakeup_pipe)
            os.close(write_fd)

    def _repeat_signal(self) -> None:
        """See to it that a signal is heard that came just before the main thread began to wait for a key."""
        if (
            self._loop is not None
            and self._wakeup_pipe is not None
            and set(os.read(self._wakeup_pipe, 64)) != {_REPEAT_SIGNAL}
        ):
            main = threading.main_thread().ident
            assert main is not None
            self._loop.call_later(_REPEAT_SECONDS, signal.pthread_kill, main, _REPEAT_SIGNAL)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        # as soon as the end is told the chat may begin to learn, which this signal is not to stop
        running = self._scopes[-1:]
        if number == _HANG_UP:
            self._detach_terminal()
        if number != signal.SIGINT:
            # a terminal's end is told more than once, and hurries nobody; nor does the first word to end what ends
            is_repeated = number != _HANG_UP and bool(self.end_signal)
            ends_already = bool(self.end_signal) or self.is_closing
            self.end_signal = self.end_signal or number
            if ends_already and not is_repeated:
                return
        if self._is_reading:
            # a second signal must not tear off what the first one set going
            self._is_reading = False
            raise KeyboardInterrupt
        if self._loop is not None and running:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(running[0].cancel)

    def _detach_terminal(self) -> None:
        """Let what is still printed to a terminal that was closed go nowhere: writing to it would fail."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        while self._terminals:
            os.dup2(nowhere, self._terminals.pop())
        os.close(nowhere)


def _list_terminals() -> list[int]:
    return [number for number in range(3) if os.isatty(number)]


_MAX_LINE_CHARS = 100
_HIGH_SURROGATES = ("\ud800", "\udbff")
_ENDING_NOTES = {
    "length": "The reply ends here because it reached the model's limit of output.",
    "refused": "The model refused to go on.",
    "window": "The reply ends here because the model's window is full: /compact makes room.",
}


class TurnPrinter:
    """Prints one turn. Without `tools` only the reply is printed; `thinking` is shown where asked."""

    def __init__(self, *, tools: bool, thinking: bool) -> None:
        """Begin at the start of a line."""
        self._tools = tools
        self._thinking = thinking
        self._half_character = ""
        self._block_kind = ""
        self._has_text = False
        self._at_line_start = True

    def print_event(self, event: "TurnEvent") -> None:
        """Print what happened."""
        from ricordo.agent.contract import ToolFinished, ToolStarted
        from ricordo.models import TextDelta, ThinkingDelta

        match event:
            case TextDelta(text=text):
                self._write_piece("text", text)
                self._has_text = self._has_text or bool(text.strip())
            case ThinkingDelta(text=text) if self._thinking:
                self._write_piece("thinking", text)
            case ToolStarted(call=call) if self._tools:
                self._write_line(f"· {call.name}{_format_arguments(call)}")
            case ToolFinished(result=result) if self._tools:
                self._write_line(f"  {result.name or 'tool'}: {_format_outcome(result)}")

    def finish(self, result: "TurnResult | None") -> None:
        """Go to a new line; say what the stream did not, and why the reply ended where it did."""
        if result is not None and not self._has_text and result.message.text.strip():
            self._write_piece("text", result.message.text)
        elif result is not None and result.ending in {"max_iters", "limit"}:
            self._write_line(result.message.text)
        self._end_line()
        if result is not None and result.ending in _ENDING_NOTES:
            print_note(_ENDING_NOTES[result.ending])

    def _write_piece(self, kind: str, text: str) -> None:
        if self._block_kind not in {"", kind}:
            self._end_line()
        self._block_kind = kind
        text, self._half_character = self._half_character + text, ""
        if text and _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            # the other half of this character comes with the next piece
            text, self._half_character = text[:-1], text[-1]
        if text:
            decoded = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            self._write(dim(escape(decoded)) if kind == "thinking" else escape(decoded))
            self._at_line_start = decoded.endswith("\n")

    def _write_line(self, text: str) -> None:
        self._end_line()
        print_line(dim(escape(text)))

    def _end_line(self) -> None:
        if self._half_character:
            self._write(escape(self._half_character))
            self._half_character, self._at_line_start = "", False
        if not self._at_line_start:
            self._write("\n")
        self._block_kind, self._at_line_start = "", True

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _format_arguments(call: "ToolCall") -> str:
    arguments = " ".join(call.arguments.split())
    return (
        ""
        if arguments in {"", "{}"}
        else f" {arguments}"
        if len(arguments) <= _MAX_LINE_CHARS
        else f" {arguments[: _MAX_LINE_CHARS - 1]}…"
    )


def _format_outcome(result: "ToolResult") -> str:
    if not result.is_error:
        return "done"
    first = " ".join(result.text.split())
    return f"failed: {first if len(first) <= _MAX_LINE_CHARS else f'{first[: _MAX_LINE_CHARS - 1]}…'}"
