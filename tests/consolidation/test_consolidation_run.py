"""A run on files: one change set, taken back as a whole, whoever else writes meanwhile and wherever it is cut off."""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path

import anyio
import pytest

from disks import StepDisk
from ricordo import Entry, Scope
from ricordo.clock import MonotonicIds
from ricordo.concurrency import NoYield
from ricordo.curation import (
    CURSOR_PATH,
    NOTHING_NEW,
    ConsolidationConfig,
    ConsolidationResult,
    Consolidator,
    undo_change,
)
from ricordo.curation.consolidator import BUSY, TOO_SOON
from ricordo.curation.forget import forget, forget_copies
from ricordo.curation.run_state import load_cursor
from ricordo.errors import StorageError, StorageFailed
from ricordo.guard import Redactor
from ricordo.storage import Disk, FileInfo, FileStore
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import (
    MEMORY_PATH,
    TOMBSTONES,
    ChangeSets,
    Tombstone,
    append_entries,
    list_history,
    parse_entries,
    render_prompt_lines,
)
from ricordo.workspace.history.tombstones import read_tombstones
from watched_files import WatchedFiles

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
REDACTOR = Redactor(KEY)
DAY = date(2026, 11, 21)
LEDGER = "workspace/memory/2026-11-21.md"
TOPIC = "workspace/memory/topics/more-facts.md"
OLD, NEW = "We use MySQL for the orders.", "We switched the orders from MySQL to PostgreSQL."


class Ticking:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 8, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def today(self) -> date:
        return DAY


class Root:
    """The files of a root and what works on them."""

    def __init__(self, files: FileStore | None = None, config: ConsolidationConfig | None = None) -> None:
        self.files = files or InMemoryFiles()
        self.clock = Ticking()
        self.ids = MonotonicIds(self.clock, lambda bits: 7)
        self.changes = ChangeSets(self.files, clock=self.clock, ids=self.ids)
        self.consolidator = Consolidator(
            files=self.files, changes=self.changes, redactor=REDACTOR, clock=self.clock, key=KEY, config=config
        )

    async def save(self, content: str, *, day: date = DAY, **more: object) -> Entry:
        self.clock.time += timedelta(seconds=1)
        made = Entry(content=content, id=self.ids.new(), time=self.clock.now(), **more)  # type: ignore[arg-type]
        await append_entries(self.files, day, [made], REDACTOR)
        return made

    async def run(self) -> ConsolidationResult:
        self.clock.time += timedelta(seconds=1)
        return await self.consolidator.consolidate(force=True)

    async def contents(self, *, cursor: bool = False) -> dict[str, bytes]:
        listed = [info.path for info in await self.files.list("workspace")]
        return {path: (await self.files.read(path)).data for path in listed if cursor or path != CURSOR_PATH}

    async def memory(self) -> list[str]:
        return [
            line for line in render_prompt_lines((await self.contents()).get(MEMORY_PATH, b"")) if line.startswith("- ")
        ]

    async def undo(self, change_id: str) -> None:
        item = next(item for item in await list_history(self.files, self.changes) if item.id == change_id)
        await undo_change(self.files, self.changes, item, who="user")


@pytest.mark.req("AS-CONS-04", "AS-CONS-01", "AS-CONS-05", "CC-GATES")
async def test_a_run_curates_what_is_new_and_the_next_one_does_nothing() -> None:
    root = Root()
    saved = await root.save(OLD, kind="decision")
    done = await root.run()
    assert (done.read, done.kept, done.files) == (1, 1, ("MEMORY.md",))
    (change,) = await root.changes.list_changes()
    assert (change.id, change.action, change.actor) == (done.change_id, "consolidate", "consolidation")
    (found,) = parse_entries((await root.contents())[MEMORY_PATH], MEMORY_PATH)
    assert (found.entry.id, found.entry.content) == (saved.id, OLD)
    before = await root.contents(cursor=True)
    assert (await root.run()).skipped == NOTHING_NEW
    assert await root.contents(cursor=True) == before


@pytest.mark.req("AS-CURATED-01")
async def test_curated_memory_is_replaced_as_a_whole_and_only_by_a_run() -> None:
    calls: list[str] = []

    async def note(verb: str, path: str) -> None:
        if path == MEMORY_PATH and verb != "read":
            calls.append(verb)

    root = Root(WatchedFiles(InMemoryFiles(), note))
    for text in (OLD, NEW):
        await root.save(text, kind="decision")
        calls.clear()
        await root.run()
        assert calls == ["replace"]
    assert await root.memory() == [f"- {NEW}"]


@pytest.mark.req("AS-TRIG-04", "CC-GATES")
async def test_signals_within_half_an_hour_make_one_run() -> None:
    root = Root()
    for number in range(10):
        await root.save(f"Rule number {number} is kept.")
        done = await root.consolidator.consolidate()
        assert (done.skipped == "") == (number == 0)
    assert done.skipped == TOO_SOON
    root.clock.time += timedelta(minutes=30)
    assert (await root.consolidator.consolidate()).kept == 9


@pytest.mark.req("AS-CURATED-01", "CC-DREAMCOPY")
async def test_a_preview_tells_what_a_run_would_do_and_writes_nothing() -> None:
    root = Root()
    await root.save(OLD, kind="decision")
    before = await root.contents(cursor=True)
    preview = await root.consolidator.preview()
    assert await root.contents(cursor=True) == before
    await root.run()
    assert (await root.contents())[MEMORY_PATH] == preview.documents[MEMORY_PATH]


@pytest.mark.req("AS-CONS-04", "AS-CONS-05", "HE-C3-guard", "HE-O-conflict", "CC-DREAMCOPY", "FC-UNDO")
async def test_undo_restores_every_byte_and_the_run_is_not_repeated_until_it_is_asked_for() -> None:
    root = Root()
    await root.save(OLD, kind="decision")
    first = await root.run()
    before = await root.contents()
    await root.save(NEW, kind="decision")
    ledger = (await root.contents())[LEDGER]
    second = await root.run()
    assert second.superseded == 1
    assert (await root.contents())[LEDGER] != ledger
    await root.undo(second.change_id)
    assert await root.contents() == {**before, LEDGER: ledger}
    assert (await root.run()).skipped == NOTHING_NEW
    await root.undo(first.change_id)
    assert await root.contents() == {LEDGER: ledger}
    assert (await root.run()).skipped == NOTHING_NEW
    await root.save("The office closes at six.")
    await root.run()
    assert await root.memory() == ["- The office closes at six."]
    root.clock.time += timedelta(seconds=1)
    await root.consolidator.consolidate(again=True)
    assert sorted(await root.memory()) == [f"- {text}" for text in ("The office closes at six.", NEW)]


@pytest.mark.req("AS-BUG-17", "AS-CONS-05")
async def test_a_missing_memory_is_made_from_all_ledgers_and_one_that_cannot_be_read_stops_the_run() -> None:
    async def closed(verb: str, path: str) -> None:
        if shut and verb == "read" and path == MEMORY_PATH:
            raise StorageFailed("MEMORY.md can't be read.")

    shut = False
    root = Root(WatchedFiles(InMemoryFiles(), closed))
    await root.save("The lease ends in May.", day=DAY - timedelta(days=40))
    await root.save("Tests run at night.", day=DAY - timedelta(days=1))
    await root.save("We deploy only from main.")
    await root.run()
    await root.save("The office closes at six.")
    before, shut = await root.contents(cursor=True), True
    with pytest.raises(StorageFailed):
        await root.run()
    shut = False
    assert await root.contents(cursor=True) == before
    await root.files.delete(MEMORY_PATH)
    await root.run()
    assert sorted(await root.memory()) == [
        "- Tests run at night.",
        "- The lease ends in May.",
        "- The office closes at six.",
        "- We deploy only from main.",
    ]


@pytest.mark.req("AS-BUG-17")
async def test_a_missing_memory_is_made_from_all_ledgers_beside_topics_that_are_there() -> None:
    root = Root()
    await root.save("We deploy only from main.")
    await root.run()
    await root.save("The long story. " * 400)
    await root.run()
    assert TOPIC in await root.contents()
    await root.files.delete(MEMORY_PATH)
    await root.run()
    assert await root.memory() == ["- We deploy only from main."]
    assert b"The long story." in (await root.contents())[TOPIC]


@pytest.mark.req("AS-CONS-05")
@pytest.mark.parametrize(
    "damage",
    [
        None,
        b"",
        b"{}",
        b"[]",
        b'{"at": null, "ledgers": []}',
        b'{"at": null, "ledgers": {"x": {"offset": "1"}}}',
        b"\xff",
    ],
)
async def test_a_cursor_that_is_lost_or_damaged_costs_nothing_but_reading_again(damage: bytes | None) -> None:
    root = Root()
    await root.save("We deploy only from main.")
    await root.run()
    before = await root.contents()
    assert (await Root(root.files).run()).skipped == NOTHING_NEW, "a restart"
    known = await load_cursor(root.files)
    assert {path: len(place.lines) == len(place.ids) == 1 for path, place in known.ledgers.items()} == {LEDGER: True}
    state = "workspace/memory/.consolidation_state"
    await root.files.delete(state)
    if damage is not None:
        await root.files.create(state, damage)
    done = await root.consolidator.consolidate()
    assert (done.read, done.kept, done.change_id) == (1, 0, "")
    assert await root.contents() == before
    assert (await root.run()).skipped == NOTHING_NEW
    whole = await root.files.read(state)
    cut_off = whole.data.replace(b'"lines": "', b'"lines": "0')
    await root.files.replace(state, cut_off, expected=whole.version)
    assert (await root.run()).read == 1, "a digest that is no digest"


@pytest.mark.req("AS-CONS-01", "CC-AGE")
async def test_an_edited_line_is_new_and_no_other_and_a_copied_file_is_not() -> None:
    root = Root()
    await root.save("The limit is 10 items.")
    await root.save("Small talk.", by="flush", confidence=0.5)
    await root.run()
    ledger = (await root.contents())[LEDGER]
    await root.files.create("workspace/memory/2026-11-20.md", ledger)
    assert (await root.run()).skipped == NOTHING_NEW
    stored = await root.files.read(LEDGER)
    await root.files.replace(LEDGER, ledger.replace(b"10 items", b"12 items"), expected=stored.version)
    assert (await root.run()).read == 1
    assert await root.memory() == ["- The limit is 12 items."]


@pytest.mark.req("AS-CONS-01")
async def test_a_deleted_bullet_stays_deleted() -> None:
    root = Root()
    await root.save("We deploy only from main.")
    await root.run()
    stored = await root.files.read(MEMORY_PATH)
    await root.files.replace(MEMORY_PATH, b"# Memory\n\n- mine\n", expected=stored.version)
    await root.save("The office closes at six.")
    await root.run()
    assert await root.memory() == ["- mine", "- The office closes at six."]


@pytest.mark.req("AS-CONS-01", "AS-CONS-04")
async def test_a_long_backlog_is_read_in_batches_and_none_is_passed_over() -> None:
    root = Root(config=ConsolidationConfig(batch_entries=3))
    for number in range(8):
        await root.save(f"Rule number {number} is kept.")
    done = [await root.run() for _ in range(4)]
    assert [(run.read, run.waiting) for run in done] == [(3, 5), (3, 2), (2, 0), (0, 0)]
    assert len(await root.memory()) == 8


AT_CURSOR, AT_CHECK, AT_WRITE = (
    ("read", CURSOR_PATH, 1),
    ("list", "workspace/memory", 3),
    ("create", "history/objects", 1),
)
"""Moments of a run: after the ledgers were read, before they are looked at again, while the change is written."""


@pytest.mark.parametrize("day", [DAY, DAY + timedelta(days=1)], ids=["same ledger", "new ledger"])
@pytest.mark.parametrize("moment", [AT_CURSOR, AT_CHECK, AT_WRITE, ("replace", CURSOR_PATH, 1)])
@pytest.mark.req("AS-BUG-19")
async def test_what_is_saved_during_a_run_is_in_memory_after_it(moment: tuple[str, str, int], day: date) -> None:
    root = await _disturbed(moment, lambda root: root.save("Saved meanwhile.", day=day))
    await root.run()
    assert sorted(await root.memory()) == ["- Saved meanwhile.", "- We deploy only from main."]
    assert (await root.run()).skipped == NOTHING_NEW


@pytest.mark.req("AS-BUG-17", "AS-CONS-01")
async def test_ledgers_that_cannot_be_read_do_not_keep_a_run_from_ending() -> None:
    async def closed(verb: str, path: str) -> None:
        if verb == "read" and path == "workspace/memory/2026-11-20.md":
            raise StorageFailed("It can't be read.")

    root = Root(WatchedFiles(InMemoryFiles(), closed))
    await root.files.create("workspace/memory/2026-11-20.md", b"- unread\n")
    await root.save("We deploy only from main.")
    assert (await root.run()).kept == 1


@pytest.mark.req("AS-BUG-19")
@pytest.mark.parametrize("moment", [AT_CURSOR, AT_CHECK, AT_WRITE])
async def test_a_hand_edit_during_a_run_survives_it(moment: tuple[str, str, int]) -> None:
    async def edit(root: Root) -> None:
        await root.files.create(MEMORY_PATH, b"# Mine\n\n- by hand\n")

    root = await _disturbed(moment, edit)
    await root.run()
    assert (await root.contents())[MEMORY_PATH].startswith(b"# Mine\n\n- by hand\n")
    assert await root.memory() == ["- by hand", "- We deploy only from main."]


@pytest.mark.req("HE-O-audit-forget", "GO-I10", "AS-BUG-19")
@pytest.mark.parametrize("moment", [AT_CURSOR, AT_CHECK])
async def test_what_is_forgotten_during_a_run_does_not_come_back(moment: tuple[str, str, int]) -> None:
    async def forgotten(root: Root) -> None:
        (found,) = parse_entries((await root.contents())[LEDGER], LEDGER)
        await forget(root.files, root.changes, found.entry.id, key=KEY, who="user")

    root = await _disturbed(moment, forgotten)
    await root.run()
    assert await root.memory() == []
    await root.consolidator.consolidate(again=True)
    assert await root.memory() == []


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
async def test_a_ledger_of_another_copy_brings_nothing_back_and_what_is_saved_again_is_curated() -> None:
    root = Root()
    saved = await root.save("We deploy only from main.")
    copied = await root.save("We test in Python.", by="flush")
    await root.run()
    ledger = (await root.contents())[LEDGER]
    for gone in (saved, copied):
        await forget(root.files, root.changes, gone.id, key=KEY, who="user")
    other = ledger.replace(copied.id.encode(), f"{copied.id[:-1]}z".encode())
    await root.files.replace(LEDGER, other, expected=(await root.files.read(LEDGER)).version)
    await root.run()
    assert await root.memory() == []
    again = await root.save("We deploy only from main.")
    await root.run()
    (found,) = parse_entries((await root.contents())[MEMORY_PATH], MEMORY_PATH)
    assert (found.entry.id, found.entry.content) == (again.id, again.content)


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
async def test_what_another_forgot_without_seeing_the_curated_copy_is_taken_out() -> None:
    async def bury(root: Root) -> None:
        (found,) = parse_entries((await root.contents())[LEDGER], LEDGER)
        stones = await read_tombstones(root.files)
        buried = stones.render_with([Tombstone(id=found.entry.id, digest="-")])
        await root.files.replace(TOMBSTONES, buried, expected=stones.version)

    root = await _disturbed(("replace", CURSOR_PATH, 1), bury)
    await root.run()
    assert await root.memory() == []


async def _disturbed(moment: tuple[str, str, int], act: Callable[[Root], Awaitable[object]]) -> Root:
    """Return a root with one memory on which `act` happens before the call that `moment` names, once."""
    verb, prefix, number = moment
    seen = -1

    async def before(called: str, path: str) -> None:
        nonlocal seen
        if seen >= 0 and called == verb and path.startswith(prefix):
            seen += 1
            if seen == number:
                seen = -1
                await act(plain)

    inner = InMemoryFiles()
    root, plain = Root(ListedFiles(inner, before)), Root(inner)
    plain.clock, plain.ids = root.clock, root.ids
    plain.changes = ChangeSets(inner, clock=root.clock, ids=root.ids)
    await root.save("We deploy only from main.")
    seen = 0
    return root


@pytest.mark.req("AS-CONS-04", "AS-BUG-19", "CC-GATES")
async def test_of_two_runs_at_once_one_does_it_and_nothing_is_doubled(tmp_path: Path) -> None:
    roots = [Root(LocalFiles(tmp_path, disk=Disk())) for _ in range(2)]
    await roots[0].save("We deploy only from main.")
    done: list[ConsolidationResult] = []

    async def run(root: Root) -> None:
        done.append(await root.run())

    async with anyio.create_task_group() as group:
        for root in roots:
            group.start_soon(run, root)
    assert sorted(one.skipped for one in done) in ([["", BUSY], ["", NOTHING_NEW]])
    assert await roots[0].memory() == ["- We deploy only from main."]


class ListedFiles(WatchedFiles):
    """Watched files that tell of listings too."""

    async def list(self, prefix: str = "") -> list[FileInfo]:
        await self._enter("list", prefix)
        return await super().list(prefix)


class Killed(BaseException):
    """The end of a process; nothing that expects an error catches it."""


class MortalDisk(StepDisk):
    """A disk on which nothing happens any more from the step `dies_at` on; 0 is never."""

    def __init__(self) -> None:
        self.dies_at = 0

        def reached(step: int) -> None:
            if self.dies_at and step >= self.dies_at:
                raise Killed

        super().__init__(reached)


@pytest.mark.req("AS-BUG-16", "AS-CURATED-01", "CC-DREAMCOPY", "CC-GATES")
async def test_a_run_that_dies_at_any_step_leaves_all_or_nothing_and_the_next_one_completes_it(tmp_path: Path) -> None:
    whole = await _prepared(tmp_path / "whole", Disk())
    before = await whole.contents()
    await whole.run()
    after = await whole.contents()
    assert len({path for path in after if after[path] != before.get(path)}) >= 2
    died = 0
    for step in range(1, 400):
        folder = tmp_path / str(step)
        disk = MortalDisk()
        root = await _prepared(folder, disk)
        disk.dies_at = len(disk.steps) + step
        try:
            await root.run()
        except Killed:
            died += 1
        else:
            break
        fresh = Root(LocalFiles(folder, disk=Disk()))
        fresh.clock.time = root.clock.time
        await fresh.changes.recover()
        assert await fresh.contents() in (before, after), f"step {step}: {disk.steps[-1]}"
        await fresh.run()
        assert await fresh.contents() == after
    assert died > 20


async def _prepared(folder: Path, disk: Disk) -> Root:
    root = Root(LocalFiles(folder, disk=disk))
    await root.save(OLD, kind="decision")
    await root.save(NEW, kind="decision")
    await root.save("We deploy only from main.")
    return root


@pytest.mark.req("AS-BUG-16", "CC-GATES")
async def test_a_write_that_fails_leaves_the_cursor_where_it_was() -> None:
    async def full(verb: str, path: str) -> None:
        if failing and verb == "replace" and path == MEMORY_PATH:
            raise StorageFailed("No.")

    failing = True
    root = Root(WatchedFiles(InMemoryFiles(), full))
    await root.save("We deploy only from main.")
    before = await root.contents(cursor=True)
    with pytest.raises(StorageError):
        await root.run()
    assert await root.contents(cursor=True) == before
    failing = False
    assert (await root.run()).read == 1
    assert await root.memory() == ["- We deploy only from main."]


@pytest.mark.req("HE-C1b", "HE-O-audit-forget")
async def test_forgetting_takes_a_memory_out_of_the_curated_documents_too_and_undo_brings_it_back() -> None:
    root = Root()
    saved = await root.save("We deploy only from main.")
    await root.run()
    before = await root.contents()
    gone = await forget(root.files, root.changes, saved.id, key=KEY, who="user")
    assert b"main" not in b"".join((await root.contents()).values())
    await root.consolidator.consolidate(again=True)
    assert await root.memory() == []
    await root.undo(gone.change.id)
    assert (await root.contents())[MEMORY_PATH] == before[MEMORY_PATH]


@pytest.mark.req("HE-C2")
async def test_a_memory_over_four_kilobytes_is_curated_by_its_beginning_and_stands_in_its_own_file() -> None:
    root = Root()
    saved = await root.save("The long story. " * 400)
    await root.run()
    after = await root.contents()
    (found,) = parse_entries(after[TOPIC], TOPIC)
    assert (found.entry.id, found.long_path) == (saved.id, f"memory/long/{saved.id}.md")
    assert len(after[TOPIC]) < 600
    assert b"1. [More facts](memory/topics/more-facts.md): The long story." in after[MEMORY_PATH]
    await forget(root.files, root.changes, saved.id, key=KEY, who="user")
    assert b"long story" not in b"".join((await root.contents()).values())


@pytest.mark.req("FC-SECRET")
async def test_a_secret_that_a_person_wrote_into_a_ledger_is_not_copied() -> None:
    root = Root()
    secret = "ghp_" + "a1B2" * 9
    await root.files.create(LEDGER, f"# Day\n\n- The token is {secret}.\n".encode())
    await root.run()
    assert len(await root.memory()) == 1
    assert secret.encode() not in (await root.contents())[MEMORY_PATH]


@pytest.mark.req("HE-C1b", "HE-O-audit-forget")
async def test_what_is_forgotten_leaves_the_description_of_its_topic_and_the_line_that_lists_it() -> None:
    root = Root()
    first = await root.save("The gate is opened by a song about walnuts. " * 4, by="user")
    await root.save("The cellar holds nine barrels of cider. " * 4, kind="decision", by="user")
    await root.run()
    before = await root.contents()
    assert b"walnuts" in before[MEMORY_PATH]
    gone = await forget(root.files, root.changes, first.id, key=KEY, who="user")
    after = await root.contents()
    assert b"walnuts" not in b"".join(after.values())
    assert b"cider" in after[MEMORY_PATH]
    await root.undo(gone.change.id)
    assert {path: data for path, data in (await root.contents()).items() if path != TOMBSTONES} == before


async def test_a_description_that_a_person_wrote_stays_whatever_is_forgotten() -> None:
    root = Root()
    first = await root.save("The gate is opened by a song about walnuts. " * 4, by="user")
    await root.run()
    stored = await root.files.read(TOPIC)
    by_hand = re.sub(rb'description: ".*"', b'description: "What I must not forget"', stored.data)
    await root.files.replace(TOPIC, by_hand, expected=stored.version)
    await root.save("The cellar holds nine barrels of cider. " * 4, by="user")
    await root.run()
    await forget(root.files, root.changes, first.id, key=KEY, who="user")
    after = await root.contents()
    assert b'description: "What I must not forget"' in after[TOPIC]
    assert b"1. [More facts](memory/topics/more-facts.md): What I must not forget" in after[MEMORY_PATH]


@pytest.mark.req("AS-BUG-19", "AS-CONS-01", "AS-CONS-04")
async def test_where_somebody_saves_all_the_time_what_was_read_is_curated_and_the_rest_by_the_next_run() -> None:
    class Saving(NoYield):
        async def pause(self) -> None:
            await root.save(f"Service {next(numbers)} listens on port {next(numbers)}.", kind="decision", by="user")

    root, numbers = Root(), count(4000)
    busy = Consolidator(
        files=root.files, changes=root.changes, redactor=REDACTOR, clock=root.clock, key=KEY, yield_policy=Saving
    )
    done = await busy.consolidate(force=True)
    assert done.change_id
    assert done.read > 0
    await root.run()
    ledger = parse_entries((await root.files.read(LEDGER)).data, LEDGER)
    curated = (await root.files.read(MEMORY_PATH)).data
    assert [one.entry.id for one in ledger if one.entry.id.encode() not in curated] == []


@pytest.mark.req("HE-O-conflict")
async def test_what_a_run_left_in_its_ledger_is_replaced_by_a_later_statement_and_curated_when_it_is_repeated() -> None:
    root = Root()
    old = await root.save("The staging gateway listens on port 8181.", by="flush", confidence=0.5)
    said_once = await root.save("The office of the harbour closes early.", by="flush", confidence=0.65)
    assert (await root.run()).left == 2
    new = await root.save("The staging gateway now listens on port 9494.", by="flush", confidence=0.9)
    await root.run()
    assert await root.memory() == [f"- {new.content}"]
    ledger = {one.entry.id: one.entry for one in parse_entries((await root.contents())[LEDGER], LEDGER)}
    assert (ledger[old.id].state, dict(ledger[old.id].extra)["successor"]) == ("superseded", new.id)
    assert ledger[said_once.id].state == "active"
    await root.save("The office of the harbour closes early.", by="flush", confidence=0.65)
    await root.run()
    assert await root.memory() == [f"- {said_once.content}", f"- {new.content}"]


@pytest.mark.req("HE-O-audit-forget")
async def test_forgetting_elsewhere_removes_what_the_same_user_learned_here_and_nothing_of_others() -> None:
    root = Root()
    said = "We deploy only from the branch called orchard."
    mine = await root.save(said, by="flush", scope=Scope(user="mara"))
    theirs = await root.save(said, by="flush", scope=Scope(user="ola"))
    elsewhere = Entry(content=said, id="0" * 25 + "1", time=root.clock.now())
    await forget_copies(root.files, root.changes, [elsewhere], key=KEY, who="user", user="mara")
    left = [one.entry.id for one in parse_entries((await root.contents())[LEDGER], LEDGER)]
    assert (mine.id in left, theirs.id in left) == (False, True)
