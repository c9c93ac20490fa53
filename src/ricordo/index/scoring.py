"""BM25 over candidates, once for the chunk alone and once with its neighbours, on a scale that means something.

BM25 is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with k1 1.2 and b 0.75 and the
idf that never falls below 0. Divided by the most that the query's words can give, a score is in 0..1 and says how
much of the question a chunk covers, which a threshold can be put to.

Invariant: a document that holds no word of the query changes no score. So a chunk's length is compared with that of a
usual message, not with the average of what is stored, and a word's rarity is counted in the places that hold it, not
in their share of the whole. A message or entry is one place however long it is, so is the same text said again, and
so is any other document; a word said often in one chunk counts three times.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ricordo.index.contract import Chunk, Match
from ricordo.index.plan import stamp
from ricordo.index.terms import Words

__all__ = [
    "K1",
    "LITERAL_SCORE",
    "MOST_OF_HEAP",
    "MOST_TWINS",
    "OWN_SHARE",
    "STEPS",
    "USUAL_LENGTH",
    "B",
    "Candidate",
    "Measured",
    "Statistics",
    "as_they_come",
    "match",
    "place_of",
    "ranked",
    "scanned_statistics",
    "stem",
]

LITERAL_SCORE = 0.5
"""The score of a chunk that holds the query as it was typed, where no word of it is indexed."""

K1, B = 1.2, 0.75
"""How soon a word that is said again adds little, and how much length counts."""

USUAL_LENGTH = 40.0
"""The terms of a usual message."""

OWN_SHARE = 0.6
"""What the chunk alone counts; the rest is the chunk with its neighbours."""

MOST_OF_HEAP, MOST_TWINS = 20, 3
"""The most matches of one message or one document that is neither a transcript nor entries, and of one text."""

STEPS = 1e9
"""Scores that agree to so many parts are equal, so that the order of an addition decides nothing."""

_SCALE = 500.0
_MOST_REPEATED = 3
_STEM = 5


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A chunk that may match, its terms, and the place that it is or belongs to."""

    chunk: Chunk
    own: str
    around: str
    place: int = 0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a chunk was measured by: its score, the signals of a match, and the words that it holds."""

    score: float
    signals: Mapping[str, float]
    held: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Of one index: in how many places each term stands, and which terms it has none of but a relative."""

    frequencies: Mapping[str, int]
    related: frozenset[str] = frozenset()

    def weights(self, words: Words) -> list[float]:
        """Return the weight of each word of a query: the rarer, the more, a generic word little.

        A word's variants count as one, as often as the commonest of them.
        """
        return [math.log(1 + _SCALE / (count + 0.5)) * share for count, share in self._counted(words)]

    def absent(self, words: Words) -> tuple[str, ...]:
        """Return the words of a query that stand nowhere, in no form, generic ones left out."""
        return tuple(
            word
            for word, group, (count, share) in zip(words.shown, words.groups, self._counted(words), strict=True)
            if not count and share == 1.0 and not group & self.related
        )

    def silent(self, words: Words, absent: Collection[str]) -> float:
        """Return the share that the absent words have in all that a query can reach."""
        if not absent:
            return 0.0
        weights = self.weights(words)
        return _covered([word in absent for word in words.shown], weights) / (sum(weights) or 1.0)

    def _counted(self, words: Words) -> Iterable[tuple[int, float]]:
        for group, share in zip(words.groups, words.shares, strict=True):
            yield max((self.frequencies.get(term, 0) for term in group), default=0), share


def stem(term: str) -> str:
    """Return the beginning that a word's relatives have in common with it; empty when the word is too short."""
    return term[: max(_STEM, len(term) - 3)] if term.isalpha() and len(term) > _STEM else ""


def place_of(chunk: Chunk) -> str:
    """Return what counts as one place: the text of a message or entry, which may be repeated, else the document."""
    return chunk.content[:200] if chunk.message or chunk.markup else chunk.path


def ranked(
    candidates: Iterable[Candidate], words: Words, statistics: Statistics, *, neighbours: bool = False
) -> list[Match]:
    """Return the candidates that hold a word of the query as matches, best first; of equals the newer first.

    With `neighbours` a candidate matches also by what stands beside it. Of one message, or of a document that is
    neither a transcript nor entries, at most 20 are taken, of equal texts 3, so that no pile of the same hides the
    rest.
    """
    weights = statistics.weights(words)
    absent = statistics.absent(words)
    silent = statistics.silent(words, absent)
    found = []
    for candidate in candidates:
        measured = _measured(candidate, words, weights, silent)
        if measured.score > 0 and (neighbours or measured.held):
            found.append((measured, candidate.chunk))
    found.sort(key=lambda row: (-round(row[0].score * STEPS), -stamp(row[1].time), *_position(row[1])))
    return [match(chunk, rank, measured, absent) for rank, (measured, chunk) in enumerate(_spread(found), 1)]


def _spread(found: Iterable[tuple[Measured, Chunk]]) -> Iterable[tuple[Measured, Chunk]]:
    """Yield what was found without what is too much of one heap or one text."""
    taken: Counter[tuple[str, ...]] = Counter()
    for measured, chunk in found:
        heap = (chunk.path, str(chunk.line_number) if chunk.message or chunk.markup else "")
        twin = (chunk.content,)
        if taken[heap] < MOST_OF_HEAP and taken[twin] < MOST_TWINS:
            taken.update((heap, twin))
            yield measured, chunk


def _measured(candidate: Candidate, words: Words, weights: Sequence[float], silent: float) -> Measured:
    """Return the signals of one candidate, each in 0..1, and the words of the query that it holds."""
    own, around = candidate.own.split(), candidate.around.split()
    own_counts = Counter(own)
    all_counts = own_counts + Counter(around) if around else own_counts
    most = sum(weights) or 1.0
    held = [sum(own_counts[term] for term in group) for group in words.groups]
    near = [sum(all_counts[term] for term in group) for group in words.groups]
    signals = {
        "bm25": _bm25(held, weights, len(own), USUAL_LENGTH) / most,
        "context": _bm25(near, weights, len(own) + len(around), USUAL_LENGTH * (3 if around else 1)) / most,
        "coverage": _covered(held, weights) / most,
        "reach": _covered(near, weights) / most,
        "absent": silent,
    }
    return Measured(
        score=OWN_SHARE * signals["bm25"] + (1 - OWN_SHARE) * signals["context"],
        signals=signals,
        held=tuple(word for word, count in zip(words.shown, held, strict=True) if count),
    )


def _covered(counts: Sequence[int], weights: Sequence[float]) -> float:
    return sum(weight for weight, count in zip(weights, counts, strict=True) if count)


def scanned_statistics(candidates: Sequence[Candidate], words: Words, profile: str = "") -> Statistics:
    """Return the statistics of chunks that are not in an index; of profiles, only the one at the path `profile`."""
    places: defaultdict[str, set[int]] = defaultdict(set)
    known: set[str] = set()
    wanted = set(words.terms)
    for candidate in candidates:
        if candidate.chunk.sort == "profile" and candidate.chunk.path != profile:
            continue
        terms = set(candidate.own.split())
        known |= terms
        for term in wanted & terms:
            places[term].add(candidate.place)
    stems = {term: start for term in wanted - known if (start := stem(term))}
    related = {term for term, start in stems.items() if any(other.startswith(start) for other in known)}
    return Statistics(frequencies={term: len(found) for term, found in places.items()}, related=frozenset(related))


def as_they_come(chunks: Iterable[Chunk], *, score: float, typed: str = "") -> list[Match]:
    """Return the chunks as matches in their order, all with this score; all hold what was `typed`."""
    whole = 1.0 if score else 0.0
    signals = {"bm25": score, "context": score, "coverage": whole, "reach": whole}
    measured = Measured(score=score, signals=signals, held=(typed,) if typed else ())
    return [match(chunk, rank, measured) for rank, chunk in enumerate(chunks, 1)]


def match(chunk: Chunk, rank: int, measured: Measured, absent: tuple[str, ...] = ()) -> Match:
    """Return a chunk that was found as a match."""
    return Match(
        path=chunk.path,
        line_number=chunk.line_number,
        end_line=chunk.end_line,
        content=chunk.content,
        rank=rank,
        score=measured.score,
        chunk=chunk,
        words=measured.held,
        absent=absent,
        signals=measured.signals,
    )


def _bm25(counts: Sequence[int], weights: Sequence[float], length: int, average: float) -> float:
    """Return BM25 without its constant factor k1 + 1, so that each word gives at most its weight."""
    norm = K1 * (1 - B + B * length / average)
    capped = [min(count, _MOST_REPEATED) for count in counts]
    return sum(weight * count / (count + norm) for count, weight in zip(capped, weights, strict=True) if count)


def _position(chunk: Chunk) -> tuple[str, int, int]:
    return chunk.path, chunk.line_number, chunk.part
