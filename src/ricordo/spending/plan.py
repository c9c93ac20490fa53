"""What was spent, and whether one more request fits the limit. Pure."""

from dataclasses import dataclass
from decimal import Decimal

from ricordo.spending.config import SpendingConfig

__all__ = ["Spent", "refusal"]


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Requests, their tokens (`input` includes what came from the provider's cache) and their cost in US dollars.

    `failed` are those of the `requests` that gave no answer, `unpriced` those whose price is not known.
    """

    requests: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        """Return both together."""
        return Spent(
            requests=self.requests + other.requests,
            failed=self.failed + other.failed,
            input=self.input + other.input,
            output=self.output + other.output,
            cost=self.cost + other.cost,
            unpriced=self.unpriced + other.unpriced,
        )

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input + self.output


def refusal(spent: Spent, config: SpendingConfig, *, tokens: int = 0) -> str:
    """Return why a request of about so many `tokens` is not to be made any more; empty when it may be."""
    if config.daily_cost is not None and spent.cost >= Decimal(str(config.daily_cost)):
        return f"{spent.cost:.2f} of {config.daily_cost:.2f} dollars are spent"
    if config.daily_tokens is not None and spent.tokens + tokens > config.daily_tokens:
        return f"{spent.tokens:,} of {config.daily_tokens:,} tokens are used, and this would take about {tokens:,}"
    return ""
