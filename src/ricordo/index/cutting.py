"""Cutting: which of many candidates are worth reading, told from their numbers alone.

Ranking looks at a candidate's text only where it may be among the best; the others are not even read. A candidate
that has to do with others is always kept: what is no entry, as sessions are judged by all that they hold; entries of
such a session; an entry that stands in several places; and one that took the place of another.

Invariant: what is left out is an entry that stands once, and it is no nearer than `unseen` tells.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

import numpy as np

from ricordo.index.contract import PruningRule
from ricordo.index.corpus import IS_ENTRY, HAS_RANKING_FIELDS, Corpus
from ricordo.index.lexical import RankedRow, RankedRows
from ricordo.index.plan import to_milliseconds
from ricordo.index.postings import NO_TIME, Array

__all__ = ["prune_candidates"]

_DAY_MILLISECONDS = 86_400_000
_ROUNDING = 1e-7


def prune_candidates(
    corpus: Corpus, found: RankedRows, cut: PruningRule, successors: Collection[int]
) -> tuple[list[RankedRow], float | None]:
    """Return what to read of what was found, and how near the nearest other is; None where there is none.

    `successors` are the numbers of entries that took the place of others.
    """
    if len(found) <= cut.min_count:
        return found.to_list(), None
    near, rows = _similarity(found, cut.weights), found.rows
    if cut.recency and cut.now is not None:
        near += cut.recency * _recency(corpus, rows, cut, cut.now)
    least = np.partition(near, len(near) - cut.min_count)[len(near) - cut.min_count] - cut.margin - _ROUNDING
    entry = (corpus["shape"][rows] & IS_ENTRY) > 0
    keep = ~entry | (near >= least)
    if not np.all(entry):
        company = _session_keys(corpus, rows)
        keep |= np.isin(company, company[~entry])
    keep |= _is_repeated(corpus["entry"][rows])
    if successors:
        keep |= np.isin(found.numbers, [*successors])
    unseen = near[~keep]
    return found.to_list(np.flatnonzero(keep)), float(np.max(unseen)) if len(unseen) else None


def _is_repeated(ids: Array) -> Array:
    """Tell which of these ids are there more than once; having none counts as that."""
    order = np.argsort(ids, kind="stable")
    same = np.diff(ids[order]) == 0
    again: Array = ids == 0
    again[order[1:][same]] = again[order[:-1][same]] = True
    return again


def _session_keys(corpus: Corpus, rows: Array) -> Array:
    """Return a number for what each row stands among: its session, or else its document."""
    sessions, none = corpus["session"][rows], corpus.names["session"].get("", -1)
    companies: Array = np.where(sessions == none, -1 - corpus["document"][rows], sessions)
    return companies


def _recency(corpus: Corpus, rows: Array, cut: PruningRule, now: datetime) -> Array:
    """Return 1 for rows of now, 0.5 after the half-life of their kind, 0 without a time, 1 where the line tells it."""
    kinds = corpus.names["kind"]
    half_lives = np.full(max(len(kinds), 1), cut.default_half_life)
    for kind, days in cut.half_lives.items():
        if kind in kinds:
            half_lives[kinds[kind]] = days
    times = corpus["time"][rows]
    days = np.maximum(to_milliseconds(now) - times, 0) / _DAY_MILLISECONDS
    newness = np.where(times == NO_TIME, 0.0, 0.5 ** (days / half_lives[corpus["kind"][rows]]))
    return np.where(corpus["shape"][rows] & HAS_RANKING_FIELDS > 0, 1.0, newness)


def _similarity(found: RankedRows, weights: Mapping[str, float]) -> Array:
    """Return how near each row is: the mean of the signals that it has."""
    near, total = np.zeros(len(found)), np.zeros(len(found))
    for name, weight in weights.items():
        if name in found.signals:
            near += weight * found.signals[name]
            total += weight
        elif name in found.semantic_signals and found.has_vector is not None:
            near += np.where(found.has_vector, weight * found.semantic_signals[name].astype(np.float64), 0.0)
            total += np.where(found.has_vector, weight, 0.0)
    return np.divide(near, total, out=np.zeros(len(found)), where=total > 0)
