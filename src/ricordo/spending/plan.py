"""What was spent, whether one more request fits the limit, and how long its reply may get. Pure.

Invariant: what was spent and what is reserved, with what a request is allowed, is at most the limit of the day.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from ricordo.spending.config import SpendingConfig

__all__ = ["MIN_REPLY_ALLOWANCE", "SpendingTotal", "max_reply_tokens", "max_prompt_tokens", "find_refusal"]

MIN_REPLY_ALLOWANCE = 500
"""A reply that may take fewer tokens than these is not asked for, unless none may take more."""

_MARGIN = 1.25


@dataclass(frozen=True, kw_only=True)
class SpendingTotal:
    """Requests, their tokens (`input` includes what came from the provider's cache) and their cost in US dollars.

    `failed` are those of the `requests` that gave no answer, `unpriced` those whose price is not known. `over` are the
    tokens that replies took beyond what they were allowed. `reserved` are the most tokens of requests that have not
    ended: that are being made, or whose process died.
    """

    requests: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)
    unpriced: int = 0
    over: int = 0
    reserved: int = 0

    def __add__(self, other: "SpendingTotal") -> "SpendingTotal":
        """Return both together."""
        return SpendingTotal(
            requests=self.requests + other.requests,
            failed=self.failed + other.failed,
            input=self.input + other.input,
            output=self.output + other.output,
            cost=self.cost + other.cost,
            unpriced=self.unpriced + other.unpriced,
            over=self.over + other.over,
            reserved=self.reserved + other.reserved,
        )

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input + self.output


def max_prompt_tokens(estimate: int) -> int:
    """Return how many tokens a prompt of about so many takes at most, as providers count with tokenizers of theirs."""
    return math.ceil(estimate * _MARGIN)


def find_refusal(spent: SpendingTotal, config: SpendingConfig, *, tokens: int = 0) -> str:
    """Return why a request of about so many `tokens` is not to be made any more; empty when it may be.

    1 asks for the smallest there is: whether anything is left.
    """
    if config.daily_cost is not None and spent.cost >= Decimal(str(config.daily_cost)):
        return f"{spent.cost:.2f} of {config.daily_cost:.2f} dollars are spent"
    if config.daily_tokens is not None and spent.tokens + spent.reserved + tokens > config.daily_tokens:
        held = f" and {spent.reserved:,} reserved" if spent.reserved else ""
        used = f"{spent.tokens:,} of {config.daily_tokens:,} tokens are used{held}"
        return f"{used}, and this would take about {tokens:,}" if tokens > 1 else used
    return ""


def max_reply_tokens(spent: SpendingTotal, config: SpendingConfig, *, prompt: int) -> int:
    """Return how many tokens the reply to a prompt of at most `prompt` tokens may take; 0 when it is not to be asked.

    Where less is left than a whole reply may take, it is allowed what is left, unless that is too little to say
    anything.
    """
    least = min(MIN_REPLY_ALLOWANCE, config.reply_tokens)
    if find_refusal(spent, config, tokens=prompt + least):
        return 0
    if config.daily_tokens is None:
        return config.reply_tokens
    return min(config.reply_tokens, config.daily_tokens - spent.tokens - spent.reserved - prompt)
