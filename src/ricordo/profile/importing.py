"""What taking in a profile changes: told before anything is changed. Pure.

Invariant: what comes out of an export goes in again as it was. Only how often and when the document itself was saved is
that of the profile it goes into.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ricordo.errors import DocumentInvalid
from ricordo.workspace.profile import Fact, Profile, Summary
from ricordo.workspace.profile_codec import ReadProfile, parse_profile
from ricordo.workspace.profile_merge import says_the_same
from ricordo.workspace.tombstones import content_digest

__all__ = ["ImportMode", "Imported", "Preferred", "imported", "taken_in"]

ImportMode: TypeAlias = Literal["merge", "replace"]
Preferred: TypeAlias = Literal["document", "profile"]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import changes, or has changed when it `is_saved`; `profile` is the profile with it.

    `added`, `changed` and `removed` are ids of facts, `summaries` the names of those that change. `known` counts the
    facts that the profile has already, in these words. `conflicts` are ids and names of which the two say different
    things; without a preference the profile's are kept. `mended` are places of the document of which a field could
    not be read and has its default.
    """

    profile: Profile
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    known: int = 0
    conflicts: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    changes_something: bool = False
    is_saved: bool = False


def imported(
    profile: Profile, document: str | bytes, *, mode: ImportMode = "merge", prefer: Preferred | None = None
) -> Imported:
    """Return what taking in `document` changes in `profile`. Raises `DocumentInvalid` for one that can't be read."""
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
    return taken_in(profile, parse_profile(data, "The document", foreign=True), mode=mode, prefer=prefer)


def taken_in(
    profile: Profile, read: ReadProfile, *, mode: ImportMode = "merge", prefer: Preferred | None = None
) -> Imported:
    """Return what taking in a profile that was read changes. Raises `DocumentInvalid` if a record was not read."""
    lost = [each for each in read.broken if not each.is_used]
    if lost:
        told = "; ".join(f"{each.where}: {each.why}" for each in lost)
        raise DocumentInvalid(f"Nothing was taken in, for not all of it can be read: {told}.")
    found = _replaced(profile, read.profile) if mode == "replace" else _merged(profile, read.profile, prefer)
    mended = tuple(each.where for each in read.broken)
    return replace(found, mended=mended, changes_something=not says_the_same(found.profile, profile))


def _replaced(profile: Profile, given: Profile) -> Imported:
    """Return the import after which the profile is the given one."""
    old, new = ({fact.id: fact for fact in side.facts} for side in (profile, given))
    return Imported(
        profile=replace(given, revision=profile.revision, last_updated=profile.last_updated),
        added=tuple(name for name in new if name not in old),
        changed=tuple(name for name, fact in new.items() if name in old and old[name] != fact),
        removed=tuple(name for name in old if name not in new),
        summaries=tuple(name for name, each in given.summaries.items() if each != _section(profile, name)),
        known=sum(old.get(name) == fact for name, fact in new.items()),
    )


def _merged(profile: Profile, given: Profile, prefer: Preferred | None) -> Imported:
    """Return the import that adds what is missing."""
    telling = [fact for fact in given.facts if fact.content.strip()]
    facts, added, changed, differing, known = _facts(profile.facts, telling, prefer)
    summaries, written, apart = _summaries(profile, given, prefer)
    merged = replace(profile, facts=facts, summaries=summaries, extra={**given.extra, **profile.extra})
    return Imported(
        profile=merged, added=added, changed=changed, summaries=written, known=known, conflicts=(*differing, *apart)
    )


def _facts(
    ours: Sequence[Fact], given: Sequence[Fact], prefer: Preferred | None
) -> tuple[tuple[Fact, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:
    """Return all facts, the ids of those that are new, changed and in conflict, and how many were known."""
    held = {fact.id: fact for fact in ours}
    said = {_said(fact) for fact in ours}
    added: list[str] = []
    changed: list[str] = []
    conflicts: list[str] = []
    known = 0
    for fact in given:
        if held.get(fact.id) == fact or (fact.id not in held and _said(fact) in said):
            known += 1
        elif fact.id not in held:
            held[fact.id] = fact
            said.add(_said(fact))
            added.append(fact.id)
        else:
            conflicts.append(fact.id)
            if prefer == "document":
                held[fact.id] = fact
                changed.append(fact.id)
    return tuple(held.values()), tuple(added), tuple(changed), tuple(conflicts), known


def _summaries(
    profile: Profile, given: Profile, prefer: Preferred | None
) -> tuple[dict[str, Summary], tuple[str, ...], tuple[str, ...]]:
    """Return all summaries, the names of those that change, and of those that differ."""
    found = {**profile.summaries}
    written: list[str] = []
    conflicts: list[str] = []
    for name, each in given.summaries.items():
        ours = _section(profile, name)
        if not each.summary.strip() or each.summary == ours.summary:
            continue
        if ours.summary.strip():
            conflicts.append(name)
        if not ours.summary.strip() or prefer == "document":
            found[name] = each
            written.append(name)
    return found, tuple(written), tuple(conflicts)


def _section(profile: Profile, name: str) -> Summary:
    return profile.summaries.get(name) or Summary()


def _said(fact: Fact) -> str:
    return content_digest(fact.content, b"")
