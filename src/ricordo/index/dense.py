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
    """For each row of a corpus how near it is, alone and with its neighbours, and whether that is known, None for all.

    They are cosines. Those up to `least` say nothing, those from `most` on everything that can be said: `scaled` brings
    them to 0..1. Without a `context` each row stands alone.
    """

    own: Array
    context: "Array | None"
    known: "Array | None"
    least: float
    most: float

    def scaled(self, cosine: Array) -> Array:
        """Return how near cosines are, in 0..1."""
        scaled: Array = np.clip((cosine - self.least) / (self.most - self.least), 0.0, 1.0)
        return scaled

    def knows(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        return np.ones(len(rows), dtype=np.bool_) if self.known is None else self.known[rows]

    def sides(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours."""
        own = self.scaled(self.own[rows])
        return own, own if self.context is None else self.scaled(self.context[rows])

    def both(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        own, context = self.sides(rows)
        mean: Array = (own + context) / 2
        return mean

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are the `wanted` nearest, and whether there may be others."""
        if self.context is None:
            # what is scaled to the same is equally near, so cosines from `most` on are one
            near, nothing, most = self.own, self.least, self.most
        else:
            both = (self.scaled(self.own) + self.scaled(self.context)) / 2
            near, nothing, most = both if self.known is None else np.where(self.known, both, 0.0), 0.0, 1.0
        bound = nothing
        if len(near) > wanted:
            bound = min(float(np.partition(near, len(near) - wanted)[len(near) - wanted]), most)
        more = bound > nothing
        rows = np.flatnonzero(near >= bound if more else near > nothing)
        if self.known is not None and self.context is None:
            rows = rows[self.known[rows]]
        return rows, more


@dataclass(frozen=True, kw_only=True)
class Lacking:
    """Texts without a vector, at most so many as were asked for, by meaning; how many rows lack one in all; and the
    rows of the matrix that no row of the corpus needs."""

    texts: Mapping[int, str]
    count: int
    unused: Array


class Standing:
    """Where the rows of one corpus have their vectors, and what stands before and behind each; -1 is nowhere.

    `at` and `beside` tell it by row. `is_straight` tells that each row has the vector of its place, `is_whole` that
    each has one, and `is_alone` that no row has another one beside it.
    """

    def __init__(self) -> None:
        """Begin with no corpus."""
        self.corpus: Corpus | None = None
        self._vectors = Vectors(-1, np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
        self.at: Array = np.zeros(0, dtype=np.int32)
        self.beside: Array = np.zeros((2, 0), dtype=np.int32)
        self.is_straight = self.is_whole = self.is_alone = False

    def follow(self, corpus: Corpus, vectors: Vectors) -> "Standing":
        """Find the vectors and the neighbours of the rows of the corpus, as far as anything has changed."""
        anew = corpus is not self.corpus
        if not anew and vectors is self._vectors and not corpus.touched and len(self.at) == corpus.count:
            return self
        if anew:
            self.at = np.zeros(0, dtype=np.int32)
            self.beside = np.zeros((2, 0), dtype=np.int32)
        # a search may come with vectors from before those that were followed last
        if vectors.generation != self._vectors.generation or len(vectors.meanings) < len(self._vectors.meanings):
            self.at = np.zeros(0, dtype=np.int32)
        self._find(corpus, vectors)
        if len(self.beside[0]) < corpus.count:
            more = np.full((2, corpus.count - len(self.beside[0])), -1, dtype=np.int32)
            self.beside = np.concatenate((self.beside, more), axis=1)
        touched, corpus.touched = (None if anew else corpus.touched), set()
        if touched is None or touched:
            self._link(corpus, touched)
        self.corpus, self._vectors = corpus, vectors
        self.is_straight = bool(np.array_equal(self.at, np.arange(len(vectors.meanings))))
        self.is_whole = self.is_straight or not np.any(self.at < 0)
        self.is_alone = bool(np.all(self.beside < 0))
        return self

    def _find(self, corpus: Corpus, vectors: Vectors) -> None:
        """Look up the rows that have no vector yet, those of them that were not looked up in these very vectors."""
        before = len(self.at)
        fresh = np.arange(before, corpus.count)
        self.at = np.concatenate((self.at, np.full(len(fresh), -1, dtype=np.int32)))
        if len(vectors.meanings) != len(self._vectors.meanings) or vectors.generation != self._vectors.generation:
            fresh = np.flatnonzero(self.at < 0)
        if len(fresh):
            self.at[fresh] = vectors.places(corpus["meaning"][fresh])

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
        self.beside[:, rows] = -1
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
            self.beside[side][rows[there]] = rows[other[there]]


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
        standing = self.standing.follow(corpus, self.vectors)
        found = cosines(self.vectors.rows, vector)
        # one more at the end, for what stands nowhere
        own = found if standing.is_straight else np.append(found, np.float32(0))[standing.at]
        known = None if standing.is_whole else standing.at >= 0
        context = None if standing.is_alone else _with_neighbours(own, standing.at >= 0, standing.beside)
        return Near(own=own, context=context, known=known, least=self.least, most=self.most)

    def lacking(self, corpus: Corpus, limit: int) -> tuple[list[int], int]:
        """Return the numbers of the newest rows without a vector, and how many there are."""
        at = self.standing.follow(corpus, self.vectors).at
        rows = np.flatnonzero((at < 0) & corpus["live"])
        return corpus["number"][rows[::-1][:limit]].tolist(), len(rows)

    def unused(self, corpus: Corpus) -> Array:
        """Return the rows of the matrix that no row of the corpus needs."""
        at = self.standing.follow(corpus, self.vectors).at
        needed = np.zeros(len(self.vectors.meanings), dtype=np.bool_)
        needed[at[(at >= 0) & corpus["live"]]] = True
        return np.flatnonzero(~needed)


def _with_neighbours(own: Array, known: Array, beside: Array) -> Array:
    """Return the cosines of rows with those before and behind them."""
    row_known, row_own = np.append(known, False), np.append(own, np.float32(0))
    # booleans added to each other would make one of two
    count = known.astype(np.int8) + row_known[beside[0]] + row_known[beside[1]]
    context: Array = (own + row_own[beside[0]] + row_own[beside[1]]) / np.maximum(count, 1)
    return context


def cosines(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, to six digits: where a row stands may change those behind."""
    found = np.empty(len(rows), dtype=np.float32)
    step = max(1, _BLOCK // max(len(vector), 1))
    for start in range(0, len(rows), step):
        np.dot(rows[start : start + step], vector, out=found[start : start + step])
    return np.round(found, _DIGITS, out=found)
