"""Supersession, corrections and open contradictions among passages. Pure.

Curated memory determines the place and the successor of an entry. Of two memories on one subject the newer goes first,
and a memory is followed directly by those that contradict it.

Invariants: no row is dropped, unrelated rows keep their order, and following successors always ends: entries in a cycle
count as current.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache

from ricordo.lazy import dataclass
from ricordo.search.config import RecallConfig
from ricordo.search.contract import SUPERSEDES_MARKER, Hit, Passage
from ricordo.search.signals import ScoredPassage
from ricordo.workspace.entry import (
    CONTRADICTS_FIELD,
    OUTDATED_BY_FIELD,
    SUCCESSOR_FIELD,
    Entry,
    contradicted_ids,
    contradiction_marker,
    find_contradictions,
)
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.layout import MEMORY_PATH

__all__ = [
    "CuratedMemory",
    "SupersessionChains",
    "as_stored",
    "attach_successor",
    "contradiction_markers",
    "find_supersessions",
    "group_contradictions",
    "move_to_curated",
    "place_announced_behind",
    "place_held_first",
    "place_newer_first",
    "place_outdated_behind",
    "place_successors_first",
    "prefer_newer",
    "restore_past",
    "select_held",
    "split_announced",
]


_PARSE_CACHE_SIZE = 4_096
_CONTRADICTS_MARKER = f"[{CONTRADICTS_FIELD}:: "
_SUCCESSOR_MARKER, _OUTDATED_MARKER = f"[{SUCCESSOR_FIELD}:: ", f"[{OUTDATED_BY_FIELD}:: "


@dataclass(frozen=True, eq=False)
class CuratedMemory:
    """Curated memory of all sources. Its properties are computed once."""

    passages: tuple[Passage, ...] = ()

    @cached_property
    def places(self) -> Mapping[tuple[str, str], Passage]:
        """The passage of each entry by source and id; if an entry is in several places, the first by `_place_order`."""
        places: dict[tuple[str, str], Passage] = {}
        for passage in sorted(self.passages, key=_place_order):
            if passage.match.chunk.markup:
                places.setdefault(_entry_key(passage), passage)
        return places

    @cached_property
    def successors(self) -> tuple[Passage, ...]:
        """The entries that supersede others."""
        return tuple(passage for passage in self.passages if SUPERSEDES_MARKER in passage.match.chunk.markup)

    @cached_property
    def contradictions(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The ids that each entry contradicts, by source and id; both entries of a pair are current."""
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
    """The successor of each entry, by ids; `entries` are the passages of the successors."""

    successor: Mapping[str, str]
    entries: Mapping[str, Passage]

    def successors_of(self, entry_id: str) -> tuple[str, ...]:
        """Return the ids of all successors of this entry in order; the last one is current."""
        later: list[str] = []
        while entry_id in self.successor:
            entry_id = self.successor[entry_id]
            later.append(entry_id)
        return tuple(later)


def move_to_curated(passages: Sequence[Passage], curated: CuratedMemory) -> list[Passage]:
    """Return the passages; a ledger entry moves to its place in curated memory, and each entry is there once.

    `curated` is all of curated memory, of every source. Passages found in curated memory itself stay unchanged.
    """
    here = CuratedMemory(tuple(_curated_entries(passages)))
    found = here.places
    if not found and not curated.places:
        return list(passages)
    moved = []
    for passage in passages:
        place = _preferred_place(_entry_key(passage), curated, here) if passage.match.chunk.markup else None
        if place is None or passage.match.chunk.document_type == "long":
            moved.append(passage)
        elif passage.match.chunk.document_type == "curated":
            same = place.match.content == passage.match.content
            moved.append(_move_passage(passage, place) if same else passage)
        elif _entry_key(passage) not in found:
            moved.append(_move_passage(passage, place))
    return moved


def _preferred_place(key: tuple[str, str], curated: CuratedMemory, found: CuratedMemory) -> Passage | None:
    """Return the place of an entry in curated memory, None if it is not there."""
    known, here = curated.places.get(key), found.places.get(key)
    return min(known, here, key=_place_order) if known and here else known or here


def find_supersessions(passages: Iterable[Passage]) -> SupersessionChains:
    """Return which entries of the passages supersede others."""
    successor: dict[str, str] = {}
    entries: dict[str, Passage] = {}
    superseding = [each for each in passages if SUPERSEDES_MARKER in each.match.chunk.markup]
    for passage in sorted(superseding, key=_place_order):
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
    """Return the passage with the location and content of `place`."""
    at = place.match
    match = replace(
        passage.match, path=at.path, line_number=at.line_number, end_line=at.end_line, content=at.content,
        chunk=at.chunk,
    )  # fmt: skip
    return Passage(passage.label, passage.source_rank, match)


def _curated_entries(passages: Iterable[Passage]) -> list[Passage]:
    return [
        passage for passage in passages if passage.match.chunk.document_type == "curated" and passage.match.chunk.markup
    ]


def _entry_key(passage: Passage) -> tuple[str, str]:
    return passage.label, passage.match.chunk.entry_id


def _place_order(passage: Passage) -> tuple[bool, bool, str, int]:
    """Return the sort key of an entry's places: MEMORY.md, then topics, then the rest."""
    at = passage.match
    return at.path != MEMORY_PATH, at.chunk.document_type != "curated", at.path, at.line_number


_MIN_SUBJECT_OVERLAP = 0.5
_MIN_SHARED_WORDS = 3
_CORRECTION_TAG = "correction"
_TOLD_LATER = timedelta(days=14)
_LATEST = datetime.max.replace(tzinfo=UTC)


def attach_successor(row: ScoredPassage, chain: SupersessionChains) -> ScoredPassage:
    """Return the row with the successor that other entries name for it."""
    chunk = row.chunk
    successor = chain.entries.get(chain.successor.get(chunk.entry_id, "")) if chunk.markup else None
    return row if successor is None else row.changed(successor=successor)


def place_successors_first(
    rows: Sequence[ScoredPassage],
    offered: Mapping[str, ScoredPassage],
    chain: SupersessionChains,
    as_of: date | None = None,
) -> list[ScoredPassage]:
    """Move the current successor of a memory above it, and the successors between if they are hits too.

    With a day, those that were said later do not move.
    """
    if not chain.successor:
        return list(rows)
    result = list(rows)
    for row in rows:
        chunk = row.chunk
        later = chain.successors_of(chunk.entry_id) if chunk.markup else ()
        if as_of is not None:
            later = tuple(newer for newer in later if newer in offered and offered[newer].had_begun(as_of))
        if not later:
            continue
        at = next(at for at, other in enumerate(result) if other.entry == row.entry and other.passage == row.passage)
        for newer_id in later:
            stands = next((at for at, other in enumerate(result) if _id(other) == newer_id), None)
            if stands is not None and stands < at:
                at = stands
                continue
            newer = result.pop(stands) if stands is not None else offered.get(newer_id)
            if newer is not None and (stands is not None or newer_id == later[-1]):
                result.insert(at, newer.changed(score=max(newer.score, row.score)))
    return result


def place_held_first(rows: Sequence[ScoredPassage], chain: SupersessionChains, day: date) -> list[ScoredPassage]:
    """Move a memory that had begun by that day above those that superseded it later."""
    result = list(rows)
    for row in rows:
        later = chain.successors_of(_id(row)) if row.chunk.markup and row.had_begun(day) else ()
        at = next(at for at, other in enumerate(result) if other.passage is row.passage) if later else 0
        newer = (n for n in range(at) if _id(result[n]) in later and not result[n].had_begun(day))
        if (first := next(newer, None)) is not None:
            result.insert(first, result.pop(at).changed(score=result[first].score))
    return result


def place_announced_behind(rows: Sequence[ScoredPassage]) -> list[ScoredPassage]:
    """Move a memory that begins later right behind the one that it replaces then."""
    result = list(rows)
    for row in rows:
        if _SUCCESSOR_MARKER not in row.chunk.markup or row.entry.state != "active":
            continue
        stands = next((at for at, other in enumerate(result) if _id(other) == row.entry.superseded_by), None)
        at = next(at for at, other in enumerate(result) if other.passage is row.passage)
        if stands is not None and stands < at:
            announced = result.pop(stands)
            result.insert(at, announced.changed(score=min(announced.score, row.score)))
            result[at - 1] = result[at - 1].changed(score=max(announced.score, row.score))
    return result


def split_announced(hits: Sequence[Hit]) -> tuple[list[Hit], dict[str, Hit]]:
    """Return the hits that hold, and by id the memories that replace one of them later.

    The messages that announce those are left out too.
    """
    names = {hit.entry.superseded_by for hit in hits if hit.entry.state == "active"} - {""}
    announced = {hit.entry.id: hit for hit in hits if hit.entry.id in names}
    messages = {message for hit in announced.values() for message in hit.entry.source.messages}
    rest = [hit for hit in hits if hit.entry.id not in announced and messages.isdisjoint(hit.entry.source.messages)]
    return rest, announced


def place_newer_first(
    rows: Sequence[ScoredPassage], config: RecallConfig, as_of: date | None = None
) -> list[ScoredPassage]:
    """Move the newer of two memories on one subject first: a changed decision wins.

    A correction wins at any distance, another memory only if their scores are near. With a day, what was said later
    replaces nothing.
    """
    result: list[ScoredPassage] = []
    outside, oldest = any(row.is_from_outside for row in rows), _LATEST
    for row in rows:
        # most rows are older than all before them, and can only replace external ones
        at = (
            _first_replaced_index(row, result, config, outside=outside)
            if row.chunk.markup and (outside or row.time > oldest) and (as_of is None or row.had_begun(as_of))
            else len(result)
        )
        if row.chunk.markup and row.time < oldest:
            oldest = row.time
        if at == len(result):
            result.append(row)
            continue
        older = result[at]
        result.insert(at, row.changed(score=older.score))
        result[at + 1 :] = [
            other.changed(score=min(other.score, row.score), outdated=True) if _corrects(row, other) else other
            for other in result[at + 1 :]
        ]
        result[at + 1 :] = sorted(result[at + 1 :], key=_score_order)
    corrections = [row for row in result if _CORRECTION_TAG in row.chunk.tags and _is_correction(row)]
    corrections = [row for row in corrections if as_of is None or row.had_begun(as_of)]
    if not corrections:
        return result
    return [
        row.changed(outdated=True) if any(_corrects(other, row) for other in corrections) else row for row in result
    ]


def _first_replaced_index(
    row: ScoredPassage, placed: Sequence[ScoredPassage], config: RecallConfig, *, outside: bool
) -> int:
    """Return the index of the first row that the memory `row` replaces, the end if there is none.

    `outside` is whether any row is external.
    """
    time, kind, least, words = row.time, row.chunk.kind, row.score + config.tie_margin, row.word_bits
    more = outside or _is_correction(row)
    for at, other in enumerate(placed):
        # score, kind and time exclude most rows
        near = other.score <= least and kind == other.chunk.kind
        if more:
            if _replaces(row, other, near=near):
                return at
        elif near and time > other.time and other.chunk.markup:
            others = other.word_bits
            least_shared = _MIN_SUBJECT_OVERLAP * min(len(words.words), len(others.words))
            if words.max_shared(others) >= least_shared and _is_of_one_subject(row.words, other.words):
                return at
    return len(placed)


def _score_order(row: ScoredPassage) -> float:
    return -row.score


def _replaces(row: ScoredPassage, other: ScoredPassage, *, near: bool) -> bool:
    """Return whether the memory `row`, which ranks below `other`, is the current one of the two.

    `near` is whether they are of one kind and have nearly the same score.
    """
    if not other.chunk.markup or not _is_later_memory(row, other):
        return False
    if other.is_from_outside and not row.is_from_outside:
        return _is_of_one_subject(row.words, other.words)
    return (near and _is_of_one_subject(row.words, other.words)) or _corrects(row, other)


def _corrects(row: ScoredPassage, other: ScoredPassage) -> bool:
    """Return whether `row` is tagged as a correction and is later and on the subject of `other`."""
    if not (_is_correction(row) and other.chunk.markup) or not _is_later_memory(row, other):
        return False
    words, others = row.words, other.words
    on_subject = _is_of_one_subject(words, others) or len(words & others) >= _MIN_SHARED_WORDS
    return on_subject and set(row.passage.match.matched_words) >= set(other.passage.match.matched_words)


def _is_of_one_subject(words: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether they share half the words of the shorter one."""
    shortest = min(len(words), len(others))
    return shortest > 0 and len(words & others) >= _MIN_SUBJECT_OVERLAP * shortest


def _is_correction(row: ScoredPassage) -> bool:
    chunk = row.chunk
    return _CORRECTION_TAG in chunk.tags and bool(chunk.markup)


def _id(row: ScoredPassage) -> str:
    return row.chunk.entry_id


def _is_later_memory(row: ScoredPassage, other: ScoredPassage) -> bool:
    """Return whether one of two memories was said later; tool output replaces nothing that is not external."""
    outside = other.is_from_outside
    return outside if outside != row.is_from_outside else row.time > other.time


def select_held(hits: Sequence[Hit], day: date | None) -> list[Hit]:
    """Return the hits that had begun by that day; what only a later one supersedes is not superseded.

    The message that announced one which had not begun is left out too. All of them without a day.
    """
    if day is None:
        return list(hits)
    begun = {hit.entry.id: _day_begun(hit) for hit in hits if hit.entry.id}
    current = [replace(hit, superseded_by="") if begun.get(hit.superseded_by, date.min) > day else hit for hit in hits]
    announcing = {message for hit in hits if _day_begun(hit) > day for message in hit.entry.source.messages}
    held = [hit for hit in current if _day_begun(hit) <= day]
    return [hit for hit in held if hit.entry.id or announcing.isdisjoint(hit.entry.source.messages)]


def prefer_newer(hits: Sequence[Hit], today: date) -> list[Hit]:
    """Return the hits; what a newer one that holds today may have made outdated counts as superseded by it."""
    held = {hit.entry.id for hit in hits if hit.entry.id and (hit.entry.valid_from or today) <= today}
    return [
        replace(hit, superseded_by=hit.entry.maybe_outdated_by)
        if not hit.superseded_by and hit.entry.maybe_outdated_by in held
        else hit
        for hit in hits
    ]


def as_stored(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Return the hits of `prefer_newer` as they were before."""
    return tuple(
        replace(hit, superseded_by="")
        if hit.superseded_by and hit.superseded_by == hit.entry.maybe_outdated_by
        else hit
        for hit in hits
    )


def _day_begun(hit: Hit) -> date:
    """Return the first day on which a hit held; a message of the two weeks after a time may tell of it."""
    begun = hit.entry.valid_from or date.min
    return begun if hit.signals.get("memory") or begun == date.min else max(begun - _TOLD_LATER, date.min)


def restore_past(hits: Sequence[Hit], past: Mapping[str, Entry], moment: datetime) -> list[Hit]:
    """Return the hits that were there at the moment, memories in their state of then."""
    restored = []
    for hit in hits:
        entry = past.get(hit.entry.id)
        if entry is not None:
            successor = entry.superseded_by if entry.state == "superseded" else ""
            restored.append(replace(hit, entry=entry, superseded_by=successor))
        elif not hit.signals.get("memory") and (hit.date is None or hit.date <= moment):
            restored.append(hit)
    return restored


def group_contradictions(
    rows: Sequence[ScoredPassage],
    curated: CuratedMemory,
    shown: CuratedMemory,
    offer: Callable[[Passage], ScoredPassage],
) -> list[ScoredPassage]:
    """Return the rows, each with the ids that contradict it and followed directly by these entries.

    `curated` is all of curated memory, `shown` the part that may be shown, and `offer` creates rows for entries that
    were not found.
    """
    # the memory of a team is not curated, and a merge leaves what was edited at the same time in its ledgers
    in_ledgers = CuratedMemory(tuple(row.passage for row in rows if _CONTRADICTS_MARKER in row.chunk.markup))
    links = {**in_ledgers.contradictions, **curated.contradictions}
    if not links:
        return list(rows)
    found = {_passage_entry_key(row.passage): row for row in reversed(rows) if row.chunk.markup}
    result: list[ScoredPassage] = []
    pairs: set[tuple[str, str]] = set()
    for row in rows:
        at = _passage_entry_key(row.passage)
        others = links.get(at, ()) if row is found.get(at) and row.successor is None else ()
        if at in pairs:
            continue
        result.append(row.changed(contradicts=others) if others else row)
        for other in ((at[0], name) for name in others):
            beside = found.get(other) or (offer(shown.places[other]) if other in shown.places else None)
            if beside is not None and other not in pairs:
                result.append(beside.changed(score=row.score, contradicts=links[other]))
                pairs.add(other)
        pairs.update([at] if others else [])
    return result


def place_outdated_behind(
    rows: Sequence[ScoredPassage], shown: CuratedMemory, offer: Callable[[Passage], ScoredPassage], today: date
) -> list[ScoredPassage]:
    """Return the rows, each entry that may be outdated directly behind the newer one, unless that is before it already.

    A newer one that holds only after `today` stays where it is. `shown` and `offer` are as in `group_contradictions`.
    """
    if not any(_OUTDATED_MARKER in row.chunk.markup for row in rows):
        return list(rows)
    found = {_passage_entry_key(row.passage): row for row in reversed(rows) if row.chunk.markup}
    result: list[ScoredPassage] = []
    placed: set[tuple[str, str]] = set()
    for row in rows:
        at = _passage_entry_key(row.passage)
        if at in placed and row is found.get(at):
            continue
        newer = row.passage.label, row.entry.maybe_outdated_by
        if newer[1] and newer not in placed:
            ahead = found.get(newer) or (offer(shown.places[newer]) if newer in shown.places else None)
            if ahead and (ahead.entry.valid_from or today) <= today:
                result.append(ahead.changed(score=max(ahead.score, row.score)))
                placed.add(newer)
        result.append(row)
        placed.add(at)
    return result


def contradiction_markers(hits: Sequence[Hit]) -> list[str]:
    """Return for each of these hits, in this order, the text on its contradictions; empty if it has none."""
    names = ["", *(hit.entry.id for hit in hits), ""]
    return [contradiction_marker(hit.contradicts, before=names[at], after=names[at + 2]) for at, hit in enumerate(hits)]


def _passage_entry_key(passage: Passage) -> tuple[str, str]:
    return passage.label, passage.match.chunk.entry_id
