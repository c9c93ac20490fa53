"""Fitting hits into a budget of tokens: the best that fit, none cut. Pure.

Invariant: what is taken keeps its order, and nothing that would still fit is passed over for something worse.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from ricordo.tokens import Tokens, estimate_text
from ricordo.workspace.entry import Entry

__all__ = ["fit_budget"]


class _HasEntry(Protocol):
    @property
    def entry(self) -> Entry: ...


_Row = TypeVar("_Row", bound=_HasEntry)


def fit_budget(rows: Iterable[_Row], limit: int, budget: Tokens | None) -> tuple[list[_Row], list[_Row]]:
    """Return the first `limit` rows whose contents fit into `budget` together, and those passed over as too long."""
    chosen: list[_Row] = []
    over: list[_Row] = []
    room = budget.count if budget else 0
    for row in rows:
        if len(chosen) == limit:
            break
        cost = estimate_text(row.entry.content) if budget else 0
        (chosen if cost <= room else over).append(row)
        room -= cost if cost <= room else 0
    return chosen, over
