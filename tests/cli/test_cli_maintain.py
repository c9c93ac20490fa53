"""`maintain` and `spending`: what waits and what it cost, seen and worked off from the command line."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from command_line import ricordo
from hand_made_roots import begun
from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.guard import Redactor
from ricordo.jobs import Inbox, Job
from ricordo.messages import Text
from ricordo.storage.local import LocalFiles
from ricordo.workspace import Transcript, transcript_path

ROOT = Path(".ricordo")


@pytest.fixture(autouse=True)
def root() -> None:
    """Make a root in the working directory."""
    begun(ROOT)
    (ROOT / "project.json").write_text('{"scope": {"project": "shop"}}', encoding="utf-8")


def _said(session: str, text: str) -> None:
    """Record a message that nobody has learned from yet."""

    async def record() -> None:
        transcript = Transcript(
            LocalFiles(place_of(ROOT)),
            transcript_path("main", session),
            session=session,
            redactor=Redactor(b"k" * 32),
        )
        await transcript.append([Message(role="user", parts=(Text(text=text),))])

    anyio.run(record)


def _put(*jobs: Job) -> None:
    async def put() -> None:
        clock = SystemClock()
        inbox = Inbox(place_of(ROOT) / "queue.db", clock=clock, ids=MonotonicIds(clock))
        for job in jobs:
            await inbox.put(job)
        await inbox.close()

    anyio.run(put)


def _fail(session: str) -> None:
    with closing(sqlite3.connect(place_of(ROOT) / "queue.db")) as queue:
        queue.execute("UPDATE job SET state = 'failed', error = 'ModelTimeout' WHERE session = ?", (session,))
        queue.commit()


def test_what_waits_is_shown_with_its_pause_and_nothing_changes() -> None:
    _said("monday", "We deploy only from main.")
    _said("tuesday", "We use uv.")
    _put(Job(kind="flush", agent="main", session="monday", not_before=datetime.now(UTC) + timedelta(seconds=90)))
    before = (place_of(ROOT) / "queue.db").read_bytes()
    shown = ricordo("maintain", "--dry-run").out
    assert "flush monday  waits for" in shown
    assert "flush tuesday  holds more than was learned from it" in shown
    document = ricordo("maintain", "--dry-run", "--json").document
    assert [job["session"] for job in document["waiting"]] == ["monday"]
    assert document["behind"] == [{"agent": "main", "session": "tuesday"}]
    assert document["worked"] is None
    assert not (place_of(ROOT) / "workspace" / "memory").exists()
    assert (place_of(ROOT) / "queue.db").read_bytes() == before


@pytest.mark.req("DF-B24")
def test_what_waits_and_what_nobody_asked_for_is_worked_off_at_once() -> None:
    _said("monday", "We deploy only from main.")
    _said("tuesday", "We always use uv, never pip.")
    _put(Job(kind="flush", agent="main", session="monday", not_before=datetime.now(UTC) + timedelta(seconds=90)))
    assert "left" not in ricordo("maintain").out
    contents = {memory["content"] for memory in ricordo("memory", "list", "--json").document["entries"]}
    assert contents == {"We deploy only from main.", "We always use uv, never pip."}
    assert "Nothing waits" in ricordo("maintain").out


@pytest.mark.req("DF-B1")
def test_what_failed_too_often_is_tried_again_only_when_it_is_asked_for() -> None:
    _said("monday", "We deploy only from main.")
    _put(Job(kind="flush", agent="main", session="monday"))
    _fail("monday")
    result = ricordo("maintain")
    assert result.code == 1
    assert "failed too often, ModelTimeout" in result.out
    assert "maintain --retry" in ricordo("doctor").out
    assert "Did 3 jobs" in ricordo("maintain", "--retry").out
    assert "inbox" in ricordo("doctor").out
    assert "We deploy only from main." in ricordo("memory", "list").out


@pytest.mark.req("FC-CAP")
def test_spending_shows_each_purpose_by_day_and_what_is_left() -> None:
    assert "0 requests, 0 of 2,000,000 tokens" in ricordo("spending").out
    today = SystemClock().today()
    day = today.isoformat()
    (place_of(ROOT) / "spending").mkdir(parents=True)
    lines = [
        f'{{"day":"{day}","at":"x","purpose":"flush","model":"m1","input":900,"output":100,"cost":"0.02"}}',
        f'{{"day":"{day}","at":"x","purpose":"flush","model":"m1","input":500,"output":10,"cost":"0.01"}}',
        f'{{"day":"{day}","at":"x","purpose":"summary","model":"m2","error":"ModelTimeout"}}',
        f'{{"day":"{day}","at":"x","purpose":"summary","model":"m2","input":7}}',
    ]
    (place_of(ROOT) / "spending" / f"{today:%Y-%m}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = ricordo("spending", "--json").document
    assert document["today"] == {
        "requests": 4, "failed": 1, "input": 1407, "output": 110, "cost": 0.03, "unpriced": 1, "over": 0,
        "reserved": 0,
    }  # fmt: skip
    assert [(each["purpose"], each["requests"]) for each in document["days"]] == [("flush", 2), ("summary", 2)]
    shown = ricordo("spending").out
    assert "4 requests, 1,517 of 2,000,000 tokens, $0.0300 of $5.00" in shown
    assert "the price of 1 request is not known" in shown
    assert "limit is reached" not in shown
    (ROOT / "config.toml").write_text("[spending]\ndaily_tokens = 1000\n", encoding="utf-8")
    assert "The limit is reached: 1,517 of 1,000 tokens are used. Memory goes on" in ricordo("spending").out
    assert ricordo("spending", "--json").document["limit"] == {"tokens": 1000, "cost": 5.0, "reached": True}
    held = {"at": f"{today}T01:00:00Z", "day": str(today), "id": "0123", "reserved": 4_200}
    with (place_of(ROOT) / "spending" / f"{today:%Y-%m}.jsonl").open("a", encoding="utf-8") as journal:
        journal.write(json.dumps(held) + "\n")
    assert ricordo("spending", "--json").document["today"]["reserved"] == 4_200
    assert "4,200 tokens are reserved for requests that have not ended" in ricordo("spending").out


@pytest.mark.req("HE-O-retention")
def test_what_is_past_its_time_is_shown_with_its_rule_and_goes_its_way() -> None:
    (place_of(ROOT) / "workspace" / "memory").mkdir(parents=True)
    ledger = place_of(ROOT) / "workspace" / "memory" / "2020-02-03.md"
    ledger.write_text("- We deploy only from main. [kind:: decision]\n", encoding="utf-8")
    (place_of(ROOT) / "workspace" / "sessions").mkdir()
    (place_of(ROOT) / "workspace" / "sessions" / "2020-02-03-10h00.md").write_text("# Old\n", encoding="utf-8")
    shown = ricordo("maintain", "--dry-run").out
    assert "sessions/2020-02-03-10h00.md  goes to the trash soon, which is announced now" in shown
    assert "goes to the archive" not in shown  # it was never consolidated
    ricordo("maintain")
    assert ricordo("maintain", "--dry-run", "--json").document["old"] == [
        {"path": "workspace/memory/2020-02-03.md", "action": "archive", "rule": "daily_file_retention_days = 90"}
    ]
    ricordo("maintain")
    assert not ledger.exists()
    assert (place_of(ROOT) / "workspace" / "memory" / "archive" / "2020-02-03.md").exists()
    assert {"announce", "expire"} <= {change["action"] for change in ricordo("history", "--json").document["changes"]}


@pytest.mark.req("HE-C1b")
def test_what_has_faded_is_shown_before_it_goes_to_the_archive_and_before_it_returns() -> None:
    workspace = place_of(ROOT) / "workspace"
    workspace.mkdir(parents=True)
    faded, fresh = "01k6yvgewd8dp5gr1g9vsf0000", "01k6yvgewd8dp5gr1g9vsf0001"
    said = f"[at:: {datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}]"
    (workspace / "MEMORY.md").write_text(
        "# Memory\n\n## Facts\n\n"
        f"- The walnut tree is at the gate. [kind:: fact] [at:: 2015-02-03T10:00:00.000Z] [by:: user] ^{faded}\n"
        f"- The walnut oil is in the cellar. [kind:: fact] {said} [by:: user] ^{fresh}\n",
        encoding="utf-8",
    )
    shown = ricordo("maintain", "--dry-run").out
    assert f"memory {faded}  goes to the archive  decay.archive_below = 0.125" in shown
    assert fresh not in shown
    assert ricordo("maintain").code == 0
    assert "walnut tree" not in (workspace / "MEMORY.md").read_text(encoding="utf-8")
    assert ricordo("maintain", "--dry-run", "--json").document["old"] == []
    (ROOT / "config.toml").write_text("[decay]\narchive_below = 0\n", encoding="utf-8")
    assert ricordo("maintain", "--dry-run", "--json").document["old"] == [
        {"path": f"memory {faded}", "action": "return", "rule": "decay.archive_below = 0"}
    ]


def test_what_memory_learned_at_once_leaves_nothing_to_maintain() -> None:
    async def live() -> None:
        async with Memory.open(ROOT, scope=Scope(project="shop")) as memory:
            await memory.ingest([Message(role="user", parts=(Text(text="We deploy only from main."),))], session="s")

    anyio.run(live)
    assert ricordo("maintain", "--dry-run", "--json").document == {
        "waiting": [], "failed": [], "behind": [], "old": [], "worked": None, "hooks": None, "doubts": {},
    }  # fmt: skip


def test_what_is_saved_for_the_project_reaches_its_curated_memory_and_no_users() -> None:
    assert ricordo("remember", "We deploy only from main.", "--kind", "decision", "--shared", "--user", "ann").code == 0
    assert ricordo("remember", "I deploy on Fridays.", "--kind", "decision", "--user", "ann").code == 0
    assert ricordo("maintain", "--user", "ben").code == 0
    curated = (ROOT / "workspace" / "MEMORY.md").read_text(encoding="utf-8")
    assert "We deploy only from main." in curated
    assert "Fridays" not in curated
    assert not (place_of(ROOT, "ann") / "workspace" / "MEMORY.md").exists()
    assert ricordo("consolidate", "--user", "ann").code == 0
    own = (place_of(ROOT, "ann") / "workspace" / "MEMORY.md").read_text(encoding="utf-8")
    assert "Fridays" in own
    assert "only from main" not in own
    told = {user: ricordo("recall", "deploy", "--user", user).out for user in ("ann", "ben")}
    assert "Fridays" in told["ann"]
    assert "Fridays" not in told["ben"]
    assert all("only from main" in each for each in told.values())
    assert ricordo("remember", "A.", "--shared", "--everywhere", "--reason", "b").code == 2
