"""Lexical search over the corpus: the scores of `bm25`, computed only for rows with a word of the query.

The postings of a query's words are merged once and cached until the corpus changes.

Invariant: matches, order and signals are those of `bm25.rank_candidates` over the same rows.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np

from ricordo.lazy import dataclass
from ricordo.search.bm25 import (
    MAX_IDENTICAL,
    MAX_PER_GROUP,
    OWN_SHARE,
    SCORE_STEPS,
    ScoreDetails,
    TermStatistics,
    stem_prefix,
)
from ricordo.search.contract import Query
from ricordo.search.corpus import CONTEXT_COUNT_SHIFT, IS_ENTRY, IS_MESSAGE, NO_TIME, OWN_COUNT_MASK, Array, Corpus
from ricordo.search.documents import PreparedQuery, QueryWords, to_milliseconds

__all__ = [
    "LexicalScores",
    "PostingsCache",
    "RankedRow",
    "RankedRows",
    "WordPostings",
    "best_rows",
    "cap_repeats",
    "filter_mask",
    "measure_rows",
    "newest_numbers",
    "score_rows",
    "search",
]


_MIN_CACHE_ROWS = 2**18
_CACHE_FACTOR = 4
_MAX_UNKNOWN_TERMS = 4_096


@dataclass(frozen=True, kw_only=True)
class WordPostings:
    """The rows that contain a word, ascending, and its counts in each, alone and with neighbours.

    `gain` is what the word adds to the score of each row per unit of its weight.
    """

    rows: Array
    own: Array
    every: Array
    gain: Array


class PostingsCache:
    """The postings of query words in one corpus; the least recently used are evicted."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._corpus: Corpus | None = None
        self._revision = -1
        self._hidden: tuple[int, ...] = ()
        self._words: OrderedDict[frozenset[str], WordPostings] = OrderedDict()
        self._places: dict[str, int] = {}
        self._relatives: dict[str, bool] = {}
        self._size = 0

    def find(
        self, corpus: Corpus, words: QueryWords, hidden: tuple[int, ...] = ()
    ) -> tuple[tuple[WordPostings, ...], TermStatistics]:
        """Return the postings of each word of a query, and the term statistics without the `hidden` documents.

        The postings still include rows of these documents; the caller has to filter them.
        """
        if corpus is not self._corpus or corpus.revision != self._revision or hidden != self._hidden:
            self._corpus, self._revision, self._hidden = corpus, corpus.revision, hidden
            self._words.clear()
            self._places.clear()
            self._relatives.clear()
            self._size = 0
        found = tuple(self._find_word(corpus, group) for group in words.groups)
        frequencies = {term: self._places[term] for term in words.terms}
        related = {term for term, count in frequencies.items() if not count and self._has_relative(corpus, term)}
        self._evict(len(words.groups), max(_MIN_CACHE_ROWS, _CACHE_FACTOR * corpus.count))
        return found, TermStatistics(frequencies=frequencies, related_terms=frozenset(related))

    def _find_word(self, corpus: Corpus, group: frozenset[str]) -> WordPostings:
        if group in self._words:
            self._words.move_to_end(group)
            return self._words[group]
        held = {term: corpus.find_postings(term) for term in sorted(group)}
        for term, pieces in held.items():
            self._places[term] = _count_places(corpus, pieces, self._hidden)
        made = _merge_postings(corpus, [piece for pieces in held.values() for piece in pieces])
        self._words[group] = made
        self._size += len(made.rows)
        return made

    def _has_relative(self, corpus: Corpus, term: str) -> bool:
        """Return whether a term that occurs nowhere has a related term that does."""
        if term not in self._relatives:
            if len(self._relatives) >= _MAX_UNKNOWN_TERMS:
                self._relatives.clear()
            start = stem_prefix(term)
            self._relatives[term] = bool(start) and corpus.has_relative(start, self._hidden)
        return self._relatives[term]

    def _evict(self, needed: int, max_rows: int) -> None:
        """Evict the least recently used words, but not those of this query."""
        while self._size > max_rows and len(self._words) > needed:
            group, evicted = self._words.popitem(last=False)
            self._size -= len(evicted.rows)
            kept_terms = frozenset().union(*self._words)
            for term in group - kept_terms:
                del self._places[term]


def _count_places(corpus: Corpus, pieces: Sequence[tuple[Array, Array]], hidden: tuple[int, ...]) -> int:
    """Return in how many places outside the `hidden` documents a term occurs."""
    if corpus.places == corpus.count and not corpus.dead_count and not hidden:
        # every row has a place of its own
        return sum(int(np.count_nonzero(counts & OWN_COUNT_MASK)) for _, counts in pieces)
    seen = np.zeros(corpus.places, dtype=np.bool_)
    for rows, counts in pieces:
        own = rows[counts & OWN_COUNT_MASK > 0]
        seen[corpus["place"][own[corpus.visible_mask(own, hidden)] if corpus.dead_count or hidden else own]] = True
    return int(np.count_nonzero(seen))


def _merge_postings(corpus: Corpus, pieces: Sequence[tuple[Array, Array]]) -> WordPostings:
    """Return the postings of a word; all of its terms count as one."""
    if all(before[0][-1] < after[0][0] for before, after in pairwise(pieces)):
        rows = np.concatenate([rows for rows, _ in pieces] or [np.zeros(0, dtype=np.int64)])
        counts = np.concatenate([counts for _, counts in pieces] or [np.zeros(0, dtype=np.uint8)])
        return _build_word_postings(corpus, rows, counts & OWN_COUNT_MASK, counts >> CONTEXT_COUNT_SHIFT)
    own, every = np.zeros(corpus.count, dtype=np.uint16), np.zeros(corpus.count, dtype=np.uint16)
    for rows, counts in pieces:
        own[rows] += counts & OWN_COUNT_MASK
        every[rows] += counts >> CONTEXT_COUNT_SHIFT
    held = np.flatnonzero(every)
    return _build_word_postings(
        corpus, held, np.minimum(own[held], OWN_COUNT_MASK), np.minimum(every[held], OWN_COUNT_MASK)
    )


def _build_word_postings(corpus: Corpus, rows: Array, own: Array, every: Array) -> WordPostings:
    alone = own / (own + corpus["own"][rows])
    beside = every / (every + corpus["every"][rows]) if corpus.has_neighbours else alone
    return WordPostings(rows=rows, own=own, every=every, gain=OWN_SHARE * alone + (1 - OWN_SHARE) * beside)


_MIN_RANKED = 64
_SCORE_MARGIN = 1e-6
_PARTITION_FACTOR = 4


@dataclass(frozen=True, kw_only=True)
class RankedRow:
    """A row that was found: its number and its score details."""

    number: int
    details: ScoreDetails


@dataclass(frozen=True, kw_only=True)
class RankedRows:
    """Rows that were found, best first, with their scores and a column for each signal.

    `word_bits` is a bit set of the `query_words` in each row; `absent_words` occur in no row, and `absent_share` is
    their share. `has_vector` marks the rows that have the `semantic_signals`.
    """

    rows: Array
    numbers: Array
    scores: Array
    signals: Mapping[str, Array]
    word_bits: Array
    query_words: tuple[str, ...]
    absent_words: tuple[str, ...]
    absent_share: float
    semantic_signals: Mapping[str, Array] = field(default_factory=dict)
    has_vector: "Array | None" = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def to_list(self, places: "Array | None" = None) -> list[RankedRow]:
        """Return the rows at these places, or all, as single objects."""
        at = np.arange(len(self)) if places is None else places
        names, columns = (
            (*self.signals, "missing_words", *self.semantic_signals),
            [column[at].tolist() for column in self._columns()],
        )
        without = len(names) - len(self.semantic_signals)
        known = [False] * len(at) if self.has_vector is None else self.has_vector[at].tolist()
        codes = [int(code) for code in self.word_bits[at].tolist()]
        # many rows contain the same words
        words = {code: tuple(word for nth, word in enumerate(self.query_words) if code >> nth & 1) for code in {*codes}}
        rows = zip(
            self.numbers[at].tolist(), self.scores[at].tolist(), codes, known, zip(*columns, strict=True), strict=True
        )
        return [
            RankedRow(
                number=number,
                details=ScoreDetails(
                    score=score, words=words[code],
                    signals=dict(zip(names, values if has_meaning else values[:without], strict=False)),
                ),
            )
            for number, score, code, has_meaning, values in rows
        ]  # fmt: skip

    def _columns(self) -> Iterator[Array]:
        """Yield the signals of the rows."""
        yield from self.signals.values()
        yield np.full(len(self), self.absent_share)
        yield from self.semantic_signals.values()


@dataclass(frozen=True, kw_only=True)
class LexicalScores:
    """The scores of all rows by the words of a query; `max_score` is the maximum the query can reach."""

    query: PreparedQuery
    words: tuple[WordPostings, ...]
    weights: tuple[float, ...]
    statistics: TermStatistics
    scores: Array
    max_score: float


def search(corpus: Corpus, prepared: PreparedQuery, occurrences: PostingsCache) -> RankedRows:
    """Return the rows that contain a word of the query, best first."""
    lexical = score_rows(corpus, prepared, occurrences)
    rows = np.array(best_rows(corpus, lexical, prepared.limit), dtype=np.int64)
    return measure_rows(corpus, rows, lexical)


def score_rows(corpus: Corpus, prepared: PreparedQuery, occurrences: PostingsCache) -> LexicalScores:
    """Return the score of every row by its words."""
    words, statistics = occurrences.find(corpus, prepared.words, corpus.hidden_documents(prepared.query.profile))
    weights = tuple(statistics.weights(prepared.words))
    scores = np.zeros(corpus.count)
    for weight, word in zip(weights, words, strict=True):
        scores[word.rows] += weight * word.gain
    return LexicalScores(
        query=prepared,
        words=words,
        weights=weights,
        statistics=statistics,
        scores=scores,
        max_score=sum(weights) or 1.0,
    )


def newest_numbers(corpus: Corpus, prepared: PreparedQuery) -> list[int]:
    """Return the numbers of the newest rows that match the filters, newest first; rows without a time come last.

    With equal times in one document, the later line is the newer one.
    """
    rows, limit = np.arange(corpus.count), prepared.limit
    rows = rows[filter_mask(corpus, rows, prepared)]
    times = corpus["time"][rows]
    if len(rows) > limit:
        least = np.partition(times, len(rows) - limit)[len(rows) - limit]
        rows, times = rows[times >= least], times[times >= least]
    fields = zip(
        times.tolist(), corpus["document"][rows].tolist(), corpus["line"][rows].tolist(), corpus["part"][rows].tolist(),
        corpus["number"][rows].tolist(), strict=True,
    )  # fmt: skip
    newest = sorted(
        (-time, corpus.paths[document], line if time == NO_TIME else -line, part, number)
        for time, document, line, part, number in fields
    )
    return [row[-1] for row in newest[:limit]]


def filter_mask(corpus: Corpus, rows: Array, prepared: PreparedQuery) -> Array:
    """Return a mask of these rows: not removed, and matching the filters."""
    query = prepared.query
    passing = corpus["live"][rows]
    documents = corpus.document_mask(query.document_types, query.path, prepared.skipped_paths, query.profile)
    if documents is not None:
        passing &= documents[corpus["document"][rows]]
    for column, codes in _filter_codes(corpus, query):
        passing &= np.isin(corpus[column][rows], codes)
    if query.since or query.until:
        times = corpus["time"][rows]
        passing &= times >= to_milliseconds(query.since) if query.since else times != NO_TIME
        passing &= times < to_milliseconds(query.until) if query.until else True
    return passing


def _passes_everything(corpus: Corpus, prepared: PreparedQuery) -> bool:
    """Return whether no row was removed and all match the filters; this is determined without reading the rows."""
    query = prepared.query
    filters = query.kinds or query.tags or query.session or query.since or query.until
    return (
        not (filters or corpus.dead_count)
        and corpus.document_mask(query.document_types, query.path, prepared.skipped_paths, query.profile) is None
    )


def _filter_codes(corpus: Corpus, query: Query) -> Iterator[tuple[str, list[int]]]:
    """Yield the columns of names that are filtered, with the codes that match."""
    if query.kinds:
        yield "kind", [corpus.names["kind"].get(kind, -1) for kind in query.kinds]
    if query.session:
        yield "session", [corpus.names["session"].get(query.session, -1)]
    if query.tags:
        marks = [f"\n{tag}\n" for tag in query.tags]
        yield "tags", [code for tags, code in corpus.names["tags"].items() if any(mark in tags for mark in marks)]


def best_rows(corpus: Corpus, lexical: LexicalScores, limit: int) -> list[int]:
    """Return the best rows in order, with the limits per group and per identical text."""
    asked, found, scores = lexical.query, lexical.words, lexical.scores
    min_rows = max(_MIN_RANKED, 2 * limit)
    while True:
        least = _score_bound(corpus, asked, found, scores, min_rows)
        rows = _filter_rows(corpus, asked, found, np.flatnonzero(scores >= least if least else scores))
        best = cap_repeats(
            corpus, rows, np.rint(scores[rows] / lexical.max_score * SCORE_STEPS).astype(np.int64), limit
        )
        if len(best) == limit or not least:
            return best
        min_rows *= 8


def _score_bound(
    corpus: Corpus, prepared: PreparedQuery, found: Sequence[WordPostings], scores: Array, min_rows: int
) -> float:
    """Return a score that at least `min_rows` rows reach, judged by the rows of one word; 0 if there is none."""
    for word in sorted(found, key=lambda word: len(word.rows)):
        if len(word.rows) >= min_rows:
            passing = scores[_filter_rows(corpus, prepared, [word], word.rows)]
            if len(passing) >= min_rows:
                return max(
                    float(np.partition(passing, len(passing) - min_rows)[len(passing) - min_rows]) - _SCORE_MARGIN, 0.0
                )
    return 0.0


def _filter_rows(corpus: Corpus, prepared: PreparedQuery, found: Sequence[WordPostings], rows: Array) -> Array:
    """Return the rows that match the query; without neighbours, a row must contain a word itself."""
    if not _passes_everything(corpus, prepared):
        rows = rows[filter_mask(corpus, rows, prepared)]
    if prepared.query.neighbours:
        return rows
    holding = np.zeros(len(rows), dtype=np.bool_)
    for word in found:
        holding |= _word_counts(word, rows)[0] > 0
    passing: Array = rows[holding]
    return passing


def _word_counts(word: WordPostings, rows: Array) -> tuple[Array, Array]:
    """Return the counts of a word in these rows, alone and with their neighbours."""
    if not len(word.rows):
        nothing = np.zeros(len(rows), dtype=np.uint8)
        return nothing, nothing
    at = np.minimum(np.searchsorted(word.rows, rows), len(word.rows) - 1)
    present = word.rows[at] == rows
    return word.own[at] * present, word.every[at] * present


def cap_repeats(corpus: Corpus, rows: Array, steps: Array, limit: int) -> list[int]:
    """Return the best `limit` of these ascending rows in order, with the limits per group and per identical text."""
    if len(rows) > _PARTITION_FACTOR * limit:
        # sort only the best of many rows, unless too many of them are in one group
        high = steps >= np.partition(steps, len(steps) - 2 * limit)[len(steps) - 2 * limit]
        best = _sort_and_cap(corpus, rows[high], steps[high], limit)
        if len(best) == limit:
            return best
    return _sort_and_cap(corpus, rows, steps, limit)


def _sort_and_cap(corpus: Corpus, rows: Array, steps: Array, limit: int) -> list[int]:
    """Return the result of `cap_repeats`, by sorting all rows."""
    ordered = rows[_sort_order(corpus, rows, steps)]
    # the limits are rarely exceeded, which is checked on arrays first
    best = ordered[:limit]
    groups, twins = np.sort(_group_keys(corpus, best)), np.sort(corpus["twin"][best])
    if np.any(groups[MAX_PER_GROUP:] == groups[:-MAX_PER_GROUP]) or np.any(
        twins[MAX_IDENTICAL:] == twins[:-MAX_IDENTICAL]
    ):
        return _cap_sorted(corpus, ordered, limit)
    unchanged: list[int] = best.tolist()
    return unchanged


def _sort_order(corpus: Corpus, rows: Array, steps: Array) -> Array:
    """Return the order of these rows: among equals the newer first, then by the place in the files."""
    order = np.argsort(-steps, kind="stable")
    ordered = steps[order]
    same = ordered[1:] == ordered[:-1]
    if not np.any(same):
        return order
    # only equal rows have to be sorted further, and there are usually few
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    equals = order[places]
    times, documents, lines, parts = (corpus[name][rows[equals]] for name in ("time", "document", "line", "part"))
    newest_first = np.where(times == NO_TIME, 0, -times)
    order[places] = equals[np.lexsort((parts, lines, corpus.path_order[documents], newest_first, -steps[equals]))]
    return order


def _group_keys(corpus: Corpus, rows: Array) -> Array:
    """Return a number for the message, the entry or else the document of each row."""
    is_document = (corpus["shape"][rows] & (IS_MESSAGE | IS_ENTRY)) == 0
    keys: Array = (corpus["document"][rows].astype(np.int64) << 32) | np.where(is_document, 0, corpus["line"][rows])
    return keys


def _cap_sorted(corpus: Corpus, rows: Array, limit: int) -> list[int]:
    """Return the first rows in order, with the limits per group and per identical text."""
    counts: Counter[int] = Counter()
    twins: Counter[int] = Counter()
    best: list[int] = []
    fields = zip(rows.tolist(), _group_keys(corpus, rows).tolist(), corpus["twin"][rows].tolist(), strict=True)
    for row, group, twin in fields:
        if counts[group] < MAX_PER_GROUP and twins[twin] < MAX_IDENTICAL:
            counts[group] += 1
            twins[twin] += 1
            best.append(row)
            if len(best) == limit:
                break
    return best


def measure_rows(corpus: Corpus, rows: Array, lexical: LexicalScores) -> RankedRows:
    """Return the signals of each row, also of rows without a word of the query."""
    words, max_score = lexical.words, lexical.max_score
    absent = lexical.statistics.absent_words(lexical.query.words)
    weights = np.array(lexical.weights)
    own, every = np.zeros((len(words), len(rows))), np.zeros((len(words), len(rows)))
    for nth, word in enumerate(words):
        own[nth], every[nth] = _word_counts(word, rows)
    bm25 = weights @ (own / (own + corpus["own"][rows])) / max_score
    context = weights @ (every / (every + corpus["every"][rows])) / max_score
    return RankedRows(
        rows=rows,
        numbers=corpus["number"][rows],
        scores=OWN_SHARE * bm25 + (1 - OWN_SHARE) * context,
        signals={
            "bm25": bm25, "context": context, "coverage": weights @ (own > 0) / max_score,
            "reach": weights @ (every > 0) / max_score,
        },
        word_bits=(1 << np.arange(len(words))) @ (own > 0),
        query_words=lexical.query.words.words,
        absent_words=absent,
        absent_share=lexical.statistics.absent_share(lexical.query.words, absent),
    )  # fmt: skip
