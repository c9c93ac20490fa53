"""The benchmark of the window runs on a talk that it makes up, and finds what stands where."""

import importlib
from collections.abc import Callable
from typing import cast

import pytest

from source_tree import ROOT

Run = Callable[[str], list[list[str]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the script with options, and return the words of what it prints, line by line."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = importlib.import_module("window")
    main = cast("Callable[[list[str]], None]", script.main)

    def act(options: str) -> list[list[str]]:
        main(options.split())
        return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]

    return act


def rows(lines: list[list[str]], name: str) -> list[list[str]]:
    return [line[1:] for line in lines if line[0] == name]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_the_benchmark_of_the_window_tells_what_was_sent_and_where_the_facts_are(run: Run) -> None:
    lines = run("--turns 5 --facts 6 --window 8000 --only nothing ladder/careful --sizes 1 3 --timed 1")
    sent, shares = rows(lines, "nothing")
    assert shares == ["100%"] * 7
    requests, tokens, largest, over = map(number, sent[:4])
    assert requests >= 5
    assert tokens > largest > 8_000
    assert 0 < over < requests
    laddered, kept = rows(lines, "ladder/careful")
    assert number(laddered[0]) == requests
    assert number(laddered[1]) < tokens
    assert number(laddered[3]) == 0
    assert kept[6] == "100%"
    assert [line[0] for line in lines if line[0] in {"1", "3", "flat,"}] == ["1", "3", "flat,"]


def test_the_benchmark_shows_a_window_before_and_after_a_summary(run: Run) -> None:
    lines = run("--turns 8 --window 8000 --print-window")
    (before,), (after,) = rows(lines, "before:"), rows(lines, "after:")
    assert number(after[2]) < number(before[2])
    assert "summary" in lines[lines.index(["after:", *after]) + 1][2]
