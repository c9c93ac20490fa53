"""Who introduces themselves, and who only says how they are."""

import pytest

from ricordo.language import find_introduction


@pytest.mark.parametrize(
    ("sentence", "name", "language"),
    [
        ("I'm Tomás.", "Tomás", "en"),
        ("Hi, I am Maria da Silva and I run a bakery", "Maria da Silva", "en"),
        ("My name is JP", "JP", "en"),
        ("Please call me Max!", "Max", "en"),
        ("I’m Mohammed.", "Mohammed", "en"),
        ("Ich heiße Jürgen.", "Jürgen", "de"),
        ("Ich bin Jürgen.", "Jürgen", "de"),
        ("Hallo, ich bin Peter.", "Peter", "de"),
        ("Me llamo José", "José", "es"),
        ("Soy José.", "José", "es"),
        ("Je m'appelle Amélie, je vis à Lyon.", "Amélie", "fr"),
        ("Mi chiamo Luca.", "Luca", "it"),
        ("Meu nome é João.", "João", "pt"),
    ],
)
def test_a_name_is_found_in_the_introduction(sentence: str, name: str, language: str) -> None:
    found = find_introduction(sentence)
    assert found is not None
    assert (found.name, found.language) == (name, language)


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm Late",
        "I'm Late for work",
        "I'm German.",
        "I'm sure.",
        "I'm Excited!",
        "I'm Christian.",
        "I'm CEO.",
        "I'm Lead Developer.",
        "I'm Google's intern.",
        "I'm Monday's host.",
        "I'm Pro-Linux.",
        "Call me Later.",
        "Call me crazy.",
        "Ich bin Vegetarier.",
        "Ich bin Student.",
        "Soy Alemán.",
        "Je suis Français.",
        "If I'm Tomás, who are you?",
        "He said: I'm Tomás.",
        "",
    ],
)
def test_a_state_an_origin_or_a_trade_is_no_name(sentence: str) -> None:
    assert find_introduction(sentence) is None


def test_an_introduction_that_goes_on_is_not_the_whole_sentence() -> None:
    alone, longer = find_introduction("I'm Ana."), find_introduction("I'm Ana from Lisbon.")
    assert alone is not None
    assert alone.is_whole
    assert longer is not None
    assert not longer.is_whole
