"""Which of many statements may say the same as another, without comparing it with each of them.

Invariant: nothing that `is_same_statement` joins, without the likeness of meanings, is left out; what is given is still to
be compared. Statements with other numbers, or another yes or no, lie apart. Within the rest, two that are alike by a
threshold share so many words that one of the few rarest is among them, as it stands or as a word that looks like it.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TypeAlias

from ricordo.language.duplicates import StatementFeatures, extract_features, is_similar_word

__all__ = ["StatementIndex"]

_Partition: TypeAlias = tuple[bool, bool, tuple[str, ...]]
_PairIndex: TypeAlias = defaultdict[tuple[str, str], set[str]]
_ROUNDING = 1e-9


class StatementIndex:
    """Statements by name, to be asked which of them may be the same as a text by `threshold` (0..1)."""

    def __init__(self, threshold: float) -> None:
        """Hold nothing yet."""
        self._threshold = threshold
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        self._holding: defaultdict[_Partition, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._looks = _SimilarWords()

    def add(self, name: str, text: str) -> None:
        """Hold a statement; one of a name that is there already is held beside it."""
        compared = extract_features(text)
        self._keys[compared.key].add(name)
        postings = self._holding[_partition_of(compared)]
        for word in compared.words:
            self._looks.add(word)
            postings[word].add(name)

    def find_candidates(self, text: str) -> set[str]:
        """Return the names of the statements that may say the same as `text`, those with the same words included."""
        compared = extract_features(text)
        found = set(self._keys.get(compared.key, ()))
        postings = self._holding.get(_partition_of(compared))
        if not postings or not compared.words:
            return found
        rows = [
            set().union(*(postings.get(other, ()) for other in {word, *self._looks.find_similar(word)}))
            for word in compared.words
        ]
        # alike by t means that t of the words are shared, so at most the rest of them are not
        shared = max(math.ceil(self._threshold * len(rows) - _ROUNDING), 1)
        return found.union(*sorted(rows, key=len)[: len(rows) - shared + 1])


class _SimilarWords:
    """The words that are known, by the pairs of letters in them.

    Looking for what is like a word is what takes long, so it is done for words that somebody asks for, and no other.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._asked: dict[str, set[str]] = {}
        self._holding: _PairIndex = defaultdict(set)
        self._asking: _PairIndex = defaultdict(set)

    def add(self, word: str) -> None:
        """Know a word."""
        if word in self._known:
            return
        for other in _search_similar(word, self._asking) if self._asked else ():
            self._asked[other].add(word)
        self._known.add(word)
        _index_word(word, self._holding)

    def find_similar(self, word: str) -> Collection[str]:
        """Return the words that look like this one, known or not."""
        found = self._asked.get(word)
        if found is None:
            found = _search_similar(word, self._holding)
            if word in self._known:
                self._asked[word] = found
                _index_word(word, self._asking)
        return found


def _search_similar(word: str, holding: _PairIndex) -> set[str]:
    near: set[str] = set().union(*(holding.get(pair, ()) for pair in _letter_pairs(word)))
    return {other for other in near if other != word and is_similar_word(word, other)}


def _index_word(word: str, holding: _PairIndex) -> None:
    for pair in _letter_pairs(word):
        holding[pair].add(word)


def _letter_pairs(word: str) -> Iterable[tuple[str, str]]:
    """Return the pairs of letters of a word, each with the letter it begins with."""
    return {(word[0], word[at : at + 2]) for at in range(len(word) - 1)}


def _partition_of(compared: StatementFeatures) -> _Partition:
    return compared.negative, compared.wished, compared.numbers
