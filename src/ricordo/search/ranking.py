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
from math import ceil, inf
from typing import Protocol, TypeVar

from ricordo.language import jaccard
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages.tokens import Tokens, estimate_text
from ricordo.search.config import RecallConfig
from ricordo.search.contract import Explanation, Hit, Passage, Query, RejectedHit, SourceContext
from ricordo.search.documents import matches_filters
from ricordo.search.query_context import PassageLocation, QueryContext, Question, build_query_context, session_key
from ricordo.search.signals import (
    NO_DATE,
    ScoredPassage,
    WordBits,
    is_reply,
    iter_best_first,
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
_ALL_BITS = -1
"""The bits of a text whose words are not known, which may be like any other."""
_WORD = lazy_compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class DeduplicationResult:
    """The unique rows, best first, and the duplicates, each with the row that it repeats."""

    unique: list[ScoredPassage] = field(default_factory=list)
    duplicates: list[tuple[ScoredPassage, ScoredPassage]] = field(default_factory=list)


class _LearnedMemories:
    """The memories among the rows, by the single message that each was learned from; parsed on demand."""

    def __init__(self) -> None:
        self.unread: list[ScoredPassage] = []
        """Memories that were kept."""
        self._by_message: dict[tuple[str, str], list[ScoredPassage]] = {}

    def find_replacement(self, row: ScoredPassage, score: float) -> ScoredPassage | None:
        """Return the better memory learned from this message that has the share `score` of its words, else None."""
        message = row.chunk.message
        for memory in self.unread:
            if memory.memory is not None and len(memory.memory.source.messages) == 1:
                key = memory.passage.label, memory.memory.source.messages[0]
                self._by_message.setdefault(key, []).append(memory)
        self.unread.clear()
        memories = self._by_message.get((row.passage.label, message), ())
        return next((each for each in memories if len(row.words & each.words) >= score * len(row.words)), None)


class _Kept:
    """The rows kept so far, best first, with features that detect duplicates of them."""

    def __init__(self, duplicate: float) -> None:
        self.rows: list[ScoredPassage] = []
        self._words: list[WordBits] = []
        self._bits: list[int] = []
        self._duplicate = duplicate
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._read = 0

    def add(self, row: ScoredPassage) -> None:
        """Add a row at the end."""
        self.rows.append(row)
        self._words.append(_written_words(row.chunk.content))
        self._bits.append(self._words[-1].bits or _ALL_BITS)

    def put(self, at: int, row: ScoredPassage) -> None:
        """Replace a row; the words of the old one stay in the index and only cost a comparison."""
        self.rows[at] = row
        self._words[at] = _written_words(row.chunk.content)
        self._bits[at] = self._words[at].bits or _ALL_BITS
        if at < self._read:
            self._index(at)

    def twin(self, row: ScoredPassage) -> int | None:
        """Return the position of the first row that is a duplicate; cheap checks come first, as rows may be many."""
        words, bits, sharing = _written_words(row.chunk.content)
        duplicate, size = self._duplicate, len(words)
        # the number of shared words is at most the shared bits plus the words that share a bit
        least = _MIN_OVERLAP * size - sharing if duplicate >= _MIN_OVERLAP else 0.0
        kept = self._bits
        if len(kept) >= _FEW and duplicate > 0:
            some = [at for at in self._candidates(row) if (bits & kept[at]).bit_count() >= least]
        else:
            shared = [*map(int.bit_count, map(bits.__and__, kept))]
            if max(shared, default=-1) < least:
                return None
            some = [at for at, count in enumerate(shared) if count >= least]
        for at in some:
            other, others = self.rows[at], self._words[at].words
            if size and others and duplicate >= _MIN_OVERLAP:
                least_shared = _MIN_OVERLAP * max(size, len(others))
                # texts that share so much have similar sizes
                if min(size, len(others)) < least_shared or len({*words}.intersection(others)) < least_shared:
                    continue
            # a change may differ in one number only, and a question with the same words does not duplicate its answer
            is_like = (row.successor is None) == (other.successor is None) and row.is_question == other.is_question
            if is_like and _is_duplicate(row, other, duplicate):
                return at
        return None

    def _candidates(self, row: ScoredPassage) -> Iterable[int]:
        """Return the positions that may hold a duplicate of the row, in order."""
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
        chunk = row.chunk
        # all pieces of one message or entry are one hit
        place = (row.passage.label, chunk.entry_id or chunk.path, "" if chunk.entry_id else chunk.line_number)
        if place in places:
            continue
        places.add(place)
        if chunk.message and (memory := learned.find_replacement(row, config.repetition)) is not None:
            repeated.append((row, memory))
            continue
        twin = kept_rows.twin(row)
        if twin is None:
            kept_rows.add(row)
            if chunk.markup:
                learned.unread.append(row)
        elif _is_curated_version(row, better := kept_rows.rows[twin], config):
            repeated.append((better, row))
            kept_rows.put(twin, row.changed(score=better.score))
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
        own = at if row.chunk.markup else session_key(row.passage)
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
            chosen.append(row.changed(score=row.score - lost, diversity_penalty=lost) if lost else row)
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
    return 0.0 if row.chunk.markup else min(loss * counts[session_key(row.passage)], row.score)


@lru_cache(maxsize=_TEXT_CACHE_SIZE)
def _written_words(content: str) -> WordBits:
    """Return the distinct words as they are written; none for other scripts, which can't be split so cheaply."""
    return WordBits.of({*_WORD.findall(content.lower())} if content.isascii() else ())


def _is_duplicate(left: ScoredPassage, right: ScoredPassage, duplicate: float) -> bool:
    return bool(left.words) and jaccard(left.words, right.words) >= duplicate


def _is_curated_version(row: ScoredPassage, other: ScoredPassage, config: RecallConfig) -> bool:
    """Return whether `row` is curated memory, its duplicate `other` is not, and their scores are near."""
    curated = row.chunk.document_type == "curated" != other.chunk.document_type
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
    contexts: Mapping[str, SourceContext] | None = None,
) -> list[Hit] | None:
    """Return the hits of `rank` over these passages and unread ones whose score is at most `unseen`.

    `contexts` are those of sources with unread passages, by label. Returns None if the hits can't be determined without
    the unread ones.
    """
    decided = _rank_passages(
        passages, question, RANK_FACTOR * limit, now, config,
        curated=curated, query=query, contexts=contexts, unseen=unseen,
    )  # fmt: skip
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
    contexts: Mapping[str, SourceContext] | None = None,
    unseen: float | None = None,
) -> _Ranking:
    """Return at least `max_rows` rows in order, if there are as many.

    The result is not certain if passages other than these, with a score of at most `unseen`, may be among them.
    """
    every = curated if isinstance(curated, CuratedMemory) else CuratedMemory(tuple(curated))
    passages_shown = _filter_curated(every, query)
    passages = move_to_curated(passages, passages_shown)
    chain = find_supersessions((*every.successors, *passages))
    asked = build_query_context(question, passages, now=now, config=config, sources=contexts, reranked=reranked)
    found = [
        passage for passage in passages if passage.match.matched_words or asked.is_blank or _is_relevant(passage, asked)
    ]
    superseded: list[ScoredPassage] = []
    least = -inf if unseen is None else unseen
    in_order = _newest_first(found, asked) if asked.is_blank else iter_best_first(found, asked, least)
    folds = deduplicate(_separate_superseded(in_order, chain, superseded), config, max_rows)
    rows = folds.unique
    if not asked.is_blank:
        rows = [row for row in diversify(rows, config.breadth * asked.breadth) if row.score > 0 or _has_words(row)]
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
    if query is None:
        return curated
    if query.kinds or query.tags or query.since or query.until or query.session or query.path:
        passages = (passage for passage in curated.passages if matches_filters(passage.match.chunk, query))
        return CuratedMemory(tuple(passages))
    return curated if "curated" in query.document_types else CuratedMemory()


def _is_relevant(passage: Passage, context: QueryContext) -> bool:
    """Return whether a passage without words of the question shares its meaning, or replies to a message with both."""
    signals = passage.match.signals
    return signals.get("dense", 0.0) > 0 or signals.get("dense_context", 0.0) > 0 or is_reply(passage, context)


def _has_words(row: ScoredPassage) -> bool:
    """Return whether a row has words of the question; it is a hit then, however low its score is."""
    return bool(row.passage.match.matched_words)


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
    match = replace(passage.match, score=0.0, matched_words=(), missing_words=(), signals={})
    return Passage(passage.label, passage.source_rank, match)


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
        speaker = row.chunk.speaker
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
