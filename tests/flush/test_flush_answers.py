"""A question and its short answer: one statement that stands alone, and nothing where nothing was answered."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ricordo.extraction import Finding, RuleExtractionConfig, Utterance, extract_from_utterances

PAIRS = Path(__file__).parent / "answer_pairs"
SAID = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def _chat(*lines: str) -> tuple[Finding, ...]:
    """Findings of a chat; lines of the assistant begin with "A: ", those of the user with "U: "."""
    utterances = [
        Utterance(message_id=f"m{at}", role="user" if line[0] == "U" else "assistant", text=line[3:], time=SAID)
        for at, line in enumerate(lines)
    ]
    return extract_from_utterances(utterances, RuleExtractionConfig())


def _contents(*lines: str) -> list[str]:
    return [finding.content for finding in _chat(*lines)]


def _pairs(part: str) -> Iterator[tuple[list[str], str]]:
    for block in (PAIRS / f"{part}.txt").read_text("utf8").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            yield lines[:-1], lines[-1].removeprefix("=").strip()


def _is_learned(lines: list[str], wanted: str) -> bool:
    contents = [content.casefold() for content in _contents(*lines)]
    parts = [[each.strip().casefold() for each in part.split("|")] for part in wanted.split(";")]
    return any(all(any(each in content for each in part) for part in parts) for content in contents)


@pytest.mark.parametrize(("part", "least"), [("tuned", 0.9), ("held_out", 0.75)])
def test_answers_are_learned_with_their_questions_in_ten_languages(part: str, least: float) -> None:
    answered = [(lines, wanted) for lines, wanted in _pairs(part) if wanted != "-"]
    missed = [lines for lines, wanted in answered if not _is_learned(lines, wanted)]
    assert len(answered) >= 40
    assert 1 - len(missed) / len(answered) >= least, missed


@pytest.mark.parametrize(("part", "least"), [("tuned", 0.9), ("held_out", 0.8)])
def test_steps_dodges_and_small_talk_leave_nothing(part: str, least: float) -> None:
    empty = [lines for lines, wanted in _pairs(part) if wanted == "-"]
    noisy = [lines for lines in empty if _contents(*lines)]
    assert len(empty) >= 18
    assert 1 - len(noisy) / len(empty) >= least, noisy


@pytest.mark.parametrize(
    ("question", "answer", "content"),
    [
        ("What's the session timeout?", "30 minutes", "Session timeout: 30 minutes"),
        ("Should I use tabs in this repo?", "Yes.", "Use tabs in this repo."),
        ("Should I indent with tabs?", "No, spaces", "Do not indent with tabs; spaces."),
        ("Dois-je utiliser des tabulations dans ce dépôt ?", "oui", "Utiliser des tabulations dans ce dépôt."),
        (
            "Do you want the release notes in English or in German?",
            "the second",
            "User, asked “Do you want the release notes in English or in German?”: The second (in German)",
        ),
        (
            "Jobs of a silent worker wait 60 seconds before another takes them. Is that enough?",
            "double it",
            "User, asked “Jobs of a silent worker wait 60 seconds before another takes them. Is that enough?”: "
            "Double it (120 seconds)",
        ),
        (
            "Watchers take a seat each. Do they count towards a full room, and how many may there be?",
            "no. two",
            "User, asked “Watchers take a seat each. Do they count towards a full room, and how many may there be?”: "
            "no. two",
        ),
    ],
)
def test_an_answer_says_what_was_asked_for(question: str, answer: str, content: str) -> None:
    assert _contents(f"A: {question}", f"U: {answer}") == [content]


def test_a_question_brings_the_sentence_that_it_points_back_to_and_names_its_message() -> None:
    (finding,) = _chat("U: I need a cake for Ida", "A: What does she like?", "U: poppy seed")
    assert finding.content == "User, asked “I need a cake for Ida. What does she like?”: Poppy seed"
    assert finding.message_ids == ("m2", "m1", "m0")


def test_numbered_answers_go_to_the_questions_of_their_numbers() -> None:
    asked = "A: 1. What's the retention of the logs? 2. Which region do we deploy to?"
    contents = _contents(asked, "U: 1. ninety days 2. eu-west-1")
    assert len(contents) == 2
    assert "retention" in contents[0].lower()
    assert "ninety days" in contents[0].lower()
    assert "region" in contents[1]
    assert "eu-west-1" in contents[1]


def test_an_answer_that_comes_later_goes_to_the_question_that_was_left_open() -> None:
    late = _contents("A: Which port does the exporter use?", "U: let me check", "A: Sure.", "U: 9187")
    assert late == ["User, asked “Which port does the exporter use?”: 9187"]
    assert _contents("A: Which port does the exporter use?", "U: let me check", "A: Shall I go on?", "U: ok") == []


def test_a_reply_that_says_something_of_its_own_closes_the_question() -> None:
    asked = "A: Facing forward, window or aisle?"
    said = "U: always the evening before, at nine"
    assert _contents(asked, "U: I don't care, the cake has the window", said) == ["Always the evening before, at nine"]
    assert not any(
        "window or aisle" in each for each in _contents(asked, "U: nobody knows. that's the business", "U: 9187")
    )


def test_an_answer_to_a_question_that_says_too_little_stays_below_what_is_curated() -> None:
    unclear = _chat("A: To which version?", "U: 1.24, toolchain line and all.")
    clear = _chat("A: To which version of Go do we move?", "U: 1.24, toolchain line and all.")
    assert all(each.confidence <= 0.5 for each in unclear)
    assert [each.confidence > 0.6 for each in clear] == [True]


@pytest.mark.req("FC-SECRET")
def test_a_password_is_not_learned_as_an_answer() -> None:
    assert _contents("A: What's the door code?", "U: 4711") == []
    assert _contents("U: the wifi is slow again upstairs", "A: What is its password?", "U: swordfish") == []


def test_the_value_that_an_assistant_finds_for_a_question_is_learned_with_less_confidence() -> None:
    (finding,) = _chat("U: What's the session timeout?", "A: 30 minutes, set in `config/app.toml`.")
    assert finding.content == "Session timeout: 30 minutes, set in `config/app.toml`."
    assert finding.message_ids == ("m1", "m0")
    assert finding.confidence < _chat("A: What's the session timeout?", "U: 30 minutes")[0].confidence
    assert _contents("U: What's the error?", "A: HTTP 500 from the gateway.") == []
    assert _contents("U: what's the weather?", "A: 12 degrees and rain.") == []
