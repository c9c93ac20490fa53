"""What memory said is told from what says something else, in nearly the same words."""

import pytest

from ricordo.extraction.known_memory import RecalledTexts

pytestmark = pytest.mark.req("FC-JUNK")

SAID = ("The team deploys only from main.", "User's sister Ana lives in Porto.", "We never use tabs in Python files.")


@pytest.mark.parametrize(
    "statement",
    [
        "We deploy only from main.",
        "you deploy from main",
        "My sister Ana lives in Porto",
        "Never use tabs in Python files!",
    ],
)
def test_a_statement_without_a_word_of_its_own_is_a_repeat(statement: str) -> None:
    assert RecalledTexts(SAID).covers(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "We deploy only from develop.",
        "We no longer deploy from main.",
        "We deploy only from main on Fridays.",
        "Ana lives in Lisbon.",
        "We use tabs in Python files.",
        "main",
        "",
    ],
)
def test_one_word_more_or_a_denial_less_is_something_else(statement: str) -> None:
    assert not RecalledTexts(SAID).covers(statement)
