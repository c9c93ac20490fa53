"""Ranking over postings: exactly what `scoring` gives for each row, without looking at a row that holds no word.

The score of every row that holds a word is added up in one array, word by word; only the best are sorted, and only
what is returned is measured one by one.

Invariant: matches, order and signals are those of `scoring.ranked` over the same rows.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ricordo.index.contract import EVERYTHING, Query
from ricordo.index.corpus import ENTRY, MESSAGE, Corpus
from ricordo.index.plan import Asked, stamp
from ricordo.index.postings import IN_OWN, NO_TIME, WITH_ALL, Array
from ricordo.index.scoring import MOST_OF_HEAP, MOST_TWINS, OWN_SHARE, STEPS, Measured, Statistics, stem
from ricordo.index.terms import Words

__all__ = ["Found", "Lexical", "allowed", "chosen", "latest", "measured", "scored", "search", "spread"]

_FIRST = 64
_MARGIN = 1e-6


@dataclass(frozen=True, kw_only=True)
class Found:
    """A row that was found: its number and what it was measured by."""

    number: int
    measured: Measured


@dataclass(frozen=True, kw_only=True)
class _Word:
    """One word of a query: its weight, the rows that hold it, ascending, and how often, alone and with neighbours."""

    weight: float
    rows: Array
    own: Array
    every: Array


@dataclass(frozen=True, kw_only=True)
class Lexical:
    """What the words of a query say of every row: `scores`, of which `most` is the most that the query can reach."""

    asked: Asked
    words: tuple[_Word, ...]
    statistics: Statistics
    scores: Array
    most: float


def search(corpus: Corpus, asked: Asked) -> tuple[list[Found], Statistics]:
    """Return the rows that hold a word, best first, and how common the words are."""
    lexical = scored(corpus, asked)
    rows = chosen(corpus, lexical, asked.limit)
    numbers = corpus["number"][rows].tolist()
    found = [
        Found(number=number, measured=one)
        for number, one in zip(numbers, measured(corpus, np.array(rows, dtype=np.int64), lexical), strict=True)
    ]
    return found, lexical.statistics


def scored(corpus: Corpus, asked: Asked) -> Lexical:
    """Return the score of every row by the words that it holds."""
    words = asked.words
    held = {term: corpus.find(term) for term in words.terms}
    statistics = _statistics(corpus, words, held)
    weights = statistics.weights(words)
    found = tuple(
        _word(weight, [piece for term in sorted(group) for piece in held[term]], corpus.count)
        for weight, group in zip(weights, words.groups, strict=True)
    )
    scores = np.zeros(corpus.count)
    for word in found:
        scores[word.rows] += _gain(corpus, word)
    return Lexical(asked=asked, words=found, statistics=statistics, scores=scores, most=sum(weights) or 1.0)


def latest(corpus: Corpus, asked: Asked) -> list[int]:
    """Return the numbers of the newest rows that pass the filters, the newest first; those without a time last.

    Of two with one time in one document the later one is the newer one.
    """
    rows, limit = np.arange(corpus.count), asked.limit
    rows = rows[allowed(corpus, rows, asked)]
    times = corpus["time"][rows]
    if len(rows) > limit:
        least = np.partition(times, len(rows) - limit)[len(rows) - limit]
        rows, times = rows[times >= least], times[times >= least]
    fields = zip(
        times.tolist(), corpus["document"][rows].tolist(), corpus["line"][rows].tolist(), corpus["part"][rows].tolist(),
        corpus["number"][rows].tolist(), strict=True,
    )  # fmt: skip
    ordered = sorted(
        (-time, corpus.paths[document], line if time == NO_TIME else -line, part, number)
        for time, document, line, part, number in fields
    )
    return [row[-1] for row in ordered[:limit]]


def _statistics(corpus: Corpus, words: Words, held: dict[str, list[tuple[Array, Array]]]) -> Statistics:
    frequencies = {term: _places(corpus, pieces) for term, pieces in held.items()}
    related = {
        term
        for term, count in frequencies.items()
        if not count and (start := stem(term)) and corpus.has_relative(start)
    }
    return Statistics(frequencies=frequencies, related=frozenset(related))


def _places(corpus: Corpus, pieces: Sequence[tuple[Array, Array]]) -> int:
    """Return in how many places a term stands."""
    if not pieces:
        return 0
    seen = np.zeros(corpus.places, dtype=np.bool_)
    for rows, counts in pieces:
        own = rows[counts & IN_OWN > 0]
        seen[corpus["place"][own[corpus["live"][own]] if corpus.dead else own]] = True
    return int(np.count_nonzero(seen))


def _word(weight: float, pieces: Sequence[tuple[Array, Array]], count: int) -> _Word:
    """Return the postings of a word: its terms count as one."""
    if all(before[0][-1] < after[0][0] for before, after in pairwise(pieces)):
        rows = np.concatenate([rows for rows, _ in pieces] or [np.zeros(0, dtype=np.uint32)])
        counts = np.concatenate([counts for _, counts in pieces] or [np.zeros(0, dtype=np.uint8)])
        return _Word(weight=weight, rows=rows, own=counts & IN_OWN, every=counts >> WITH_ALL)
    own, every = np.zeros(count, dtype=np.uint16), np.zeros(count, dtype=np.uint16)
    for rows, counts in pieces:
        own[rows] += counts & IN_OWN
        every[rows] += counts >> WITH_ALL
    held = np.flatnonzero(every)
    return _Word(weight=weight, rows=held, own=np.minimum(own[held], IN_OWN), every=np.minimum(every[held], IN_OWN))


def _gain(corpus: Corpus, word: _Word) -> Array:
    """Return what a word adds to the scores of its rows."""
    alone = word.own / (word.own + corpus["own"][word.rows])
    beside = word.every / (word.every + corpus["every"][word.rows]) if corpus.has_neighbours else alone
    gain: Array = word.weight * (OWN_SHARE * alone + (1 - OWN_SHARE) * beside)
    return gain


def allowed(corpus: Corpus, rows: Array, asked: Asked) -> Array:
    """Return which of these rows are there and pass the filters."""
    query, skipped = asked.query, asked.skipped
    passing = corpus["live"][rows]
    documents = corpus["document"][rows]
    if set(query.sorts) != set(EVERYTHING):
        passing &= np.isin(corpus.sorts[documents], [EVERYTHING.index(sort) for sort in query.sorts])
    if query.path or skipped:
        wanted = np.zeros(len(corpus.sorts), dtype=np.bool_)
        inside = [at for at, path in corpus.paths.items() if path.startswith(query.path) and path not in skipped]
        wanted[inside] = True
        passing &= wanted[documents]
    for column, codes in _codes(corpus, query):
        passing &= np.isin(corpus[column][rows], codes)
    times = corpus["time"][rows]
    if query.since:
        passing &= times >= stamp(query.since)
    if query.until:
        passing &= (times != NO_TIME) & (times < stamp(query.until))
    return passing


def _codes(corpus: Corpus, query: Query) -> Iterator[tuple[str, list[int]]]:
    """Yield the columns of names that are filtered, with what may stand there."""
    if query.kinds:
        yield "kind", [corpus.names["kind"].get(kind, -1) for kind in query.kinds]
    if query.session:
        yield "session", [corpus.names["session"].get(query.session, -1)]
    if query.tags:
        marks = [f"\n{tag}\n" for tag in query.tags]
        yield "tags", [code for tags, code in corpus.names["tags"].items() if any(mark in tags for mark in marks)]


def chosen(corpus: Corpus, lexical: Lexical, limit: int) -> list[int]:
    """Return the best rows in order, without what is too much of one heap or one text."""
    asked, found, scores = lexical.asked, lexical.words, lexical.scores
    wanted = max(_FIRST, 2 * limit)
    while True:
        least = _bound(corpus, asked, found, scores, wanted)
        rows = _passing(corpus, asked, found, np.flatnonzero(scores >= least if least else scores))
        best = spread(corpus, rows, np.rint(scores[rows] / lexical.most * STEPS).astype(np.int64), limit)
        if len(best) == limit or not least:
            return best
        wanted *= 8


def _bound(corpus: Corpus, asked: Asked, found: Sequence[_Word], scores: Array, wanted: int) -> float:
    """Return a score that at least so many rows reach, 0 when there is none: the rows of one word will do."""
    for word in sorted(found, key=lambda word: len(word.rows)):
        if len(word.rows) >= wanted:
            reached = scores[_passing(corpus, asked, [word], word.rows)]
            if len(reached) >= wanted:
                return max(float(np.partition(reached, len(reached) - wanted)[len(reached) - wanted]) - _MARGIN, 0.0)
    return 0.0


def _passing(corpus: Corpus, asked: Asked, found: Sequence[_Word], rows: Array) -> Array:
    """Return those of these rows that the query lets through: without neighbours, a row must hold a word itself."""
    rows = rows[allowed(corpus, rows, asked)]
    if asked.query.neighbours:
        return rows
    holding = np.zeros(len(rows), dtype=np.bool_)
    for word in found:
        holding |= _counts(word, rows)[0] > 0
    kept: Array = rows[holding]
    return kept


def _counts(word: _Word, rows: Array) -> tuple[Array, Array]:
    """Return how often rows hold a word, alone and with their neighbours."""
    if not len(word.rows):
        nothing = np.zeros(len(rows), dtype=np.uint8)
        return nothing, nothing
    at = np.minimum(np.searchsorted(word.rows, rows), len(word.rows) - 1)
    there = word.rows[at] == rows
    return word.own[at] * there, word.every[at] * there


def spread(corpus: Corpus, rows: Array, steps: Array, limit: int) -> list[int]:
    """Return the best `limit` of these ascending rows in order, without what is too much of one heap or one text."""
    times, documents, lines, parts = (corpus[name][rows] for name in ("time", "document", "line", "part"))
    known, place = np.unique(documents, return_inverse=True)
    by_path = np.argsort(np.argsort([corpus.paths[document] for document in known.tolist()]))
    newest_first = np.where(times == NO_TIME, 0, -times)
    ordered = rows[np.lexsort((parts, lines, by_path[place], newest_first, -steps))]
    # mostly nothing is too much, which arrays tell at once
    best = ordered[:limit]
    heaps, twins = np.sort(_heaps(corpus, best)), np.sort(corpus["twin"][best])
    if np.any(heaps[MOST_OF_HEAP:] == heaps[:-MOST_OF_HEAP]) or np.any(twins[MOST_TWINS:] == twins[:-MOST_TWINS]):
        return _spread(corpus, ordered, limit)
    unchanged: list[int] = best.tolist()
    return unchanged


def _heaps(corpus: Corpus, rows: Array) -> Array:
    """Return a number for the message, the entry or else the document of each row."""
    whole = (corpus["shape"][rows] & (MESSAGE | ENTRY)) == 0
    heaps: Array = (corpus["document"][rows].astype(np.int64) << 32) | np.where(whole, 0, corpus["line"][rows])
    return heaps


def _spread(corpus: Corpus, rows: Array, limit: int) -> list[int]:
    """Return the first rows in their order without what is too much of one heap or one text."""
    taken: Counter[int] = Counter()
    twins: Counter[int] = Counter()
    best: list[int] = []
    fields = zip(rows.tolist(), _heaps(corpus, rows).tolist(), corpus["twin"][rows].tolist(), strict=True)
    for row, heap, twin in fields:
        if taken[heap] < MOST_OF_HEAP and twins[twin] < MOST_TWINS:
            taken[heap] += 1
            twins[twin] += 1
            best.append(row)
            if len(best) == limit:
                break
    return best


def measured(corpus: Corpus, rows: Array, lexical: Lexical) -> Iterator[Measured]:
    """Yield the signals of each row, those that hold no word too."""
    found, words = lexical.words, lexical.asked.words
    silent = lexical.statistics.silent(words)
    weights = np.array([word.weight for word in found])
    most = sum(word.weight for word in found) or 1.0
    own, every = np.zeros((len(found), len(rows))), np.zeros((len(found), len(rows)))
    for nth, word in enumerate(found):
        own[nth], every[nth] = _counts(word, rows)
    sums = [
        weights @ (own / (own + corpus["own"][rows])) / most,
        weights @ (every / (every + corpus["every"][rows])) / most,
        weights @ (own > 0) / most,
        weights @ (every > 0) / most,
    ]
    # many rows hold the same words
    codes = ((1 << np.arange(len(found))) @ (own > 0)).tolist()
    held = {code: tuple(word for nth, word in enumerate(words.shown) if code >> nth & 1) for code in {*codes}}
    for code, bm25, context, coverage, reach in zip(codes, *(one.tolist() for one in sums), strict=True):
        signals = {"bm25": bm25, "context": context, "coverage": coverage, "reach": reach, "absent": silent}
        yield Measured(score=OWN_SHARE * bm25 + (1 - OWN_SHARE) * context, signals=signals, held=held[code])
