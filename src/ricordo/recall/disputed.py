"""Disputed: what contradicts a memory is shown right after it, whatever was asked, and both say so. Pure.

Invariant: rows that contradict nothing keep their order and their scores, and none is dropped. What is gone, holds no
more, or is kept out by the filters of the question is not shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ricordo.recall.hits import Hit, Passage
from ricordo.recall.measures import ScoredPassage
from ricordo.recall.standing import CuratedMemory
from ricordo.workspace.contradictions import contradiction_marker

__all__ = ["group_contradictions", "contradiction_markers"]


def group_contradictions(
    rows: Sequence[ScoredPassage],
    curated: CuratedMemory,
    shown: CuratedMemory,
    offer: Callable[[Passage], ScoredPassage],
) -> list[ScoredPassage]:
    """Return the rows, each directly followed by what contradicts it, and with the ids of that.

    `curated` is all of curated memory, `shown` what of it may be shown, and `offer` makes a row of what was not found.
    """
    links = curated.contradictions
    if not links:
        return list(rows)
    found = {_passage_entry_key(row.passage): row for row in reversed(rows) if row.passage.match.chunk.markup}
    placed: list[ScoredPassage] = []
    taken: set[tuple[str, str]] = set()
    for row in rows:
        at = _passage_entry_key(row.passage)
        others = links.get(at, ()) if row is found.get(at) and row.successor is None else ()
        if at in taken:
            continue
        placed.append(replace(row, contradicts=others) if others else row)
        for other in ((at[0], name) for name in others):
            beside = found.get(other) or (offer(shown.places[other]) if other in shown.places else None)
            if beside is not None and other not in taken:
                placed.append(replace(beside, score=row.score, contradicts=links[other]))
                taken.add(other)
        taken.update([at] if others else [])
    return placed


def contradiction_markers(hits: Sequence[Hit]) -> list[str]:
    """Return for hits that are shown in this order what is said of each that contradicts another; empty for none."""
    names = ["", *(hit.entry.id for hit in hits), ""]
    return [contradiction_marker(hit.contradicts, before=names[at], after=names[at + 2]) for at, hit in enumerate(hits)]


def _passage_entry_key(passage: Passage) -> tuple[str, str]:
    return passage.label, passage.match.chunk.entry_id
