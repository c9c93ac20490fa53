"""Where the words of queries stand, and what each gives to the rows that hold it, kept for the next query.

A word of a query is a few terms that count as one. Their postings are joined once, and what they add to a score for
each unit of the word's weight is worked out once, as most words of a question were in another one before.

Invariant: what is kept is what the corpus would give now; it is forgotten as soon as a row comes, goes or moves.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ricordo.index.corpus import Corpus
from ricordo.index.postings import OWN_COUNT_MASK, CONTEXT_COUNT_SHIFT, Array
from ricordo.index.scoring import OWN_SHARE, TermStatistics, stem_prefix
from ricordo.index.terms import QueryWords

__all__ = ["PostingsCache", "WordPostings"]

_MIN_CACHE_ROWS = 2**18
_CACHE_FACTOR = 4
_MAX_UNKNOWN_TERMS = 4_096


@dataclass(frozen=True, kw_only=True)
class WordPostings:
    """The rows that hold a word, ascending, how often, alone and with neighbours, and what it gives them.

    `gain` is what it adds to a score for each unit of its weight.
    """

    rows: Array
    own: Array
    every: Array
    gain: Array


class PostingsCache:
    """The words of queries to one corpus. Of those that were asked for longest ago none are kept."""

    def __init__(self) -> None:
        """Keep nothing yet."""
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
        """Return where each word of a query stands, and how common its terms are in what is not in `hidden` documents.

        Rows of those are still among where a word stands; whoever asks lets none of them through.
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
        """Tell whether a term that stands nowhere has a relative that does."""
        if term not in self._relatives:
            if len(self._relatives) >= _MAX_UNKNOWN_TERMS:
                self._relatives.clear()
            start = stem_prefix(term)
            self._relatives[term] = bool(start) and corpus.has_relative(start, self._hidden)
        return self._relatives[term]

    def _evict(self, needed: int, most: int) -> None:
        """Forget what was asked for longest ago, but for the words of this query."""
        while self._size > most and len(self._words) > needed:
            group, gone = self._words.popitem(last=False)
            self._size -= len(gone.rows)
            kept = frozenset().union(*self._words)
            for term in group - kept:
                del self._places[term]


def _count_places(corpus: Corpus, pieces: Sequence[tuple[Array, Array]], hidden: tuple[int, ...]) -> int:
    """Return in how many places a term stands that are not in the `hidden` documents."""
    if corpus.places == corpus.count and not corpus.dead_count and not hidden:
        # no two rows are of one place
        return sum(int(np.count_nonzero(counts & OWN_COUNT_MASK)) for _, counts in pieces)
    seen = np.zeros(corpus.places, dtype=np.bool_)
    for rows, counts in pieces:
        own = rows[counts & OWN_COUNT_MASK > 0]
        seen[corpus["place"][own[corpus.visible_mask(own, hidden)] if corpus.dead_count or hidden else own]] = True
    return int(np.count_nonzero(seen))


def _merge_postings(corpus: Corpus, pieces: Sequence[tuple[Array, Array]]) -> WordPostings:
    """Return the postings of a word: its terms count as one."""
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
