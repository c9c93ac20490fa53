"""A full disk and torn files in the middle of a compaction: the turn goes on, and nothing is lost."""

import errno
import os
from pathlib import Path

import anyio
import pytest

from agents_at_work import is_valid, said, spoken, transcript
from compacting_agents import NOTED, compacting, decided, learned, summed_up
from dialect_validity import anthropic_faults, openai_faults
from named_disks import NamedDisk
from places import place_of
from ricordo import CompactionConfig, HarnessAgent
from ricordo.errors import CompactionNotFound, StorageError
from ricordo.events import Event
from ricordo.extraction import JobWorker
from ricordo.messages import Message, get_mark
from ricordo.testing import Call, Fail, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import DEFAULT_AGENT, compactions_path, state_path

pytestmark = pytest.mark.anyio

TURNS = 6


class FullDisk(NamedDisk):
    """A disk that has no room for some files while it is `full`."""

    def __init__(self, *steps: str) -> None:
        """Refuse `steps`."""
        super().__init__(self._refuse)
        self.full = False
        self._steps = steps

    def _refuse(self, step: str) -> None:
        if self.full and step in self._steps:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def answered(request: RecordedRequest) -> ScriptItem:
    """Sum up, call the tool where that is wished, and take note of the rest."""
    if not request.tools:
        return summed_up(request)
    assert not openai_faults(request.messages)
    assert not anthropic_faults(request.messages)
    last = request.messages[-1]
    return Call("look_up", {"topic": "main"}) if last.role == "user" and "look" in last.text else Say(NOTED)


async def fill(one: HarnessAgent) -> None:
    """Let so much be said that the next request sums it up; nothing of it is learned yet."""
    await one.record([message for number in range(TURNS - 1) for message in (said(decided(number)), said(NOTED))])


@pytest.fixture(autouse=True)
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the workers do nothing but what they are told to."""

    async def serve(_: JobWorker) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(JobWorker, "serve", serve)


async def checked(root: Path, *, turns: int = TURNS) -> None:
    """Check that another agent goes on, with all that was said and each decision learned once."""
    async with compacting(ScriptedModel(answered), root) as one:
        assert is_valid(one.window)
        await one.send("And now?")
        assert is_valid(one.window)
        assert await one.drain() == 0
        assert one.memory is not None
        found = "\n".join(entry.content for entry in await one.memory.entries())
        assert learned(found, turns) == [1] * turns
    logged = await transcript(root)
    asked = [text.partition(" Please")[0] for _, text in spoken(logged) if text.startswith("We")]
    assert asked == [decided(number) for number in range(turns)]
    assert len({message.id for message in logged}) == len(logged)


FULL = {
    "journal": (("make journal", "write journal"), ("compact", "failed"), False),
    "inbox": (("commit inbox",), ("extract", "failed"), True),
    "ledger": (("make ledger", "write ledger"), ("extract", "failed"), True),
    "cursor": (("make cursor", "write cursor"), ("extract", "failed"), True),
    "state": (("make state", "write state"), ("compact", "finished"), True),
    "evicted": (("make evicted", "write evicted"), ("evict", "failed"), True),
}


@pytest.mark.req("AS-COMPACT-06", "AS-COMPACT-09")
@pytest.mark.parametrize("file", FULL)
async def test_a_disk_without_room_for_one_file_of_a_compaction_ends_no_turn(tmp_path: Path, file: str) -> None:
    steps, told, shorter = FULL[file]
    root, disk, events = tmp_path / ".ricordo", FullDisk(*steps), list[Event]()
    async with compacting(ScriptedModel(answered), root, disk=disk, on_event=events.append) as one:
        await fill(one)
        disk.full = True
        assert str(await one.send(f"{decided(TURNS - 1)} Please look.")) == NOTED
        disk.full = False
        assert (get_mark(one.window[0]) == "summary") == shorter
        assert is_valid(one.window)
        assert told in {(event.stage, event.status) for event in events}
        window = one.window
    if file != "state":
        async with compacting(ScriptedModel(answered), root) as again:
            assert again.window == window
    await checked(root, turns=TURNS)


@pytest.mark.req("AS-COMPACT-06")
async def test_a_turn_that_can_not_be_recorded_is_told_and_sums_nothing_up(tmp_path: Path) -> None:
    root, disk = tmp_path / ".ricordo", FullDisk("write transcript")
    model = ScriptedModel(answered)
    async with compacting(model, root, disk=disk) as one:
        await fill(one)
        window = one.window
        disk.full = True
        with pytest.raises(StorageError):
            await one.send(decided(TURNS - 1))
        disk.full = False
        assert (one.window, model.requests) == (window, ())
        assert await one.compactions.all() == ()
        await one.send(decided(TURNS - 1))
        assert get_mark(one.window[0]) == "summary"
    await checked(root)


@pytest.mark.req("AS-OVER-06", "AS-COMPACT-06")
async def test_an_overflow_is_made_good_with_no_room_for_the_journal_and_the_report_says_what_that_costs(
    tmp_path: Path,
) -> None:
    root, disk, events = tmp_path / ".ricordo", FullDisk("make journal", "write journal"), list[Event]()
    refusals = [Fail(400, overflow=True)]

    def refusing(request: RecordedRequest) -> ScriptItem:
        return refusals.pop() if request.tools and refusals else answered(request)

    config = CompactionConfig(trigger_messages=0, trigger_tokens=0, keep_messages=2)
    async with compacting(ScriptedModel(refusing), root, disk=disk, on_event=events.append, compaction=config) as one:
        await fill(one)
        disk.full = True
        assert str(await one.send(decided(TURNS - 1))) == NOTED
        disk.full = False
        assert get_mark(one.window[0]) == "summary"
        assert await one.compactions.all() == ()
        window = one.window
    (summed,) = [event for event in events if event.stage == "compact" and event.status == "finished"]
    assert summed.counts["notes"] == 1
    async with compacting(ScriptedModel(answered), root) as again:
        assert again.window == window
    await checked(root)


async def compacted(root: Path) -> tuple[Message, ...]:
    """Leave a session behind that was summed up twice; return its window."""
    async with compacting(ScriptedModel(answered), root) as one:
        await fill(one)
        for number in range(TURNS - 1, 2 * TURNS - 1):
            await one.send(decided(number))
        assert len(await one.compactions.all()) == 2
        return one.window


@pytest.mark.req("CC-UNDO")
async def test_a_torn_line_of_the_journal_costs_that_compaction_its_undoing_and_no_other(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    window = await compacted(root)
    journal = place_of(root) / compactions_path(DEFAULT_AGENT, "s")
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 2
    journal.write_bytes(lines[0] + lines[1][: len(lines[1]) // 2])
    async with compacting(ScriptedModel(answered), root) as one:
        assert one.window == window
        (first,) = await one.compactions.all()
        opened = await one.compactions.expand(first.handle)
        assert [message.text for message in opened][:2] == [decided(0), NOTED]
        await one.compact()
        assert len(await one.compactions.all()) == 2, "what is noted after a torn line can be read"
    await checked(root, turns=2 * TURNS - 1)


@pytest.mark.req("CC-UNDO")
@pytest.mark.parametrize(
    "damage",
    [b"", b"this is no journal\n" * 50 + bytes(500), b'[1]\n{}\n{"v":1,"undone":5}\n'],
    ids=["empty", "no-json", "others"],
)
async def test_a_journal_that_is_damaged_takes_nothing_else_down(tmp_path: Path, damage: bytes) -> None:
    root = tmp_path / ".ricordo"
    window = await compacted(root)
    (place_of(root) / compactions_path(DEFAULT_AGENT, "s")).write_bytes(damage)
    async with compacting(ScriptedModel(answered), root) as one:
        assert one.window == window
        assert await one.compactions.all() == ()
        with pytest.raises(CompactionNotFound):
            await one.compactions.undo()
        await one.compact()
        (made,) = await one.compactions.all()
        await one.compactions.undo(made.handle)
        assert [message.id for message in one.window] == [message.id for message in window]
    await checked(root, turns=2 * TURNS - 1)


@pytest.mark.req("AS-STATE-01", "AS-BUG-29", "AS-BUG-11")
async def test_a_state_that_is_set_aside_brings_all_back_that_was_said(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    await compacted(root)
    (place_of(root) / state_path(DEFAULT_AGENT, "s")).write_bytes(b"{")
    async with compacting(ScriptedModel(answered), root) as one:
        assert one.window == await transcript(root)
        assert len(await one.compactions.all()) == 2
    await checked(root, turns=2 * TURNS - 1)
