"""What few searches need: the neighbours of a chunk, and a scan of the files that are not in the index.

Invariant: a chunk that is no longer at the location where it was found has no neighbours.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

import anyio.to_thread

from ricordo.errors import FileMissing, StorageError
from ricordo.guard import Redactor
from ricordo.lazy import dataclass
from ricordo.search.bm25 import (
    LITERAL_SCORE,
    Candidate,
    candidate_statistics,
    rank_candidates,
    unranked_matches,
)
from ricordo.search.chunking import build_rows
from ricordo.search.contract import Chunk, DocumentType, Match, Query
from ricordo.search.documents import (
    QueryWords,
    SearchDocument,
    classify_document,
    contains_text,
    matches_filters,
)
from ricordo.search.tables import load_chunks
from ricordo.storage.contract import FileInfo, FileStore
from ricordo.storage.sqlite import Connection

__all__ = [
    "ChunkLocation",
    "ChunkNeighbours",
    "FileScanner",
    "NeighbourIndex",
    "find_neighbours",
    "find_neighbours_in",
    "merge_matches",
    "newest_first_key",
]


_SUPERSEDED_MARKER = "[state:: superseded"
_TYPES_WITH_HEADINGS: frozenset[DocumentType] = frozenset({"curated", "session", "note"})
_BEFORE_SQL = "(line, part) < (?, ?) AND line <= ? ORDER BY line DESC, part DESC"
_AFTER_SQL = "(line, part) > (?, ?) AND line >= ? ORDER BY line, part"


@dataclass(frozen=True, kw_only=True)
class ChunkLocation:
    """The location of a chunk that was found, and its content there."""

    path: str
    line_number: int
    content: str


@dataclass(frozen=True, kw_only=True)
class ChunkNeighbours:
    """A chunk and its related neighbours right before and after, None where there is none."""

    chunk: Chunk
    before: Chunk | None = None
    after: Chunk | None = None


@runtime_checkable
class NeighbourIndex(Protocol):
    """An index that can return the neighbours of a chunk."""

    async def beside(self, spots: Sequence[ChunkLocation]) -> list[ChunkNeighbours | None]:
        """Return each chunk with its neighbours, in order; None for a chunk that is no longer there."""
        ...


def find_neighbours(connection: Connection, spots: Sequence[ChunkLocation]) -> list[ChunkNeighbours | None]:
    """Return each chunk of the tables with its neighbours, in order; None for a chunk that is no longer there."""
    return [_find_chunk_neighbours(connection, spot) for spot in spots]


def find_neighbours_in(document: Sequence[Chunk], spot: ChunkLocation) -> ChunkNeighbours | None:
    """Return a chunk of a parsed document with its neighbours; None if it is no longer there."""
    chunks = sorted(document, key=lambda chunk: (chunk.line_number, chunk.part))
    for at, chunk in enumerate(chunks):
        if (chunk.line_number, chunk.content) == (spot.line_number, spot.content):
            before, after = chunks[at - 1 : at] if at else [], chunks[at + 1 : at + 2]
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
    ids = [_adjacent_id(connection, which, (document, line, part, line)) for which in (_BEFORE_SQL, _AFTER_SQL)]
    chunks = load_chunks(connection, [number, *(each for row in ids for each in row)])
    before, after = ([chunks[each] for each in row if each in chunks] for row in ids)
    return _related_neighbours(chunks[number], before, after) if number in chunks else None


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
    """Return whether a neighbour belongs to the same conversation, session or heading as the chunk."""
    if _SUPERSEDED_MARKER in other.markup:
        return False
    if chunk.document_type == "ledger":
        return bool(chunk.session) and chunk.session == other.session
    if chunk.document_type in _TYPES_WITH_HEADINGS:
        return chunk.heading == other.heading
    return chunk.document_type != "profile"


_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(kw_only=True)
class FileScanner:
    """Searches the files of one workspace directly, without the secrets that `redactor` finds."""

    files: FileStore
    redactor: Redactor
    _cache: dict[str, tuple[FileInfo, list[Candidate]]] = field(default_factory=dict)

    async def search(
        self, documents: Sequence[tuple[SearchDocument, FileInfo]], query: Query, words: QueryWords, limit: int
    ) -> list[Match]:
        """Return the matches of these documents, best first; a file that can't be read is skipped."""
        candidates: list[Candidate] = []
        for document, info in documents:
            candidates += await self._candidates(document, info)
        return await anyio.to_thread.run_sync(_rank_candidates, candidates, query, words, limit)

    async def beside(self, spots: Sequence[ChunkLocation], folder: str) -> list[ChunkNeighbours | None]:
        """Return each chunk with its neighbours from the files; None for a chunk that is no longer there."""
        read: dict[str, list[Chunk]] = {}
        for path in {spot.path for spot in spots}:
            document, info = classify_document(path, folder), await self.files.info(path)
            if document is not None and info is not None:
                read[path] = [each.chunk for each in await self._candidates(document, info)]
        return [find_neighbours_in(read.get(spot.path, ()), spot) for spot in spots]

    async def _candidates(self, document: SearchDocument, info: FileInfo) -> list[Candidate]:
        cached = self._cache.get(document.path)
        if cached is None or cached[0] != info:
            try:
                data = (await self.files.read(document.path)).data
                cached = (info, await anyio.to_thread.run_sync(_read_candidates, document, data, self.redactor))
            except (FileMissing, StorageError, ValueError, OverflowError, RecursionError):
                return []
            self._cache[document.path] = cached
        return cached[1]


def _read_candidates(document: SearchDocument, data: bytes, redactor: Redactor) -> list[Candidate]:
    return [
        Candidate(chunk=row.chunk, text=row.text, context_text=row.context_text, place=row.place)
        for row in build_rows(document, data, redactor)
    ]


def _rank_candidates(candidates: Sequence[Candidate], query: Query, words: QueryWords, limit: int) -> list[Match]:
    candidates = _apply_bullet_fields(candidates)
    passing = [candidate for candidate in candidates if matches_filters(candidate.chunk, query)]
    if words.groups and (
        found := rank_candidates(
            passing, words, candidate_statistics(candidates, words, query.profile), neighbours=query.neighbours
        )
    ):
        return found[:limit]
    if not query.text.strip():
        return unranked_matches(sorted((one.chunk for one in passing), key=newest_first_key)[:limit], score=0.0)
    literal = [chunk for chunk in _sort_by_position(passing) if contains_text(chunk.content, query.text)]
    return unranked_matches(literal[:limit], score=LITERAL_SCORE, typed=query.text.strip())


def _apply_bullet_fields(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates; pieces of long entries get the fields of the bullets that point to them."""
    bullets = {each.chunk.entry_id: each.chunk for each in candidates if each.chunk.markup}
    return [
        replace(each, chunk=_copy_fields(each.chunk, bullet))
        if each.chunk.document_type == "long" and (bullet := bullets.get(each.chunk.entry_id))
        else each
        for each in candidates
    ]


def _copy_fields(chunk: Chunk, bullet: Chunk) -> Chunk:
    return replace(
        chunk, kind=bullet.kind, tags=bullet.tags, time=bullet.time, session=bullet.session, markup=bullet.markup
    )


def newest_first_key(chunk: Chunk) -> tuple[timedelta, str, int, int]:
    """Return the sort key for newest first; with equal times in one document, the later line is the newer one."""
    line = -chunk.line_number if chunk.time else chunk.line_number
    return (_NEVER - (chunk.time or _NEVER), chunk.path, line, chunk.part)


def _sort_by_position(candidates: Sequence[Candidate]) -> list[Chunk]:
    return sorted((one.chunk for one in candidates), key=lambda chunk: (chunk.path, chunk.line_number, chunk.part))


def merge_matches(indexed: list[Match], scanned: list[Match], limit: int) -> list[Match]:
    """Return both lists merged, best first; among equals indexed matches first, with a score of 0 the newest."""
    both = sorted((*indexed, *scanned), key=_best_first_key)[:limit]
    return [replace(match, rank=rank) for rank, match in enumerate(both, 1)]


def _best_first_key(match: Match) -> tuple[float, tuple[timedelta, str, int, int] | tuple[()]]:
    return (-match.score, () if match.score else newest_first_key(match.chunk))
