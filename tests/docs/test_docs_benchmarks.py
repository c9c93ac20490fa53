"""The page of the stores' benchmark shows the numbers beside it, and what a store claims was measured."""

import importlib
import json

import pytest

from ricordo.testing import BUILT_IN_STORES
from source_tree import ROOT

PAGE = ROOT / "docs" / "benchmarks" / "stores.md"


def test_the_tables_of_the_page_are_those_of_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    page = importlib.import_module("store_page.page")
    numbers = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert page.rendered(text, numbers) == text
    assert numbers["rows"]
    assert all(f"rendered: {name} " in text for name in ("machine", "saving", "reading", "questions", "opening"))


def test_a_store_that_is_made_for_more_than_ten_thousand_was_measured_there() -> None:
    rows = json.loads(PAGE.with_suffix(".json").read_text(encoding="utf-8"))["rows"]
    largest = {row["store"]: row["entries"] for row in sorted(rows, key=lambda row: row["entries"])}
    claimed = {scheme: kind.scale for scheme, kind in BUILT_IN_STORES.items() if kind.scale > 10_000}
    assert claimed == {scheme: largest.get(scheme) for scheme in claimed}


def test_the_benchmark_of_the_stores_measures_all_that_its_tables_show(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = importlib.import_module("stores")
    script.main(["--only", "jsonl", "--entries", "3", "--saves", "2", "--tries", "1"])
    (saving, reading, questions, opening) = capsys.readouterr().out.strip().split("\n\n")
    for table, columns in ((saving, 7), (reading, 7), (questions, 7), (opening, 8)):
        (row,) = (line.split() for line in table.splitlines()[1:])
        assert row[:2] == ["`jsonl`", "3"]
        assert len(row) == columns
        assert "-" not in row
