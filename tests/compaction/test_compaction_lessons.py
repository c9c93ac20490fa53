"""A lesson rests on words that somebody said in a message to learn from, or it is none."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversation_strategies import call, conversations, result, said
from message_strategies import any_text
from ricordo.context.summary.request import parse_reply
from ricordo.context.summary.summarizers import CircuitBreaker
from ricordo.extraction import Finding
from ricordo.extraction.answer import MAX_LESSONS, is_learnable, parse_lessons
from ricordo.messages import JsonValue, Message, dumps, with_mark

pytestmark = pytest.mark.req("HE-C4")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TALK = (
    replace(said("We deploy\nonly from main.  Port 8443 it is.", id="user-000001"), time=NOON),
    said("So port 8443 it is, and tests live in spec/.", role="assistant", id="assistant-1"),
)


def note(content: str = "The team deploys only from main.", **others: JsonValue) -> JsonValue:
    given: dict[str, JsonValue] = {"kind": "decision", "quote": "deploy only from main", "message": "user-000001"}
    return {"content": content, **given, **others}


@pytest.mark.req("DF-B22")
def test_a_note_becomes_a_finding_with_the_words_as_they_stand_in_the_message() -> None:
    assert parse_lessons([note()], TALK) == (
        Finding(
            content="The team deploys only from main.",
            kind="decision",
            confidence=0.7,
            message_ids=("user-000001",),
            quote="deploy\nonly from main",
            since=NOON,
        ),
    )


@pytest.mark.req("DF-B22")
def test_the_quote_decides_which_message_it_is_and_the_cited_one_is_a_hint() -> None:
    found = parse_lessons(
        [
            note("a", message="assistant-1"),
            note("b", quote="8443 it is", message="assistant-1"),
            note("c", quote="8443 it is", message=None),
            note("d", quote="tests live in spec/", message="000001"),
        ],
        TALK,
    )
    assert found is not None
    assert [(each.content, each.message_ids[0]) for each in found] == [
        ("a", "user-000001"),
        ("b", "assistant-1"),
        ("c", "user-000001"),
        ("d", "assistant-1"),
    ]
    assert found[3].confidence < found[0].confidence


@pytest.mark.req("DF-B22")
@pytest.mark.parametrize(
    "bad",
    [
        note(" "),
        note("x" * 701),
        note(quote="deploy only from master"),
        note(quote="a"),
        note(quote=" . "),
        note(quote=None),
        note("The password is hunter2000x."),
        "deploy only from main",
        None,
        7,
    ],
)
def test_what_is_no_lesson_is_left_out_and_alone_it_spoils_the_answer(bad: JsonValue) -> None:
    assert parse_lessons([bad], TALK) is None
    assert parse_lessons([bad, note()], TALK) == parse_lessons([note()], TALK)


def test_nothing_to_learn_and_an_answer_that_can_not_be_used_are_different() -> None:
    assert parse_lessons([], TALK) == ()
    others: list[JsonValue] = [None, {}, "none", 3]
    for malformed in others:
        assert parse_lessons(malformed, TALK) is None


@pytest.mark.req("HE-C4-lessons")
def test_an_unknown_kind_is_a_fact_a_repeated_note_one_and_many_are_too_many() -> None:
    found = parse_lessons([note(kind="session-summary"), note("THE TEAM deploys only from main.", kind="goal")], TALK)
    assert found is not None
    assert [each.kind for each in found] == ["fact"]
    assert len(parse_lessons([note("Too much" + "!" * at) for at in range(40)], TALK) or ()) == MAX_LESSONS


@pytest.mark.req("AS-CHAIN-01", "DF-C6", "FC-JUNK")
def test_tools_summaries_memory_and_notices_are_nothing_to_learn_from() -> None:
    assert [is_learnable(each) for each in TALK] == [True, True]
    assert is_learnable(with_mark(TALK[1], "cut"))
    others: list[Message] = [with_mark(TALK[0], mark) for mark in ("summary", "memory", "notice")]
    others += [call("a"), result("a", "deploy only from main"), replace(TALK[0], id=""), said("obey", role="system")]
    assert not any(map(is_learnable, others))


_values = st.recursive(
    st.none() | st.integers(0, 9) | any_text(20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "kind", "quote"]), inner),
    max_leaves=6,
)


@pytest.mark.req("DF-B22")
@given(messages=conversations(4), value=_values, at=st.integers(0, 20), size=st.integers(3, 30))
def test_whatever_a_model_notes_a_finding_quotes_its_message(
    messages: tuple[Message, ...], value: JsonValue, at: int, size: int
) -> None:
    learn = [message for message in messages if is_learnable(message)]
    quotes = [message.text[at : at + size] for message in learn]
    notes: list[JsonValue] = [value]
    notes.extend({"content": "Something.", "quote": quote, "kind": 3} for quote in quotes)
    texts = {message.id: message.text for message in learn}
    for found in parse_lessons(notes, learn) or ():
        assert found.quote in texts[found.message_ids[0]]
        assert found.quote
        assert found.content.strip()
        assert 0 < found.confidence <= 1


@pytest.mark.req("AS-COMPACT-13", "DF-C23")
@given(
    summary=any_text(),
    lessons=_values,
    around=st.sampled_from(
        ["{}", "```json\n{}\n```", "Sure!\n{}\nThat is all.", '{} is for {braces}, and {"a": 1} is another object.']
    ),
)
def test_both_parts_are_found_whatever_stands_around_them(summary: str, lessons: JsonValue, around: str) -> None:
    found = parse_reply(around.replace("{}", dumps({"summary": summary, "lessons": lessons}), 1))
    assert (found.summary, found.lessons) == (summary, lessons)


@pytest.mark.parametrize("text", ["## SUMMARY\nuses {braces}", '{"a": 1}', "", '{"summary": "cut of', "[1, 2]"])
def test_a_text_that_holds_no_parts_is_the_summary(text: str) -> None:
    assert parse_reply(text) == parse_reply(text, stop="")
    assert (parse_reply(text).summary, parse_reply(text).lessons) == (text, None)


def test_a_part_of_another_shape_does_not_cost_the_other_one() -> None:
    assert parse_reply('{"summary": 3, "lessons": []}').lessons == []
    assert parse_reply('{"lessons": [1]}').summary == ""
    assert parse_reply('{"summary": "s"}').summary == "s"


class Standing:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time

    def today(self) -> date:
        return self.time.date()


@pytest.mark.req("CC-PROGRESS")
def test_a_breaker_opens_after_so_many_failures_in_a_row_and_lets_one_trial_through_in_time() -> None:
    clock = Standing()
    breaker = CircuitBreaker(3, 300.0, clock)
    for reason in ("a", "b"):
        breaker.record_failure(reason)
    assert breaker.open_reason() == ""
    breaker.record_success()
    for reason in ("a", "b", "c"):
        assert breaker.open_reason() == ""
        breaker.record_failure(reason)
    assert breaker.open_reason() == "3 failures in a row, the last: c"
    clock.time += timedelta(seconds=299)
    assert breaker.open_reason()
    clock.time += timedelta(seconds=1)
    assert breaker.open_reason() == ""
    breaker.record_failure("d")
    assert breaker.open_reason() == "4 failures in a row, the last: d"
    clock.time -= timedelta(days=1)
    assert breaker.open_reason() == "", "a clock that was set back holds nobody up"
    breaker.record_success()
    assert breaker.open_reason() == ""


@pytest.mark.req("CC-PROGRESS")
def test_a_breaker_of_no_failures_never_opens() -> None:
    breaker = CircuitBreaker(0, 300.0, Standing())
    for _ in range(9):
        breaker.record_failure("down")
    assert breaker.open_reason() == ""
