"""The vectors of texts in a file beside the index, by the number of the text: what was embedded once is kept.

A vector belongs to a text, a model and a length, and to no place: an index that is made anew finds it again. What the
file holds is kept in one matrix, to which is added what was written since, by other processes too.

Invariant: the file is a cache. Without it, or with a damaged one, vectors are kept in memory as long as the process
lasts, and no trouble of the database reaches the caller.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from ricordo.database.sqlite import Commit, Connection, Schema
from ricordo.index.background import Background
from ricordo.index.front import LEAST_NUMBERS, Front, made
from ricordo.index.graph import Graph, graph_is_possible
from ricordo.index.guide import Guide
from ricordo.index.index_file import IndexFile
from ricordo.index.postings import Array

__all__ = ["VectorCache", "Vectors"]

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
_AT_ONCE = 4_096
_LEAST_ROWS = 1_024
_BEHIND = 1 / 8
"""Which share of the vectors may be without a front before it is made for them too."""


@dataclass(frozen=True)
class Vectors:
    """Vectors as they were at one moment: the numbers of their texts, and a row of the length 1 for each.

    Of one `generation` later ones have the same rows in front, and more behind them. The first rows may have a `front`,
    or a `guide` to them.
    """

    generation: int
    meanings: Array
    rows: NDArray[np.float32]
    front: Front | None = None
    guide: Guide | None = None

    @property
    def dimension(self) -> int:
        """The length of each row; 0 when none is known."""
        return int(self.rows.shape[1])

    @cached_property
    def order(self) -> Array:
        """The places of the meanings, ascending."""
        return np.argsort(self.meanings)

    def places(self, meanings: Array) -> Array:
        """Return in which row each of these texts has its vector, -1 where it has none."""
        if not len(self.meanings):
            return np.full(len(meanings), -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self.meanings, meanings, sorter=self.order), len(self.meanings) - 1)
        places = self.order[at]
        found: Array = np.where(self.meanings[places] == meanings, places, -1).astype(np.int32)
        return found


class VectorCache:
    """The vectors of one model at one path. Not to be used by two tasks at once but for `now`."""

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
        self._file = IndexFile(path, commit=commit, busy_seconds=busy_seconds, schema=_SCHEMA, check=check)
        self._model = model
        self._number = 0
        self._changing = threading.Lock()
        self._background = Background()
        self._flat = 0
        self._ann_vectors = ann_vectors
        self._graph_path = path.with_suffix(".ann")
        self._meanings: Array = np.zeros(0, dtype=np.int64)
        self._rows: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self.now = Vectors(0, self._meanings, self._rows)

    @property
    def trouble(self) -> str:
        """Why the file could not be used last time; empty when it could."""
        return self._file.trouble

    async def load(self) -> None:
        """Take in what was written since, in the length that was used last."""
        await self._file.use(lambda database: database.read(self._load))

    async def add(self, meanings: Array, rows: NDArray[np.float32]) -> None:
        """Keep vectors of one length; those of this model with another length are forgotten: the model has changed."""
        if self.now.dimension not in {0, rows.shape[1]}:
            self._start(0)
        fresh = self.now.places(meanings) < 0
        await anyio.to_thread.run_sync(self._append, meanings[fresh], rows[fresh])
        write = partial(_put, model=self._model, meanings=meanings, rows=rows)
        await self._file.use(lambda database: database.write(write))

    async def forget_length(self) -> None:
        """Forget all vectors of this model: the embedder gives others now."""
        self._start(0)
        clear = partial(_clear, model=self._model)
        await self._file.use(lambda database: database.write(clear))

    async def prune(self, places: Array) -> None:
        """Forget the vectors in these rows, and those of other models."""
        held = self.now
        gone = held.meanings[places].tolist()
        kept = np.ones(len(held.meanings), dtype=np.bool_)
        kept[places] = False
        meanings, rows, front = await anyio.to_thread.run_sync(
            lambda: (held.meanings[kept], held.rows[kept], held.front and held.front.kept(kept))
        )
        self._start(held.dimension)
        self._append(meanings, rows)
        guide = held.guide and await anyio.to_thread.run_sync(self._guide, held.guide.graph, self.now)
        self.now = replace(self.now, front=front, guide=guide)
        remove = partial(_remove, model=self._model, meanings=gone)
        await self._file.use(lambda database: database.write(remove))

    def sharpen(self, *, alone: bool = True) -> None:
        """Make beside everything else what makes many vectors quicker to search, as far as it is not there.

        A front is only made where the rows that are searched stand `alone`.
        """
        if self._lacks_graph():
            self._background.start(self._make_graph)
        elif alone and self._lacks_front():
            self._background.start(self._make_front)

    def _lacks_front(self) -> bool:
        now = self.now
        if now.guide is not None or now.rows.size < LEAST_NUMBERS or len(now.meanings) < 2 * self._flat:
            return False
        return now.front is None or len(now.meanings) - len(now.front) > _BEHIND * len(now.meanings)

    def _lacks_graph(self) -> bool:
        now, least = self.now, self._ann_vectors
        if not least or len(now.meanings) < least:
            return False
        return now.guide is None or now.guide.is_old(len(now.meanings))

    async def sharpened(self) -> None:
        """Wait for what is being made beside."""
        await self._background.done()

    async def close(self) -> None:
        """Let the file go."""
        await self._background.close()
        await self._file.close()

    def _make_front(self, stopped: Callable[[], bool]) -> None:
        """Make a front for all vectors there are now; what is made of vectors that are gone meanwhile is dropped."""
        now = self.now
        try:
            front = (now.front and now.front.extended(now.rows)) or made(now.rows)
        except (MemoryError, np.linalg.LinAlgError):
            front = None
        # where there is nothing to gain it is not tried again until there are twice as many
        self._flat = 0 if front else len(now.meanings)
        with self._changing:
            if self.now.generation == now.generation and not stopped():
                self.now = replace(self.now, front=front)

    def _make_graph(self, stopped: Callable[[], bool]) -> None:
        """Read the graph of another time, or make one for all vectors there are now, which may take minutes."""
        now = self.now
        if not graph_is_possible():
            self._ann_vectors = None
            return
        graph = Graph.read(self._graph_path, self._model, now.dimension)
        if graph is None or self._guide(graph, now).is_old(len(now.meanings)):
            if self._lacks_front():
                # that is quick to make, and to search by until then
                self._make_front(stopped)
            graph = Graph.made(self._graph_path, self._model, now.meanings, now.rows, stopped)
        if graph is None:
            # it can't be written, and would not be a second time
            self._ann_vectors = None
            return
        while not stopped():
            before = self.now
            guide = self._guide(graph, before) if before.dimension == now.dimension else None
            with self._changing:
                if self.now.generation == before.generation:
                    self.now = replace(self.now, guide=guide, front=None)
                    return

    @staticmethod
    def _guide(graph: Graph, vectors: Vectors) -> Guide:
        return Guide.of(graph, vectors.meanings, vectors.places)

    def _start(self, dimension: int) -> None:
        self._meanings = np.zeros(0, dtype=np.int64)
        self._rows = np.zeros((0, dimension), dtype=np.float32)
        with self._changing:
            self.now = Vectors(self.now.generation + 1, self._meanings, self._rows)

    def _load(self, connection: Connection) -> None:
        """Take in the newest vectors; the length of the newest one is that of the model."""
        newest = connection.execute(
            "SELECT number, dimension FROM vector WHERE model = ? ORDER BY number DESC LIMIT 1", (self._model,)
        ).fetchone()
        if newest is None:
            return
        dimension = int(newest[1])
        if self.now.dimension not in {0, dimension}:
            self._start(0)
            self._number = 0
        cursor = connection.execute(
            "SELECT number, meaning, numbers FROM vector WHERE model = ? AND dimension = ? AND number > ? "
            "ORDER BY number",
            (self._model, dimension, self._number),
        )
        count, start = int(newest[0]) - self._number, len(self.now.meanings)
        if count > max(start // 4, _LEAST_ROWS):
            # room for all at once, if not all of it is used: what grows step by step is copied as often
            self._reserve(start + count, dimension)
        # the file holds each text once, so only what this process has itself embedded may be there already
        before = self.now
        while added := cursor.fetchmany(_AT_ONCE):
            numbers = np.frombuffer(b"".join(row[2] for row in added), dtype=_LITTLE_ENDIAN)
            meanings = np.array([row[1] for row in added], dtype=np.int64)
            rows = numbers.reshape(len(added), dimension).astype(np.float32)
            sound = np.abs(np.linalg.norm(rows, axis=1) - 1) < 1e-3
            fresh = sound & (before.places(meanings) < 0)
            self._append(meanings[fresh], rows[fresh])
            self._number = added[-1][0]

    def _append(self, meanings: Array, rows: NDArray[np.float32]) -> None:
        """Put rows behind those that are there: whoever looks at those is not disturbed."""
        if not len(meanings):
            return
        start, end = len(self.now.meanings), len(self.now.meanings) + len(meanings)
        if end > len(self._meanings) or self._rows.shape[1] != rows.shape[1]:
            self._reserve(max(end, start + start // 4, _LEAST_ROWS), rows.shape[1])
        self._rows[start:end] = rows
        self._meanings[start:end] = meanings
        with self._changing:
            self.now = replace(self.now, meanings=self._meanings[:end], rows=self._rows[:end])

    def _reserve(self, room: int, dimension: int) -> None:
        """Make room for so many rows in all, where there is less."""
        start = len(self.now.meanings)
        if room <= len(self._meanings) and self._rows.shape[1] == dimension:
            return
        larger = np.zeros((room, dimension), dtype=np.float32)
        larger[:start] = self.now.rows if start else 0
        self._meanings = np.concatenate((self.now.meanings, np.zeros(room - start, dtype=np.int64)))
        self._rows = larger


def _put(connection: Connection, model: str, meanings: Array, rows: NDArray[np.float32]) -> None:
    dimension = rows.shape[1]
    connection.execute("DELETE FROM vector WHERE model = ? AND dimension <> ?", (model, dimension))
    connection.executemany(
        "INSERT INTO vector (meaning, model, dimension, numbers) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (meaning, model, dimension, row.astype(_LITTLE_ENDIAN).tobytes())
            for meaning, row in zip(meanings.tolist(), rows, strict=True)
        ],
    )


def _clear(connection: Connection, model: str) -> None:
    connection.execute("DELETE FROM vector WHERE model = ?", (model,))


def _remove(connection: Connection, model: str, meanings: list[int]) -> None:
    connection.execute("DELETE FROM vector WHERE model <> ?", (model,))
    connection.executemany("DELETE FROM vector WHERE meaning = ?", [(meaning,) for meaning in meanings])
