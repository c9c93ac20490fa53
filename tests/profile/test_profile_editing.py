"""A profile as a text: unchanged it changes nothing, and each change of a line is one of its record."""

from dataclasses import replace

import pytest
from hypothesis import given

from profile_strategies import profiles
from ricordo.curation.profile.text_form import apply_edited_text, is_current_text, render_editable
from ricordo.errors import InvalidInput
from ricordo.workspace import Fact, FactSource, Profile, ProfileSummary

TEA = Fact(
    id="fact_1", content="Likes tea", category="preference", confidence=0.8123, source_error="coffee",
    source=FactSource(thread="t", quote="tea"), created_at="x", extra={"mood": 1},
)  # fmt: skip
BIKE = Fact(id="fact_2", content="Rides a bike", pinned=True, valid_days=30, confidence=1.0)
PROFILE = Profile(
    revision=7, facts=(TEA, BIKE),
    summaries={**Profile().summaries, "workContext": ProfileSummary(summary="Builds ships.", updated_at="y")},
)  # fmt: skip


def _after(old: str, new: str) -> Profile:
    text = render_editable(PROFILE)
    assert old in text
    return apply_edited_text(PROFILE, text.replace(old, new), now="now")


@pytest.mark.req("DF-B4")
def test_the_text_has_a_line_for_each_summary_and_fact() -> None:
    lines = [line for line in render_editable(PROFILE).splitlines() if not line.startswith("#")]
    assert lines == [
        "", "User Context:", "- Work: Builds ships.", "- Personal:", "- Current Focus:",
        "", "History:", "- Recent:", "- Earlier:", "- Background:",
        "", "Facts:", "- [preference | 0.81] Likes tea (avoid: coffee) ^fact_1",
        "- [context | 1.00 | pinned | 30 days] Rides a bike ^fact_2",
    ]  # fmt: skip
    assert is_current_text(PROFILE, render_editable(PROFILE))
    assert is_current_text(PROFILE, "Facts:\n")
    assert not is_current_text(replace(PROFILE, revision=8), render_editable(PROFILE))
    assert not is_current_text(replace(PROFILE, last_updated="2026-11-21T08:00:00.000Z"), render_editable(PROFILE))


@pytest.mark.req("DF-B5")
@given(profiles())
def test_the_unchanged_text_is_the_unchanged_profile(profile: Profile) -> None:
    assert apply_edited_text(profile, render_editable(profile)) == profile
    assert apply_edited_text(profile, render_editable(profile).replace("\n", "\r\n")) == profile


AWKWARD = (
    "", " spaces ", "two\nlines", "back\\slash \\n", "(avoid: x)", "a (avoid: b) c)", "ends ^fact_2", "[x | 0.5]",
    "]|\\",
    "\ud800", "\u2028", "# no comment", "- [a | 0.5] b", "  indented", "tab\t",
)  # fmt: skip


@pytest.mark.req("DF-C56")
@pytest.mark.parametrize("text", AWKWARD)
def test_a_changed_confidence_leaves_all_else_of_any_fact(text: str) -> None:
    fact = Fact(id=f"id {text}" if "\ud800" not in text else "id", content=text, category=text, source_error=text)
    profile = Profile(facts=(fact, BIKE))
    changed = apply_edited_text(profile, render_editable(profile).replace("| 0.50]", "| 0.25]", 1))
    assert changed.facts == (replace(fact, confidence=0.25), BIKE)


@pytest.mark.req("DF-B4", "DF-C56")
def test_each_change_of_a_line_is_a_change_of_its_record_alone() -> None:
    assert _after("Likes tea", "Likes green tea").facts == (replace(TEA, content="Likes green tea"), BIKE)
    assert _after("preference | 0.81", "my own | 0.9").facts[0] == replace(TEA, category="my own", confidence=0.9)
    assert _after(" (avoid: coffee)", "").facts[0] == replace(TEA, source_error=None)
    assert _after(" | pinned | 30 days", "").facts[1] == replace(BIKE, pinned=False, valid_days=None)
    assert _after("30 days", "1 day").facts[1] == replace(BIKE, valid_days=1)
    assert _after("Builds ships.", "Builds boats.").summaries["workContext"] == ProfileSummary(
        summary="Builds boats.", updated_at="y"
    )
    assert _after("- Personal:", "- Personal: Lives in Rome").summaries["personalContext"].summary == "Lives in Rome"
    assert _after("- Work: Builds ships.\n", "").summaries["workContext"].summary == ""


@pytest.mark.req("DF-B4")
def test_lines_are_removed_added_moved_and_wrapped() -> None:
    line = "- [preference | 0.81] Likes tea (avoid: coffee) ^fact_1\n"
    assert _after(line, "").facts == (BIKE,)
    assert _after(line, "- [habit | 0.7] Swims in\n  the sea\n" + line).facts[0] == replace(
        Fact(id="", content="Swims in the sea", category="habit", confidence=0.7, created_at="now"),
        id=_after(line, "- [habit | 0.7] Swims in the sea\n").facts[0].id, source=FactSource(thread="manual"),
    )  # fmt: skip
    moved = render_editable(PROFILE).replace(line, "") + line
    assert apply_edited_text(PROFILE, moved).facts == (BIKE, TEA)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Likes coffee", "neither a summary nor a fact"),
        ("- Mood: good", "neither a summary nor a fact"),
        ("- [habit] Swims", "category and a confidence"),
        ("- [habit | 1.5] Swims", "'1.5' is no confidence"),
        ("- [habit | high] Swims", "'high' is no confidence"),
        ("- [habit | nan] Swims", "'nan' is no confidence"),
        ("- [habit | 0.5 | often] Swims", "'often' is neither"),
        ("- [habit | 0.5]", "says something"),
        ("- [habit | 0.5", "a fact is written"),
        ("- [habit | 0.5] Swims ^fact_9", "no fact fact_9"),
        ("- [context | 0.5] Rides ^fact_2", "stands twice"),
        ("- Work: twice", "stands twice"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_with_its_number(line: str, why: str) -> None:
    text = render_editable(PROFILE) + f"{line}\n"
    with pytest.raises(InvalidInput, match=rf"line {len(text.splitlines())}: .*{why}"):
        apply_edited_text(PROFILE, text)


def test_all_lines_that_cannot_be_read_are_told_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"line 1: .*; line 3: "):
        apply_edited_text(PROFILE, "what\n# fine\nis this\n")
