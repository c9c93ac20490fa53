"""Dreams: all curated memory read anew, in four phases, when nobody is at work, and never lost by it."""

import json
import os
import socket
from contextvars import copy_context
from datetime import UTC, date, datetime, timedelta
from inspect import signature

import anyio
import anyio.lowlevel
import pytest

from hand_clock import HandClock
from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.curation import (
    CURSOR_PATH,
    ConsolidationConfig,
    ConsolidationInput,
    ConsolidationResult,
    Consolidator,
    undo_change,
)
from ricordo.curation.adviser import Adviser
from ricordo.curation.consolidator import BUSY, NO_PROPOSAL, PROPOSAL_OUTDATED, PROPOSAL_PENDING
from ricordo.curation.run_state import DREAM_STATE_PATH, LEASE_PATH, PROPOSAL_PATH, hold_lease
from ricordo.curation.types import Advice, LineMerge, Retirement
from ricordo.errors import StorageFailed
from ricordo.events import Emitter, Event
from ricordo.guard import Redactor
from ricordo.jobs.turn_activity import TurnActivity, get_turn_activity
from ricordo.storage import ABSENT
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    MEMORY_PATH,
    ChangeSets,
    append_entries,
    list_history,
    parse_entries,
    render_entry,
    render_prompt_lines,
)
from ricordo.workspace.entry_codec import inline_fields, without_field_comment
from ricordo.workspace.history.retention import HistoryConfig, trim_history

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
DAY = date(2026, 11, 21)
LEDGER = "workspace/memory/2026-11-21.md"
TOPIC = "workspace/memory/topics/more-facts.md"
ALL = ["orient", "gather", "consolidate", "prune"]


class Root:
    """The files of a root and what works on them."""

    def __init__(self, config: ConsolidationConfig | None = None, adviser: Adviser | None = None) -> None:
        self.files = InMemoryFiles()
        self.clock = HandClock(datetime(2026, 11, 21, 8, tzinfo=UTC))
        self.ids = MonotonicIds(self.clock, lambda bits: 7)
        self.changes = ChangeSets(self.files, clock=self.clock, ids=self.ids)
        self.turns = TurnActivity()
        self.heard: list[Event] = []
        self.config = config or ConsolidationConfig()
        self.consolidator = self.with_adviser(adviser)

    def with_adviser(self, adviser: Adviser | None) -> Consolidator:
        return Consolidator(
            files=self.files, changes=self.changes, redactor=Redactor(KEY), clock=self.clock, key=KEY,
            config=self.config, adviser=adviser, yield_policy=self.turns.yield_policy,
            emitter=Emitter(self.clock, (self.heard.append,)),
        )  # fmt: skip

    def entry(self, content: str, **more: object) -> Entry:
        self.clock.turn(1)
        given = {"by": "flush", "confidence": 0.9, "kind": "decision", **more}
        return Entry(content=content, id=self.ids.new(), time=self.clock.now(), **given)  # type: ignore[arg-type]

    async def note(self, content: str, **more: object) -> Entry:
        made = self.entry(content, **more)
        await append_entries(self.files, DAY, [made], Redactor(KEY))
        return made

    async def write(self, path: str, data: bytes) -> None:
        info = await self.files.info(path)
        version = (await self.files.read(path)).version if info else ABSENT
        await self.files.replace(path, data, expected=version)

    async def dream(self) -> ConsolidationResult:
        return await self.consolidator.consolidate(deep=True)

    async def sessions(self, *names: str, text: str = "{}\n") -> None:
        for name in names:
            await self.files.append(f"workspace/agents/main/sessions/{name}.log.jsonl", text.encode())

    async def why_not(self, quiet: float = 3_600.0, without: tuple[str, ...] = ()) -> str:
        return await self.consolidator.find_reason_against_dream(quiet_seconds=quiet, active_sessions=without)

    async def lines(self, path: str = MEMORY_PATH) -> list[str]:
        return [line for line in render_prompt_lines((await self.files.read(path)).data) if line.startswith("- ")]

    async def contents(self) -> dict[str, bytes]:
        listed = [info.path for info in await self.files.list("workspace")]
        return {path: (await self.files.read(path)).data for path in listed}

    def phases(self, status: str = "started") -> list[str]:
        return [event.stage for event in self.heard if event.status == status]


async def curated(root: Root, *entries: Entry, topic: tuple[Entry, ...] = ()) -> None:
    """Write curated memory by hand as runs of before could have left it, all of it in the ledger and read."""
    await append_entries(root.files, DAY, [*entries, *topic], Redactor(KEY))
    lines = "".join(map(render_entry, entries))
    listing = "## Topics\n\n1. [More facts](memory/topics/more-facts.md)\n\n" if topic else ""
    await root.write(MEMORY_PATH, f"# Memory\n\n{listing}## Decisions\n\n{lines}".encode())
    if topic:
        front = '---\nname: "More facts"\ndescription: ""\ntype: "project"\n---\n# More facts\n\n'
        await root.write(TOPIC, (front + "".join(map(render_entry, topic))).encode())
    await root.consolidator.consolidate(force=True, use_model=False)
    root.heard.clear()


@pytest.mark.req("HE-C3", "AS-CONS-02", "CC-GATES")
async def test_a_dream_leaves_one_copy_of_a_duplicate_and_one_side_of_a_contradiction() -> None:
    root = Root()
    old, new = (
        root.entry("We use MySQL for the orders."),
        root.entry("We switched the orders from MySQL to PostgreSQL."),
    )
    once = root.entry("We deploy only from main.")
    twice = root.entry("We deploy from main only.", kind="convention")
    thrice = root.entry("We deploy only from main!")
    retro = (
        root.entry("The weekly retro of the whole team is held on Fridays in the small room."),
        root.entry("The weekly retro of the team is held in the small room on Fridays."),
    )
    past, reworded, now = (
        root.entry("We use Jenkins for the builds."),
        root.entry("For the builds we use Jenkins."),
        root.entry("We switched the builds from Jenkins to Drone."),
    )
    await curated(root, new, once, twice, past, reworded, topic=(thrice, old, *retro, now))
    before = (await root.files.read(MEMORY_PATH)).data
    assert len(await root.lines()) + len(await root.lines(TOPIC)) == 10
    done = await root.dream()
    held = [*await root.lines(), *await root.lines(TOPIC)]
    assert sum("deploy" in line for line in held) == 1
    assert [line for line in held if "orders" in line] == [f"- {new.content}"]
    assert sum("retro" in line for line in held) == 1
    assert [line for line in held if "builds" in line] == [f"- {now.content}"]
    assert (done.merged, done.superseded, done.deep) == (4, 3, True)
    after = (await root.files.read(MEMORY_PATH)).data
    assert after.count(b"\n") <= before.count(b"\n")
    assert after.count(b"](memory/topics/") <= before.count(b"](memory/topics/")
    states = {found.entry.id: found.entry for found in parse_entries((await root.files.read(LEDGER)).data, LEDGER)}
    assert (states[old.id].state, dict(states[old.id].extra)["successor"]) == ("superseded", new.id)
    assert {states[one.id].state for one in (past, reworded)} == {"superseded"}
    # nothing is left to do, and the file stays as it is
    again = await root.dream()
    assert (again.merged, again.superseded, again.change_id) == (0, 0, "")
    assert (await root.files.read(MEMORY_PATH)).data == after


@pytest.mark.req("HE-C3-phases", "HE-C3")
async def test_the_four_phases_of_a_dream_are_reported_in_their_order_with_what_they_changed() -> None:
    root = Root()
    await curated(root, root.entry("We deploy only from main."), root.entry("We deploy from main only."))
    await root.dream()
    assert root.phases("started") == root.phases("finished") == ALL
    told = {event.stage: event for event in root.heard if event.status == "finished"}
    assert told["orient"].reason == "dream"
    assert told["consolidate"].counts["merged"] == 1
    assert (told["prune"].counts["files"], told["prune"].counts["removed"]) == (1, 2)
    root.heard.clear()
    assert (await root.dream()).change_id == ""
    assert root.phases("started") == root.phases("finished") == ALL, "also where nothing is left to do"


@pytest.mark.req("HE-C3-guard", "HE-C3")
async def test_lines_of_people_and_pinned_ones_stay_in_a_dream() -> None:
    root = Root()
    pinned = root.entry("We deploy only from main.", pinned=True)
    await curated(root, pinned, root.entry("We deploy from main only."), root.entry("We use uv for all projects."))
    stored = (await root.files.read(MEMORY_PATH)).data.replace(b"uv for all projects", b"uv for most projects")
    await root.write(MEMORY_PATH, stored + b"\n## Mine\n\n- My own line.\n- My own line.\n")
    await root.note("We use uv for all projects.")
    await root.dream()
    after = (await root.files.read(MEMORY_PATH)).data
    assert render_entry(pinned).encode() in inline_fields(after)
    assert after.count(b"- My own line.\n") == 2
    assert b"We use uv for most projects." in after
    assert b"from main only" not in after


@pytest.mark.req("CC-DREAMCOPY", "AS-CURATED-01", "HE-C3-guard", "HE-C3", "HE-C3-phases")
async def test_a_preview_changes_nothing_and_an_applied_dream_is_taken_back_whole() -> None:
    root = Root()
    old, new = (
        root.entry("We use MySQL for the orders."),
        root.entry("We switched the orders from MySQL to PostgreSQL."),
    )
    await curated(root, old, new, root.entry("We deploy only from main."), root.entry("We deploy from main only."))
    await root.note("The staging server is called Kestrel.")
    before = await root.contents()
    proposal = await root.consolidator.preview(deep=True)
    assert {MEMORY_PATH, LEDGER} == {*proposal.documents}
    assert await root.contents() == before
    root.heard.clear()
    held = await root.consolidator.consolidate(deep=True, hold=True)
    assert held.skipped == PROPOSAL_PENDING
    assert (root.phases(), root.phases("finished"), root.phases("skipped")) == (ALL, ALL[:3], ALL[3:])
    assert {path: data for path, data in (await root.contents()).items() if path != PROPOSAL_PATH} == before
    done = await root.consolidator.approve()
    after = await root.contents()
    assert done.change_id
    assert {path: after[path] for path in proposal.documents} == dict(proposal.documents)
    assert PROPOSAL_PATH not in after
    (item,) = [each for each in await list_history(root.files, root.changes) if each.id == done.change_id]
    await undo_change(root.files, root.changes, item, who="me")
    apart = {CURSOR_PATH, DREAM_STATE_PATH}
    assert {path: data for path, data in (await root.contents()).items() if path not in apart} == {
        path: data for path, data in before.items() if path not in apart
    }


@pytest.mark.req("CC-DREAMCOPY", "HE-C3-guard")
async def test_what_is_approved_is_what_was_proposed_and_nothing_else() -> None:
    asked = 0

    async def advise(material: ConsolidationInput, pause: object) -> Advice:
        nonlocal asked
        del pause
        asked += 1
        ids = [one.entry.id for one in material.fresh]
        return Advice(merges=(LineMerge(parents=tuple(ids[:2]), content=MERGED),))

    root = Root(adviser=advise)
    assert (await root.consolidator.approve()).skipped == NO_PROPOSAL
    for text in ("Marta is allergic to peanuts.", "Peanuts make Marta itch because of an allergy."):
        await root.note(text)
    held = await root.consolidator.consolidate(force=True, hold=True)
    assert (held.skipped, held.merged) == (PROPOSAL_PENDING, 1)
    assert (await root.consolidator.consolidate(force=True, hold=True)).skipped == PROPOSAL_PENDING
    assert asked == 1
    await root.note("The staging server is called Kestrel.")
    assert (await root.consolidator.approve()).skipped == PROPOSAL_OUTDATED
    assert (await root.consolidator.consolidate(force=True, hold=True)).skipped == PROPOSAL_PENDING
    assert asked == 2
    assert (await root.consolidator.approve()).merged == 1
    assert sorted(await root.lines()) == [f"- {MERGED}", "- The staging server is called Kestrel."]
    assert asked == 2


MERGED = "Marta is allergic to peanuts, an allergy that makes Marta itch."


@pytest.mark.req("HE-C3-guard", "HE-C3", "CC-DREAMCOPY")
async def test_a_dream_retires_twenty_at_most_never_what_is_a_persons_and_for_thirty_days_it_comes_back() -> None:
    root = Root()
    entries = [root.entry(f"Locker {number} is for the boots of team {number * 7}.") for number in range(60)]
    pinned, own = root.entry("The gate code is on paper.", pinned=True), root.entry("I like rain.", by="user")

    async def advise(material: ConsolidationInput, pause: object) -> Advice:
        del material, pause
        chosen = [pinned, own, *entries[:25]]
        return Advice(retired=tuple(Retirement(id=one.id, reason="outdated") for one in chosen))

    root.consolidator = root.with_adviser(advise)
    await curated(root, *entries, pinned, own)
    before = await root.contents()
    done = await root.dream()
    assert done.retired == 20
    assert sorted(done.refused) == ["kept", "kept", *["too many"] * 5]
    held = await root.lines()
    assert {"- The gate code is on paper.", "- I like rain."} <= {*held}
    assert len(held) == 42
    root.clock.turn(days=30)
    await trim_history(root.files, root.changes, now=root.clock.now(), config=HistoryConfig(max_bytes=0))
    (item,) = [each for each in await list_history(root.files, root.changes) if each.id == done.change_id]
    await undo_change(root.files, root.changes, item, who="me")
    after = await root.contents()
    assert (after[MEMORY_PATH], after[LEDGER]) == (before[MEMORY_PATH], before[LEDGER])


@pytest.mark.req("HE-C3-guard")
def test_the_share_that_may_be_retired_grows_with_memory() -> None:
    from ricordo.curation import CandidateEntry
    from ricordo.curation.reconciliation import reconcile

    ids = [f"01m{number:023d}" for number in range(300)]
    held = [
        CandidateEntry(entry=Entry(content=f"Locker {n} has boots {n}.", id=name, by="flush"))
        for n, name in enumerate(ids)
    ]
    advice = Advice(retired=tuple(Retirement(id=name, reason="done") for name in ids))
    settled = reconcile(held, [], fixed=(), config=ConsolidationConfig(), advice=advice)
    assert len(settled.retired) == 30


@pytest.mark.req("CC-GATES", "HE-C3-task")
async def test_a_dream_begins_by_itself_only_a_day_after_the_last_and_after_five_other_sessions() -> None:
    root = Root()
    await root.sessions("a", "b", "c", "d")
    assert await root.why_not() == "few sessions changed"
    await root.sessions("e")
    assert await root.why_not(without=("a",)) == "few sessions changed"
    assert await root.why_not() == ""
    assert await root.why_not(quiet=10.0) == "a session is at work"
    await root.note("We deploy only from main.")
    await root.dream()
    await root.sessions("f", "g", "h", "i", "a")
    assert await root.why_not() == "the last dream is not long ago"
    root.clock.turn(hours=23)
    assert await root.why_not() == "the last dream is not long ago"
    root.clock.turn(hours=1)
    assert await root.why_not() == ""
    await root.note("We use uv for all projects.")
    assert (await root.consolidator.consolidate(force=True)).kept == 1
    assert await root.why_not() == "", "to read what is new is no dream"
    assert await root.why_not(without=("a",)) == "few sessions changed", "since the last dream"
    # one whose lock another holds, one that fails, and one whose answer is of no use, were none
    async with hold_lease(root.files, root.clock) as is_ours:
        assert is_ours
        assert (await root.dream()).skipped == BUSY
    assert await root.why_not() == ""

    async def failing(material: ConsolidationInput, pause: object) -> Advice:
        raise StorageFailed

    root.consolidator = root.with_adviser(failing)
    with pytest.raises(StorageFailed):
        await root.dream()

    async def useless(material: ConsolidationInput, pause: object) -> Advice:
        return Advice(flaw="it is empty")

    root.consolidator = root.with_adviser(useless)
    assert (await root.dream()).skipped == "rejected: it is empty"
    assert await root.why_not() == ""
    # of a holder that is dead, or silent for an hour, the lock is taken over
    row = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "run": "of a life before",
        "at": "2026-11-22T08:00Z",
    }
    for other in (
        {},
        {"pid": 2**22 + 1},
        {"pid": 1, "at": (root.clock.now() - timedelta(minutes=61)).isoformat()},
        {"host": "elsewhere", "at": (root.clock.now() - timedelta(minutes=61)).isoformat()},
        {"host": "elsewhere", "at": (root.clock.now() + timedelta(minutes=61)).isoformat()},
    ):
        await root.write(LEASE_PATH, json.dumps({**row, "at": root.clock.now().isoformat(), **other}).encode())
        async with hold_lease(root.files, root.clock) as is_ours:
            assert is_ours
    for other in ({"pid": 1}, {"host": "elsewhere"}):
        beat = (root.clock.now() - timedelta(minutes=59)).isoformat()
        await root.write(LEASE_PATH, json.dumps({**row, "at": beat, **other}).encode())
        async with hold_lease(root.files, root.clock) as is_ours:
            assert not is_ours
        assert await root.files.info(LEASE_PATH)


@pytest.mark.req("HE-C3-idle", "CC-GATES")
async def test_the_lock_gives_signs_of_life_and_is_gone_afterwards() -> None:
    root = Root()
    assert signature(hold_lease).parameters["heartbeat"].default * 2 < timedelta(hours=1).total_seconds()
    async with hold_lease(root.files, root.clock, heartbeat=0.01) as is_ours:
        assert is_ours
        first = (await root.files.read(LEASE_PATH)).data
        root.clock.turn(minutes=2)
        with anyio.fail_after(20):
            while (await root.files.read(LEASE_PATH)).data == first:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    assert await root.files.info(LEASE_PATH) is None


@pytest.mark.req("HE-C3-idle", "HE-A5", "HE-T6", "CC-GATES")
async def test_no_step_of_a_dream_begins_while_a_turn_runs_and_a_turn_waits_for_none() -> None:
    root = Root()
    await curated(root, root.entry("We deploy only from main."), root.entry("We deploy from main only."))
    asked, answered = anyio.Event(), anyio.Event()

    async def advise(material: ConsolidationInput, pause: object) -> Advice:
        asked.set()
        await answered.wait()
        return Advice()

    root.consolidator = root.with_adviser(advise)
    async with anyio.create_task_group() as group:
        with root.turns.turn("s"):
            root.heard.clear()

            async def dreaming() -> None:
                await anyio.lowlevel.checkpoint()
                await root.dream()

            with anyio.CancelScope():
                group.start_soon(in_no_turn, dreaming)
                await anyio.sleep(0.1)
            assert root.phases() == []
        with anyio.fail_after(20):
            await asked.wait()
        assert root.phases() == ALL[:3]
        with root.turns.turn("s"):
            answered.set()
            await anyio.sleep(0.1)
            assert root.phases() == ALL[:3]
    assert root.phases("finished") == ALL


@pytest.mark.req("HE-C3-idle", "HE-A5", "HE-T6")
@pytest.mark.parametrize("phase", ALL[:3])
async def test_where_a_turn_begins_between_two_phases_the_next_one_waits_for_its_end(phase: str) -> None:
    root, elsewhere = Root(), copy_context()
    await curated(root, root.entry("We deploy only from main."), root.entry("We deploy from main only."))
    turn, begun = root.turns.turn("s"), anyio.Event()

    class Hearing(list[Event]):
        def append(self, event: Event) -> None:
            super().append(event)
            if (event.stage, event.status) == (phase, "finished") and not begun.is_set():
                elsewhere.run(turn.__enter__)
                begun.set()

    root.heard = Hearing()
    root.consolidator = root.with_adviser(None)
    async with anyio.create_task_group() as group:
        group.start_soon(root.dream)
        with anyio.fail_after(20):
            await begun.wait()
        await anyio.sleep(0.05)
        assert root.phases() == ALL[: ALL.index(phase) + 1]
        elsewhere.run(turn.__exit__, None, None, None)
    assert root.phases("finished") == ALL


async def in_no_turn(work: object) -> None:
    from ricordo.jobs import turn_activity as turns

    turns._WITHIN_TURN.set(False)
    await work()  # type: ignore[operator]


@pytest.mark.req("AS-CONS-06", "HE-C3-idle")
async def test_within_a_turn_nobody_waits_for_it() -> None:
    turns = TurnActivity()
    with anyio.fail_after(20), turns.turn("s"):
        await turns.yield_policy().pause()
        assert turns.quiet_seconds == 0.0
    assert turns.quiet_seconds < 5
    assert turns.sessions == {"s"}
    assert TurnActivity().quiet_seconds == float("inf")
    mine = get_turn_activity("/some/root")
    assert get_turn_activity("/some/root") is mine
    assert get_turn_activity("/other/root") is not mine


@pytest.mark.req("AS-BUG-16", "HE-C3-guard", "HE-C3-phases", "CC-DREAMCOPY", "CC-GATES")
async def test_a_run_is_cut_off_in_each_phase_and_the_next_one_does_all_of_it() -> None:
    for phase in ALL:
        root = Root()
        await curated(root, root.entry("We deploy only from main."), root.entry("We deploy from main only."))

        class Cut(BaseException):
            pass

        def cutting(event: Event, phase: str = phase, cut: type[BaseException] = Cut) -> None:
            if (event.stage, event.status) == (phase, "started"):
                raise cut

        whole = root.consolidator
        root.consolidator = Consolidator(
            files=root.files, changes=root.changes, redactor=Redactor(KEY), clock=root.clock, key=KEY,
            emitter=Emitter(root.clock, (cutting,)),
        )  # fmt: skip
        before = (await root.files.read(MEMORY_PATH)).data
        with pytest.raises(BaseException):  # noqa: B017, PT011  (the cut may stand in a group)
            await root.dream()
        assert (await root.files.read(MEMORY_PATH)).data == before
        assert await root.files.info(DREAM_STATE_PATH) is None
        root.consolidator = whole
        assert (await root.dream()).merged == 1
        root.clock.turn(timedelta(days=1).total_seconds())


@pytest.mark.req("HE-C1-index", "CC-INDEXCAP")
@pytest.mark.parametrize(
    ("cap", "config"),
    [
        ("lines", ConsolidationConfig(max_lines=40)),
        ("bytes", ConsolidationConfig(max_bytes=4_000)),
        ("tokens", ConsolidationConfig(max_memory_tokens=500)),
    ],
)
async def test_the_cap_that_acts_first_is_told_and_the_newest_and_the_most_used_are_never_left_out(
    cap: str, config: ConsolidationConfig
) -> None:
    root = Root(config)
    entries = [
        await root.note(f"Locker {number} is for the boots of team {number * 7}.", kind="fact") for number in range(80)
    ]
    for number in range(80):
        await root.note(f"We decided that bench {number} is for the gloves of crew {number * 11}.")
    opened = entries[:3]
    newest = await root.note("The kettle leaks.", kind="fact", confidence=0.7)

    async def used() -> dict[str, int]:
        return {one.id: 40 for one in opened}

    root.consolidator = Consolidator(
        files=root.files, changes=root.changes, redactor=Redactor(KEY), clock=root.clock, key=KEY, config=config,
        read_use_counts=used, emitter=Emitter(root.clock, (root.heard.append,)),
    )  # fmt: skip
    done = await root.consolidator.consolidate(force=True)
    assert done.cap == cap
    (told,) = [event for event in root.heard if (event.stage, event.status) == ("prune", "finished")]
    assert cap in (told.reason or "")
    memory = (await root.files.read(MEMORY_PATH)).data
    held = {found.entry.id for found in parse_entries(memory, MEMORY_PATH)}
    assert {newest.id, *(one.id for one in opened)} <= held
    assert len(held) < 161
    shown = without_field_comment(memory)
    assert (shown.count(b"\n") <= config.max_lines, len(shown) <= config.max_bytes) == (True, True)
    # all of it is somewhere, and what nobody touched is not written again
    texts = "".join(data.decode() for path, data in (await root.contents()).items() if "topics/" in path)
    assert all(f"^{one.id}" in texts or one.id in held for one in entries)
    assert (await root.consolidator.consolidate(force=True)).change_id == ""
