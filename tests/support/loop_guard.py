"""Fail a test in which the event loop had to wait for the disk, for a database, or for long work.

Two detectors, both on the thread whose loop is running:

* calls: an audit hook, and wrappers for the calls that have no audit event, note each blocking call made by a frame of
  the watched package. The walk up the stack ends where the loop called in, so what a test does itself, what a worker
  thread does, and what ran the loop from outside are not the loop's fault. Imports are the import system's.
* stalls: the processor time of each callback of an asyncio loop is measured. It is not the time of a clock, which a
  busy machine, a page read from a slow disk or a thread that holds the interpreter lock can stretch at will; and what
  the garbage collector takes, which grows with everything that the suite has loaded, is not the callback's work. A
  thread beside the loop looks who is at work in a callback that lasts: what a test does itself is not counted. The
  limit is stretched on a machine that is slower than a normal one, at the start or at that moment.
"""

import asyncio
import asyncio.events
import contextlib
import functools
import gc
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TypeAlias, TypeVar

from machine_speed import slowness

__all__ = ["STALL_SECONDS", "LeavesLoopFree", "LoopGuard"]

STALL_SECONDS = 0.25
"""Seconds of a normal machine's processor time for which the package may keep the event loop from everything else."""

LeavesLoopFree: TypeAlias = Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]
"""Does something and fails the test if the event loop was blocked meanwhile for more than 50 ms."""

_LOOK_SECONDS = 0.02

_P = ParamSpec("_P")
_R = TypeVar("_R")

_BLOCKING_EVENTS = frozenset(
    {
        "fcntl.flock",
        "fcntl.lockf",
        "open",
        "os.link",
        "os.listdir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.system",
        "os.truncate",
        "shutil.copyfile",
        "shutil.rmtree",
        "sqlite3.connect",
        "subprocess.Popen",
    }
)
_UNAUDITED_CALLS = ((os, "fsync"), (os, "fdatasync"), (time, "sleep"))
_TESTS = str(Path(__file__).resolve().parents[1]) + os.sep
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LOOP_FILES = frozenset({"base_events.py", "events.py", "runners.py"})
_OUTSIDE_FILES = ("<frozen importlib", "linecache.py", "traceback.py", "warnings.py")


@dataclass(eq=False)
class _Callback:
    """A callback that runs since `start`; of so many looks at it, `ours` found the package at work, at `places`."""

    start: float
    looks: int = 0
    ours: int = 0
    places: set[str] = field(default_factory=set)


class LoopGuard:
    """Collect blocking calls and stalls of the event loop while it is armed.

    One guard serves the process: audit hooks cannot be removed, so `install` is called once and `watch` arms it.
    """

    def __init__(
        self, *, package: Path, stall_seconds: float = STALL_SECONDS, slowness: Callable[[], float] = slowness
    ) -> None:
        """Watch frames whose file lies under `package`, and callbacks that work longer than `stall_seconds` seconds.

        The seconds are those of a normal machine; `slowness` measures how many times as long this one takes.
        """
        self._prefix = str(package) + os.sep
        self._nominal = stall_seconds
        self._slowness = slowness
        self._slow = 1.0
        self._stall_seconds = stall_seconds
        self._running: dict[int, _Callback] = {}
        self._findings: list[str] | None = None
        self._collected = 0.0
        self._collecting: float | None = None

    def install(self) -> None:
        """Hook into the interpreter and measure the machine; without effect until `watch`."""
        self._slow = self._slowness()
        self._limit_to(self._nominal)
        sys.addaudithook(self._on_audit)
        for owner, name in _UNAUDITED_CALLS:
            if hasattr(owner, name):
                setattr(owner, name, self._noted(getattr(owner, name), name=f"{owner.__name__}.{name}"))
        gc.callbacks.append(self._on_collection)
        threading.Thread(target=self._look_on, name="loop guard", daemon=True).start()
        handle: Any = asyncio.events.Handle
        handle._run = self._timed(handle._run)

    @contextlib.contextmanager
    def watch(self, *, stall_seconds: float | None = None) -> Iterator[list[str]]:
        """Collect findings into the list it yields, until the block ends; meanwhile stalls have this limit, if any.

        Watching outside of it is held until then.
        """
        previous, self._findings = self._findings, []
        nominal = self._nominal
        self._limit_to(nominal if stall_seconds is None else stall_seconds)
        try:
            yield self._findings
        finally:
            self._findings = previous
            self._limit_to(nominal)

    def _limit_to(self, seconds: float) -> None:
        self._nominal, self._stall_seconds = seconds, seconds * self._slow

    def _on_audit(self, event: str, args: tuple[object, ...]) -> None:
        if event in _BLOCKING_EVENTS and self._findings is not None and _loop_is_running():
            self._note(event, str(args[0]) if args else "")

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        del info
        if phase == "start":
            # reading the processor's time asks the system, and most of what is collected is no callback's
            self._collecting = time.thread_time() if self._running else None
        elif self._collecting is not None:
            self._collected += max(0.0, time.thread_time() - self._collecting)

    def _noted(self, call: Callable[_P, _R], *, name: str) -> Callable[_P, _R]:
        @functools.wraps(call)
        def noted(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if self._findings is not None and _loop_is_running():
                self._note(name, "")
            return call(*args, **kwargs)

        return noted

    def _note(self, name: str, subject: str) -> None:
        caller = _caller_on_the_loop(sys._getframe(2), self._prefix)
        if caller is not None and self._findings is not None:
            where = f"{caller.f_code.co_filename.removeprefix(self._prefix)}:{caller.f_lineno}"
            self._findings.append(f"{name}({subject}) on the event loop, from {where} in {caller.f_code.co_name}")

    def _note_stall(self, lasted: float, callback: _Callback, handle: object) -> None:
        if self._findings is not None:
            where = ", ".join(sorted(callback.places))
            self._findings.append(f"the event loop worked for {lasted:.2f} s at {where} in {handle!r}")

    def _look_on(self) -> None:
        """Look again and again who is at work in callbacks that last."""
        pause = threading.Event()
        while True:
            pause.wait(_LOOK_SECONDS)
            if self._findings is None:
                continue
            for thread, callback in list(self._running.items()):
                frame = sys._current_frames().get(thread)
                if time.perf_counter() - callback.start < _LOOK_SECONDS or self._running.get(thread) is not callback:
                    continue
                callback.looks += 1
                place = self._place_of_work(frame)
                callback.ours += bool(place)
                callback.places.update([place] if place else [])

    def _place_of_work(self, frame: FrameType | None) -> str:
        """Return where the package is at work for the loop; empty where a test is, or calls it to work at once."""
        place, entered_as_coroutine, called_by_test = "", True, False
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._prefix):
                if called_by_test:
                    # a test's own function, which the package calls
                    return ""
                place = place or f"{file.removeprefix(self._prefix)}:{frame.f_lineno} in {frame.f_code.co_name}"
                entered_as_coroutine = bool(frame.f_code.co_flags & _ASYNC)
            elif file.startswith(_TESTS):
                if not place or not entered_as_coroutine:
                    return ""
                called_by_test = True
            elif _is_of_loop(file):
                break
            frame = frame.f_back
        return place

    def _timed(self, run: Callable[[Any], None]) -> Callable[[Any], None]:
        def timed(handle: Any) -> None:
            if self._findings is None:
                return run(handle)
            thread, outer = threading.get_ident(), None
            collected, start, shown = self._collected, time.thread_time(), time.perf_counter()
            callback = _Callback(shown)
            outer, self._running[thread] = self._running.get(thread), callback
            try:
                run(handle)
            finally:
                if outer is None:
                    del self._running[thread]
                else:
                    self._running[thread] = outer
            # what took no time on the clock did not work for long, and the clock is cheap to read
            if callback.ours and time.perf_counter() - shown > self._stall_seconds:
                lasted = time.thread_time() - start - (self._collected - collected)
                lasted *= callback.ours / callback.looks
                # the machine may have become busier since the start
                if lasted > self._stall_seconds and lasted > self._nominal * self._slowness():
                    self._note_stall(lasted, callback, handle)
            return None

        return timed


def _loop_is_running() -> bool:
    if asyncio._get_running_loop() is not None:
        return True
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_run())


def _is_of_loop(file: str) -> bool:
    return (os.path.basename(file) in _LOOP_FILES and "asyncio" in file) or file.endswith("trio/_core/_run.py")


def _caller_on_the_loop(frame: FrameType | None, prefix: str) -> FrameType | None:
    """Return the nearest frame of the package between the call and the loop, if the call is the package's own."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(prefix):
            return frame
        if file.startswith(_OUTSIDE_FILES[0]) or file.endswith(_OUTSIDE_FILES[1:]):
            return None
        if _is_of_loop(file):
            return None
        frame = frame.f_back
    return None
