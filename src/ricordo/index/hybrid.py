"""Ranking by words and by meaning together: the best of both lists, each row with all of its signals.

A row that holds no word of the query joins by its meaning alone, and one without a vector is ranked by its words alone,
on the same scale.

Invariant: the first half of what words alone find is among what is found.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ricordo.index.corpus import Corpus
from ricordo.index.dense import Near, Sense
from ricordo.index.lexical import Lexical, Ranked, allowed, chosen, measured, scored, spread
from ricordo.index.lexical import search as lexical_search
from ricordo.index.occurrences import Occurrences
from ricordo.index.plan import Asked
from ricordo.index.postings import Array
from ricordo.index.scoring import STEPS

__all__ = ["MEANING", "search"]

MEANING = 0.75
"""What meaning counts in the score of a row, where its words count 1."""

_FIRST = 64


def search(corpus: Corpus, asked: Asked, sense: Sense, occurrences: Occurrences) -> Ranked:
    """Return the rows that hold a word or are near in meaning, best first."""
    lexical = scored(corpus, asked, occurrences)
    near = sense.near(corpus, dict(zip(asked.words.shown, lexical.weights, strict=True)))
    if near is None:
        return lexical_search(corpus, asked, occurrences)
    most = max(_FIRST, asked.limit)
    by_words, by_meaning = chosen(corpus, lexical, most), _nearest(corpus, asked, near, most)
    union = np.unique(np.array([*by_words, *by_meaning], dtype=np.int64))
    scores = _together(union, lexical, near)
    ordered = spread(corpus, union, np.rint(scores * STEPS).astype(np.int64), len(union))
    rows = _kept(ordered, {*by_words[: asked.limit // 2], *by_meaning[: asked.limit // 4]}, asked.limit)
    return _with_meaning(measured(corpus, np.array(rows, dtype=np.int64), lexical), lexical, near)


def _nearest(corpus: Corpus, asked: Asked, near: Near, limit: int) -> list[int]:
    """Return the rows that are nearest in meaning, the nearest first."""
    wanted = 4 * limit
    while True:
        rows, more = near.nearest(wanted)
        rows = rows[allowed(corpus, rows, asked)]
        best = spread(corpus, rows, np.rint(near.both(rows) * STEPS).astype(np.int64), limit)
        if len(best) == limit or not more:
            return best
        wanted *= 8


def _together(rows: Array, lexical: Lexical, near: Near) -> Array:
    """Return the score of rows by words and meaning."""
    words = lexical.scores[rows] / lexical.most
    together: Array = np.where(near.knows(rows), (words + MEANING * near.both(rows)) / (1 + MEANING), words)
    return together


def _kept(ordered: Sequence[int], needed: set[int], limit: int) -> list[int]:
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


def _with_meaning(ranked: Ranked, lexical: Lexical, near: Near) -> Ranked:
    """Return what rows were measured by, with how near they are."""
    own, context = near.sides(ranked.rows)
    return replace(
        ranked, scores=_together(ranked.rows, lexical, near), known=near.knows(ranked.rows),
        meaning={"dense": own, "dense_context": context},
    )  # fmt: skip
