"""What was said in sessions, as hits of recall beside memories, where it matches a question nearer than they do.

Nothing may have been learned from a message, or less than the question asks for. A statement of a session then stands
before memories that match less. The first place is for a memory if there is one.

Invariant: what a tool printed or an assistant repeats of it, the call of a tool and a mere question are never among the
hits, and neither is a message that contains a forgotten statement.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ricordo.concurrency import run_in_thread
from ricordo.guard import Trust
from ricordo.language import content_words
from ricordo.lazy import copy_with
from ricordo.messages.tokens import Tokens
from ricordo.search.config import DEFAULT_RECALL, RecallConfig
from ricordo.search.contract import Explanation, Hit, Query, RejectedHit, Reranker, SearchSource
from ricordo.search.documents import is_tool_call
from ricordo.search.ranking import fit_budget
from ricordo.search.recall import find_passages, prepare_query, rank_found, search, select_best

__all__ = ["add_statements", "choose_hits", "is_known", "is_statement", "place_statements", "recall_all"]


_OVERFETCH = 2
_MAX_CHARS = 2_000


async def recall_all(
    sources: Sequence[SearchSource],
    query: Query,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig = DEFAULT_RECALL,
    reranker: Reranker | None = None,
) -> list[Hit]:
    """Return at most `limit` memories and statements of sessions that match nearer, best first.

    `sources` are ordered narrowest first. Both are found in one look at each source, and statements are ranked only if
    one of them can be among the hits. Raises: `InvalidQuery`, `StorageError` if no source can be searched.
    """
    if reranker is not None or not (query.said and _can_have_statements(query)):
        memories = await search(sources, query, limit=limit, now=now, config=config, reranker=reranker)
        if not query.said:
            return memories
        hits = await add_statements(
            sources, memories, query, limit=limit, now=now, config=config, reranker=reranker
        )  # fmt: skip
        return hits[:limit]
    asked, alone = prepare_query(query, limit), len(sources) == 1
    said = copy_with(asked, document_types=("transcript",))
    requests = [
        select_best(asked, limit, now, config, alone=alone),
        select_best(said, _OVERFETCH * limit, now, config, alone=alone),
    ]
    found, spoken = await find_passages(sources, requests)
    memories = await rank_found(sources, asked, found, limit=limit, now=now, config=config)
    # a statement is before a memory, but not the first, only if its score is so much higher
    least = (
        min((hit.score for hit in memories[1:]), default=1.0) + config.said_margin if len(memories) == limit else 0.0
    )
    if not spoken.passages or spoken.best <= least:
        return memories
    messages = await rank_found(sources, said, spoken, limit=_OVERFETCH * limit, now=now, config=config)
    hits = await _with_statements(
        sources, memories, messages, query, limit=limit, config=config, tool_sessions=spoken.tool_sessions
    )
    return hits[:limit]


async def add_statements(
    sources: Sequence[SearchSource],
    memories: Sequence[Hit],
    query: Query,
    *,
    limit: int,
    now: datetime,
    config: RecallConfig = DEFAULT_RECALL,
    reranker: Reranker | None = None,
) -> list[Hit]:
    """Return all these memories, and among the first `limit` hits the statements of sessions that match nearer.

    A query for the newest memories, or for memories of some kinds or tags, adds none. Raises: `StorageError` if no
    source can be searched.
    """
    if not sources or not _can_have_statements(query):
        return [*memories]
    said = replace(query, document_types=("transcript",))
    found = await search(sources, said, limit=_OVERFETCH * limit, now=now, config=config, reranker=reranker)
    return await _with_statements(sources, memories, found, query, limit=limit, config=config)


def _can_have_statements(query: Query) -> bool:
    """Return whether messages can match; they have no kind of memories and no tags, and are no newest memories."""
    return bool(query.text.strip()) and not (query.kinds or query.tags)


async def _with_statements(
    sources: Sequence[SearchSource],
    memories: Sequence[Hit],
    messages: Sequence[Hit],
    query: Query,
    *,
    limit: int,
    config: RecallConfig,
    tool_sessions: Mapping[str, frozenset[str] | None] | None = None,
) -> list[Hit]:
    """Return all memories, and among the first `limit` hits those of the messages that are worth it.

    `tool_sessions` are the sessions with output of tools by source, as far as they are known.
    """
    from ricordo.search.answer import is_echo

    said = [hit for hit in messages if not query.except_session or hit.entry.source.session != query.except_session]
    hits = list[Hit]()
    for hit in place_statements(memories, said, config):
        if not hit.is_said:
            hits.append(hit)
        elif len(hits) < limit and await _is_worth_recalling(hit, memories, query.text, config):
            printing = (tool_sessions or {}).get(hit.source)
            may_echo = printing is None or hit.entry.source.session in printing
            if not (may_echo and await is_echo(sources, hit)):
                hits.append(hit)
    return hits


def place_statements(memories: Sequence[Hit], messages: Sequence[Hit], config: RecallConfig) -> list[Hit]:
    """Return memories and messages, the best memory first, the others by their scores.

    Memories stay in their order. A message goes before a memory if its score is higher by `said_margin`, and is left
    out if it has too few of the question's words, or comes from outside.
    """
    waiting = deque(
        hit
        for hit in messages
        if hit.is_said and hit.trust is not Trust.EXTERNAL and hit.signals.get("coverage", 0.0) >= config.said_coverage
    )
    placed = list[Hit]()
    for memory in memories:
        while placed and waiting and waiting[0].score > memory.score + config.said_margin:
            placed.append(waiting.popleft())
        placed.append(memory)
    return [*placed, *waiting]


async def _is_worth_recalling(message: Hit, memories: Sequence[Hit], question: str, config: RecallConfig) -> bool:
    # the first call loads word lists
    return await run_in_thread(lambda: is_statement(message, question) and not is_known(message, memories, config))


def is_statement(message: Hit, question: str) -> bool:
    """Return whether a message is neither the call of a tool nor a mere question."""
    from ricordo.search.answer import is_only_question

    return not is_tool_call(message.speaker, message.entry.content) and not is_only_question(message, question)


def is_known(message: Hit, memories: Sequence[Hit], config: RecallConfig) -> bool:
    """Return whether memories hold most of a message, from which they were learned, or superseded what was learned."""
    source = message.entry.source
    learned = [each for each in memories if not set(source.messages).isdisjoint(each.entry.source.messages)]
    # ids of messages may be those of another program, which begin anew in each session
    learned = [each for each in learned if each.entry.source.session in {None, source.session}]
    if any(each.superseded_by for each in learned):
        return True
    words = frozenset(content_words(message.entry.content[:_MAX_CHARS])) if learned else frozenset[str]()
    return any(
        len(words.intersection(content_words(each.entry.content[:_MAX_CHARS]))) >= config.repetition * len(words)
        for each in learned
    )


def choose_hits(
    explanation: Explanation, hits: Sequence[Hit], *, limit: int, rejected: int, budget: Tokens | None
) -> Explanation:
    """Return an explanation with the first `limit` of `hits` that fit into `budget`, and the others as rejected."""
    chosen, over = fit_budget(hits, limit, budget)
    places = {_place(hit) for hit in (*chosen, *over)}
    others = [RejectedHit(hit=hit, reason="budget") for hit in over]
    others += [RejectedHit(hit=hit, reason="limit") for hit in hits if _place(hit) not in places]
    left = sorted((*others, *explanation.rejected), key=lambda each: -each.hit.score)
    return replace(explanation, hits=tuple(chosen), rejected=tuple(left[:rejected]))


def _place(hit: Hit) -> tuple[str, str, int]:
    return hit.source, hit.path, hit.line_number
