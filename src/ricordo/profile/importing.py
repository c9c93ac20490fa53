"""What taking in a profile changes: told before anything is changed. Pure.

Invariant: what comes out of an export goes in again as it was. Only how often and when the document itself was saved is
that of the profile it goes into.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ricordo.errors import DocumentInvalid
from ricordo.workspace.profile import Fact, Profile, ProfileSummary
from ricordo.workspace.profile_codec import ParsedProfile, parse_profile
from ricordo.workspace.profile_merge import has_same_content
from ricordo.workspace.tombstones import content_digest

__all__ = ["ImportMode", "ProfileImport", "ImportPreference", "plan_import", "plan_parsed_import"]

ImportMode: TypeAlias = Literal["merge", "replace"]
ImportPreference: TypeAlias = Literal["document", "profile"]


@dataclass(frozen=True, kw_only=True)
class ProfileImport:
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


def plan_import(
    profile: Profile, document: str | bytes, *, mode: ImportMode = "merge", prefer: ImportPreference | None = None
) -> ProfileImport:
    """Return what taking in `document` changes in `profile`. Raises `DocumentInvalid` for one that can't be read."""
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
    return plan_parsed_import(profile, parse_profile(data, "The document", foreign=True), mode=mode, prefer=prefer)


def plan_parsed_import(
    profile: Profile, read: ParsedProfile, *, mode: ImportMode = "merge", prefer: ImportPreference | None = None
) -> ProfileImport:
    """Return what taking in a profile that was read changes. Raises `DocumentInvalid` if a record was not read."""
    lost = [each for each in read.broken if not each.is_used]
    if lost:
        told = "; ".join(f"{each.where}: {each.why}" for each in lost)
        raise DocumentInvalid(f"Nothing was taken in, for not all of it can be read: {told}.")
    found = (
        _plan_replacement(profile, read.profile) if mode == "replace" else _plan_merge(profile, read.profile, prefer)
    )
    mended = tuple(each.where for each in read.broken)
    return replace(found, mended=mended, changes_something=not has_same_content(found.profile, profile))


def _plan_replacement(profile: Profile, given: Profile) -> ProfileImport:
    """Return the import after which the profile is the given one."""
    old, new = ({fact.id: fact for fact in side.facts} for side in (profile, given))
    return ProfileImport(
        profile=replace(given, revision=profile.revision, last_updated=profile.last_updated),
        added=tuple(name for name in new if name not in old),
        changed=tuple(name for name, fact in new.items() if name in old and old[name] != fact),
        removed=tuple(name for name in old if name not in new),
        summaries=tuple(name for name, each in given.summaries.items() if each != _get_summary(profile, name)),
        known=sum(old.get(name) == fact for name, fact in new.items()),
    )


def _plan_merge(profile: Profile, given: Profile, prefer: ImportPreference | None) -> ProfileImport:
    """Return the import that adds what is missing."""
    telling = [fact for fact in given.facts if fact.content.strip()]
    facts, added, changed, differing, known = _merge_facts(profile.facts, telling, prefer)
    summaries, written, apart = _merge_summaries(profile, given, prefer)
    merged = replace(profile, facts=facts, summaries=summaries, extra={**given.extra, **profile.extra})
    return ProfileImport(
        profile=merged, added=added, changed=changed, summaries=written, known=known, conflicts=(*differing, *apart)
    )


def _merge_facts(
    ours: Sequence[Fact], given: Sequence[Fact], prefer: ImportPreference | None
) -> tuple[tuple[Fact, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:
    """Return all facts, the ids of those that are new, changed and in conflict, and how many were known."""
    held = {fact.id: fact for fact in ours}
    said = {_statement_digest(fact) for fact in ours}
    added: list[str] = []
    changed: list[str] = []
    conflicts: list[str] = []
    known = 0
    for fact in given:
        if held.get(fact.id) == fact or (fact.id not in held and _statement_digest(fact) in said):
            known += 1
        elif fact.id not in held:
            held[fact.id] = fact
            said.add(_statement_digest(fact))
            added.append(fact.id)
        else:
            conflicts.append(fact.id)
            if prefer == "document":
                held[fact.id] = fact
                changed.append(fact.id)
    return tuple(held.values()), tuple(added), tuple(changed), tuple(conflicts), known


def _merge_summaries(
    profile: Profile, given: Profile, prefer: ImportPreference | None
) -> tuple[dict[str, ProfileSummary], tuple[str, ...], tuple[str, ...]]:
    """Return all summaries, the names of those that change, and of those that differ."""
    found = {**profile.summaries}
    written: list[str] = []
    conflicts: list[str] = []
    for name, each in given.summaries.items():
        ours = _get_summary(profile, name)
        if not each.summary.strip() or each.summary == ours.summary:
            continue
        if ours.summary.strip():
            conflicts.append(name)
        if not ours.summary.strip() or prefer == "document":
            found[name] = each
            written.append(name)
    return found, tuple(written), tuple(conflicts)


def _get_summary(profile: Profile, name: str) -> ProfileSummary:
    return profile.summaries.get(name) or ProfileSummary()


def _statement_digest(fact: Fact) -> str:
    return content_digest(fact.content, b"")
