"""The candidates of a query: the best rows by words and vectors together, and which of them are worth reading.

A row without a word of the query is scored by its vector, one without a vector by its words, on the same scale. Pruning
leaves out entries that occur once and can't be among the best.

Invariants: the first half of the results by words alone is always included, and no pruned row is nearer than reported.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from ricordo.search.bm25 import SCORE_STEPS
from ricordo.search.contract import PruningRule
from ricordo.search.corpus import HAS_RANKING_FIELDS, IS_ENTRY, Corpus
from ricordo.search.documents import PreparedQuery, to_milliseconds
from ricordo.search.lexical import (
    LexicalScores,
    PostingsCache,
    RankedRow,
    RankedRows,
    best_rows,
    cap_repeats,
    filter_mask,
    measure_rows,
    score_rows,
)
from ricordo.search.lexical import search as lexical_search
from ricordo.search.postings import NO_TIME, Array
from ricordo.search.vector_search import SemanticQuery, Similarities

__all__ = ["SEMANTIC_WEIGHT", "prune_candidates", "search"]


SEMANTIC_WEIGHT = 0.75
"""The weight of meaning in the score of a row; words have the weight 1."""
_MIN_LIST = 64


def search(corpus: Corpus, asked: PreparedQuery, sense: SemanticQuery, occurrences: PostingsCache) -> RankedRows:
    """Return the rows that contain a word of the query or are near in meaning, best first."""
    lexical = score_rows(corpus, asked, occurrences)
    near = sense.similarities(corpus, dict(zip(asked.words.words, lexical.weights, strict=True)))
    if near is None:
        return lexical_search(corpus, asked, occurrences)
    most = max(_MIN_LIST, asked.limit)
    by_words, by_meaning = best_rows(corpus, lexical, most), _nearest_rows(corpus, asked, near, most)
    union = np.unique(np.array([*by_words, *by_meaning], dtype=np.int64))
    scores = _combined_scores(union, lexical, near)
    ordered = cap_repeats(corpus, union, np.rint(scores * SCORE_STEPS).astype(np.int64), len(union))
    rows = _keep_required(ordered, {*by_words[: asked.limit // 2], *by_meaning[: asked.limit // 4]}, asked.limit)
    return _add_semantic_signals(measure_rows(corpus, np.array(rows, dtype=np.int64), lexical), lexical, near)


def _nearest_rows(corpus: Corpus, asked: PreparedQuery, near: Similarities, limit: int) -> list[int]:
    """Return the rows that are nearest in meaning, nearest first."""
    wanted = 4 * limit
    while True:
        rows, more = near.nearest(wanted)
        rows = rows[filter_mask(corpus, rows, asked)]
        best = cap_repeats(corpus, rows, np.rint(near.similarity(rows) * SCORE_STEPS).astype(np.int64), limit)
        if len(best) == limit or not more:
            return best
        wanted *= 8


def _combined_scores(rows: Array, lexical: LexicalScores, near: Similarities) -> Array:
    """Return the scores of rows by words and meaning."""
    words = lexical.scores[rows] / lexical.max_score
    together: Array = np.where(
        near.has_vectors(rows), (words + SEMANTIC_WEIGHT * near.similarity(rows)) / (1 + SEMANTIC_WEIGHT), words
    )
    return together


def _keep_required(ordered: Sequence[int], needed: set[int], limit: int) -> list[int]:
    """Return the first `limit` rows in order, including all that are `needed`."""
    if len(ordered) <= limit:
        return [*ordered]
    spare = limit - len(needed.intersection(ordered))
    kept = []
    for row in ordered:
        if row in needed or spare > 0:
            spare -= row not in needed
            kept.append(row)
    return kept


def _add_semantic_signals(ranked: RankedRows, lexical: LexicalScores, near: Similarities) -> RankedRows:
    """Return the rows with their semantic signals added."""
    own, context = near.own_and_context(ranked.rows)
    return replace(
        ranked, scores=_combined_scores(ranked.rows, lexical, near), has_vector=near.has_vectors(ranked.rows),
        semantic_signals={"dense": own, "dense_context": context},
    )  # fmt: skip


_DAY_MILLISECONDS = 86_400_000
_ROUNDING = 1e-7


def prune_candidates(
    corpus: Corpus, found: RankedRows, cut: PruningRule, successors: Collection[int]
) -> tuple[list[RankedRow], float | None]:
    """Return the rows to read, and the nearness of the nearest pruned row, None if there is none.

    `successors` are the numbers of entries that supersede others.
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
    """Return a mask of the ids that occur more than once; a missing id (0) counts as repeated."""
    order = np.argsort(ids, kind="stable")
    same = np.diff(ids[order]) == 0
    again: Array = ids == 0
    again[order[1:][same]] = again[order[:-1][same]] = True
    return again


def _session_keys(corpus: Corpus, rows: Array) -> Array:
    """Return a number for the group of each row: its session, or else its document."""
    sessions, none = corpus["session"][rows], corpus.names["session"].get("", -1)
    companies: Array = np.where(sessions == none, -1 - corpus["document"][rows], sessions)
    return companies


def _recency(corpus: Corpus, rows: Array, cut: PruningRule, now: datetime) -> Array:
    """Return 1 for new rows, 0.5 after the half-life of their kind, 0 without a time, 1 with ranking fields."""
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
    """Return the nearness of each row: the weighted mean of the signals that it has."""
    near, total = np.zeros(len(found)), np.zeros(len(found))
    for name, weight in weights.items():
        if name in found.signals:
            near += weight * found.signals[name]
            total += weight
        elif name in found.semantic_signals and found.has_vector is not None:
            near += np.where(found.has_vector, weight * found.semantic_signals[name].astype(np.float64), 0.0)
            total += np.where(found.has_vector, weight, 0.0)
    return np.divide(near, total, out=np.zeros(len(found)), where=total > 0)
