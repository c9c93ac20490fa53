"""What an index makes to be quicker, in a thread of its own: nothing waits for it, and without it all is found too.

Invariant: one thing is made at a time, and what is closed makes no more.
"""

import threading
from collections.abc import Callable

import anyio.to_thread

__all__ = ["BackgroundBuild"]


class BackgroundBuild:
    """Makes one thing at a time beside everything else. It must not be used by two tasks at once."""

    def __init__(self) -> None:
        """Begin with nothing to do."""
        self._stop_event = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether something is being made."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, make: Callable[[Callable[[], bool]], None]) -> None:
        """Make something, unless something is being made; `make` is given what tells whether it shall end early."""
        if self.is_running or self._stop_event.is_set():
            return
        # a daemon, as no process shall wait at its end for what only makes it quicker
        self._thread = threading.Thread(target=make, args=(self._stop_event.is_set,), name="ricordo-index", daemon=True)
        self._thread.start()

    async def wait(self) -> None:
        """Wait until nothing is being made."""
        if self._thread is not None:
            await anyio.to_thread.run_sync(self._thread.join)

    async def close(self) -> None:
        """End what is being made, and make nothing more."""
        self._stop_event.set()
        await self.wait()
