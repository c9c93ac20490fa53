"""Settings of the inbox."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from ricordo.errors import InvalidSetting

__all__ = ["InboxConfig"]


@dataclass(frozen=True, kw_only=True)
class InboxConfig:
    """When work that was asked for is done; the defaults are DeerFlow's debounce with a bound that it lacks.

    What a turn said waits until nothing was said in its session for `debounce_seconds`, and never longer than
    `max_wait_seconds` after it was first asked for; 0 is at once, one extraction for each turn. `workers` is how many
    jobs one process does at a time, at least 1.
    """

    debounce_seconds: float = 30.0
    max_wait_seconds: float = 120.0
    workers: int = 2

    def __post_init__(self) -> None:
        """Raise InvalidSetting for a time below 0, a bound below the pause, and no worker."""
        if not self.debounce_seconds >= 0:
            raise InvalidSetting(f"debounce_seconds is a number of at least 0, not {self.debounce_seconds}.")
        if not self.max_wait_seconds >= self.debounce_seconds:
            raise InvalidSetting(
                f"max_wait_seconds is a number of at least debounce_seconds ({self.debounce_seconds:g}), "
                f"not {self.max_wait_seconds}."
            )
        if self.workers < 1:
            raise InvalidSetting(f"workers is a whole number of at least 1, not {self.workers}.")

    def due_times(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Return from when on, and by when, what is asked for `now` is to be done; None for both is at once."""
        if not self.debounce_seconds:
            return None, None
        return now + timedelta(seconds=self.debounce_seconds), now + timedelta(seconds=self.max_wait_seconds)
