"""What is forgotten is not said by a summary either."""

import pytest

from ricordo.curation.profile.updates import remove_statement
from ricordo.workspace import Profile, ProfileSummary


@pytest.mark.parametrize(
    ("summary", "left"),
    [
        ("User likes tea. Builds ships.", "Builds ships."),
        ("Builds ships. The  user LIKES\ntea!", "Builds ships."),
        ("Builds ships. User likes teak.", "Builds ships. User likes teak."),
        ("User likes tea", ""),
        ("He said: user likes. Tea is fine.", ""),
        ("", ""),
    ],
)
def test_the_sentences_that_say_it_are_taken_out(summary: str, left: str) -> None:
    profile = Profile(summaries={**Profile().summaries, "topOfMind": ProfileSummary(summary=summary, updated_at="x")})
    found = remove_statement(profile, "User likes tea.")
    assert found.summaries["topOfMind"] == ProfileSummary(summary=left, updated_at="x")
    assert found.summaries["workContext"] == ProfileSummary()


def test_a_statement_of_several_sentences_takes_out_only_these() -> None:
    summary = "Builds ships. User likes tea. It is green. Sails on Sundays."
    profile = Profile(summaries={**Profile().summaries, "topOfMind": ProfileSummary(summary=summary)})
    found = remove_statement(profile, "User likes tea. It is green.")
    assert found.summaries["topOfMind"].summary == "Builds ships. Sails on Sundays."


def test_what_says_nothing_takes_nothing_out() -> None:
    profile = Profile(summaries={**Profile().summaries, "topOfMind": ProfileSummary(summary="Builds ships ...")})
    assert remove_statement(profile, " ... ") == profile
