"""Lexical search over the corpus: the scores of `bm25`, computed only for rows with a word of the query.

The postings of a query's words are merged once and cached until the corpus changes.

Invariant: matches, order and signals are those of `bm25.rank_candidates` over the same rows.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import compress, pairwise

import numpy as np

from ricordo.lazy import dataclass
from ricordo.search.bm25 import (
    MAX_IDENTICAL,
    MAX_PER_GROUP,
    OWN_SHARE,
    SCORE_STEPS,
    TermStatistics,
    stem_prefix,
)
from ricordo.search.contract import NO_TIME, Chunk, Match, Query
from ricordo.search.corpus import Array, Corpus
from ricordo.search.documents import IS_ENTRY, IS_MESSAGE, PreparedQuery, QueryWords, to_milliseconds
from ricordo.search.postings import CONTEXT_COUNT_SHIFT, OWN_COUNT_MASK

__all__ = [
    "LexicalScores",
    "PostingsCache",
    "RankedRows",
    "WordPostings",
    "best_rows",
    "cap_repeats",
    "filter_mask",
    "highest_rows",
    "measure_rows",
    "newest_numbers",
    "rank_rows",
    "score_rows",
]


_MIN_CACHE_ROWS = 2**18
_CACHE_FACTOR = 4
_MAX_UNKNOWN_TERMS = 4_096


@dataclass(frozen=True, kw_only=True)
class WordPostings:
    """The rows that contain a word, ascending, and what it adds to their BM25 per unit of its weight.

    `own` is for the rows alone, 0 where only a neighbour contains the word; `every` is for the rows with their
    neighbours.
    """

    rows: Array
    own: Array
    every: Array


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
    return WordPostings(rows=rows, own=alone, every=beside)


_SPARE_ROWS = 64
"""How many more rows than wanted are sorted, as some repeat others."""
_SCORE_MARGIN = 1e-6


@dataclass(frozen=True, kw_only=True)
class LexicalScores:
    """The scores of all rows by the words of a query, alone and with neighbours, as shares of the possible maximum."""

    query_words: tuple[str, ...]
    words: tuple[WordPostings, ...]
    weights: Array
    own: Array
    every: Array
    scores: Array
    max_score: float
    absent_words: tuple[str, ...]
    absent_share: float

    def find_words(self, rows: Array) -> tuple[Array, Array]:
        """Return which words each row contains, alone and with its neighbours: masks by word and row."""
        starts = np.arange(len(self.words))[:, np.newaxis] * len(self.scores)
        held = np.concatenate([word.rows + start for word, start in zip(self.words, starts, strict=True)])
        if not len(held):
            nothing = np.zeros((len(self.words), len(rows)), dtype=np.bool_)
            return nothing, nothing
        sought = rows + starts
        at = np.minimum(held.searchsorted(sought), len(held) - 1)
        every = held[at] == sought
        return every & (np.concatenate([word.own for word in self.words])[at] > 0), every


@dataclass(frozen=True, kw_only=True)
class RankedRows:
    """Rows that were found, best first, with their scores and a column for each signal.

    `lexical` are the scores that they are taken from. `has_vector` marks the rows that have the `semantic_signals`.
    """

    rows: Array
    scores: Array
    signals: Mapping[str, Array]
    lexical: LexicalScores
    semantic_signals: Mapping[str, Array] = field(default_factory=dict)
    has_vector: "Array | None" = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def to_matches(self, numbers: Array, chunks: Mapping[int, Chunk], places: "Array | None" = None) -> list[Match]:
        """Return the rows at these places, or all, as matches.

        `numbers` are the numbers of all rows, and `chunks` the chunks by number. Raises: KeyError for a missing chunk.
        """
        places = np.arange(len(self)) if places is None else places
        lexical = self.lexical
        own, every = lexical.find_words(self.rows[places])
        found = {name: column[places].tolist() for name, column in self.signals.items()}
        found["coverage"] = (lexical.weights @ own / lexical.max_score).tolist()
        found["reach"] = (lexical.weights @ every / lexical.max_score).tolist()
        found["missing_words"] = [lexical.absent_share] * len(places)
        without = tuple(found)
        found |= {name: column[places].tolist() for name, column in self.semantic_signals.items()}
        known = [False] * len(places) if self.has_vector is None else self.has_vector[places].tolist()
        names, query_words, absent = tuple(found), lexical.query_words, lexical.absent_words
        rows = zip(
            numbers[places].tolist(), self.scores[places].tolist(), known, own.T.tolist(),
            zip(*found.values(), strict=True), strict=True,
        )  # fmt: skip
        matches = list[Match]()
        for rank, (number, score, has_meaning, held, values) in enumerate(rows, 1):
            chunk = chunks[number]
            matches.append(
                Match(
                    path=chunk.path, line_number=chunk.line_number, end_line=chunk.end_line, content=chunk.content,
                    rank=rank, score=score, chunk=chunk, matched_words=tuple(compress(query_words, held)),
                    missing_words=absent, signals=dict(zip(names if has_meaning else without, values, strict=False)),
                )
            )  # fmt: skip
        return matches


def rank_rows(corpus: Corpus, lexical: LexicalScores, prepared: PreparedQuery) -> RankedRows:
    """Return the rows that contain a word of the query, best first."""
    return measure_rows(best_rows(corpus, lexical, prepared, prepared.limit), lexical)


def measure_rows(rows: Array, lexical: LexicalScores) -> RankedRows:
    """Return the scores of these rows, also of rows without a word of the query."""
    signals = {"bm25": lexical.own[rows], "context": lexical.every[rows]}
    return RankedRows(rows=rows, scores=lexical.scores[rows], signals=signals, lexical=lexical)


def score_rows(corpus: Corpus, prepared: PreparedQuery, occurrences: PostingsCache) -> LexicalScores:
    """Return the score of every row by its words."""
    words, statistics = occurrences.find(corpus, prepared.words, corpus.hidden_documents(prepared.query.profile))
    weighed = statistics.weigh(prepared.words)
    weights = np.array(weighed.weights)
    rows = np.concatenate([word.rows for word in words] or [np.zeros(0, dtype=np.int64)])
    shares = (weights / weighed.total).repeat([len(word.rows) for word in words])
    own = every = np.bincount(rows, shares * _joined([word.own for word in words]), minlength=corpus.count)
    if corpus.has_neighbours:
        every = np.bincount(rows, shares * _joined([word.every for word in words]), minlength=corpus.count)
    return LexicalScores(
        query_words=prepared.words.words, words=words, weights=weights, own=own, every=every,
        scores=OWN_SHARE * own + (1 - OWN_SHARE) * every, max_score=weighed.total,
        absent_words=weighed.absent_words, absent_share=weighed.absent_share,
    )  # fmt: skip


def _joined(columns: Sequence[Array]) -> Array:
    return np.concatenate(columns) if columns else np.zeros(0)


def newest_numbers(corpus: Corpus, prepared: PreparedQuery) -> list[int]:
    """Return the numbers of the newest rows that match the filters, newest first; rows without a time come last.

    With equal times in one document, the later line is the newer one.
    """
    passing, limit = filter_mask(corpus, prepared), prepared.limit
    rows = np.arange(corpus.count) if passing is None else np.flatnonzero(passing)
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


def filter_mask(corpus: Corpus, prepared: PreparedQuery) -> "Array | None":
    """Return a mask of the rows that were not removed and match the filters; None if all do."""
    query = prepared.query
    key = (
        query.document_types, query.path, prepared.skipped_paths, query.profile, query.kinds, query.tags,
        query.session, query.since, query.until,
    )  # fmt: skip
    return corpus.cached_mask(key, lambda: _make_mask(corpus, prepared))


def _make_mask(corpus: Corpus, prepared: PreparedQuery) -> "Array | None":
    query = prepared.query
    documents = corpus.document_mask(query.document_types, query.path, prepared.skipped_paths, query.profile)
    filters = query.kinds or query.tags or query.session or query.since or query.until
    if documents is None and not (filters or corpus.dead_count):
        return None
    passing = corpus["live"].copy()
    if documents is not None:
        passing &= documents[corpus["document"]]
    for column, codes in _filter_codes(corpus, query):
        passing &= np.isin(corpus[column], codes)
    if query.since or query.until:
        times = corpus["time"]
        passing &= times >= to_milliseconds(query.since) if query.since else times != NO_TIME
        passing &= times < to_milliseconds(query.until) if query.until else True
    return passing


def _filter_codes(corpus: Corpus, query: Query) -> Iterator[tuple[str, list[int]]]:
    """Yield the columns of names that are filtered, with the codes that match."""
    if query.kinds:
        yield "kind", [corpus.names["kind"].get(kind, -1) for kind in query.kinds]
    if query.session:
        yield "session", [corpus.names["session"].get(query.session, -1)]
    if query.tags:
        marks = [f"\n{tag}\n" for tag in query.tags]
        yield "tags", [code for tags, code in corpus.names["tags"].items() if any(mark in tags for mark in marks)]


def best_rows(corpus: Corpus, lexical: LexicalScores, prepared: PreparedQuery, limit: int) -> Array:
    """Return the best rows in order, with the limits per group and per identical text.

    Without neighbours, a row must contain a word itself.
    """
    passing, scores = filter_mask(corpus, prepared), lexical.scores
    if passing is not None:
        scores = scores * passing
    if not prepared.query.neighbours:
        scores = scores * (lexical.own > 0)
    return highest_rows(corpus, scores, limit)


def highest_rows(corpus: Corpus, scores: Array, limit: int) -> Array:
    """Return the rows with the highest scores above 0 in order, with the limits per group and per identical text."""
    wanted = limit + _SPARE_ROWS
    while True:
        least = 0.0
        if wanted < len(scores):
            ordered = scores.copy()
            ordered.partition(-wanted)
            least = float(ordered[-wanted]) - _SCORE_MARGIN
        (rows,) = (scores >= least if least > 0 else scores).nonzero()
        best = cap_repeats(corpus, rows, scores[rows])[:limit]
        if len(best) == limit or least <= 0:
            return best
        wanted *= 8


def cap_repeats(corpus: Corpus, rows: Array, scores: Array) -> Array:
    """Return these ascending rows, best first, with the limits per group and per identical text."""
    ordered = rows[_sort_order(corpus, rows, np.rint(scores * SCORE_STEPS).astype(np.int64))]
    # the limits are rarely exceeded, which is checked on arrays first
    twins = corpus["twin"][ordered]
    twins.sort()
    is_capped = (twins[MAX_IDENTICAL:] == twins[:-MAX_IDENTICAL]).any()
    if not is_capped and corpus.has_groups:
        groups = _group_keys(corpus, ordered)
        groups.sort()
        is_capped = (groups[MAX_PER_GROUP:] == groups[:-MAX_PER_GROUP]).any()
    return _cap_sorted(corpus, ordered) if is_capped else ordered


def _sort_order(corpus: Corpus, rows: Array, steps: Array) -> Array:
    """Return the order of these rows: among equals the newer first, then by the place in the files."""
    order: Array = (-steps).argsort(kind="stable")
    ordered = steps[order]
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order
    # only equal rows have to be sorted further, and there are usually few
    is_equal = np.zeros(len(order), dtype=np.bool_)
    is_equal[1:] = same
    is_equal[:-1] |= same
    (places,) = is_equal.nonzero()
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


def _cap_sorted(corpus: Corpus, rows: Array) -> Array:
    """Return the rows in order, with the limits per group and per identical text."""
    counts, twins = defaultdict[int, int](int), defaultdict[int, int](int)
    best: list[int] = []
    fields = zip(rows.tolist(), _group_keys(corpus, rows).tolist(), corpus["twin"][rows].tolist(), strict=True)
    for row, group, twin in fields:
        if counts[group] < MAX_PER_GROUP and twins[twin] < MAX_IDENTICAL:
            counts[group] += 1
            twins[twin] += 1
            best.append(row)
    return np.array(best, dtype=np.int64)
