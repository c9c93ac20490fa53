"""What is loaded for a first message: what has to do with it for certain, and nothing that only looks like it."""

import pytest

from ricordo import Entry
from ricordo.search import Hit
from ricordo.search.recall import search_words, select_relevant

pytestmark = pytest.mark.req("HE-C8-topk", "HE-C1-topic")

LEDGER = "workspace/memory/2026-11-21.md"


def hit(content: str, *, path: str = LEDGER, superseded_by: str = "", **more: object) -> Hit:
    entry = Entry(content=content, **({"by": "user"} | more))  # type: ignore[arg-type]
    return Hit(
        entry=entry, score=0.5, explanation="", path=path, line_number=1, end_line=1, superseded_by=superseded_by
    )  # fmt: skip


FIXTURES = hit("Test fixtures live in testdata/golden/.")
LISBON = hit("Ana lives in Lisbon.")
DEPLOYS = hit("We deploy only from main.")
EVERYTHING = [LISBON, DEPLOYS, FIXTURES]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where do our test fixtures live?", [FIXTURES]),
        ("How do we deploy?", [DEPLOYS]),
        ("What is deployed, and where are the test fixtures?", [FIXTURES]),
        ("Hello, how are you?", []),
        ("And now?", []),
        ("", []),
        ("Plan a journey by train through the Alps for next summer, with walks.", []),
    ],
)
def test_what_holds_enough_of_the_words_is_loaded_and_nothing_else(text: str, expected: list[Hit]) -> None:
    assert select_relevant(text, EVERYTHING, 5) == expected


def test_the_best_come_first_and_equals_in_their_order_and_no_more_than_asked_for() -> None:
    best = hit("The parser and the lexer share one grammar.")
    two = [hit(f"Parser {word}: the grammar is {word}.") for word in ("green", "grey", "gold")]
    assert select_relevant("Fix the parser, the lexer and the grammar.", [*two, best], 3) == [best, *two[:2]]


@pytest.mark.parametrize(
    "gone",
    [
        hit("We deploy from trunk.", superseded_by="x"),
        hit("We deploy from trunk.", state="superseded"),
        hit("We deploy from trunk.", state="retired"),
        hit("We deploy from trunk.", by="flush"),
    ],
)
def test_what_holds_no_more_and_what_nobody_has_curated_is_not_loaded(gone: Hit) -> None:
    assert select_relevant("How do we deploy?", [gone], 5) == []


def test_what_was_extracted_is_loaded_once_it_is_curated() -> None:
    curated = hit("We deploy from trunk.", by="flush", path="workspace/memory/topics/more-facts.md")
    assert select_relevant("How do we deploy?", [curated], 5) == [curated]


def test_a_memory_that_is_found_twice_is_loaded_once() -> None:
    copies = [hit("We deploy only from main.", id=f"{number:026}") for number in range(2)]
    assert select_relevant("How do we deploy?", [*copies, copies[0]], 5) == [copies[0]]


def test_words_are_looked_for_one_by_one_in_their_own_and_their_shortest_form() -> None:
    assert search_words("Where do our test fixtures live?") == ("test", "fixtures", "fixtur", "live")
    assert search_words("Hello.") == ()
    assert len(search_words(" ".join(f"word{chr(97 + n)}{chr(97 + n)}" for n in range(40)))) <= 16
