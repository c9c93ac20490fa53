"""A memory that a newer one may have made outdated stays, says so everywhere, and a person decides about it."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from command_line import ricordo
from hand_made_roots import begun
from places import place_of
from ricordo import Entry
from ricordo.workspace import render_entry

OLD = "The parcels of the shop wait 30 days in the store, then they go back."
NEW = "Because of the fire wall parcels wait two weeks, not a month."
QUESTION = "How long do the parcels of the shop wait in the store?"
WORDS = "see “Because of the fire wall parcels wait two weeks…”"
MARKER = f"(maybe outdated: {WORDS})"
TEXTS = (OLD, "The cellar floods in spring.", "We bake bread on holidays.", NEW)
OLD_ID, *_, NEW_ID = IDS = [f"01m80qv68xdbv9twp7wr0x910{number}" for number in range(len(TEXTS))]
ROOT = Path(".ricordo")
CURATED = place_of(ROOT) / "workspace" / "MEMORY.md"
LEDGER = place_of(ROOT) / "workspace" / "memory" / "2026-11-21.md"
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a root in the working directory with an older and a newer statement, and consolidate it."""
    monkeypatch.chdir(tmp_path)
    begun(ROOT)
    LEDGER.parent.mkdir(parents=True, exist_ok=True)
    (ROOT / "project.json").write_text('{"scope": {"project": "shop"}}', encoding="utf-8")
    rows = [
        Entry(content=text, id=name, time=BEGIN + timedelta(days=20 * at))
        for at, (text, name) in enumerate(zip(TEXTS, IDS, strict=True))
    ]
    LEDGER.write_text("# 2026-11-21\n\n" + "".join(map(render_entry, rows)), encoding="utf-8")
    ricordo("consolidate")


def marks() -> dict[str, str]:
    """Return by id which memory may have made which outdated."""
    entries = ricordo("memory", "list", "--json").document["entries"]
    return {entry["id"]: entry["maybe_outdated_by"] for entry in entries if entry["maybe_outdated_by"]}


def review() -> list[tuple[str, str]]:
    """Return the ids of each pair of an old and a new statement that waits for a person."""
    doubts = ricordo("review", "--kind", "stale", "--json").document["doubts"]
    return [(doubt["id"], doubt["other"]["id"]) for doubt in doubts]


def consolidate_again() -> None:
    ricordo("remember", "The harbour opens at six in summer.")
    ricordo("consolidate", "--deep")


def plain(text: str) -> str:
    return " ".join(re.sub(r"\x1b\[[\d;]*m", "", text).split())


@pytest.mark.req("FC-CONFLICT")
def test_the_older_one_stays_and_a_person_reads_in_every_place_what_may_have_replaced_it() -> None:
    assert marks() == {OLD_ID: NEW_ID}
    text, _, comment = CURATED.read_text(encoding="utf-8").partition("<!-- ricordo-fields")
    assert f"- {OLD} [maybe-outdated:: {WORDS}] ^{OLD_ID}" in text.splitlines()
    assert any(line.startswith(OLD_ID) and f"[outdated-by:: {NEW_ID}]" in line for line in comment.splitlines())
    for command in (("memory", "list"), ("memory", "show", OLD_ID), ("why", OLD_ID), ("context",)):
        assert MARKER in plain(ricordo(*command).out), command
    assert ricordo("memory", "show", OLD_ID, "--json").document["maybe_outdated_by"] == NEW_ID
    assert "outdated" not in LEDGER.read_text(encoding="utf-8")


@pytest.mark.req("FC-CONFLICT")
def test_a_recall_shows_the_newer_one_first_and_marks_the_other() -> None:
    question = "30 days in the store, then they go back"
    hits = ricordo("recall", question, "--json").document["hits"]
    assert [hit["entry"]["id"] for hit in hits[:2]] == [NEW_ID, OLD_ID]
    assert f"maybe outdated by {NEW_ID}" in hits[1]["explanation"]
    assert MARKER in plain(ricordo("recall", question).out)


@pytest.mark.req("FC-CONFLICT", "HE-O-conflict")
def test_a_person_accepts_that_the_newer_one_holds_and_can_undo_it() -> None:
    assert review() == [(OLD_ID, NEW_ID)]
    ricordo("review", "accept", OLD_ID)
    assert ricordo("memory", "show", OLD_ID, "--json").document["superseded_by"] == NEW_ID
    assert (marks(), review()) == ({}, [])
    ricordo("undo")
    assert (marks(), review()) == ({OLD_ID: NEW_ID}, [(OLD_ID, NEW_ID)])


@pytest.mark.parametrize("command", [("review", "reject"), ("confirm",)])
def test_what_a_person_says_holds_is_not_asked_again(command: tuple[str, ...]) -> None:
    ricordo(*command, OLD_ID)
    assert "outdated" not in CURATED.read_text(encoding="utf-8")
    consolidate_again()
    assert (marks(), review()) == ({}, [])
    assert ricordo("memory", "show", OLD_ID, "--json").document["state"] == "active"


def test_the_mark_goes_with_the_newer_one_and_with_the_run_that_made_it() -> None:
    before = CURATED.read_bytes()
    ricordo("forget", NEW_ID)
    assert not any(word in CURATED.read_text(encoding="utf-8") for word in ("outdated", "fire wall"))
    ricordo("undo")
    assert CURATED.read_bytes() == before
    ricordo("undo")
    assert marks() == {}


def test_words_that_a_person_removes_do_not_come_back() -> None:
    text = CURATED.read_text(encoding="utf-8")
    CURATED.write_text(text.replace(f" [maybe-outdated:: {WORDS}]", ""), encoding="utf-8")
    assert marks() == {}
    consolidate_again()
    assert (marks(), review()) == ({}, [])


def test_a_pin_wins_and_the_mark_follows_a_later_change() -> None:
    ricordo("pin", OLD_ID)
    consolidate_again()
    assert marks() == {}
    ricordo("pin", "--off", OLD_ID)
    ricordo("consolidate", "--deep")
    assert marks() == {OLD_ID: NEW_ID}
    ricordo("forget", NEW_ID)
    ricordo("remember", "We changed it: parcels wait ten days in the store, not 30 days.")
    ricordo("consolidate")
    assert set(marks()) <= {OLD_ID}


@pytest.mark.req("FC-CONFLICT")
def test_an_answer_quotes_the_newer_one_and_names_the_other_behind_it() -> None:
    asked = ricordo("ask", QUESTION)
    text = plain(asked.out)
    assert text.startswith(NEW)
    assert f"maybe outdated: {OLD}" in text
    former = ricordo("ask", QUESTION, "--json").document["superseded"]
    assert [(hit["entry"]["id"], hit["superseded_by"]) for hit in former] == [(OLD_ID, None)]


def test_an_answer_about_a_day_before_the_newer_one_quotes_what_held_then() -> None:
    asked = plain(ricordo("ask", "How long did parcels of the shop wait in the store on 5 March 2026?").out)
    assert OLD in asked
    assert NEW not in asked
