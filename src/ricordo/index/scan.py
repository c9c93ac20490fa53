"""Search without an index: the files themselves are read, cut and ranked, so a broken index never looks empty.

The rows of a file are kept as long as its size and time of modification stay, as a broken index is asked more than
once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import anyio.to_thread

from ricordo.errors import FileMissing, StorageError
from ricordo.files.contract import FileInfo, FileStore
from ricordo.guard import Redactor
from ricordo.index.beside import ChunkNeighbours, ChunkLocation, find_neighbours_in
from ricordo.index.chunking import build_rows
from ricordo.index.contract import Chunk, Match, Query
from ricordo.index.documents import SearchDocument, classify_document
from ricordo.index.plan import contains_text, matches_filters
from ricordo.index.scoring import LITERAL_SCORE, Candidate, unranked_matches, rank_candidates, candidate_statistics
from ricordo.index.terms import QueryWords

__all__ = ["FileScanner", "merge_matches", "newest_first_key"]

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(kw_only=True)
class FileScanner:
    """The files of one workspace, read as they are, but for the secrets that `redactor` finds."""

    files: FileStore
    redactor: Redactor
    _cache: dict[str, tuple[FileInfo, list[Candidate]]] = field(default_factory=dict)

    async def search(
        self, documents: Sequence[tuple[SearchDocument, FileInfo]], query: Query, words: QueryWords, limit: int
    ) -> list[Match]:
        """Return what these documents hold for the query, best first; a file that can't be read is passed over."""
        candidates: list[Candidate] = []
        for document, info in documents:
            candidates += await self._candidates(document, info)
        return await anyio.to_thread.run_sync(_rank_candidates, candidates, query, words, limit)

    async def beside(self, spots: Sequence[ChunkLocation], folder: str) -> list[ChunkNeighbours | None]:
        """Return what stands at and beside each of these in the files, None for one that stands there no more."""
        read: dict[str, list[Chunk]] = {}
        for path in {spot.path for spot in spots}:
            document, info = classify_document(path, folder), await self.files.info(path)
            if document is not None and info is not None:
                read[path] = [each.chunk for each in await self._candidates(document, info)]
        return [find_neighbours_in(read.get(spot.path, ()), spot) for spot in spots]

    async def _candidates(self, document: SearchDocument, info: FileInfo) -> list[Candidate]:
        kept = self._cache.get(document.path)
        if kept is None or kept[0] != info:
            try:
                data = (await self.files.read(document.path)).data
                kept = (info, await anyio.to_thread.run_sync(_read_candidates, document, data, self.redactor))
            except (FileMissing, StorageError, ValueError, OverflowError, RecursionError):
                return []
            self._cache[document.path] = kept
        return kept[1]


def _read_candidates(document: SearchDocument, data: bytes, redactor: Redactor) -> list[Candidate]:
    return [
        Candidate(chunk=row.chunk, own=row.own, around=row.around, place=row.place)
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
    """Return the candidates, pieces of long entries with the fields of the bullets that point to them."""
    bullets = {each.chunk.entry_id: each.chunk for each in candidates if each.chunk.markup}
    return [
        replace(each, chunk=_copy_fields(each.chunk, bullet))
        if each.chunk.sort == "long" and (bullet := bullets.get(each.chunk.entry_id))
        else each
        for each in candidates
    ]


def _copy_fields(chunk: Chunk, bullet: Chunk) -> Chunk:
    return replace(
        chunk, kind=bullet.kind, tags=bullet.tags, time=bullet.time, session=bullet.session, markup=bullet.markup
    )


def newest_first_key(chunk: Chunk) -> tuple[timedelta, str, int, int]:
    """Order by time; of two with one time in one document the later one is the newer one."""
    line = -chunk.line_number if chunk.time else chunk.line_number
    return (_NEVER - (chunk.time or _NEVER), chunk.path, line, chunk.part)


def _sort_by_position(candidates: Sequence[Candidate]) -> list[Chunk]:
    return sorted((one.chunk for one in candidates), key=lambda chunk: (chunk.path, chunk.line_number, chunk.part))


def merge_matches(indexed: list[Match], scanned: list[Match], limit: int) -> list[Match]:
    """Return both, best first; of equals what is in the index first, and where nothing was asked for the newest."""
    both = sorted((*indexed, *scanned), key=_best_first_key)[:limit]
    return [replace(match, rank=rank) for rank, match in enumerate(both, 1)]


def _best_first_key(match: Match) -> tuple[float, tuple[timedelta, str, int, int] | tuple[()]]:
    return (-match.score, () if match.score else newest_first_key(match.chunk))
