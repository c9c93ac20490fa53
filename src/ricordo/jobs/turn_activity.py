"""Turn activity: which turns of this process run in a root, so that background work yields to them.

Invariant: a turn never waits here. Background work continues when no turn runs; work inside a turn does not wait for
it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

import anyio
from anyio.from_thread import check_cancelled

__all__ = ["TurnActivity", "TurnYieldPolicy", "get_turn_activity"]


_POLL_SECONDS = 0.02
"""Seconds between two checks whether a turn still runs."""
_COOLDOWN_SECONDS = 0.05
"""Seconds after the end of a turn in which it still counts as active."""
_SLICE_SECONDS = 0.002
"""Seconds of work between two checks whether a turn runs."""
_MAX_WAIT_SECONDS = 30.0
"""Seconds that a run waits for turns in total."""
_BUSY_SHARE = 0.05
"""The share of the time that a run works after that while turns run."""
_WITHIN_TURN: ContextVar[bool] = ContextVar("within_a_turn", default=False)
_ACTIVITIES: "WeakValueDictionary[str, TurnActivity]" = WeakValueDictionary()


class TurnActivity:
    """The turns of one root in this process, in any thread or event loop."""

    def __init__(self) -> None:
        """Start without turns."""
        self._lock = threading.Lock()
        self._running = 0
        self._last: float | None = None
        self._sessions: set[str] = set()

    @contextmanager
    def turn(self, session: str) -> Iterator[None]:
        """Count a turn of `session` while the block runs."""
        within = _WITHIN_TURN.set(True)
        with self._lock:
            self._running += 1
            self._sessions.add(session)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._last = time.monotonic()
            _WITHIN_TURN.reset(within)

    @property
    def sessions(self) -> frozenset[str]:
        """The sessions in which a turn ran."""
        with self._lock:
            return frozenset(self._sessions)

    @property
    def quiet_seconds(self) -> float:
        """The seconds since the last turn ended; 0 while one runs, infinity if there was none."""
        with self._lock:
            if self._running:
                return 0.0
            return float("inf") if self._last is None else time.monotonic() - self._last

    @property
    def is_active(self) -> bool:
        """Whether a turn runs or ended just now; always False within a turn, which waits for nothing."""
        return self.quiet_seconds < _COOLDOWN_SECONDS and not _WITHIN_TURN.get()

    def yield_policy(self, *, seconds: float = _MAX_WAIT_SECONDS, share: float = _BUSY_SHARE) -> "TurnYieldPolicy":
        """Return the policy of one run: wait `seconds` in total, then work a `share` of the time while turns run.

        So continuous turns delay a run, but do not keep it from finishing.
        """
        return TurnYieldPolicy(self, seconds=seconds, share=share)


class TurnYieldPolicy:
    """Lets one run yield to turns: it waits while one is active, up to a total time."""

    def __init__(self, turns: TurnActivity, *, seconds: float, share: float) -> None:
        """Start with the full waiting time."""
        self._turns = turns
        self._left = seconds
        self._share = share
        self._since = time.monotonic()

    async def pause(self) -> None:
        """Wait until no turn is active, or the waiting time is used up."""
        # polling, as turns of other threads can't set an event of this loop
        while self._turns.is_active and self._left > 0:
            began = time.monotonic()
            await anyio.sleep(_POLL_SECONDS)
            self._left -= time.monotonic() - began
        self._since = time.monotonic()

    def yield_now(self) -> None:
        """Block while a turn is active, as long as the waiting time lasts.

        After that it blocks only for so long that the run still works its share of the time. It checks once in two
        milliseconds, and raises if the caller was cancelled. Outside of a worker thread of an event loop, such as for a
        write in its own thread, it returns at once.
        """
        now = time.monotonic()
        worked = now - self._since
        if worked < _SLICE_SECONDS:
            return
        try:
            check_cancelled()
        except RuntimeError:  # no worker thread of a loop: on a loop it would hold up the turn that it waits for
            return
        began = now
        longest = self._left if self._left > 0 else worked * (1 / self._share - 1)
        while self._turns.is_active and (still := longest - (now - began)) > 0:
            time.sleep(min(_POLL_SECONDS, still))
            check_cancelled()
            now = time.monotonic()
        self._left -= now - began
        self._since = now


def get_turn_activity(folder: str) -> TurnActivity:
    """Return the turns of the root in `folder`; all callers get the same object while one of them keeps it."""
    found = _ACTIVITIES.get(folder)
    if found is None:
        found = _ACTIVITIES[folder] = TurnActivity()
    return found
