"""The document of a profile: what is written is read again, and what can't be read spoils nothing else."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from profile_strategies import profiles
from ricordo.errors import DocumentInvalid, InvalidInput
from ricordo.workspace import (
    HISTORY_SUMMARIES,
    USER_SUMMARIES,
    Fact,
    FactSource,
    Profile,
    ProfileSummary,
    render_profile,
)
from ricordo.workspace.profile import create_fact_id, create_profile, parse_profile, profile_to_document

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def _read(document: object) -> Profile:
    read = parse_profile(json.dumps(document).encode())
    assert read.broken == ()
    return read.profile


def _fact(**fields: object) -> dict[str, object]:
    return {"id": "fact_00000001", "content": "Likes tea", **fields}


@pytest.mark.req("DF-B5")
@given(profiles())
def test_any_profile_is_read_as_it_was_written(profile: Profile) -> None:
    read = parse_profile(render_profile(profile))
    assert read.profile == profile
    assert read.broken == ()


@pytest.mark.req("DF-EMPTY")
def test_a_new_profile_has_its_two_levels_and_no_facts_and_shares_nothing() -> None:
    document = profile_to_document(create_profile(NOW))
    empty = {"summary": "", "updatedAt": ""}
    assert document == {
        "version": "1.0",
        "lastUpdated": "2026-11-21T08:00:00.000Z",
        "user": dict.fromkeys(USER_SUMMARIES, empty),
        "history": dict.fromkeys(HISTORY_SUMMARIES, empty),
        "facts": [],
    }
    assert list(document["user"]) == ["workContext", "personalContext", "topOfMind"]  # type: ignore[arg-type]
    one, other = create_profile(NOW), create_profile(NOW)
    assert one.summaries is not other.summaries
    assert one.extra is not other.extra
    changed: Any = document["user"]
    changed["workContext"]["summary"] = "Builds ships"
    assert profile_to_document(create_profile(NOW))["user"] == dict.fromkeys(USER_SUMMARIES, empty)


@pytest.mark.req("DF-FACT")
def test_a_fact_without_its_fields_gets_the_ones_it_needs() -> None:
    read = _read({"facts": [{"source": "thread-1"}, {"content": "Rides a bike", "confidence": 0.8}]})
    first, second = read.facts
    assert (first.content, first.category, first.source.thread) == ("", "context", "thread-1")
    assert (second.content, second.confidence, second.source.thread) == ("Rides a bike", 0.8, "unknown")
    for fact in read.facts:
        assert len(fact.id) == 13
        assert fact.id.startswith("fact_")
        assert int(fact.id[5:], 16) >= 0
    assert first.id != second.id
    written = profile_to_document(Profile(facts=(second,)))["facts"]
    assert written == [
        {
            "id": second.id, "content": "Rides a bike", "category": "context", "confidence": 0.8, "createdAt": "",
            "source": "unknown",
        }
    ]  # fmt: skip


@pytest.mark.req("DF-FACT")
def test_a_fact_that_a_person_wrote_without_an_id_keeps_the_one_it_is_given() -> None:
    document = {"facts": [{"content": "Likes tea"}, {"content": "Likes tea"}]}
    first = _read(document)
    assert _read(document) == first
    assert len({fact.id for fact in first.facts}) == 2
    assert parse_profile(render_profile(first)).profile == first


@pytest.mark.req("DF-FACT")
def test_a_fact_that_was_copied_with_its_id_is_read_beside_the_first() -> None:
    read = parse_profile(json.dumps({"facts": [_fact(), _fact(content="Likes coffee")]}).encode())
    assert [fact.content for fact in read.profile.facts] == ["Likes tea", "Likes coffee"]
    assert read.profile.facts[0].id == "fact_00000001"
    assert read.profile.facts[1].id == create_fact_id("Likes coffee", ())
    assert [(each.location, each.is_used) for each in read.broken] == [("facts[1]", True)]


@pytest.mark.req("DF-B5")
def test_unknown_fields_go_back_where_they_came_from() -> None:
    document = {
        "version": "1.0", "lastUpdated": "2026-01-01T00:00:00Z", "theme": {"dark": True},
        "user": {"workContext": {"summary": "Ships", "updatedAt": "", "mood": 3}, "hobbies": ["chess"]},
        "history": {"recentMonths": {"summary": "", "updatedAt": "", "topics": []}},
        "facts": [_fact(category="music", confidence=1, createdAt="", source="t", topics=["tea"], scope={"a": None})],
    }  # fmt: skip
    written = profile_to_document(_read(document))
    assert written["theme"] == {"dark": True}
    user: Any = written["user"]
    assert user["hobbies"] == ["chess"]
    assert user["workContext"] == {"summary": "Ships", "updatedAt": "", "mood": 3}
    history: Any = written["history"]
    assert history["recentMonths"]["topics"] == []
    assert written["facts"] == document["facts"]


@pytest.mark.req("DF-B14")
@pytest.mark.parametrize("bad", [None, 3, "a text", [], True])
def test_a_record_that_is_no_object_is_told_alone(bad: object) -> None:
    read = parse_profile(json.dumps({"facts": [_fact(), bad, _fact(id="fact_00000002")]}).encode())
    assert [fact.id for fact in read.profile.facts] == ["fact_00000001", "fact_00000002"]
    (broken,) = read.broken
    assert (broken.location, broken.record, broken.is_used) == ("facts[1]", bad, False)


@pytest.mark.req("DF-B14")
@pytest.mark.parametrize("content", [3, ["Likes tea"], {"text": "Likes tea"}, True])
def test_a_fact_whose_content_is_no_text_is_told_and_not_read(content: object) -> None:
    read = parse_profile(json.dumps({"facts": [_fact(content=content)]}).encode())
    assert read.profile.facts == ()
    (broken,) = read.broken
    assert broken.record == _fact(content=content)
    assert "content" in broken.reason


@pytest.mark.req("DF-B14")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("confidence", "high"), ("confidence", True), ("confidence", 95), ("confidence", [1]), ("category", 3),
        ("createdAt", 1700000000), ("source", 7), ("sourceError", {}), ("expected_valid_days", "long"), ("pinned", 1),
        ("confirmationCount", 0), ("revision", -1), ("consolidatedFrom", "fact_2"), ("sourceMessages", [1]), ("id", 5),
    ],
)  # fmt: skip
def test_a_field_of_a_wrong_type_takes_its_default_and_its_record_is_told(field: str, value: object) -> None:
    record = _fact(**{field: value})
    read = parse_profile(json.dumps({"facts": [record]}).encode())
    (fact,) = read.profile.facts
    assert fact.content == "Likes tea"
    assert 0 <= fact.confidence <= 1
    assert (fact.category, fact.source.thread, fact.pinned, fact.revision) == ("context", "unknown", False, 1)
    (broken,) = read.broken
    assert (broken.record, broken.is_used) == (record, True)
    assert field in broken.reason
    assert parse_profile(render_profile(read.profile)).broken == ()


@pytest.mark.req("DF-B14")
def test_numbers_that_json_has_no_form_for_are_read_as_wrong_fields() -> None:
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        data = b'{"facts": [{"id": "fact_1", "content": "Likes tea", "confidence": %s}]}' % number.encode()
        read = parse_profile(data)
        assert read.profile.facts[0].confidence == 0.5
        assert len(read.broken) == 1


@pytest.mark.req("DF-B5")
def test_numbers_as_text_and_whole_days_are_taken() -> None:
    (fact,) = _read({"facts": [_fact(confidence="0.9", expected_valid_days=30.5)]}).facts
    assert (fact.confidence, fact.valid_days) == (0.9, 30)


@pytest.mark.req("DF-B14", "DF-C56")
def test_sections_of_a_wrong_type_are_told_alone() -> None:
    document = {
        "user": {"workContext": 3, "personalContext": {"summary": ["a"]}, "topOfMind": "Ships this week"},
        "history": "nothing", "facts": {"a": 1}, "version": [], "revision": "many",
    }  # fmt: skip
    read = parse_profile(json.dumps(document).encode())
    assert read.profile.summaries["topOfMind"].summary == "Ships this week"
    assert read.profile.summaries["workContext"] == ProfileSummary()
    assert {each.location for each in read.broken} == {
        "user.workContext", "user.personalContext", "history", "facts", "version", "revision",
    }  # fmt: skip
    assert (read.profile.version, read.profile.revision) == ("1.0", 0)


@pytest.mark.req("DF-B14")
@pytest.mark.parametrize("data", [b"", b"  \n", b"{", b"[]", b"null", b'"text"', b"\xff\xfe{}", b"[" * 100_000])
def test_what_is_no_document_is_an_error_and_no_empty_profile(data: bytes) -> None:
    with pytest.raises(DocumentInvalid, match=r"users/ann/profile\.json"):
        parse_profile(data, "users/ann/profile.json")


def test_the_mark_that_some_editors_put_first_does_no_harm() -> None:
    assert parse_profile(b"\xef\xbb\xbf" + render_profile(create_profile(NOW))).profile == create_profile(NOW)


def test_lone_surrogates_are_written_so_that_every_reader_can_read_them() -> None:
    profile = Profile(facts=(Fact(id="f", content="\ud800 caf\u00e9"),))
    data = render_profile(profile)
    assert "caf\u00e9" in data.decode("utf-8")
    assert parse_profile(data).profile == profile


@pytest.mark.req("DF-B5")
@pytest.mark.parametrize(
    ("source", "thread"),
    [
        ({"type": "manual", "threadId": None}, "manual"),
        ({"type": "conversation", "threadId": "t-9"}, "t-9"),
        ({"type": "import"}, "import"),
        ({}, "unknown"),
        (None, "unknown"),
    ],
)
def test_a_source_with_fields_of_its_own_is_understood_and_kept(source: object, thread: str) -> None:
    (fact,) = _read({"facts": [_fact(source=source)]}).facts
    assert fact.source == FactSource(thread=thread)
    if thread == "t-9":
        assert fact.extra["sourceRecord"] == source


@pytest.mark.req("DF-B4", "DF-FACTS")
def test_a_category_that_was_filed_as_other_is_read_under_its_own_name() -> None:
    read = _read({"facts": [_fact(category="other", categoryExtension="knowledge"), _fact(id="f2", category="other")]})
    assert [fact.category for fact in read.facts] == ["knowledge", "other"]
    written: Any = profile_to_document(read)["facts"]
    assert written[0]["category"] == "knowledge"
    assert "categoryExtension" not in written[0]


@pytest.mark.req("DF-C56")
def test_a_summary_that_has_no_place_is_refused_and_not_lost() -> None:
    with pytest.raises(InvalidInput, match="mood"):
        render_profile(Profile(summaries={"mood": ProfileSummary(summary="good")}))
