"""Where the rows of a corpus have their vectors, and how near they are to a query by them.

What stands beside a row is told by its document, so nothing is embedded twice for it: the nearness of a row with its
neighbours is the mean of theirs and its own.

Invariant: a row without a vector is told as such, and one that was removed is never near.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ricordo.index.corpus import IS_ENTRY, IS_MESSAGE, Corpus
from ricordo.index.front import cosines
from ricordo.index.nearness import (
    BoundedSimilarities,
    ApproximateSimilarities,
    Similarities,
    RowVectors,
    VectorReader,
    CosineScale,
)
from ricordo.index.postings import Array
from ricordo.index.vector_cache import VectorSnapshot

__all__ = ["MissingVectors", "Similarities", "SemanticQuery", "VectorPlacement", "cosines"]


@dataclass(frozen=True, kw_only=True)
class MissingVectors:
    """Texts without a vector, at most so many as were asked for, by meaning; how many rows lack one in all; and the
    rows of the matrix that no row of the corpus needs."""

    texts: Mapping[int, str]
    count: int
    unused: Array


class VectorPlacement:
    """Where the rows of one corpus have their vectors, and what stands before and behind each: `places` tells it."""

    def __init__(self) -> None:
        """Begin with no corpus."""
        self.corpus: Corpus | None = None
        self._vectors = VectorSnapshot(-1, np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
        self.vector_rows: Array = np.zeros(0, dtype=np.int32)
        self.beside: Array = np.zeros((2, 0), dtype=np.int32)
        self.places = self._build_row_vectors(vectors=0)

    def update(self, corpus: Corpus, vectors: VectorSnapshot) -> "VectorPlacement":
        """Find the vectors and the neighbours of the rows of the corpus, as far as anything has changed."""
        anew = corpus is not self.corpus
        if (
            not anew
            and vectors is self._vectors
            and not corpus.changed_documents
            and len(self.vector_rows) == corpus.count
        ):
            return self
        if anew:
            self.vector_rows = np.zeros(0, dtype=np.int32)
            self.beside = np.zeros((2, 0), dtype=np.int32)
        # a search may come with vectors from before those that were followed last
        if vectors.generation != self._vectors.generation or len(vectors.text_ids) < len(self._vectors.text_ids):
            self.vector_rows = np.zeros(0, dtype=np.int32)
        self._find_vectors(corpus, vectors)
        if len(self.beside[0]) < corpus.count:
            more = np.full((2, corpus.count - len(self.beside[0])), -1, dtype=np.int32)
            self.beside = np.concatenate((self.beside, more), axis=1)
        touched, corpus.changed_documents = (None if anew else corpus.changed_documents), set()
        if touched is None or touched:
            self._link_neighbours(corpus, touched)
        self.corpus, self._vectors = corpus, vectors
        self.places = self._build_row_vectors(vectors=len(vectors.text_ids))
        return self

    def _build_row_vectors(self, *, vectors: int) -> RowVectors:
        is_straight = bool(np.array_equal(self.vector_rows, np.arange(vectors)))
        return RowVectors(
            vector_rows=self.vector_rows, beside=self.beside, is_straight=is_straight,
            is_whole=is_straight or not np.any(self.vector_rows < 0), is_alone=bool(np.all(self.beside < 0)),
        )  # fmt: skip

    def _find_vectors(self, corpus: Corpus, vectors: VectorSnapshot) -> None:
        """Look up the rows that have no vector yet, those of them that were not looked up in these very vectors."""
        before = len(self.vector_rows)
        fresh = np.arange(before, corpus.count)
        self.vector_rows = np.concatenate((self.vector_rows, np.full(len(fresh), -1, dtype=np.int32)))
        if len(vectors.text_ids) != len(self._vectors.text_ids) or vectors.generation != self._vectors.generation:
            fresh = np.flatnonzero(self.vector_rows < 0)
        if len(fresh):
            self.vector_rows[fresh] = vectors.places(corpus["meaning"][fresh])

    def _link_neighbours(self, corpus: Corpus, touched: Collection[int] | None) -> None:
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
        same = (document[1:] == document[:-1]) & (line[1:] == line[:-1]) & (shape[1:] & IS_MESSAGE > 0)
        begins = np.concatenate(([True], ~same))
        starts = np.flatnonzero(begins)
        group = np.cumsum(begins) - 1
        before = starts[group] - 1
        after = np.append(starts, len(rows))[group + 1]
        for side, other in enumerate((before, after)):
            there = (other >= 0) & (other < len(rows))
            there[there] &= document[other[there]] == document[there]
            there &= shape & IS_ENTRY == 0
            there[there] &= shape[other[there]] & IS_ENTRY == 0
            self.beside[side][rows[there]] = rows[other[there]]


@dataclass(frozen=True, kw_only=True)
class SemanticQuery:
    """A query's meaning for one search: its vector, or what makes it of the query's words and their weights.

    Cosines up to `min_cosine` say nothing, those from `max_cosine` on everything that can be said.
    """

    placement: VectorPlacement
    vectors: VectorSnapshot
    vector: NDArray[np.float32] | None = None
    make_vector: Callable[[Mapping[str, float]], NDArray[np.float32] | None] | None = None
    min_cosine: float = 0.0
    max_cosine: float = 1.0

    def similarities(self, corpus: Corpus, weights: Mapping[str, float]) -> Similarities | None:
        """Return how near every row is; None without a vector of the query in the length of the others."""
        vector = self.make_vector(weights) if self.make_vector else self.vector
        if vector is None or len(vector) != self.vectors.dimension:
            return None
        places = self.placement.update(corpus, self.vectors).places
        scale = CosineScale(min_cosine=self.min_cosine, max_cosine=self.max_cosine)
        reading = VectorReader(self.vectors.rows, vector, places, scale)
        if self.vectors.graph_lookup is not None:
            return ApproximateSimilarities(reading, self.vectors.graph_lookup)
        if self.vectors.bounds is not None and places.is_alone:
            return BoundedSimilarities(reading, self.vectors.bounds)
        return reading.exact

    def missing_numbers(self, corpus: Corpus, limit: int) -> tuple[list[int], int]:
        """Return the numbers of the newest rows without a vector, and how many there are."""
        at = self.placement.update(corpus, self.vectors).vector_rows
        rows = np.flatnonzero((at < 0) & corpus["live"])
        return corpus["number"][rows[::-1][:limit]].tolist(), len(rows)

    def unused_rows(self, corpus: Corpus) -> Array:
        """Return the rows of the matrix that no row of the corpus needs."""
        at = self.placement.update(corpus, self.vectors).vector_rows
        needed = np.zeros(len(self.vectors.text_ids), dtype=np.bool_)
        needed[at[(at >= 0) & corpus["live"]]] = True
        return np.flatnonzero(~needed)
