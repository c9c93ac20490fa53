"""What was counted once is known for as long as the value lives, and never of another one."""

import gc
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import messages
from ricordo.messages import Message, Text, estimate_message
from ricordo.messages.tokens import Estimator
from ricordo.messages.tokens.estimate import CountCache


class Box:
    def __init__(self, number: int) -> None:
        self.number = number


def test_a_value_is_counted_once_and_forgotten_with_it() -> None:
    counted: list[int] = []

    def count(box: Box) -> int:
        counted.append(box.number)
        return box.number

    known = CountCache(count)
    box, other = Box(7), Box(7)
    assert [known(box), known(box), known(other), known(box)] == [7, 7, 7, 7]
    assert counted == [7, 7]
    del box
    gc.collect()
    for number in range(100):
        assert known(Box(number)) == number
    assert known(other) == 7
    assert len(counted) == 102


@pytest.mark.req("AS-BUG-21")
@given(messages())
def test_a_message_that_was_counted_has_the_estimate_of_a_new_one(message: Message) -> None:
    fresh = estimate_message(message, counter=Estimator())
    assert estimate_message(message) == estimate_message(message) == fresh
    longer = replace(message, parts=(*message.parts, Text(text="and more")))
    assert estimate_message(longer) > fresh


@given(st.lists(st.text(min_size=1, max_size=9), max_size=5))
def test_texts_that_differ_are_never_taken_for_each_other(texts: list[str]) -> None:
    for text in texts:
        message = Message(role="user", parts=(Text(text=text),))
        assert estimate_message(message) == estimate_message(message, counter=Estimator())
