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
from ricordo.messages.jsontext import decoded

__all__ = ["Graph", "graph_is_possible"]

_FORMAT = 1
_LINKS, _LOOKED_AT_TO_ADD, _LOOKED_AT = 16, 128, 512
"""Neighbours of a vector, and how many are looked at to find them, and to find those of a query."""
_AT_ONCE = 1_000
_MOST_GONE = 0.25
"""From which share of vectors that are gone on a graph is made anew."""
_BLOCK = 2**20
_TAIL = 512
"""Bytes of the line at the end of the file."""
_LEFT_SECONDS = 3_600.0
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


def graph_is_possible() -> bool:
    """Tell whether the extra `ann` is installed."""
    return find_spec("usearch") is not None


@dataclass(frozen=True)
class Graph:
    """A graph over the vectors of some texts, whose numbers ascend in `meanings`. It is never changed.

    What it was read from is its `memory`, which has to last as long as it does.
    """

    index: _Index
    meanings: Array
    memory: memoryview

    def nearest(self, vector: NDArray[np.float32], count: int) -> Array:
        """Return the numbers of about the `count` nearest texts."""
        found = self.index.search(vector, min(count, len(self.meanings)), threads=1).keys
        return np.ascontiguousarray(found).view(np.int64)

    def gone(self, meanings: Array) -> float:
        """Return which share of what it holds is not among these texts."""
        return 1 - float(np.mean(np.isin(self.meanings, meanings))) if len(self.meanings) else 0.0

    @classmethod
    def made(
        cls, path: Path, model: str, meanings: Array, rows: NDArray[np.float32], stopped: Callable[[], bool]
    ) -> "Graph | None":
        """Make the graph of these vectors, and keep it at `path`; None when it shall end early, or can't be written.

        What an older graph at `path` holds is taken from there, unless much of it is gone.
        """
        index, older = _empty(rows.shape[1]), cls.read(path, model, rows.shape[1])
        known: Array = np.zeros(0, dtype=np.int64)
        if older is not None and older.gone(meanings) < _MOST_GONE:
            index.load(older.memory)
            known = older.meanings
        fresh = np.flatnonzero(~np.isin(meanings, known))
        for start in range(0, len(fresh), _AT_ONCE):
            if stopped():
                return None
            places = fresh[start : start + _AT_ONCE]
            index.add(meanings[places].view(np.uint64), rows[places], threads=1)
        try:
            _write(path, model, index, np.union1d(known, meanings), rows.shape[1])
        except OSError:
            return None
        return cls.read(path, model, rows.shape[1])

    @classmethod
    def read(cls, path: Path, model: str, dimension: int) -> "Graph | None":
        """Return the graph at `path`; None when there is none of this model and length, or it is damaged."""
        try:
            with path.open("rb") as file:
                whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            told = decoded(bytes(whole[-_TAIL:]))
            count, size = int(told["count"]), int(told["size"])
            if told != _told(model, dimension, count, size, _checksum(whole[:-_TAIL])):
                return None
            meanings = np.frombuffer(whole[size : size + 8 * count], dtype="<i8").astype(np.int64)
            index = _empty(dimension)
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


def _empty(dimension: int) -> _Index:
    made = _usearch().Index(
        ndim=dimension, metric="ip", dtype="f16", connectivity=_LINKS, expansion_add=_LOOKED_AT_TO_ADD,
        expansion_search=_LOOKED_AT, enable_key_lookups=False,
    )  # fmt: skip
    return cast("_Index", made)


def _told(model: str, dimension: int, count: int, size: int, checksum: int) -> dict[str, str | int]:
    return {
        "format": _FORMAT, "model": model, "dimension": dimension, "count": count, "size": size, "checksum": checksum,
    }  # fmt: skip


def _checksum(data: memoryview) -> int:
    checksum = 0
    for start in range(0, len(data), _BLOCK):
        checksum = crc32(data[start : start + _BLOCK], checksum)
    return checksum


def _write(path: Path, model: str, index: _Index, meanings: Array, dimension: int) -> None:
    """Put a graph in place of the one at `path`, whole or not at all."""
    for left in path.parent.glob(f"{path.name}.*.new"):
        if left.stat().st_mtime < time.time() - _LEFT_SECONDS:
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
                told = json.dumps(_told(model, dimension, len(meanings), size, _checksum(whole)))
            file.write(told.encode().ljust(_TAIL))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        with suppress(OSError):
            fresh.unlink()
