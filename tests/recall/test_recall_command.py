"""What `ricordo ask` and `ricordo recall` show of a memory that another one superseded."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from command_line import ricordo
from ricordo.workspace import parse_entries, render_entry

pytestmark = pytest.mark.req("HE-O-conflict")

QUESTION = "Which database does the orders service use?"


def _supersede() -> tuple[Path, str, str]:
    """Remember a decision, curate another in its place by hand; return the root's `MEMORY.md` and both ids."""
    saved = ricordo(
        "remember", "The orders service uses MySQL as its database.", "--kind", "decision", "--json"
    ).document
    ledger = Path(saved["file"])
    old = parse_entries(ledger.read_bytes(), "")[0].entry
    assert old.time is not None
    new = replace(
        old, id="01jd" + "7" * 22, content="The orders service uses PostgreSQL as its database.", supersedes=old.id,
        time=old.time + timedelta(seconds=5),
    )  # fmt: skip
    curated = ledger.parent.parent / "MEMORY.md"
    curated.write_text(f"# Memory\n\n{render_entry(new)}", encoding="utf-8")
    return curated, old.id, new.id


@pytest.mark.req("FC-WHY")
def test_an_answer_shows_what_holds_now_and_then_what_it_superseded_with_its_place() -> None:
    curated, old, new = _supersede()
    answer = ricordo("ask", QUESTION, "--json").document
    assert (answer["hit"]["entry"]["id"], answer["hit"]["superseded_by"]) == (new, None)
    (superseded,) = answer["superseded"]
    assert (superseded["entry"]["id"], superseded["entry"]["state"], superseded["superseded_by"]) == (
        old, "superseded", new,
    )  # fmt: skip
    lines = ricordo("ask", QUESTION).out.splitlines()
    assert lines[0] == "The orders service uses PostgreSQL as its database."
    assert lines[1].endswith(f"{curated}:3") or lines[1].endswith("MEMORY.md:3")
    assert lines[2] == "superseded: The orders service uses MySQL as its database."
    assert lines[3].endswith(f"{superseded['file']}:{superseded['line']}")
    assert superseded["entry"]["time"][:4] in lines[3]


def test_recall_says_what_superseded_a_memory() -> None:
    _supersede()
    hits = ricordo("recall", "orders database", "--json").document["hits"]
    assert [hit["superseded_by"] is None for hit in hits] == [True, False]
    assert "superseded by workspace/MEMORY.md:3" in ricordo("recall", "orders database").out


def test_an_answer_that_replaced_nothing_says_so() -> None:
    ricordo("remember", "The orders service uses MySQL as its database.")
    assert ricordo("ask", QUESTION, "--json").document["superseded"] == []
    assert "superseded" not in ricordo("ask", QUESTION).out


@pytest.mark.req("FC-WHY")
def test_why_shows_what_each_signal_gave_and_what_was_left_out() -> None:
    for text in ("The orders service uses MySQL.", "Orders arrive at noon.", "The orders desk is closed on Sundays."):
        ricordo("remember", text)
    told = ricordo("recall", "orders service", "--why", "--limit", "1", "--json").document
    (hit,) = told["hits"]
    assert hit["entry"]["content"] == "The orders service uses MySQL."
    assert round(sum(hit["score_parts"].values()), 2) == round(hit["score"], 2)
    assert set(hit["score_parts"]) <= set(hit["signals"])
    assert [each["reason"] for each in told["rejected"]] == ["limit", "limit"]
    assert told["candidates"] == 3
    lines = ricordo("recall", "orders service", "--why", "--limit", "1").out.splitlines()
    assert lines[0] == "1. The orders service uses MySQL."
    assert any("words +0." in line and "memory +0.100" in line for line in lines)
    assert "Not shown, of 3 candidates:" in lines
    assert any("below the limit" in line for line in lines)


@pytest.mark.req("FC-WHY")
def test_memory_search_says_why_too_and_shows_the_part_that_holds_the_words() -> None:
    ricordo(
        "remember", f"{'Nothing here is of any use. ' * 12}The pager number of the depot is 4411. {'And so on. ' * 30}"
    )
    lines = ricordo("memory", "search", "pager depot", "--why").out.splitlines()
    assert "The pager number of the depot is 4411." in lines[0]
    assert lines[0].startswith("1. …")
    assert len(lines[0]) < 200


@pytest.mark.req("FC-WHY")
def test_a_budget_passes_over_what_is_too_long_for_it() -> None:
    ricordo("remember", f"The orders service. {'It is long. ' * 80}")
    ricordo("remember", "Orders are short.")
    assert len(ricordo("recall", "orders", "--json").document["hits"]) == 2
    (hit,) = ricordo("recall", "orders", "--budget", "20", "--json").document["hits"]
    assert hit["entry"]["content"] == "Orders are short."
    told = ricordo("recall", "orders", "--budget", "20", "--why", "--json").document
    assert [each["reason"] for each in told["rejected"]] == ["budget"]
    assert "over the budget · score" in ricordo("recall", "orders", "--budget", "20", "--why").out
    ricordo("remember", "orders are short!")
    told = ricordo("recall", "orders", "--why", "--json").document
    (again,) = [each for each in told["rejected"] if each["reason"] == "duplicate"]
    assert f"says the same as {again['instead']} · score" in ricordo("recall", "orders", "--why").out
