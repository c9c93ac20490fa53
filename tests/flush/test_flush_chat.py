"""Chats between a user and an agent: headings, denials, replies, names and openers."""

from datetime import UTC, datetime

import pytest

from ricordo.extraction import Finding, RuleExtractionConfig, Utterance, extract_from_utterances

SAID = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


def _chat(*lines: str, name: str | None = None) -> list[Finding]:
    """Findings of a chat: the lines are the user's and the agent's in turn, the agent's start with "A: "."""
    return list(
        extract_from_utterances(
            [
                Utterance(
                    message_id=f"m{at}",
                    role="assistant" if line.startswith("A: ") else "user",
                    speaker=None if line.startswith("A: ") else name,
                    text=line.removeprefix("A: "),
                    time=SAID,
                )
                for at, line in enumerate(lines)
            ],
            RuleExtractionConfig(),
        )
    )


def _lines(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.kind, finding.content) for finding in found]


def test_each_line_under_a_heading_of_rules_is_a_rule_of_its_own() -> None:
    found = _chat("Some ground rules. Euros in every report. Charts have no titles. What is the time?")
    assert _lines(found) == [("convention", "Euros in every report."), ("convention", "Charts have no titles.")]


def test_a_list_of_rules_ends_where_the_list_ends() -> None:
    found = _chat("Our rules:\n- euros in every report\n\nThe sky was lovely over the harbour this morning again.")
    assert [content for kind, content in _lines(found) if kind == "convention"] == ["Euros in every report"]


def test_an_agents_headings_and_plans_give_nothing() -> None:
    assert _chat("A: From what we agreed:\n\n1. freeze the schema\n2. copy the rows\n\nShall I start?") == []


def test_a_denial_goes_with_the_value_that_takes_its_place() -> None:
    (finding,) = _chat("No, not the blue one. The staging cluster is called amber.")
    assert finding.content.endswith("The staging cluster is called amber.")
    assert finding.corrects


def test_a_bare_denial_marks_the_new_value_and_leaves_no_trace_in_it() -> None:
    (finding,) = _chat("That's not right. The staging cluster is called amber.")
    assert (finding.content, finding.corrects) == ("The staging cluster is called amber.", True)
    assert finding.quote == "That's not right. The staging cluster is called amber."


def test_what_no_longer_holds_goes_with_the_new_rule_before_it() -> None:
    (finding,) = _chat("From now on reviews take one day. What I said about two days no longer holds.")
    assert finding.kind == "convention"
    assert finding.corrects
    assert finding.content.startswith("From now on reviews take one day.")


def test_a_denial_with_nothing_in_its_place_is_not_noted() -> None:
    assert _chat("No, not that.") == []


def test_a_lesson_of_the_agent_is_surer_when_the_user_takes_it_up_and_gone_when_the_user_contradicts() -> None:
    lesson = "A: The root cause was a stale lock file."
    (told,) = _chat(lesson)
    (taken_up,) = _chat(lesson, "Nice catch, thanks!")
    assert told.confidence < taken_up.confidence
    assert _chat(lesson, "No, it is something else.") == []


def test_an_agents_guess_or_report_is_no_lesson_and_no_decision() -> None:
    assert _chat("A: I think the problem is the proxy, but I haven't checked.") == []
    assert _chat("A: I'll drop the old file and keep the new one.") == []


def test_a_speakers_own_name_is_no_news() -> None:
    assert _chat("Hi, I'm Mira.", name="Mira") == []
    (finding,) = _chat("I'm Mira, I'm on the search team.", name="Mira")
    assert finding.content == "Mira is on the search team."


def test_a_sentence_that_cannot_keep_its_grammar_stays_verbatim() -> None:
    (finding,) = _chat("Please keep your answers short, I read them on my phone.", name="Mira")
    assert finding.content == "Mira: Keep your answers short, I read them on my phone."


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("Good news first: the importer is owned by Ravi.", "The importer is owned by Ravi."),
        ("One more: the importer is owned by Ravi.", "The importer is owned by Ravi."),
        ("Before you start: use mold, not lld.", "Use mold, not lld."),
        ("And please always sign the tags.", "Always sign the tags."),
        ("Übrigens: wir mergen nur am Montag.", "User: wir mergen nur am Montag."),
    ],
)
def test_an_entry_starts_with_what_it_says(said: str, noted: str) -> None:
    assert [finding.content for finding in _chat(said)] == [noted]


def test_an_answer_that_stands_alone_carries_no_question() -> None:
    (finding,) = _chat("A: Which cache do we want?", "We'll use Valkey for the sessions.")
    assert finding.content == "We'll use Valkey for the sessions."
    assert finding.message_ids == ("m1",)


def test_an_answer_to_a_choice_carries_the_question() -> None:
    (finding,) = _chat("A: Should I use npm or yarn?", "yarn")
    assert finding.content == "User, asked “Should I use npm or yarn?”: yarn"
    assert finding.message_ids == ("m1", "m0")


def test_a_sentence_that_needs_the_one_before_stays_with_it() -> None:
    (finding,) = _chat("The depot uses label printers from Zebra. Their labels must be 100 mm wide.")
    assert finding.content == "The depot uses label printers from Zebra. Their labels must be 100 mm wide."


@pytest.mark.parametrize("said", ["Put it in /etc/hosts, not into the repo.", "Don't push yet.", "Never mind."])
def test_an_instruction_for_this_moment_is_no_rule(said: str) -> None:
    assert _chat(said) == []


@pytest.mark.parametrize("said", ["Always put it in /etc/hosts.", "From now on put that in the wiki."])
def test_a_standing_instruction_is_a_rule_whatever_it_points_at(said: str) -> None:
    assert [finding.kind for finding in _chat(said)] == ["convention"]
