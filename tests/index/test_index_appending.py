"""An append that is taken in on its way: it is on the disk once, and found, whatever goes wrong with either."""

import asyncio
import errno
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from filelock import FileLock

from disks import FailingDisk, StepDisk
from ricordo import Memory, Scope
from ricordo.errors import PathRefused, StorageBusy, StorageFull
from ricordo.messages import Message, Text, encode_message
from ricordo.search import Query
from ricordo.search.index import WorkspaceIndex
from ricordo.storage import AppendedRange, Connection, Disk
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import INDEX_FILE
from thread_trips import counted_trips

pytestmark = pytest.mark.anyio

Act = Callable[[], Coroutine[object, object, object]]

LEDGER = "workspace/memory/2026-11-21.md"
HEADER = b"# 2026-11-21\n\n"
ANIMALS = ("wombat", "quokka", "numbat", "bilby", "potoroo", "dunnart")


def bullet(animal: str, number: int = 0) -> bytes:
    return f"- The {animal}. ^01jd{number or ANIMALS.index(animal):022d}\n".encode()


async def begun(root: Path, files: LocalFiles | None = None, **given: object) -> WorkspaceIndex:
    """Return an index over a ledger that holds a wombat, which the index knows."""
    files = files or LocalFiles(root)
    await LocalFiles(root).append(LEDGER, bullet("wombat"), header=HEADER)
    index = await WorkspaceIndex.open(root / INDEX_FILE, files, busy_seconds=0.1, **given)  # type: ignore[arg-type]
    await index.search("wombat")
    return index


async def lines_of(index: WorkspaceIndex, *animals: str) -> list[list[int]]:
    return [[match.line_number for match in await index.search(animal)] for animal in animals]


def rows(path: Path) -> list[tuple[object, ...]]:
    """Return all that the index at `path` holds of its chunks but their numbers and digests."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            """SELECT line, end_line, part, place, twin, meaning, heading, entry, content, own, around
            FROM chunk JOIN words ON words.rowid = chunk.id ORDER BY line, part"""
        ).fetchall()


@pytest.mark.req("AS-INDEX-02")
async def test_a_save_after_the_first_is_one_write_one_sync_and_one_commit(tmp_path: Path) -> None:
    disk = StepDisk(lambda _: None)
    async with Memory.open(tmp_path, scope=Scope(user="me", project="shop"), disk=disk) as memory:
        await memory.remember("The wombat.")
        for number in range(20):
            disk.steps.clear()
            await memory.remember(f"The quokka has {number} young.")
            assert disk.steps == ["write", "sync", "commit"]
            if number % 7 == 0:
                assert await memory.recall("wombat")


@pytest.mark.req("AS-INDEX-02")
async def test_an_append_takes_one_trip_to_a_thread(tmp_path: Path) -> None:
    index = await begun(tmp_path)
    with counted_trips() as trips:
        for animal in ANIMALS[1:]:
            trips.clear()
            await index.append(LEDGER, bullet(animal))
            assert len(trips) == 1
    assert await lines_of(index, *ANIMALS) == [[3], [4], [5], [6], [7], [8]]
    await index.close()


@pytest.mark.req("AS-INDEX-02", "AS-FLUSH-04")
async def test_after_a_block_of_several_bullets_the_next_one_is_found_on_its_own_line(tmp_path: Path) -> None:
    index = await begun(tmp_path)
    await index.append(LEDGER, b"".join(map(bullet, ANIMALS[1:4])))
    await LocalFiles(tmp_path).append(LEDGER, bullet(ANIMALS[4]))
    await index.search("wombat")
    await index.append(LEDGER, bullet(ANIMALS[5]))
    assert await lines_of(index, *ANIMALS) == [[3], [4], [5], [6], [7], [8]]
    await index.close()


@pytest.mark.req("AS-INDEX-02")
async def test_rows_of_what_is_appended_are_those_of_the_whole_file(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    index = await begun(tmp_path)
    for number, animal in enumerate(ANIMALS[1:], 2):
        await index.append(LEDGER, bullet(animal))
        if animal == "numbat":
            # by hand, and not as we write
            (tmp_path / LEDGER).write_bytes((tmp_path / LEDGER).read_bytes() + b"\n## In the evening\n\nIt rained.\n\n")
        if animal == "bilby":
            await files.append(LEDGER, bullet("koala", 10 * number))
    await index.refresh()
    whole = await WorkspaceIndex.open(tmp_path / "whole.db", files)
    await whole.refresh()
    await whole.close()
    await index.close()
    assert rows(tmp_path / INDEX_FILE) == rows(tmp_path / "whole.db")
    assert {row[6] for row in rows(tmp_path / INDEX_FILE)} == {"2026-11-21", "In the evening"}


async def test_messages_appended_one_by_one_know_those_beside_them(tmp_path: Path) -> None:
    index, path = await begun(tmp_path), "workspace/agents/main/sessions/s1.log.jsonl"
    for at, animal in enumerate(ANIMALS):
        message = Message(id=f"m{at}", role="user", parts=(Text(text=f"The {animal}."),))
        await index.append(path, encode_message(message))
    whole = await WorkspaceIndex.open(tmp_path / "whole.db", LocalFiles(tmp_path))
    await whole.refresh()
    for animal in ANIMALS:
        asked = Query(text=animal, neighbours=True)
        assert await index.search(asked) == await whole.search(asked)
    await whole.close()
    await index.close()


@pytest.mark.req("AS-INDEX-02")
async def test_what_others_appended_meanwhile_is_found_and_nothing_is_found_twice(tmp_path: Path) -> None:
    index, files = await begun(tmp_path), LocalFiles(tmp_path)
    other = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    for at, animal in enumerate(ANIMALS[1:]):
        await (index, other, files)[at % 3].append(LEDGER, bullet(animal))
        if at % 3 < 2:
            # also before a search looks at the files
            assert [row[0] for row in rows(tmp_path / INDEX_FILE)] == [*range(3, at + 5)]
    for one in (index, other):
        assert await lines_of(one, *ANIMALS) == [[3], [4], [5], [6], [7], [8]]
        assert one.freshness().state == "fresh"
    await index.close()
    await other.close()


async def test_a_line_that_somebody_tore_off_is_closed_and_both_are_found(tmp_path: Path) -> None:
    index = await begun(tmp_path)
    with (tmp_path / LEDGER).open("ab") as file:
        file.write(b"- The quokka")
    await index.append(LEDGER, bullet("numbat"))
    assert await lines_of(index, "wombat", "quokka", "numbat") == [[3], [4], [5]]
    await index.close()


@pytest.mark.req("AS-INDEX-01", "AS-INDEX-02")
@pytest.mark.parametrize("path", [LEDGER, "workspace/memory/2026-11-22.md", "workspace/notes.md", "workspace/a.txt"])
@pytest.mark.parametrize("local", [True, False])
async def test_whatever_file_it_is_it_is_appended_once_with_its_header(path: str, local: bool, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path) if local else InMemoryFiles()
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    places = [await index.append(path, bullet(animal), header=b"# Zoo\n") for animal in ANIMALS[:3]]
    assert (await files.read(path)).data == b"# Zoo\n" + b"".join(map(bullet, ANIMALS[:3]))
    assert places == [
        AppendedRange(offset=6 + len(bullet("wombat")) * at, length=len(bullet("wombat"))) for at in range(3)
    ]
    found = [[2], [3], [4]] if path.endswith(".md") else [[], [], []]
    assert await lines_of(index, *ANIMALS[:3]) == found
    await index.close()


@pytest.mark.parametrize("step", [1, 2])
async def test_a_full_disk_is_an_error_and_no_trouble_of_the_index(step: int, tmp_path: Path) -> None:
    index = await begun(tmp_path, LocalFiles(tmp_path, disk=FailingDisk(step, errno.ENOSPC)))
    before = (tmp_path / LEDGER).read_bytes()
    with pytest.raises(StorageFull):
        await index.append(LEDGER, bullet("quokka"))
    assert ((tmp_path / LEDGER).read_bytes(), index.freshness().state) == (before, "fresh")
    await index.append(LEDGER, bullet("quokka"))
    assert await lines_of(index, "wombat", "quokka") == [[3], [4]]
    await index.close()


@pytest.mark.req("AS-FS-01")
async def test_a_path_that_leads_out_is_refused(tmp_path: Path) -> None:
    index = await begun(tmp_path)
    (tmp_path / LEDGER).rename(tmp_path.parent / f"{tmp_path.name}.md")
    (tmp_path / LEDGER).symlink_to(tmp_path.parent / f"{tmp_path.name}.md")
    with pytest.raises(PathRefused):
        await index.append(LEDGER, bullet("quokka"))
    assert bullet("quokka") not in (tmp_path.parent / f"{tmp_path.name}.md").read_bytes()
    await index.close()


def fail_once(error: sqlite3.Error) -> Callable[[Connection], None]:
    """Return a commit that fails once it is told so by an attribute."""

    def commit(connection: Connection) -> None:
        if getattr(commit, "fails", False):
            commit.fails = False  # type: ignore[attr-defined]
            raise error
        connection.execute("COMMIT")

    return commit


@pytest.mark.req("AS-INDEX-02", "FC-STALE")
@pytest.mark.parametrize(
    "error", [sqlite3.DatabaseError("database disk image is malformed"), sqlite3.OperationalError("disk I/O error")]
)
async def test_what_the_index_could_not_take_in_is_on_the_disk_once_and_found(
    error: sqlite3.Error, tmp_path: Path
) -> None:
    error.sqlite_errorcode = 11 if "malformed" in str(error) else 10
    commit = fail_once(error)
    index = await begun(tmp_path, commit=commit)
    commit.fails = True  # type: ignore[attr-defined]
    await index.append(LEDGER, bullet("quokka"))
    await index.append(LEDGER, bullet("numbat"))
    assert (tmp_path / LEDGER).read_bytes() == HEADER + b"".join(map(bullet, ANIMALS[:3]))
    assert await lines_of(index, *ANIMALS[:3]) == [[3], [4], [5]]
    assert index.freshness().state == "fresh"
    await index.close()


@pytest.mark.req("FC-LOCKED")
async def test_an_index_that_somebody_locks_refuses_no_append_and_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await begun(tmp_path)
    with closing(sqlite3.connect(tmp_path / INDEX_FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        tries: list[str] = []
        monkeypatch.setattr(index, "index_appended", lambda *_: tries.append("again"))
        await index.append(LEDGER, bullet("quokka"))
        assert (index.freshness().state, tries) == ("broken", [])
        assert await lines_of(index, "wombat", "quokka") == [[3], [4]]
        other.execute("ROLLBACK")
    assert await lines_of(index, "wombat", "quokka") == [[3], [4]]
    await index.close()
    assert (tmp_path / LEDGER).read_bytes() == HEADER + bullet("wombat") + bullet("quokka")


@pytest.mark.req("FC-LOCKED")
async def test_a_file_that_somebody_locks_keeps_nobody_from_searching(tmp_path: Path) -> None:
    index = await begun(tmp_path, LocalFiles(tmp_path, busy_seconds=60))
    lock = FileLock(next((tmp_path / "locks").glob("files-*.lock")), thread_local=False)
    await anyio.to_thread.run_sync(lock.acquire)
    async with anyio.create_task_group() as group:
        group.start_soon(index.append, LEDGER, bullet("quokka"))
        with anyio.fail_after(20):
            assert await lines_of(index, "wombat", "quokka") == [[3], []]
        await anyio.to_thread.run_sync(lock.release)
    assert await lines_of(index, "wombat", "quokka") == [[3], [4]]
    await index.close()


async def test_a_lock_that_is_never_free_is_an_error_and_nothing_is_appended(tmp_path: Path) -> None:
    index = await begun(tmp_path, LocalFiles(tmp_path, busy_seconds=0.1))
    with FileLock(next((tmp_path / "locks").glob("files-*.lock"))), pytest.raises(StorageBusy):
        await index.append(LEDGER, bullet("quokka"))
    assert (tmp_path / LEDGER).read_bytes() == HEADER + bullet("wombat")
    await index.close()


class HaltingDisk(Disk):
    """A disk whose syncs wait until they are let go on."""

    def __init__(self) -> None:
        self.reached, self.let = threading.Event(), threading.Event()

    def sync(self, descriptor: int) -> None:
        self.reached.set()
        assert self.let.wait(10)
        super().sync(descriptor)


async def by_task(act: Act, disk: HaltingDisk) -> None:
    task = asyncio.ensure_future(act())
    await asyncio.to_thread(disk.reached.wait, 10)
    task.cancel()
    disk.let.set()
    await asyncio.wait([task])
    assert task.cancelled()


async def by_scope(act: Act, disk: HaltingDisk) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(act)
        await anyio.to_thread.run_sync(disk.reached.wait, 10)
        group.cancel_scope.cancel()
        disk.let.set()


@pytest.mark.req("AS-INDEX-02")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("cancel", [by_task, by_scope])
async def test_a_cancelled_append_is_whole_and_found_and_so_is_the_next(
    cancel: Callable[[Act, HaltingDisk], Awaitable[None]], tmp_path: Path
) -> None:
    disk = HaltingDisk()
    index = await begun(tmp_path, LocalFiles(tmp_path, disk=disk))
    await cancel(partial(index.append, LEDGER, bullet("quokka")), disk)
    await index.append(LEDGER, bullet("numbat"))
    assert await lines_of(index, *ANIMALS[:3]) == [[3], [4], [5]]
    assert index.freshness().state == "fresh"
    await index.close()
