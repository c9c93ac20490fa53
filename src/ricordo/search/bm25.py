"""BM25 of a chunk alone and of the chunk with its neighbours, scaled to 0..1.

The formula is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with k1 1.2, b 0.75 and
an idf that is never negative. It is divided by the maximum that the query's words can reach.

Invariant: a document without a word of the query changes no score. For this reason, lengths are compared with a typical
message instead of the average, and rarity is counted in places (a message, an entry or any other document) instead of
shares of the corpus.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

from ricordo.language.languages import joins_words, script_of
from ricordo.lazy import dataclass
from ricordo.search.contract import Chunk, Match
from ricordo.search.documents import QueryWords, to_milliseconds

__all__ = [
    "K1",
    "LITERAL_SCORE",
    "MAX_IDENTICAL",
    "MAX_PER_GROUP",
    "OWN_SHARE",
    "SCORE_STEPS",
    "USUAL_LENGTH",
    "B",
    "Candidate",
    "QueryWeights",
    "ScoreDetails",
    "TermStatistics",
    "build_match",
    "candidate_statistics",
    "place_key",
    "rank_candidates",
    "stem_prefix",
    "unranked_matches",
]


LITERAL_SCORE = 0.5
"""The score of a chunk that contains the query as typed, if no word of the query is indexed."""
K1, B = 1.2, 0.75
"""How soon repetitions of a word add little, and how much length counts."""
USUAL_LENGTH = 40.0
"""The number of terms of a typical message."""
OWN_SHARE = 0.6
"""The weight of the chunk alone; the rest is the weight of the chunk with its neighbours."""
MAX_PER_GROUP, MAX_IDENTICAL = 20, 3
"""The maximum number of matches per message or per document without messages and entries, and per identical text."""
SCORE_STEPS = 1e9
"""Scores are compared in steps of 1 / SCORE_STEPS, so that the order of additions does not matter."""
_IDF_SCALE = 500.0
_MAX_COUNT = 3
_MIN_STEM = 5
_BESIDE_WEIGHT = 0.5


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A chunk that may match, its terms, and the place that it is or belongs to."""

    chunk: Chunk
    text: str
    context_text: str
    place: int = 0


@dataclass(frozen=True, kw_only=True)
class ScoreDetails:
    """The score of a chunk, the signals of a match, and the query words in it."""

    score: float
    signals: Mapping[str, float]
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TermStatistics:
    """Statistics of one index: the number of places of each term, and absent terms that have a related one."""

    frequencies: Mapping[str, int]
    related_terms: frozenset[str] = frozenset()

    def weigh(self, words: QueryWords) -> "QueryWeights":
        """Return the weight of each word of a query: rare words count more, generic words little.

        The variants of a word count as one word with the frequency of the most common variant. A pair of characters
        that is no word has no weight. Absent words occur nowhere in any form; generic words are not among them.
        """
        frequencies = self.frequencies
        counts = [max([frequencies.get(term, 0) for term in group], default=0) for group in words.groups]
        shares = words.weights if all(counts) else _weigh_seams(words, counts)
        weights = tuple(
            math.log(1 + _IDF_SCALE / (count + 0.5)) * share for count, share in zip(counts, shares, strict=True)
        )
        is_absent = [
            not count and share == 1.0 and not group & self.related_terms
            for count, share, group in zip(counts, shares, words.groups, strict=True)
        ]
        return QueryWeights(
            weights=weights, total=sum(weights) or 1.0,
            absent_words=tuple(compress(words.words, is_absent)),
            absent_share=sum(compress(weights, is_absent)) / (sum(weights) or 1.0),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class QueryWeights:
    """The weights of the words of a query, their sum (1 for no words), its absent words, and their share in the sum."""

    weights: tuple[float, ...]
    total: float
    absent_words: tuple[str, ...]
    absent_share: float


def _weigh_seams(words: QueryWords, counts: Sequence[int]) -> list[float]:
    """Return the weights of the words, less for absent pairs of characters that may only lie between two words.

    In a script without spaces each two neighbours of a query are a pair, also the end of a word and the next one. A
    pair between two known ones is no word, and neither is one that touches a function word. Words of Chinese characters
    have two of them, mostly: a pair after an absent one is no word, and one beside a known one is less likely one.
    """
    weights = list(words.weights)
    for at, (word, count) in enumerate(zip(words.words, counts, strict=True)):
        if count or not joins_words(word[0]):
            continue
        follows = at > 0 and words.words[at - 1][-1] == word[0]
        known_before = follows and counts[at - 1] > 0
        known_after = at + 1 < len(counts) and counts[at + 1] > 0 and words.words[at + 1][0] == word[-1]
        if weights[at] < 1.0 or (known_before and known_after):
            weights[at] = 0.0
        elif "han" in (script_of(word[0]), script_of(word[-1])):
            after_absent = follows and not known_before and weights[at - 1] == 1.0
            weights[at] = 0.0 if after_absent else _BESIDE_WEIGHT if known_before or known_after else 1.0
    return weights


def stem_prefix(term: str) -> str:
    """Return the prefix that related forms of a word share; empty if the word is too short."""
    return term[: max(_MIN_STEM, len(term) - 3)] if term.isalpha() and len(term) > _MIN_STEM else ""


def place_key(chunk: Chunk) -> str:
    """Return the key of a chunk's place: the text of a message or entry, which may be repeated, else its path."""
    return chunk.content[:200] if chunk.message or chunk.markup else chunk.path


def rank_candidates(
    candidates: Iterable[Candidate], words: QueryWords, statistics: TermStatistics, *, neighbours: bool = False
) -> list[Match]:
    """Return the candidates that contain a word of the query as matches, best first; among equals the newer first.

    With `neighbours`, a candidate also matches by its neighbours. At most 20 matches of one message, or of one document
    that is neither a transcript nor entries, are returned, and at most 3 with the same text, so that repetitions do not
    hide the rest.
    """
    weighed = statistics.weigh(words)
    found = []
    for candidate in candidates:
        measured = _score_candidate(candidate, words, weighed)
        if measured.score > 0 and (neighbours or measured.words):
            found.append((measured, candidate.chunk))
    found.sort(key=lambda row: (-round(row[0].score * SCORE_STEPS), -to_milliseconds(row[1].time), *_position(row[1])))
    absent = weighed.absent_words
    return [build_match(chunk, rank, measured, absent) for rank, (measured, chunk) in enumerate(_cap_repeats(found), 1)]


def _cap_repeats(found: Iterable[tuple[ScoreDetails, Chunk]]) -> Iterable[tuple[ScoreDetails, Chunk]]:
    """Yield the found chunks without those above the limits per group and per identical text."""
    counts: Counter[tuple[str, ...]] = Counter()
    for measured, chunk in found:
        group = (chunk.path, str(chunk.line_number) if chunk.message or chunk.markup else "")
        twin = (chunk.content,)
        if counts[group] < MAX_PER_GROUP and counts[twin] < MAX_IDENTICAL:
            counts.update((group, twin))
            yield measured, chunk


def _score_candidate(candidate: Candidate, words: QueryWords, weighed: QueryWeights) -> ScoreDetails:
    """Return the signals of one candidate, each in 0..1, and the words of the query in it."""
    own, around = candidate.text.split(), candidate.context_text.split()
    own_counts = Counter(own)
    all_counts = own_counts + Counter(around) if around else own_counts
    weights, max_weight = weighed.weights, weighed.total
    own_matches = [sum(own_counts[term] for term in group) for group in words.groups]
    all_matches = [sum(all_counts[term] for term in group) for group in words.groups]
    signals = {
        "bm25": _bm25(own_matches, weights, len(own), USUAL_LENGTH) / max_weight,
        "context": _bm25(all_matches, weights, len(own) + len(around), USUAL_LENGTH * (3 if around else 1))
        / max_weight,
        "coverage": _covered_weight(own_matches, weights) / max_weight,
        "reach": _covered_weight(all_matches, weights) / max_weight,
        "missing_words": weighed.absent_share,
    }
    return ScoreDetails(
        score=OWN_SHARE * signals["bm25"] + (1 - OWN_SHARE) * signals["context"],
        signals=signals,
        words=tuple(word for word, count in zip(words.words, own_matches, strict=True) if count),
    )


def _covered_weight(counts: Sequence[int], weights: Sequence[float]) -> float:
    return sum(weight for weight, count in zip(weights, counts, strict=True) if count)


def candidate_statistics(candidates: Sequence[Candidate], words: QueryWords, profile: str = "") -> TermStatistics:
    """Return the statistics of chunks that are not in an index; of profiles, only the one at the path `profile`."""
    places: defaultdict[str, set[int]] = defaultdict(set)
    known_terms: set[str] = set()
    query_terms = set(words.terms)
    for candidate in candidates:
        if candidate.chunk.document_type == "profile" and candidate.chunk.path != profile:
            continue
        terms = set(candidate.text.split())
        known_terms |= terms
        for term in query_terms & terms:
            places[term].add(candidate.place)
    stems = {term: start for term in query_terms - known_terms if (start := stem_prefix(term))}
    related = {term for term, start in stems.items() if any(other.startswith(start) for other in known_terms)}
    return TermStatistics(
        frequencies={term: len(found) for term, found in places.items()}, related_terms=frozenset(related)
    )


def unranked_matches(chunks: Iterable[Chunk], *, score: float, typed: str = "") -> list[Match]:
    """Return the chunks as matches in their order, all with this score; `typed` is the query text that all contain."""
    matched = 1.0 if score else 0.0
    signals = {"bm25": score, "context": score, "coverage": matched, "reach": matched}
    measured = ScoreDetails(score=score, signals=signals, words=(typed,) if typed else ())
    return [build_match(chunk, rank, measured) for rank, chunk in enumerate(chunks, 1)]


def build_match(chunk: Chunk, rank: int, measured: ScoreDetails, absent: tuple[str, ...] = ()) -> Match:
    """Return the match for a chunk that was found."""
    return Match(
        path=chunk.path,
        line_number=chunk.line_number,
        end_line=chunk.end_line,
        content=chunk.content,
        rank=rank,
        score=measured.score,
        chunk=chunk,
        matched_words=measured.words,
        missing_words=absent,
        signals=measured.signals,
    )


def _bm25(counts: Sequence[int], weights: Sequence[float], length: int, average: float) -> float:
    """Return BM25 without its constant factor k1 + 1, so that each word adds at most its weight."""
    norm = K1 * (1 - B + B * length / average)
    capped = [min(count, _MAX_COUNT) for count in counts]
    return sum(weight * count / (count + norm) for count, weight in zip(capped, weights, strict=True) if count)


def _position(chunk: Chunk) -> tuple[str, int, int]:
    return chunk.path, chunk.line_number, chunk.part
