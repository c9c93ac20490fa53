"""First person to third, and proper names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.language import (
    attribute_to_speaker,
    find_names,
    keeps_grammar,
    mentions_name,
    name_listener,
    to_third_person,
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I moved to Lisbon and I love it.", "Ana moved to Lisbon and Ana loves it."),
        ("I'm happy, I've got a cat, I'll stay.", "Ana is happy, Ana has got a cat, Ana will stay."),
        ("i really need it and I don't care", "Ana really needs it and Ana doesn't care"),
        ("My flat is small but my garden is not.", "Ana's flat is small but their garden is not."),
        ("Should I try? I try. I wash. I was. I put.", "Should Ana try? Ana tries. Ana washes. Ana was. Ana put."),
        ("They gave me time for myself.", "They gave Ana time for themselves."),
        ("I'd better go; I'd like that.", "Ana had better go; Ana would like that."),
        ("I'd just been there; I'd already finished.", "Ana had just been there; Ana had already finished."),
        ("You and I do it; Bo and I are late.", "You and Ana do it; Bo and Ana are late."),
        ("I left and I love it.", "Ana left and Ana loves it."),
        (
            "This week is mine, then Bo and Cy, so my next is in May.",
            "This week is Ana's, then Bo and Cy, so Ana's next is in May.",
        ),
        ("We deploy from main.", "We deploy from main."),
        ("Section I.a and i/o stay.", "Section I.a and i/o stay."),
    ],
)
def test_the_first_person_becomes_the_speaker(said: str, told: str) -> None:
    assert to_third_person(said, "Ana") == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I live in Oslo and work as a nurse.", "Ana lives in Oslo and works as a nurse."),
        ("I'm from Oslo, but now live in Bergen.", "Ana is from Oslo, but now lives in Bergen."),
        ("I live with my mother and have two cats.", "Ana lives with their mother and has two cats."),
        ("I live in Oslo and work in Bonn and have a dog.", "Ana lives in Oslo and works in Bonn and has a dog."),
        ("I write code and don't like meetings.", "Ana writes code and doesn't like meetings."),
    ],
)
def test_a_second_verb_agrees_with_the_speaker_too(said: str, told: str) -> None:
    assert to_third_person(said, "Ana") == told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I like jazz and live music.", "Ana likes jazz and live music."),
        ("I like sports and travel with friends.", "Ana likes sports and travel with friends."),
        ("I want to live in Oslo and work as a nurse.", "Ana wants to live in Oslo and work as a nurse."),
        ("I know that they live here and work there.", "Ana knows that they live here and work there."),
        ("I can live in Oslo and work as a nurse.", "Ana can live in Oslo and work as a nurse."),
    ],
)
def test_a_verb_that_may_be_a_noun_or_somebody_elses_keeps_its_form(said: str, told: str) -> None:
    assert to_third_person(said, "Ana") == told


def test_a_verb_whose_past_looks_like_its_present_keeps_no_grammar() -> None:
    assert not keeps_grammar("I read them on paper.")
    assert not keeps_grammar("I just put it there.")
    assert keeps_grammar("I always read them on paper.")
    assert keeps_grammar("I moved to Lisbon.")


def test_only_an_unambiguous_you_becomes_the_listener() -> None:
    assert name_listener("I learned it from you.", "Bo") == "I learned it from Bo."
    assert name_listener("I like your flat; you never know", "Bo") == "I like Bo's flat; you never know"


def test_other_languages_are_marked_with_the_speaker() -> None:
    assert attribute_to_speaker("Ich wohne hier.", "Ana", "de") == "Ana: Ich wohne hier."
    assert attribute_to_speaker("我住在杭州。", "Ana", "zh") == "Ana：我住在杭州。"


def test_a_name_is_mentioned_only_as_a_word() -> None:
    assert mentions_name("Ana Maria is here", "Ana Maria Silva")
    assert not mentions_name("bananas", "Ana")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Last week we met Leonardo da Vinci in San Francisco.", ["Leonardo da Vinci", "San Francisco"]),
        ("Maria uses GitHub on Fridays. The end.", ["GitHub"]),
        ("I talked to Priya on Monday.", ["Priya"]),
        ("Der Hund und das Haus gehören Anna Schmidt.", ["Anna Schmidt"]),
        ("THIS IS ALL SHOUTED AT YOU", []),
        ("我住在杭州。", []),
    ],
)
def test_names_are_found_by_their_capitals(text: str, names: list[str]) -> None:
    assert [name.text for name in find_names(text)] == names


@given(st.text())
def test_names_stand_where_they_are_said_to_stand(text: str) -> None:
    for name in find_names(text):
        assert text[name.start : name.end] == name.text


@given(st.text(), st.text(min_size=1))
def test_any_text_is_told_without_an_error(text: str, name: str) -> None:
    to_third_person(text, name)
    name_listener(text, name)
    mentions_name(text, name)
