"""Ranking, decided from values alone: passages in, hits out.

A passage scores by how much of the question it covers, alone and with its neighbours, by the company it keeps (its
session), by whom and what time it is about, by the question it may answer, and by a little for what it is. Each signal
is in 0..1 and so is the score; sources are compared by it, though each counts its own words. Order is total: of equal
scores the newer comes first, then the narrower source, then the place in the files, where the line of a long memory
comes before the whole of it.

Invariant: ranking never makes a hit of a passage that no source gave, and never drops one but as the duplicate of
another, as superseded by nothing that is seen, for the limit or the budget, or because nothing of the question is in
it; but what holds now in the place of a superseded memory is a hit above it. A question without text asks for nothing
but the newest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from ricordo.index.contract import Query
from ricordo.index.plan import matches_filters
from ricordo.recall.asked import QueryContext, PassageLocation, build_query_context
from ricordo.recall.config import RecallConfig
from ricordo.recall.disputed import group_contradictions
from ricordo.recall.folding import DeduplicationResult, diversify, deduplicate
from ricordo.recall.hits import Explanation, Hit, Passage, RejectedHit
from ricordo.recall.measures import (
    NO_DATE,
    ScoredPassage,
    iter_best_first,
    is_reply,
    score_passage,
    max_entry_score,
    sort_key,
)
from ricordo.recall.packing import fit_budget
from ricordo.recall.precedence import place_newer_first, attach_successor, place_successors_first
from ricordo.recall.question import Question
from ricordo.recall.standing import CuratedMemory, SupersessionChains, move_to_curated, find_supersessions
from ricordo.tokens import Tokens

__all__ = ["RANK_FACTOR", "explain", "rank", "rank_subset"]

RANK_FACTOR = 2
"""How many times as many as are wanted are put in order, as some make room for others."""

_SEMANTIC_SIGNALS = ("dense", "dense_context")


@dataclass(frozen=True, kw_only=True)
class _Ranking:
    """What ranking came to: rows in their order with what it left out on the way."""

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
    """Return at most `limit` hits, best first; empty when there are no passages.

    `curated` is all of curated memory, found or not: where an entry stands and what took its place is told by it. What
    the filters of `query` keep out is not shown for that. With a `budget` a hit that is too long for what is left
    of it is passed over for the next. `reranked` are scores in 0..1 that a reranker gave passages.
    """
    wanted = RANK_FACTOR * limit
    decided = _rank_passages(passages, question, wanted, now, config, curated=curated, query=query, reranked=reranked)
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
    """Return the hits of `rank` over these passages and others that are at most `unseen` near; None where that
    can't be told without the others.
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
    """Return the hits of `rank`, and the best candidates that are none, at most `rejected` of them, with the reason."""
    wanted = RANK_FACTOR * limit + rejected
    deeper = _rank_passages(passages, question, wanted, now, config, curated=curated, query=query, reranked=reranked)
    chosen, over = fit_budget(deeper.rows, limit, budget)
    shown = {id(row) for row in (*chosen, *over)}
    beside = {row.entry.id for row in chosen if row.contradicts}
    left: list[tuple[ScoredPassage, RejectedHit]] = [
        *((row, RejectedHit(hit=_build_hit(row, now), reason="budget")) for row in over),
        *((row, RejectedHit(hit=_build_hit(row, now), reason="limit")) for row in deeper.rows if id(row) not in shown),
        *(
            (row, _reject_duplicate(row, kept, now))
            for row, kept in deeper.deduplicated.duplicates
            if row.entry.id not in beside
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
    wanted: int,
    now: datetime,
    config: RecallConfig,
    *,
    curated: Sequence[Passage] | CuratedMemory,
    query: Query | None,
    reranked: Mapping[PassageLocation, float] | None = None,
    unseen: float | None = None,
) -> _Ranking:
    """Return at least `wanted` rows in their order, where there are as many.

    It is not sure of that where others than these passages, at most `unseen` near, may be among them.
    """
    every = curated if isinstance(curated, CuratedMemory) else CuratedMemory(tuple(curated))
    shown = _filter_curated(every, query)
    passages = move_to_curated(passages, shown)
    chain = find_supersessions((*every.successors, *passages))
    asked = build_query_context(question, passages, now=now, config=config, reranked=reranked)
    found = [passage for passage in passages if asked.is_blank or _is_relevant(passage, asked)]
    superseded: list[ScoredPassage] = []
    in_order = _newest_first(found, asked) if asked.is_blank else iter_best_first(found, asked)
    if unseen is not None:
        most = max_entry_score(unseen, asked)
        in_order = takewhile(lambda row: row.score > most, in_order)
    folds = deduplicate(_separate_superseded(in_order, chain, superseded), config, wanted)
    rows = folds.unique
    if not asked.is_blank:
        rows = [row for row in diversify(rows, config.breadth * asked.breadth) if _scores(row)]
        rows = place_newer_first(rows, config)
    offered = _find_successors(found, shown.passages, asked, chain) if chain.successor else {}
    rows = place_successors_first(rows, offered, chain)
    return _Ranking(
        rows=group_contradictions(rows, every, shown, lambda passage: score_passage(_without_match(passage), asked)),
        deduplicated=folds, superseded=superseded,
        is_certain=unseen is None or len(folds.unique) >= wanted,
    )  # fmt: skip


def _filter_curated(curated: CuratedMemory, query: Query | None) -> CuratedMemory:
    """Return what the filters of the query let through of curated memory."""
    if query is None or query == Query(
        text=query.text, sorts=query.sorts, neighbours=query.neighbours, profile=query.profile
    ):
        return curated if query is None or "curated" in query.sorts else CuratedMemory()
    return CuratedMemory(tuple(passage for passage in curated.passages if matches_filters(passage.match.chunk, query)))


def _is_relevant(passage: Passage, asked: QueryContext) -> bool:
    """Tell whether a passage holds anything of the question, in words or in meaning, or is the reply to what does."""
    match = passage.match
    return (
        bool(match.words)
        or is_reply(passage, asked)
        or any(match.signals.get(name, 0.0) > 0 for name in _SEMANTIC_SIGNALS)
    )


def _scores(row: ScoredPassage) -> bool:
    """Tell whether a row is worth a hit: what was found by its meaning alone, and scores nothing, has nothing to do
    with the question.
    """
    return row.score > 0 or bool(row.passage.match.words)


def _newest_first(passages: Sequence[Passage], asked: QueryContext) -> Iterator[ScoredPassage]:
    """Yield passages that nothing was asked of, the newest first."""
    yield from sorted((score_passage(passage, asked) for passage in passages), key=sort_key)


def _separate_superseded(
    rows: Iterator[ScoredPassage], chain: SupersessionChains, superseded: list[ScoredPassage]
) -> Iterator[ScoredPassage]:
    """Yield the rows with what took their place; those whose successor is not seen go to `superseded`."""
    for row in rows:
        stands = attach_successor(row, chain) if chain.successor else row
        if stands.is_current:
            yield stands
        else:
            superseded.append(stands)


def _find_successors(
    found: Sequence[Passage], shown: Sequence[Passage], asked: QueryContext, chain: SupersessionChains
) -> dict[str, ScoredPassage]:
    """Return what took the place of other entries, by its id, as it was found or as curated memory holds it."""
    unfound = [
        score_passage(_without_match(each), asked) for each in shown if each.match.chunk.entry_id in chain.entries
    ]
    rows = [score_passage(each, asked) for each in found if each.match.chunk.entry_id in chain.entries]
    best_last = [attach_successor(row, chain) for row in (*unfound, *sorted(rows, key=sort_key, reverse=True))]
    return {row.entry.id: row for row in best_last if row.is_current}


def _without_match(passage: Passage) -> Passage:
    """Return the passage as one that holds nothing of the question."""
    return replace(passage, match=replace(passage.match, score=0.0, words=(), absent=(), signals={}))


def _reject_duplicate(row: ScoredPassage, kept: ScoredPassage, now: datetime) -> RejectedHit:
    return RejectedHit(
        hit=_build_hit(row, now),
        reason="duplicate",
        replacement=f"{kept.passage.match.path}:{kept.passage.match.line_number}",
    )


def _build_hit(row: ScoredPassage, now: datetime) -> Hit:
    match = row.passage.match
    score = min(row.score, 1.0)
    return Hit(
        entry=row.entry,
        score=score,
        why=_explain_hit(row, now),
        path=match.path,
        line_number=match.line_number,
        end_line=match.end_line,
        source=row.passage.label,
        speaker=match.chunk.speaker,
        heading=match.chunk.heading,
        words=match.words,
        superseded_by=row.successor.match.chunk.entry_id if row.successor else "",
        contradicts=row.contradicts,
        signals=row.signals,
        shares=_normalize_shares(row, score),
    )


def _normalize_shares(row: ScoredPassage, score: float) -> dict[str, float]:
    """Return the shares so that they sum to the score: with what another memory's place gave or took."""
    shares = dict(row.shares)
    placed = row.score - sum(shares.values())
    if abs(placed) > 1e-9:
        shares["place"] = placed
    over = row.score / score if score else 1.0
    return {name: share / over for name, share in shares.items()} if over > 1 else shares


def _explain_hit(row: ScoredPassage, now: datetime) -> str:
    """Return the reasons of a hit in words, the strongest first."""
    words = row.passage.match.words
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
    if row.contradicts:
        reasons.append(f"contradicts {', '.join(row.contradicts)}: not decided")
    return "; ".join(reasons)
