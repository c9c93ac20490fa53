"""Carrying recall out: every visible workspace is searched, and what they give is ranked as one.

A source that can't be searched does not take the others down; when none can, the last error is raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial

from ricordo.errors import InvalidQuery, StorageError
from ricordo.index.contract import MEMORY_SORTS, Candidates, Curated, Cut, Query, Sifting
from ricordo.recall.asked import place_of
from ricordo.recall.config import RecallConfig
from ricordo.recall.dates import asked_spans
from ricordo.recall.hits import Explained, Hit, Passage, Source
from ricordo.recall.plan import SPARE, rank, rank_some
from ricordo.recall.plan import explain as explained
from ricordo.recall.question import Question, read_question
from ricordo.recall.reranking import Reranked, Reranker, rerank_scores
from ricordo.recall.standing import Curation
from ricordo.tokens import Tokens
from ricordo.uncut import compute

__all__ = ["explain", "recall", "search"]

_MOST_CURATED = 2_000
_FOLDED = 8
_AT_ONCE = 200
"""Of so many passages the ranking takes some milliseconds at most."""
_NEARNESS = {"bm25": "own", "context": "context", "dense": "dense", "dense_context": "dense_context"}
"""The signals that tell how near a passage is, with the weights of their names."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the sources gave: the passages, and all of their curated memory where it is needed to place them.

    `unseen` is how near the nearest passage is that was not read, None when all were.
    """

    passages: list[Passage]
    curated: Curation
    unseen: float | None = None


async def recall(
    sources: Sequence[Source],
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
    asked = _of_memories(query)
    return await search(
        sources, asked, limit=limit, budget=budget, now=now, config=config, reranker=reranker
    )  # fmt: skip


async def search(
    sources: Sequence[Source],
    query: Query | str,
    *,
    limit: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> list[Hit]:
    """Return at most `limit` hits from everything that was written down, transcripts too; otherwise as `recall`."""
    asked, weights, moment = _asked(query, limit), config or RecallConfig(), now or datetime.now(UTC)
    most, question = max(limit, weights.candidates), read_question(asked.text)
    if reranker is None and asked.text.strip():
        some = await _found(sources, asked, most, _cut(question, limit, moment, weights))
        ranking = partial(
            rank_some, some.passages, question, limit=limit, now=moment, config=weights, curated=some.curated,
            query=asked, budget=budget, unseen=some.unseen,
        )  # fmt: skip
        sure = await compute(ranking, size=len(some.passages), at_once=_AT_ONCE)
        if sure is not None:
            return sure
    found = await _found(sources, asked, most)
    reranked = await _reranked(found, asked, moment, weights, reranker) if reranker else None
    ranking_all = partial(
        rank, found.passages, question, limit=limit, now=moment, config=weights, curated=found.curated, query=asked,
        budget=budget, reranked=reranked.scores if reranked else None,
    )  # fmt: skip
    return await compute(ranking_all, size=len(found.passages), at_once=_AT_ONCE)


async def explain(
    sources: Sequence[Source],
    query: Query | str,
    *,
    limit: int = 10,
    rejected: int = 10,
    budget: Tokens | None = None,
    now: datetime | None = None,
    config: RecallConfig | None = None,
    reranker: Reranker | None = None,
) -> Explained:
    """Return the hits of `search`, and at most `rejected` of the best candidates that are none, with the reason.

    A text is looked for in everything; a `Query` with `sorts=MEMORY_SORTS` gives what `recall` gives.
    """
    asked, weights, moment = _asked(query, limit), config or RecallConfig(), now or datetime.now(UTC)
    found = await _found(sources, asked, max(limit, weights.candidates))
    question = read_question(asked.text)
    reranked = await _reranked(found, asked, moment, weights, reranker) if reranker else None
    explaining = partial(
        explained, found.passages, question, limit=limit, now=moment, config=weights, curated=found.curated,
        query=asked, budget=budget, reranked=reranked.scores if reranked else None, rejected=max(rejected, 0),
    )  # fmt: skip
    told = await compute(explaining, size=len(found.passages), at_once=_AT_ONCE)
    return replace(told, trouble=reranked.trouble) if reranked and reranked.trouble else told


def _of_memories(query: Query | str) -> Query:
    return Query(text=query, sorts=MEMORY_SORTS) if isinstance(query, str) else query


def _asked(query: Query | str, limit: int) -> Query:
    if limit < 1:
        raise InvalidQuery(f"A search returns at least one hit: the limit can't be {limit}.")
    return replace(Query(text=query) if isinstance(query, str) else query, neighbours=True)


def _cut(question: Question, limit: int, now: datetime, config: RecallConfig) -> Cut:
    """Return which candidates may be among the best, as far as the question tells it."""
    unread = config.expected * bool(question.expected) + config.speaker * question.about_me
    if config.dates and asked_spans(question.said, now.date()):
        unread += config.dates
    scale = config.own + config.context + config.session
    return Cut(
        weights={name: getattr(config, at) for name, at in _NEARNESS.items()},
        leeway=unread / scale,
        least=SPARE * limit + _FOLDED,
        newness=config.recency / scale,
        now=now,
        half_lives=config.half_lives,
        default_half_life=config.default_half_life,
    )


async def _found(sources: Sequence[Source], asked: Query, most: int, cut: Cut | None = None) -> _Found:
    """Return what the sources hold; raise the last trouble when none of them can be searched."""
    passages: list[Passage] = []
    curated: list[tuple[Curated, str, int]] = []
    unseen: list[float] = []
    trouble: StorageError | None = None
    searched = 0
    for nearness, source in enumerate(sources):
        try:
            found = await _candidates(source, asked, most, cut)
        except StorageError as error:
            trouble = error
            continue
        searched += 1
        matches = [match for match in found.matches if not source.hides(match.chunk)]
        passages.extend(Passage(label=source.label, nearness=nearness, match=match) for match in matches)
        unseen += [] if found.unseen is None else [found.unseen]
        if found.unseen is not None or any(match.chunk.entry_id for match in matches):
            curated.append((found.curated, source.label, nearness))
    if trouble is not None and not searched:
        raise trouble
    return _Found(passages=passages, curated=_curation(tuple(curated)), unseen=max(unseen, default=None))


async def _candidates(source: Source, asked: Query, most: int, cut: Cut | None) -> Candidates:
    index, asked = source.index, replace(asked, profile=source.profile)
    if isinstance(index, Sifting):
        return await index.candidates(asked, most, cut, beside=source.beside)
    matches = await index.search(asked, most)
    return Candidates(matches=matches, curated=await _curated(source) if matches else Curated())


@lru_cache(maxsize=4)
def _curation(curated: tuple[tuple[Curated, str, int], ...]) -> Curation:
    """Return the curated memory of the sources; the same value for the same memory."""
    return Curation(
        tuple(
            Passage(label=label, nearness=nearness, match=match)
            for held, label, nearness in curated
            for match in held.matches
        )
    )


async def _reranked(found: _Found, asked: Query, now: datetime, config: RecallConfig, reranker: Reranker) -> Reranked:
    """Return what the reranker says of the passages that are the best without it."""
    if not asked.text.strip():
        return Reranked()
    by_place = {place_of(passage): passage for passage in found.passages}
    question = read_question(asked.text)
    ranking = partial(rank, found.passages, question, limit=config.reranked, now=now, config=config, query=asked)
    best = await compute(ranking, size=len(found.passages), at_once=_AT_ONCE)
    places = {(hit.source, hit.path, hit.line_number) for hit in best}
    offered = {place: passage for place, passage in by_place.items() if place[:3] in places}
    return await rerank_scores(reranker, asked.text, offered, seconds=config.rerank_seconds)


async def _curated(source: Source) -> Curated:
    """Return curated memory; nothing where it can't be read, which takes nothing from what was found."""
    try:
        return Curated(tuple(await source.index.search(Query(text="", sorts=("curated",)), _MOST_CURATED)))
    except StorageError:
        return Curated()
