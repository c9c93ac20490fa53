"""The cycle of maintenance: what is old goes its way, step by step, and nothing goes that should stay."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

import anyio
import pytest

from hand_clock import HandClock
from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.curation import Consolidator
from ricordo.curation.config import MaintenanceConfig
from ricordo.curation.retention import (
    PlannedPruning,
    archive_expired_ledgers,
    find_expired_ledgers,
    plan_pruning,
    prune_session_files,
)
from ricordo.events import Emitter, Event
from ricordo.guard import Redactor
from ricordo.jobs.schedule import CycleStep, MaintenanceCycle, StepResult
from ricordo.messages import Message, Text
from ricordo.scope import Scope
from ricordo.storage import ABSENT, FileStore
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, Transcript, ledger_path, transcript_path
from ricordo.workspace.layout import archive_path
from ricordo.workspace.session_catalog import SessionCatalog
from ricordo.workspace.session_files import SessionFile, SessionTotals, update_session

pytestmark = pytest.mark.anyio

TODAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
KEY = b"k" * 32
CONFIG = MaintenanceConfig()


class Root:
    """A root in memory, with its change sets and a clock that is turned by hand."""

    def __init__(self) -> None:
        self.files: FileStore = InMemoryFiles()
        self.clock = HandClock(NOW)
        self.ids = MonotonicIds(self.clock)
        self.changes = ChangeSets(self.files, clock=self.clock, ids=self.ids)

    async def ledger(self, days: int, text: str = "We deploy only from main.") -> str:
        path = ledger_path(TODAY - timedelta(days=days))
        await self.files.replace(path, f"# day\n\n- {text} [kind:: decision]\n".encode(), expected=ABSENT)
        return path

    async def session(self, ended: int, *, pinned: bool = False, minutes: int | None = None) -> str:
        """Keep the file of a session that ended so many days ago, or began then and took so many `minutes`."""
        started = NOW - timedelta(days=ended)
        entry = Entry(content="Fixtures live in testdata.", id=self.ids.new(), time=started, pinned=pinned)
        file = SessionFile(
            started=started,
            session=f"s{ended}",
            summary="We talked.",
            entries=(entry,),
            totals=SessionTotals(minutes=minutes),
        )
        path = f"workspace/sessions/{started:%Y-%m-%d-%Hh%M}.md"
        await self.files.create(path, update_session(b"", path, file))
        return path

    async def consolidate(self, *, again: bool = False, deep: bool = False) -> None:
        redactor = Redactor(KEY)
        consolidator = Consolidator(
            files=self.files, changes=self.changes, redactor=redactor, clock=self.clock, key=KEY
        )
        await consolidator.consolidate(force=True, again=again, deep=deep)

    async def pruned(self, config: MaintenanceConfig = CONFIG) -> Mapping[str, int]:
        return (await prune_session_files(self.files, self.changes, now=self.clock.now(), config=config)).counts

    async def paths(self, prefix: str) -> list[str]:
        return [info.path for info in await self.files.list(prefix)]


@pytest.fixture
def root() -> Root:
    return Root()


@pytest.mark.req("AS-MAINT-03", "AS-BUG-18")
async def test_a_ledger_of_more_than_ninety_days_goes_to_the_archive_unchanged(root: Root) -> None:
    old, ninety = await root.ledger(91), await root.ledger(90, "We use uv.")
    others = [f"workspace/memory/{name}.md" for name in ("notes", "2026-02-30", "2026-13-01", "x2026-01-01")]
    for path in others:
        await root.files.create(path, b"- By hand.\n")
    await root.files.append(old, b"\r\n\n \n\n")
    await root.consolidate()
    before = (await root.files.read(old)).data
    [change] = await archive_expired_ledgers(root.files, root.changes, today=TODAY, days=90)
    assert (await root.files.read(archive_path(old))).data == before
    assert await root.files.info(old) is None
    assert await root.files.info(ninety) is not None
    assert all([await root.files.info(path) for path in others])
    assert (change.action, change.actor) == ("expire", "maintenance")
    assert await archive_expired_ledgers(root.files, root.changes, today=TODAY, days=90) == []


@pytest.mark.req("AS-BUG-18", "AS-MAINT-03")
async def test_a_ledger_that_was_never_consolidated_stays_and_an_archived_one_is_not_consolidated_again(
    root: Root,
) -> None:
    path = await root.ledger(400)
    assert await archive_expired_ledgers(root.files, root.changes, today=TODAY, days=90) == []
    await root.consolidate()
    await root.files.append(path, b"- One more, by hand.\n")
    assert await find_expired_ledgers(root.files, today=TODAY, days=90) == []
    await root.consolidate()
    assert len(await archive_expired_ledgers(root.files, root.changes, today=TODAY, days=90)) == 1
    curated = (await root.files.read("workspace/MEMORY.md")).data
    assert b"We deploy only from main." in curated
    # a copy that looks fresh is still no ledger
    archived = archive_path(path)
    stored = await root.files.read(archived)
    await root.files.replace(
        archived, stored.data + b"- Added to the archive. [kind:: decision]\n", expected=stored.version
    )
    for options in ({}, {"again": True}, {"deep": True}):
        await root.consolidate(**options)
        assert (await root.files.read("workspace/MEMORY.md")).data == curated


@pytest.mark.req("AS-MAINT-03", "AS-BUG-18")
async def test_a_day_that_the_archive_has_already_is_added_to_its_end(root: Root) -> None:
    path = await root.ledger(100)
    await root.files.create(archive_path(path), b"- Archived before.\n")
    await root.consolidate()
    ledger = (await root.files.read(path)).data
    await archive_expired_ledgers(root.files, root.changes, today=TODAY, days=90)
    assert (await root.files.read(archive_path(path))).data == b"- Archived before.\n\n" + ledger


@pytest.mark.req("AS-MAINT-03", "AS-MAINT-04")
async def test_what_expired_comes_back_by_undo_and_none_keeps_for_ever(root: Root) -> None:
    path = await root.ledger(91)
    await root.consolidate()
    assert await find_expired_ledgers(root.files, today=TODAY, days=None) == ()
    before = (await root.files.read(path)).data
    [change] = await archive_expired_ledgers(root.files, root.changes, today=TODAY, days=90)
    assert [each.path for each in change.files] == [archive_path(path), path]
    assert await root.changes.read_content(change.files[1].before) == before


@pytest.mark.req("AS-MAINT-04", "AS-BUG-18", "HE-T1", "AS-BUG-31")
async def test_an_old_session_file_is_announced_then_trashed_then_deleted_each_on_record(root: Root) -> None:
    old, young = await root.session(174), await root.session(20)
    shelf = SessionCatalog(root.files, "workspace/")
    async with shelf.lock():
        await shelf.write_index()

    async def listed() -> list[bool]:
        index = (await root.files.read("workspace/index.json")).data.decode()
        return [path.removeprefix("workspace/") in index for path in (old, young)]

    assert await listed() == [True, True]
    await root.files.create("workspace/agents/main/sessions/s174.log.jsonl", b"")
    assert await root.pruned() == {"announced": 1, "trashed": 0, "deleted": 0}
    root.clock.turn(days=6)
    assert await root.pruned() == {"announced": 0, "trashed": 0, "deleted": 0}
    root.clock.turn(days=1)
    assert await root.pruned() == {"announced": 0, "trashed": 1, "deleted": 0}
    assert await root.files.info(old) is None
    assert await listed() == [False, True]
    trashed = f"trash/2026-11-28/{old.removeprefix('workspace/')}"
    assert await root.paths("trash/2026-11-28") == [trashed]
    root.clock.turn(days=30)
    assert (await root.pruned())["deleted"] == 0
    root.clock.turn(days=1)
    assert (await root.pruned())["deleted"] == 1
    assert await root.paths("trash/2026-11-28") == []
    acts = [change.action for change in reversed(await root.changes.list_changes())]
    assert acts == ["announce", "prune", "announce", "delete"]
    assert await root.paths("workspace/sessions") == [young]
    assert await root.paths("workspace/agents") == ["workspace/agents/main/sessions/s174.log.jsonl"]


@pytest.mark.req("AS-MAINT-04")
async def test_what_is_long_overdue_is_announced_all_the_same_before_it_goes(root: Root) -> None:
    await root.session(1_000)
    assert await root.pruned() == {"announced": 1, "trashed": 0, "deleted": 0}
    root.clock.turn(days=6)
    assert (await root.pruned())["trashed"] == 0
    root.clock.turn(days=1)
    assert (await root.pruned())["trashed"] == 1


@pytest.mark.req("AS-MAINT-04")
async def test_a_session_that_is_taken_up_again_is_announced_anew_when_it_ends_again(root: Root) -> None:
    path = await root.session(176)
    assert (await root.pruned())["announced"] == 1
    transcript = Transcript(root.files, transcript_path("main", "s176"), session="s176", redactor=Redactor(KEY))
    await transcript.append([Message(role="user", parts=(Text(text="And now?"),), time=NOW)])
    # one that went on for long ended later than its transcript tells
    await root.session(173, minutes=10 * 24 * 60)
    again = Transcript(root.files, transcript_path("main", "s173"), session="s173", redactor=Redactor(KEY))
    await again.append([Message(role="user", parts=(Text(text="Hello."),), time=NOW - timedelta(days=173))])
    root.clock.turn(days=8)
    known = await plan_pruning(root.files, now=root.clock.now(), config=CONFIG)
    assert known == []
    await root.pruned()
    root.clock.turn(days=170)
    found = await plan_pruning(root.files, now=root.clock.now(), config=CONFIG)
    assert [fate for fate in found if fate.path == path] == [
        PlannedPruning(path=path, action="announce", rule="session_retention_days = 180")
    ]


@pytest.mark.req("AS-MAINT-04", "HE-O-retention")
async def test_what_holds_a_pinned_memory_stays_and_none_keeps_for_ever(root: Root) -> None:
    await root.session(500, pinned=True)
    await root.session(300)
    assert await plan_pruning(root.files, now=NOW, config=MaintenanceConfig(session_retention_days=None)) == []
    assert [fate.path for fate in await plan_pruning(root.files, now=NOW, config=CONFIG)] == [
        "workspace/sessions/2026-01-25-08h00.md"
    ]


@pytest.mark.req("AS-MAINT-04")
async def test_without_an_announcement_what_is_due_goes_at_once(root: Root) -> None:
    for days in range(180, 206):
        await root.session(days)
    assert await root.pruned(MaintenanceConfig(announce_days=0)) == {"announced": 0, "trashed": 25, "deleted": 0}
    assert await root.paths("workspace/sessions") == [
        f"workspace/sessions/{NOW - timedelta(days=180):%Y-%m-%d-%Hh%M}.md"
    ]


@pytest.mark.req("AS-MAINT-04")
async def test_a_damaged_record_of_announcements_only_lets_a_file_stay_longer(root: Root) -> None:
    await root.session(190)
    await root.pruned()
    stored = await root.files.read("trash/announced.json")
    await root.files.replace("trash/announced.json", b"\xff[", expected=stored.version)
    root.clock.turn(days=8)
    assert await root.pruned() == {"announced": 1, "trashed": 0, "deleted": 0}


@pytest.mark.req("AS-MAINT-02", "AS-MAINT-05")
async def test_the_steps_run_in_order_and_one_that_fails_is_recorded_and_stops_no_other() -> None:
    ran: list[str] = []
    heard: list[Event] = []
    clock = HandClock()

    def step(name: str, error: Exception | None = None) -> CycleStep:
        async def act() -> Mapping[str, int]:
            await anyio.lowlevel.checkpoint()
            ran.append(name)
            if error:
                raise error
            return {"files": 1}

        return CycleStep(name=name, act=act, stage="prune" if name == "prune" else None)

    steps = [step("expire", OSError()), step("consolidate", ZeroDivisionError()), step("prune"), step("reindex")]
    cycle = MaintenanceCycle(steps=steps, emitter=Emitter(clock, (heard.append,)), scope=Scope(user="me"))
    done = await cycle.run()
    assert ran == ["expire", "consolidate", "prune", "reindex"]
    assert done[:3] == [
        StepResult(name="expire", error="OSError"),
        StepResult(name="consolidate", error="ZeroDivisionError"),
        StepResult(name="prune", counts={"files": 1}),
    ]
    ended = [(event.stage, event.status, event.reason) for event in heard if event.status != "started"]
    assert ended == [("prune", "finished", None), ("maintain", "failed", "failed: expire, consolidate")]
    assert (await cycle())["failed"] == 2
