"""A vector index by id: exact cosine search over the vectors of one model, in one SQLite file.

Vectors of two models, or of two dimensions, are never compared.

Invariant: the file is a cache. If lost or damaged it starts empty, and no database error is raised to the caller.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from zlib import adler32, crc32

import numpy as np
from numpy.typing import NDArray

from ricordo.lazy import dataclass
from ricordo.search.tables import CacheDatabase
from ricordo.storage.sqlite import Commit, Connection, Database, Schema

__all__ = ["Vector", "VectorIndex", "VectorMatch", "VectorSearchResult", "text_digest"]


_SCHEMA = Schema(
    owner=0x52495645,
    steps=(
        (
            # numbers only grow, so rows written since the last load have higher ones
            """CREATE TABLE vector (
                number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, digest TEXT NOT NULL, model TEXT NOT NULL,
                dimension INTEGER NOT NULL, numbers BLOB NOT NULL, UNIQUE (id, model))""",
            "CREATE INDEX vector_model ON vector (model)",
        ),
    ),
)
_LITTLE_ENDIAN = np.dtype("<f4")
_MIN_SORTED = 256
_DIGITS = 6
_MIN_ROWS = 1_024


@dataclass(frozen=True, kw_only=True)
class Vector:
    """The vector of a text: `digest` identifies the text, `numbers` is normalized to length 1."""

    id: str
    digest: str
    numbers: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class VectorMatch:
    """A vector that was found; `cosine` is in -1..1, higher is nearer."""

    id: str
    cosine: float


@dataclass(frozen=True, kw_only=True)
class VectorSearchResult:
    """The nearest vectors, best first, and the digests of all searchable vectors, by id."""

    matches: tuple[VectorMatch, ...] = ()
    digests: Mapping[str, str]


def text_digest(text: str) -> str:
    """Return a digest that distinguishes two texts with the same id: 16 hex digits, CRC-32 and Adler-32."""
    data = text.encode("utf-8", "surrogatepass")
    return f"{crc32(data):08x}{adler32(data):08x}"


class VectorIndex:
    """The vectors of one model at one path; those of other models in the same file are ignored.

    After vectors of some dimension were added or searched for, those of another dimension are not found either.
    """

    def __init__(
        self, database_path: Path, model: str, *, commit: Commit | None = None, busy_seconds: float = 5.0
    ) -> None:
        """Prepare the index without opening a file. `busy_seconds` is how long to wait for another process."""
        self._file = CacheDatabase(database_path, commit=commit, busy_seconds=busy_seconds, schema=_SCHEMA)
        self._model = model
        self._length = 0
        self._matrix: tuple[Database, _VectorMatrix] | None = None

    @property
    def error(self) -> str:
        """Why the last use of the file failed; empty if it succeeded."""
        return self._file.error

    async def add(self, vectors: Sequence[Vector]) -> bool:
        """Store vectors of one dimension, replacing those with the same ids; return False if the file can't be used.

        Vectors of this model in another dimension are removed: the model has changed.
        """
        if not vectors:
            return True
        self._length = len(vectors[0].numbers)

        async def write(database: Database) -> bool:
            matrix = self._matrix_for(database)
            await database.write(lambda connection: _insert_vectors(connection, self._model, vectors))
            await database.read(lambda connection: matrix.load(connection, self._length))
            return True

        return bool(await self._file.run(write))

    async def remove(self, ids: Collection[str]) -> None:
        """Remove the vectors of these ids, for all models."""

        async def write(database: Database) -> None:
            matrix = self._matrix_for(database)
            await database.write(lambda connection: _delete_vectors(connection, ids))
            await database.read(lambda connection: matrix.drop(connection, ids, self._length))

        await self._file.run(write)

    async def retain(self, ids: Collection[str]) -> None:
        """Remove the vectors of all other ids and of other models."""

        async def write(database: Database) -> None:
            matrix = self._matrix_for(database)
            await database.write(lambda connection: _retain_vectors(connection, self._model, frozenset(ids)))
            await database.read(lambda connection: matrix.load(connection, self._length))

        await self._file.run(write)

    async def digests(self) -> Mapping[str, str]:
        """Return the digests of the texts that have a vector, by id; empty if the file can't be used."""

        async def read(database: Database) -> Mapping[str, str]:
            matrix = self._matrix_for(database)
            await database.read(lambda connection: matrix.load(connection, self._length))
            return matrix.digests

        return await self._file.run(read) or {}

    async def search(
        self, vector: NDArray[np.float32], limit: int, *, passes: Callable[[str, str], bool] | None = None
    ) -> VectorSearchResult:
        """Return the `limit` vectors nearest to a normalized vector; among equals the highest id first.

        Only vectors for which `passes(id, digest)` is true are returned. The result is empty if the file can't be used,
        or has no vectors of this dimension.
        """

        self._length = len(vector)

        def look(matrix: "_VectorMatrix", connection: Connection) -> VectorSearchResult:
            matrix.load(connection, len(vector))
            return VectorSearchResult(matches=tuple(matrix.nearest(vector, limit, passes)), digests=matrix.digests)

        async def read(database: Database) -> VectorSearchResult:
            matrix = self._matrix_for(database)
            return await database.read(lambda connection: look(matrix, connection))

        return await self._file.run(read) or VectorSearchResult(digests={})

    async def close(self) -> None:
        """Close the file; closing it again does nothing."""
        await self._file.close()

    def _matrix_for(self, database: Database) -> "_VectorMatrix":
        if self._matrix is None or self._matrix[0] is not database:
            self._matrix = (database, _VectorMatrix(self._model))
        return self._matrix[1]


class _VectorMatrix:
    """The vectors of one model and dimension in memory; used only within the database's calls, one at a time."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._reset(0)

    def _reset(self, dimension: int) -> None:
        """Start again with vectors of this dimension."""
        self._dimension = dimension
        self._number = 0
        self.digests: dict[str, str] = {}
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._rows: NDArray[np.float32] = np.zeros((0, dimension), dtype=np.float32)
        self._live: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def load(self, connection: Connection, dimension: int) -> None:
        """Load the vectors written since the last call if they have this dimension, or any dimension if it is 0."""
        stored = _dimension(connection, self._model)
        size = dimension or stored
        if size != self._dimension or stored != size:
            self._reset(size)
        count, number = _count_and_newest(connection, self._model)
        if stored != size or (count, number) == (len(self.digests), self._number):
            return
        self._read_rows(connection)
        if len(self.digests) != count:
            # another process removed some, and they can't be identified
            self._reset(size)
            self._read_rows(connection)

    def drop(self, connection: Connection, ids: Collection[str], dimension: int) -> None:
        """Drop the removed vectors, and load those written since the last call."""
        for identity in ids:
            if identity in self._places:
                self._live[self._places.pop(identity)] = False
                del self.digests[identity]
        self.load(connection, dimension)

    def nearest(
        self, vector: NDArray[np.float32], limit: int, passes: Callable[[str, str], bool] | None
    ) -> Iterator[VectorMatch]:
        """Yield the nearest vectors that pass, best first."""
        found = 0
        for row, cosine in self._by_cosine(vector, max(limit, _MIN_SORTED)):
            if found == limit:
                return
            identity = self._ids[row]
            if passes is None or passes(identity, self.digests[identity]):
                found += 1
                yield VectorMatch(id=identity, cosine=cosine)

    def _by_cosine(self, vector: NDArray[np.float32], first: int) -> Iterator[tuple[int, float]]:
        """Yield rows and cosines, best first; the first ones without sorting all rows."""
        live = np.flatnonzero(self._live[: len(self._ids)])
        # the position of a row may change the last digits of its product; rounding keeps the order stable
        cosines = np.round(self._rows[: len(self._ids)] @ vector, _DIGITS)
        least = np.partition(cosines[live], -first)[-first] if len(live) > first else np.float32(-2.0)
        for rows in (live[cosines[live] >= least], live[cosines[live] < least]):
            # equals are ordered by descending id, which does not depend on when they were added
            ordered = sorted(map(int, rows), key=lambda row: (cosines[row], self._ids[row]), reverse=True)
            yield from ((row, float(cosines[row])) for row in ordered)

    def _read_rows(self, connection: Connection) -> None:
        added = connection.execute(
            "SELECT number, id, digest, numbers FROM vector WHERE model = ? AND dimension = ? AND number > ? "
            "ORDER BY number",
            (self._model, self._dimension, self._number),
        ).fetchall()
        if not added:
            return
        numbers = np.frombuffer(b"".join(row[3] for row in added), dtype=_LITTLE_ENDIAN)
        start, end = len(self._ids), len(self._ids) + len(added)
        self._grow(end)
        self._rows[start:end] = numbers.reshape(len(added), self._dimension)
        self._live[start:end] = True
        for row, (number, identity, digest, _) in enumerate(added, start):
            if identity in self._places:
                self._live[self._places[identity]] = False
            self._places[identity] = row
            self._ids.append(identity)
            self.digests[identity] = digest
            self._number = number

    def _grow(self, size: int) -> None:
        if size > len(self._rows):
            capacity = max(size, 2 * len(self._rows), _MIN_ROWS)
            rows = np.zeros((capacity, self._dimension), dtype=np.float32)
            rows[: len(self._ids)] = self._rows[: len(self._ids)]
            live = np.zeros(capacity, dtype=np.bool_)
            live[: len(self._ids)] = self._live[: len(self._ids)]
            self._rows, self._live = rows, live


def _insert_vectors(connection: Connection, model: str, vectors: Sequence[Vector]) -> None:
    dimension = len(vectors[0].numbers)
    if _dimension(connection, model) not in {0, dimension}:
        connection.execute("DELETE FROM vector WHERE model = ?", (model,))
    # a replaced row gets a new number, so that other processes load it
    connection.executemany(
        "INSERT OR REPLACE INTO vector (id, digest, model, dimension, numbers) VALUES (?, ?, ?, ?, ?)",
        [
            (vector.id, vector.digest, model, dimension, vector.numbers.astype(_LITTLE_ENDIAN).tobytes())
            for vector in vectors
        ],
    )


def _delete_vectors(connection: Connection, ids: Collection[str]) -> None:
    connection.executemany("DELETE FROM vector WHERE id = ?", [(identity,) for identity in ids])


def _retain_vectors(connection: Connection, model: str, ids: Collection[str]) -> None:
    connection.execute("DELETE FROM vector WHERE model <> ?", (model,))
    _delete_vectors(connection, [row[0] for row in connection.execute("SELECT id FROM vector") if row[0] not in ids])


def _count_and_newest(connection: Connection, model: str) -> tuple[int, int]:
    """Return the number of the model's vectors and the number of the newest; both are read from an index."""
    counted = "SELECT count(*), coalesce(max(number), 0) FROM vector WHERE model = ?"
    count, number = connection.execute(counted, (model,)).fetchone()
    return int(count), int(number)


def _dimension(connection: Connection, model: str) -> int:
    """Return the dimension of the model's vectors, 0 if it has none."""
    row = connection.execute("SELECT dimension FROM vector WHERE model = ? LIMIT 1", (model,)).fetchone()
    return int(row[0]) if row else 0
