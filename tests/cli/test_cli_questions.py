"""Questions that a demo makes of a person's own data can be read, and give nothing away."""

from typing import Any

import pytest
from hypothesis import given

from message_strategies import any_text
from ricordo.cli.demo_questions import make_questions
from ricordo.cli.render import pluralize


def _entry(content: str, kind: str = "fact", confidence: float = 1.0) -> dict[str, Any]:
    return {"content": content, "kind": kind, "confidence": confidence}


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("Ana's wife's name is Inês, her birthday is on 3 May.", "What was said about wife, Inês and birthday?"),
        ("The staging database runs on port 5433, and Nadia owns it.", "What was said about database, 5433 and Nadia?"),
        ("We squash when we merge.", "What was said about squash and merge?"),
        ("Use pnpm, not npm.", "What was said about pnpm?"),
        (
            "Die Lieferscheine für Halle brauchen wir auf Deutsch.",
            "Was wurde über Lieferscheine, Halle und Deutsch gesagt?",
        ),
        ("私は東京で働いています。", "「私は東京で働いています」について何と言いましたか？"),
    ],
)
def test_a_question_has_the_words_of_the_entry_as_they_are_written(content: str, question: str) -> None:
    assert make_questions([_entry(content)], 3) == [question]


def test_what_holds_the_mark_of_a_secret_is_not_asked_about() -> None:
    (question,) = make_questions([_entry("The token of the deploy robot is [secret:token:12345678].")], 3)
    assert question == "What was this conversation about?"


def test_each_kind_comes_first_and_the_surest_of_a_kind() -> None:
    entries = [
        _entry("The warehouse stands in Halle.", confidence=0.5),
        _entry("Nadia owns the database.", confidence=0.9),
        _entry("Branches carry tickets.", "convention", 0.4),
    ]
    asked = make_questions(entries, 2)
    assert "Nadia" not in "".join(asked[1:])
    assert ["database" in asked[0], "tickets" in asked[1]] == [True, True]


def test_no_question_is_asked_twice() -> None:
    assert len(make_questions([_entry("Use pnpm."), _entry("Use pnpm!")], 3)) == 1


@given(any_text(200))
def test_any_entry_gives_one_line_in_its_own_characters(text: str) -> None:
    (question,) = make_questions([_entry(text)], 1)
    assert "\n" not in question
    assert question.strip()


@pytest.mark.parametrize(
    ("count", "noun", "phrase"),
    [
        (1, "transcript", "1 transcript"),
        (0, "transcript", "0 transcripts"),
        (2, "entry", "2 entries"),
        (2, "day", "2 days"),
        (2, "session-summary", "2 session-summaries"),
        (1_200, "wish", "1,200 wishes"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(count: int, noun: str, phrase: str) -> None:
    assert pluralize(count, noun) == phrase
