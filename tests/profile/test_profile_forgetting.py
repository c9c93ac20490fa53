"""What is forgotten is not said by a summary either."""

import pytest

from ricordo.profile.forgetting import without_saying
from ricordo.workspace.profile import Profile, Summary


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
    profile = Profile(summaries={**Profile().summaries, "topOfMind": Summary(summary=summary, updated_at="x")})
    found = without_saying(profile, "User likes tea.")
    assert found.summaries["topOfMind"] == Summary(summary=left, updated_at="x")
    assert found.summaries["workContext"] == Summary()


def test_what_says_nothing_takes_nothing_out() -> None:
    profile = Profile(summaries={**Profile().summaries, "topOfMind": Summary(summary="Builds ships ...")})
    assert without_saying(profile, " ... ") == profile
