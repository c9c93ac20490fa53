"""The gate at which replies wait until a test lets them go."""

import threading

__all__ = ["Gate"]


class Gate:
    """Holds threads back. Opening it lets go those that stand at it now; closing lets go everything, for good."""

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self._condition = threading.Condition()
        self._opened = 0
        self._closed = False
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many stand at the gate."""
        with self._condition:
            return self._waiting

    def arrive(self) -> int:
        """Stand at the gate, and return the ticket to wait with; `open` lets go whoever has arrived."""
        with self._condition:
            self._waiting += 1
            self._condition.notify_all()
            return self._opened

    def until_waiting(self, count: int, timeout: float) -> bool:
        """Block until `count` stand at the gate, at most `timeout` seconds; False when they have not come."""
        with self._condition:
            return self._condition.wait_for(lambda: self._waiting >= count, timeout)

    def wait(self, ticket: int) -> bool:
        """Block until the gate opens; False when it was closed instead."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._opened > ticket)
            self._waiting -= 1
            return not self._closed

    def open(self) -> None:
        """Let go everybody who has arrived."""
        with self._condition:
            self._opened += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Let go everybody, now and later, with the answer False."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
