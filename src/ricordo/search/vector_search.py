"""Similarity of the rows of a corpus to a query vector: exact, bounded, or approximate.

A row's similarity is the mean of two, its own and that with its neighbours, which is the mean of their cosines. Bounds
and the graph of `ann` tell which vectors have to be read.

Invariant: all ways give a row the same similarity, and exact and bounded search name the same rows, but for rounding.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ricordo.search.ann import GraphLookup, VectorBounds, cosines
from ricordo.search.corpus import IS_ENTRY, IS_MESSAGE, Corpus
from ricordo.search.postings import Array
from ricordo.search.vector_cache import VectorSnapshot

__all__ = [
    "ApproximateSimilarities",
    "BoundedSimilarities",
    "CosineScale",
    "ExactSimilarities",
    "MissingVectors",
    "RowVectors",
    "SemanticQuery",
    "Similarities",
    "VectorPlacement",
    "VectorReader",
    "cosines",
]


DotProduct: TypeAlias = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]
"""The product of each row of a matrix with a vector."""
_DIGITS = 6
_ROUNDING = 2e-6
_ESTIMATE_FACTOR = 1.125
_READ_BATCH = 512
_OVERFETCH, _OVERFETCH_WITH_NEIGHBOURS = 2, 4
"""How many times as many as are wanted an approximate index is asked for, where rows stand alone or not: it leads to
what is near by itself."""
_MOST_WANTED, _MOST_READ = 1 / 32, 1 / 8
"""Of which share of all rows it is quicker to look at all: that are wanted, or that can be among those."""


class Similarities(Protocol):
    """How near the rows of a corpus are to a query, each in 0..1, and which of them are the nearest."""

    def has_vectors(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        ...

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours."""
        ...

    def similarity(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        ...

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are the `wanted` nearest, and whether there may be others."""
        ...


@dataclass(frozen=True, kw_only=True)
class CosineScale:
    """What cosines say: those up to `min_cosine` nothing, those from `max_cosine` on everything that can be said."""

    min_cosine: float
    max_cosine: float

    def apply(self, cosine: Array) -> Array:
        """Return how near cosines are, in 0..1."""
        scaled: Array = np.clip((cosine - self.min_cosine) / (self.max_cosine - self.min_cosine), 0.0, 1.0)
        return scaled


@dataclass(frozen=True, kw_only=True)
class RowVectors:
    """In which row of a matrix the rows of a corpus have their vectors, and which stand beside them; -1 is nowhere.

    `is_straight` tells that each row has the vector of its place, `is_whole` that each has one, and `is_alone` that no
    row has another one beside it.
    """

    vector_rows: Array
    beside: Array
    is_straight: bool
    is_whole: bool
    is_alone: bool

    @property
    def vector_mask(self) -> "Array | None":
        """Which rows have a vector; None when all have one."""
        return None if self.is_whole else self.vector_rows >= 0

    def has_vectors(self, rows: Array) -> Array:
        """Tell of these rows whether they have a vector."""
        known: Array = np.ones(len(rows), dtype=np.bool_) if self.is_whole else self.vector_rows[rows] >= 0
        return known

    def values_by_row(self, found: Array) -> Array:
        """Return what was found of each vector for each row, 0 where it has none."""
        return found if self.is_straight else np.append(found, np.float32(0))[self.vector_rows]

    def rows_with(self, vectors: Array, count: int) -> Array:
        """Return the rows, ascending, that have one of these vectors, of which there are `count` in all."""
        if self.is_straight:
            return vectors
        wanted = np.zeros(count + 1, dtype=np.bool_)
        wanted[vectors] = True
        return np.flatnonzero(wanted[self.vector_rows])

    @cached_property
    def vector_counts(self) -> NDArray[np.float32]:
        """How many of a row and of those beside it have a vector, at least 1."""
        known = np.append(self.vector_rows >= 0, False)
        # booleans added to each other would make one of two
        count = known[:-1].astype(np.int8) + known[self.beside[0]] + known[self.beside[1]]
        counted: NDArray[np.float32] = np.maximum(count, 1).astype(np.float32)
        return counted

    def mean_with_neighbours(self, own: Array) -> Array:
        """Return the means of each row, and of those beside it, that have a vector."""
        values = np.append(own, np.float32(0))
        context: Array = own + values[self.beside[0]]
        context += values[self.beside[1]]
        context /= self.vector_counts
        return context


@dataclass(frozen=True, kw_only=True)
class ExactSimilarities:
    """How near every row is: its cosine alone, and with its neighbours unless each row stands alone."""

    own: Array
    context: "Array | None"
    places: RowVectors
    scale: CosineScale

    @classmethod
    def compute(
        cls, rows: NDArray[np.float32], vector: NDArray[np.float32], places: RowVectors, scale: CosineScale
    ) -> "ExactSimilarities":
        """Look at all vectors, which are the `rows` of a matrix."""
        own = places.values_by_row(cosines(rows, vector))
        context = None if places.is_alone else places.mean_with_neighbours(own)
        return cls(own=own, context=context, places=places, scale=scale)

    def has_vectors(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        return self.places.has_vectors(rows)

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours."""
        own = self.scale.apply(self.own[rows])
        return own, own if self.context is None else self.scale.apply(self.context[rows])

    def similarity(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        return _mean(*self.own_and_context(rows))

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are the `wanted` nearest, and whether there may be others."""
        near, nothing, most = _similarity_levels(self.own, self.context, self.places.vector_mask, self.scale)
        bound = min(_nth_highest(near, wanted, nothing), most)
        more = bound > nothing
        rows = np.flatnonzero(near >= bound if more else near > nothing)
        return rows[self.has_vectors(rows)], more


@dataclass(frozen=True)
class VectorReader:
    """The vectors of rows, the `rows` of a matrix, read only of those rows that are asked about."""

    rows: NDArray[np.float32]
    vector: NDArray[np.float32]
    places: RowVectors
    scale: CosineScale

    @cached_property
    def exact(self) -> ExactSimilarities:
        """How near every row is."""
        return ExactSimilarities.compute(self.rows, self.vector, self.places, self.scale)

    def has_vectors(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        return self.places.has_vectors(rows)

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours."""
        own, context = self._cosines(rows)
        near = self.scale.apply(own)
        return near, near if context is None else self.scale.apply(context)

    def similarity(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        return _mean(*self.own_and_context(rows))

    def levels(self, rows: Array) -> tuple[Array, float, float]:
        """Return what `_similarity_levels` does of these rows."""
        return _similarity_levels(*self._cosines(rows), self.has_vectors(rows), self.scale)

    def own_cosines(self, rows: Array, product: DotProduct) -> NDArray[np.float32]:
        """Return the cosines of these rows, 0 for one without a vector."""
        return self._read_cosines(self.places.vector_rows[rows], product)

    def _read_cosines(self, at: Array, product: DotProduct) -> NDArray[np.float32]:
        found = np.empty(len(at), dtype=np.float32)
        # what is copied stays small enough to be near at hand when it is multiplied
        for start in range(0, len(at), _READ_BATCH):
            block = self.rows.take(at[start : start + _READ_BATCH], axis=0, mode="clip")
            found[start : start + _READ_BATCH] = product(block, self.vector)
        found[at < 0] = 0
        return found

    def _cosines(self, rows: Array) -> "tuple[Array, Array | None]":
        """Return the cosines of these rows, alone and with their neighbours."""
        own = self.own_cosines(rows, _row_products)
        if self.places.is_alone:
            return own, None
        before, after = (
            np.where(side[rows] < 0, -1, self.places.vector_rows[side[rows]]) for side in self.places.beside
        )
        total: Array = own + self._read_cosines(before, _row_products) + self._read_cosines(after, _row_products)
        return own, total / self.places.vector_counts[rows]


@dataclass(frozen=True)
class _RowSimilarities:
    """What is said of single rows, whose vectors are read for it."""

    reader: VectorReader

    def has_vectors(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        return self.reader.has_vectors(rows)

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours; the same where they stand alone."""
        return self.reader.own_and_context(rows)

    def similarity(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        return self.reader.similarity(rows)


@dataclass(frozen=True)
class BoundedSimilarities(_RowSimilarities):
    """How near rows are that stand alone: those are looked at that can be near by the `bounds` of their vectors."""

    bounds: VectorBounds

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are the `wanted` nearest, and whether there may be others."""
        reading, scale = self.reader, self.reader.scale
        count, nothing, most = len(reading.places.vector_rows), scale.min_cosine, scale.max_cosine
        if wanted > _MOST_WANTED * count:
            return reading.exact.nearest(wanted)
        at_most, estimated = self._vector_bounds()
        # the nearest of some rows are not nearer than those of all
        some = self._rows_where(estimated >= _nth_highest(estimated, round(_ESTIMATE_FACTOR * wanted), nothing))
        least = min(_nth_highest(reading.own_cosines(some, cosines), wanted, nothing), most) - _ROUNDING
        rows = self._rows_where(at_most >= max(least, nothing))
        if len(rows) > _MOST_READ * count:
            return reading.exact.nearest(wanted)
        near = reading.own_cosines(rows, cosines)
        bound = min(_nth_highest(near, wanted, nothing), most)
        more = bound > nothing
        rows = rows[near >= bound - _ROUNDING if more else near > nothing]
        return rows, more

    def _rows_where(self, wanted: Array) -> Array:
        """Return the rows that have one of the vectors for which it is true."""
        return self.reader.places.rows_with(np.flatnonzero(wanted), len(wanted))

    def _vector_bounds(self) -> tuple[Array, Array]:
        """Return for each vector what its cosine can be at most, and about what it is."""
        reading = self.reader
        at_most, estimated = self.bounds.upper_bounds(reading.vector)
        if len(self.bounds) < len(reading.rows):
            later = cosines(reading.rows[len(self.bounds) :], reading.vector)
            at_most = np.concatenate((at_most, later + np.float32(_ROUNDING)))
            estimated = np.concatenate((estimated, later))
        return at_most, estimated


@dataclass(frozen=True)
class ApproximateSimilarities(_RowSimilarities):
    """How near rows are, of which those are looked at that a graph leads to: most of the nearest, and maybe not all."""

    graph_lookup: GraphLookup

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are most of the `wanted` nearest, and whether there may be others."""
        reading, places = self.reader, self.reader.places
        if wanted > _MOST_WANTED * len(places.vector_rows):
            return reading.exact.nearest(wanted)
        count = (_OVERFETCH if places.is_alone else _OVERFETCH_WITH_NEIGHBOURS) * wanted
        named = self.graph_lookup.nearest(reading.rows, reading.vector, count)
        rows = places.rows_with(np.sort(named), len(reading.rows))
        if not places.is_alone:
            rows = np.unique(np.append(rows, places.beside[:, rows]))
            rows = rows[rows >= 0]
        rows = rows[reading.has_vectors(rows)]
        near, nothing, most = reading.levels(rows)
        bound = min(_nth_highest(near, wanted, nothing), most)
        more = bound > nothing
        return rows[near >= bound if more else near > nothing], more


def _mean(own: Array, context: Array) -> Array:
    mean: Array = (own + context) / 2
    return mean


def _similarity_levels(
    own: Array, context: "Array | None", known: "Array | None", scale: CosineScale
) -> tuple[Array, float, float]:
    """Return what tells how near rows are, from which value on it says something, and from which on nothing more."""
    if context is None:
        # what is scaled to the same is equally near, so cosines from `max_cosine` on are one
        return own, scale.min_cosine, scale.max_cosine
    both = _mean(scale.apply(own), scale.apply(context))
    return both if known is None else np.where(known, both, 0.0), 0.0, 1.0


def _nth_highest(near: Array, wanted: int, nothing: float) -> float:
    """Return the value that so many reach, not less than `nothing`, which it is where there are fewer."""
    if len(near) < wanted:
        return nothing
    return max(float(np.partition(near, len(near) - wanted)[len(near) - wanted]), nothing)


def _row_products(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, equal for equal rows, to six digits."""
    found: NDArray[np.float32] = np.einsum("ij,j->i", rows, vector)
    return np.round(found, _DIGITS, out=found)


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
