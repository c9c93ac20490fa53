"""Turns at work: which turns of this process run in a root, so that what can wait does not run beside them.

Invariant: a turn waits for nothing here. Who waits is let go when no turn runs; inside of a turn nobody waits for it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

import anyio

__all__ = ["TurnsAtWork", "turns_in"]

_LOOK = 0.02
_WITHIN: ContextVar[bool] = ContextVar("within_a_turn", default=False)
_KNOWN: "WeakValueDictionary[str, TurnsAtWork]" = WeakValueDictionary()


class TurnsAtWork:
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
        within = _WITHIN.set(True)
        with self._lock:
            self._running += 1
            self._sessions.add(session)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._last = time.monotonic()
            _WITHIN.reset(within)

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

    async def idle(self) -> None:
        """Return when no turn runs; at once within one, which would wait for itself."""
        # turns of other threads could not set an event of this loop
        while self._running and not _WITHIN.get():  # noqa: ASYNC110
            await anyio.sleep(_LOOK)


def turns_in(folder: str) -> TurnsAtWork:
    """Return the turns of the root in `folder`, the same for all who ask while somebody holds them."""
    found = _KNOWN.get(folder)
    if found is None:
        found = _KNOWN[folder] = TurnsAtWork()
    return found
