"""Openers: what is cut from the head of a sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.language import strip_opener


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Yes, we do.", "we do."),
        ("By the way, one more thing: tags are signed.", "tags are signed."),
        ("For your planning: I'm away in May.", "I'm away in May."),
        ("As I said, my employer is Acme.", "my employer is Acme."),
        ("Like I've already mentioned before: my employer is Acme.", "my employer is Acme."),
        ("Wie gesagt, wir deployen freitags.", "wir deployen freitags."),
        ("As I said yes, we married.", "As I said yes, we married."),
        ("Deploys: only from main.", "Deploys: only from main."),
        ("Tags are signed.", "Tags are signed."),
        ("Well, ", "Well, "),
        ("", ""),
    ],
)
def test_fillers_and_announcements_go_and_content_stays(text: str, rest: str) -> None:
    assert strip_opener(text) == rest


@given(st.lists(st.sampled_from(["yes, ", "one more: ", "tags", " - ", "so, ", "é", "\n"])).map("".join) | st.text())
def test_the_rest_is_always_a_tail_and_never_empty(text: str) -> None:
    rest = strip_opener(text)
    assert text.endswith(rest)
    assert bool(rest) == bool(text)
