"""Work that memory does for itself stands still while a turn runs, and comes to the same end."""

import threading
from collections.abc import Iterator
from contextvars import copy_context
from datetime import UTC, date, datetime
from types import SimpleNamespace

import anyio
import pytest

from hand_clock import HandClock
from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.concurrency import NoYield, use_yield_policy, yield_point
from ricordo.curation import Consolidator
from ricordo.curation.contradictions import RelatedEntryIndex
from ricordo.guard import Redactor
from ricordo.jobs import turn_activity as turns_module
from ricordo.jobs.turn_activity import TurnActivity, TurnYieldPolicy
from ricordo.testing import InMemoryFiles
from ricordo.workspace import MEMORY_PATH, ChangeSets, append_entries

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-C3-idle")]

KEY = b"k" * 32
DAY = date(2026, 11, 21)
ENTRIES = 30
REACHED = 10


class Desk:
    """A root whose proposing stops at its tenth entry until it is let go, and is counted."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, patience: float = 60.0, share: float = 0.05, *, held: bool = True
    ) -> None:
        monkeypatch.setattr(turns_module, "_SLICE_SECONDS", 0.0)
        self.turns = TurnActivity()
        self.files = InMemoryFiles()
        self.clock = HandClock(datetime(2026, 11, 21, 8, tzinfo=UTC))
        self.ids = MonotonicIds(self.clock, lambda bits: 7)
        changes = ChangeSets(self.files, clock=self.clock, ids=self.ids)
        self.consolidator = Consolidator(
            files=self.files, changes=changes, redactor=Redactor(KEY), clock=self.clock, key=KEY,
            yield_policy=lambda: self.turns.yield_policy(seconds=patience, share=share),
        )  # fmt: skip
        self.added = 0
        self.reached, self.go_on = threading.Event(), threading.Event()
        add = RelatedEntryIndex.add

        def counted(nearby: RelatedEntryIndex, entry: Entry) -> None:
            self.added += 1
            if self.added == REACHED:
                self.reached.set()
                self.go_on.wait(10)
            add(nearby, entry)

        if held:
            monkeypatch.setattr(RelatedEntryIndex, "add", counted)

    async def noted(self) -> None:
        entries = [
            Entry(content=f"Module {number} uses tool {number}.", id=self.ids.new(), kind="decision", by="user")
            for number in range(ENTRIES)
        ]
        await append_entries(self.files, DAY, entries, Redactor(KEY))

    async def at_the_tenth(self) -> None:
        while not self.reached.is_set():  # noqa: ASYNC110  (it is set by a thread)
            await anyio.sleep(0.005)

    async def curated(self) -> bytes:
        return (await self.files.read(MEMORY_PATH)).data


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    made = Desk(monkeypatch)
    yield made
    made.go_on.set()


async def test_proposing_does_not_advance_while_a_turn_runs_and_does_afterwards(desk: Desk) -> None:
    await desk.noted()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: desk.consolidator.consolidate(force=True))
            await desk.at_the_tenth()
            with desk.turns.turn("s"):
                desk.go_on.set()
                await anyio.sleep(0.1)
                assert desk.added == REACHED
    assert desk.added == ENTRIES
    assert (await desk.curated()).count(b"uses tool") == ENTRIES


async def test_what_a_run_that_stood_still_comes_to_is_what_an_undisturbed_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undisturbed = Desk(monkeypatch, held=False)
    await undisturbed.noted()
    await undisturbed.consolidator.consolidate(force=True)
    desk = Desk(monkeypatch)
    await desk.noted()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: desk.consolidator.consolidate(force=True))
        await desk.at_the_tenth()
        for _ in range(3):
            with desk.turns.turn("s"):
                desk.go_on.set()
                await anyio.sleep(0.01)
    assert await desk.curated() == await undisturbed.curated()


async def test_a_run_that_is_cancelled_while_it_stands_still_ends_and_writes_nothing(desk: Desk) -> None:
    await desk.noted()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: desk.consolidator.consolidate(force=True))
            await desk.at_the_tenth()
            with desk.turns.turn("s"):
                desk.go_on.set()
                await anyio.sleep(0.02)
                group.cancel_scope.cancel()
    await anyio.sleep(0.1)
    assert desk.added == REACHED
    assert await desk.files.info(MEMORY_PATH) is None


@pytest.mark.req("AS-CONS-06")
async def test_a_chat_that_never_rests_does_not_keep_a_run_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, patience=0.0, share=0.5)
    desk.go_on.set()
    await desk.noted()
    desk.turns._running = 1
    with anyio.fail_after(10):
        done = await desk.consolidator.consolidate(force=True)
    assert done.kept == ENTRIES


def test_after_its_patience_a_run_works_for_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(turns_module, "check_cancelled", lambda: None)
    turns = TurnActivity()
    turns._running = 1
    run = TurnYieldPolicy(turns, seconds=30.0, share=0.05)
    worked, stood_first = 0.0, 0.0
    for _ in range(400):
        now[0] += 0.001
        worked += 0.001
        before = now[0]
        run.yield_now()
        stood_first = stood_first or now[0] - before
    assert stood_first == pytest.approx(30.0, abs=0.05)
    assert worked / (now[0] - 100.0 - stood_first) == pytest.approx(0.05, rel=0.05)


def test_in_a_quiet_moment_nothing_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "check_cancelled", lambda: None)
    monkeypatch.setattr(turns_module, "_SLICE_SECONDS", 0.0)
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it stood still"))
    TurnYieldPolicy(TurnActivity(), seconds=30.0, share=0.05).yield_now()


@pytest.mark.req("AS-CONS-06")
async def test_what_cannot_be_ended_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "_SLICE_SECONDS", 0.0)
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it stood still"))
    turns = TurnActivity()
    run = turns.yield_policy()
    turns._running = 1
    run.yield_now()
    alone = threading.Thread(target=run.yield_now)
    alone.start()
    alone.join()


async def test_a_run_that_looks_often_for_turns_reads_what_a_person_emptied(desk: Desk) -> None:
    desk.go_on.set()
    await desk.noted()
    await desk.consolidator.consolidate(force=True)
    lines = (await desk.curated()).splitlines(keepends=True)
    version = (await desk.files.read(MEMORY_PATH)).version
    await desk.files.replace(MEMORY_PATH, b"".join(line for line in lines if b"^" not in line), expected=version)
    [other] = [Entry(content="We decided to use uv.", id=desk.ids.new(), kind="decision", by="user")]
    await append_entries(desk.files, DAY, [other], Redactor(KEY))
    await desk.consolidator.consolidate(force=True)
    assert b"We decided to use uv." in await desk.curated()


async def test_a_turn_that_has_just_ended_is_not_disturbed_while_it_is_told() -> None:
    turns = TurnActivity()
    with turns.turn("s"):
        within = turns.is_active
    with anyio.fail_after(20):
        before = turns.is_active
        await turns.yield_policy().pause()
    assert [within, before, turns.is_active] == [False, True, False]


def test_work_gives_way_as_the_block_that_runs_it_says() -> None:
    gave: list[str] = []

    class Telling(NoYield):
        def yield_now(self) -> None:
            gave.append("way")

    yield_point()
    with use_yield_policy(Telling()):
        yield_point()
        with use_yield_policy(NoYield()):
            yield_point()
        yield_point()
    yield_point()
    assert gave == ["way", "way"]


async def test_a_run_waits_for_a_turn_of_almost_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, moments, elsewhere = TurnActivity(), [0.0], copy_context()
    turn = turns.turn("s")

    async def sleep(seconds: float) -> None:
        moments[0] += seconds
        if moments[0] >= 29 and turns.is_active:
            elsewhere.run(turn.__exit__, None, None, None)
            moments[0] += 0.1

    monkeypatch.setattr(turns_module, "time", SimpleNamespace(monotonic=lambda: moments[0]))
    monkeypatch.setattr(turns_module, "anyio", SimpleNamespace(sleep=sleep))
    elsewhere.run(turn.__enter__)
    await turns.yield_policy().pause()
    assert not turns.is_active
    assert moments[0] >= 29
