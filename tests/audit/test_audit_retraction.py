"""Taking back an append takes it out of curated memory too; taking that back restores every byte."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.clock import MonotonicIds
from ricordo.curation import (
    CURSOR_PATH,
    NOTHING_NEW,
    ConsolidationConfig,
    ConsolidationResult,
    Consolidator,
    undo_change,
)
from ricordo.curation.undo import resolve_history_item
from ricordo.errors import UndoRefused
from ricordo.guard import Redactor
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    MEMORY_PATH,
    ChangeSets,
    append_entries,
    list_history,
    read_all_entries,
    render_prompt_lines,
)
from ricordo.workspace.layout import TOPICS

pytestmark = [pytest.mark.anyio, pytest.mark.req("HE-O-audit-forget")]

KEY = bytes(32)
DAY = date(2026, 11, 21)
LEDGER = "workspace/memory/2026-11-21.md"
OLD, NEW = "We use MySQL for the orders.", "We switched the orders from MySQL to PostgreSQL."
LATER = "We switched the orders from PostgreSQL to SQLite."


class Ticking:
    """A clock that moves on by a second each time it is asked."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 8, tzinfo=UTC)

    def now(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time

    def today(self) -> date:
        return DAY


class Room:
    """A workspace that is consolidated when a test says so."""

    def __init__(self, config: ConsolidationConfig | None = None) -> None:
        self.files = InMemoryFiles()
        self.clock = Ticking()
        self.ids = MonotonicIds(self.clock)
        self.changes = ChangeSets(self.files, clock=self.clock, ids=self.ids)
        self._consolidator = Consolidator(
            files=self.files,
            changes=self.changes,
            redactor=Redactor(KEY),
            clock=self.clock,
            key=KEY,
            config=config,
        )

    async def save(self, *contents: str, **more: object) -> Entry:
        now = self.clock.now()
        made = [Entry(content=each, id=self.ids.new(), time=now, **more) for each in contents]  # type: ignore[arg-type]
        await append_entries(self.files, DAY, made, Redactor(KEY))
        return made[0]

    async def run(self) -> ConsolidationResult:
        return await self._consolidator.consolidate(force=True)

    async def undo(self, name: str) -> str:
        """Take back the write of this id, and return the id of the change that did it."""
        item = resolve_history_item(await list_history(self.files, self.changes), name)
        return (await undo_change(self.files, self.changes, item, who="user")).id

    async def state(self) -> dict[str, bytes]:
        listed = [info.path for info in await self.files.list("workspace") if info.path != CURSOR_PATH]
        return {path: (await self.files.read(path)).data for path in listed}

    async def shown(self) -> list[str]:
        document = (await self.state()).get(MEMORY_PATH, b"")
        return [line.removeprefix("- ") for line in render_prompt_lines(document) if line.startswith("- ")]

    async def edit(self, path: str, old: str, new: str) -> None:
        stored = await self.files.read(path)
        await self.files.replace(path, stored.data.replace(old.encode(), new.encode()), expected=stored.version)

    async def states(self) -> dict[str, str]:
        return {found.entry.content: found.entry.state for found in await read_all_entries(self.files)}


async def test_what_is_taken_back_leaves_curated_memory_and_no_later_run_brings_it_back() -> None:
    room = Room()
    kept = await room.save("Tabs are four spaces.", kind="convention")
    gone = await room.save("Nadia owns staging.", "Paul owns billing.", by="flush", confidence=0.9)
    await room.run()
    before = await room.state()
    taken = await room.undo(gone.id)
    assert {found.entry.id for found in await read_all_entries(room.files)} == {kept.id}
    assert b"Facts" not in (await room.state())[MEMORY_PATH]
    assert (await room.run()).skipped == NOTHING_NEW
    assert await room.shown() == ["Tabs are four spaces."]
    await room.undo(taken)
    assert await room.state() == before
    assert (await room.run()).skipped == NOTHING_NEW


@pytest.mark.req("HE-O-conflict")
async def test_what_it_had_replaced_holds_again_as_curated_memory_had_it() -> None:
    room = Room()
    await room.save(OLD, "We use MySQL for the orders!", kind="decision")
    await room.run()
    curated = (await room.state())[MEMORY_PATH]
    new = await room.save(NEW, kind="decision")
    await room.run()
    replaced = await room.state()
    assert await room.shown() == [NEW]
    taken = await room.undo(new.id)
    assert (await room.state())[MEMORY_PATH] == curated
    assert set((await room.states()).values()) == {"active"}
    assert b"successor" not in (await room.state())[LEDGER]
    assert (await room.run()).skipped == NOTHING_NEW
    await room.undo(taken)
    assert await room.state() == replaced


@pytest.mark.req("HE-O-conflict")
@pytest.mark.parametrize("end", ["2026-11-21", "2027-01-31"])
async def test_an_end_that_a_memory_names_itself_stays_when_what_replaced_it_is_taken_back(end: str) -> None:
    room = Room()
    await room.save(OLD, kind="decision", extra=(("until", end),))
    await room.run()
    before = await room.state()
    new = await room.save(NEW, kind="decision")
    await room.run()
    assert await room.shown() == [NEW]
    await room.undo(new.id)
    after = await room.state()
    assert (after[LEDGER], after[MEMORY_PATH]) == (before[LEDGER], before[MEMORY_PATH])
    assert (await room.run()).skipped == NOTHING_NEW


async def test_what_two_replaced_one_after_the_other_is_replaced_by_the_one_that_is_left() -> None:
    room = Room()
    await room.save(OLD, kind="decision")
    await room.run()
    new = await room.save(NEW, kind="decision")
    await room.run()
    await room.save(LATER, kind="decision")
    await room.run()
    assert await room.shown() == [LATER]
    before = await room.state()
    taken = await room.undo(new.id)
    states = await room.states()
    assert NEW not in states
    assert states[LATER] == "active"
    assert (states[OLD] == "active") is (OLD in await room.shown())
    await room.undo(taken)
    assert await room.state() == before


async def test_another_entry_that_says_the_same_takes_its_place_in_curated_memory() -> None:
    room = Room()
    first = await room.save("Nadia owns the staging server.", by="flush", confidence=0.8)
    second = await room.save("Nadia owns the staging server.", by="user")
    await room.run()
    before = await room.state()
    assert len(await room.shown()) == 1
    taken = await room.undo(second.id)
    assert await room.shown() == ["Nadia owns the staging server."]
    assert {found.entry.id for found in await read_all_entries(room.files)} == {first.id}
    await room.undo(taken)
    assert await room.state() == before


@pytest.mark.req("HE-C1b", "HE-O-audit-forget")
async def test_it_leaves_its_topic_which_goes_when_nothing_else_is_in_it() -> None:
    room = Room(ConsolidationConfig(max_lines=8))
    entries = [await room.save(f"Porto fact {number} is about harbour {number}.") for number in range(6)]
    await room.run()
    state = await room.state()
    [topic] = [path for path in state if path.startswith(TOPICS)]
    inside = [entry for entry in entries if f"^{entry.id}".encode() in state[topic]]
    assert len(inside) > 1
    first = await room.undo(inside[0].id)
    after = await room.state()
    assert not any(f"^{inside[0].id}".encode() in data for data in after.values())
    assert topic in after
    rest = [await room.undo(entry.id) for entry in inside[1:]]
    after = await room.state()
    assert topic not in after
    assert b"memory/topics/" not in after[MEMORY_PATH]
    for change in [*reversed(rest), first]:
        await room.undo(change)
    assert await room.state() == state


async def test_lines_of_a_person_stay_to_the_byte() -> None:
    room = Room()
    gone = await room.save("Nadia owns staging.")
    await room.run()
    await room.edit(MEMORY_PATH, "# Memory\n", "# Memory\n\nMine.\n- By hand\n\n## Our rules\n\n* No id here.\n\n")
    await room.undo(gone.id)
    document = (await room.state())[MEMORY_PATH]
    assert b"Mine.\n- By hand\n\n## Our rules\n\n* No id here.\n" in document
    assert b"Nadia" not in document


@pytest.mark.parametrize(("old", "new"), [("Nadia", "Nadja"), ("[kind:: fact]", "[kind:: fact] [pinned:: yes]")])
async def test_a_curated_line_that_a_person_edited_is_not_taken_back_unasked(old: str, new: str) -> None:
    room = Room()
    saved = await room.save("Nadia owns staging.")
    await room.run()
    await room.edit(MEMORY_PATH, old, new)
    before = await room.state()
    with pytest.raises(UndoRefused, match=f"ricordo forget {saved.id}"):
        await room.undo(saved.id)
    assert await room.state() == before


async def test_a_copy_in_a_file_of_its_own_goes_too() -> None:
    room = Room()
    saved = await room.save("Nadia owns staging.")
    [bullet] = [line for line in (await room.state())[LEDGER].splitlines(keepends=True) if line.startswith(b"- ")]
    await room.files.create("workspace/memory/notes.md", b"Mine\n" + bullet)
    before = await room.state()
    taken = await room.undo(saved.id)
    assert await room.state() == {"workspace/memory/notes.md": b"Mine\n"}
    await room.undo(taken)
    assert await room.state() == before


SENTENCES = st.sampled_from(
    [OLD, NEW, LATER, "Nadia owns staging.", "Nadia owns the staging.", "Paul lives in Porto.", "Paul moved to Rome."]
)


@given(
    steps=st.lists(st.tuples(SENTENCES, st.sampled_from(["user", "flush"]), st.booleans()), min_size=1, max_size=7),
    which=st.integers(0, 6),
)
async def test_whatever_was_said_before_nothing_of_it_is_left_and_every_byte_comes_back(
    steps: list[tuple[str, str, bool]], which: int
) -> None:
    room = Room()
    saved = []
    for text, by, runs in steps:
        saved.append(await room.save(text, by=by, kind="decision"))
        if runs:
            await room.run()
    before = await room.state()
    gone = saved[which % len(saved)]
    taken = await room.undo(gone.id)
    located = await read_all_entries(room.files)
    assert {found.entry.id for found in located} == {entry.id for entry in saved} - {gone.id}
    names = {found.entry.id for found in located}
    successors = [dict(found.entry.extra).get("successor") for found in located if found.entry.state != "active"]
    assert all(successor in names for successor in successors)
    await room.undo(taken)
    assert await room.state() == before
