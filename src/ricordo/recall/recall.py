"""Carrying recall out: every visible workspace is searched, and what they give is ranked as one.

A source that can't be searched does not take the others down; when none can, the last error is raised.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ricordo.errors import InvalidQuery, StorageError
from ricordo.index.contract import MEMORY_SORTS, Query
from ricordo.recall.config import RecallConfig
from ricordo.recall.hits import Hit, Passage, Source
from ricordo.recall.plan import rank
from ricordo.recall.question import read_question

__all__ = ["recall", "search"]

_MOST_CURATED = 2_000


async def recall(
    sources: Sequence[Source],
    query: Query | str,
    *,
    limit: int = 10,
    now: datetime | None = None,
    config: RecallConfig | None = None,
) -> list[Hit]:
    """Return at most `limit` memories for `query`, best first; empty when nothing in memory has to do with it.

    A text is looked for in memory documents only, not in transcripts; a `Query` says itself which sorts it means, and
    without any it means all. `sources` come narrowest first. `now` (aware, by default the system's time) is what ages
    are counted from.

    Raises: `InvalidQuery` if `limit` is below 1, `StorageError` when no source can be searched.
    """
    asked = Query(text=query, sorts=MEMORY_SORTS) if isinstance(query, str) else query
    return await search(sources, asked, limit=limit, now=now, config=config)


async def search(
    sources: Sequence[Source],
    query: Query | str,
    *,
    limit: int = 10,
    now: datetime | None = None,
    config: RecallConfig | None = None,
) -> list[Hit]:
    """Return at most `limit` hits from everything that was written down, transcripts too; otherwise as `recall`."""
    if limit < 1:
        raise InvalidQuery(f"A search returns at least one hit: the limit can't be {limit}.")
    weights = config or RecallConfig()
    asked = replace(Query(text=query) if isinstance(query, str) else query, neighbours=True)
    passages: list[Passage] = []
    curated: list[Passage] = []
    trouble: StorageError | None = None
    searched = 0
    for nearness, source in enumerate(sources):
        try:
            matches = await source.index.search(asked, max(limit, weights.candidates))
        except StorageError as error:
            trouble = error
            continue
        searched += 1
        shown = [match for match in matches if (match.chunk.session, match.chunk.message) not in source.hidden]
        passages += [Passage(label=source.label, nearness=nearness, match=match) for match in shown]
        if any(match.chunk.entry_id for match in shown):
            curated += await _curated(source, nearness)
    if trouble is not None and not searched:
        raise trouble
    moment = now or datetime.now(UTC)
    question = read_question(asked.text)
    return rank(passages, question, limit=limit, now=moment, config=weights, curated=curated, query=asked)


async def _curated(source: Source, nearness: int) -> list[Passage]:
    """Return curated memory; nothing where it can't be read, which takes nothing from what was found."""
    try:
        matches = await source.index.search(Query(text="", sorts=("curated",)), _MOST_CURATED)
    except StorageError:
        return []
    return [Passage(label=source.label, nearness=nearness, match=match) for match in matches]
