"""What an approximate index says of the vectors that are there now: where they stand, and which it does not hold.

Invariant: what it leads to is there, and what it does not hold is looked at one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ricordo.index.front import cosines
from ricordo.index.graph import VectorGraph
from ricordo.index.postings import Array

__all__ = ["GraphLookup"]

_MAX_MISSING_SHARE, _MAX_REMOVED_SHARE = 1 / 8, 1 / 4


@dataclass(frozen=True, kw_only=True)
class GraphLookup:
    """A graph, in which row of a matrix each of its vectors is, and which rows before `row_count` it does not hold.

    A vector that is gone is in the row -1.
    """

    graph: VectorGraph
    rows: Array
    missing: Array
    row_count: int

    @classmethod
    def create(cls, graph: VectorGraph, meanings: Array, places: Callable[[Array], Array]) -> "GraphLookup":
        """Say it of the rows with these texts; `places` tells in which of them a text is."""
        missing = np.flatnonzero(~np.isin(meanings, graph.text_ids))
        return cls(graph=graph, rows=places(graph.text_ids), missing=missing, row_count=len(meanings))

    def is_stale(self, count: int) -> bool:
        """Tell whether it lacks, or leads in vain to, too much of so many vectors to be of use."""
        behind = len(self.missing) + count - self.row_count
        return behind > _MAX_MISSING_SHARE * count or int(np.sum(self.rows < 0)) > _MAX_REMOVED_SHARE * max(
            len(self.rows), 1
        )

    def nearest(self, rows: NDArray[np.float32], vector: NDArray[np.float32], count: int) -> Array:
        """Return in which rows about the `count` nearest are, and others that it can't tell of."""
        found = np.searchsorted(self.graph.text_ids, self.graph.nearest(vector, count))
        held = self.rows[found]
        later = _nearest_rows(rows[self.row_count :], vector, count) + self.row_count
        some = self.missing[_nearest_rows(rows[self.missing], vector, count)]
        nearest: Array = np.concatenate((held[held >= 0], some, later))
        return nearest


def _nearest_rows(rows: NDArray[np.float32], vector: NDArray[np.float32], count: int) -> Array:
    """Return the nearest of these rows."""
    if len(rows) <= count:
        return np.arange(len(rows))
    return np.argpartition(cosines(rows, vector), len(rows) - count)[len(rows) - count :]
