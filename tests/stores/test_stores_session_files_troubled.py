"""Session files in trouble: killed, in several processes at once, torn, full. Nothing that was saved is lost."""

import errno
import multiprocessing
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from disks import FailingDisk
from forking import driven
from hand_clock import HandClock
from kept_session_files import SHOP, backend, closes, keeps, lists, notes, opened
from ricordo import Entry
from ricordo.errors import StorageError, StorageFull
from ricordo.workspace import Source

pytestmark = pytest.mark.anyio

DRAFT = Path("sessions") / ".draft-s.jsonl"


def without_files(root: Path) -> None:
    """Go back to before the files were made of the drafts."""
    for path in (root / "sessions").glob("*.md"):
        path.unlink()


def set_aside(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in root.rglob("*.broken-*")]


@pytest.mark.req("GO-I7", "GO-G6", "GO-D9")
@pytest.mark.may_block("the driver forks")
def test_a_kill_at_any_step_loses_nothing_and_tells_nothing_twice(tmp_path: Path) -> None:
    whole, *cases = driven(Path(__file__).with_name("session_kill_driver.py"), tmp_path)
    assert not whole["killed"]
    assert len(cases) > 20
    for case in [whole, *cases]:
        told = f"killed at step {case['at']}"
        counts = Counter(case["entries"])
        saved = {text for text in case["ack"] if text != "Of fruit."}
        assert set(counts) >= saved, told
        assert set(counts) - saved <= set(case["try"]) - set(case["ack"]), told
        assert set(counts.values()) <= {1}, told
        text = "".join(case["files"].values())
        assert all(text.count(f"- {content}") == 1 for content in counts), told
        assert not [name for name in case["files"] if name.startswith(".draft")], told
        assert sorted(case["listed"]) == sorted(case["files"]), told
        assert len(case["listed"]) <= 2, told
        assert len(case["recalled"]) == len(case["listed"]), told
        if "Of fruit." in case["ack"]:
            assert any(content.endswith("] Of fruit.") for content in case["recalled"]), told
            assert "Of fruit." in case["preamble"], told
        assert all(content in case["preamble"] for content in counts), told


@pytest.mark.req("GO-G6", "GO-D1", "GO-I7", "GO-G14", "GO-G24-sync", "GO-G11")
async def test_a_session_that_runs_is_left_alone_and_one_whose_process_is_gone_is_recovered(tmp_path: Path) -> None:
    clock = HandClock()
    began = clock.now().astimezone()
    running = backend(tmp_path, clock)
    bound = running.bind(SHOP)
    await bound.save(Entry(content="Running.", source=Source(session="s")))
    async with opened(tmp_path) as store:
        assert [hit.entry.content for hit in await store.recall("running")] == ["Running."]
    assert (tmp_path / DRAFT).exists()
    draft = (tmp_path / DRAFT).read_bytes()
    await running.close()
    without_files(tmp_path)
    (tmp_path / DRAFT).write_bytes(draft)
    clock.turn(hours=3)
    async with opened(tmp_path, clock) as store:
        (hit,) = await store.recall("running")
        assert hit.entry.kind == "session-summary"
        assert hit.path == f"sessions/{began:%Y-%m-%d-%Hh%M}.md", "it is named by its start, whenever it is recovered"
        assert await keeps(store).pending_sessions() == ("s",)
    assert not (tmp_path / DRAFT).exists()


@pytest.mark.req("GO-G14", "GO-I6")
async def test_what_is_saved_while_another_one_closes_the_session_is_kept(tmp_path: Path) -> None:
    first, second = backend(tmp_path), backend(tmp_path)
    one, other = first.bind(replace(SHOP, session="s")), second.bind(replace(SHOP, session="s"))
    await one.save(Entry(content="One."))
    await other.save(Entry(content="Two."))
    path = await keeps(one).close_session(notes("s", "Both."))
    await other.save(Entry(content="Three."))
    assert sorted(entry.content for entry in await lists(one).entries()) == ["One.", "Three.", "Two."]
    await closes(other).close()
    assert [entry.content for entry in await lists(one).entries()] == ["Three.", "Two.", "One."]
    assert [hit.path for hit in await one.recall("")] == [path]


@pytest.mark.req("GO-I7", "GO-G6")
async def test_a_torn_line_hides_no_other_and_a_broken_one_is_set_aside(tmp_path: Path) -> None:
    running = backend(tmp_path)
    bound = running.bind(replace(SHOP, session="s"))
    saved = [await bound.save(Entry(content=f"Fact {number}.")) for number in range(2)]
    with (tmp_path / DRAFT).open("ab") as file:
        file.write(b'{"content": "Torn of')
    assert await lists(bound).entries() == saved[::-1]
    saved.append(await bound.save(Entry(content="After it.")))
    assert await lists(bound).entries() == saved[::-1]
    broken = (tmp_path / DRAFT).read_bytes()
    await running.close()
    async with opened(tmp_path) as store:
        assert await lists(store).entries() == saved[::-1]
    assert set_aside(tmp_path) == [broken]


@pytest.mark.req("GO-G6", "GO-I7")
@pytest.mark.parametrize("head", [b"", b"{}\n", b"\xff\n"])
async def test_a_draft_whose_first_line_is_lost_is_still_a_session(tmp_path: Path, head: bytes) -> None:
    async with opened(tmp_path, session="s") as store:
        saved = await store.save(Entry(content="Fact."))
        line = (tmp_path / DRAFT).read_bytes().split(b"\n")[1]
    without_files(tmp_path)
    (tmp_path / DRAFT).write_bytes(head + line + b"\n")
    async with opened(tmp_path) as store:
        assert await lists(store).entries() == [saved]
        assert await keeps(store).pending_sessions() == ("s",)


@pytest.mark.req("GO-D9", "GO-I9", "GO-G14")
@pytest.mark.parametrize(("code", "steps"), [(errno.ENOSPC, range(1, 40, 2)), (errno.EROFS, range(2, 40, 4))])
async def test_a_disk_that_fails_at_a_step_of_closing_loses_nothing(tmp_path: Path, code: int, steps: range) -> None:
    for at in steps:
        root = tmp_path / str(at)
        async with opened(root, session="s") as store:
            await store.save(Entry(content="Fact."))
            draft = (root / DRAFT).read_bytes()
        without_files(root)
        (root / DRAFT).write_bytes(draft)
        disk = FailingDisk(at, code)
        troubled = backend(root, disk=disk).bind(replace(SHOP, session="s"))
        failed = False
        try:
            await keeps(troubled).close_session(notes("s", "Sum."))
        except StorageError:
            failed = True
        async with opened(root) as store:
            assert [entry.content for entry in await lists(store).entries()] == ["Fact."]
            summaries = [hit.entry.content.partition("] ")[2] for hit in await store.recall("")]
            assert summaries in ([["Saved: Fact."], ["Sum."]] if failed else [["Sum."]])
        if len(disk.steps) < at:
            break
    else:
        pytest.fail("closing takes more steps than were tried")


@pytest.mark.req("GO-I9")
async def test_on_a_full_disk_saving_fails_and_reading_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path, session="s") as store:
        await store.save(Entry(content="Marmots."))
        await keeps(store).close_session(notes("s", "About marmots."))
    (tmp_path / "index.json").unlink()

    class Full(FailingDisk):
        def make_file(self, path: str, flags: int = 0) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = backend(tmp_path, disk=Full(0, 0)).bind(SHOP)
    assert len(await store.recall("marmots")) == 1
    assert "About marmots." in await store.preamble()
    with pytest.raises(StorageFull):
        await store.save(Entry(content="More."))
    with pytest.raises(StorageFull):
        await keeps(store).close_session(notes("t", "More."))
    assert len(await store.recall("")) == 1


@pytest.mark.req("GO-I9")
@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC])
async def test_what_can_not_be_recovered_on_a_bad_disk_is_read_from_its_draft(tmp_path: Path, code: int) -> None:
    running = backend(tmp_path)
    saved = await running.bind(SHOP).save(Entry(content="Marmots.", source=Source(session="s")))
    draft = (tmp_path / DRAFT).read_bytes()
    await running.close()
    without_files(tmp_path)
    (tmp_path / DRAFT).write_bytes(draft)

    class Bad(FailingDisk):
        def make_file(self, path: str, flags: int = 0) -> int:
            raise OSError(code, os.strerror(code))

    store = backend(tmp_path, disk=Bad(0, 0)).bind(SHOP)
    assert [hit.entry.id for hit in await store.recall("marmots")] == [saved.id]
    assert "Marmots." in await store.preamble()
    assert (tmp_path / DRAFT).read_bytes() == draft


def work(root: Path, who: str) -> None:
    async def act() -> None:
        store = backend(root, HandClock())
        bound = store.bind(SHOP)
        for number in range(30):
            session = f"{who}{number // 10}"
            await bound.save(Entry(content=f"Fact {who}{number}.", source=Source(session=session)))
            if number % 10 == 9:
                await keeps(bound).close_session(notes(session, f"Sum {session}."))
        await bound.save(Entry(content=f"Fact {who}.", source=Source(session="both")))
        await store.close()

    anyio.run(act)


@pytest.mark.req("GO-I6", "GO-D9")
async def test_two_processes_that_save_and_close_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(tmp_path, who)) for who in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        await anyio.to_thread.run_sync(process.join)
    assert [process.exitcode for process in processes] == [0, 0]
    async with opened(tmp_path) as store:
        contents = [entry.content for entry in await lists(store).entries()]
        paths = [hit.path for hit in await store.recall("", 99)]
    wanted = {f"Fact {who}{number}." for who in "ab" for number in [*range(30), ""]}
    assert Counter(contents) == Counter(wanted)
    assert len(paths) == len(set(paths)) == 7
    assert sorted(path.name for path in (tmp_path / "sessions").iterdir()) == sorted(
        path.rpartition("/")[2] for path in paths
    )
