"""Extraction: from messages to findings."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo.errors import InvalidSetting
from ricordo.extraction import Finding, RuleExtractionConfig, Utterance, extract, extract_from_utterances
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.messages import Media, Message, Role, Text, Thinking, ToolCall, ToolResult

CONFIG = RuleExtractionConfig()
MONDAY = datetime(2023, 5, 8, 9, 0, tzinfo=UTC)
KINDS = {"fact", "decision", "preference", "lesson", "convention", "goal"}


def _said(*lines: tuple[str | None, str]) -> tuple[Finding, ...]:
    """Findings of a talk among people: pairs of speaker and text, all on one Monday."""
    return extract_from_utterances(
        [
            Utterance(message_id=f"m{at}", role="user", speaker=speaker, text=text, time=MONDAY)
            for at, (speaker, text) in enumerate(lines)
        ],
        CONFIG,
    )


def _told(text: str) -> tuple[Finding, ...]:
    return _said((None, text))


def test_the_first_person_of_a_named_speaker_becomes_the_name() -> None:
    (finding,) = _said(("Bo", "Hi Ana!"), ("Ana", "I moved to Lisbon last Friday with my two dogs."))
    assert finding.content == "Ana moved to Lisbon last Friday (2023-05-05) with their two dogs."
    assert finding.quote == "I moved to Lisbon last Friday with my two dogs."
    assert finding.message_ids == ("m1",)
    assert finding.since == MONDAY
    assert finding.kind == "fact"


def test_a_nameless_user_is_called_user() -> None:
    (finding,) = _told("I prefer short answers.")
    assert (finding.content, finding.kind) == ("User prefers short answers.", "preference")


def test_what_we_do_needs_no_name() -> None:
    (finding,) = _told("We deploy only from main.")
    assert (finding.content, finding.kind) == ("We deploy only from main.", "convention")


def test_a_request_to_remember_is_kept_without_the_asking_and_is_the_surest() -> None:
    (asked,) = _told("Please remember that staging is read-only.")
    (said,) = _told("Staging is read-only.")
    assert asked.content == "Staging is read-only."
    assert asked.confidence > said.confidence


@pytest.mark.req("DF-B22")
def test_an_elliptic_answer_carries_its_question_and_rests_on_both_messages() -> None:
    utterances = [
        Utterance(message_id="q", role="assistant", text="Good. Do you want tabs or spaces?"),
        Utterance(message_id="a", role="user", text="Tabs, always."),
    ]
    (finding,) = extract_from_utterances(utterances, CONFIG)
    assert finding.content == "User, asked “Do you want tabs or spaces?”: Tabs, always."
    assert finding.message_ids == ("a", "q")
    assert finding.quote == "Tabs, always."


def test_a_bare_yes_counts_only_when_the_question_is_about_how_things_are() -> None:
    def answered(question: str) -> tuple[Finding, ...]:
        asked = Utterance(message_id="q", role="assistant", text=question)
        return extract_from_utterances([asked, Utterance(message_id="a", role="user", text="Yes.")], CONFIG)

    assert [finding.kind for finding in answered("Should we deploy only from main?")] == ["convention"]
    assert answered("Shall I go ahead?") == ()
    assert answered("Can you see the error message?") == ()


@pytest.mark.req("DF-SIGNAL")
@pytest.mark.parametrize(
    "text",
    [
        "No, that's wrong, we use Postgres 16.",
        "Actually, the port is 9090.",
        "We switched from Jest to Vitest.",
        "The fixtures are not in tests/data but in testdata/golden.",
        "We no longer support Python 3.9.",
        "Nein, wir nehmen Tabs.",
    ],
)
def test_a_correction_is_marked_and_carries_the_new_value(text: str) -> None:
    found = _told(text)
    assert any(finding.corrects for finding in found)
    assert " ".join(text.split()[-2:]) in found[-1].content


@pytest.mark.req("DF-B11")
def test_a_no_that_answers_a_question_corrects_nothing() -> None:
    utterances = [
        Utterance(message_id="q", role="assistant", text="Do you use tabs?"),
        Utterance(message_id="a", role="user", text="No, we use spaces everywhere."),
    ]
    assert [finding.corrects for finding in extract_from_utterances(utterances, CONFIG)] == [False]


def test_a_rule_stays_with_its_reason_and_apart_from_the_next_rule() -> None:
    found = _told("Never commit to main. It breaks the release. Always run the formatter.")
    assert [finding.content for finding in found] == [
        "Never commit to main. It breaks the release.",
        "Always run the formatter.",
    ]


def test_who_does_it_stays_with_what_it_is_and_with_no_mere_remark() -> None:
    (found,) = _told("The ParcelBee integration must be live by 19 November. Priya leads it, Jonas helps.")
    assert found.content.startswith("The ParcelBee integration must be live by 19 November")
    assert found.content.endswith(". Priya leads it, Jonas helps.")
    (alone,) = _told("Good, put exactly that in. Jonas reviews it, he reviews everything that touches stock.")
    assert alone.content.startswith("Jonas reviews it")


def test_list_items_are_findings_of_their_own() -> None:
    found = _told("Our rules:\n- never push to main\n- use pnpm, not npm\n- tests live in tests/unit")
    assert [finding.kind for finding in found] == ["convention"] * 3


def test_an_assistant_is_trusted_less_than_the_user_and_can_be_left_out() -> None:
    text = "The root cause was a stale lock file."
    (assistant,) = extract_from_utterances([Utterance(message_id="m", role="assistant", text=text)], CONFIG)
    (user,) = _told(text)
    assert assistant.kind == user.kind == "lesson"
    assert assistant.confidence < user.confidence
    off = RuleExtractionConfig(assistant_trust=0)
    assert extract_from_utterances([Utterance(message_id="m", role="assistant", text=text)], off) == ()


def test_among_people_both_roles_count_alike() -> None:
    utterances = [
        Utterance(message_id="1", role="user", speaker="Ana", text="I adopted a cat yesterday, she is called Moka."),
        Utterance(message_id="2", role="assistant", speaker="Bo", text="I opened my bakery in Porto last week."),
    ]
    assert [finding.message_ids for finding in extract_from_utterances(utterances, CONFIG)] == [("1",), ("2",)]


@pytest.mark.req("FC-POISON")
def test_a_pasted_block_yields_nothing() -> None:
    log = "\n".join(f"2024-01-01 10:00:{n:02} ERROR we always use the cache at /var/lib/{n}" for n in range(60))
    code = "```\n" + "we_never = 'use tabs'\n" * 50 + "```"
    prose = "\n\n".join("We always deploy from main and never from anywhere else." for _ in range(300))
    wall = "we always use tabs and " * 400
    for pasted in (log, code, wall, "x\n\n" + prose[:-1] + wall):
        assert _told(pasted) == ()


def test_what_frames_a_long_paste_is_still_read() -> None:
    paste = "\n\n".join("Some documentation text that was copied in here." for _ in range(300))
    found = _told(f"From now on, answer in German.\n\n{paste}\n\nWe deploy only from main.")
    assert [finding.content for finding in found] == ["From now on, answer in German.", "We deploy only from main."]


def test_the_same_words_are_noted_once() -> None:
    assert len(_said((None, "We deploy only from main."), (None, "We deploy only from main."))) == 1


def test_a_picture_adds_what_it_shows() -> None:
    message = Message(
        role="user",
        id="m",
        name=None,
        parts=(
            Text(text="I planted this cherry tree in our garden."),
            Media(media_type="image/png", uri="", description="a small tree"),
        ),
    )
    (finding,) = extract([message])
    assert finding.content == "User planted this cherry tree in our garden. [shows: a small tree]"


@pytest.mark.req("DF-PROC")
def test_tools_thoughts_and_other_roles_are_not_read() -> None:
    rule = "We deploy only from main."
    messages = [
        Message(role="system", parts=(Text(text=rule),)),
        Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text=rule),)),)),
        Message(role="assistant", parts=(Thinking(text=rule),)),
        Message(role="assistant", parts=(Text(text="We decided to use Rust."), ToolCall(id="1", name="run"))),
    ]
    assert extract(messages) == ()


@pytest.mark.req("DF-C6", "FC-JUNK")
def test_recalled_memory_is_never_learned_again() -> None:
    block = render_fence([FencedItem(text="We deploy only from main.", source="MEMORY.md", trust=Trust.USER)])
    assert extract([Message(role="user", id="m", parts=(Text(text=block),))]) == ()


def test_nothing_comes_of_nothing() -> None:
    assert extract([]) == ()


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("name", ["min_confidence", "assistant_trust", "max_entry_chars", "max_sentence_chars"])
def test_a_setting_out_of_range_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidSetting, match=name):
        RuleExtractionConfig(**{name: -1})


_ROLES: Sequence[Role] = get_args(Role)
_PHRASES = st.sampled_from(
    [
        "I moved to ",
        "never ",
        "We decided ",
        "last Friday ",
        "? ",
        "! ",
        ". ",
        "\n",
        "- ",
        "no, ",
        "我们决定",
        "`x` ",
        '"',
        "Yes. ",
    ]
)
_TEXTS = st.text() | st.lists(_PHRASES | st.text(max_size=8), max_size=12).map("".join)
_UTTERANCES = st.lists(
    st.builds(
        Utterance,
        message_id=st.uuids().map(str),
        role=st.sampled_from(_ROLES),
        text=_TEXTS,
        speaker=st.sampled_from([None, "Ana", "Bo Li"]),
        time=st.none() | st.datetimes(timezones=st.just(UTC)),
        media=st.lists(st.text(max_size=10), max_size=2).map(tuple),
    ),
    max_size=6,
)


@pytest.mark.req("DF-B22")
@settings(max_examples=max(100, settings().max_examples))
@given(_UTTERANCES)
def test_any_conversation_gives_well_formed_findings(utterances: list[Utterance]) -> None:
    by_id = {utterance.message_id: utterance for utterance in utterances}
    found = extract_from_utterances(utterances, CONFIG)
    order = [utterance.message_id for utterance in utterances]
    assert [order.index(f.message_ids[0]) for f in found] == sorted(order.index(f.message_ids[0]) for f in found)
    for finding in found:
        assert finding.quote
        assert finding.quote in by_id[finding.message_ids[0]].text
        assert finding.kind in KINDS
        assert CONFIG.min_confidence <= finding.confidence <= 1
        assert finding.content == " ".join(finding.content.split()) != ""
    assert extract_from_utterances(utterances, CONFIG) == found


@pytest.mark.parametrize(
    "unit", ["a", ". ", "we always use ", "\n", "!", "- x\n", "我", "no, ", "“", "I ", "\n\n", "x\n\n"]
)
def test_a_megabyte_of_garbage_is_read_in_linear_time(unit: str) -> None:
    began = time.process_time()
    extract_from_utterances([Utterance(message_id="m", role="user", text=unit * (1_000_000 // len(unit)))], CONFIG)
    assert time.process_time() - began < 10


def test_a_long_conversation_takes_no_more_than_seconds() -> None:
    texts = (
        "I went to the market on Saturday and bought flowers for my sister.",
        "Nice! What did you get?",
        "Yes, thanks.",
    )
    utterances = [
        Utterance(
            message_id=str(at), role="user", speaker=("Ana", "Bo")[at % 2], text=f"{texts[at % 3]} {at}", time=MONDAY
        )
        for at in range(600)
    ]
    began = time.process_time()
    assert extract_from_utterances(utterances, CONFIG)
    assert time.process_time() - began < 10


def test_what_code_always_does_is_no_rule_of_the_team() -> None:
    assert [finding.kind for finding in _told("This function always returns None.")] in ([], ["fact"])
    assert [finding.kind for finding in _told("By the way, never touch the legacy folder.")] == ["convention"]


def test_a_taste_told_along_with_a_task_is_kept() -> None:
    assert [finding.kind for finding in _told("Recommend a restaurant near me, I am vegan.")] == ["preference"]
    assert _told("Recommend a restaurant near me.") == ()
