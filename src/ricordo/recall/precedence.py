"""What goes before what, whatever the words say: what holds now before what it took the place of. Pure.

Invariant: no row is dropped, and rows that have nothing to do with each other keep their order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ricordo.recall.config import RecallConfig
from ricordo.recall.measures import ScoredPassage
from ricordo.recall.standing import SupersessionChains
from ricordo.workspace.entry import EXTERNAL_TRUST_FIELD

__all__ = ["place_newer_first", "attach_successor", "place_successors_first"]

_MIN_SUBJECT_OVERLAP = 0.5
_MIN_SHARED_WORDS = 3
_CORRECTION_TAG = "correction"
_LATEST = datetime.max.replace(tzinfo=UTC)
_EXTERNAL_MARKER = "[{}:: {}]".format(*EXTERNAL_TRUST_FIELD)


def attach_successor(row: ScoredPassage, chain: SupersessionChains) -> ScoredPassage:
    """Return the row with the state and the successor that other entries give it."""
    chunk = row.passage.match.chunk
    successor = chain.entries.get(chain.successor.get(chunk.entry_id, "")) if chunk.markup else None
    return row if successor is None else replace(row, successor=successor)


def place_successors_first(
    rows: Sequence[ScoredPassage], offered: Mapping[str, ScoredPassage], chain: SupersessionChains
) -> list[ScoredPassage]:
    """Put what took the place of a memory above it: what holds now, and what held between where it is a hit too."""
    placed = list(rows)
    for row in rows:
        chunk = row.passage.match.chunk
        later = chain.successors_of(chunk.entry_id) if chunk.markup else ()
        if not later:
            continue
        at = next(at for at, other in enumerate(placed) if other.entry == row.entry and other.passage == row.passage)
        for newer_id in later:
            stands = next((at for at, other in enumerate(placed) if _id(other) == newer_id), None)
            if stands is not None and stands < at:
                at = stands
                continue
            newer = placed.pop(stands) if stands is not None else offered.get(newer_id)
            if newer is not None and (stands is not None or newer_id == later[-1]):
                placed.insert(at, replace(newer, score=max(newer.score, row.score)))
    return placed


def place_newer_first(rows: Sequence[ScoredPassage], config: RecallConfig) -> list[ScoredPassage]:
    """Let the newer of two memories on one subject go first: a changed decision wins.

    A correction wins wherever it stands, another memory where their scores are near.
    """
    placed: list[ScoredPassage] = []
    outside, oldest = any(map(_is_from_outside, rows)), _LATEST
    for row in rows:
        # most rows are no later than any before them, and take the place of none but what came from outside
        at = (
            _first_replaced_index(row, placed, config, outside=outside) if outside or row.time > oldest else len(placed)
        )
        oldest = min(oldest, row.time) if row.passage.match.chunk.markup else oldest
        if at == len(placed):
            placed.append(row)
            continue
        older = placed[at]
        placed.insert(at, replace(row, score=older.score))
        placed[at + 1 :] = [
            replace(other, score=min(other.score, row.score), outdated=True) if _corrects(row, other) else other
            for other in placed[at + 1 :]
        ]
        placed[at + 1 :] = sorted(placed[at + 1 :], key=_score_order)
    corrections = [row for row in placed if _is_correction(row)]
    return [
        replace(row, outdated=True) if any(_corrects(other, row) for other in corrections) else row for row in placed
    ]


def _first_replaced_index(
    row: ScoredPassage, placed: Sequence[ScoredPassage], config: RecallConfig, *, outside: bool
) -> int:
    """Return the place of the first that `row` takes the place of, the end where there is none.

    `outside` tells whether any of them is from outside.
    """
    if row.passage.match.chunk.markup:
        time, corrects, kind = row.time, _is_correction(row), _kind(row)
        for at, other in enumerate(placed):
            # most are told apart by their time, their score and their kind
            later = time > other.time and (
                corrects or (other.score - row.score <= config.near and kind == _kind(other))
            )
            if (later or (outside and _is_from_outside(other))) and _replaces(row, other, config):
                return at
    return len(placed)


def _score_order(row: ScoredPassage) -> float:
    return -row.score


def _replaces(row: ScoredPassage, other: ScoredPassage, config: RecallConfig) -> bool:
    """Tell whether `row`, which ranks below `other`, is the memory that holds now."""
    if not _is_later_memory(row, other):
        return False
    if _is_from_outside(other) and not _is_from_outside(row):
        return _is_of_one_subject(row, other)
    near = other.score - row.score <= config.near and _kind(row) == _kind(other)
    return _corrects(row, other) or (near and _is_of_one_subject(row, other))


def _corrects(row: ScoredPassage, other: ScoredPassage) -> bool:
    """Tell whether `row` is tagged as a correction and is later and on the subject of `other`."""
    if not _is_correction(row) or not _is_later_memory(row, other):
        return False
    on_subject = _is_of_one_subject(row, other) or len(row.words & other.words) >= _MIN_SHARED_WORDS
    return on_subject and set(row.passage.match.words) >= set(other.passage.match.words)


def _is_of_one_subject(row: ScoredPassage, other: ScoredPassage) -> bool:
    """Tell whether they share half the words of the shorter one."""
    words, others = row.words, other.words
    shortest = min(len(words), len(others))
    return shortest > 0 and len(words & others) >= _MIN_SUBJECT_OVERLAP * shortest


def _is_correction(row: ScoredPassage) -> bool:
    chunk = row.passage.match.chunk
    return bool(chunk.markup) and _CORRECTION_TAG in chunk.tags


def _kind(row: ScoredPassage) -> str:
    return row.passage.match.chunk.kind


def _id(row: ScoredPassage) -> str:
    return row.passage.match.chunk.entry_id


def _is_later_memory(row: ScoredPassage, other: ScoredPassage) -> bool:
    both = bool(row.passage.match.chunk.markup and other.passage.match.chunk.markup)
    outside = _is_from_outside(other)
    # what a tool printed takes the place of nothing that somebody stands behind
    return both and (outside if outside != _is_from_outside(row) else row.time > other.time)


def _is_from_outside(row: ScoredPassage) -> bool:
    return _EXTERNAL_MARKER in row.passage.match.chunk.markup and row.entry.is_external
