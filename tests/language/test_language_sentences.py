"""Sentence cutting."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.language import split_sentences


def _texts(text: str) -> list[str]:
    return [sentence.text for sentence in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I moved. I like it!", ["I moved.", "I like it!"]),
        ("Dr. Smith met J. Doe at 5 p.m. today.", ["Dr. Smith met J. Doe at 5 p.m. today."]),
        ("Use e.g. pnpm, i.e. not npm.", ["Use e.g. pnpm, i.e. not npm."]),
        ("See https://a.example/x.html?y=1. Then go.", ["See https://a.example/x.html?y=1.", "Then go."]),
        ("Version 3.11.7 is in src/a.py now.", ["Version 3.11.7 is in src/a.py now."]),
        ("Really?! Yes... maybe.", ["Really?!", "Yes...", "maybe."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Am 3. Oktober ist z.B. frei. Gut.", ["Am 3. Oktober ist z.B. frei.", "Gut."]),
        ("我住在杭州。你呢？好！", ["我住在杭州。", "你呢？", "好！"]),
        ("東京です。「はい。」と言った。", ["東京です。", "「はい。」", "と言った。"]),
        ("One line\nwraps here. Two.", ["One line\nwraps here.", "Two."]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert _texts(text) == expected


def test_list_items_are_sentences_without_their_markers() -> None:
    assert _texts("Rules:\n- use tabs\n- no npm\n1. run tests\n   before a commit") == [
        "Rules:",
        "use tabs",
        "no npm",
        "run tests\n   before a commit",
    ]


def test_code_quotes_and_headings_are_marked_as_such() -> None:
    text = "# Title\n\nText here.\n\n```py\nx = 1. y\n```\n\n> quoted line\n\n    indented()\n"
    assert [(s.kind, s.text.split("\n")[0]) for s in split_sentences(text)] == [
        ("heading", "Title"),
        ("prose", "Text here."),
        ("code", "```py"),
        ("quote", "quoted line"),
        ("code", "indented()"),
    ]


def test_an_open_fence_swallows_the_rest() -> None:
    assert [s.kind for s in split_sentences("Look.\n```\nx. y. z.\nmore. text.")] == ["prose", "code"]


@given(st.text(alphabet=st.sampled_from("aB1 .!?…。？\n\"'`>-*#)]|:/;{}~\t")) | st.text())
def test_spans_ascend_and_hold_their_text(text: str) -> None:
    end = 0
    for sentence in split_sentences(text):
        assert sentence.start >= end
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.text.strip() == sentence.text != ""
        end = sentence.end


@given(st.text(alphabet=st.sampled_from("abc .!?。\n")))
def test_no_word_of_a_plain_text_is_lost(text: str) -> None:
    held = "".join("".join(_texts(text)).split())
    assert held == "".join(text.split())


@pytest.mark.parametrize(
    "unit", [".", "!", '!"', ". ", "a.", "\n", " ", "-", "\t", "`", ">", "…", "1.", "。", "(", "\n- "]
)
def test_a_long_run_of_one_mark_is_cut_in_linear_time(unit: str) -> None:
    began = time.process_time()
    split_sentences(unit * (300_000 // len(unit)))
    assert time.process_time() - began < 20
