"""How findings read: without debris of the talk, with one resolution of each date."""

from datetime import UTC, datetime

import pytest

from ricordo.extraction import extract
from ricordo.messages import Message, Role, Text

SAID = datetime(2026, 10, 29, 9, tzinfo=UTC)


def _learned(text: str, role: Role = "user") -> list[str]:
    return [found.content for found in extract([Message(role=role, time=SAID, parts=(Text(text=text),))])]


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("Question 7: my favourite number is 7.", "User's favourite number is 7."),
        ("We must ship in three weeks from today.", "We must ship in three weeks from today (2026-11-19)."),
        (
            "The shop must be live by 19 November, three weeks from today.",
            "The shop must be live by 19 November (2026-11-19), three weeks from today.",
        ),
        ("Call me Max.", "User goes by Max."),
        ("Carla prefers tabs over spaces.", "Carla prefers tabs over spaces."),
        ("Carla works at Acme.", "Carla works at Acme."),
    ],
)
def test_a_finding_holds_what_was_said_and_no_debris(said: str, content: str) -> None:
    assert _learned(said) == [content]


def test_an_introduction_is_learned_beside_what_follows_it() -> None:
    text = "Hi! I'm Tomás. My wife's name is Inês, her birthday is tomorrow."
    assert _learned(text) == [
        "User's name is Tomás.",
        "User's wife's name is Inês, her birthday is tomorrow (2026-10-30).",
    ]


def test_the_opener_of_a_correction_goes_and_the_correction_stays() -> None:
    text = "Actually no, the flight is on 5 December, not the 3rd."
    (found,) = extract([Message(role="user", time=SAID, parts=(Text(text=text),))])
    assert found.content == "The flight is on 5 December (2026-12-05), not the 3rd."
    assert found.corrects


def test_what_a_nameless_agent_did_reads_as_done() -> None:
    said = "What fixed the connection error: wait for the database, which needs the healthcheck I added."
    (content,) = _learned(said, "assistant")
    assert content.endswith("which needs the healthcheck that was added.")
