"""Selecting: one search in the database, by postings where there are any, else by its full-text table.

Where no word of a query is indexed it is looked for as it was typed, and a query without text asks for the newest.
"""

from typing import TYPE_CHECKING

from ricordo.database.sqlite import Connection
from ricordo.index.contract import Candidates, CuratedMatches, PruningRule, Match, Query
from ricordo.index.plan import MAX_LITERAL_CHARS, PreparedQuery, contains_text
from ricordo.index.queries import search_full_text, search_literal, newest_chunks, load_term_statistics
from ricordo.index.scoring import LITERAL_SCORE, unranked_matches, build_match, rank_candidates
from ricordo.index.terms import QueryWords

if TYPE_CHECKING:
    from ricordo.index.dense import SemanticQuery
    from ricordo.index.segments import CorpusSearcher

__all__ = ["CURATED_QUERY", "MAX_CURATED", "find_candidates", "search_database"]

CURATED_QUERY = Query(text="", sorts=("curated",))
"""Asks for curated memory, the newest first."""

MAX_CURATED = 2_000
"""How much of it is looked at."""

_MIN_CANDIDATES = 200


def search_database(
    reader: Connection, segments: "CorpusSearcher | None", asked: PreparedQuery, sense: "SemanticQuery | None"
) -> list[Match]:
    """Return what the database holds for the query."""
    if asked.words.groups and (found := _search_terms(reader, segments, asked, sense)):
        return found
    return _search_without_terms(reader, segments, asked)


def _search_without_terms(reader: Connection, segments: "CorpusSearcher | None", asked: PreparedQuery) -> list[Match]:
    """Return what is found without words: the newest where nothing is asked, else what holds the query literally."""
    query, limit, wanted = asked.query, asked.limit, max(asked.limit, _MIN_CANDIDATES)
    if not query.text.strip():
        if segments is not None:
            return unranked_matches(segments.newest(reader, asked), score=0.0)
        latest = [chunk for chunk in newest_chunks(reader, query, wanted) if chunk.path not in asked.skipped_paths]
        return unranked_matches(latest[:limit], score=0.0)
    if len(query.text.strip()) > MAX_LITERAL_CHARS:
        return []
    typed = [
        chunk
        for chunk in search_literal(reader, query, wanted)
        if chunk.path not in asked.skipped_paths and contains_text(chunk.content, query.text)
    ]
    return unranked_matches(typed[:limit], score=LITERAL_SCORE, typed=query.text.strip())


def _search_terms(
    reader: Connection, segments: "CorpusSearcher | None", asked: PreparedQuery, sense: "SemanticQuery | None"
) -> list[Match]:
    """Return what holds a word of the query: from the postings, and where there are none from the full-text table."""
    query, words = asked.query, asked.words
    if segments is not None:
        found, absent = segments.search(reader, asked, sense)
        return [build_match(chunk, rank, one.details, absent) for rank, (one, chunk) in enumerate(found, 1)]
    likeliest = search_full_text(reader, query, words, max(asked.limit, _MIN_CANDIDATES))
    kept = [candidate for candidate in likeliest if candidate.chunk.path not in asked.skipped_paths]
    return rank_candidates(
        kept, words, load_term_statistics(reader, words, query.profile), neighbours=query.neighbours
    )[: asked.limit]


def find_candidates(
    reader: Connection,
    segments: "CorpusSearcher | None",
    asked: PreparedQuery,
    sense: "SemanticQuery | None",
    cut: PruningRule | None,
) -> Candidates | None:
    """Return what the database holds for ranking; None where there are no postings.

    What is not found by its words is looked for as `search_database` does, and all of that is returned.
    """
    if segments is None:
        return None
    matches, unseen = list[Match](), None
    if asked.words.groups:
        found, absent, unseen = segments.find_candidates(reader, asked, sense, cut)
        matches = [build_match(chunk, rank, one.details, absent) for rank, (one, chunk) in enumerate(found, 1)]
    matches = matches or _search_without_terms(reader, segments, asked)
    curated = CuratedMatches()
    if any(each.chunk.entry_id for each in matches):
        curated = segments.curated_matches(
            reader, PreparedQuery(query=CURATED_QUERY, words=QueryWords(), limit=MAX_CURATED)
        )
    return Candidates(matches=matches, unseen=unseen, curated=curated)
