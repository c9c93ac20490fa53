"""Change sets: all files or none, whatever fails, and whoever else writes meanwhile."""

import errno
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disks import FailingDisk, StepDisk
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.errors import ChangeNotFound, DocumentInvalid, FileMissing, StorageFull, VersionConflict
from ricordo.storage import ABSENT, Disk, FileStore, compute_version
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import ChangeSets, Edit
from watched_files import WatchedFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-UNDO")]


def change_sets(files: FileStore) -> ChangeSets:
    clock = SystemClock()
    return ChangeSets(files, clock=clock, ids=MonotonicIds(clock))


BEFORE: dict[str, bytes] = {"workspace/a.md": b"a old\n", "workspace/b.md": b"b old\n", "workspace/gone.md": b"g\n"}
AFTER: dict[str, bytes] = {"workspace/a.md": b"a new\n", "workspace/b.md": b"b new\n", "workspace/new.md": b"n\n"}
EDITS = [
    Edit(path=path, expected_hash=compute_version(BEFORE[path]) if path in BEFORE else ABSENT, data=AFTER.get(path))
    for path in sorted(BEFORE | AFTER)
]


async def prepared(files: FileStore) -> FileStore:
    for path, data in BEFORE.items():
        await files.create(path, data)
    return files


async def contents(files: FileStore) -> dict[str, bytes]:
    return {info.path: (await files.read(info.path)).data for info in await files.list("workspace")}


async def test_a_change_writes_creates_and_deletes_and_is_on_record() -> None:
    files = await prepared(InMemoryFiles())
    changes = change_sets(files)
    change = await changes.apply(EDITS, act="test", who="me", why="because")
    assert await contents(files) == AFTER
    assert await changes.list_changes() == [change] == [await changes.get_change(change.id)]
    assert (change.action, change.actor, change.reason) == ("test", "me", "because")
    assert await files.list("history/pending") == []
    for changed in change.files:
        assert await changes.read_content(changed.before) == BEFORE.get(changed.path)
        assert await changes.read_content(changed.after) == AFTER.get(changed.path)


async def test_a_file_that_changed_since_it_was_read_refuses_the_whole_change() -> None:
    for path in sorted(BEFORE | AFTER):
        files = await prepared(InMemoryFiles())
        await files.append(path, b"somebody else\n")
        held = await contents(files)
        with pytest.raises(VersionConflict):
            await change_sets(files).apply(EDITS, act="test", who="me")
        assert await contents(files) == held
        assert await change_sets(files).list_changes() == []


async def test_a_file_that_was_deleted_meanwhile_is_a_conflict_too() -> None:
    files = await prepared(InMemoryFiles())
    await files.delete("workspace/b.md")
    with pytest.raises(VersionConflict):
        await change_sets(files).apply(EDITS, act="test", who="me")
    assert (await contents(files))["workspace/a.md"] == b"a old\n"


@pytest.mark.parametrize("verb", ["replace", "delete"])
async def test_a_writer_between_two_steps_makes_it_roll_back(verb: str) -> None:
    inner = await prepared(InMemoryFiles())
    touched = {"replace": "workspace/new.md", "delete": "workspace/gone.md"}[verb]

    async def interfere(called: str, path: str) -> None:
        if called == verb and path == touched and (await inner.info(touched + ".done")) is None:
            await inner.append(touched, b"somebody else\n")
            await inner.create(touched + ".done", b"")

    held = BEFORE | {touched: BEFORE.get(touched, b"") + b"somebody else\n", touched + ".done": b""}
    with pytest.raises(VersionConflict):
        await change_sets(WatchedFiles(inner, interfere)).apply(EDITS, act="test", who="me")
    assert await contents(inner) == held


async def test_a_plan_is_made_again_when_its_file_changed() -> None:
    inner = InMemoryFiles()
    await inner.create("workspace/log", b"0\n")
    left = [3]

    async def interfere(verb: str, path: str) -> None:
        if verb == "replace" and path == "workspace/log" and left[0]:
            left[0] -= 1
            await inner.append("workspace/log", b"theirs\n")

    files = WatchedFiles(inner, interfere)

    async def plan() -> list[Edit]:
        stored = await files.read("workspace/log")
        return [Edit(path="workspace/log", expected_hash=stored.version, data=b"ours\n" + stored.data)]

    await change_sets(files).rebase(plan, act="test", who="me")
    assert (await inner.read("workspace/log")).data == b"ours\n0\ntheirs\ntheirs\ntheirs\n"
    assert len(await change_sets(files).list_changes()) == 1


async def _steps(root: Path) -> list[str]:
    await prepared(LocalFiles(root))
    disk = StepDisk(lambda _: None)
    await change_sets(LocalFiles(root, disk=disk)).apply(EDITS, act="test", who="me")
    return disk.steps


async def test_a_disk_that_fills_up_at_any_third_step_leaves_all_or_nothing(tmp_path: Path) -> None:
    await _check_full(tmp_path, every=3)


@pytest.mark.soak
async def test_a_disk_that_fills_up_at_any_step_leaves_all_or_nothing(tmp_path: Path) -> None:
    await _check_full(tmp_path, every=1)


async def _check_full(tmp_path: Path, *, every: int) -> None:
    steps = await _steps(tmp_path / "whole")
    assert len(steps) > 40
    for at in range(1, len(steps) + 1, every):
        root = tmp_path / str(at)
        await prepared(LocalFiles(root))
        try:
            await change_sets(LocalFiles(root, disk=FailingDisk(at, errno.ENOSPC))).apply(EDITS, act="test", who="me")
        except StorageFull:
            await change_sets(LocalFiles(root)).recover()
            held = await contents(LocalFiles(root))
            done = len(await change_sets(LocalFiles(root)).list_changes())
            assert held == (AFTER if done else BEFORE), (at, steps[at - 1])
        else:
            await change_sets(LocalFiles(root)).recover()
            assert await contents(LocalFiles(root)) == AFTER
        assert await LocalFiles(root).list("history/pending") == []


@pytest.mark.parametrize("at", range(1, 30))
async def test_a_cancelled_change_is_whole_or_was_never_begun(at: int) -> None:
    inner = await prepared(InMemoryFiles())
    calls = 0

    async def cancel(verb: str, path: str) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            scope.cancel()
        await anyio.lowlevel.checkpoint()

    with anyio.CancelScope() as scope:
        await change_sets(WatchedFiles(inner, cancel)).apply(EDITS, act="test", who="me")
    assert await contents(inner) in (BEFORE, AFTER)
    assert await inner.list("history/pending") == []


async def cut_off(files: FileStore, written: int) -> None:
    """Leave the files as a process does that dies after so many of the edits."""
    changes = change_sets(files)
    change = await changes.apply(EDITS, act="test", who="me")
    record = (await files.read(f"history/changes/{change.id}.json")).data
    await files.delete(f"history/changes/{change.id}.json")
    await files.create(f"history/pending/{change.id}.json", record)
    for edit in EDITS[written:]:
        found = await files.info(edit.path)
        if found is not None:
            await files.delete(edit.path)
        if edit.path in BEFORE:
            await files.create(edit.path, BEFORE[edit.path])


@pytest.mark.parametrize("written", range(len(EDITS) + 1))
async def test_what_a_dead_process_left_is_put_back_by_the_next_one(written: int) -> None:
    files = await prepared(InMemoryFiles())
    await cut_off(files, written)
    assert await change_sets(files).recover() == 1
    assert await contents(files) == BEFORE
    assert await change_sets(files).recover() == 0
    await change_sets(files).apply(EDITS, act="again", who="me")
    assert await contents(files) == AFTER


@pytest.mark.parametrize("written", range(len(EDITS) + 1))
async def test_what_others_appended_meanwhile_survives_the_putting_back(written: int) -> None:
    files = await prepared(InMemoryFiles())
    await cut_off(files, written)
    await files.append("workspace/a.md", b"theirs\n")
    await files.append("workspace/b.md", b"theirs\n")
    await change_sets(files).recover()
    held = await contents(files)
    assert held["workspace/a.md"] == b"a old\ntheirs\n"
    assert held["workspace/b.md"] == b"b old\ntheirs\n"


async def test_what_a_person_rewrote_meanwhile_is_left_alone() -> None:
    files = await prepared(InMemoryFiles())
    await cut_off(files, len(EDITS))
    await files.replace("workspace/a.md", b"by hand\n", expected=compute_version(b"a new\n"))
    await change_sets(files).recover()
    assert (await contents(files))["workspace/a.md"] == b"by hand\n"
    assert (await contents(files))["workspace/b.md"] == b"b old\n"
    [change] = await change_sets(files).list_changes()
    assert (change.action, await files.list("history/pending")) == ("test", [])
    [changed] = [changed for changed in change.files if changed.path == "workspace/a.md"]
    assert await change_sets(files).read_content(changed.before) == b"a old\n"


async def recovered(before: bytes | None, after: bytes | None, found: bytes | None) -> tuple[bytes | None, bool]:
    """Return what becomes of a file that a cut-off change found as `before`, and whether the change is on record."""
    files = InMemoryFiles()
    if before is not None:
        await files.create("workspace/x", before)
    expected = ABSENT if before is None else compute_version(before)
    edit = Edit(path="workspace/x", expected_hash=expected, data=after)
    change = await change_sets(files).apply([edit], act="test", who="me")
    record = (await files.read(f"history/changes/{change.id}.json")).data
    await files.delete(f"history/changes/{change.id}.json")
    await files.create(f"history/pending/{change.id}.json", record)
    if await files.info("workspace/x"):
        await files.delete("workspace/x")
    if found is not None:
        await files.create("workspace/x", found)
    assert await change_sets(files).recover() == 1
    assert await files.list("history/pending") == []
    return (await contents(files)).get("workspace/x"), bool(await change_sets(files).list_changes())


@pytest.mark.parametrize(
    ("before", "after", "found", "left", "recorded"),
    [
        (b"# h\n- Alpha\n- Beta\n", b"# h\n- Beta\n", b"# h\n- Beta!\n", b"# h\n- Alpha\n- Beta!\n", False),
        (b"# h\n- Alpha\n- Beta\n", b"# h\n- Beta\n", b"# h\n- Alpha\n- Beta!\n", b"# h\n- Alpha\n- Beta!\n", False),
        (b"- Alpha\n", b"- Alpha 2\n", b"- Alpha 3\n", b"- Alpha 3\n", True),
        (b"- Alpha\n", b"", b"- theirs\n", b"- Alpha\n- theirs\n", False),
        (b"- Alpha", b"", b"- theirs\n", b"- Alpha\n- theirs\n", False),
        (b"- Alpha\n", b"", b"- theirs\n- Alpha\n", b"- theirs\n- Alpha\n", False),
        (b"- Alpha\n- Beta\n", b"", b"- theirs\n- Alpha\n", b"- theirs\n- Alpha\n", True),
        (b"", b"- Alpha\n", b"- Alpha\n- theirs\n", b"- theirs\n", False),
        (b"- Alpha\n", None, b"- theirs\n", b"- theirs\n", True),
        (b"- Alpha\n", None, b"- Alpha\n- theirs\n", b"- Alpha\n- theirs\n", False),
        (None, b"- Alpha\n", b"- Alpha\n- theirs\n", b"- theirs\n", False),
        (None, b"- Alpha\n", b"- theirs\n", b"- theirs\n", True),
        (b"- Alpha\n", b"- Beta\n", None, None, True),
    ],
)
async def test_what_others_did_to_a_half_changed_file_is_kept_and_the_change_is_never_out_of_sight(
    before: bytes | None, after: bytes | None, found: bytes | None, left: bytes | None, recorded: bool
) -> None:
    assert await recovered(before, after, found) == (left, recorded)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"id": "x"}', b"\xff"])
async def test_a_damaged_pending_record_stops_no_other_change(damage: bytes) -> None:
    files = await prepared(InMemoryFiles())
    await files.create("history/pending/damaged.json", damage)
    changes = change_sets(files)
    await changes.recover()
    await changes.apply(EDITS, act="test", who="me")
    assert await contents(files) == AFTER


async def test_history_that_was_removed_stops_no_other_change() -> None:
    files = await prepared(InMemoryFiles())
    await cut_off(files, 2)
    for info in await files.list("history/objects"):
        await files.delete(info.path)
    changes = change_sets(files)
    await changes.recover()
    await files.create("workspace/other.md", b"x\n")
    await changes.apply(
        [Edit(path="workspace/other.md", expected_hash=compute_version(b"x\n"), data=b"y\n")], act="t", who="me"
    )
    assert (await contents(files))["workspace/other.md"] == b"y\n"


@pytest.mark.parametrize("damage", [b"", b"no zlib", b"x\x9c\x03"])
async def test_a_damaged_content_is_a_typed_error(damage: bytes) -> None:
    files = await prepared(InMemoryFiles())
    change = await change_sets(files).apply(EDITS, act="test", who="me")
    version = change.files[0].before
    path = f"history/objects/{version[:2]}/{version}.z"
    await files.replace(path, damage, expected=(await files.read(path)).version)
    with pytest.raises(DocumentInvalid):
        await change_sets(files).read_content(version)
    with pytest.raises(FileMissing):
        await change_sets(files).read_content("0" * 32)


async def test_a_record_that_can_not_be_read_hides_no_other() -> None:
    files = await prepared(InMemoryFiles())
    changes = change_sets(files)
    change = await changes.apply(EDITS, act="test", who="me")
    await files.create("history/changes/zzz.json", b"{}")
    assert await changes.list_changes() == [change]
    with pytest.raises(ChangeNotFound):
        await changes.get_change("none")


@given(who=st.text(max_size=20), why=st.text(max_size=60))
async def test_a_record_reads_back_whatever_it_says(who: str, why: str) -> None:
    files = InMemoryFiles()
    edit = Edit(path="workspace/ünï.md", expected_hash=ABSENT, data=b"x")
    change = await change_sets(files).apply([edit], act="test", who=who, why=why, undoes="other")
    assert await change_sets(files).get_change(change.id) == change
    assert change.at <= datetime.now(UTC)


async def test_two_changers_of_one_file_both_get_their_turn(tmp_path: Path) -> None:
    async def add(word: str) -> None:
        files = LocalFiles(tmp_path / "root", disk=Disk())

        async def plan() -> list[Edit]:
            stored = await files.read("workspace/log")
            return [Edit(path="workspace/log", expected_hash=stored.version, data=stored.data + f"{word}\n".encode())]

        for _ in range(6):
            await change_sets(files).rebase(plan, act="test", who=word)

    files = LocalFiles(tmp_path / "root")
    await files.create("workspace/log", b"")
    async with anyio.create_task_group() as group:
        for word in ("one", "two", "three"):
            group.start_soon(add, word)
    lines = (await files.read("workspace/log")).data.decode().split()
    assert sorted(lines) == sorted(["one", "two", "three"] * 6)
    assert len(await change_sets(files).list_changes()) == 18
