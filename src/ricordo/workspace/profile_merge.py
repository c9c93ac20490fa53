"""Two changes of one profile brought together: by summaries and facts, never by lines. Pure.

Invariant: what only one side changed is in the result as that side has it, and everything else is as it was. What both
changed to different things is never chosen between.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ricordo.errors import DocumentInvalid, InvalidInput, VersionConflict
from ricordo.messages.types import JsonValue
from ricordo.workspace.profile import Fact, Profile, Summary, written
from ricordo.workspace.profile_codec import parse_profile, render_profile

__all__ = ["merged_document", "merged_profile", "says_the_same", "stamped"]

_T = TypeVar("_T")


def merged_profile(base: Profile, ours: Profile, theirs: Profile) -> Profile:
    """Return `theirs` with what `ours` changed of `base`; facts that both add in the same words are added once.

    Raises: VersionConflict, which names what both changed.
    """
    facts = _facts(base, ours, theirs)
    summaries = {
        name: _chosen(name, _section(base, name), _section(ours, name), _section(theirs, name), _bare)
        for name in {**theirs.summaries, **ours.summaries}
    }
    version = _chosen("version", base.version, ours.version, theirs.version)
    return replace(
        theirs, version=version, facts=facts, summaries=summaries, extra=_extra(base.extra, ours.extra, theirs.extra)
    )


def stamped(profile: Profile, before: Profile, now: datetime) -> Profile:
    """Return `profile` as the save after `before`: what changed carries the time and, if it is a fact, one more
    revision, unless its writer has set them."""
    at = written(now)
    return replace(
        profile,
        revision=before.revision + 1,
        last_updated=at,
        summaries={name: _dated(each, before.summaries.get(name), at) for name, each in profile.summaries.items()},
        facts=tuple(_counted(fact, before.fact(fact.id), at) for fact in profile.facts),
    )


def says_the_same(one: Profile, other: Profile) -> bool:
    """Tell whether two profiles differ in nothing but in when and how often they were saved."""
    return replace(one, revision=0, last_updated="") == replace(other, revision=0, last_updated="")


def merged_document(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the document `ours` with what `theirs` changed of `base`, as the next revision; empty is no document.

    None where they collide, or where one of them can't be read.
    """
    try:
        old, mine, other = (_read(data) for data in (base, ours, theirs))
        found = merged_profile(old, other, mine)
        return render_profile(replace(found, revision=mine.revision + 1))
    except (DocumentInvalid, InvalidInput, VersionConflict):
        return None


def _read(data: bytes) -> Profile:
    if not data:
        return Profile()
    read = parse_profile(data)
    if read.broken:
        raise DocumentInvalid
    return read.profile


def _facts(base: Profile, ours: Profile, theirs: Profile) -> tuple[Fact, ...]:
    old, mine, other = ({fact.id: fact for fact in side.facts} for side in (base, ours, theirs))
    said = {_words(fact) for fact in theirs.facts if fact.id not in old}
    # the order of ours is taken over where theirs has none of its own
    first, second = (mine, other) if [*old] == [*other] else (other, mine)
    found: list[Fact] = []
    for name in [*first, *(name for name in second if name not in first)]:
        added = mine.get(name) if name not in old and name not in other else None
        if added is None or _words(added) not in said:
            fact = _chosen(name, old.get(name), mine.get(name), other.get(name), _uncounted)
            found += [fact] if fact else []
    return tuple(found)


def _chosen(name: str, base: _T, ours: _T, theirs: _T, bare: Callable[[_T], object] = lambda side: side) -> _T:
    """Return the side that changed `base`; `bare` leaves out of a side what no change is told by.

    Raises: VersionConflict.
    """
    if theirs == base:
        return ours
    if ours == base or bare(ours) in (bare(theirs), bare(base)):
        return theirs
    if bare(theirs) == bare(base):
        return ours
    raise VersionConflict(f"{name} was changed by somebody else meanwhile: load the profile again and repeat the edit.")


def _extra(
    base: Mapping[str, JsonValue], ours: Mapping[str, JsonValue], theirs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name in {**theirs, **ours}:
        # what is not there is told apart from what is null
        old, mine, other = ([side[name]] if name in side else [] for side in (base, ours, theirs))
        for value in _chosen(name, old, mine, other):
            found[name] = value
    return found


def _section(profile: Profile, name: str) -> Summary:
    return profile.summaries.get(name) or Summary()


def _bare(summary: Summary) -> Summary:
    return replace(summary, updated_at="")


def _uncounted(fact: Fact | None) -> Fact | None:
    return replace(fact, updated_at="", revision=1) if fact else None


def _words(fact: Fact) -> tuple[str, str]:
    return fact.category.casefold(), " ".join(fact.content.casefold().split())


def _dated(summary: Summary, before: Summary | None, at: str) -> Summary:
    old = before or Summary()
    changed = _bare(summary) != _bare(old) and summary.updated_at == old.updated_at
    return replace(summary, updated_at=at) if changed else summary


def _counted(fact: Fact, before: Fact | None, at: str) -> Fact:
    if before is None or _uncounted(fact) == _uncounted(before) or fact.revision != before.revision:
        return fact
    updated = at if fact.updated_at == before.updated_at else fact.updated_at
    return replace(fact, revision=before.revision + 1, updated_at=updated)
