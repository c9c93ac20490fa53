"""What kind of content a preview is of."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.context.strategies.evict import content_kind

ROWS = [{"id": number, "name": "a name"} for number in range(400)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (json.dumps(ROWS), "JSON"),
        ("\ufeff" + json.dumps(ROWS, indent=2) + "\n", "JSON"),
        ("\n".join(map(json.dumps, ROWS)), "JSON lines"),
        (json.dumps(ROWS)[:-9], "text"),
        ("[the log begins here\n" * 9, "text"),
        ("id,name,town\n" + '1,"Ana, the first",Porto\n' * 9, "CSV"),
        ("He came, he saw, he won.\n" * 9, "CSV"),
        ("He came, saw and won.\nThen, without a word, he left.\nNobody knew.\n", "text"),
        ("<!DOCTYPE html>\n<html><body></body></html>", "HTML"),
        ('<?xml version="1.0"?><a/>', "XML"),
        ("\0\x01\x02" * 100, "binary data"),
        ("\x1b[31mred\x1b[0m\n" * 100, "text"),
        ("", "text"),
    ],
)
def test_a_text_is_named_by_what_it_is(text: str, kind: str) -> None:
    assert content_kind(text) == kind


@given(st.text(alphabet=st.sampled_from('[]{}",:1\n\0\ud800\ufffd<a'), max_size=60))
def test_any_text_has_a_kind_and_only_json_is_called_so(text: str) -> None:
    if content_kind(text) == "JSON":
        assert isinstance(json.loads(text), list | dict)


def test_deep_nesting_and_long_numbers_are_plain_text() -> None:
    assert content_kind("[" * 100_000) == "text"
    assert content_kind(f"[{'9' * 10_000}]") == "text"
