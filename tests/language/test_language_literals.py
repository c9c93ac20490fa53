"""Patterns that are run only on texts with a literal that they need: nothing that matches is passed over."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ricordo.language import PatternTable, find_literals

LETTERS = "abkisſıKİς助手é_-. \n"
WARM_UP = ("nothing of this sort",) * 60
"""Enough texts that a table reads the literals of its patterns."""


def _join(parts: list[str]) -> str:
    return "".join(parts)


ATOMS = st.one_of(
    st.text(LETTERS, min_size=1, max_size=4).map(re.escape),
    st.sampled_from([r"\w", r"\s", "[ab]", "[^a]", ".", r"(?<!\w)", r"(?!\w)", r"\b", "^", "$", "(?=a)", "(?<=k)"]),
)
QUANTIFIERS = st.sampled_from(["", "", "", "?", "*", "+", "{0,2}", "{1,2}", "{2}", "??"])


def _extend(patterns: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    groups = st.tuples(patterns, QUANTIFIERS).map(lambda each: f"(?:{each[0]}){each[1]}")
    alternatives = st.lists(patterns, min_size=2, max_size=3).map(lambda each: f"(?:{'|'.join(each)})")
    return st.one_of(groups, alternatives, st.lists(patterns, min_size=1, max_size=3).map(_join))


PATTERNS = st.recursive(ATOMS, _extend, max_leaves=8)


def _table(patterns: dict[str, str]) -> PatternTable[str]:
    table = PatternTable(patterns)
    for text in WARM_UP:
        table.find_possible(text)
    return table


@given(pattern=PATTERNS, texts=st.lists(st.text(LETTERS + "SKIΣ", max_size=12), min_size=1, max_size=5))
@example(pattern=r"(?<!\w)(?:ki|ai)(?!\w)", texts=["Ki", "the aI!", "K\u0131"])
@example(pattern=r"(?<!\w)(?:\.env|-a)(?!\w)", texts=[".env", "a .ENV b", "--a"])
@example(pattern="s(?:a|b)+k", texts=["sabak", "SaK", "ſak"])
def test_a_pattern_that_matches_a_text_is_never_passed_over(pattern: str, texts: list[str]) -> None:
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error:
        return
    table = _table({"it": pattern})
    for text in texts:
        assert table.find_matching(text) == ({"it"} if compiled.search(text) else set())


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"(?<!\w)(?:ai|robots?)(?!\w)", {"\0ai\0", "\0robot"}),
        ("the (?:user|owner) wants", {"the\0 \0user\0 \0wants", "the\0 \0owner\0 \0wants"}),
        ("(?:very )?good", {"good"}),
        ("[ab]+", None),
        ("(?:a|b?)", None),
        ("(?(1)a|b)", None),
    ],
)
def test_the_longest_literals_that_a_pattern_needs_are_found(pattern: str, literals: set[str] | None) -> None:
    assert find_literals(pattern) == literals


def test_a_text_without_the_literals_of_a_pattern_leaves_it_out() -> None:
    table = _table({"robot": r"(?<!\w)(?:ai|robots?)(?!\w)", "wish": "i (?:want|need)", "any": "[a-z]+"})
    assert set(table.find_possible("She said so, and Wanted it.")) == {"any"}
    assert set(table.find_possible("An AI said so.")) == {"any", "robot"}
    assert table.find_matching("Robots? I WANT one.") == {"any", "robot", "wish"}
