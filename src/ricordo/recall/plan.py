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
from ricordo.index.plan import passes
from ricordo.recall.asked import Asked, Place, read_asked
from ricordo.recall.config import RecallConfig
from ricordo.recall.disputed import disputed_together
from ricordo.recall.folding import Folded, diversified, folded
from ricordo.recall.hits import Explained, Hit, Passage, Rejected
from ricordo.recall.measures import NEVER, Scored, best_first, is_reply, measured, most_of, order
from ricordo.recall.packing import packed
from ricordo.recall.precedence import newer_first, standing, successors_first
from ricordo.recall.question import Question
from ricordo.recall.standing import Curation, Successions, curated_place, successions
from ricordo.tokens import Tokens

__all__ = ["SPARE", "explain", "rank", "rank_some"]

SPARE = 2
"""How many times as many as are wanted are put in order, as some make room for others."""

_MEANINGS = ("dense", "dense_context")


@dataclass(frozen=True, kw_only=True)
class _Decided:
    """What ranking came to: rows in their order with what it left out on the way."""

    rows: list[Scored]
    folds: Folded
    superseded: list[Scored]
    sure: bool = True


def rank(
    passages: Sequence[Passage],
    question: Question,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    curated: Sequence[Passage] | Curation = (),
    query: Query | None = None,
    budget: Tokens | None = None,
    reranked: Mapping[Place, float] | None = None,
) -> list[Hit]:
    """Return at most `limit` hits, best first; empty when there are no passages.

    `curated` is all of curated memory, found or not: where an entry stands and what took its place is told by it. What
    the filters of `query` keep out is not shown for that. With a `budget` a hit that is too long for what is left
    of it is passed over for the next. `reranked` are scores in 0..1 that a reranker gave passages.
    """
    wanted = SPARE * limit
    decided = _decide(passages, question, wanted, now, config, curated=curated, query=query, reranked=reranked)
    chosen, _ = packed(decided.rows, limit, budget)
    return [_hit(row, now) for row in chosen]


def rank_some(
    passages: Sequence[Passage],
    question: Question,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    unseen: float | None,
    curated: Curation,
    query: Query,
    budget: Tokens | None = None,
) -> list[Hit] | None:
    """Return the hits of `rank` over these passages and others that are at most `unseen` near; None where that
    can't be told without the others.
    """
    decided = _decide(passages, question, SPARE * limit, now, config, curated=curated, query=query, unseen=unseen)
    return [_hit(row, now) for row in packed(decided.rows, limit, budget)[0]] if decided.sure else None


def explain(
    passages: Sequence[Passage],
    question: Question,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig,
    curated: Sequence[Passage] | Curation = (),
    query: Query | None = None,
    budget: Tokens | None = None,
    reranked: Mapping[Place, float] | None = None,
    rejected: int = 10,
) -> Explained:
    """Return the hits of `rank`, and the best candidates that are none, at most `rejected` of them, with the reason."""
    wanted = SPARE * limit + rejected
    deeper = _decide(passages, question, wanted, now, config, curated=curated, query=query, reranked=reranked)
    chosen, over = packed(deeper.rows, limit, budget)
    shown = {id(row) for row in (*chosen, *over)}
    beside = {row.entry.id for row in chosen if row.contradicts}
    left: list[tuple[Scored, Rejected]] = [
        *((row, Rejected(hit=_hit(row, now), reason="budget")) for row in over),
        *((row, Rejected(hit=_hit(row, now), reason="limit")) for row in deeper.rows if id(row) not in shown),
        *((row, _duplicate(row, kept, now)) for row, kept in deeper.folds.repeated if row.entry.id not in beside),
        *((row, Rejected(hit=_hit(row, now), reason="superseded")) for row in deeper.superseded),
    ]
    left.sort(key=lambda pair: order(pair[0]))
    return Explained(
        hits=tuple(_hit(row, now) for row in chosen),
        rejected=tuple(reason for _, reason in left[:rejected]),
        candidates=len(passages),
    )


def _decide(
    passages: Sequence[Passage],
    question: Question,
    wanted: int,
    now: datetime,
    config: RecallConfig,
    *,
    curated: Sequence[Passage] | Curation,
    query: Query | None,
    reranked: Mapping[Place, float] | None = None,
    unseen: float | None = None,
) -> _Decided:
    """Return at least `wanted` rows in their order, where there are as many.

    It is not sure of that where others than these passages, at most `unseen` near, may be among them.
    """
    every = curated if isinstance(curated, Curation) else Curation(tuple(curated))
    shown = _shown(every, query)
    passages = curated_place(passages, shown)
    chain = successions((*every.successors, *passages))
    asked = read_asked(question, passages, now=now, config=config, reranked=reranked)
    found = [passage for passage in passages if asked.blank or _concerns(passage, asked)]
    superseded: list[Scored] = []
    in_order = _newest(found, asked) if asked.blank else best_first(found, asked)
    if unseen is not None:
        most = most_of(unseen, asked)
        in_order = takewhile(lambda row: row.score > most, in_order)
    folds = folded(_standing(in_order, chain, superseded), config, wanted)
    rows = folds.kept
    if not asked.blank:
        rows = [row for row in diversified(rows, config.breadth * asked.breadth) if _scores(row)]
        rows = newer_first(rows, config)
    offered = _offered(found, shown.passages, asked, chain) if chain.successor else {}
    rows = successors_first(rows, offered, chain)
    return _Decided(
        rows=disputed_together(rows, every, shown, lambda passage: measured(_unfound(passage), asked)),
        folds=folds, superseded=superseded,
        sure=unseen is None or len(folds.kept) >= wanted,
    )  # fmt: skip


def _shown(curated: Curation, query: Query | None) -> Curation:
    """Return what the filters of the query let through of curated memory."""
    if query is None or query == Query(
        text=query.text, sorts=query.sorts, neighbours=query.neighbours, profile=query.profile
    ):
        return curated if query is None or "curated" in query.sorts else Curation()
    return Curation(tuple(passage for passage in curated.passages if passes(passage.match.chunk, query)))


def _concerns(passage: Passage, asked: Asked) -> bool:
    """Tell whether a passage holds anything of the question, in words or in meaning, or is the reply to what does."""
    match = passage.match
    return bool(match.words) or is_reply(passage, asked) or any(match.signals.get(name, 0.0) > 0 for name in _MEANINGS)


def _scores(row: Scored) -> bool:
    """Tell whether a row is worth a hit: what was found by its meaning alone, and scores nothing, has nothing to do
    with the question.
    """
    return row.score > 0 or bool(row.passage.match.words)


def _newest(passages: Sequence[Passage], asked: Asked) -> Iterator[Scored]:
    """Yield passages that nothing was asked of, the newest first."""
    yield from sorted((measured(passage, asked) for passage in passages), key=order)


def _standing(rows: Iterator[Scored], chain: Successions, superseded: list[Scored]) -> Iterator[Scored]:
    """Yield the rows with what took their place; those whose successor is not seen go to `superseded`."""
    for row in rows:
        stands = standing(row, chain) if chain.successor else row
        if stands.holds:
            yield stands
        else:
            superseded.append(stands)


def _offered(found: Sequence[Passage], shown: Sequence[Passage], asked: Asked, chain: Successions) -> dict[str, Scored]:
    """Return what took the place of other entries, by its id, as it was found or as curated memory holds it."""
    unfound = [measured(_unfound(each), asked) for each in shown if each.match.chunk.entry_id in chain.entries]
    rows = [measured(each, asked) for each in found if each.match.chunk.entry_id in chain.entries]
    best_last = [standing(row, chain) for row in (*unfound, *sorted(rows, key=order, reverse=True))]
    return {row.entry.id: row for row in best_last if row.holds}


def _unfound(passage: Passage) -> Passage:
    """Return the passage as one that holds nothing of the question."""
    return replace(passage, match=replace(passage.match, score=0.0, words=(), absent=(), signals={}))


def _duplicate(row: Scored, kept: Scored, now: datetime) -> Rejected:
    return Rejected(
        hit=_hit(row, now), reason="duplicate", instead=f"{kept.passage.match.path}:{kept.passage.match.line_number}"
    )


def _hit(row: Scored, now: datetime) -> Hit:
    match = row.passage.match
    score = min(row.score, 1.0)
    return Hit(
        entry=row.entry,
        score=score,
        why=_why(row, now),
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
        shares=_settled(row, score),
    )


def _settled(row: Scored, score: float) -> dict[str, float]:
    """Return the shares so that they sum to the score: with what another memory's place gave or took."""
    shares = dict(row.shares)
    placed = row.score - sum(shares.values())
    if abs(placed) > 1e-9:
        shares["place"] = placed
    over = row.score / score if score else 1.0
    return {name: share / over for name, share in shares.items()} if over > 1 else shares


def _why(row: Scored, now: datetime) -> str:
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
    if row.time != NEVER:
        days = (now - row.time).days
        reasons.append("today" if days < 1 else f"{days} days ago" if days > 1 else "yesterday")
    if row.successor:
        reasons.append(f"superseded by {row.successor.match.path}:{row.successor.match.line_number}")
    elif row.outdated:
        reasons.append("a later statement exists")
    if row.contradicts:
        reasons.append(f"contradicts {', '.join(row.contradicts)}: not decided")
    return "; ".join(reasons)
