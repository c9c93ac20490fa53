"""The vectors of texts in a file beside the index, by the hash of the text: what was embedded once is kept.

Invariant: the file is a cache. Without it vectors are kept in memory as long as the process lasts, and no error of the
database reaches the caller.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from ricordo.search.ann import (
    MIN_BOUNDED_NUMBERS,
    BackgroundBuild,
    GraphLookup,
    VectorBounds,
    VectorGraph,
    build_bounds,
    is_graph_available,
)
from ricordo.search.cache_database import CacheDatabase
from ricordo.search.postings import Array
from ricordo.storage.sqlite import Commit, Connection, Schema

__all__ = ["VectorCache", "VectorSnapshot"]


_SCHEMA = Schema(
    owner=0x5249564D,
    steps=(
        (
            # numbers only grow, so what was written since is what has a higher one
            """CREATE TABLE vector (
                number INTEGER PRIMARY KEY AUTOINCREMENT, meaning INTEGER NOT NULL, model TEXT NOT NULL,
                dimension INTEGER NOT NULL, numbers BLOB NOT NULL, UNIQUE (model, meaning))""",
        ),
    ),
)
_LITTLE_ENDIAN = np.dtype("<f4")
_READ_BATCH = 4_096
_MIN_ROWS = 1_024
_MAX_UNBOUNDED_SHARE = 1 / 8
"""Which share of the vectors may be without a front before it is made for them too."""


@dataclass(frozen=True)
class VectorSnapshot:
    """Vectors as they were at one moment: the numbers of their texts, and a row of the length 1 for each.

    Of one `generation` later ones have the same rows in front, and more behind them. The first rows may have a
    `bounds`, or a `graph_lookup` to them.
    """

    generation: int
    text_ids: Array
    rows: NDArray[np.float32]
    bounds: VectorBounds | None = None
    graph_lookup: GraphLookup | None = None

    @property
    def dimension(self) -> int:
        """The length of each row; 0 when none is known."""
        return int(self.rows.shape[1])

    @cached_property
    def order(self) -> Array:
        """The places of the meanings, ascending."""
        return np.argsort(self.text_ids)

    def places(self, meanings: Array) -> Array:
        """Return in which row each of these texts has its vector, -1 where it has none."""
        if not len(self.text_ids):
            return np.full(len(meanings), -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self.text_ids, meanings, sorter=self.order), len(self.text_ids) - 1)
        places = self.order[at]
        found: Array = np.where(self.text_ids[places] == meanings, places, -1).astype(np.int32)
        return found


class VectorCache:
    """The vectors of one model at one path. Not to be used by two tasks at once but for `current`."""

    def __init__(
        self,
        path: Path,
        model: str,
        *,
        commit: Commit | None = None,
        busy_seconds: float = 5.0,
        ann_vectors: int | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Prepare the cache without touching a file.

        From so many vectors on an approximate index is made, where the extra `ann` is installed; None or 0 is never.
        `check` raises where the folder of the workspace is not the one that it was.
        """
        self._file = CacheDatabase(path, commit=commit, busy_seconds=busy_seconds, schema=_SCHEMA, check=check)
        self._model = model
        self._last_number = 0
        self._swap_lock = threading.Lock()
        self._background = BackgroundBuild()
        self._unbounded_count = 0
        self._ann_vectors = ann_vectors
        self._graph_path = path.with_suffix(".ann")
        self._text_ids: Array = np.zeros(0, dtype=np.int64)
        self._rows: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self.current = VectorSnapshot(0, self._text_ids, self._rows)

    @property
    def error(self) -> str:
        """Why the file could not be used last time; empty when it could."""
        return self._file.error

    async def load(self) -> None:
        """Take in what was written since, in the length that was used last."""
        await self._file.run(lambda database: database.read(self._load))

    async def add(self, meanings: Array, rows: NDArray[np.float32]) -> None:
        """Keep vectors of one length; those of this model with another length are forgotten: the model has changed."""
        if self.current.dimension not in {0, rows.shape[1]}:
            self._reset(0)
        fresh = self.current.places(meanings) < 0
        await anyio.to_thread.run_sync(self._append, meanings[fresh], rows[fresh])
        write = partial(_insert_vectors, model=self._model, meanings=meanings, rows=rows)
        await self._file.run(lambda database: database.write(write))

    async def clear(self) -> None:
        """Forget all vectors of this model: the embedder gives others now."""
        self._reset(0)
        clear = partial(_delete_model, model=self._model)
        await self._file.run(lambda database: database.write(clear))

    async def prune(self, places: Array) -> None:
        """Forget the vectors in these rows, and those of other models."""
        held = self.current
        gone = held.text_ids[places].tolist()
        kept = np.ones(len(held.text_ids), dtype=np.bool_)
        kept[places] = False
        meanings, rows, front = await anyio.to_thread.run_sync(
            lambda: (held.text_ids[kept], held.rows[kept], held.bounds and held.bounds.select(kept))
        )
        self._reset(held.dimension)
        self._append(meanings, rows)
        guide = held.graph_lookup and await anyio.to_thread.run_sync(
            self._create_lookup, held.graph_lookup.graph, self.current
        )
        self.current = replace(self.current, bounds=front, graph_lookup=guide)
        remove = partial(_delete_vectors, model=self._model, meanings=gone)
        await self._file.run(lambda database: database.write(remove))

    def start_build(self, *, alone: bool = True) -> None:
        """Make beside everything else what makes many vectors quicker to search, as far as it is not there.

        A front is only made where the rows that are searched stand `alone`.
        """
        if self._needs_graph():
            self._background.start(self._build_graph)
        elif alone and self._needs_bounds():
            self._background.start(self._build_bounds)

    def _needs_bounds(self) -> bool:
        now = self.current
        if (
            now.graph_lookup is not None
            or now.rows.size < MIN_BOUNDED_NUMBERS
            or len(now.text_ids) < 2 * self._unbounded_count
        ):
            return False
        return now.bounds is None or len(now.text_ids) - len(now.bounds) > _MAX_UNBOUNDED_SHARE * len(now.text_ids)

    def _needs_graph(self) -> bool:
        now, least = self.current, self._ann_vectors
        if not least or len(now.text_ids) < least:
            return False
        return now.graph_lookup is None or now.graph_lookup.is_stale(len(now.text_ids))

    async def wait_for_build(self) -> None:
        """Wait for what is being made beside."""
        await self._background.wait()

    async def close(self) -> None:
        """Let the file go."""
        await self._background.close()
        await self._file.close()

    def _build_bounds(self, stopped: Callable[[], bool]) -> None:
        """Make a front for all vectors there are now; what is made of vectors that are gone meanwhile is dropped."""
        now = self.current
        try:
            front = (now.bounds and now.bounds.extend(now.rows)) or build_bounds(now.rows)
        except (MemoryError, np.linalg.LinAlgError):
            front = None
        # where there is nothing to gain it is not tried again until there are twice as many
        self._unbounded_count = 0 if front else len(now.text_ids)
        with self._swap_lock:
            if self.current.generation == now.generation and not stopped():
                self.current = replace(self.current, bounds=front)

    def _build_graph(self, stopped: Callable[[], bool]) -> None:
        """Read the graph of another time, or make one for all vectors there are now, which may take minutes."""
        now = self.current
        if not is_graph_available():
            self._ann_vectors = None
            return
        graph = VectorGraph.read(self._graph_path, self._model, now.dimension)
        if graph is None or self._create_lookup(graph, now).is_stale(len(now.text_ids)):
            if self._needs_bounds():
                # that is quick to make, and to search by until then
                self._build_bounds(stopped)
            graph = VectorGraph.build(self._graph_path, self._model, now.text_ids, now.rows, stopped)
        if graph is None:
            # it can't be written, and would not be a second time
            self._ann_vectors = None
            return
        while not stopped():
            before = self.current
            guide = self._create_lookup(graph, before) if before.dimension == now.dimension else None
            with self._swap_lock:
                if self.current.generation == before.generation:
                    self.current = replace(self.current, graph_lookup=guide, bounds=None)
                    return

    @staticmethod
    def _create_lookup(graph: VectorGraph, vectors: VectorSnapshot) -> GraphLookup:
        return GraphLookup.create(graph, vectors.text_ids, vectors.places)

    def _reset(self, dimension: int) -> None:
        self._text_ids = np.zeros(0, dtype=np.int64)
        self._rows = np.zeros((0, dimension), dtype=np.float32)
        with self._swap_lock:
            self.current = VectorSnapshot(self.current.generation + 1, self._text_ids, self._rows)

    def _load(self, connection: Connection) -> None:
        """Take in the newest vectors; the length of the newest one is that of the model."""
        newest = connection.execute(
            "SELECT number, dimension FROM vector WHERE model = ? ORDER BY number DESC LIMIT 1", (self._model,)
        ).fetchone()
        if newest is None:
            return
        dimension = int(newest[1])
        if self.current.dimension not in {0, dimension}:
            self._reset(0)
            self._last_number = 0
        cursor = connection.execute(
            "SELECT number, meaning, numbers FROM vector WHERE model = ? AND dimension = ? AND number > ? "
            "ORDER BY number",
            (self._model, dimension, self._last_number),
        )
        count, start = int(newest[0]) - self._last_number, len(self.current.text_ids)
        if count > max(start // 4, _MIN_ROWS):
            # room for all at once, if not all of it is used: what grows step by step is copied as often
            self._reserve(start + count, dimension)
        # the file holds each text once, so only what this process has itself embedded may be there already
        before = self.current
        while added := cursor.fetchmany(_READ_BATCH):
            numbers = np.frombuffer(b"".join(row[2] for row in added), dtype=_LITTLE_ENDIAN)
            meanings = np.array([row[1] for row in added], dtype=np.int64)
            rows = numbers.reshape(len(added), dimension).astype(np.float32)
            sound = np.abs(np.linalg.norm(rows, axis=1) - 1) < 1e-3
            fresh = sound & (before.places(meanings) < 0)
            self._append(meanings[fresh], rows[fresh])
            self._last_number = added[-1][0]

    def _append(self, meanings: Array, rows: NDArray[np.float32]) -> None:
        """Put rows behind those that are there: whoever looks at those is not disturbed."""
        if not len(meanings):
            return
        start, end = len(self.current.text_ids), len(self.current.text_ids) + len(meanings)
        if end > len(self._text_ids) or self._rows.shape[1] != rows.shape[1]:
            self._reserve(max(end, start + start // 4, _MIN_ROWS), rows.shape[1])
        self._rows[start:end] = rows
        self._text_ids[start:end] = meanings
        with self._swap_lock:
            self.current = replace(self.current, text_ids=self._text_ids[:end], rows=self._rows[:end])

    def _reserve(self, room: int, dimension: int) -> None:
        """Make room for so many rows in all, where there is less."""
        start = len(self.current.text_ids)
        if room <= len(self._text_ids) and self._rows.shape[1] == dimension:
            return
        larger = np.zeros((room, dimension), dtype=np.float32)
        larger[:start] = self.current.rows if start else 0
        self._text_ids = np.concatenate((self.current.text_ids, np.zeros(room - start, dtype=np.int64)))
        self._rows = larger


def _insert_vectors(connection: Connection, model: str, meanings: Array, rows: NDArray[np.float32]) -> None:
    dimension = rows.shape[1]
    connection.execute("DELETE FROM vector WHERE model = ? AND dimension <> ?", (model, dimension))
    connection.executemany(
        "INSERT INTO vector (meaning, model, dimension, numbers) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (meaning, model, dimension, row.astype(_LITTLE_ENDIAN).tobytes())
            for meaning, row in zip(meanings.tolist(), rows, strict=True)
        ],
    )


def _delete_model(connection: Connection, model: str) -> None:
    connection.execute("DELETE FROM vector WHERE model = ?", (model,))


def _delete_vectors(connection: Connection, model: str, meanings: list[int]) -> None:
    connection.execute("DELETE FROM vector WHERE model <> ?", (model,))
    connection.executemany("DELETE FROM vector WHERE meaning = ?", [(meaning,) for meaning in meanings])
