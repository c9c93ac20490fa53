"""How near the rows of a corpus are to one query: told of all of them, or of those only that can be among the nearest.

A row's nearness is the mean of two: its own, and that with what stands beside it, which is the mean of its own cosine
and theirs. `Whole` knows the cosine of every vector. `Bounded` knows what it can be at most, and reads only the vectors
of rows that can be among the nearest, and of those that it is asked about. It is for rows that all stand alone: with
neighbours too many can be among the nearest. `Guided` reads those that an approximate index names.

Invariant: all tell the same of a row, and the first two name the same rows, but for what 32-bit floats get wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ricordo.index.front import Front, cosines
from ricordo.index.guide import Guide
from ricordo.index.postings import Array

__all__ = ["Bounded", "Guided", "Near", "Places", "Reading", "Scale", "Whole"]

Product: TypeAlias = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]
"""The product of each row of a matrix with a vector."""

_DIGITS = 6
_ROUNDING = 2e-6
_MORE = 1.125
_AT_ONCE = 512
_TO_LOOK_AT, _TO_LOOK_AT_BESIDE = 2, 4
"""How many times as many as are wanted an approximate index is asked for, where rows stand alone or not: it leads to
what is near by itself."""
_MOST_WANTED, _MOST_READ = 1 / 32, 1 / 8
"""Of which share of all rows it is quicker to look at all: that are wanted, or that can be among those."""


class Near(Protocol):
    """How near the rows of a corpus are to a query, each in 0..1, and which of them are the nearest."""

    def knows(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        ...

    def sides(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours."""
        ...

    def both(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        ...

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are the `wanted` nearest, and whether there may be others."""
        ...


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What cosines say: those up to `least` nothing, those from `most` on everything that can be said."""

    least: float
    most: float

    def scaled(self, cosine: Array) -> Array:
        """Return how near cosines are, in 0..1."""
        scaled: Array = np.clip((cosine - self.least) / (self.most - self.least), 0.0, 1.0)
        return scaled


@dataclass(frozen=True, kw_only=True)
class Places:
    """In which row of a matrix the rows of a corpus have their vectors, and which stand beside them; -1 is nowhere.

    `is_straight` tells that each row has the vector of its place, `is_whole` that each has one, and `is_alone` that no
    row has another one beside it.
    """

    at: Array
    beside: Array
    is_straight: bool
    is_whole: bool
    is_alone: bool

    @property
    def known(self) -> "Array | None":
        """Which rows have a vector; None when all have one."""
        return None if self.is_whole else self.at >= 0

    def knows(self, rows: Array) -> Array:
        """Tell of these rows whether they have a vector."""
        known: Array = np.ones(len(rows), dtype=np.bool_) if self.is_whole else self.at[rows] >= 0
        return known

    def own(self, found: Array) -> Array:
        """Return what was found of each vector for each row, 0 where it has none."""
        return found if self.is_straight else np.append(found, np.float32(0))[self.at]

    def holding(self, vectors: Array, count: int) -> Array:
        """Return the rows, ascending, that have one of these vectors, of which there are `count` in all."""
        if self.is_straight:
            return vectors
        wanted = np.zeros(count + 1, dtype=np.bool_)
        wanted[vectors] = True
        return np.flatnonzero(wanted[self.at])

    @cached_property
    def counted(self) -> NDArray[np.float32]:
        """How many of a row and of those beside it have a vector, at least 1."""
        known = np.append(self.at >= 0, False)
        # booleans added to each other would make one of two
        count = known[:-1].astype(np.int8) + known[self.beside[0]] + known[self.beside[1]]
        counted: NDArray[np.float32] = np.maximum(count, 1).astype(np.float32)
        return counted

    def with_neighbours(self, own: Array) -> Array:
        """Return the means of each row, and of those beside it, that have a vector."""
        values = np.append(own, np.float32(0))
        context: Array = own + values[self.beside[0]]
        context += values[self.beside[1]]
        context /= self.counted
        return context


@dataclass(frozen=True, kw_only=True)
class Whole:
    """How near every row is: its cosine alone, and with its neighbours unless each row stands alone."""

    own: Array
    context: "Array | None"
    places: Places
    scale: Scale

    @classmethod
    def of(cls, rows: NDArray[np.float32], vector: NDArray[np.float32], places: Places, scale: Scale) -> "Whole":
        """Look at all vectors, which are the `rows` of a matrix."""
        own = places.own(cosines(rows, vector))
        context = None if places.is_alone else places.with_neighbours(own)
        return cls(own=own, context=context, places=places, scale=scale)

    def knows(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        return self.places.knows(rows)

    def sides(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours."""
        own = self.scale.scaled(self.own[rows])
        return own, own if self.context is None else self.scale.scaled(self.context[rows])

    def both(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        return _mean(*self.sides(rows))

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are the `wanted` nearest, and whether there may be others."""
        near, nothing, most = _levels(self.own, self.context, self.places.known, self.scale)
        bound = min(_nth(near, wanted, nothing), most)
        more = bound > nothing
        rows = np.flatnonzero(near >= bound if more else near > nothing)
        return rows[self.knows(rows)], more


@dataclass(frozen=True)
class Reading:
    """The vectors of rows, the `rows` of a matrix, read only of those rows that are asked about."""

    rows: NDArray[np.float32]
    vector: NDArray[np.float32]
    places: Places
    scale: Scale

    @cached_property
    def whole(self) -> Whole:
        """How near every row is."""
        return Whole.of(self.rows, self.vector, self.places, self.scale)

    def knows(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        return self.places.knows(rows)

    def sides(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours."""
        own, context = self._cosines(rows)
        near = self.scale.scaled(own)
        return near, near if context is None else self.scale.scaled(context)

    def both(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        return _mean(*self.sides(rows))

    def levels(self, rows: Array) -> tuple[Array, float, float]:
        """Return what `_levels` does of these rows."""
        return _levels(*self._cosines(rows), self.knows(rows), self.scale)

    def own(self, rows: Array, product: Product) -> NDArray[np.float32]:
        """Return the cosines of these rows, 0 for one without a vector."""
        return self._read(self.places.at[rows], product)

    def _read(self, at: Array, product: Product) -> NDArray[np.float32]:
        found = np.empty(len(at), dtype=np.float32)
        # what is copied stays small enough to be near at hand when it is multiplied
        for start in range(0, len(at), _AT_ONCE):
            block = self.rows.take(at[start : start + _AT_ONCE], axis=0, mode="clip")
            found[start : start + _AT_ONCE] = product(block, self.vector)
        found[at < 0] = 0
        return found

    def _cosines(self, rows: Array) -> "tuple[Array, Array | None]":
        """Return the cosines of these rows, alone and with their neighbours."""
        own = self.own(rows, _one_by_one)
        if self.places.is_alone:
            return own, None
        before, after = (np.where(side[rows] < 0, -1, self.places.at[side[rows]]) for side in self.places.beside)
        total: Array = own + self._read(before, _one_by_one) + self._read(after, _one_by_one)
        return own, total / self.places.counted[rows]


@dataclass(frozen=True)
class _Read:
    """What is said of single rows, whose vectors are read for it."""

    reading: Reading

    def knows(self, rows: Array) -> Array:
        """Tell of these rows whether anything is known."""
        return self.reading.knows(rows)

    def sides(self, rows: Array) -> tuple[Array, Array]:
        """Return how near these rows are, alone and with their neighbours; the same where they stand alone."""
        return self.reading.sides(rows)

    def both(self, rows: Array) -> Array:
        """Return how near these rows are, the mean of both sides."""
        return self.reading.both(rows)


@dataclass(frozen=True)
class Bounded(_Read):
    """How near rows are that stand alone: those are looked at that can be near by the `front` of their vectors."""

    front: Front

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are the `wanted` nearest, and whether there may be others."""
        reading, scale = self.reading, self.reading.scale
        count, nothing, most = len(reading.places.at), scale.least, scale.most
        if wanted > _MOST_WANTED * count:
            return reading.whole.nearest(wanted)
        at_most, estimated = self._bounds()
        # the nearest of some rows are not nearer than those of all
        some = self._rows(estimated >= _nth(estimated, round(_MORE * wanted), nothing))
        least = min(_nth(reading.own(some, cosines), wanted, nothing), most) - _ROUNDING
        rows = self._rows(at_most >= max(least, nothing))
        if len(rows) > _MOST_READ * count:
            return reading.whole.nearest(wanted)
        near = reading.own(rows, cosines)
        bound = min(_nth(near, wanted, nothing), most)
        more = bound > nothing
        rows = rows[near >= bound - _ROUNDING if more else near > nothing]
        return rows, more

    def _rows(self, wanted: Array) -> Array:
        """Return the rows that have one of the vectors for which it is true."""
        return self.reading.places.holding(np.flatnonzero(wanted), len(wanted))

    def _bounds(self) -> tuple[Array, Array]:
        """Return for each vector what its cosine can be at most, and about what it is."""
        reading = self.reading
        at_most, estimated = self.front.bounds(reading.vector)
        if len(self.front) < len(reading.rows):
            later = cosines(reading.rows[len(self.front) :], reading.vector)
            at_most = np.concatenate((at_most, later + np.float32(_ROUNDING)))
            estimated = np.concatenate((estimated, later))
        return at_most, estimated


@dataclass(frozen=True)
class Guided(_Read):
    """How near rows are, of which those are looked at that a graph leads to: most of the nearest, and maybe not all."""

    guide: Guide

    def nearest(self, wanted: int) -> tuple[Array, bool]:
        """Return rows, ascending, among which are most of the `wanted` nearest, and whether there may be others."""
        reading, places = self.reading, self.reading.places
        if wanted > _MOST_WANTED * len(places.at):
            return reading.whole.nearest(wanted)
        count = (_TO_LOOK_AT if places.is_alone else _TO_LOOK_AT_BESIDE) * wanted
        named = self.guide.nearest(reading.rows, reading.vector, count)
        rows = places.holding(np.sort(named), len(reading.rows))
        if not places.is_alone:
            rows = np.unique(np.append(rows, places.beside[:, rows]))
            rows = rows[rows >= 0]
        rows = rows[reading.knows(rows)]
        near, nothing, most = reading.levels(rows)
        bound = min(_nth(near, wanted, nothing), most)
        more = bound > nothing
        return rows[near >= bound if more else near > nothing], more


def _mean(own: Array, context: Array) -> Array:
    mean: Array = (own + context) / 2
    return mean


def _levels(own: Array, context: "Array | None", known: "Array | None", scale: Scale) -> tuple[Array, float, float]:
    """Return what tells how near rows are, from which value on it says something, and from which on nothing more."""
    if context is None:
        # what is scaled to the same is equally near, so cosines from `most` on are one
        return own, scale.least, scale.most
    both = _mean(scale.scaled(own), scale.scaled(context))
    return both if known is None else np.where(known, both, 0.0), 0.0, 1.0


def _nth(near: Array, wanted: int, nothing: float) -> float:
    """Return the value that so many reach, not less than `nothing`, which it is where there are fewer."""
    if len(near) < wanted:
        return nothing
    return max(float(np.partition(near, len(near) - wanted)[len(near) - wanted]), nothing)


def _one_by_one(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, equal for equal rows, to six digits."""
    found: NDArray[np.float32] = np.einsum("ij,j->i", rows, vector)
    return np.round(found, _DIGITS, out=found)
