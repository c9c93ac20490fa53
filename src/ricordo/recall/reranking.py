"""An optional second opinion on the best hits, by a plug-in such as a cross-encoder.

Invariant: it is never waited for past its deadline, and one that is late, fails or answers nonsense changes nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from ricordo.recall.asked import Place
from ricordo.recall.hits import Passage

__all__ = ["Reranked", "Reranker", "rerank_scores"]

_LONGEST = 2_000


class Reranker(Protocol):
    """Says how well texts answer a query."""

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score in 0..1 for each text, higher is better, in their order.

        It is cancelled at its deadline, so it must not block the event loop: a model is run in a thread.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Reranked:
    """What a reranker said, by the place of each passage; `trouble` is why nothing can be had of it, else empty."""

    scores: Mapping[Place, float] = field(default_factory=dict)
    trouble: str = ""


async def rerank_scores(
    reranker: Reranker, query: str, passages: Mapping[Place, Passage], *, seconds: float
) -> Reranked:
    """Return what `reranker` says of the first 2,000 characters of each passage; nothing where it can't be had."""
    if not passages or seconds <= 0:
        return Reranked()
    texts = [passage.match.content[:_LONGEST] for passage in passages.values()]
    given: Sequence[float] = ()
    with anyio.move_on_after(seconds) as deadline:
        try:
            given = tuple(float(score) for score in await reranker.scores(query, texts))
        except Exception as error:  # noqa: BLE001  (a plug-in of somebody else may raise anything, and stops nothing)
            return Reranked(trouble=f"it failed: {type(error).__name__}")
    if deadline.cancelled_caught:
        return Reranked(trouble=f"it did not answer within {seconds:g} s")
    if len(given) != len(texts) or not all(math.isfinite(score) and 0 <= score <= 1 for score in given):
        return Reranked(trouble="it did not give a score in 0..1 for each text")
    return Reranked(scores=dict(zip(passages, given, strict=True)))
