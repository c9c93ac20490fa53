"""What was said in sessions, as hits of recall beside memories, where it matches a question nearer than they do.

Nothing may have been learned from a message, or less than the question asks for. A statement of a session then stands
before memories that match less. The first place is for a memory if there is one.

Invariant: what a tool printed or an assistant repeats of it, the call of a tool and a mere question are never among the
hits, and neither is a message that contains a forgotten statement.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ricordo.concurrency import run_in_thread
from ricordo.guard import Trust
from ricordo.language import content_words
from ricordo.messages.tokens import Tokens
from ricordo.scope import Scope
from ricordo.search.answer import is_echo, is_only_question
from ricordo.search.config import DEFAULT_RECALL, RecallConfig
from ricordo.search.contract import Explanation, Hit, Query, RejectedHit, Reranker, SearchSource
from ricordo.search.memory_root import MemoryRoot
from ricordo.search.ranking import fit_budget
from ricordo.search.recall import search
from ricordo.search.signals import is_tool_call

__all__ = ["add_statements", "choose_hits", "is_known", "is_statement", "place_statements", "recall_statements"]


_OVERFETCH = 2
_MAX_CHARS = 2_000


async def recall_statements(
    places: Sequence[MemoryRoot],
    scope: Scope,
    memories: Sequence[Hit],
    query: Query,
    *,
    limit: int,
    by: Reranker | None = None,
) -> list[Hit]:
    """Return the first `limit` of these memories and of the statements in `places` that match nearer.

    `places` are those with sessions, narrowest first; `by` reranks. Raises: `StorageError` if none can be searched.
    """
    sources = [await place.source(scope) for place in places]
    now, config = places[0].clock.now(), places[0].recall
    hits = await add_statements(sources, memories, query, limit=limit, now=now, config=config, reranker=by)
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
    if not sources or not query.text.strip() or query.kinds or query.tags:
        return [*memories]
    said = replace(query, document_types=("transcript",))
    found = await search(sources, said, limit=_OVERFETCH * limit, now=now, config=config, reranker=reranker)
    messages = [hit for hit in found if not query.except_session or hit.entry.source.session != query.except_session]
    hits = list[Hit]()
    for hit in place_statements(memories, messages, config):
        if not hit.is_said or (
            len(hits) < limit and await _is_worth_recalling(hit, memories, query.text, sources, config)
        ):
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


async def _is_worth_recalling(
    message: Hit, memories: Sequence[Hit], question: str, sources: Sequence[SearchSource], config: RecallConfig
) -> bool:
    # the first call loads word lists
    states = await run_in_thread(lambda: is_statement(message, question) and not is_known(message, memories, config))
    return states and not await is_echo(sources, message)


def is_statement(message: Hit, question: str) -> bool:
    """Return whether a message is neither the call of a tool nor a mere question."""
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
