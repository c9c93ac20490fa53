"""The gate at which replies wait until a test lets them go."""

import threading

__all__ = ["ReplyGate"]


class ReplyGate:
    """Holds threads back. Opening it lets go those that stand at it now; closing lets go everything, for good."""

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self._condition = threading.Condition()
        self._open_count = 0
        self._is_closed = False
        self._held_count = 0

    @property
    def held_count(self) -> int:
        """How many stand at the gate."""
        with self._condition:
            return self._held_count

    def take_ticket(self) -> int:
        """Stand at the gate, and return the ticket to wait with; `open` lets go whoever has arrived."""
        with self._condition:
            self._held_count += 1
            self._condition.notify_all()
            return self._open_count

    def wait_for_held(self, count: int, timeout: float) -> bool:
        """Block until `count` stand at the gate, at most `timeout` seconds; False when they have not come."""
        with self._condition:
            return self._condition.wait_for(lambda: self._held_count >= count, timeout)

    def wait(self, ticket: int) -> bool:
        """Block until the gate opens; False when it was closed instead."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_closed or self._open_count > ticket)
            self._held_count -= 1
            return not self._is_closed

    def open(self) -> None:
        """Let go everybody who has arrived."""
        with self._condition:
            self._open_count += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Let go everybody, now and later, with the answer False."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
