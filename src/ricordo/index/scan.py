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
from ricordo.index.beside import Beside, Spot, beside_in
from ricordo.index.chunking import rows_of
from ricordo.index.contract import Chunk, Match, Query
from ricordo.index.documents import Document, document_of
from ricordo.index.plan import holds_literally, passes
from ricordo.index.scoring import LITERAL_SCORE, Candidate, as_they_come, ranked, scanned_statistics
from ricordo.index.terms import Words

__all__ = ["Scan", "merged", "newest_first"]

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(kw_only=True)
class Scan:
    """The files of one workspace, read as they are, but for the secrets that `redactor` finds."""

    files: FileStore
    redactor: Redactor
    _kept: dict[str, tuple[FileInfo, list[Candidate]]] = field(default_factory=dict)

    async def search(
        self, documents: Sequence[tuple[Document, FileInfo]], query: Query, words: Words, limit: int
    ) -> list[Match]:
        """Return what these documents hold for the query, best first; a file that can't be read is passed over."""
        candidates: list[Candidate] = []
        for document, info in documents:
            candidates += await self._candidates(document, info)
        return await anyio.to_thread.run_sync(_found, candidates, query, words, limit)

    async def beside(self, spots: Sequence[Spot], folder: str) -> list[Beside | None]:
        """Return what stands at and beside each of these in the files, None for one that stands there no more."""
        read: dict[str, list[Chunk]] = {}
        for path in {spot.path for spot in spots}:
            document, info = document_of(path, folder), await self.files.info(path)
            if document is not None and info is not None:
                read[path] = [each.chunk for each in await self._candidates(document, info)]
        return [beside_in(read.get(spot.path, ()), spot) for spot in spots]

    async def _candidates(self, document: Document, info: FileInfo) -> list[Candidate]:
        kept = self._kept.get(document.path)
        if kept is None or kept[0] != info:
            try:
                data = (await self.files.read(document.path)).data
                kept = (info, await anyio.to_thread.run_sync(_cut, document, data, self.redactor))
            except (FileMissing, StorageError, ValueError, OverflowError, RecursionError):
                return []
            self._kept[document.path] = kept
        return kept[1]


def _cut(document: Document, data: bytes, redactor: Redactor) -> list[Candidate]:
    return [
        Candidate(chunk=row.chunk, own=row.own, around=row.around, place=row.place)
        for row in rows_of(document, data, redactor)
    ]


def _found(candidates: Sequence[Candidate], query: Query, words: Words, limit: int) -> list[Match]:
    candidates = _as_bullets_say(candidates)
    passing = [candidate for candidate in candidates if passes(candidate.chunk, query)]
    if words.groups and (
        found := ranked(
            passing, words, scanned_statistics(candidates, words, query.profile), neighbours=query.neighbours
        )
    ):
        return found[:limit]
    if not query.text.strip():
        return as_they_come(sorted((one.chunk for one in passing), key=newest_first)[:limit], score=0.0)
    literal = [chunk for chunk in _in_order(passing) if holds_literally(chunk.content, query.text)]
    return as_they_come(literal[:limit], score=LITERAL_SCORE, typed=query.text.strip())


def _as_bullets_say(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, pieces of long entries with the fields of the bullets that point to them."""
    bullets = {each.chunk.entry_id: each.chunk for each in candidates if each.chunk.markup}
    return [
        replace(each, chunk=_with_fields(each.chunk, bullet))
        if each.chunk.sort == "long" and (bullet := bullets.get(each.chunk.entry_id))
        else each
        for each in candidates
    ]


def _with_fields(chunk: Chunk, bullet: Chunk) -> Chunk:
    return replace(
        chunk, kind=bullet.kind, tags=bullet.tags, time=bullet.time, session=bullet.session, markup=bullet.markup
    )


def newest_first(chunk: Chunk) -> tuple[timedelta, str, int, int]:
    """Order by time; of two with one time in one document the later one is the newer one."""
    line = -chunk.line_number if chunk.time else chunk.line_number
    return (_NEVER - (chunk.time or _NEVER), chunk.path, line, chunk.part)


def _in_order(candidates: Sequence[Candidate]) -> list[Chunk]:
    return sorted((one.chunk for one in candidates), key=lambda chunk: (chunk.path, chunk.line_number, chunk.part))


def merged(indexed: list[Match], scanned: list[Match], limit: int) -> list[Match]:
    """Return both, best first; of equals what is in the index first, and where nothing was asked for the newest."""
    both = sorted((*indexed, *scanned), key=_best_first)[:limit]
    return [replace(match, rank=rank) for rank, match in enumerate(both, 1)]


def _best_first(match: Match) -> tuple[float, tuple[timedelta, str, int, int] | tuple[()]]:
    return (-match.score, () if match.score else newest_first(match.chunk))
