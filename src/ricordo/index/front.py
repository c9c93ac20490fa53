"""The front of vectors: a few numbers of each that tell how large its product with another vector can be at most.

Vectors are turned so that the first of their numbers hold most of their length: by the principal axes of a sample of
them. Turning changes no product. What the other numbers add is at most the length of one rest times that of the other
(Cauchy and Schwarz), so most vectors need not be read whole to know that they are not among the nearest. The axes may
come from other vectors than those that are looked at: that makes the bound less sharp, never wrong.

Invariant: no product is larger than its bound.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ricordo.index.postings import Array

__all__ = ["MIN_BOUNDED_NUMBERS", "VectorBounds", "cosines", "build_bounds", "bounds_along_axes"]

MIN_BOUNDED_NUMBERS = 2**23
"""How many numbers vectors must have in all before a front is quicker than the product of all of them."""

_PRODUCT_BLOCK = 2**18
"""Numbers of a matrix that are multiplied at once: more of them are shared between threads, which costs more."""
_DIGITS = 6
_SAMPLE_ROWS, _SAMPLE_QUERIES, _SAMPLE_NEAREST = 4_096, 32, 256
_HEAD_SHARES = (1 / 4, 3 / 8, 1 / 2, 9 / 16)
"""Which shares of a vector's numbers may be its front: more would need too much memory."""
_SINGLE_ROW_COST = 8.0
"""How much longer a row takes that is read by itself than one that is read among all: twice what was measured, as a
query's rest is longer than that of the vectors that it is tried with."""
_MAX_COST = 0.8
_FLOAT_ERROR = 4e-6
"""More than what 32-bit floats get wrong in a squared length of 1, and in a product."""
_MAX_GROWTH = 4


@dataclass(frozen=True, kw_only=True)
class VectorBounds:
    """The fronts of vectors: `heads` has a row for each, `rests` the length of what is behind it.

    `axes` turn a vector into its front; they are those of the first `sample_size` vectors. `longest` is the length of the
    longest vector.
    """

    axes: NDArray[np.float32]
    heads: NDArray[np.float32]
    rests: NDArray[np.float32]
    longest: float
    sample_size: int

    def __len__(self) -> int:
        """Return how many vectors there are."""
        return len(self.heads)

    def upper_bounds(self, vector: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return for each vector what its product with this one can be at most, and what it is without the rests."""
        head = vector @ self.axes
        length = float(np.linalg.norm(vector))
        rest = _residual_length(np.array([length**2]), np.array([float(head @ head)]))[0]
        estimated = _dot_product(self.heads, head)
        at_most = self.rests * np.float32(rest)
        at_most += estimated
        at_most += np.float32(_FLOAT_ERROR * length * self.longest)
        return at_most, estimated

    def select(self, kept: Array) -> "VectorBounds":
        """Return it with those vectors only; `select` is true of them."""
        return replace(self, heads=self.heads[kept[: len(self)]], rests=self.rests[kept[: len(self)]])

    def extend(self, rows: NDArray[np.float32]) -> "VectorBounds | None":
        """Return it for all of these rows, the first of which are its vectors; None where its axes are too old."""
        if len(rows) > _MAX_GROWTH * self.sample_size:
            return None
        heads, rests, longest = _project(rows[len(self) :], self.axes)
        return replace(
            self, heads=np.concatenate((self.heads, heads)), rests=np.concatenate((self.rests, rests)),
            longest=max(self.longest, longest),
        )  # fmt: skip


def build_bounds(rows: NDArray[np.float32]) -> VectorBounds | None:
    """Return the front of these rows; None where it would not be quicker than the product of all of them.

    How sharp it is depends on how unevenly lengths are spread over axes. It is measured on a sample.
    """
    sample = rows[np.linspace(0, len(rows) - 1, min(_SAMPLE_ROWS, len(rows)), dtype=np.int64)]
    _, axes = np.linalg.eigh((sample.T @ sample).astype(np.float64))
    axes = np.ascontiguousarray(axes[:, ::-1], dtype=np.float32)
    size = _best_size(sample, axes, len(rows))
    if size is None:
        return None
    return bounds_along_axes(rows, np.ascontiguousarray(axes[:, :size]))


def bounds_along_axes(rows: NDArray[np.float32], axes: NDArray[np.float32]) -> VectorBounds:
    """Return the front of these rows by these axes, columns that stand at right angles and have the length 1."""
    heads, rests, longest = _project(rows, axes)
    return VectorBounds(axes=axes, heads=heads, rests=rests, longest=longest, sample_size=len(rows))


def _best_size(sample: NDArray[np.float32], axes: NDArray[np.float32], count: int) -> int | None:
    """Return how many numbers a front should have, so that least is read; None where nothing is gained by one."""
    asked = sample[:: max(1, len(sample) // _SAMPLE_QUERIES)]
    true = sample @ asked.T
    # as near as the last of the nearest among all; the row that is asked for is one of them
    nth = min(len(sample), 2 + _SAMPLE_NEAREST * len(sample) // count)
    bound = np.partition(true, len(sample) - nth, axis=0)[len(sample) - nth]
    lengths, turned = np.einsum("ij,ij->i", sample, sample), sample @ axes
    best, least = None, _MAX_COST
    for share in _HEAD_SHARES:
        size = max(1, round(share * sample.shape[1]))
        heads = turned[:, :size]
        rests = _residual_length(lengths, np.einsum("ij,ij->i", heads, heads))
        places = slice(None, None, max(1, len(sample) // _SAMPLE_QUERIES))
        passing = heads @ heads[places].T + np.outer(rests, rests[places]) >= bound
        cost = share + _SINGLE_ROW_COST * float(np.mean(passing))
        if cost < least:
            best, least = size, cost
    return best


def _project(
    rows: NDArray[np.float32], axes: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32], float]:
    """Return the fronts of rows, the lengths of what is behind them, and the length of the longest row."""
    heads = np.empty((len(rows), axes.shape[1]), dtype=np.float32)
    lengths = np.empty(len(rows), dtype=np.float32)
    step = max(1, _PRODUCT_BLOCK // max(len(axes), 1))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        np.dot(block, axes, out=heads[start : start + step])
        lengths[start : start + step] = np.einsum("ij,ij->i", block, block)
    rests = _residual_length(lengths, np.einsum("ij,ij->i", heads, heads)).astype(np.float32)
    return heads, rests, float(np.sqrt(lengths.max(initial=0.0)))


def _residual_length(whole: Array, head: Array) -> Array:
    """Return at least the length of the rest, given the squared lengths of whole vectors and of their fronts."""
    rest: Array = np.sqrt(np.maximum(whole - head, 0.0) + _FLOAT_ERROR * whole)
    return rest


def cosines(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, to six digits: where a row stands may change those behind."""
    found = _dot_product(rows, vector)
    return np.round(found, _DIGITS, out=found)


def _dot_product(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector."""
    found = np.empty(len(rows), dtype=np.float32)
    step = max(1, _PRODUCT_BLOCK // max(len(vector), 1))
    for start in range(0, len(rows), step):
        np.dot(rows[start : start + step], vector, out=found[start : start + step])
    return found
