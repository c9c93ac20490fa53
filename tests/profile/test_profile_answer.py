"""Reading what a model answers."""

import json
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.curation import ProfileUpdate, UpdateLabels
from ricordo.curation.profile.reply import parse_update
from ricordo.curation.profile.updates import FactRemoval, SummaryEdit
from ricordo.errors import ReplyInvalid
from ricordo.messages import JsonValue

pytestmark = pytest.mark.req("DF-C23", "DF-C25")

LABELS: dict[str, JsonValue] = {"scope": "user", "durability": "durable", "authority": "descriptive"}
FACT: dict[str, JsonValue] = {"content": "Plays chess", "category": "preference", "confidence": 0.9, **LABELS}


def answer(**parts: JsonValue) -> dict[str, JsonValue]:
    return {"user": {}, "history": {}, "newFacts": [FACT], **parts}


def contents(value: JsonValue) -> list[str]:
    return [fact.content for fact in parse_update(value).facts]


TEXT = json.dumps(answer())
OTHER = json.dumps({"user": "me", "history": [1, {"newFacts": []}]})
DRAFT = json.dumps(answer(newFacts=[]))


@pytest.mark.req("DF-C23", "DF-C24", "DF-C30")
@pytest.mark.parametrize(
    "said",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Here is the update you asked for:\n\n{TEXT}\n\nTell me if {{that}} is fine.",
        f"<think>Should I? {{maybe}} {DRAFT}</think>\n{TEXT}",
        *(f"<{tag}>First:\n{DRAFT}</{tag}>\n{TEXT}" for tag in ("thinking", "THINK", "reasoning", "reflection")),
        f"<think>Let me look at {{this}} and {OTHER}\n{TEXT}",
        f"<think>Let me see.\n{TEXT}</think>",
        f"{OTHER}\n{{}}\n{{not json}}\n{TEXT}",
        f"""{{"note": 1}}\n{TEXT}""",
        [{"type": "thinking", "thinking": "{}"}, {"type": "text", "text": TEXT}],
        [TEXT[:20], TEXT[20:]],
        [{"type": "text", "text": "Here:"}, TEXT[:9], TEXT[9:], {"type": "image"}, 3],
        json.dumps(answer(), indent=2).replace("\n", "\r\n"),
        answer(),
    ],
)
def test_the_update_is_found_in_whatever_is_around_it(said: JsonValue) -> None:
    assert contents(said) == ["Plays chess"]


@pytest.mark.req("DF-C25")
@pytest.mark.parametrize("end", range(1, len(TEXT), 7))
def test_an_answer_that_is_cut_off_gives_no_update(end: int) -> None:
    with pytest.raises(ReplyInvalid):
        parse_update(TEXT[:end])


@pytest.mark.parametrize("said", ["", "I have nothing to add.", "[]", None, 3, [], {}, {"newFacts": []}, "{" * 5_000])
def test_what_holds_no_update_is_refused(said: JsonValue) -> None:
    with pytest.raises(ReplyInvalid):
        parse_update(said)


@pytest.mark.req("DF-C29")
def test_history_is_needed_and_removals_are_not() -> None:
    assert parse_update({"user": {}, "history": {}, "newFacts": []}) == ProfileUpdate()
    with pytest.raises(ReplyInvalid):
        parse_update(json.dumps({"user": {}, "newFacts": []}))


@pytest.mark.req("DF-C25", "DF-C26", "DF-C27", "DF-C35", "DF-B7", "DF-C40")
def test_wrong_types_are_put_right_or_dropped_item_by_item() -> None:
    facts: list[JsonValue] = [
        "Plays chess",
        None,
        {**FACT, "confidence": None},
        {**FACT, "confidence": True},
        {**FACT, "confidence": nan},
        {**FACT, "confidence": "very"},
        {**FACT, "content": "  "},
        {**FACT, "content": 3},
        {**FACT, "content": "Owns a boat", "confidence": " 0.8 ", "category": 3, "expected_valid_days": 2.9},
        {**FACT, "content": "Runs", "confidence": 7, "expected_valid_days": True, "sourceError": "  "},
        {**FACT, "content": "Swims", "confidence": 10**400, "expected_valid_days": nan, "scope": ["user"]},
    ]
    read = parse_update(answer(newFacts=facts)).facts
    assert [(fact.content, fact.confidence, fact.valid_days) for fact in read] == [
        ("Owns a boat", 0.8, 2),
        ("Runs", 1.0, None),
    ]
    assert read[0].category == "context"
    assert read[1].source_error is None
    assert contents(json.dumps(answer(newFacts=[{**FACT, "confidence": nan}, FACT]))) == ["Plays chess"]
    wrongs: tuple[JsonValue, ...] = (3, "Plays chess", {"a": FACT})
    for wrong in wrongs:
        assert contents(answer(newFacts=wrong)) == []
    update = parse_update(answer(user=[], history="x", factsToRemove={}, factsToReinforce=3, staleFactsToRemove="x"))
    assert (update.summaries, update.removals, update.confirmations) == ((), (), ())


@pytest.mark.req("DF-C25", "DF-C28", "DF-C40")
@pytest.mark.parametrize("broken", [[None], [FACT, {"content": ""}], [{**FACT, "confidence": None}], "Plays chess"])
def test_a_broken_replacement_beside_a_removal_rejects_all(broken: JsonValue) -> None:
    removals: list[JsonValue] = [{"id": "fact_1", "reason": "wrong", "scope": "user", "replacementFactIndex": 0}]
    with pytest.raises(ReplyInvalid):
        parse_update(answer(newFacts=broken, factsToRemove=removals))
    assert parse_update(answer(factsToRemove=removals)).removals[0].replacement == 0


@pytest.mark.req("DF-USER")
def test_summaries_are_read_with_their_labels() -> None:
    update = parse_update(
        answer(
            user={
                "workContext": {
                    "summary": " Builds boats. ",
                    "shouldUpdate": True,
                    "scope": "User",
                    "authority": "descriptive",
                },
                "topOfMind": {"summary": "Not this one.", "shouldUpdate": False},
                "personalContext": {"summary": None, "shouldUpdate": True},
                "elsewhere": {"summary": "x", "shouldUpdate": True},
            },
            history={"recentMonths": {"summary": "Moved."}, "earlierContext": "x"},
        )
    )
    assert update.summaries == (
        SummaryEdit(
            name="workContext", summary="Builds boats.", labels=UpdateLabels(scope="user", authority="descriptive")
        ),
        SummaryEdit(name="recentMonths", summary="Moved."),
    )


@pytest.mark.req("DF-C40", "DF-C42")
def test_removals_of_the_old_form_have_no_reason_and_a_wrong_number_has_no_replacement() -> None:
    rows: list[JsonValue] = [
        "fact_1",
        {"id": "fact_2", "reason": "gone", "scope": "user", "replacementFactIndex": "1"},
        {"id": "fact_3", "reason": "gone", "replacementFactIndex": True},
        {"id": "fact_4", "reason": "gone", "replacementFactIndex": -2},
        {"reason": "gone"},
        7,
    ]
    removals = parse_update(answer(factsToRemove=rows, staleFactsToRemove=[{"id": "fact_9", "reason": "old"}])).removals
    assert removals[0] == FactRemoval(id="fact_1")
    assert [each.replacement for each in removals] == [None, 1, -1, -1, None]
    assert (removals[-1].stale, removals[-1].reason) == (True, "old")


@pytest.mark.req("DF-C43", "DF-C49")
def test_reviews_confirmations_and_mergings_are_read() -> None:
    update = parse_update(
        answer(
            factsToReinforce=[{"id": "fact_1", "reason": "said so", "scope": "user"}, {"reason": "x"}],
            staleFactsToExtend=[
                {"id": "fact_2", "extend_by_days": 30, "reason": "still so"},
                {"id": "fact_3"},
                {"id": "fact_4", "extend_by_days": -5},
            ],
            factsToConsolidate=[
                {"sourceIds": ["fact_1", 2, "fact_2"], "consolidated": FACT},
                {"sourceIds": "fact_1", "consolidated": FACT},
                {"sourceIds": ["fact_1"], "consolidated": {"content": ""}},
            ],
        )
    )
    assert [(each.id, each.labels.scope) for each in update.confirmations] == [("fact_1", "user")]
    assert [(each.id, each.days) for each in update.extensions] == [("fact_2", 30), ("fact_3", None), ("fact_4", 0)]
    (merging,) = update.mergings
    assert merging.sources == ("fact_1", "fact_2")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "user",
                        "history",
                        "newFacts",
                        "factsToRemove",
                        "id",
                        "content",
                        "confidence",
                        "summary",
                        "workContext",
                    ]
                ),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_no_value_raises_anything_else(value: JsonValue) -> None:
    try:
        parse_update(answer(newFacts=value, user=value, factsToRemove=value, staleFactsToExtend=[value]))
        parse_update(value)
    except ReplyInvalid:
        pass
