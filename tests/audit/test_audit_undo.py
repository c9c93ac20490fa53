"""Forgetting and undoing: to the byte, in any order, and never at the cost of what others wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo import Entry
from ricordo.clock import MonotonicIds, truncate_to_milliseconds
from ricordo.curation import undo_change
from ricordo.curation.forget import ForgottenEntry, forget
from ricordo.curation.undo import resolve_history_item
from ricordo.errors import ChangeNotFound, EntryNotFound, InvalidQuery, UndoRefused
from ricordo.guard import Redactor
from ricordo.storage import FileStore
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    MEMORY_PATH,
    Author,
    ChangeSets,
    Edit,
    Source,
    append_entries,
    list_history,
    read_all_entries,
)
from ricordo.workspace.history.log import HistoryItem
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-UNDO")]

DAY = date(2026, 11, 21)
LEDGER = "workspace/memory/2026-11-21.md"
KEY = bytes(32)


@dataclass
class Ticking:
    """A clock that goes on by a second whenever it is asked, or stands still."""

    time: datetime = datetime(2026, 11, 21, 8, tzinfo=UTC)
    step: float = 1.0

    def now(self) -> datetime:
        self.time += timedelta(seconds=self.step)
        return self.time

    def today(self) -> date:
        return DAY


class Room:
    """A workspace with the few verbs that these tests need."""

    def __init__(self, files: FileStore | None = None, *, step: float = 1.0) -> None:
        self.files: FileStore = files or InMemoryFiles()
        self.clock = Ticking(step=step)
        self.ids = MonotonicIds(self.clock)
        self.changes = ChangeSets(self.files, clock=self.clock, ids=self.ids)

    async def save(self, *texts: str, by: Author = "user", session: str | None = None) -> list[Entry]:
        now = self.clock.now()
        entries = [
            Entry(content=text, id=self.ids.new(), time=now, by=by, source=Source(session=session)) for text in texts
        ]
        block = await append_entries(self.files, DAY, entries, Redactor(KEY))
        return list(block.entries)

    async def forget(self, entry: Entry) -> ForgottenEntry:
        return await forget(self.files, self.changes, entry.id, key=KEY, who="user", why="test")

    async def items(self) -> list[HistoryItem]:
        return await list_history(self.files, self.changes)

    async def undo(self, name: str | None = None) -> HistoryItem:
        item = resolve_history_item(await self.items(), name)
        await undo_change(self.files, self.changes, item, who="user")
        return item

    async def state(self) -> dict[str, bytes]:
        listed = await self.files.list("workspace")
        return {info.path: (await self.files.read(info.path)).data for info in listed}

    async def contents(self) -> list[str]:
        return [found.entry.content for found in await read_all_entries(self.files)]


CONTENTS = st.one_of(
    st.sampled_from(["One.", "Two\nlines\n\nand a third.", "# head\n- bullet ^x", "long " * 1200, "crlf\r\n" * 900]),
    st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip())),
)


@given(texts=st.lists(CONTENTS, min_size=1, max_size=4), which=st.integers(0, 3))
async def test_undoing_a_forget_restores_every_byte(texts: list[str], which: int) -> None:
    room = Room()
    for text in texts:
        await room.save(text)
    [*entries] = [found.entry for found in await read_all_entries(room.files)]
    before = await room.state()
    await room.forget(entries[which % len(entries)])
    assert await room.state() != before
    assert len(await room.contents()) == len(texts) - 1
    await room.undo()
    assert await room.state() == before


@given(texts=st.lists(CONTENTS, min_size=1, max_size=4), which=st.integers(0, 3))
async def test_undoing_a_save_leaves_the_file_as_if_it_had_never_been(texts: list[str], which: int) -> None:
    room, without = Room(step=0.0), Room(step=0.0)
    saved = [(await room.save(text))[0] for text in texts]
    gone = which % len(texts)
    await room.undo(saved[gone].id)
    for entry in [*saved[:gone], *saved[gone + 1 :]]:
        await append_entries(without.files, DAY, [entry], Redactor(KEY))
    assert await room.state() == await without.state()


@given(order=st.permutations(range(4)))
async def test_everything_undone_in_any_order_leaves_nothing(order: Sequence[int]) -> None:
    room = Room()
    saved = [(await room.save(f"Memory {number}. " + "long " * (number % 2) * 1500))[0] for number in range(4)]
    for number in order:
        await room.undo(saved[number].id)
    assert await room.state() == {}


@given(steps=st.integers(1, 6))
async def test_an_undo_can_be_undone_and_that_too(steps: int) -> None:
    room = Room()
    await room.save("First.")
    [entry] = await room.save("Second.")
    states = [await room.state()]
    await room.undo(entry.id)
    states.append(await room.state())
    assert states[0] != states[1]
    for number in range(steps):
        last = (await room.items())[0] if number else next(item for item in await room.items() if item.action == "undo")
        newest = max((item for item in await room.items() if item.action == "undo"), key=lambda item: item.id)
        assert last.action in {"undo", "save"}
        await room.undo(newest.id)
        assert await room.state() == states[number % 2]


async def test_what_was_saved_after_a_save_stays_when_that_is_undone() -> None:
    room = Room()
    [first] = await room.save("First.")
    await room.save("Second.")
    await room.undo(first.id)
    await room.save("Third.")
    assert await room.contents() == ["Second.", "Third."]


async def test_an_older_forget_is_undone_after_newer_ones_and_after_saves() -> None:
    room = Room()
    saved = [(await room.save(f"Memory {number}."))[0] for number in range(4)]
    gone = [await room.forget(entry) for entry in saved[:3]]
    await room.save("Afterwards.")
    await room.undo(gone[0].change.id)
    assert await room.contents() == ["Memory 0.", "Memory 3.", "Afterwards."]
    await room.undo(gone[2].change.id)
    await room.undo(gone[1].change.id)
    assert sorted(await room.contents()) == sorted([*(f"Memory {number}." for number in range(4)), "Afterwards."])
    ids = [found.entry.id for found in await read_all_entries(room.files)]
    assert len(set(ids)) == 5


async def test_an_undo_is_refused_when_the_same_line_was_changed_since() -> None:
    room = Room()
    await room.files.create(MEMORY_PATH, b"# Memory\n\n- The door is red.\n- The roof is flat.\n")
    [door, _] = [found.entry for found in await read_all_entries(room.files)]
    stored = await room.files.read(MEMORY_PATH)
    edited = stored.data.replace(b"red", b"green")
    change = await room.changes.apply(
        [Edit(path=MEMORY_PATH, expected_hash=stored.version, data=edited)], act="edit", who="me"
    )
    await room.files.replace(
        MEMORY_PATH, edited.replace(b"green", b"blue"), expected=(await room.files.read(MEMORY_PATH)).version
    )
    held = await room.state()
    with pytest.raises(UndoRefused, match=r"undo that first, by its id, which `ricordo history` shows"):
        await room.undo(change.id)
    assert await room.state() == held
    assert door.content == "The door is red."


async def test_what_is_undone_is_not_undone_again() -> None:
    room = Room()
    [entry] = await room.save("First.")
    forgotten = await room.forget(entry)
    await room.undo()
    with pytest.raises(UndoRefused):
        await room.undo(forgotten.change.id)
    assert (await room.undo()).action == "save"
    with pytest.raises(ChangeNotFound):
        await room.undo()
    with pytest.raises(ChangeNotFound):
        await room.undo("none")


async def test_history_is_newest_first_and_tells_who_did_what_where() -> None:
    room = Room()
    [one] = await room.save("One.")
    learned = await room.save("Two.", "Three.", by="flush", session="s1")
    forgotten = await room.forget(one)
    await room.save("Four.", by="agent")
    await room.undo(forgotten.change.id)
    items = await room.items()
    assert [(item.action, item.actor, item.is_undone) for item in items] == [
        ("undo", "user", False),
        ("save", "agent", False),
        ("forget", "user", True),
        ("extract", "flush", False),
        ("save", "user", False),
    ]
    assert items[3].entries == tuple(entry.id for entry in learned)
    assert items[2].reason == "test"
    assert items[0].undoes == items[2].id
    assert LEDGER in items[2].paths
    assert [item.at for item in items] == sorted((item.at for item in items), reverse=True)
    assert len({item.id for item in items}) == 5


async def test_saves_within_one_millisecond_are_writes_of_their_own() -> None:
    room = Room(step=0.0)
    await room.save("One.")
    await room.save("Two.")
    await room.save("Three.", "Four.", by="flush", session="s1")
    assert [len(item.entries) for item in await room.items()] == [2, 1, 1]
    await room.undo((await read_all_entries(room.files))[1].entry.id)
    assert await room.contents() == ["One.", "Three.", "Four."]
    await room.undo((await read_all_entries(room.files))[2].entry.id)
    assert await room.contents() == ["One."]


async def test_a_whole_extraction_is_undone_as_one_and_restored_as_one() -> None:
    room = Room()
    await room.save("Mine.")
    learned = await room.save("Two.", "Three.", by="flush", session="s1")
    before = await room.state()
    await room.undo(learned[1].id)
    assert await room.contents() == ["Mine."]
    await room.undo(next(item.id for item in await room.items() if item.action == "undo"))
    assert await room.state() == before


async def test_a_bullet_that_was_written_by_hand_can_be_forgotten_and_brought_back() -> None:
    room = Room()
    await room.files.create(
        MEMORY_PATH, b"---\nname: x\n---\n# Mine\n\n* The door is red.\n* The door is red.\n\nprose\n"
    )
    before = await room.state()
    [first, second] = [found.entry for found in await read_all_entries(room.files)]
    assert first.id != second.id
    await room.forget(first)
    assert await room.contents() == ["The door is red."]
    assert (await room.files.read(MEMORY_PATH)).data.endswith(b"\n\nprose\n")
    await room.undo()
    assert await room.state() == before


@pytest.mark.req("HE-O-audit-forget")
async def test_a_forget_cuts_the_right_lines_although_others_forget_at_the_same_time() -> None:
    inner = InMemoryFiles()
    theirs = Room(inner)
    saved = [(await theirs.save(f"Memory number {number}, of its own length{'.' * number}"))[0] for number in range(4)]
    before = [(await theirs.forget(saved[0])).entry.content]
    left = [saved[1]]

    async def interfere(verb: str, path: str) -> None:
        if verb == "read" and path == LEDGER and left:
            await theirs.forget(left.pop())

    await Room(WatchedFiles(inner, interfere)).forget(saved[2])
    assert await theirs.contents() == [saved[3].content]
    assert before == [saved[0].content]


@pytest.mark.req("HE-O-audit-forget")
async def test_forgetting_what_another_has_forgotten_meanwhile_is_not_found() -> None:
    room = Room()
    [entry] = await room.save("One.")
    await room.forget(entry)
    with pytest.raises(EntryNotFound):
        await room.forget(entry)


@pytest.mark.parametrize(
    "pointer",
    ["MEMORY.md", "../guard.key", "../../outside", "agents/main/sessions/s1.log.jsonl", "memory/long/../../x"],
)
async def test_a_hand_written_pointer_reaches_no_other_file(pointer: str) -> None:
    room = Room()
    kept = b"kept\n\n## Topics\n\n1. [a](memory/topics/a.md)\n"
    for path in (MEMORY_PATH, "guard.key", "workspace/agents/main/sessions/s1.log.jsonl"):
        await room.files.create(path, kept)
    await room.files.create("workspace/memory/topics/a.md", f"- Look here. [long:: {pointer}]\n- Other.\n".encode())
    [trap, _] = [found.entry for found in await read_all_entries(room.files)]
    assert trap.content == "Look here."
    await room.forget(trap)
    assert await room.contents() == ["Other."]
    for path in (MEMORY_PATH, "guard.key", "workspace/agents/main/sessions/s1.log.jsonl"):
        assert (await room.files.read(path)).data == kept


async def test_the_beginning_of_an_id_takes_back_only_what_it_names_alone() -> None:
    room = Room()
    entries = [(await room.save(f"Memory {number}."))[0] for number in range(3)]
    forgotten = await room.forget(entries[0])
    for unclear in ("", "0", "01", entries[1].id[:5], entries[1].id[:7]):
        with pytest.raises(ChangeNotFound):
            await room.undo(unclear)
    assert len(await room.contents()) == 2
    assert (await room.undo(forgotten.change.id[:-1])).id == forgotten.change.id
    assert (await room.undo(entries[1].id[:-1])).entries == (entries[1].id,)
    assert await room.contents() == ["Memory 0.", "Memory 2."]


async def test_of_two_undos_of_one_write_at_the_same_time_one_is_refused() -> None:
    for by_id in (False, True):
        room = Room()
        [entry] = await room.save("First.")
        await room.save("Second.")
        named = entry.id if by_id else (await room.forget(entry)).change.id
        item = resolve_history_item(await room.items(), named)
        outcomes: list[str] = []

        async def attempt(room: Room = room, item: HistoryItem = item, outcomes: list[str] = outcomes) -> None:
            try:
                await undo_change(room.files, room.changes, item, who="user")
                outcomes.append("undone")
            except UndoRefused:
                outcomes.append("refused")

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(attempt)
        assert sorted(outcomes) == ["refused", "refused", "refused", "undone"]
        assert await room.contents() == (["Second."] if by_id else ["First.", "Second."])


async def test_a_write_is_named_by_any_entry_that_is_left_of_it() -> None:
    room = Room()
    learned = await room.save("One.", "Two.", "Three.", by="flush", session="s1")
    await room.forget(learned[0])
    await room.undo(learned[2].id)
    assert await room.contents() == []


TIMES = st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 9), timezones=st.just(UTC)).map(truncate_to_milliseconds)


@given(times=st.lists(TIMES, max_size=12), days=st.lists(st.integers(1, 5), min_size=12, max_size=12), data=st.data())
async def test_a_short_history_is_the_beginning_of_the_whole(
    times: list[datetime], days: list[int], data: st.DataObject
) -> None:
    """Whatever times were given, also such as lie after the day of their ledger."""
    room = Room()
    for time, day in zip(times, days, strict=False):
        entry = Entry(content="x", id=room.ids.new(), time=time)
        await append_entries(room.files, date(2026, 1, day), [entry], Redactor(KEY))
    whole = await room.items()
    assert len(whole) == len(times)
    limit = data.draw(st.integers(1, 14))
    assert await list_history(room.files, room.changes, limit=limit) == whole[:limit]


async def test_a_short_history_reads_no_more_ledgers_than_it_needs() -> None:
    inner = InMemoryFiles()
    room = Room(inner)
    for day in range(1, 10):
        time = datetime(2026, 1, day, tzinfo=UTC)
        entries = [Entry(content=f"Day {day}.", id=room.ids.new(), time=time)]
        await append_entries(inner, date(2026, 1, day), entries, Redactor(KEY))
    read: list[str] = []

    async def watch(verb: str, path: str) -> None:
        if verb == "read":
            read.append(path)

    [item] = await list_history(WatchedFiles(inner, watch), room.changes, limit=1)
    assert item.paths == ("workspace/memory/2026-01-09.md",)
    assert [path for path in set(read) if read.count(path) > 1] == ["workspace/memory/2026-01-09.md"]
    for limit in (0, -1):
        with pytest.raises(InvalidQuery):
            await list_history(inner, room.changes, limit=limit)
