"""How often and how long a failed call to a model is tried again."""

from dataclasses import dataclass

from ricordo.errors import InvalidSetting

__all__ = ["RetryConfig"]


@dataclass(frozen=True, kw_only=True)
class RetryConfig:
    """When to try again, in seconds.

    `attempts` counts the first try too: 1 never tries again. The pauses double from `first_delay` up to
    `longest_delay`; a provider that asks for a longer one is not asked again. All pauses of one call together take at
    most `total_delay`. `jitter`, from 0 to 1, is the part of a pause that chance may take away.
    """

    attempts: int = 3
    first_delay: float = 1.0
    longest_delay: float = 60.0
    total_delay: float = 120.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what can't be carried out."""
        if self.attempts < 1:
            raise InvalidSetting(f"RetryConfig.attempts is at least 1, not {self.attempts}.")
        if min(self.first_delay, self.longest_delay, self.total_delay) < 0:
            raise InvalidSetting("The delays of RetryConfig are seconds from 0 up.")
        if not 0 <= self.jitter <= 1:
            raise InvalidSetting(f"RetryConfig.jitter is from 0 to 1, not {self.jitter}.")
