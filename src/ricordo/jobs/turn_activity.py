"""Turn activity: which turns of this process run in a root, so that background work yields to them.

Invariant: a turn waits for nothing here. Whoever waits continues when no turn runs; inside of a turn nobody waits for
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
"""Seconds between two looks whether a turn still runs."""
_COOLDOWN_SECONDS = 0.05
"""Seconds after its end for which a turn is still being told."""
_SLICE_SECONDS = 0.002
"""Seconds of work between two looks whether one runs."""
_MAX_WAIT_SECONDS = 30.0
"""Seconds for which a run stands still in all."""
_BUSY_SHARE = 0.05
"""The part of the time that it works after that while turns run."""
_WITHIN_TURN: ContextVar[bool] = ContextVar("within_a_turn", default=False)
_ACTIVITIES: "WeakValueDictionary[str, TurnActivity]" = WeakValueDictionary()


class TurnActivity:
    """The turns of one root in this process, whatever thread or event loop they run in."""

    def __init__(self) -> None:
        """Begin without any."""
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
        """How long no turn has run; without end where none ever did."""
        with self._lock:
            if self._running:
                return 0.0
            return float("inf") if self._last is None else time.monotonic() - self._last

    @property
    def is_active(self) -> bool:
        """Whether a turn runs, or ended just now and is still being told; False within one, which waits for nobody."""
        return self.quiet_seconds < _COOLDOWN_SECONDS and not _WITHIN_TURN.get()

    def yield_policy(self, *, seconds: float = _MAX_WAIT_SECONDS, share: float = _BUSY_SHARE) -> "TurnYieldPolicy":
        """Return how one run gives way to these turns: for `seconds` in all, after that but for a `share` of the time.

        So a chat that never rests holds a run up, and does not keep it from its end.
        """
        return TurnYieldPolicy(self, seconds=seconds, share=share)


class TurnYieldPolicy:
    """How one run gives way to turns: it waits while one runs, as long as it has patience."""

    def __init__(self, turns: TurnActivity, *, seconds: float, share: float) -> None:
        """Have stood for nothing yet."""
        self._turns = turns
        self._left = seconds
        self._share = share
        self._since = time.monotonic()

    async def pause(self) -> None:
        """Return when no turn runs, or the patience is over."""
        # turns of other threads could not set an event of this loop
        while self._turns.is_active and self._left > 0:
            began = time.monotonic()
            await anyio.sleep(_POLL_SECONDS)
            self._left -= time.monotonic() - began
        self._since = time.monotonic()

    def yield_now(self) -> None:
        """Stand still while a turn runs; after the patience is over, work for a share of the time.

        It looks once in two milliseconds, and ends the work where nobody waits for it any more. What can't be ended,
        such as a write in a thread of its own, goes on at once.
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
    """Return the turns of the root in `folder`, the same for all who ask while somebody holds them."""
    found = _ACTIVITIES.get(folder)
    if found is None:
        found = _ACTIVITIES[folder] = TurnActivity()
    return found
