"""How near the rows of a corpus are to a query in meaning: cosines of vectors, alone and with their neighbours.

All vectors are looked at, in blocks that are small enough for one thread and one pass over memory. What stands beside a
row is told by its document, so nothing is embedded twice for it: the nearness of a row with its neighbours is the mean
of theirs and its own.

Invariant: a row without a vector is told as such, and one that was removed is never near.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ricordo.index.corpus import ENTRY, MESSAGE, Corpus
from ricordo.index.postings import Array
from ricordo.index.vector_cache import Vectors

__all__ = ["Lacking", "Near", "Sense", "Standing", "cosines"]

_BLOCK = 2**18
"""Numbers of a matrix that are multiplied at once: more of them are shared between threads, which costs more."""
_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class Near:
    """For each row of a corpus how near it is, alone and with its neighbours, in 0..1, and whether that is known."""

    own: Array
    context: Array
    known: Array

    @property
    def both(self) -> Array:
        """How near each row is."""
        mean: Array = (self.own + self.context) / 2
        return mean


@dataclass(frozen=True, kw_only=True)
class Lacking:
    """Texts without a vector, at most so many as were asked for, by meaning; how many rows lack one in all; and the
    rows of the matrix that no row of the corpus needs."""

    texts: Mapping[int, str]
    count: int
    unused: Array


class Standing:
    """Where the rows of one corpus have their vectors, and what stands before and behind each; -1 is nowhere."""

    def __init__(self) -> None:
        """Begin with no corpus."""
        self.corpus: Corpus | None = None
        self._vectors = Vectors(-1, np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
        self._at: Array = np.zeros(0, dtype=np.int32)
        self._beside: Array = np.zeros((2, 0), dtype=np.int32)

    def follow(self, corpus: Corpus, vectors: Vectors) -> tuple[Array, Array]:
        """Return for each row of the corpus the row of its vector, and those before and behind it."""
        anew = corpus is not self.corpus
        if anew:
            self._at = np.zeros(0, dtype=np.int32)
            self._beside = np.zeros((2, 0), dtype=np.int32)
        if vectors.generation != self._vectors.generation:
            self._at = np.zeros(0, dtype=np.int32)
        self._find(corpus, vectors)
        if len(self._beside[0]) < corpus.count:
            more = np.full((2, corpus.count - len(self._beside[0])), -1, dtype=np.int32)
            self._beside = np.concatenate((self._beside, more), axis=1)
        touched, corpus.touched = (None if anew else corpus.touched), set()
        if touched is None or touched:
            self._link(corpus, touched)
        self.corpus, self._vectors = corpus, vectors
        return self._at, self._beside

    def _find(self, corpus: Corpus, vectors: Vectors) -> None:
        """Look up the rows that have no vector yet, those of them that were not looked up in these very vectors."""
        before = len(self._at)
        fresh = np.arange(before, corpus.count)
        self._at = np.concatenate((self._at, np.full(len(fresh), -1, dtype=np.int32)))
        if len(vectors.meanings) != len(self._vectors.meanings) or vectors.generation != self._vectors.generation:
            fresh = np.flatnonzero(self._at < 0)
        if len(fresh):
            self._at[fresh] = vectors.places(corpus["meaning"][fresh])

    def _link(self, corpus: Corpus, touched: Collection[int] | None) -> None:
        """Find the neighbours of the rows of these documents, or of all: as `Chunk.before` and `after` have them."""
        wanted = corpus["live"]
        if touched is not None:
            wanted = wanted & np.isin(corpus["document"], list(touched))
        rows = np.flatnonzero(wanted)
        line, document = corpus["line"][rows], corpus["document"][rows]
        order = np.lexsort((corpus["part"][rows], line, document))
        rows, line, document = rows[order], line[order], document[order]
        shape = corpus["shape"][rows]
        self._beside[:, rows] = -1
        if not len(rows):
            return
        # the pieces of one message stand in one line, and have the same neighbours
        same = (document[1:] == document[:-1]) & (line[1:] == line[:-1]) & (shape[1:] & MESSAGE > 0)
        begins = np.concatenate(([True], ~same))
        starts = np.flatnonzero(begins)
        group = np.cumsum(begins) - 1
        before = starts[group] - 1
        after = np.append(starts, len(rows))[group + 1]
        for side, other in enumerate((before, after)):
            there = (other >= 0) & (other < len(rows))
            there[there] &= document[other[there]] == document[there]
            there &= shape & ENTRY == 0
            there[there] &= shape[other[there]] & ENTRY == 0
            self._beside[side][rows[there]] = rows[other[there]]


@dataclass(frozen=True, kw_only=True)
class Sense:
    """A query's meaning for one search: its vector, or what makes it of the query's words and their weights.

    Cosines up to `least` say nothing, those from `most` on everything that can be said.
    """

    standing: Standing
    vectors: Vectors
    vector: NDArray[np.float32] | None = None
    weighing: Callable[[Mapping[str, float]], NDArray[np.float32] | None] | None = None
    least: float = 0.0
    most: float = 1.0

    def near(self, corpus: Corpus, weights: Mapping[str, float]) -> Near | None:
        """Return how near every row is; None without a vector of the query in the length of the others."""
        vector = self.weighing(weights) if self.weighing else self.vector
        if vector is None or len(vector) != self.vectors.dimension:
            return None
        at, beside = self.standing.follow(corpus, self.vectors)
        by_vector = np.append(cosines(self.vectors.rows, vector), np.float32(0))
        known = at >= 0
        own = by_vector[at]
        # one more row at the end, for what stands nowhere
        row_known, row_own = np.append(known, False), np.append(own, np.float32(0))
        count = known + row_known[beside[0]] + row_known[beside[1]].astype(np.int8)
        context = (own + row_own[beside[0]] + row_own[beside[1]]) / np.maximum(count, 1)
        return Near(own=self._scaled(own), context=self._scaled(context), known=known)

    def lacking(self, corpus: Corpus, limit: int) -> tuple[list[int], int]:
        """Return the numbers of the newest rows without a vector, and how many there are."""
        at, _ = self.standing.follow(corpus, self.vectors)
        rows = np.flatnonzero((at < 0) & corpus["live"])
        return corpus["number"][rows[::-1][:limit]].tolist(), len(rows)

    def unused(self, corpus: Corpus) -> Array:
        """Return the rows of the matrix that no row of the corpus needs."""
        at, _ = self.standing.follow(corpus, self.vectors)
        needed = np.zeros(len(self.vectors.meanings), dtype=np.bool_)
        needed[at[(at >= 0) & corpus["live"]]] = True
        return np.flatnonzero(~needed)

    def _scaled(self, cosine: Array) -> Array:
        scaled: Array = np.clip((cosine - self.least) / (self.most - self.least), 0.0, 1.0)
        return scaled


def cosines(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, to six digits: where a row stands may change those behind."""
    found = np.empty(len(rows), dtype=np.float32)
    step = max(1, _BLOCK // max(len(vector), 1))
    for start in range(0, len(rows), step):
        np.dot(rows[start : start + step], vector, out=found[start : start + step])
    return np.round(found, _DIGITS, out=found)
