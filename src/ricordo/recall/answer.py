"""The answer that needs no model: what was written down is quoted with its place, or memory has nothing on it.

Nothing is put into other words, so nothing can be made up. Where the best hit covers too little of the question,
saying "not in memory" is the answer; the floor for that was measured, see the design notes. What only asks is never
quoted, nor is what came from outside, such as what a tool printed or an assistant repeated of it: a page can be
written to be found. What the quoted memory superseded is named after it, so a reader sees that it once was otherwise,
and before that what contradicts it while nothing decides.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ricordo.guard import Trust
from ricordo.index.contract import Query
from ricordo.recall.asking import is_only_question
from ricordo.recall.config import RecallConfig
from ricordo.recall.echoes import is_echo
from ricordo.recall.hits import Answer, Hit, SearchSource
from ricordo.recall.quoting import choose_quote, find_learned_memory, find_replaced
from ricordo.recall.recall import search
from ricordo.uncut import run_in_thread

__all__ = ["NOT_IN_MEMORY", "answer_question"]

NOT_IN_MEMORY = "not in memory"
_QUOTE_CANDIDATES = 12
_NO_LEARNED_MERGE = 2.0
_OVERFETCH = 5
_MAX_OTHERS = 4
_MAX_CURATED = 200
_MAX_QUOTE_CHARS = 600


async def answer_question(
    sources: Sequence[SearchSource],
    question: Query | str,
    *,
    now: datetime | None = None,
    config: RecallConfig | None = None,
) -> Answer:
    """Return the passage that answers `question` best, quoted with file and line, or an answer that is not found.

    Raises: `StorageError` when no source can be searched.
    """
    # one passage is quoted for what it says itself, not for where it stands, and a memory of it may lack what is asked
    # the floor was measured for scores by words, and what shares no word with the question is never quoted
    weights = replace(
        config or RecallConfig(),
        breadth=0.0,
        reply=0.0,
        company=0.0,
        said=_NO_LEARNED_MERGE,
        dense=0.0,
        dense_context=0.0,
    )
    asked = Query(text=question) if isinstance(question, str) else question
    # what is asked day by day must not take all the places
    found = await search(sources, asked, limit=_OVERFETCH * _QUOTE_CANDIDATES, now=now, config=weights)
    stating = await _stating(found, asked.text)
    trusted, chosen = await _choose_trusted(sources, stating, asked.text, weights)
    hits = trusted[:_QUOTE_CANDIDATES]
    if chosen is None or chosen[1] < weights.floor:
        return Answer(
            found=False,
            text=NOT_IN_MEMORY,
            score=chosen[1] if chosen else 0.0,
            others=tuple(hits[:_MAX_OTHERS]),
            unconfirmed=_find_unconfirmed(stating, trusted, asked.text, weights),
        )
    best, fit = chosen
    known = hits
    if not best.signals.get("memory") and (not asked.sorts or "curated" in asked.sorts):
        curated = await search(sources, replace(asked, sorts=("curated",)), limit=_MAX_CURATED, now=now, config=weights)
        curated = [hit for hit in curated if hit.trust is not Trust.EXTERNAL]
        known = [*curated, *hits]
        stated = await _stating(curated, asked.text)
        learned = await run_in_thread(find_learned_memory, best, stated, asked.text)
        best = learned or best
    superseded = find_replaced(best, hits, asked.text)
    contradicting = [*{hit.entry.id: hit for hit in known if hit.entry.id in best.contradicts}.values()]
    return Answer(
        found=True,
        text="\n".join(
            [
                _format_quote(best),
                *(f"Contradicts, not decided: {_format_quote(hit)}" for hit in contradicting),
                *(f"Superseded: {_format_quote(hit)}" for hit in superseded),
            ]
        ),
        hit=best,
        path=best.path,
        line_number=best.line_number,
        score=fit,
        contradicting=tuple(contradicting),
        superseded=tuple(superseded),
        others=tuple(hit for hit in hits if _hit_location(hit) != _hit_location(best) and hit not in superseded)[
            :_MAX_OTHERS
        ],
    )


async def _stating(hits: Sequence[Hit], question: str) -> list[Hit]:
    """Return the hits that do not only ask; in a thread, as the words of many languages are made ready at first."""
    return await run_in_thread(lambda: [hit for hit in hits if not is_only_question(hit, question)])


async def _choose_trusted(
    sources: Sequence[SearchSource], stating: Sequence[Hit], question: str, weights: RecallConfig
) -> tuple[list[Hit], tuple[Hit, float] | None]:
    """Return the hits that did not come from outside, and which of the first to quote, with its fitness."""
    trusted = [hit for hit in stating if hit.trust is not Trust.EXTERNAL]
    while True:
        chosen = await run_in_thread(choose_quote, trusted[:_QUOTE_CANDIDATES], question, weights)
        if chosen is None or chosen[1] < weights.floor or not await is_echo(sources, chosen[0]):
            return trusted, chosen
        trusted = [hit for hit in trusted if hit is not chosen[0]]


def _find_unconfirmed(
    stating: Sequence[Hit], trusted: Sequence[Hit], question: str, weights: RecallConfig
) -> tuple[Hit, ...]:
    """Return the one of what came from outside that would be quoted if it could be trusted; empty for none."""
    outside = [hit for hit in stating if not any(hit is each for each in trusted)][:_QUOTE_CANDIDATES]
    chosen = choose_quote(outside, question, weights)
    return (chosen[0],) if chosen and chosen[1] >= weights.floor else ()


def _hit_location(hit: Hit) -> tuple[str, str, int]:
    return hit.source, hit.path, hit.line_number


def _format_quote(hit: Hit) -> str:
    content = hit.entry.content.strip()
    shown = content if len(content) <= _MAX_QUOTE_CHARS else f"{content[: _MAX_QUOTE_CHARS - 1].rstrip()}…"
    time = hit.entry.since or hit.entry.time
    said = ", ".join(filter(None, (hit.speaker, f"{time:%Y-%m-%d}" if time else "")))
    return f"{shown}\n({f'{said}; ' if said else ''}{hit.path}:{hit.line_number})"
