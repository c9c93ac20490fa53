"""Faster search of many vectors: exact bounds from a few principal axes, and an approximate graph (extra `ann`).

Both are built in a background thread; no search waits for them. The graph is in a separate file with a checksum, and
only determines which rows to read.

Invariants: no product is larger than its bound. The graph's file can be deleted; a file that is damaged, or of another
model or dimension, is ignored.
"""

import json
import mmap
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast
from zlib import crc32

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from ricordo.lazy import dataclass
from ricordo.messages.json_text import decode_json
from ricordo.search.corpus import Array

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
    """Runs one build at a time in a background thread. It must not be used by two tasks at once."""

    def __init__(self) -> None:
        """Start idle."""
        self._stop_event = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether a build is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, make: Callable[[Callable[[], bool]], None]) -> None:
        """Start a build unless one is running; `make` gets a function that returns whether to stop early."""
        if self.is_running or self._stop_event.is_set():
            return
        # a daemon, so that no process waits at exit for an optimization
        self._thread = threading.Thread(target=make, args=(self._stop_event.is_set,), name="ricordo-index", daemon=True)
        self._thread.start()

    async def wait(self) -> None:
        """Wait until no build is running."""
        if self._thread is not None:
            await anyio.to_thread.run_sync(self._thread.join)

    async def close(self) -> None:
        """Stop the running build, and start no more."""
        self._stop_event.set()
        await self.wait()


MIN_BOUNDED_NUMBERS = 2**23
"""The total size of the vectors, in numbers, from which bounds are faster than computing all products."""
_PRODUCT_BLOCK = 2**18
"""The size of the matrix blocks that are multiplied at once; larger ones are split between threads, which is slower."""
_DIGITS = 6
_SAMPLE_ROWS, _SAMPLE_QUERIES, _SAMPLE_NEAREST = 4_096, 32, 256
_HEAD_SHARES = (1 / 4, 3 / 8, 1 / 2, 9 / 16)
"""The possible shares of a vector's numbers in its head; larger ones would need too much memory."""
_SINGLE_ROW_COST = 8.0
"""The cost of reading a row by itself, relative to reading it among all rows: twice the measured value, as the rest of
a query is longer than that of the sample vectors."""
_MAX_COST = 0.8
_FLOAT_ERROR = 4e-6
"""An upper bound of the error of 32-bit floats in a squared length of 1, and in a product."""
_MAX_GROWTH = 4


@dataclass(frozen=True, kw_only=True)
class VectorBounds:
    """The heads of vectors: `heads` has a row for each vector, `rests` the length of its remaining part.

    `axes` project a vector to its head; they are computed from the first `sample_size` vectors. `longest` is the length
    of the longest vector.
    """

    axes: NDArray[np.float32]
    heads: NDArray[np.float32]
    rests: NDArray[np.float32]
    longest: float
    sample_size: int

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self.heads)

    def upper_bounds(self, vector: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the upper bound of each vector's product with this one, and the product of the heads alone."""
        head = vector @ self.axes
        length = float(np.linalg.norm(vector))
        rest = _residual_length(np.array([length**2]), np.array([float(head @ head)]))[0]
        estimated = _dot_product(self.heads, head)
        at_most = self.rests * np.float32(rest)
        at_most += estimated
        at_most += np.float32(_FLOAT_ERROR * length * self.longest)
        return at_most, estimated

    def select(self, rows: Array) -> "VectorBounds":
        """Return the bounds of only the vectors that the mask `rows` selects."""
        return replace(self, heads=self.heads[rows[: len(self)]], rests=self.rests[rows[: len(self)]])

    def extend(self, rows: NDArray[np.float32]) -> "VectorBounds | None":
        """Return the bounds of all these rows, which begin with its vectors; None if its axes are too old."""
        if len(rows) > _MAX_GROWTH * self.sample_size:
            return None
        heads, rests, longest = _project(rows[len(self) :], self.axes)
        return replace(
            self, heads=np.concatenate((self.heads, heads)), rests=np.concatenate((self.rests, rests)),
            longest=max(self.longest, longest),
        )  # fmt: skip


def build_bounds(rows: NDArray[np.float32]) -> VectorBounds | None:
    """Return the bounds of these rows; None if they would not be faster than computing all products.

    How tight they are depends on how unevenly the lengths are spread over the axes. This is measured on a sample.
    """
    sample = rows[np.linspace(0, len(rows) - 1, min(_SAMPLE_ROWS, len(rows)), dtype=np.int64)]
    _, axes = np.linalg.eigh((sample.T @ sample).astype(np.float64))
    axes = np.ascontiguousarray(axes[:, ::-1], dtype=np.float32)
    size = _best_size(sample, axes, len(rows))
    if size is None:
        return None
    return bounds_along_axes(rows, np.ascontiguousarray(axes[:, :size]))


def bounds_along_axes(rows: NDArray[np.float32], axes: NDArray[np.float32]) -> VectorBounds:
    """Return the bounds of these rows along these axes, which are orthonormal columns."""
    heads, rests, longest = _project(rows, axes)
    return VectorBounds(axes=axes, heads=heads, rests=rests, longest=longest, sample_size=len(rows))


def _best_size(sample: NDArray[np.float32], axes: NDArray[np.float32], count: int) -> int | None:
    """Return the head size with the lowest cost; None if no size is worthwhile."""
    queries = sample[:: max(1, len(sample) // _SAMPLE_QUERIES)]
    true = sample @ queries.T
    # as near as the last of the nearest of all rows; the query row itself is one of them
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
    """Return the heads of rows, the lengths of their remaining parts, and the length of the longest row."""
    heads = np.empty((len(rows), axes.shape[1]), dtype=np.float32)
    lengths = np.empty(len(rows), dtype=np.float32)
    step = max(1, _PRODUCT_BLOCK // max(len(axes), 1))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        np.dot(block, axes, out=heads[start : start + step])
        lengths[start : start + step] = np.einsum("ij,ij->i", block, block)
    rests = _residual_length(lengths, np.einsum("ij,ij->i", heads, heads)).astype(np.float32)
    return heads, rests, float(np.sqrt(lengths.max(initial=0.0)))


def _residual_length(vector: Array, head: Array) -> Array:
    """Return an upper bound of the rest's length from the squared lengths of whole vectors and heads."""
    rest: Array = np.sqrt(np.maximum(vector - head, 0.0) + _FLOAT_ERROR * vector)
    return rest


def cosines(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the product of each row with a vector, to six digits, as further digits depend on a row's position."""
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
"""The neighbours of a vector in the graph, and how many vectors are compared when building and when searching."""
_BUILD_BATCH = 1_000
_MAX_STALE_SHARE = 0.25
"""The share of deleted vectors from which a graph is built again."""
_CHECKSUM_BLOCK = 2**20
_HEADER_BYTES = 512
"""The length in bytes of the header, a line at the end of the file."""
_ABANDONED_SECONDS = 3_600.0
"""The age from which the temporary file of a killed process is deleted."""


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
    """Return whether the extra `ann` is installed."""
    return find_spec("usearch") is not None


@dataclass(frozen=True)
class VectorGraph:
    """An immutable graph over the vectors of some texts, whose ids ascend in `text_ids`.

    `buffer` is the memory that it reads from, which must live as long as the graph.
    """

    index: _Index
    text_ids: Array
    buffer: memoryview

    def nearest(self, vector: NDArray[np.float32], count: int) -> Array:
        """Return the ids of approximately the `count` nearest texts."""
        found = self.index.search(vector, min(count, len(self.text_ids)), threads=1).keys
        return np.ascontiguousarray(found).view(np.int64)

    def removed_share(self, meanings: Array) -> float:
        """Return the share of its texts that are not among these."""
        return 1 - float(np.mean(np.isin(self.text_ids, meanings))) if len(self.text_ids) else 0.0

    @classmethod
    def build(
        cls, path: Path, model: str, meanings: Array, rows: NDArray[np.float32], stopped: Callable[[], bool]
    ) -> "VectorGraph | None":
        """Build the graph of these vectors and write it to `path`; None if it was stopped or can't be written.

        An older graph at `path` is extended, unless many of its vectors were deleted.
        """
        index, older = _create_index(rows.shape[1]), cls.read(path, model, rows.shape[1])
        known_ids: Array = np.zeros(0, dtype=np.int64)
        if older is not None and older.removed_share(meanings) < _MAX_STALE_SHARE:
            index.load(older.buffer)
            known_ids = older.text_ids
        new_rows = np.flatnonzero(~np.isin(meanings, known_ids))
        for start in range(0, len(new_rows), _BUILD_BATCH):
            if stopped():
                return None
            places = new_rows[start : start + _BUILD_BATCH]
            index.add(meanings[places].view(np.uint64), rows[places], threads=1)
        try:
            _write_graph(path, model, index, np.union1d(known_ids, meanings), rows.shape[1])
        except OSError:
            return None
        return cls.read(path, model, rows.shape[1])

    @classmethod
    def read(cls, path: Path, model: str, dimension: int) -> "VectorGraph | None":
        """Return the graph at `path`; None if there is none of this model and dimension, or it is damaged."""
        try:
            with path.open("rb") as file:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            header = decode_json(bytes(content[-_HEADER_BYTES:]))
            count, size = int(header["count"]), int(header["size"])
            if header != _header(model, dimension, count, size, _checksum(content[:-_HEADER_BYTES])):
                return None
            meanings = np.frombuffer(content[size : size + 8 * count], dtype="<i8").astype(np.int64)
            index = _create_index(dimension)
            index.view(content[:size])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            return None
        return cls(index, meanings, content[:size]) if len(index) == len(meanings) else None


@cache
def _usearch() -> Any:
    """Return the module of the extra. Import onnxruntime first if installed: after usearch its import crashes."""
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
    """Replace the graph at `path` atomically."""
    for left in path.parent.glob(f"{path.name}.*.new"):
        if left.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
            left.unlink(missing_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        index.save(str(temporary))
        size = temporary.stat().st_size
        with temporary.open("r+b") as file:
            file.seek(size)
            file.write(meanings.astype("<i8").tobytes())
            file.flush()
            with memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as content:
                header = json.dumps(_header(model, dimension, len(meanings), size, _checksum(content)))
            file.write(header.encode().ljust(_HEADER_BYTES))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()


_MAX_MISSING_SHARE, _MAX_REMOVED_SHARE = 1 / 8, 1 / 4


@dataclass(frozen=True, kw_only=True)
class GraphLookup:
    """A graph with the matrix row of each of its vectors, and the rows before `row_count` that it lacks.

    A deleted vector has the row -1.
    """

    graph: VectorGraph
    rows: Array
    missing: Array
    row_count: int

    @classmethod
    def create(cls, graph: VectorGraph, meanings: Array, places: Callable[[Array], Array]) -> "GraphLookup":
        """Create the lookup for rows with these texts; `places` returns the row of each text."""
        missing = np.flatnonzero(~np.isin(meanings, graph.text_ids))
        return cls(graph=graph, rows=places(graph.text_ids), missing=missing, row_count=len(meanings))

    def is_stale(self, count: int) -> bool:
        """Return whether too many of `count` vectors are missing in the graph, or too many of its vectors deleted."""
        behind = len(self.missing) + count - self.row_count
        return behind > _MAX_MISSING_SHARE * count or int(np.sum(self.rows < 0)) > _MAX_REMOVED_SHARE * max(
            len(self.rows), 1
        )

    def nearest(self, rows: NDArray[np.float32], vector: NDArray[np.float32], count: int) -> Array:
        """Return approximately the `count` nearest rows, and candidates among the rows that the graph lacks."""
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
