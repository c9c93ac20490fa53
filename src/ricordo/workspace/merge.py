"""Three-way merges: of text by lines, and of profiles by summaries and facts. Pure.

Invariant: a change of only one side is kept. If both sides changed the same part differently, neither is chosen: lines
give None, profiles raise `VersionConflict`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import SequenceMatcher
from typing import TypeAlias, TypeVar

from ricordo.errors import DocumentInvalid, InvalidInput, VersionConflict
from ricordo.messages.types import JsonValue
from ricordo.workspace.profile import Fact, Profile, ProfileSummary, format_profile_time, parse_profile, render_profile

__all__ = ["has_same_content", "merge_lines", "merge_profile_documents", "merge_profiles", "stamp_changes"]


_Hunk: TypeAlias = tuple[int, int, Sequence[bytes]]


def merge_lines(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return `base` with the changes of both sides, or None if they overlap or two rewrites touch.

    Insertions of both sides at one place are both kept, theirs first; an identical change is made once. If the sides
    are equal the result is that side; if one side equals `base` the result is the other side, to the byte.
    """
    if ours in (theirs, base):
        return theirs
    if theirs == base:
        return ours
    lines = base.splitlines(keepends=True)
    changed = _find_hunks(lines, theirs)
    changed += [hunk for hunk in _find_hunks(lines, ours) if hunk not in changed]
    hunks = sorted(changed, key=lambda hunk: (hunk[0], hunk[1]))
    result: list[bytes] = []
    position = 0
    for index, (start, end, replacement) in enumerate(hunks):
        if index and _collide(hunks[index - 1], (start, end, replacement)):
            return None
        result += [*lines[position:start], *replacement]
        position = end
    return b"".join([*result, *lines[position:]])


def _collide(first: _Hunk, second: _Hunk) -> bool:
    """Return whether the replaced lines overlap; next to them, lines may be inserted or removed."""
    both_rewrite = all(start < end and new for start, end, new in (first, second))
    return second[0] < first[1] or (second[0] == first[1] and both_rewrite)


def _find_hunks(lines: list[bytes], side: bytes) -> list[_Hunk]:
    """Return the replacements of `side` in `lines`: start, end, and the new lines."""
    new = side.splitlines(keepends=True)
    matcher = SequenceMatcher(None, lines, new, autojunk=False)
    return [(a, b, new[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


_T = TypeVar("_T")


def merge_profiles(base: Profile, ours: Profile, theirs: Profile) -> Profile:
    """Return `theirs` with the changes of `ours` to `base`; a fact that both added in the same words is added once.

    Raises: VersionConflict, which names what both changed.
    """
    facts = _merge_facts(base, ours, theirs)
    summaries = {
        name: _choose_side(
            name, _find_summary(base, name), _find_summary(ours, name), _find_summary(theirs, name), _strip_time
        )
        for name in {**theirs.summaries, **ours.summaries}
    }
    version = _choose_side("version", base.version, ours.version, theirs.version)
    return replace(
        theirs,
        version=version,
        facts=facts,
        summaries=summaries,
        extra=_merge_extra(base.extra, ours.extra, theirs.extra),
    )


def stamp_changes(profile: Profile, before: Profile, now: datetime) -> Profile:
    """Return `profile` as the save after `before`, with the next revision and this time.

    Changed parts get the time and changed facts one more revision, unless the writer has set them.
    """
    at = format_profile_time(now)
    return replace(
        profile,
        revision=before.revision + 1,
        last_updated=at,
        summaries={
            name: _stamp_summary(each, before.summaries.get(name), at) for name, each in profile.summaries.items()
        },
        facts=tuple(_stamp_fact(fact, before.find_fact(fact.id), at) for fact in profile.facts),
    )


def has_same_content(one: Profile, other: Profile) -> bool:
    """Return whether two profiles differ only in their revision and time of saving."""
    return replace(one, revision=0, last_updated="") == replace(other, revision=0, last_updated="")


def merge_profile_documents(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the document `ours` with the changes of `theirs` to `base`, as the next revision; empty is no document.

    None if the changes collide, or if a document can't be read.
    """
    try:
        old, mine, other = (_read_profile(data) for data in (base, ours, theirs))
        merged = merge_profiles(old, other, mine)
        return render_profile(replace(merged, revision=mine.revision + 1))
    except (DocumentInvalid, InvalidInput, VersionConflict):
        return None


def _read_profile(data: bytes) -> Profile:
    if not data:
        return Profile()
    read = parse_profile(data)
    if read.broken:
        raise DocumentInvalid
    return read.profile


def _merge_facts(base: Profile, ours: Profile, theirs: Profile) -> tuple[Fact, ...]:
    old, mine, other = ({fact.id: fact for fact in side.facts} for side in (base, ours, theirs))
    added_keys = {_fact_key(fact) for fact in theirs.facts if fact.id not in old}
    # ours determines the order if theirs did not change it
    first, second = (mine, other) if [*old] == [*other] else (other, mine)
    facts: list[Fact] = []
    for name in [*first, *(name for name in second if name not in first)]:
        added = mine.get(name) if name not in old and name not in other else None
        if added is None or _fact_key(added) not in added_keys:
            fact = _choose_side(name, old.get(name), mine.get(name), other.get(name), _strip_counters)
            facts += [fact] if fact else []
    return tuple(facts)


def _choose_side(name: str, base: _T, ours: _T, theirs: _T, strip: Callable[[_T], object] = lambda side: side) -> _T:
    """Return the side that changed `base`; `strip` removes the parts that do not count as a change.

    Raises: VersionConflict.
    """
    if theirs == base:
        return ours
    if ours == base or strip(ours) in (strip(theirs), strip(base)):
        return theirs
    if strip(theirs) == strip(base):
        return ours
    raise VersionConflict(f"{name} was changed by somebody else meanwhile: load the profile again and repeat the edit.")


def _merge_extra(
    base: Mapping[str, JsonValue], ours: Mapping[str, JsonValue], theirs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    merged: dict[str, JsonValue] = {}
    for name in {**theirs, **ours}:
        # a missing value is distinguished from null
        old, mine, other = ([side[name]] if name in side else [] for side in (base, ours, theirs))
        for value in _choose_side(name, old, mine, other):
            merged[name] = value
    return merged


def _find_summary(profile: Profile, name: str) -> ProfileSummary:
    return profile.summaries.get(name) or ProfileSummary()


def _strip_time(summary: ProfileSummary) -> ProfileSummary:
    return replace(summary, updated_at="")


def _strip_counters(fact: Fact | None) -> Fact | None:
    return replace(fact, updated_at="", revision=1) if fact else None


def _fact_key(fact: Fact) -> tuple[str, str]:
    return fact.category.casefold(), " ".join(fact.content.casefold().split())


def _stamp_summary(summary: ProfileSummary, before: ProfileSummary | None, at: str) -> ProfileSummary:
    old = before or ProfileSummary()
    changed = _strip_time(summary) != _strip_time(old) and summary.updated_at == old.updated_at
    return replace(summary, updated_at=at) if changed else summary


def _stamp_fact(fact: Fact, before: Fact | None, at: str) -> Fact:
    if before is None or _strip_counters(fact) == _strip_counters(before) or fact.revision != before.revision:
        return fact
    updated = at if fact.updated_at == before.updated_at else fact.updated_at
    return replace(fact, revision=before.revision + 1, updated_at=updated)
