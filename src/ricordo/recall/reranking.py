"""An optional second opinion on the best hits, by a plug-in such as a cross-encoder.

Invariant: it is never waited for past its deadline, and one that is late, fails or answers nonsense changes nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from ricordo.recall.asked import PassageLocation
from ricordo.recall.hits import Passage

__all__ = ["RerankResult", "Reranker", "rerank_passages"]

_MAX_RERANK_CHARS = 2_000


class Reranker(Protocol):
    """Says how well texts answer a query."""

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score in 0..1 for each text, higher is better, in their order.

        It is cancelled at its deadline, so it must not block the event loop: a model is run in a thread.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class RerankResult:
    """What a reranker said, by the place of each passage; `error` is why nothing can be had of it, else empty."""

    scores: Mapping[PassageLocation, float] = field(default_factory=dict)
    error: str = ""


async def rerank_passages(
    reranker: Reranker, query: str, passages: Mapping[PassageLocation, Passage], *, seconds: float
) -> RerankResult:
    """Return what `reranker` says of the first 2,000 characters of each passage; nothing where it can't be had."""
    if not passages or seconds <= 0:
        return RerankResult()
    texts = [passage.match.content[:_MAX_RERANK_CHARS] for passage in passages.values()]
    given: Sequence[float] = ()
    with anyio.move_on_after(seconds) as deadline:
        try:
            given = tuple(float(score) for score in await reranker.scores(query, texts))
        except Exception as error:  # noqa: BLE001  (a plug-in of somebody else may raise anything, and stops nothing)
            return RerankResult(error=f"it failed: {type(error).__name__}")
    if deadline.cancelled_caught:
        return RerankResult(error=f"it did not answer within {seconds:g} s")
    if len(given) != len(texts) or not all(math.isfinite(score) and 0 <= score <= 1 for score in given):
        return RerankResult(error="it did not give a score in 0..1 for each text")
    return RerankResult(scores=dict(zip(passages, given, strict=True)))
