"""What one turn may take: a limit of tokens and one of cost, looked at after each reply. Pure."""

from dataclasses import dataclass
from decimal import Decimal

from ricordo.errors import InvalidSetting
from ricordo.messages import Usage

__all__ = ["TurnLimits"]


@dataclass(frozen=True, kw_only=True)
class TurnLimits:
    """How much one turn may take: `tokens`, input and output of all its requests, and `cost` in US dollars.

    None is no limit. A turn that has reached one makes no other request: its calls are answered with that, and it ends
    with a notice. A single request can exceed a limit, and where the price is not known `cost` limits nothing.
    """

    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        """Raise InvalidSetting for a limit that is not above 0."""
        for name in ("tokens", "cost"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidSetting(f"The {name} of a turn are a number above 0, or None, not {value!r}.")

    def describe_reached_limit(self, usage: Usage, cost: Decimal | None) -> str:
        """Say which limit a turn with this usage and cost has reached; empty for none."""
        spent = usage.input + usage.output
        if self.tokens is not None and spent >= self.tokens:
            return f"{spent:,} of {self.tokens:,} tokens"
        if self.cost is not None and cost is not None and cost >= Decimal(str(self.cost)):
            return f"{cost:.2f} of {self.cost:.2f} US dollars"
        return ""
