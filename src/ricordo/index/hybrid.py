"""Ranking by words and by meaning together: the best of both lists, each row with all of its signals.

A row that holds no word of the query joins by its meaning alone, and one without a vector is ranked by its words alone,
on the same scale.

Invariant: the first half of what words alone find is among what is found.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ricordo.index.corpus import Corpus
from ricordo.index.dense import Near, Sense
from ricordo.index.lexical import Found, Lexical, allowed, chosen, measured, scored, spread
from ricordo.index.lexical import search as lexical_search
from ricordo.index.plan import Asked
from ricordo.index.postings import Array
from ricordo.index.scoring import STEPS, Measured, Statistics

__all__ = ["MEANING", "search"]

MEANING = 0.75
"""What meaning counts in the score of a row, where its words count 1."""

_FIRST = 64


def search(corpus: Corpus, asked: Asked, sense: Sense) -> tuple[list[Found], Statistics]:
    """Return the rows that hold a word or are near in meaning, best first, and how common the words are."""
    lexical = scored(corpus, asked)
    weights = dict(zip(asked.words.shown, lexical.statistics.weights(asked.words), strict=True))
    near = sense.near(corpus, weights)
    if near is None:
        return lexical_search(corpus, asked)
    most = max(_FIRST, asked.limit)
    by_words, by_meaning = chosen(corpus, lexical, most), _nearest(corpus, asked, near, most)
    union = np.array(sorted({*by_words, *by_meaning}), dtype=np.int64)
    scores = _together(union, lexical, near)
    ordered = spread(corpus, union, np.rint(scores * STEPS).astype(np.int64), len(union))
    rows = _kept(ordered, {*by_words[: asked.limit // 2], *by_meaning[: asked.limit // 4]}, asked.limit)
    at = np.array(rows, dtype=np.int64)
    numbers = corpus["number"][at].tolist()
    found = [
        Found(number=number, measured=one)
        for number, one in zip(numbers, _with_meaning(at, measured(corpus, at, lexical), lexical, near), strict=True)
    ]
    return found, lexical.statistics


def _nearest(corpus: Corpus, asked: Asked, near: Near, limit: int) -> list[int]:
    """Return the rows that are nearest in meaning, the nearest first."""
    both = np.where(near.known, near.both, 0.0)
    wanted = 4 * limit
    while True:
        least = float(np.partition(both, len(both) - wanted)[len(both) - wanted]) if len(both) > wanted else 0.0
        rows = np.flatnonzero(both >= least if least > 0 else both > 0)
        rows = rows[allowed(corpus, rows, asked)]
        best = spread(corpus, rows, np.rint(both[rows] * STEPS).astype(np.int64), limit)
        if len(best) == limit or least <= 0:
            return best
        wanted *= 8


def _together(rows: Array, lexical: Lexical, near: Near) -> Array:
    """Return the score of rows by words and meaning."""
    words = lexical.scores[rows] / lexical.most
    together: Array = np.where(near.known[rows], (words + MEANING * near.both[rows]) / (1 + MEANING), words)
    return together


def _kept(ordered: Sequence[int], needed: set[int], limit: int) -> list[int]:
    """Return the first rows in their order, and among them all that are needed."""
    spare = limit - len(needed.intersection(ordered))
    kept = []
    for row in ordered:
        if row in needed or spare > 0:
            spare -= row not in needed
            kept.append(row)
    return kept


def _with_meaning(rows: Array, each: Iterable[Measured], lexical: Lexical, near: Near) -> Iterator[Measured]:
    """Yield what rows were measured by, with how near they are."""
    scores = _together(rows, lexical, near).tolist()
    columns = near.known[rows].tolist(), near.own[rows].tolist(), near.context[rows].tolist()
    for one, score, known, own, context in zip(each, scores, *columns, strict=True):
        meaning = {"dense": own, "dense_context": context} if known else {}
        yield replace(one, score=score, signals={**one.signals, **meaning})
