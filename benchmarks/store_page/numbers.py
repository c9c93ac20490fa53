"""One row of the benchmark: what a store took at one size, as percentiles in milliseconds."""

import statistics
from collections.abc import Sequence
from itertools import chain
from typing import TypedDict

from store_page.samples import Samples

__all__ = ["Row", "percentile", "row_of"]


class Row(TypedDict):
    """Milliseconds, bytes and counts: `fill_ms` is the mean of a save without waiting for the disk, with the closing of
    sessions; `limit_save_ms` and `limit_read_ms` are what the disk itself takes."""

    store: str
    entries: int
    fill_ms: float
    closing_ms: float
    save_ms: list[float]
    limit_save_ms: list[float]
    recall_ms: list[float]
    recall_by_question_ms: dict[str, float]
    recall_after_save_ms: list[float]
    preamble_ms: float
    reopen_ms: float
    limit_read_ms: float
    file_bytes: int
    files: int
    memory_bytes: int


def row_of(
    scheme: str, entries: int, taken: Samples, *, reading: Sequence[float], size: int, files: int, memory: int
) -> Row:
    """Return the row of a store; pairs are the middle and the 95th percentile."""
    return Row(
        store=scheme,
        entries=entries,
        fill_ms=round(1000 * (sum(taken.fill) + sum(taken.closings)) / max(entries, 1), 3),
        closing_ms=_middle(taken.closings),
        save_ms=_pair(taken.saves),
        limit_save_ms=_pair(taken.aside),
        recall_ms=_pair([*chain.from_iterable(taken.recalls.values())]),
        recall_by_question_ms={sort: _middle(seconds) for sort, seconds in taken.recalls.items()},
        recall_after_save_ms=_pair(taken.later),
        preamble_ms=_middle(taken.preambles),
        reopen_ms=_middle(taken.reopenings),
        limit_read_ms=_middle(reading),
        file_bytes=size,
        files=files,
        memory_bytes=memory,
    )


def percentile(seconds: Sequence[float], share: float) -> float:
    """Return the value that this share of `seconds` does not exceed, by the nearest rank; 0 for none."""
    ordered = sorted(seconds)
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)] if ordered else 0.0


def _pair(seconds: Sequence[float]) -> list[float]:
    return [_middle(seconds), round(percentile(seconds, 0.95) * 1000, 3)]


def _middle(seconds: Sequence[float]) -> float:
    return round(statistics.median(seconds) * 1000, 3) if seconds else 0.0
