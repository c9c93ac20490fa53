"""Ranking by words and by meaning together: the best of both lists, each row with all of its signals.

A row that holds no word of the query joins by its meaning alone, and one without a vector is ranked by its words alone,
on the same scale.

Invariant: the first half of what words alone find is among what is found.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ricordo.index.corpus import Corpus
from ricordo.index.dense import Similarities, SemanticQuery
from ricordo.index.lexical import (
    LexicalScores,
    RankedRows,
    filter_mask,
    best_rows,
    measure_rows,
    score_rows,
    cap_repeats,
)
from ricordo.index.lexical import search as lexical_search
from ricordo.index.occurrences import PostingsCache
from ricordo.index.plan import PreparedQuery
from ricordo.index.postings import Array
from ricordo.index.scoring import SCORE_STEPS

__all__ = ["SEMANTIC_WEIGHT", "search"]

SEMANTIC_WEIGHT = 0.75
"""What meaning counts in the score of a row, where its words count 1."""

_MIN_LIST = 64


def search(corpus: Corpus, asked: PreparedQuery, sense: SemanticQuery, occurrences: PostingsCache) -> RankedRows:
    """Return the rows that hold a word or are near in meaning, best first."""
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
    """Return the rows that are nearest in meaning, the nearest first."""
    wanted = 4 * limit
    while True:
        rows, more = near.nearest(wanted)
        rows = rows[filter_mask(corpus, rows, asked)]
        best = cap_repeats(corpus, rows, np.rint(near.similarity(rows) * SCORE_STEPS).astype(np.int64), limit)
        if len(best) == limit or not more:
            return best
        wanted *= 8


def _combined_scores(rows: Array, lexical: LexicalScores, near: Similarities) -> Array:
    """Return the score of rows by words and meaning."""
    words = lexical.scores[rows] / lexical.max_score
    together: Array = np.where(
        near.has_vectors(rows), (words + SEMANTIC_WEIGHT * near.similarity(rows)) / (1 + SEMANTIC_WEIGHT), words
    )
    return together


def _keep_required(ordered: Sequence[int], needed: set[int], limit: int) -> list[int]:
    """Return the first rows in their order, and among them all that are needed."""
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
    """Return what rows were measured by, with how near they are."""
    own, context = near.own_and_context(ranked.rows)
    return replace(
        ranked, scores=_combined_scores(ranked.rows, lexical, near), has_vector=near.has_vectors(ranked.rows),
        semantic_signals={"dense": own, "dense_context": context},
    )  # fmt: skip
