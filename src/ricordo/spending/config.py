"""Settings of the daily limit."""

from dataclasses import dataclass

from ricordo.errors import InvalidSetting

__all__ = ["SpendingConfig"]


@dataclass(frozen=True, kw_only=True)
class SpendingConfig:
    """How much the requests of memory may use in one day of the user's calendar, all processes together.

    Each user of a root has this limit, and so has what the root shares.

    `daily_tokens` counts input and output, `daily_cost` is in US dollars and counts requests whose price is known; None
    is no limit. `reply_tokens` is how long one reply may get, thinking included; less where less is left of the day.
    Turns are no requests of memory: they are never counted or refused.
    """

    daily_tokens: int | None = 2_000_000
    daily_cost: float | None = 5.0
    reply_tokens: int = 8_000

    def __post_init__(self) -> None:
        """Raise InvalidSetting for a limit below 0."""
        for name in ("daily_tokens", "daily_cost"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InvalidSetting(f"{name} is a number of at least 0, or none, not {value}.")
        if self.reply_tokens <= 0:
            raise InvalidSetting(f"reply_tokens is a number above 0, not {self.reply_tokens}.")
