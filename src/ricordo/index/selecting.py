"""Selecting: one search in the database, by postings where there are any, else by its full-text table.

Where no word of a query is indexed it is looked for as it was typed, and a query without text asks for the newest.
"""

from typing import TYPE_CHECKING

from ricordo.database.sqlite import Connection
from ricordo.index.contract import Candidates, Curated, Cut, Match, Query
from ricordo.index.plan import LONGEST_LITERAL, Asked, holds_literally
from ricordo.index.queries import full_text, literal, newest, statistics
from ricordo.index.scoring import LITERAL_SCORE, as_they_come, match, ranked
from ricordo.index.terms import Words

if TYPE_CHECKING:
    from ricordo.index.dense import Sense
    from ricordo.index.segments import Segments

__all__ = ["ALL_CURATED", "MOST_CURATED", "candidates", "select"]

ALL_CURATED = Query(text="", sorts=("curated",))
"""Asks for curated memory, the newest first."""

MOST_CURATED = 2_000
"""How much of it is looked at."""

_CANDIDATES = 200


def select(reader: Connection, segments: "Segments | None", asked: Asked, sense: "Sense | None") -> list[Match]:
    """Return what the database holds for the query."""
    if asked.words.groups and (found := _holding(reader, segments, asked, sense)):
        return found
    return _unindexed(reader, segments, asked)


def _unindexed(reader: Connection, segments: "Segments | None", asked: Asked) -> list[Match]:
    """Return what is found without words: the newest where nothing is asked, else what holds the query literally."""
    query, limit, wanted = asked.query, asked.limit, max(asked.limit, _CANDIDATES)
    if not query.text.strip():
        if segments is not None:
            return as_they_come(segments.newest(reader, asked), score=0.0)
        latest = [chunk for chunk in newest(reader, query, wanted) if chunk.path not in asked.skipped]
        return as_they_come(latest[:limit], score=0.0)
    if len(query.text.strip()) > LONGEST_LITERAL:
        return []
    typed = [
        chunk
        for chunk in literal(reader, query, wanted)
        if chunk.path not in asked.skipped and holds_literally(chunk.content, query.text)
    ]
    return as_they_come(typed[:limit], score=LITERAL_SCORE, typed=query.text.strip())


def _holding(reader: Connection, segments: "Segments | None", asked: Asked, sense: "Sense | None") -> list[Match]:
    """Return what holds a word of the query: from the postings, and where there are none from the full-text table."""
    query, words = asked.query, asked.words
    if segments is not None:
        found, absent = segments.search(reader, asked, sense)
        return [match(chunk, rank, one.measured, absent) for rank, (one, chunk) in enumerate(found, 1)]
    likeliest = full_text(reader, query, words, max(asked.limit, _CANDIDATES))
    kept = [candidate for candidate in likeliest if candidate.chunk.path not in asked.skipped]
    return ranked(kept, words, statistics(reader, words, query.profile), neighbours=query.neighbours)[: asked.limit]


def candidates(
    reader: Connection, segments: "Segments | None", asked: Asked, sense: "Sense | None", cut: Cut | None
) -> Candidates | None:
    """Return what the database holds for ranking; None where there are no postings.

    What is not found by its words is looked for as `select` does, and all of that is returned.
    """
    if segments is None:
        return None
    matches, unseen = list[Match](), None
    if asked.words.groups:
        found, absent, unseen = segments.candidates(reader, asked, sense, cut)
        matches = [match(chunk, rank, one.measured, absent) for rank, (one, chunk) in enumerate(found, 1)]
    matches = matches or _unindexed(reader, segments, asked)
    curated = Curated()
    if any(each.chunk.entry_id for each in matches):
        curated = segments.curated(reader, Asked(query=ALL_CURATED, words=Words(), limit=MOST_CURATED))
    return Candidates(matches=matches, unseen=unseen, curated=curated)
