"""Where the rows of a corpus have their vectors, and how near they are to a query by them.

What stands beside a row is told by its document, so nothing is embedded twice for it: the nearness of a row with its
neighbours is the mean of theirs and its own.

Invariant: a row without a vector is told as such, and one that was removed is never near.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ricordo.index.corpus import ENTRY, MESSAGE, Corpus
from ricordo.index.front import cosines
from ricordo.index.nearness import Bounded, Guided, Near, Places, Reading, Scale
from ricordo.index.postings import Array
from ricordo.index.vector_cache import Vectors

__all__ = ["Lacking", "Near", "Sense", "Standing", "cosines"]


@dataclass(frozen=True, kw_only=True)
class Lacking:
    """Texts without a vector, at most so many as were asked for, by meaning; how many rows lack one in all; and the
    rows of the matrix that no row of the corpus needs."""

    texts: Mapping[int, str]
    count: int
    unused: Array


class Standing:
    """Where the rows of one corpus have their vectors, and what stands before and behind each: `places` tells it."""

    def __init__(self) -> None:
        """Begin with no corpus."""
        self.corpus: Corpus | None = None
        self._vectors = Vectors(-1, np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
        self.at: Array = np.zeros(0, dtype=np.int32)
        self.beside: Array = np.zeros((2, 0), dtype=np.int32)
        self.places = self._placed(vectors=0)

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
        self.places = self._placed(vectors=len(vectors.meanings))
        return self

    def _placed(self, *, vectors: int) -> Places:
        is_straight = bool(np.array_equal(self.at, np.arange(vectors)))
        return Places(
            at=self.at, beside=self.beside, is_straight=is_straight,
            is_whole=is_straight or not np.any(self.at < 0), is_alone=bool(np.all(self.beside < 0)),
        )  # fmt: skip

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
        places = self.standing.follow(corpus, self.vectors).places
        scale = Scale(least=self.least, most=self.most)
        reading = Reading(self.vectors.rows, vector, places, scale)
        if self.vectors.guide is not None:
            return Guided(reading, self.vectors.guide)
        if self.vectors.front is not None and places.is_alone:
            return Bounded(reading, self.vectors.front)
        return reading.whole

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
