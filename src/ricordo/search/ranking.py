"""Ranking as a pure function: turns passages into hits, without duplicates and within the budget.

The order is total: among equal scores the newer comes first, then the narrower source, then the place in the files.

Invariant: a passage is dropped only as a duplicate, as superseded, for the limit or the budget, or because it has
nothing to do with the question. The current successor of a superseded memory is a hit above it.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from itertools import takewhile
from math import ceil
from typing import Protocol, TypeAlias, TypeVar

from ricordo.language import jaccard
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens import Tokens, estimate_text
from ricordo.search.config import RecallConfig
from ricordo.search.contract import Explanation, Hit, Passage, Query, RejectedHit
from ricordo.search.documents import matches_filters
from ricordo.search.query_context import PassageLocation, QueryContext, Question, build_query_context, session_key
from ricordo.search.signals import (
    NO_DATE,
    ScoredPassage,
    is_reply,
    iter_best_first,
    max_entry_score,
    score_passage,
    sort_key,
)
from ricordo.search.supersession import (
    CuratedMemory,
    SupersessionChains,
    attach_successor,
    find_supersessions,
    group_contradictions,
    move_to_curated,
    place_announced_behind,
    place_held_first,
    place_newer_first,
    place_outdated_behind,
    place_successors_first,
)
from ricordo.workspace.entry import Entry

__all__ = [
    "RANK_FACTOR",
    "DeduplicationResult",
    "deduplicate",
    "diversify",
    "explain",
    "fit_budget",
    "rank",
    "rank_subset",
]


_MIN_OVERLAP = 0.4
_FEW = 32
_ROUNDING = 1e-9
_TEXT_CACHE_SIZE = 8_192
_HASH_MASK = 255
_WORD = lazy_compile(r"\w+")
_TextFeatures: TypeAlias = tuple[bool, bool, frozenset[str], tuple[str, ...], int, int]
"""Whether a row is superseded and whether it is a question, the words of the question in it, all its distinct written
words, a bit set of their hashes, and how many words share a bit with another one."""


@dataclass(frozen=True, kw_only=True)
class DeduplicationResult:
    """The unique rows, best first, and the duplicates, each with the row that it repeats."""

    unique: list[ScoredPassage] = field(default_factory=list)
    duplicates: list[tuple[ScoredPassage, ScoredPassage]] = field(default_factory=list)


class _LearnedMemories:
    """The memories among the rows, by the single message that each was learned from; parsed on demand."""

    def __init__(self) -> None:
        self._unread: list[ScoredPassage] = []
        self._by_message: dict[tuple[str, str], list[ScoredPassage]] = {}

    def add(self, row: ScoredPassage) -> None:
        """Add a row that was kept."""
        if row.passage.match.chunk.markup:
            self._unread.append(row)

    def find_replacement(self, row: ScoredPassage, score: float) -> ScoredPassage | None:
        """Return the better memory learned from this message that has the share `score` of its words, else None."""
        message = row.passage.match.chunk.message
        if not message:
            return None
        for memory in self._unread:
            if memory.memory is not None and len(memory.memory.source.messages) == 1:
                key = memory.passage.label, memory.memory.source.messages[0]
                self._by_message.setdefault(key, []).append(memory)
        self._unread.clear()
        memories = self._by_message.get((row.passage.label, message), ())
        return next((each for each in memories if len(row.words & each.words) >= score * len(row.words)), None)


class _Kept:
    """The rows kept so far, best first, with features that detect duplicates of them."""

    def __init__(self, duplicate: float) -> None:
        self.rows: list[ScoredPassage] = []
        self._marks: list[_TextFeatures] = []
        self._duplicate = duplicate
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._read = 0

    def add(self, row: ScoredPassage, marks: _TextFeatures) -> None:
        """Add a row at the end."""
        self.rows.append(row)
        self._marks.append(marks)

    def put(self, at: int, row: ScoredPassage, marks: _TextFeatures) -> None:
        """Replace a row; the words of the old one stay in the index and only cost a comparison."""
        self.rows[at], self._marks[at] = row, marks
        if at < self._read:
            self._index(at)

    def twin(self, row: ScoredPassage, marks: _TextFeatures) -> int | None:
        """Return the position of the first row that is a duplicate; cheap checks come first, as rows may be many."""
        superseded, asks, held, words, bits, sharing = marks
        duplicate = self._duplicate
        size = len(words) if duplicate >= _MIN_OVERLAP else 0
        for at in self._candidates(row):
            other_superseded, other_asks, other_held, others, other_bits, _ = self._marks[at]
            if size and others:
                larger = max(size, len(others))
                # the number of shared words is at most the shared bits plus the words that share a bit
                if (bits & other_bits).bit_count() + sharing < _MIN_OVERLAP * larger:
                    continue
                # texts that share so much have similar sizes
                both = size + len(others)
                if both - larger < _MIN_OVERLAP * larger:
                    continue
                # question words that only one of them has are not shared
                if held != other_held and len(held ^ other_held) > (1 - duplicate) * both:
                    continue
                if len({*words}.intersection(others)) < _MIN_OVERLAP * larger:
                    continue
            # a change may differ in one number only, and a question with the same words does not duplicate its answer
            if superseded == other_superseded and asks == other_asks and _is_duplicate(row, self.rows[at], duplicate):
                return at
        return None

    def _candidates(self, row: ScoredPassage) -> Iterable[int]:
        """Return the positions that may hold a duplicate of the row, in order; all of them while there are few."""
        if len(self.rows) < _FEW or self._duplicate <= 0:
            return range(len(self.rows))
        for at in range(self._read, len(self.rows)):
            self._index(at)
        self._read = len(self.rows)
        # a duplicate lacks at most `lacking` of the words, so it has one of any `lacking + 1`; rare ones select best
        lacking = len(row.words) - ceil(self._duplicate * len(row.words) - _ROUNDING)
        rarest = sorted(row.words, key=lambda word: len(self._places.get(word, ())))[: lacking + 1]
        return sorted({at for word in rarest for at in self._places.get(word, ())})

    def _index(self, at: int) -> None:
        for word in self.rows[at].words:
            self._places[word].append(at)


def deduplicate(scored: Iterable[ScoredPassage], config: RecallConfig, most: int) -> DeduplicationResult:
    """Return the first `most` rows without those that repeat a better one; reads no more of `scored` than needed."""
    kept_rows, repeated = _Kept(config.duplicate), list[tuple[ScoredPassage, ScoredPassage]]()
    places: set[tuple[str, str, int | str]] = set()
    learned = _LearnedMemories()
    for row in scored:
        chunk = row.passage.match.chunk
        # all pieces of one message or entry are one hit
        place = (row.passage.label, chunk.entry_id or chunk.path, "" if chunk.entry_id else chunk.line_number)
        if place in places:
            continue
        places.add(place)
        if (memory := learned.find_replacement(row, config.repetition)) is not None:
            repeated.append((row, memory))
            continue
        marks = _text_features(row)
        twin = kept_rows.twin(row, marks)
        if twin is None:
            kept_rows.add(row, marks)
            learned.add(row)
        elif _is_curated_version(row, better := kept_rows.rows[twin], config):
            repeated.append((better, row))
            kept_rows.put(twin, replace(row, score=better.score), marks)
        else:
            repeated.append((row, better))
        if len(kept_rows.rows) >= most:
            break
    return DeduplicationResult(unique=kept_rows.rows, duplicates=repeated)


def diversify(rows: Sequence[ScoredPassage], loss: float) -> list[ScoredPassage]:
    """Return the rows, best first, each with the penalty `loss` for every better row of its session or document.

    This is maximal marginal relevance (Carbonell and Goldstein, 1998), where rows of the same session are similar. An
    entry has no penalty.
    """
    if not loss:
        return list(rows)
    waiting: dict[object, deque[int]] = {}
    for at, row in enumerate(rows):
        # the first row of a session is its best one, whatever the penalty
        own = at if row.passage.match.chunk.markup else session_key(row.passage)
        waiting.setdefault(own, deque()).append(at)
    counts = Counter[tuple[str, str]]()
    firsts = [(-rows[places[0]].score, places[0], 0.0, places) for places in waiting.values()]
    heapify(firsts)
    chosen = list[ScoredPassage]()
    while firsts:
        _, at, lost, places = firsts[0]
        row = rows[at]
        loses = _diversity_penalty(row, loss, counts)
        if loses == lost:
            chosen.append(replace(row, score=row.score - lost, diversity_penalty=lost) if lost else row)
            counts[session_key(row.passage)] += 1
            places.popleft()
        if not places:
            heappop(firsts)
            continue
        row = rows[places[0]]
        loses = _diversity_penalty(row, loss, counts)
        heapreplace(firsts, (loses - row.score, places[0], loses, places))
    return chosen


def _diversity_penalty(row: ScoredPassage, loss: float, counts: Counter[tuple[str, str]]) -> float:
    """Return the penalty of a row for the better rows of its session, at most its score."""
    return 0.0 if row.passage.match.chunk.markup else min(loss * counts[session_key(row.passage)], row.score)


def _text_features(row: ScoredPassage) -> _TextFeatures:
    match = row.passage.match
    return (
        row.successor is not None,
        row.is_question,
        frozenset(match.matched_words),
        *_distinct_written_words(match.content),
    )


@lru_cache(maxsize=_TEXT_CACHE_SIZE)
def _distinct_written_words(content: str) -> tuple[tuple[str, ...], int, int]:
    # words of other scripts can't be split so cheaply; a tuple takes a quarter of the memory of a set
    words = tuple({*_WORD.findall(content.lower())}) if content.isascii() else ()
    bits = 0
    for word in words:
        bits |= 1 << (hash(word) & _HASH_MASK)
    return words, bits, len(words) - bits.bit_count()


def _is_duplicate(left: ScoredPassage, right: ScoredPassage, duplicate: float) -> bool:
    return bool(left.words) and jaccard(left.words, right.words) >= duplicate


def _is_curated_version(row: ScoredPassage, other: ScoredPassage, config: RecallConfig) -> bool:
    """Return whether `row` is curated memory, its duplicate `other` is not, and their scores are near."""
    curated = row.passage.match.chunk.document_type == "curated" != other.passage.match.chunk.document_type
    return curated and other.score - row.score <= config.tie_margin


class _HasEntry(Protocol):
    @property
    def entry(self) -> Entry: ...


_Row = TypeVar("_Row", bound=_HasEntry)


def fit_budget(rows: Iterable[_Row], limit: int, budget: Tokens | None) -> tuple[list[_Row], list[_Row]]:
    """Return the first `limit` rows whose contents fit into `budget` together, and the rows skipped as too long."""
    chosen: list[_Row] = []
    over: list[_Row] = []
    max_tokens = budget.count if budget else 0
    for row in rows:
        if len(chosen) == limit:
            break
        cost = estimate_text(row.entry.content) if budget else 0
        (chosen if cost <= max_tokens else over).append(row)
        max_tokens -= cost if cost <= max_tokens else 0
    return chosen, over


RANK_FACTOR = 2
"""How many times the wanted number of rows is ranked, as some rows make room for others."""
_SEMANTIC_SIGNALS = ("dense", "dense_context")


@dataclass(frozen=True, kw_only=True)
class _Ranking:
    """The result of ranking: the rows in order, and those that were left out."""

    rows: list[ScoredPassage]
    deduplicated: DeduplicationResult
    superseded: list[ScoredPassage]
    is_certain: bool = True


def rank(
    passages: Sequence[Passage],
    question: Question,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    curated: Sequence[Passage] | CuratedMemory = (),
    query: Query | None = None,
    budget: Tokens | None = None,
    reranked: Mapping[PassageLocation, float] | None = None,
) -> list[Hit]:
    """Return at most `limit` hits, best first; empty if there are no passages.

    `curated` is all of curated memory, found or not; it determines the place of an entry and its successor. Entries
    that the filters of `query` exclude are not shown for that. With a `budget`, a hit that is too long for the rest of
    the budget is skipped. `reranked` are scores in 0..1 that a reranker gave to passages.
    """
    max_rows = RANK_FACTOR * limit
    decided = _rank_passages(passages, question, max_rows, now, config, curated=curated, query=query, reranked=reranked)
    chosen, _ = fit_budget(decided.rows, limit, budget)
    return [_build_hit(row, now) for row in chosen]


def rank_subset(
    passages: Sequence[Passage],
    question: Question,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    unseen: float | None,
    curated: CuratedMemory,
    query: Query,
    budget: Tokens | None = None,
) -> list[Hit] | None:
    """Return the hits of `rank` over these passages and unread ones whose nearness is at most `unseen`.

    Returns None if the hits can't be determined without the unread ones.
    """
    decided = _rank_passages(
        passages, question, RANK_FACTOR * limit, now, config, curated=curated, query=query, unseen=unseen
    )
    return [_build_hit(row, now) for row in fit_budget(decided.rows, limit, budget)[0]] if decided.is_certain else None


def explain(
    passages: Sequence[Passage],
    question: Question,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    curated: Sequence[Passage] | CuratedMemory = (),
    query: Query | None = None,
    budget: Tokens | None = None,
    reranked: Mapping[PassageLocation, float] | None = None,
    rejected: int = 10,
) -> Explanation:
    """Return the hits of `rank` and at most `rejected` of the best other candidates, each with the reason."""
    max_rows = RANK_FACTOR * limit + rejected
    deeper = _rank_passages(passages, question, max_rows, now, config, curated=curated, query=query, reranked=reranked)
    chosen, over = fit_budget(deeper.rows, limit, budget)
    shown_ids = {id(row) for row in (*chosen, *over)}
    contradicted_ids = {row.entry.id for row in chosen if row.contradicts}
    left: list[tuple[ScoredPassage, RejectedHit]] = [
        *((row, RejectedHit(hit=_build_hit(row, now), reason="budget")) for row in over),
        *(
            (row, RejectedHit(hit=_build_hit(row, now), reason="limit"))
            for row in deeper.rows
            if id(row) not in shown_ids
        ),
        *(
            (row, _reject_duplicate(row, kept, now))
            for row, kept in deeper.deduplicated.duplicates
            if row.entry.id not in contradicted_ids
        ),
        *((row, RejectedHit(hit=_build_hit(row, now), reason="superseded")) for row in deeper.superseded),
    ]
    left.sort(key=lambda pair: sort_key(pair[0]))
    return Explanation(
        hits=tuple(_build_hit(row, now) for row in chosen),
        rejected=tuple(reason for _, reason in left[:rejected]),
        candidates=len(passages),
    )


def _rank_passages(
    passages: Sequence[Passage],
    question: Question,
    max_rows: int,
    now: datetime,
    config: RecallConfig,
    *,
    curated: Sequence[Passage] | CuratedMemory,
    query: Query | None,
    reranked: Mapping[PassageLocation, float] | None = None,
    unseen: float | None = None,
) -> _Ranking:
    """Return at least `max_rows` rows in order, if there are as many.

    The result is not certain if passages other than these, with a nearness of at most `unseen`, may be among them.
    """
    every = curated if isinstance(curated, CuratedMemory) else CuratedMemory(tuple(curated))
    passages_shown = _filter_curated(every, query)
    passages = move_to_curated(passages, passages_shown)
    chain = find_supersessions((*every.successors, *passages))
    asked = build_query_context(question, passages, now=now, config=config, reranked=reranked)
    found = [passage for passage in passages if asked.is_blank or _is_relevant(passage, asked)]
    superseded: list[ScoredPassage] = []
    in_order = _newest_first(found, asked) if asked.is_blank else iter_best_first(found, asked)
    if unseen is not None:
        max_score = max_entry_score(unseen, asked)
        in_order = takewhile(lambda row: row.score > max_score, in_order)
    folds = deduplicate(_separate_superseded(in_order, chain, superseded), config, max_rows)
    rows = folds.unique
    if not asked.is_blank:
        rows = [row for row in diversify(rows, config.breadth * asked.breadth) if _scores(row)]
        rows = place_announced_behind(place_newer_first(rows, config, asked.as_of or now.date()))
    offered = _find_successors(found, passages_shown.passages, asked, chain) if chain.successor else {}
    rows = place_successors_first(rows, offered, chain, asked.as_of)
    rows = place_held_first(rows, chain, asked.as_of) if asked.as_of is not None else rows

    def offer(passage: Passage) -> ScoredPassage:
        return score_passage(_without_match(passage), asked)

    rows = place_outdated_behind(rows, passages_shown, offer, now.date()) if asked.as_of is None else rows
    return _Ranking(
        rows=group_contradictions(rows, every, passages_shown, offer),
        deduplicated=folds, superseded=superseded,
        is_certain=unseen is None or len(folds.unique) >= max_rows,
    )  # fmt: skip


def _filter_curated(curated: CuratedMemory, query: Query | None) -> CuratedMemory:
    """Return the curated memory that matches the filters of the query."""
    if query is None or query == Query(
        text=query.text, document_types=query.document_types, neighbours=query.neighbours, profile=query.profile
    ):
        return curated if query is None or "curated" in query.document_types else CuratedMemory()
    return CuratedMemory(tuple(passage for passage in curated.passages if matches_filters(passage.match.chunk, query)))


def _is_relevant(passage: Passage, context: QueryContext) -> bool:
    """Return whether a passage shares words or meaning with the question, or is the reply to a message that does."""
    match = passage.match
    return (
        bool(match.matched_words)
        or is_reply(passage, context)
        or any(match.signals.get(name, 0.0) > 0 for name in _SEMANTIC_SIGNALS)
    )


def _scores(row: ScoredPassage) -> bool:
    """Return whether a row is worth a hit; a row without words of the question needs a score above 0."""
    return row.score > 0 or bool(row.passage.match.matched_words)


def _newest_first(passages: Sequence[Passage], context: QueryContext) -> Iterator[ScoredPassage]:
    """Yield the passages of a blank query, newest first."""
    yield from sorted((score_passage(passage, context) for passage in passages), key=sort_key)


def _separate_superseded(
    rows: Iterator[ScoredPassage], chain: SupersessionChains, superseded: list[ScoredPassage]
) -> Iterator[ScoredPassage]:
    """Yield the rows with their successors; rows whose successor is not visible are added to `superseded`."""
    for row in rows:
        stands = attach_successor(row, chain) if chain.successor else row
        if stands.is_current:
            yield stands
        else:
            superseded.append(stands)


def _find_successors(
    found: Sequence[Passage], shown: Sequence[Passage], context: QueryContext, chain: SupersessionChains
) -> dict[str, ScoredPassage]:
    """Return the current successors of other entries by id, as found or as in curated memory."""
    unfound = [
        score_passage(_without_match(each), context) for each in shown if each.match.chunk.entry_id in chain.entries
    ]
    rows = [score_passage(each, context) for each in found if each.match.chunk.entry_id in chain.entries]
    best_last = [attach_successor(row, chain) for row in (*unfound, *sorted(rows, key=sort_key, reverse=True))]
    return {row.entry.id: row for row in best_last if row.is_current}


def _without_match(passage: Passage) -> Passage:
    """Return the passage without any match of the question."""
    return replace(passage, match=replace(passage.match, score=0.0, matched_words=(), missing_words=(), signals={}))


def _reject_duplicate(row: ScoredPassage, kept_row: ScoredPassage, now: datetime) -> RejectedHit:
    return RejectedHit(
        hit=_build_hit(row, now),
        reason="duplicate",
        replacement=f"{kept_row.passage.match.path}:{kept_row.passage.match.line_number}",
    )


def _build_hit(row: ScoredPassage, now: datetime) -> Hit:
    match = row.passage.match
    score = min(row.score, 1.0)
    return Hit(
        entry=row.entry,
        score=score,
        explanation=_explain_hit(row, now),
        path=match.path,
        line_number=match.line_number,
        end_line=match.end_line,
        source=row.passage.label,
        speaker=match.chunk.speaker,
        heading=match.chunk.heading,
        matched_words=match.matched_words,
        superseded_by=row.successor.match.chunk.entry_id if row.successor else "",
        contradicts=row.contradicts,
        signals=row.signals,
        score_parts=_normalize_shares(row, score),
    )


def _normalize_shares(row: ScoredPassage, score: float) -> dict[str, float]:
    """Return the shares scaled so that they sum to the score, with a share for the change by placement."""
    shares = dict(row.shares)
    placed = row.score - sum(shares.values())
    if abs(placed) > 1e-9:
        shares["place"] = placed
    over = row.score / score if score else 1.0
    return {name: share / over for name, share in shares.items()} if over > 1 else shares


def _explain_hit(row: ScoredPassage, now: datetime) -> str:
    """Return the reasons of a hit in words, strongest first."""
    words = row.passage.match.matched_words
    reasons = [f"has {', '.join(words)}"] if words else []
    if row.signals["speaker"]:
        speaker = row.passage.match.chunk.speaker
        reasons.append(f"by {speaker}" if speaker else "about the one asked for")
    if row.signals["reply"]:
        reasons.append("follows a question like it")
    if row.signals["dates"]:
        reasons.append("of that time")
    if row.signals["memory"]:
        reasons.append(row.entry.kind)
    if row.time != NO_DATE:
        days = (now - row.time).days
        reasons.append("today" if days < 1 else f"{days} days ago" if days > 1 else "yesterday")
    if row.successor:
        reasons.append(f"superseded by {row.successor.match.path}:{row.successor.match.line_number}")
    elif row.outdated:
        reasons.append("a later statement exists")
    if row.entry.maybe_outdated_by:
        reasons.append(f"maybe outdated by {row.entry.maybe_outdated_by}")
    if row.contradicts:
        reasons.append(f"contradicts {', '.join(row.contradicts)}: not decided")
    return "; ".join(reasons)
