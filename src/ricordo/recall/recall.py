"""Carrying recall out: every visible workspace is searched, and what they give is ranked as one.

A source that can't be searched does not take the others down; when none can, the last error is raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ricordo.errors import InvalidQuery, StorageError
from ricordo.index.contract import MEMORY_SORTS, Query
from ricordo.recall.asked import Place, place_of
from ricordo.recall.config import RecallConfig
from ricordo.recall.hits import Explained, Hit, Passage, Source
from ricordo.recall.plan import explain as explained
from ricordo.recall.plan import rank
from ricordo.recall.question import read_question
from ricordo.recall.reranking import Reranker, rerank_scores
from ricordo.tokens import Tokens

__all__ = ["explain", "recall", "search"]

_MOST_CURATED = 2_000


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the sources gave: the passages, and all of their curated memory where it is needed to place them."""

    passages: list[Passage] = field(default_factory=list)
    curated: list[Passage] = field(default_factory=list)


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
    found = await _found(sources, asked, max(limit, weights.candidates))
    question = read_question(asked.text)
    reranked = await _reranked(found, asked, moment, weights, reranker) if reranker else None
    return rank(
        found.passages, question, limit=limit, now=moment, config=weights, curated=found.curated, query=asked,
        budget=budget, reranked=reranked,
    )  # fmt: skip


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
    return explained(
        found.passages, question, limit=limit, now=moment, config=weights, curated=found.curated, query=asked,
        budget=budget, reranked=reranked, rejected=max(rejected, 0),
    )  # fmt: skip


def _of_memories(query: Query | str) -> Query:
    return Query(text=query, sorts=MEMORY_SORTS) if isinstance(query, str) else query


def _asked(query: Query | str, limit: int) -> Query:
    if limit < 1:
        raise InvalidQuery(f"A search returns at least one hit: the limit can't be {limit}.")
    return replace(Query(text=query) if isinstance(query, str) else query, neighbours=True)


async def _found(sources: Sequence[Source], asked: Query, most: int) -> _Found:
    """Return what the sources hold; raise the last trouble when none of them can be searched."""
    found = _Found()
    trouble: StorageError | None = None
    searched = 0
    for nearness, source in enumerate(sources):
        try:
            matches = await source.index.search(asked, most)
        except StorageError as error:
            trouble = error
            continue
        searched += 1
        shown = [match for match in matches if (match.chunk.session, match.chunk.message) not in source.hidden]
        found.passages.extend(Passage(label=source.label, nearness=nearness, match=match) for match in shown)
        if any(match.chunk.entry_id for match in shown):
            found.curated.extend(await _curated(source, nearness))
    if trouble is not None and not searched:
        raise trouble
    return found


async def _reranked(
    found: _Found, asked: Query, now: datetime, config: RecallConfig, reranker: Reranker
) -> dict[Place, float]:
    """Return what the reranker says of the passages that are the best without it."""
    if not asked.text.strip():
        return {}
    by_place = {place_of(passage): passage for passage in found.passages}
    best = rank(found.passages, read_question(asked.text), limit=config.reranked, now=now, config=config, query=asked)
    places = {(hit.source, hit.path, hit.line_number) for hit in best}
    offered = {place: passage for place, passage in by_place.items() if place[:3] in places}
    return await rerank_scores(reranker, asked.text, offered, seconds=config.rerank_seconds)


async def _curated(source: Source, nearness: int) -> list[Passage]:
    """Return curated memory; nothing where it can't be read, which takes nothing from what was found."""
    try:
        matches = await source.index.search(Query(text="", sorts=("curated",)), _MOST_CURATED)
    except StorageError:
        return []
    return [Passage(label=source.label, nearness=nearness, match=match) for match in matches]
