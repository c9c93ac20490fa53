"""Tombstones: the same statement is recognised in other clothes, and no other statement is taken for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.workspace import content_digest

pytestmark = pytest.mark.req("HE-O-audit-forget")

KEY = bytes(range(32))
EMPTY = content_digest("", KEY)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("We use C++.", "We use C#."),
        ("We use C++.", "We use C."),
        ("The limit is -5.", "The limit is 5."),
        ("Version 3.5 is live.", "Version 3 5 is live."),
        ("Version 3.5 is live.", "Version 35 is live."),
        ("It costs $5.", "It costs €5."),
        ("The area is 10².", "The area is 102."),
        ("My mood: 🙂", "My mood: 🙁"),
        ("🙂", "🙁"),
        ("!!!", "???"),
        ("Read .env first.", "Read env first."),
        ("Take 5' of it.", 'Take 5" of it.'),
        ("Use a/b.", "Use a b."),
        ("Count 5 - 3.", "Count 5 3."),
        ("x != y", "x == y"),
        ("Feeling :)", "Feeling"),
    ],
)
def test_another_statement_has_another_digest(first: str, second: str) -> None:
    assert content_digest(first, KEY) != content_digest(second, KEY)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("We deploy only from main.", "we  deploy only\nfrom MAIN"),
        ("We deploy, always, from main!", "We deploy always from main"),
        ("“We deploy (only) from `main`”…", "We deploy only from main"),
        ("Bonjour !", "bonjour"),
        ("¿Vamos?", "vamos"),
        ("Tea — always.", "tea always"),
        ("Cafe\u0301 au lait", "Café au lait."),
        ("We use C++!", "we use c++"),
    ],
)
def test_case_white_space_and_sentence_marks_make_no_difference(first: str, second: str) -> None:
    assert content_digest(first, KEY) == content_digest(second, KEY)


@given(st.text(min_size=1).filter(lambda text: bool(text.strip())))
def test_no_text_with_something_in_it_has_the_digest_of_nothing(text: str) -> None:
    assert content_digest(text, KEY) != EMPTY
    assert content_digest(f" {text}\n", KEY) == content_digest(text, KEY)


def test_another_key_gives_another_digest() -> None:
    assert content_digest("tea", KEY) != content_digest("tea", bytes(32))


def test_a_megabyte_of_marks_is_read_in_one_pass() -> None:
    assert content_digest(")" * 500_000 + "x" + "(" * 500_000, KEY) != EMPTY
