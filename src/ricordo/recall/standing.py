"""Where a memory stands and whether it still holds, told from the entries that are visible. Pure.

One entry may stand in a ledger, a topic and `MEMORY.md` under one id: what curated memory says of it holds, as people
edit it there. An entry that another one names in `supersedes` holds no more; its successor may itself be superseded.

Invariant: following successors ends: entries that supersede each other in a ring hold, each for itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ricordo.index.contract import SUPERSEDES
from ricordo.recall.hits import Passage
from ricordo.workspace.contradictions import CONTRADICTS, contradicted, undecided
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import MEMORY

__all__ = ["Curation", "Successions", "curated_place", "successions"]

_PARSED_KEPT = 4_096
_LINKED = f"[{CONTRADICTS}:: "


@dataclass(frozen=True, eq=False)
class Curation:
    """Curated memory of every source. What is told from it is worked out once."""

    passages: tuple[Passage, ...] = ()

    @cached_property
    def places(self) -> Mapping[tuple[str, str], Passage]:
        """Where each entry stands, by source and id; of several places the one that goes first."""
        places: dict[tuple[str, str], Passage] = {}
        for passage in sorted(self.passages, key=_order):
            if passage.match.chunk.markup:
                places.setdefault(_key(passage), passage)
        return places

    @cached_property
    def successors(self) -> tuple[Passage, ...]:
        """The entries that took the place of others."""
        return tuple(passage for passage in self.passages if SUPERSEDES in passage.match.chunk.markup)

    @cached_property
    def contradictions(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The ids of what each entry contradicts, by source and id; both ends of each hold."""
        linked = [passage for passage in self.passages if _LINKED in passage.match.chunk.markup]
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for label in {passage.label for passage in linked}:
            entries = [_entry(passage) for passage in linked if passage.label == label]
            names = {name for entry in entries for name in contradicted(entry)} - {entry.id for entry in entries}
            others = [self.places[label, name] for name in names if (label, name) in self.places]
            pairs = undecided([*entries, *map(_entry, others)])
            found |= {(label, name): against for name, against in pairs.items()}
        return found


@dataclass(frozen=True, kw_only=True)
class Successions:
    """Which entry took the place of which, by ids; `entries` are the passages of the successors."""

    successor: Mapping[str, str]
    entries: Mapping[str, Passage]

    def after(self, entry_id: str) -> tuple[str, ...]:
        """Return the ids of what took the place of this entry, one after the other; the last one holds now."""
        later: list[str] = []
        while entry_id in self.successor:
            entry_id = self.successor[entry_id]
            later.append(entry_id)
        return tuple(later)


def curated_place(passages: Sequence[Passage], curated: Curation) -> list[Passage]:
    """Return the passages, those of a ledger moved to where curated memory holds the same entry; each there once.

    `curated` is all of curated memory, of every source. What was found in curated memory itself stays as it was found.
    """
    here = Curation(tuple(_curated(passages)))
    found = here.places
    if not found and not curated.places:
        return list(passages)
    shown = []
    for passage in passages:
        place = _first_place(_key(passage), curated, here) if passage.match.chunk.markup else None
        if place is None or passage.match.chunk.sort == "long":
            shown.append(passage)
        elif passage.match.chunk.sort == "curated":
            same = place.match.content == passage.match.content
            shown.append(_moved(passage, place) if same else passage)
        elif _key(passage) not in found:
            shown.append(_moved(passage, place))
    return shown


def _first_place(key: tuple[str, str], curated: Curation, found: Curation) -> Passage | None:
    """Return where curated memory holds an entry, None where it does not."""
    known, here = curated.places.get(key), found.places.get(key)
    return min(known, here, key=_order) if known and here else known or here


def successions(passages: Iterable[Passage]) -> Successions:
    """Return which entries of the passages took the place of others."""
    successor: dict[str, str] = {}
    entries: dict[str, Passage] = {}
    for passage in sorted((each for each in passages if SUPERSEDES in each.match.chunk.markup), key=_order):
        chunk = passage.match.chunk
        older = _superseded_id(chunk.markup, chunk.path)
        if older and older != chunk.entry_id:
            successor.setdefault(older, chunk.entry_id)
            entries.setdefault(chunk.entry_id, passage)
    ring = {older for older in successor if _is_in_ring(older, successor)}
    return Successions(
        successor={older: newer for older, newer in successor.items() if older not in ring}, entries=entries
    )


def _entry(passage: Passage) -> Entry:
    chunk = passage.match.chunk
    return replace(parse_entries(chunk.markup, chunk.path)[0].entry, id=chunk.entry_id)


def _is_in_ring(entry_id: str, successor: Mapping[str, str]) -> bool:
    seen: set[str] = set()
    at = successor.get(entry_id)
    while at is not None and at != entry_id and at not in seen:
        seen.add(at)
        at = successor.get(at)
    return at == entry_id


@lru_cache(maxsize=_PARSED_KEPT)
def _superseded_id(markup: str, path: str) -> str:
    located = parse_entries(markup, path)
    return (located[0].entry.supersedes or "") if located else ""


def _moved(passage: Passage, place: Passage) -> Passage:
    """Return what was found, shown where and as it stands in `place`."""
    at = place.match
    match = replace(
        passage.match, path=at.path, line_number=at.line_number, end_line=at.end_line, content=at.content,
        chunk=at.chunk,
    )  # fmt: skip
    return replace(passage, match=match)


def _curated(passages: Iterable[Passage]) -> list[Passage]:
    return [passage for passage in passages if passage.match.chunk.sort == "curated" and passage.match.chunk.markup]


def _key(passage: Passage) -> tuple[str, str]:
    return passage.label, passage.match.chunk.entry_id


def _order(passage: Passage) -> tuple[bool, bool, str, int]:
    """Order places of one entry: the memory that is always in the prompt, topics, the rest."""
    at = passage.match
    return at.path != MEMORY, at.chunk.sort != "curated", at.path, at.line_number
