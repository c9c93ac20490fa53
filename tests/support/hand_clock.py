"""A clock that stands still until it is turned."""

from datetime import UTC, date, datetime, timedelta

__all__ = ["HandClock"]


class HandClock:
    """It stands at eight in the morning of a day in November 2026, unless told otherwise."""

    def __init__(self, time: datetime | None = None) -> None:
        self.time = time or datetime(2026, 11, 21, 8, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def today(self) -> date:
        return self.time.date()

    def turn(self, seconds: float = 0, **further: float) -> None:
        """Turn it by `seconds`, and by days, hours and minutes as `timedelta` takes them."""
        self.time += timedelta(seconds=seconds, **further)
