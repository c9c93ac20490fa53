"""Breaker: after some failures in a row nobody is asked for a while, so that a turn does not wait for what fails again.

Invariant: a success, or the time alone, lets the next try through; a cancellation is neither success nor failure.
"""

from ricordo.clock import Clock

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """Counts failures in a row."""

    def __init__(self, failures: int, seconds: float, clock: Clock) -> None:
        """Open after `failures` in a row, for `seconds` from the last one; 0 failures never open it."""
        self._max_failures = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._last_reason = ""
        self._last_failure_at = clock.now()

    def record_failure(self, reason: str) -> None:
        """Count a failure. One more while it is open, such as a trial, begins its time anew."""
        self._failures += 1
        self._last_reason = reason
        self._last_failure_at = self._clock.now()

    def record_success(self) -> None:
        """Forget all failures."""
        self._failures = 0

    def open_reason(self) -> str:
        """Say why nobody is to be asked now; empty when somebody may be, or when it is time for a trial."""
        if not self._max_failures or self._failures < self._max_failures:
            return ""
        # a clock that was set back says nothing of how long it took
        if not 0 <= (self._clock.now() - self._last_failure_at).total_seconds() < self._seconds:
            return ""
        return f"{self._failures} {'failure' if self._failures == 1 else 'failures'} in a row, the last: {self._last_reason}"
