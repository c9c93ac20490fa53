"""Similarity of the rows of a corpus to a query vector: exact, bounded, or approximate.

A row's similarity is the mean of two values: its own cosine, and its context, the mean of the cosines of the row and
its neighbours. Bounds and the graph of `ann` determine which vectors have to be read.

Invariant: all ways give a row the same similarity, and exact and bounded search return the same rows, except for
rounding.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ricordo.lazy import dataclass
from ricordo.search.ann import GraphLookup, VectorBounds, cosines
from ricordo.search.corpus import Array, Corpus
from ricordo.search.documents import IS_ENTRY, IS_MESSAGE
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
_NO_COSINE = np.zeros(1, dtype=np.float32)
_DIGITS = 6
_ROUNDING = 2e-6
_ESTIMATE_FACTOR = 1.125
_READ_BATCH = 512
_OVERFETCH, _OVERFETCH_WITH_NEIGHBOURS = 2, 4
"""How many times the wanted number an approximate index is asked for, without and with neighbours: it finds rows by
their own vectors only."""
_MOST_WANTED, _MOST_READ = 1 / 32, 1 / 8
"""The shares of all rows from which an exact search is faster: of wanted rows, and of rows that may be among them."""


class Similarities(Protocol):
    """The similarity of corpus rows to a query, each in 0..1, and the nearest rows."""

    def has_vectors(self, rows: Array) -> Array:
        """Return a mask of the rows that have a similarity."""
        ...

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return the similarities of these rows, alone and with their neighbours."""
        ...

    def similarity(self, rows: Array) -> Array:
        """Return the similarity of these rows, the mean of own and context."""
        ...

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, that include the `wanted` nearest, and whether there may be more."""
        ...


@dataclass(frozen=True, kw_only=True)
class CosineScale:
    """The scale of cosines: up to `min_cosine` the similarity is 0, from `max_cosine` on it is 1."""

    min_cosine: float
    max_cosine: float

    def apply(self, cosine: Array) -> Array:
        """Return the similarities for cosines, in 0..1."""
        scaled: Array = cosine - self.min_cosine
        scaled /= self.max_cosine - self.min_cosine
        np.maximum(scaled, 0.0, out=scaled)
        return np.minimum(scaled, 1.0, out=scaled)


@dataclass(frozen=True, kw_only=True)
class RowVectors:
    """The matrix rows of the corpus rows' vectors, and the neighbours of each corpus row; -1 means none.

    `is_straight` is true if each row's vector is at its own position, `is_whole` if each row has a vector, and
    `is_alone` if no row has a neighbour.
    """

    vector_rows: Array
    beside: Array
    is_straight: bool
    is_whole: bool
    is_alone: bool

    @property
    def vector_mask(self) -> "Array | None":
        """The mask of rows that have a vector; None if all do."""
        return None if self.is_whole else self.vector_rows >= 0

    def has_vectors(self, rows: Array) -> Array:
        """Return a mask of these rows: whether they have a vector."""
        return rows >= 0 if self.is_whole else self.vector_rows[rows] >= 0

    def values_by_row(self, found: Array) -> Array:
        """Return the values of vectors by corpus row, 0 for rows without a vector."""
        if self.is_straight:
            return found
        if self.is_whole:
            return found[self.vector_rows]
        return np.concatenate((found, _NO_COSINE))[self.vector_rows]

    def rows_with(self, vectors: Array, count: int) -> Array:
        """Return the rows, ascending, that have one of these vectors; `count` is the number of all vectors."""
        if self.is_straight:
            return vectors
        wanted = np.zeros(count + 1, dtype=np.bool_)
        wanted[vectors] = True
        return np.flatnonzero(wanted[self.vector_rows])

    @cached_property
    def vector_counts(self) -> NDArray[np.float32]:
        """How many of a row and its neighbours have a vector, at least 1."""
        known = np.append(self.vector_rows >= 0, False)
        # adding booleans would give True instead of 2
        count = known[:-1].astype(np.int8) + known[self.beside[0]] + known[self.beside[1]]
        counted: NDArray[np.float32] = np.maximum(count, 1).astype(np.float32)
        return counted

    def mean_with_neighbours(self, own: Array) -> Array:
        """Return the mean over each row and its neighbours, as far as they have a vector."""
        values = np.append(own, np.float32(0))
        context: Array = own + values[self.beside[0]]
        context += values[self.beside[1]]
        context /= self.vector_counts
        return context


@dataclass(frozen=True, kw_only=True)
class ExactSimilarities:
    """The similarity of every row: its cosine alone, and with its neighbours if any row has one."""

    own: Array
    context: "Array | None"
    places: RowVectors
    scale: CosineScale

    @classmethod
    def compute(
        cls, rows: NDArray[np.float32], vector: NDArray[np.float32], places: RowVectors, scale: CosineScale
    ) -> "ExactSimilarities":
        """Compute the similarities from all vectors, the `rows` of a matrix."""
        own = places.values_by_row(cosines(rows, vector))
        context = None if places.is_alone else places.mean_with_neighbours(own)
        return cls(own=own, context=context, places=places, scale=scale)

    def has_vectors(self, rows: Array) -> Array:
        """Return a mask of the rows that have a similarity."""
        return self.places.has_vectors(rows)

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return the similarities of these rows, alone and with their neighbours."""
        own = self.scale.apply(self.own[rows])
        return own, own if self.context is None else self.scale.apply(self.context[rows])

    def similarity(self, rows: Array) -> Array:
        """Return the similarity of these rows, the mean of own and context."""
        return _mean(*self.own_and_context(rows))

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, that include the `wanted` nearest, and whether there may be more."""
        near, nothing, most = _similarity_levels(self.own, self.context, self.places.vector_mask, self.scale)
        bound = min(_nth_highest(near, wanted, nothing), most)
        more = bound > nothing
        rows = np.flatnonzero(near >= bound if more else near > nothing)
        return rows[self.has_vectors(rows)], more


@dataclass(frozen=True)
class VectorReader:
    """Reads vectors, the `rows` of a matrix, only for the requested corpus rows."""

    rows: NDArray[np.float32]
    vector: NDArray[np.float32]
    places: RowVectors
    scale: CosineScale

    @cached_property
    def exact(self) -> ExactSimilarities:
        """The similarities of all rows."""
        return ExactSimilarities.compute(self.rows, self.vector, self.places, self.scale)

    def has_vectors(self, rows: Array) -> Array:
        """Return a mask of the rows that have a similarity."""
        return self.places.has_vectors(rows)

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return the similarities of these rows, alone and with their neighbours."""
        own, context = self._cosines(rows)
        near = self.scale.apply(own)
        return near, near if context is None else self.scale.apply(context)

    def similarity(self, rows: Array) -> Array:
        """Return the similarity of these rows, the mean of own and context."""
        return _mean(*self.own_and_context(rows))

    def levels(self, rows: Array) -> tuple[Array, float, float]:
        """Return the result of `_similarity_levels` for these rows."""
        return _similarity_levels(*self._cosines(rows), self.has_vectors(rows), self.scale)

    def own_cosines(self, rows: Array, product: DotProduct) -> NDArray[np.float32]:
        """Return the cosines of these rows, 0 for one without a vector."""
        return self._read_cosines(self.places.vector_rows[rows], product)

    def _read_cosines(self, at: Array, product: DotProduct) -> NDArray[np.float32]:
        found = np.empty(len(at), dtype=np.float32)
        # small blocks stay in the processor's cache until they are multiplied
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
    """The similarities of single rows, whose vectors are read on demand."""

    reader: VectorReader

    def has_vectors(self, rows: Array) -> Array:
        """Return a mask of the rows that have a similarity."""
        return self.reader.has_vectors(rows)

    def own_and_context(self, rows: Array) -> tuple[Array, Array]:
        """Return the similarities of these rows, alone and with their neighbours; equal if they have none."""
        return self.reader.own_and_context(rows)

    def similarity(self, rows: Array) -> Array:
        """Return the similarity of these rows, the mean of own and context."""
        return self.reader.similarity(rows)


@dataclass(frozen=True)
class BoundedSimilarities(_RowSimilarities):
    """Similarities of rows without neighbours; `bounds` determine which vectors have to be read."""

    bounds: VectorBounds

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, that include the `wanted` nearest, and whether there may be more."""
        reading, scale = self.reader, self.reader.scale
        count, nothing, most = len(reading.places.vector_rows), scale.min_cosine, scale.max_cosine
        if wanted > _MOST_WANTED * count:
            return reading.exact.nearest(wanted)
        at_most, estimated = self._vector_bounds()
        # the nearest of a subset give a lower bound for the nearest of all rows
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
        """Return the rows with one of the vectors that the mask selects."""
        return self.reader.places.rows_with(np.flatnonzero(wanted), len(wanted))

    def _vector_bounds(self) -> tuple[Array, Array]:
        """Return the upper bound and the estimate of each vector's cosine."""
        reading = self.reader
        at_most, estimated = self.bounds.upper_bounds(reading.vector)
        if len(self.bounds) < len(reading.rows):
            later = cosines(reading.rows[len(self.bounds) :], reading.vector)
            at_most = np.concatenate((at_most, later + np.float32(_ROUNDING)))
            estimated = np.concatenate((estimated, later))
        return at_most, estimated


@dataclass(frozen=True)
class ApproximateSimilarities(_RowSimilarities):
    """Similarities of rows found through a graph: most of the nearest rows, perhaps not all."""

    graph_lookup: GraphLookup

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, that include most of the `wanted` nearest, and whether there may be more."""
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
    mean: Array = own if own is context else (own + context) / 2
    return mean


def _similarity_levels(
    own: Array, context: "Array | None", known: "Array | None", scale: CosineScale
) -> tuple[Array, float, float]:
    """Return values to rank rows by, the value up to which they mean nothing, and the one from which they are equal."""
    if context is None:
        # cosines from `max_cosine` on are scaled to the same value, so they are equally near
        return own, scale.min_cosine, scale.max_cosine
    both = _mean(scale.apply(own), scale.apply(context))
    return both if known is None else np.where(known, both, 0.0), 0.0, 1.0


def _nth_highest(similarities: Array, count: int, nothing: float) -> float:
    """Return the value that `count` rows reach, at least `nothing`, and `nothing` if there are fewer rows."""
    if len(similarities) < count:
        return nothing
    ordered = similarities.copy()
    ordered.partition(-count)
    return max(float(ordered[-count]), nothing)


def _row_products(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, rounded to six digits, equal for equal rows."""
    found: NDArray[np.float32] = np.einsum("ij,j->i", rows, vector)
    return np.round(found, _DIGITS, out=found)


@dataclass(frozen=True, kw_only=True)
class MissingVectors:
    """Texts without a vector.

    `texts` are by text id, up to the requested limit; `count` is the number of all rows without a vector; `unused` are
    the matrix rows that no corpus row needs.
    """

    texts: Mapping[int, str]
    count: int
    unused: Array


class VectorPlacement:
    """Maps the rows of one corpus to their vectors and their neighbours; `places` holds the result."""

    def __init__(self) -> None:
        """Start without a corpus."""
        self.corpus: Corpus | None = None
        self._vectors = VectorSnapshot(-1, np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32))
        self.vector_rows: Array = np.zeros(0, dtype=np.int32)
        self.beside: Array = np.zeros((2, 0), dtype=np.int32)
        self.places = self._build_row_vectors(vectors=0)

    def update(self, corpus: Corpus, vectors: VectorSnapshot) -> "VectorPlacement":
        """Find the vectors and the neighbours of the corpus rows, as far as anything has changed."""
        is_new = corpus is not self.corpus
        if (
            not is_new
            and vectors is self._vectors
            and not corpus.changed_documents
            and len(self.vector_rows) == corpus.count
        ):
            return self
        if is_new:
            self.vector_rows = np.zeros(0, dtype=np.int32)
            self.beside = np.zeros((2, 0), dtype=np.int32)
        # a search may have an older snapshot of the vectors than the last one
        if vectors.generation != self._vectors.generation or len(vectors.text_ids) < len(self._vectors.text_ids):
            self.vector_rows = np.zeros(0, dtype=np.int32)
        self._find_vectors(corpus, vectors)
        if len(self.beside[0]) < corpus.count:
            more = np.full((2, corpus.count - len(self.beside[0])), -1, dtype=np.int32)
            self.beside = np.concatenate((self.beside, more), axis=1)
        touched, corpus.changed_documents = (None if is_new else corpus.changed_documents), set()
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
        """Look up rows without a vector, but only those that were not looked up in the same vectors before."""
        before = len(self.vector_rows)
        fresh = np.arange(before, corpus.count)
        self.vector_rows = np.concatenate((self.vector_rows, np.full(len(fresh), -1, dtype=np.int32)))
        if len(vectors.text_ids) != len(self._vectors.text_ids) or vectors.generation != self._vectors.generation:
            fresh = np.flatnonzero(self.vector_rows < 0)
        if len(fresh):
            self.vector_rows[fresh] = vectors.places(corpus["meaning"][fresh])

    def _link_neighbours(self, corpus: Corpus, touched: Collection[int] | None) -> None:
        """Find the neighbours of all rows or of these documents, as in `Chunk.before` and `after`."""
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
        # the pieces of one message are on one line and have the same neighbours
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
    """The semantic part of one query: its vector, or a function that makes it from words and weights.

    Cosines up to `min_cosine` mean no similarity, those from `max_cosine` on full similarity.
    """

    placement: VectorPlacement
    vectors: VectorSnapshot
    vector: NDArray[np.float32] | None = None
    make_vector: Callable[[Mapping[str, float]], NDArray[np.float32] | None] | None = None
    min_cosine: float = 0.0
    max_cosine: float = 1.0

    def similarities(self, corpus: Corpus, weights: Mapping[str, float]) -> Similarities | None:
        """Return the similarity of every row; None without a query vector of the right dimension."""
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
        """Return the numbers of the newest rows without a vector, and how many such rows there are."""
        at = self.placement.update(corpus, self.vectors).vector_rows
        rows = np.flatnonzero((at < 0) & corpus["live"])
        return corpus["number"][rows[::-1][:limit]].tolist(), len(rows)

    def unused_rows(self, corpus: Corpus) -> Array:
        """Return the matrix rows that no corpus row needs."""
        at = self.placement.update(corpus, self.vectors).vector_rows
        needed = np.zeros(len(self.vectors.text_ids), dtype=np.bool_)
        needed[at[(at >= 0) & corpus["live"]]] = True
        return np.flatnonzero(~needed)
