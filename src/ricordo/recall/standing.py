"""Where a memory stands and whether it still holds, told from the entries that are visible. Pure.

One entry may stand in a ledger, a topic and `MEMORY.md` under one id: what curated memory says of it holds, as people
edit it there. An entry that another one names in `supersedes` holds no more; its successor may itself be superseded.

Invariant: following successors ends: entries that supersede each other in a ring hold, each for itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ricordo.index.contract import SUPERSEDES_MARKER
from ricordo.recall.hits import Passage
from ricordo.workspace.contradictions import CONTRADICTS_FIELD, contradicted_ids, find_contradictions
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import MEMORY_PATH

__all__ = ["CuratedMemory", "SupersessionChains", "move_to_curated", "find_supersessions"]

_PARSE_CACHE_SIZE = 4_096
_CONTRADICTS_MARKER = f"[{CONTRADICTS_FIELD}:: "


@dataclass(frozen=True, eq=False)
class CuratedMemory:
    """Curated memory of every source. What is told from it is worked out once."""

    passages: tuple[Passage, ...] = ()

    @cached_property
    def places(self) -> Mapping[tuple[str, str], Passage]:
        """Where each entry stands, by source and id; of several places the one that goes first."""
        places: dict[tuple[str, str], Passage] = {}
        for passage in sorted(self.passages, key=_place_order):
            if passage.match.chunk.markup:
                places.setdefault(_entry_key(passage), passage)
        return places

    @cached_property
    def successors(self) -> tuple[Passage, ...]:
        """The entries that took the place of others."""
        return tuple(passage for passage in self.passages if SUPERSEDES_MARKER in passage.match.chunk.markup)

    @cached_property
    def contradictions(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The ids of what each entry contradicts, by source and id; both ends of each hold."""
        linked = [passage for passage in self.passages if _CONTRADICTS_MARKER in passage.match.chunk.markup]
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for label in {passage.label for passage in linked}:
            entries = [_parse_passage_entry(passage) for passage in linked if passage.label == label]
            names = {name for entry in entries for name in contradicted_ids(entry)} - {entry.id for entry in entries}
            others = [self.places[label, name] for name in names if (label, name) in self.places]
            pairs = find_contradictions([*entries, *map(_parse_passage_entry, others)])
            found |= {(label, name): against for name, against in pairs.items()}
        return found


@dataclass(frozen=True, kw_only=True)
class SupersessionChains:
    """Which entry took the place of which, by ids; `entries` are the passages of the successors."""

    successor: Mapping[str, str]
    entries: Mapping[str, Passage]

    def successors_of(self, entry_id: str) -> tuple[str, ...]:
        """Return the ids of what took the place of this entry, one after the other; the last one holds now."""
        later: list[str] = []
        while entry_id in self.successor:
            entry_id = self.successor[entry_id]
            later.append(entry_id)
        return tuple(later)


def move_to_curated(passages: Sequence[Passage], curated: CuratedMemory) -> list[Passage]:
    """Return the passages, those of a ledger moved to where curated memory holds the same entry; each there once.

    `curated` is all of curated memory, of every source. What was found in curated memory itself stays as it was found.
    """
    here = CuratedMemory(tuple(_curated_entries(passages)))
    found = here.places
    if not found and not curated.places:
        return list(passages)
    shown = []
    for passage in passages:
        place = _preferred_place(_entry_key(passage), curated, here) if passage.match.chunk.markup else None
        if place is None or passage.match.chunk.sort == "long":
            shown.append(passage)
        elif passage.match.chunk.sort == "curated":
            same = place.match.content == passage.match.content
            shown.append(_move_passage(passage, place) if same else passage)
        elif _entry_key(passage) not in found:
            shown.append(_move_passage(passage, place))
    return shown


def _preferred_place(key: tuple[str, str], curated: CuratedMemory, found: CuratedMemory) -> Passage | None:
    """Return where curated memory holds an entry, None where it does not."""
    known, here = curated.places.get(key), found.places.get(key)
    return min(known, here, key=_place_order) if known and here else known or here


def find_supersessions(passages: Iterable[Passage]) -> SupersessionChains:
    """Return which entries of the passages took the place of others."""
    successor: dict[str, str] = {}
    entries: dict[str, Passage] = {}
    for passage in sorted(
        (each for each in passages if SUPERSEDES_MARKER in each.match.chunk.markup), key=_place_order
    ):
        chunk = passage.match.chunk
        older = _superseded_id(chunk.markup, chunk.path)
        if older and older != chunk.entry_id:
            successor.setdefault(older, chunk.entry_id)
            entries.setdefault(chunk.entry_id, passage)
    ring = {older for older in successor if _is_in_ring(older, successor)}
    return SupersessionChains(
        successor={older: newer for older, newer in successor.items() if older not in ring}, entries=entries
    )


def _parse_passage_entry(passage: Passage) -> Entry:
    chunk = passage.match.chunk
    return replace(parse_entries(chunk.markup, chunk.path)[0].entry, id=chunk.entry_id)


def _is_in_ring(entry_id: str, successor: Mapping[str, str]) -> bool:
    seen: set[str] = set()
    at = successor.get(entry_id)
    while at is not None and at != entry_id and at not in seen:
        seen.add(at)
        at = successor.get(at)
    return at == entry_id


@lru_cache(maxsize=_PARSE_CACHE_SIZE)
def _superseded_id(markup: str, path: str) -> str:
    located = parse_entries(markup, path)
    return (located[0].entry.supersedes or "") if located else ""


def _move_passage(passage: Passage, place: Passage) -> Passage:
    """Return what was found, shown where and as it stands in `place`."""
    at = place.match
    match = replace(
        passage.match, path=at.path, line_number=at.line_number, end_line=at.end_line, content=at.content,
        chunk=at.chunk,
    )  # fmt: skip
    return replace(passage, match=match)


def _curated_entries(passages: Iterable[Passage]) -> list[Passage]:
    return [passage for passage in passages if passage.match.chunk.sort == "curated" and passage.match.chunk.markup]


def _entry_key(passage: Passage) -> tuple[str, str]:
    return passage.label, passage.match.chunk.entry_id


def _place_order(passage: Passage) -> tuple[bool, bool, str, int]:
    """Order places of one entry: the memory that is always in the prompt, topics, the rest."""
    at = passage.match
    return at.path != MEMORY_PATH, at.chunk.sort != "curated", at.path, at.line_number
