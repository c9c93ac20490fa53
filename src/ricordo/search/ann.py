"""Faster search of many vectors: exact bounds from a few principal axes, and an approximate graph (extra `ann`).

Both are built in a background thread; nothing waits for them. The graph lies in a file of its own, with a checksum,
and only names the rows to look at.

Invariants: no product is larger than its bound. The graph's file can be deleted; one that is damaged, or of another
model or dimension, counts as none.
"""

import json
import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast
from zlib import crc32

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from ricordo.messages.json_text import decode_json
from ricordo.search.postings import Array

__all__ = [
    "MIN_BOUNDED_NUMBERS",
    "BackgroundBuild",
    "GraphLookup",
    "VectorBounds",
    "VectorGraph",
    "bounds_along_axes",
    "build_bounds",
    "cosines",
    "is_graph_available",
]


class BackgroundBuild:
    """Makes one thing at a time beside everything else. It must not be used by two tasks at once."""

    def __init__(self) -> None:
        """Begin with nothing to do."""
        self._stop_event = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether something is being made."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, make: Callable[[Callable[[], bool]], None]) -> None:
        """Make something, unless something is being made; `make` is given what tells whether it shall end early."""
        if self.is_running or self._stop_event.is_set():
            return
        # a daemon, as no process shall wait at its end for what only makes it quicker
        self._thread = threading.Thread(target=make, args=(self._stop_event.is_set,), name="ricordo-index", daemon=True)
        self._thread.start()

    async def wait(self) -> None:
        """Wait until nothing is being made."""
        if self._thread is not None:
            await anyio.to_thread.run_sync(self._thread.join)

    async def close(self) -> None:
        """End what is being made, and make nothing more."""
        self._stop_event.set()
        await self.wait()


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

    `axes` turn a vector into its front; they are those of the first `sample_size` vectors. `longest` is the length of
    the longest vector.
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


_GRAPH_FORMAT = 1
_NEIGHBOURS, _BUILD_BREADTH, _SEARCH_BREADTH = 16, 128, 512
"""Neighbours of a vector, and how many are looked at to find them, and to find those of a query."""
_BUILD_BATCH = 1_000
_MAX_STALE_SHARE = 0.25
"""From which share of vectors that are gone on a graph is made anew."""
_CHECKSUM_BLOCK = 2**20
_HEADER_BYTES = 512
"""Bytes of the line at the end of the file."""
_ABANDONED_SECONDS = 3_600.0
"""How old a file is that a process which was killed has left."""


class _Matches(Protocol):
    @property
    def keys(self) -> NDArray[np.uint64]: ...


class _Index(Protocol):
    expansion_search: int

    def __len__(self) -> int: ...
    def add(self, keys: Array, vectors: NDArray[np.float32], *, threads: int) -> object: ...
    def search(self, vectors: NDArray[np.float32], count: int, *, threads: int) -> _Matches: ...
    def save(self, path_or_buffer: str) -> object: ...
    def view(self, path_or_buffer: memoryview) -> object: ...
    def load(self, path_or_buffer: memoryview) -> object: ...


def is_graph_available() -> bool:
    """Tell whether the extra `ann` is installed."""
    return find_spec("usearch") is not None


@dataclass(frozen=True)
class VectorGraph:
    """A graph over the vectors of some texts, whose numbers ascend in `text_ids`. It is never changed.

    What it was read from is its `buffer`, which has to last as long as it does.
    """

    index: _Index
    text_ids: Array
    buffer: memoryview

    def nearest(self, vector: NDArray[np.float32], count: int) -> Array:
        """Return the numbers of about the `count` nearest texts."""
        found = self.index.search(vector, min(count, len(self.text_ids)), threads=1).keys
        return np.ascontiguousarray(found).view(np.int64)

    def removed_share(self, meanings: Array) -> float:
        """Return which share of what it holds is not among these texts."""
        return 1 - float(np.mean(np.isin(self.text_ids, meanings))) if len(self.text_ids) else 0.0

    @classmethod
    def build(
        cls, path: Path, model: str, meanings: Array, rows: NDArray[np.float32], stopped: Callable[[], bool]
    ) -> "VectorGraph | None":
        """Make the graph of these vectors, and keep it at `path`; None when it shall end early, or can't be written.

        What an older graph at `path` holds is taken from there, unless much of it is gone.
        """
        index, older = _create_index(rows.shape[1]), cls.read(path, model, rows.shape[1])
        known: Array = np.zeros(0, dtype=np.int64)
        if older is not None and older.removed_share(meanings) < _MAX_STALE_SHARE:
            index.load(older.buffer)
            known = older.text_ids
        fresh = np.flatnonzero(~np.isin(meanings, known))
        for start in range(0, len(fresh), _BUILD_BATCH):
            if stopped():
                return None
            places = fresh[start : start + _BUILD_BATCH]
            index.add(meanings[places].view(np.uint64), rows[places], threads=1)
        try:
            _write_graph(path, model, index, np.union1d(known, meanings), rows.shape[1])
        except OSError:
            return None
        return cls.read(path, model, rows.shape[1])

    @classmethod
    def read(cls, path: Path, model: str, dimension: int) -> "VectorGraph | None":
        """Return the graph at `path`; None when there is none of this model and length, or it is damaged."""
        try:
            with path.open("rb") as file:
                whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            told = decode_json(bytes(whole[-_HEADER_BYTES:]))
            count, size = int(told["count"]), int(told["size"])
            if told != _header(model, dimension, count, size, _checksum(whole[:-_HEADER_BYTES])):
                return None
            meanings = np.frombuffer(whole[size : size + 8 * count], dtype="<i8").astype(np.int64)
            index = _create_index(dimension)
            index.view(whole[:size])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            return None
        return cls(index, meanings, whole[:size]) if len(index) == len(meanings) else None


@cache
def _usearch() -> Any:
    """Return the module of the extra. onnxruntime, where it is there, comes first: after usearch its import crashes."""
    with suppress(ImportError):
        import_module("onnxruntime")
    return import_module("usearch.index")


def _create_index(dimension: int) -> _Index:
    made = _usearch().Index(
        ndim=dimension, metric="ip", dtype="f16", connectivity=_NEIGHBOURS, expansion_add=_BUILD_BREADTH,
        expansion_search=_SEARCH_BREADTH, enable_key_lookups=False,
    )  # fmt: skip
    return cast("_Index", made)


def _header(model: str, dimension: int, count: int, size: int, checksum: int) -> dict[str, str | int]:
    return {
        "format": _GRAPH_FORMAT,
        "model": model,
        "dimension": dimension,
        "count": count,
        "size": size,
        "checksum": checksum,
    }


def _checksum(data: memoryview) -> int:
    checksum = 0
    for start in range(0, len(data), _CHECKSUM_BLOCK):
        checksum = crc32(data[start : start + _CHECKSUM_BLOCK], checksum)
    return checksum


def _write_graph(path: Path, model: str, index: _Index, meanings: Array, dimension: int) -> None:
    """Put a graph in place of the one at `path`, whole or not at all."""
    for left in path.parent.glob(f"{path.name}.*.new"):
        if left.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
            left.unlink(missing_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        index.save(str(fresh))
        size = fresh.stat().st_size
        with fresh.open("r+b") as file:
            file.seek(size)
            file.write(meanings.astype("<i8").tobytes())
            file.flush()
            with memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as whole:
                told = json.dumps(_header(model, dimension, len(meanings), size, _checksum(whole)))
            file.write(told.encode().ljust(_HEADER_BYTES))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        with suppress(OSError):
            fresh.unlink()


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
