"""The vectors of texts in a file next to the index, by the hash of the text: each text is embedded only once.

A vector is stored in one byte a number, as 255 levels between the highest number and its negative. What is searched is
always the vector of these levels, also before it was ever read from the file, so a search gives the same result
whoever embedded the texts.

Invariant: the file is a cache. Without it, vectors are held in memory for the life of the process, and no database
error is raised to the caller.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from ricordo.lazy import dataclass
from ricordo.search.ann import (
    MIN_BOUNDED_NUMBERS,
    BackgroundBuild,
    GraphLookup,
    VectorBounds,
    VectorGraph,
    build_bounds,
    is_graph_available,
)
from ricordo.search.corpus import Array
from ricordo.search.tables import CacheDatabase
from ricordo.storage.sqlite import Commit, Connection, Database, Schema

__all__ = ["VectorCache", "VectorSnapshot"]


_SCHEMA = Schema(
    owner=0x5249564D,
    steps=(
        (
            # numbers only grow, so rows written since the last load have higher ones
            """CREATE TABLE vector (
                number INTEGER PRIMARY KEY AUTOINCREMENT, meaning INTEGER NOT NULL, model TEXT NOT NULL,
                dimension INTEGER NOT NULL, numbers BLOB NOT NULL, UNIQUE (model, meaning))""",
        ),
        (
            "CREATE TABLE model (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL)",
            """INSERT INTO model (name, dimension)
                SELECT model, dimension FROM (SELECT model, dimension, max(number) FROM vector GROUP BY model)""",
            # what is in it becomes levels when it is loaded
            "ALTER TABLE vector RENAME TO float_vector",
            """CREATE TABLE vector (
                number INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, meaning INTEGER NOT NULL,
                levels BLOB NOT NULL, UNIQUE (model, meaning))""",
        ),
    ),
)
_LITTLE_ENDIAN = np.dtype("<f4")
_MAX_LEVEL = 127
_READ_BATCH = 4_096
_MIN_ROWS = 1_024
_MAX_UNBOUNDED_SHARE = 1 / 8
"""The maximum share of vectors without bounds before the bounds are built again."""


@dataclass(frozen=True)
class VectorSnapshot:
    """Vectors at one moment: the ids of their texts, and a normalized row for each.

    Later snapshots of the same `generation` begin with the same rows and may have more. The first rows may have
    `bounds`, or a `graph_lookup`.
    """

    generation: int
    text_ids: Array
    rows: NDArray[np.float32]
    bounds: VectorBounds | None = None
    graph_lookup: GraphLookup | None = None

    @property
    def dimension(self) -> int:
        """The length of each row; 0 if unknown."""
        return int(self.rows.shape[1])

    @cached_property
    def order(self) -> Array:
        """The positions of the text ids in ascending order."""
        return np.argsort(self.text_ids)

    def places(self, meanings: Array) -> Array:
        """Return the row of each text's vector, -1 if it has none."""
        if not len(self.text_ids):
            return np.full(len(meanings), -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self.text_ids, meanings, sorter=self.order), len(self.text_ids) - 1)
        places = self.order[at]
        found: Array = np.where(self.text_ids[places] == meanings, places, -1).astype(np.int32)
        return found


class VectorCache:
    """The vectors of one model at one path. Only `current` may be used by two tasks at once."""

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
        """Prepare the cache without opening a file.

        From `ann_vectors` vectors on, an approximate index is built if the extra `ann` is installed; None or 0 means
        never. `check` raises if the folder of the workspace has been replaced by another one.
        """
        self._file = CacheDatabase(path, commit=commit, busy_seconds=busy_seconds, schema=_SCHEMA, check=check)
        self._model = model
        self._last_number = 0
        self._has_levels = False
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
        """Why the last use of the file failed; empty if it succeeded."""
        return self._file.error

    async def load(self) -> None:
        """Load the vectors written since the last call, in the dimension that was used last."""
        if not self._has_levels:
            self._has_levels = await self._file.run(_convert_floats) is not None
        await self._file.run(lambda database: database.read(self._load))

    async def add(self, meanings: Array, rows: NDArray[np.float32]) -> None:
        """Store vectors of one dimension; those of this model in another one are deleted, as the model has changed."""
        if self.current.dimension not in {0, rows.shape[1]}:
            self._reset(0)
        levels, is_new = _quantize(rows), self.current.places(meanings) < 0
        await anyio.to_thread.run_sync(self._append, meanings[is_new], _normalize(levels[is_new]))
        write = partial(_insert_vectors, model=self._model, meanings=meanings, levels=levels)
        await self._file.run(lambda database: database.write(write))

    async def clear(self) -> None:
        """Delete all vectors of this model, as the embedder returns different ones now."""
        self._reset(0)
        clear = partial(_delete_model, model=self._model)
        await self._file.run(lambda database: database.write(clear))

    async def prune(self, places: Array) -> None:
        """Delete the vectors in these rows, and those of other models."""
        vectors = self.current
        removed_ids = vectors.text_ids[places].tolist()
        keep = np.ones(len(vectors.text_ids), dtype=np.bool_)
        keep[places] = False
        meanings, rows, front = await anyio.to_thread.run_sync(
            lambda: (vectors.text_ids[keep], vectors.rows[keep], vectors.bounds and vectors.bounds.select(keep))
        )
        self._reset(vectors.dimension)
        self._append(meanings, rows)
        guide = vectors.graph_lookup and await anyio.to_thread.run_sync(
            self._create_lookup, vectors.graph_lookup.graph, self.current
        )
        self.current = replace(self.current, bounds=front, graph_lookup=guide)
        remove = partial(_delete_vectors, model=self._model, meanings=removed_ids)
        await self._file.run(lambda database: database.write(remove))

    def start_build(self, *, alone: bool = True) -> None:
        """Build bounds or a graph in the background if there are many vectors and it is missing.

        Bounds are built only if the searched rows are `alone`, without neighbours.
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
        """Wait for the background build."""
        await self._background.wait()

    async def close(self) -> None:
        """Close the file."""
        await self._background.close()
        await self._file.close()

    def _build_bounds(self, stopped: Callable[[], bool]) -> None:
        """Build the bounds of all current vectors; they are dropped if the vectors are replaced meanwhile."""
        now = self.current
        try:
            front = (now.bounds and now.bounds.extend(now.rows)) or build_bounds(now.rows)
        except (MemoryError, np.linalg.LinAlgError):
            front = None
        # without a gain, try again only when there are twice as many vectors
        self._unbounded_count = 0 if front else len(now.text_ids)
        with self._swap_lock:
            if self.current.generation == now.generation and not stopped():
                self.current = replace(self.current, bounds=front)

    def _build_graph(self, stopped: Callable[[], bool]) -> None:
        """Load the stored graph, or build one for all current vectors, which may take minutes."""
        now = self.current
        if not is_graph_available():
            self._ann_vectors = None
            return
        graph = VectorGraph.read(self._graph_path, self._model, now.dimension)
        if graph is None or self._create_lookup(graph, now).is_stale(len(now.text_ids)):
            if self._needs_bounds():
                # bounds are quick to build, and speed up searches until the graph is ready
                self._build_bounds(stopped)
            graph = VectorGraph.build(self._graph_path, self._model, now.text_ids, now.rows, stopped)
        if graph is None:
            # the file can't be written, so do not try again
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
        """Load the newest vectors."""
        model = connection.execute("SELECT id, dimension FROM model WHERE name = ?", (self._model,)).fetchone()
        if model is None:
            return
        dimension = int(model[1])
        if self.current.dimension not in {0, dimension}:
            self._reset(0)
            self._last_number = 0
        newest = connection.execute(
            "SELECT number FROM vector WHERE model = ? ORDER BY number DESC LIMIT 1", (model[0],)
        ).fetchone()
        if newest is None:
            return
        cursor = connection.execute(
            "SELECT number, meaning, levels FROM vector WHERE model = ? AND number > ? ORDER BY number",
            (model[0], self._last_number),
        )
        count, start = int(newest[0]) - self._last_number, len(self.current.text_ids)
        if count > max(start // 4, _MIN_ROWS):
            # reserve space for all rows at once, as each growth step would copy them
            self._reserve(start + count, dimension)
        # the file has each text once, so only vectors that this process added may be here already
        before = self.current
        while added := cursor.fetchmany(_READ_BATCH):
            levels = np.frombuffer(b"".join(row[2] for row in added), dtype=np.int8).reshape(len(added), dimension)
            meanings = np.array([row[1] for row in added], dtype=np.int64)
            rows, sound = _normalize(levels), np.abs(levels.astype(np.int16)).max(axis=1, initial=0) == _MAX_LEVEL
            is_new = sound & (before.places(meanings) < 0)
            self._append(meanings[is_new], rows[is_new])
            self._last_number = added[-1][0]

    def _append(self, meanings: Array, rows: NDArray[np.float32]) -> None:
        """Append rows; readers of the existing rows are not affected."""
        if not len(meanings):
            return
        start, end = len(self.current.text_ids), len(self.current.text_ids) + len(meanings)
        if end > len(self._text_ids) or self._rows.shape[1] != rows.shape[1]:
            self._reserve(max(end, start + start // 4, _MIN_ROWS), rows.shape[1])
        self._rows[start:end] = rows
        self._text_ids[start:end] = meanings
        with self._swap_lock:
            self.current = replace(self.current, text_ids=self._text_ids[:end], rows=self._rows[:end])

    def _reserve(self, capacity: int, dimension: int) -> None:
        """Ensure capacity for so many rows in total."""
        start = len(self.current.text_ids)
        if capacity <= len(self._text_ids) and self._rows.shape[1] == dimension:
            return
        larger = np.zeros((capacity, dimension), dtype=np.float32)
        larger[:start] = self.current.rows if start else 0
        self._text_ids = np.concatenate((self.current.text_ids, np.zeros(capacity - start, dtype=np.int64)))
        self._rows = larger


def _quantize(rows: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return rows as whole levels from -127 to 127, the longest number of each at one end; a row of zeros stays one."""
    highest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scale = np.divide(_MAX_LEVEL, highest, out=np.zeros_like(highest), where=highest > 0)
    levels: NDArray[np.int8] = np.rint(rows * scale).astype(np.int8)
    return levels


def _normalize(levels: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the vectors of these levels, each of length 1; a row of zeros stays one."""
    rows = levels.astype(np.float32)
    # whole numbers add up to the same in any order
    squares = np.einsum("ij,ij->i", levels, levels, dtype=np.int64)
    lengths = np.sqrt(squares).astype(np.float32)[:, np.newaxis]
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


def _insert_vectors(connection: Connection, model: str, meanings: Array, levels: NDArray[np.int8]) -> None:
    dimension = levels.shape[1]
    held = connection.execute("SELECT id, dimension FROM model WHERE name = ?", (model,)).fetchone()
    if held is not None and held[1] != dimension:
        _delete_model(connection, model)
        held = None
    if held is None:
        cursor = connection.execute("INSERT INTO model (name, dimension) VALUES (?, ?)", (model, dimension))
        held = (cursor.lastrowid, dimension)
    connection.executemany(
        "INSERT INTO vector (meaning, model, levels) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [(meaning, held[0], row.tobytes()) for meaning, row in zip(meanings.tolist(), levels, strict=True)],
    )


async def _convert_floats(database: Database) -> bool:
    """Store the vectors of an earlier layout, which had four bytes a number, as levels. Return True."""
    if await database.read(_has_floats):
        await database.write(_store_levels)
    return True


def _has_floats(connection: Connection) -> bool:
    return connection.execute("SELECT 1 FROM float_vector LIMIT 1").fetchone() is not None


def _store_levels(connection: Connection) -> None:
    for model, dimension in connection.execute("SELECT name, dimension FROM model").fetchall():
        cursor = connection.execute(
            "SELECT meaning, numbers FROM float_vector WHERE model = ? AND length(numbers) = ? ORDER BY number",
            (model, dimension * _LITTLE_ENDIAN.itemsize),
        )
        while some := cursor.fetchmany(_READ_BATCH):
            numbers = np.frombuffer(b"".join(row[1] for row in some), dtype=_LITTLE_ENDIAN)
            rows = numbers.reshape(len(some), dimension).astype(np.float32)
            sound = np.abs(np.linalg.norm(rows, axis=1) - 1) < 1e-3
            meanings = np.array([row[0] for row in some], dtype=np.int64)
            _insert_vectors(connection, model, meanings[sound], _quantize(rows[sound]))
    connection.execute("DELETE FROM float_vector")


def _delete_model(connection: Connection, model: str) -> None:
    connection.execute("DELETE FROM vector WHERE model = (SELECT id FROM model WHERE name = ?)", (model,))
    connection.execute("DELETE FROM model WHERE name = ?", (model,))


def _delete_vectors(connection: Connection, model: str, meanings: list[int]) -> None:
    connection.execute("DELETE FROM vector WHERE model <> (SELECT id FROM model WHERE name = ?)", (model,))
    connection.execute("DELETE FROM model WHERE name <> ?", (model,))
    connection.executemany("DELETE FROM vector WHERE meaning = ?", [(meaning,) for meaning in meanings])
