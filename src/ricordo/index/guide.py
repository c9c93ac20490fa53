"""What an approximate index says of the vectors that are there now: where they stand, and which it does not hold.

Invariant: what it leads to is there, and what it does not hold is looked at one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ricordo.index.front import cosines
from ricordo.index.graph import Graph
from ricordo.index.postings import Array

__all__ = ["Guide"]

_MOST_BEHIND, _MOST_GONE = 1 / 8, 1 / 4


@dataclass(frozen=True, kw_only=True)
class Guide:
    """A graph, in which row of a matrix each of its vectors is, and which rows before `covered` it does not hold.

    A vector that is gone is in the row -1.
    """

    graph: Graph
    at: Array
    missing: Array
    covered: int

    @classmethod
    def of(cls, graph: Graph, meanings: Array, places: Callable[[Array], Array]) -> "Guide":
        """Say it of the rows with these texts; `places` tells in which of them a text is."""
        missing = np.flatnonzero(~np.isin(meanings, graph.meanings))
        return cls(graph=graph, at=places(graph.meanings), missing=missing, covered=len(meanings))

    def is_old(self, count: int) -> bool:
        """Tell whether it lacks, or leads in vain to, too much of so many vectors to be of use."""
        behind = len(self.missing) + count - self.covered
        return behind > _MOST_BEHIND * count or int(np.sum(self.at < 0)) > _MOST_GONE * max(len(self.at), 1)

    def nearest(self, rows: NDArray[np.float32], vector: NDArray[np.float32], count: int) -> Array:
        """Return in which rows about the `count` nearest are, and others that it can't tell of."""
        found = np.searchsorted(self.graph.meanings, self.graph.nearest(vector, count))
        held = self.at[found]
        later = _best(rows[self.covered :], vector, count) + self.covered
        some = self.missing[_best(rows[self.missing], vector, count)]
        nearest: Array = np.concatenate((held[held >= 0], some, later))
        return nearest


def _best(rows: NDArray[np.float32], vector: NDArray[np.float32], count: int) -> Array:
    """Return the nearest of these rows."""
    if len(rows) <= count:
        return np.arange(len(rows))
    return np.argpartition(cosines(rows, vector), len(rows) - count)[len(rows) - count :]
