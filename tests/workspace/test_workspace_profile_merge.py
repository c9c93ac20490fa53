"""Two changes of one profile: what is apart comes together, and what collides is refused."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given

from profile_strategies import profiles
from ricordo.errors import VersionConflict
from ricordo.workspace import Fact, Profile, ProfileSummary, render_profile
from ricordo.workspace.merge import merge_profile_documents, merge_profiles, stamp_changes
from ricordo.workspace.profile import parse_profile

pytestmark = pytest.mark.req("DF-C54")

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
TEA, COFFEE = Fact(id="f1", content="Likes tea"), Fact(id="f2", content="Likes coffee")
BASE = Profile(revision=4, facts=(TEA, COFFEE))


def _with(profile: Profile, *facts: Fact) -> Profile:
    changed = {fact.id: fact for fact in facts}
    kept = tuple(changed.pop(fact.id, fact) for fact in profile.facts)
    return replace(profile, facts=(*kept, *changed.values()))


def _summed(profile: Profile, name: str, text: str) -> Profile:
    return replace(profile, summaries={**profile.summaries, name: ProfileSummary(summary=text)})


@given(profiles(), profiles())
def test_a_side_that_changed_nothing_gives_way_whole(base: Profile, other: Profile) -> None:
    base, other = replace(base, revision=1, last_updated=""), replace(other, revision=1, last_updated="")
    assert merge_profiles(base, other, base) == other
    assert merge_profiles(base, base, other) == other


def test_changes_of_different_facts_and_summaries_come_together() -> None:
    ours = _summed(_with(BASE, replace(TEA, confidence=0.9)), "workContext", "Ships")
    theirs = _summed(_with(BASE, replace(COFFEE, category="habit"), Fact(id="f3", content="Rides")), "topOfMind", "Tax")
    found = merge_profiles(BASE, ours, replace(theirs, revision=5))
    assert found.revision == 5
    assert [(fact.id, fact.confidence, fact.category) for fact in found.facts] == [
        ("f1", 0.9, "context"), ("f2", 0.5, "habit"), ("f3", 0.5, "context"),
    ]  # fmt: skip
    assert (found.summaries["workContext"].summary, found.summaries["topOfMind"].summary) == ("Ships", "Tax")


def test_a_fact_that_both_changed_is_refused_by_its_name() -> None:
    for theirs in (_with(BASE, replace(TEA, confidence=0.1)), replace(BASE, facts=(COFFEE,))):
        with pytest.raises(VersionConflict, match="f1"):
            merge_profiles(BASE, _with(BASE, replace(TEA, confidence=0.9)), theirs)
    with pytest.raises(VersionConflict, match="f1"):
        merge_profiles(BASE, replace(BASE, facts=(COFFEE,)), _with(BASE, replace(TEA, confidence=0.1)))


def test_a_summary_that_both_changed_is_refused_and_one_that_both_wrote_alike_is_not() -> None:
    ours = _summed(BASE, "workContext", "Ships")
    with pytest.raises(VersionConflict, match="workContext"):
        merge_profiles(BASE, ours, _summed(BASE, "workContext", "Boats"))
    assert merge_profiles(BASE, ours, _summed(BASE, "workContext", "Ships")) == ours


@pytest.mark.req("DF-C31", "DF-C54")
def test_a_fact_that_both_add_in_the_same_words_is_added_once() -> None:
    ours = _with(BASE, Fact(id="mine", content="Plays  CHESS"))
    theirs = _with(BASE, Fact(id="other", content="plays chess"))
    assert [fact.id for fact in merge_profiles(BASE, ours, theirs).facts] == ["f1", "f2", "other"]


def test_one_id_given_to_two_new_facts_is_refused() -> None:
    with pytest.raises(VersionConflict, match="f3"):
        merge_profiles(BASE, _with(BASE, Fact(id="f3", content="Swims")), _with(BASE, Fact(id="f3", content="Rides")))


def test_a_removal_meets_a_removal() -> None:
    removed = replace(BASE, facts=(COFFEE,))
    assert merge_profiles(BASE, removed, removed) == removed


@pytest.mark.req("DF-C56")
def test_the_save_stamps_what_changed_and_nothing_else() -> None:
    ours = _summed(_with(BASE, replace(TEA, confidence=0.9), Fact(id="f3", content="Rides")), "workContext", "Ships")
    saved = stamp_changes(ours, BASE, NOW)
    at = "2026-11-21T08:00:00.000Z"
    assert (saved.revision, saved.last_updated) == (5, at)
    assert [(fact.id, fact.revision, fact.updated_at, fact.created_at) for fact in saved.facts] == [
        ("f1", 2, at, ""), ("f2", 1, "", ""), ("f3", 1, "", ""),
    ]  # fmt: skip
    assert saved.facts[1] is COFFEE
    dated = {name: each.updated_at for name, each in saved.summaries.items() if each.updated_at}
    assert dated == {"workContext": at}


def test_revisions_and_times_that_were_given_are_kept() -> None:
    base = _with(BASE, replace(TEA, revision=3, updated_at="x"))
    saved = stamp_changes(_with(base, replace(TEA, confidence=0.9, revision=1, updated_at="y")), base, NOW)
    assert (saved.facts[0].revision, saved.facts[0].updated_at) == (1, "y")


def test_documents_are_brought_together_by_facts_where_lines_would_collide() -> None:
    base = render_profile(BASE)
    mine = render_profile(replace(_with(BASE, Fact(id="f3", content="Rides")), revision=6))
    theirs = render_profile(replace(BASE, revision=3, facts=(TEA,)))
    merged = merge_profile_documents(base, mine, theirs)
    assert merged is not None
    found = parse_profile(merged).profile
    assert [fact.id for fact in found.facts] == ["f1", "f3"]
    assert found.revision == 7
    assert merge_profile_documents(base, mine, b"{") is None
    assert merge_profile_documents(base, render_profile(_with(BASE, replace(COFFEE, confidence=0.1))), theirs) is None
