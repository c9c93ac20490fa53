"""Rising: what was of use comes back from its topic to MEMORY.md, and what is used most stands on top. Pure.

Only use lifts an entry, and only grades of it count, so that no line changes places with every use: of one grade what
stands in MEMORY.md stays. What a person wrote, pinned, put under a heading, or keeps in a topic of theirs never moves.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from ricordo.consolidation.sheet import DocumentPart, MemoryDocument
from ricordo.consolidation.topics import has_generated_description
from ricordo.consolidation.types import CandidateEntry
from ricordo.consolidation.worth import usefulness_grade, entry_time, usefulness

__all__ = ["is_more_useful", "to_candidate", "order_candidates", "sort_by_use", "find_promotable"]


def to_candidate(part: DocumentPart) -> CandidateEntry:
    """Return what a bullet holds."""
    assert part.entry is not None
    return CandidateEntry(entry=part.entry, long=part.long)


def find_promotable(
    topics: Mapping[str, MemoryDocument],
    taken: Collection[str],
    used: Mapping[str, int],
    is_short: Callable[[CandidateEntry], bool],
) -> dict[str, dict[str, DocumentPart]]:
    """Return by topic and id the bullets that were of use and may stand in MEMORY.md; ids in `taken` are elsewhere."""
    found = {}
    for path, sheet in topics.items():
        rising = {
            part.entry.id: part
            for part in sheet.parts
            if part.entry and used.get(part.entry.id, 0) and part.entry.id not in taken
            if _is_promotable(part) and is_short(to_candidate(part))
        }
        if rising and has_generated_description(path, sheet.data):
            found[path] = rising
    return found


def order_candidates(
    ranked: Sequence[CandidateEntry], below: Sequence[CandidateEntry], used: Mapping[str, int]
) -> list[CandidateEntry]:
    """Return what may stand in MEMORY.md in the order in which it may: the newest of `ranked`, then the most useful.

    Of one grade `ranked`, which stands there or is new and is in its order, comes before `below`, which is in topics.
    """
    newest = max(ranked, key=lambda one: (entry_time(one.entry), one.entry.id), default=None)
    rising = sorted(below, key=lambda one: usefulness(one.entry, used), reverse=True)
    rest = [*(one for one in ranked if one is not newest), *rising]
    rest.sort(key=lambda one: usefulness_grade(one.entry, used), reverse=True)
    return [*([newest] if newest else []), *rest]


def is_more_useful(new: DocumentPart, old: DocumentPart, used: Mapping[str, int]) -> bool:
    """Tell whether a new bullet goes before one that is there, which is less useful."""
    assert new.entry is not None
    if not old.is_named or old.entry is None:
        return False
    return usefulness(old.entry, used) < usefulness(new.entry, used)


def sort_by_use(
    memory: MemoryDocument, titles: Sequence[str], is_movable: Callable[[DocumentPart], bool], used: Mapping[str, int]
) -> MemoryDocument:
    """Return MEMORY.md with what is ours in each of these sections by its grade, in the places that it has there."""
    parts = list(memory.parts)
    for title in titles:
        places = [at for at, part in enumerate(parts) if part.section == title and is_movable(part)]
        if all(parts[at].data.endswith(b"\n") for at in places):
            ordered = sorted((parts[at] for at in places), key=lambda part: _part_grade(part, used), reverse=True)
            for at, part in zip(places, ordered, strict=True):
                parts[at] = part
    return MemoryDocument(tuple(parts))


def _part_grade(part: DocumentPart, used: Mapping[str, int]) -> tuple[bool, int]:
    return usefulness_grade(to_candidate(part).entry, used)


def _is_promotable(part: DocumentPart) -> bool:
    """Tell whether a bullet of a topic of ours is ours to move: no person wrote it or put it under a heading."""
    entry = part.entry
    if entry is None or entry.state != "active" or entry.pinned or entry.by == "hand":
        return False
    return part.is_named and not part.section
