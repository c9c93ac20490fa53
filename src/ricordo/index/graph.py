"""A graph of vectors that leads to most of the nearest without looking at all: for many vectors, by the extra `ann`.

It is approximate, so it only says which texts to look at. It lies in a file of its own beside the vectors: the graph as
usearch writes it, the texts whose vectors it holds, and a line that tells of which model they are, with a checksum.

Invariant: the file can be thrown away. One that is damaged, or of another model or length, counts as none.
"""

import json
import mmap
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ricordo.index.postings import Array
from ricordo.messages.jsontext import decode_json

__all__ = ["VectorGraph", "is_graph_available"]

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
        "format": _GRAPH_FORMAT, "model": model, "dimension": dimension, "count": count, "size": size, "checksum": checksum,
    }  # fmt: skip


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
