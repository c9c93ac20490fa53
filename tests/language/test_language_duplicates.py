"""Telling whether two statements say the same."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplicates import read_pairs, score, tables
from ricordo.language.duplicates import (
    contradicts,
    find_duplicate,
    is_same_statement,
    statement_key,
    statement_similarity,
)

WORDS = st.sampled_from(
    [
        "User",
        "likes",
        "tea",
        "not",
        "lives",
        "in",
        "Rome",
        "Oslo",
        "2",
        "two",
        "and",
        "don't",
        "用户",
        "喜欢茶",
        "prefers",
        "to",
        "",
        "C++",
    ]
)
TEXTS = st.lists(WORDS, max_size=7).map(" ".join) | st.text(max_size=30)


@pytest.mark.parametrize(("name", "recall"), [("tuned", 0.85), ("held_out", 0.75)])
def test_no_pair_is_merged_wrongly_and_most_of_the_same_are_found(name: str, recall: float) -> None:
    pairs = read_pairs(name)
    assert len(pairs) >= 130
    assert len({pair.language for pair in pairs}) >= 10
    told = score(pairs)
    assert told.precision >= 0.98
    assert told.recall >= recall


def test_the_page_shows_what_is_measured() -> None:
    page = (Path(__file__).parents[2] / "docs" / "design" / "profile.md").read_text(encoding="utf-8")
    assert tables() in page


def test_the_sets_share_no_pair() -> None:
    tuned, held_out = ({(pair.one, pair.other) for pair in read_pairs(name)} for name in ("tuned", "held_out"))
    assert not tuned & held_out


@pytest.mark.req("DF-C31")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Deploy from main.", "deploy  FROM\nmain"),
        ("“Deploy” from main!", "Deploy from main"),
        ("Ｄeploy from main", "Deploy from main"),
        ("It’s fine", "It's fine"),
        ("用户住在北京。", "用户住在北京"),
    ],
)
def test_case_space_and_punctuation_do_not_count(one: str, other: str) -> None:
    assert statement_key(one) == statement_key(other)
    assert is_same_statement(one, other, threshold=1.0)


@pytest.mark.req("DF-C31")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C++", "C#"),
        ("It is -5 degrees", "It is 5 degrees"),
        ("v1.2 works", "v12 works"),
        ("a/b", "a b"),
        ("!!!", "???"),
    ],
)
def test_a_sign_that_is_part_of_a_word_counts(one: str, other: str) -> None:
    assert statement_key(one) != statement_key(other)
    assert not is_same_statement(one, other, threshold=0.0)


def test_two_texts_of_nothing_are_not_the_same_statement() -> None:
    assert not is_same_statement("", " ")
    assert not is_same_statement("", "User likes tea")


def test_no_threshold_and_no_meaning_joins_what_can_not_be_one() -> None:
    for one, other in (
        ("User has 2 cats", "User has 3 cats"),
        ("User likes tea", "User doesn't like tea"),
        ("User lives in Rome", "User lives in Oslo"),
        ("The cache is enabled", "The cache is disabled"),
        ("Ben pays Lisa", "Lisa pays Ben"),
        ("User plans to buy a boat", "User bought a boat"),
    ):
        assert not is_same_statement(one, other, threshold=0.0, meaning=1.0)
        assert statement_similarity(one, other) == 0.0


def test_a_very_like_meaning_makes_up_for_other_words() -> None:
    one, other = "User cycles to the office each day", "User bikes to the office each day"
    assert not is_same_statement(one, other, threshold=0.9)
    assert is_same_statement(one, other, threshold=0.9, meaning=0.95)
    assert not is_same_statement(one, other, threshold=0.9, meaning=0.8)
    assert not is_same_statement(one, "The weather turned out fine", meaning=0.99)


def test_the_best_of_several_is_named() -> None:
    others = ["User owns a boat", "User really likes hiking", "user likes hiking!", "User likes hiking"]
    assert find_duplicate("User likes hiking", others) == 2
    assert find_duplicate("User enjoys hiking", others[:2]) == 1
    assert find_duplicate("User likes swimming", others) is None
    assert find_duplicate("User likes hiking", []) is None
    near = ["User bikes to the office each day"]
    assert find_duplicate("User cycles to the office each day", near, threshold=0.9) is None
    assert find_duplicate("User cycles to the office each day", near, threshold=0.9, meanings=[0.95]) == 0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("User lives in Hamburg", "User lives in Berlin", True),
        ("User has three children", "User has two children", True),
        ("User does not keep bees", "User keeps bees", True),
        ("The cache is disabled", "The cache is enabled", True),
        ("User lives in Hamburg", "User works in Berlin", False),
        ("User lives in Hamburg", "User lives in Hamburg.", False),
        ("User likes tea", "User likes hiking", False),
        ("Anna has two cats", "The invoice has 3 pages", False),
    ],
)
def test_a_contradiction_is_the_same_sentence_with_another_value(one: str, other: str, expected: bool) -> None:
    assert contradicts(one, other) is expected
    assert contradicts(other, one) is expected


@given(TEXTS, TEXTS, st.floats(0, 1))
def test_it_is_the_same_both_ways_and_stricter_from_a_higher_threshold(one: str, other: str, threshold: float) -> None:
    assert is_same_statement(one, other, threshold=threshold) == is_same_statement(other, one, threshold=threshold)
    assert statement_similarity(one, other) == statement_similarity(other, one)
    assert 0.0 <= statement_similarity(one, other) <= 1.0
    if is_same_statement(one, other, threshold=1.0):
        assert is_same_statement(one, other, threshold=threshold)
    assert not (contradicts(one, other) and is_same_statement(one, other))


@given(TEXTS)
def test_a_statement_is_one_with_itself(text: str) -> None:
    assert is_same_statement(text, f" {text}  ") == bool(statement_key(text))
    assert not contradicts(text, text)
