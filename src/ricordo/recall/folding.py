"""Which of the best passages are shown: each thing once, and of several sessions where the answer may be spread. Pure.

Invariant: nothing is dropped but what says the same as something that is kept, or is the message that a better memory
was learned from and says most of.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import ceil
from typing import TypeAlias

from ricordo.language import jaccard
from ricordo.recall.asked import session_key
from ricordo.recall.config import RecallConfig
from ricordo.recall.measures import ScoredPassage

__all__ = ["DeduplicationResult", "diversify", "deduplicate"]

_MIN_OVERLAP = 0.4
_FEW = 32
_ROUNDING = 1e-9
_TEXT_CACHE_SIZE = 8_192
_HASH_MASK = 255
_WORD = re.compile(r"\w+")

_TextFeatures: TypeAlias = tuple[bool, bool, frozenset[str], tuple[str, ...], int, int]
"""Whether a row was superseded and asks, the words of the question it holds, and all its words as they are written,
with a bit for each and how many of them share theirs."""


@dataclass(frozen=True, kw_only=True)
class DeduplicationResult:
    """The rows that are kept, best first, and those that repeat one of them, each with that one."""

    unique: list[ScoredPassage] = field(default_factory=list)
    duplicates: list[tuple[ScoredPassage, ScoredPassage]] = field(default_factory=list)


class _LearnedMemories:
    """The memories among the rows, by the one message that each was learned from; read when a message comes up."""

    def __init__(self) -> None:
        self._unread: list[ScoredPassage] = []
        self._by_message: dict[tuple[str, str], list[ScoredPassage]] = {}

    def add(self, row: ScoredPassage) -> None:
        """Take in a row that is kept."""
        if row.passage.match.chunk.markup:
            self._unread.append(row)

    def find_replacement(self, row: ScoredPassage, said: float) -> ScoredPassage | None:
        """Return the better memory that was learned from this message and holds `said` of its words; else None."""
        message = row.passage.match.chunk.message
        if not message:
            return None
        for memory in self._unread:
            if memory.memory is not None and len(memory.memory.source.messages) == 1:
                key = memory.passage.label, memory.memory.source.messages[0]
                self._by_message.setdefault(key, []).append(memory)
        self._unread.clear()
        memories = self._by_message.get((row.passage.label, message), ())
        return next((each for each in memories if len(row.words & each.words) >= said * len(row.words)), None)


class _Kept:
    """The rows that are kept, best first, with what tells which of them says the same as another row."""

    def __init__(self, duplicate: float) -> None:
        self.rows: list[ScoredPassage] = []
        self._marks: list[_TextFeatures] = []
        self._duplicate = duplicate
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._read = 0

    def add(self, row: ScoredPassage, marks: _TextFeatures) -> None:
        """Keep a row behind all others."""
        self.rows.append(row)
        self._marks.append(marks)

    def put(self, at: int, row: ScoredPassage, marks: _TextFeatures) -> None:
        """Keep a row in the place of another, whose words stay in the index and cost a look."""
        self.rows[at], self._marks[at] = row, marks
        if at < self._read:
            self._index(at)

    def twin(self, row: ScoredPassage, marks: _TextFeatures) -> int | None:
        """Return the place of the first that says the same; first by what costs little, as they may be many."""
        superseded, asks, held, words, bits, sharing = marks
        duplicate = self._duplicate
        size = len(words) if duplicate >= _MIN_OVERLAP else 0
        for at in self._candidates(row):
            other_superseded, other_asks, other_held, others, other_bits, _ = self._marks[at]
            if size and others:
                larger = max(size, len(others))
                # no more words are shared than bits, but for those that share theirs
                if (bits & other_bits).bit_count() + sharing < _MIN_OVERLAP * larger:
                    continue
                # texts that share so much are of like size
                both = size + len(others)
                if both - larger < _MIN_OVERLAP * larger:
                    continue
                # words of the question that one alone holds are among those that they do not share
                if held != other_held and len(held ^ other_held) > (1 - duplicate) * both:
                    continue
                if len({*words}.intersection(others)) < _MIN_OVERLAP * larger:
                    continue
            # a number apart may be all that a change is, and a question of the same words is no twin of its answer
            if superseded == other_superseded and asks == other_asks and _is_duplicate(row, self.rows[at], duplicate):
                return at
        return None

    def _candidates(self, row: ScoredPassage) -> Iterable[int]:
        """Return the places, in their order, that a twin of the row may have: all of them while they are few."""
        if len(self.rows) < _FEW or self._duplicate <= 0:
            return range(len(self.rows))
        for at in range(self._read, len(self.rows)):
            self._index(at)
        self._read = len(self.rows)
        # a twin lacks so few of the words that it has one of any that are more; rare ones tell most
        lacking = len(row.words) - ceil(self._duplicate * len(row.words) - _ROUNDING)
        rarest = sorted(row.words, key=lambda word: len(self._places.get(word, ())))[: lacking + 1]
        return sorted({at for word in rarest for at in self._places.get(word, ())})

    def _index(self, at: int) -> None:
        for word in self.rows[at].words:
            self._places[word].append(at)


def deduplicate(scored: Iterable[ScoredPassage], config: RecallConfig, most: int) -> DeduplicationResult:
    """Return the first `most` rows without those that repeat a better one; no more are asked for than that takes."""
    kept, repeated = _Kept(config.duplicate), list[tuple[ScoredPassage, ScoredPassage]]()
    places: set[tuple[str, str, int | str]] = set()
    learned = _LearnedMemories()
    for row in scored:
        chunk = row.passage.match.chunk
        # the pieces of one message or entry are one hit
        place = (row.passage.label, chunk.entry_id or chunk.path, "" if chunk.entry_id else chunk.line_number)
        if place in places:
            continue
        places.add(place)
        if (memory := learned.find_replacement(row, config.said)) is not None:
            repeated.append((row, memory))
            continue
        marks = _text_features(row)
        twin = kept.twin(row, marks)
        if twin is None:
            kept.add(row, marks)
            learned.add(row)
        elif _is_curated_version(row, better := kept.rows[twin], config):
            repeated.append((better, row))
            kept.put(twin, replace(row, score=better.score), marks)
        else:
            repeated.append((row, better))
        if len(kept.rows) >= most:
            break
    return DeduplicationResult(unique=kept.rows, duplicates=repeated)


def diversify(rows: Sequence[ScoredPassage], loss: float) -> list[ScoredPassage]:
    """Return the rows so that each loses `lost_marker_message` for every better one of its session or document, best first.

    This is maximal marginal relevance (Carbonell and Goldstein, 1998), with the session as what makes two alike. An
    entry stands for itself, and loses nothing.
    """
    if not loss:
        return list(rows)
    waiting: dict[object, deque[int]] = {}
    for at, row in enumerate(rows):
        # the first of a session is the best of it, whatever all of them lose
        own = at if row.passage.match.chunk.markup else session_key(row.passage)
        waiting.setdefault(own, deque()).append(at)
    shown = Counter[tuple[str, str]]()
    firsts = [(-rows[places[0]].score, places[0], 0.0, places) for places in waiting.values()]
    heapify(firsts)
    chosen = list[ScoredPassage]()
    while firsts:
        _, at, lost, places = firsts[0]
        row = rows[at]
        loses = _diversity_penalty(row, loss, shown)
        if loses == lost:
            chosen.append(replace(row, score=row.score - lost, diversity_penalty=lost) if lost else row)
            shown[session_key(row.passage)] += 1
            places.popleft()
        if not places:
            heappop(firsts)
            continue
        row = rows[places[0]]
        loses = _diversity_penalty(row, loss, shown)
        heapreplace(firsts, (loses - row.score, places[0], loses, places))
    return chosen


def _diversity_penalty(row: ScoredPassage, loss: float, shown: Counter[tuple[str, str]]) -> float:
    """Return what a row loses for the better ones of its session, at most all that it has."""
    return 0.0 if row.passage.match.chunk.markup else min(loss * shown[session_key(row.passage)], row.score)


def _text_features(row: ScoredPassage) -> _TextFeatures:
    match = row.passage.match
    return row.successor is not None, row.is_question, frozenset(match.words), *_distinct_written_words(match.content)


@lru_cache(maxsize=_TEXT_CACHE_SIZE)
def _distinct_written_words(content: str) -> tuple[tuple[str, ...], int, int]:
    # other scripts have no words that are told apart so cheaply; a tuple takes a quarter of what a set does
    words = tuple({*_WORD.findall(content.lower())}) if content.isascii() else ()
    bits = 0
    for word in words:
        bits |= 1 << (hash(word) & _HASH_MASK)
    return words, bits, len(words) - bits.bit_count()


def _is_duplicate(left: ScoredPassage, right: ScoredPassage, duplicate: float) -> bool:
    return bool(left.words) and jaccard(left.words, right.words) >= duplicate


def _is_curated_version(row: ScoredPassage, other: ScoredPassage, config: RecallConfig) -> bool:
    """Tell whether `row`, which says the same as `other`, is curated memory, `other` is not, and they come near."""
    curated = row.passage.match.chunk.sort == "curated" != other.passage.match.chunk.sort
    return curated and other.score - row.score <= config.near
