"""What stands beside a chunk in its document: looked up for the few that are shown, and never for candidates.

Invariant: it is of the same document as it is now. A chunk that no longer stands where it was found has nothing beside
it, and neither has one that a line apart tells of something else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ricordo.database.sqlite import Connection
from ricordo.index.contract import Chunk, DocumentSort
from ricordo.index.queries import load_chunks

__all__ = ["ChunkNeighbours", "ChunkLocation", "NeighbourIndex", "find_neighbours", "find_neighbours_in"]

_SUPERSEDED_MARKER = "[state:: superseded"
_SORTS_WITH_HEADINGS: frozenset[DocumentSort] = frozenset({"curated", "session", "note"})
_BEFORE_SQL = "(line, part) < (?, ?) AND line <= ? ORDER BY line DESC, part DESC"
_AFTER_SQL = "(line, part) > (?, ?) AND line >= ? ORDER BY line, part"


@dataclass(frozen=True, kw_only=True)
class ChunkLocation:
    """Where a chunk was found, and what it says there."""

    path: str
    line_number: int
    content: str


@dataclass(frozen=True, kw_only=True)
class ChunkNeighbours:
    """A chunk as it stands, and what belongs to it right before and after: None where nothing does."""

    chunk: Chunk
    before: Chunk | None = None
    after: Chunk | None = None


@runtime_checkable
class NeighbourIndex(Protocol):
    """An index that can tell what stands beside a chunk."""

    async def beside(self, spots: Sequence[ChunkLocation]) -> list[ChunkNeighbours | None]:
        """Return what stands at and beside each of these, in their order; None for one that stands there no more."""
        ...


def find_neighbours(connection: Connection, spots: Sequence[ChunkLocation]) -> list[ChunkNeighbours | None]:
    """Return what stands at and beside each of these in the tables."""
    return [_find_chunk_neighbours(connection, spot) for spot in spots]


def find_neighbours_in(document: Sequence[Chunk], spot: ChunkLocation) -> ChunkNeighbours | None:
    """Return what stands at and beside a spot in a document that was read; None if it stands there no more."""
    ordered = sorted(document, key=lambda chunk: (chunk.line_number, chunk.part))
    for at, chunk in enumerate(ordered):
        if (chunk.line_number, chunk.content) == (spot.line_number, spot.content):
            before, after = ordered[at - 1 : at] if at else [], ordered[at + 1 : at + 2]
            return _related_neighbours(chunk, before, after)
    return None


def _find_chunk_neighbours(connection: Connection, spot: ChunkLocation) -> ChunkNeighbours | None:
    found = connection.execute(
        """SELECT chunk.id, document, line, part FROM chunk JOIN document ON document.id = chunk.document
        WHERE path = ? AND line = ? AND content = ? LIMIT 1""",
        (spot.path, spot.line_number, spot.content.encode("utf-8", "replace").decode()),
    ).fetchone()
    if found is None:
        return None
    number, document, line, part = found
    near = [_adjacent_id(connection, which, (document, line, part, line)) for which in (_BEFORE_SQL, _AFTER_SQL)]
    held = load_chunks(connection, [number, *(each for row in near for each in row)])
    before, after = ([held[each] for each in row if each in held] for row in near)
    return _related_neighbours(held[number], before, after) if number in held else None


def _adjacent_id(connection: Connection, which: str, place: tuple[int, ...]) -> list[int]:
    row = connection.execute(f"SELECT id FROM chunk WHERE document = ? AND {which} LIMIT 1", place).fetchone()
    return [row[0]] if row else []


def _related_neighbours(chunk: Chunk, before: Sequence[Chunk], after: Sequence[Chunk]) -> ChunkNeighbours:
    return ChunkNeighbours(
        chunk=chunk,
        before=next((each for each in before if _is_related(chunk, each)), None),
        after=next((each for each in after if _is_related(chunk, each)), None),
    )


def _is_related(chunk: Chunk, other: Chunk) -> bool:
    """Tell whether what stands next to a chunk is about the same: of one conversation, session or heading."""
    if _SUPERSEDED_MARKER in other.markup:
        return False
    if chunk.sort == "ledger":
        return bool(chunk.session) and chunk.session == other.session
    if chunk.sort in _SORTS_WITH_HEADINGS:
        return chunk.heading == other.heading
    return chunk.sort != "profile"
