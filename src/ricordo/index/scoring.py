"""BM25 over candidates, once for the chunk alone and once with its neighbours, on a scale that means something.

BM25 is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with k1 1.2 and b 0.75 and the
idf that never falls below 0. Divided by the most that the query's words can give, a score is in 0..1 and says how
much of the question a chunk covers, which a threshold can be put to. A small store says little about how rare a word
is, so a store counts as one of at least 500 chunks.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ricordo.index.contract import Chunk, Match
from ricordo.index.terms import Words

__all__ = ["LITERAL_SCORE", "Candidate", "Statistics", "as_they_come", "document_frequencies", "ranked"]

LITERAL_SCORE = 0.5
"""The score of a chunk that holds the query as it was typed, where no word of it is indexed."""

_K1, _B = 1.2, 0.75
_FEWEST_CHUNKS = 500
_OWN_SHARE = 0.6


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A chunk that may match, and its terms."""

    chunk: Chunk
    own: str
    around: str


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Of one index: how many chunks, how many terms they have on average, how many chunks hold each term."""

    chunks: int
    average: float
    frequencies: Mapping[str, int]

    def weights(self, words: Words) -> list[float]:
        """Return the idf of each word of a query; a word's variants count as one, as often as the commonest of them."""
        total = max(self.chunks, _FEWEST_CHUNKS)
        found = [max((self.frequencies.get(term, 0) for term in group), default=0) for group in words.groups]
        return [math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in found]


def ranked(
    candidates: Iterable[Candidate], words: Words, statistics: Statistics, *, neighbours: bool = False
) -> list[Match]:
    """Return the candidates that hold a word of the query as matches, best first; of equals the newer first.

    With `neighbours` a candidate matches also by what stands beside it.
    """
    weights = statistics.weights(words)
    found = []
    for candidate in candidates:
        measured, held = _measured(candidate, words, weights, statistics.average)
        score = _OWN_SHARE * measured["bm25"] + (1 - _OWN_SHARE) * measured["context"]
        if score > 0 and (neighbours or held):
            found.append((score, candidate.chunk, measured, held))
    found.sort(key=lambda row: (-row[0], -(row[1].time.timestamp() if row[1].time else 0.0), *_place(row[1])))
    return [_match(chunk, rank, score, measured, held) for rank, (score, chunk, measured, held) in enumerate(found, 1)]


def _measured(
    candidate: Candidate, words: Words, weights: Sequence[float], average: float
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the signals of one candidate, each in 0..1, and the words of the query that it holds."""
    own, around = candidate.own.split(), candidate.around.split()
    own_counts = Counter(own)
    all_counts = own_counts + Counter(around) if around else own_counts
    most = sum(weights) or 1.0
    held = [sum(own_counts[term] for term in group) for group in words.groups]
    near = [sum(all_counts[term] for term in group) for group in words.groups]
    measured = {
        "bm25": _bm25(held, weights, len(own), average) / most,
        "context": _bm25(near, weights, len(own) + len(around), average * (3 if around else 1)) / most,
        "coverage": sum(weight for weight, count in zip(weights, held, strict=True) if count) / most,
    }
    return measured, tuple(word for word, count in zip(words.shown, held, strict=True) if count)


def document_frequencies(candidates: Sequence[Candidate], words: Words) -> Statistics:
    """Return the statistics of chunks that are not in an index."""
    counts: Counter[str] = Counter()
    total = 0
    wanted = set(words.terms)
    for candidate in candidates:
        terms = candidate.own.split()
        total += len(terms)
        counts.update(wanted.intersection(terms))
    return Statistics(chunks=len(candidates), average=total / max(len(candidates), 1), frequencies=counts)


def as_they_come(candidates: Iterable[Candidate], *, score: float) -> list[Match]:
    """Return the candidates as matches in their order, all with this score."""
    measured = {"bm25": score, "context": score, "coverage": 1.0 if score else 0.0}
    return [_match(candidate.chunk, rank, score, measured) for rank, candidate in enumerate(candidates, 1)]


def _bm25(counts: Sequence[int], weights: Sequence[float], length: int, average: float) -> float:
    """Return BM25 without its constant factor k1 + 1, so that each word gives at most its weight."""
    norm = _K1 * (1 - _B + _B * length / max(average, 1.0))
    return sum(weight * count / (count + norm) for count, weight in zip(counts, weights, strict=True) if count)


def _match(chunk: Chunk, rank: int, score: float, measured: Mapping[str, float], held: tuple[str, ...] = ()) -> Match:
    return Match(
        path=chunk.path,
        line_number=chunk.line_number,
        end_line=chunk.end_line,
        content=chunk.content,
        rank=rank,
        score=score,
        chunk=chunk,
        words=held,
        signals=measured,
    )


def _place(chunk: Chunk) -> tuple[str, int, int]:
    return chunk.path, chunk.line_number, chunk.part
