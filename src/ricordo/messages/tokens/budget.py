"""Token limits: an absolute number or a share of a model's window, deliberately as different types."""

from dataclasses import dataclass
from typing import TypeAlias

from ricordo.errors import InvalidSetting

__all__ = ["Budget", "Share", "Tokens", "resolve_budget"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """A number of tokens, 0 or more."""

    count: int

    def __post_init__(self) -> None:
        """Raises: InvalidSetting unless the count is a whole number of at least 0."""
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise InvalidSetting(f"Tokens takes a whole number from 0 up, not {self.count!r}; a part is Share(0.8).")


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the window, above 0 and up to 1."""

    part: float

    def __post_init__(self) -> None:
        """Raises: InvalidSetting unless the share is above 0 and at most 1."""
        if isinstance(self.part, bool) or not isinstance(self.part, int | float) or not 0 < self.part <= 1:
            raise InvalidSetting(
                f"Share takes a number above 0 and up to 1, not {self.part!r}; a count is Tokens(8_000)."
            )


Budget: TypeAlias = Tokens | Share


def resolve_budget(budget: Budget, window: int) -> int:
    """Return `budget` in tokens for a model with a window of `window` tokens: at most the window, rounded down.

    Raises: InvalidSetting if the window has no tokens.
    """
    if window < 1:
        raise InvalidSetting(f"A model's window has at least one token, not {window}.")
    return min(budget.count, window) if isinstance(budget, Tokens) else int(window * budget.part)
