"""Carrying recall out: every visible workspace is searched, and what they give is ranked as one.

A source that can't be searched does not take the others down; when none can, the last error is raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial

from ricordo.errors import InvalidQuery, StorageError
from ricordo.index.contract import MEMORY_SORTS, Candidates, CuratedMatches, PruningRule, Query, CandidateIndex
from ricordo.recall.asked import passage_location
from ricordo.recall.config import RecallConfig
from ricordo.recall.dates import find_date_ranges
from ricordo.recall.hits import Explanation, Hit, Passage, SearchSource
from ricordo.recall.plan import RANK_FACTOR, rank, rank_subset
from ricordo.recall.plan import explain as explained
from ricordo.recall.question import Question, parse_question
from ricordo.recall.reranking import RerankResult, Reranker, rerank_passages
from ricordo.recall.standing import CuratedMemory
from ricordo.tokens import Tokens
from ricordo.uncut import compute

__all__ = ["explain", "recall_memories", "search"]

_MAX_CURATED = 2_000
_DUPLICATE_RESERVE = 8
_AT_ONCE = 200
"""Of so many passages the ranking takes some milliseconds at most."""
_SIMILARITY_WEIGHTS = {"bm25": "own", "context": "context", "dense": "dense", "dense_context": "dense_context"}
"""The signals that tell how near a passage is, with the weights of their names."""


@dataclass(frozen=True, kw_only=True)
class _SourceResults:
    """What the sources gave: the passages, and all of their curated memory where it is needed to place them.

    `unseen` is how near the nearest passage is that was not read, None when all were.
    """

    passages: list[Passage]
    curated: CuratedMemory
    unseen: float | None = None


async def recall_memories(
    sources: Sequence[SearchSource],
    query: Query | str,
    *,
    limit: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> list[Hit]:
    """Return at most `limit` memories for `query`, best first; empty when nothing in memory has to do with it.

    A text is looked for in memory documents only, not in transcripts; a `Query` says itself which sorts it means, and
    without any it means all. `sources` come narrowest first. `now` (aware, by default the system's time) is what ages
    are counted from. With a `budget` the hits together have at most so many tokens, estimated: one that is too
    long for what is left is passed over for the next. A `reranker` joins where it answers in time.

    Raises: `InvalidQuery` if `limit` is below 1, `StorageError` when no source can be searched.
    """
    asked = _memory_query(query)
    return await search(
        sources, asked, limit=limit, budget=budget, now=now, config=config, reranker=reranker
    )  # fmt: skip


async def search(
    sources: Sequence[SearchSource],
    query: Query | str,
    *,
    limit: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> list[Hit]:
    """Return at most `limit` hits from everything that was written down, transcripts too; otherwise as `recall_memories`."""
    asked, weights, moment = _prepare_query(query, limit), config or RecallConfig(), now or datetime.now(UTC)
    most, question = max(limit, weights.candidates), parse_question(asked.text)
    if reranker is None and asked.text.strip():
        some = await _search_sources(sources, asked, most, _pruning_rule(question, limit, moment, weights))
        ranking = partial(
            rank_subset, some.passages, question, limit=limit, now=moment, config=weights, curated=some.curated,
            query=asked, budget=budget, unseen=some.unseen,
        )  # fmt: skip
        sure = await compute(ranking, size=len(some.passages), at_once=_AT_ONCE)
        if sure is not None:
            return sure
    found = await _search_sources(sources, asked, most)
    reranked = await _rerank(found, asked, moment, weights, reranker) if reranker else None
    ranking_all = partial(
        rank, found.passages, question, limit=limit, now=moment, config=weights, curated=found.curated, query=asked,
        budget=budget, reranked=reranked.scores if reranked else None,
    )  # fmt: skip
    return await compute(ranking_all, size=len(found.passages), at_once=_AT_ONCE)


async def explain(
    sources: Sequence[SearchSource],
    query: Query | str,
    *,
    limit: int = 10,
    rejected: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> Explanation:
    """Return the hits of `search`, and at most `rejected` of the best candidates that are none, with the reason.

    A text is looked for in everything; a `Query` with `sorts=MEMORY_SORTS` gives what `recall_memories` gives.
    """
    asked, weights, moment = _prepare_query(query, limit), config or RecallConfig(), now or datetime.now(UTC)
    found = await _search_sources(sources, asked, max(limit, weights.candidates))
    question = parse_question(asked.text)
    reranked = await _rerank(found, asked, moment, weights, reranker) if reranker else None
    explaining = partial(
        explained, found.passages, question, limit=limit, now=moment, config=weights, curated=found.curated,
        query=asked, budget=budget, reranked=reranked.scores if reranked else None, rejected=max(rejected, 0),
    )  # fmt: skip
    told = await compute(explaining, size=len(found.passages), at_once=_AT_ONCE)
    return replace(told, reranker_error=reranked.error) if reranked and reranked.error else told


def _memory_query(query: Query | str) -> Query:
    return Query(text=query, sorts=MEMORY_SORTS) if isinstance(query, str) else query


def _prepare_query(query: Query | str, limit: int) -> Query:
    if limit < 1:
        raise InvalidQuery(f"A search returns at least one hit: the limit can't be {limit}.")
    return replace(Query(text=query) if isinstance(query, str) else query, neighbours=True)


def _pruning_rule(question: Question, limit: int, now: datetime, config: RecallConfig) -> PruningRule:
    """Return which candidates may be among the best, as far as the question tells it."""
    unread = config.expected * bool(question.expected) + config.speaker * question.is_first_person
    if config.dates and find_date_ranges(question.original_text, now.date()):
        unread += config.dates
    scale = config.own + config.context + config.session
    return PruningRule(
        weights={name: getattr(config, at) for name, at in _SIMILARITY_WEIGHTS.items()},
        margin=unread / scale,
        min_count=RANK_FACTOR * limit + _DUPLICATE_RESERVE,
        recency=config.recency / scale,
        now=now,
        half_lives=config.half_lives,
        default_half_life=config.default_half_life,
    )


async def _search_sources(
    sources: Sequence[SearchSource], asked: Query, most: int, cut: PruningRule | None = None
) -> _SourceResults:
    """Return what the sources hold; raise the last trouble when none of them can be searched."""
    passages: list[Passage] = []
    curated: list[tuple[CuratedMatches, str, int]] = []
    unseen: list[float] = []
    trouble: StorageError | None = None
    searched = 0
    for nearness, source in enumerate(sources):
        try:
            found = await _find_source_candidates(source, asked, most, cut)
        except StorageError as error:
            trouble = error
            continue
        searched += 1
        matches = [match for match in found.matches if not source.hides(match.chunk)]
        passages.extend(Passage(label=source.label, source_rank=nearness, match=match) for match in matches)
        unseen += [] if found.unseen is None else [found.unseen]
        if found.unseen is not None or any(match.chunk.entry_id for match in matches):
            curated.append((found.curated, source.label, nearness))
    if trouble is not None and not searched:
        raise trouble
    return _SourceResults(passages=passages, curated=_curated_memory(tuple(curated)), unseen=max(unseen, default=None))


async def _find_source_candidates(source: SearchSource, asked: Query, most: int, cut: PruningRule | None) -> Candidates:
    index, asked = source.index, replace(asked, profile=source.profile)
    if isinstance(index, CandidateIndex):
        return await index.find_candidates(asked, most, cut, beside=source.beside)
    matches = await index.search(asked, most)
    return Candidates(matches=matches, curated=await _load_curated(source) if matches else CuratedMatches())


@lru_cache(maxsize=4)
def _curated_memory(curated: tuple[tuple[CuratedMatches, str, int], ...]) -> CuratedMemory:
    """Return the curated memory of the sources; the same value for the same memory."""
    return CuratedMemory(
        tuple(
            Passage(label=label, source_rank=nearness, match=match)
            for held, label, nearness in curated
            for match in held.matches
        )
    )


async def _rerank(
    found: _SourceResults, asked: Query, now: datetime, config: RecallConfig, reranker: Reranker
) -> RerankResult:
    """Return what the reranker says of the passages that are the best without it."""
    if not asked.text.strip():
        return RerankResult()
    by_place = {passage_location(passage): passage for passage in found.passages}
    question = parse_question(asked.text)
    ranking = partial(rank, found.passages, question, limit=config.reranked, now=now, config=config, query=asked)
    best = await compute(ranking, size=len(found.passages), at_once=_AT_ONCE)
    places = {(hit.source, hit.path, hit.line_number) for hit in best}
    offered = {place: passage for place, passage in by_place.items() if place[:3] in places}
    return await rerank_passages(reranker, asked.text, offered, seconds=config.rerank_seconds)


async def _load_curated(source: SearchSource) -> CuratedMatches:
    """Return curated memory; nothing where it can't be read, which takes nothing from what was found."""
    try:
        return CuratedMatches(tuple(await source.index.search(Query(text="", sorts=("curated",)), _MAX_CURATED)))
    except StorageError:
        return CuratedMatches()
