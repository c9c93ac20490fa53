"""A broken, locked, vanished or read-only index: searches go on, from the files, and the index heals."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from ricordo.search import Match
from ricordo.search.index import WorkspaceIndex
from ricordo.search.tables import SCHEMA
from ricordo.storage import Connection
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles
from ricordo.workspace import INDEX_FILE
from warm_processes import run_warm

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-STALE")]

MEMORY = "workspace/MEMORY.md"


def place(root: Path, path: str, content: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


def zoo(root: Path, animals: int = 40) -> None:
    """Fill a root with topics, an animal in each."""
    place(root, MEMORY, "- The mascot is a wombat.\n")
    for number in range(animals):
        place(
            root, f"workspace/memory/topics/t{number:02d}.md", f"# Topic\n\n- Animal animal{number:02d} lives here.\n"
        )


def places(matches: list[Match]) -> list[tuple[str, int]]:
    return [(match.path, match.line_number) for match in matches]


async def opened(root: Path) -> WorkspaceIndex:
    return await WorkspaceIndex.open(root / INDEX_FILE, LocalFiles(root), busy_seconds=0.2)


def spoil(path: Path) -> None:
    """Overwrite all but the first page of a database, and lose its log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be read as one " * 100, b"\0" * 9000])
async def test_a_file_that_is_no_index_is_put_aside_and_the_index_made_anew(tmp_path: Path, content: bytes) -> None:
    zoo(tmp_path)
    (tmp_path / INDEX_FILE).write_bytes(content)
    index = await opened(tmp_path)
    report = await index.refresh()
    assert report.quarantined == ("memory_index.db.broken-1" if content else "")
    assert places(await index.search("wombat")) == [(MEMORY, 1)]
    assert index.freshness().state == "fresh"
    await index.close()


async def test_an_index_that_turns_out_damaged_under_a_search_is_put_aside_and_the_search_answered(
    tmp_path: Path,
) -> None:
    zoo(tmp_path)
    first = await opened(tmp_path)
    await first.refresh()
    await first.close()
    await anyio.to_thread.run_sync(spoil, tmp_path / INDEX_FILE)
    index = await opened(tmp_path)
    assert places(await index.search("wombat")) == [(MEMORY, 1)]
    report = await index.refresh()
    assert report.quarantined == "memory_index.db.broken-1"
    assert places(await index.search("animal07")) == [("workspace/memory/topics/t07.md", 3)]
    assert index.freshness().state == "fresh"
    await index.close()


async def test_an_index_deleted_or_replaced_while_it_is_open_is_rebuilt(tmp_path: Path) -> None:
    zoo(tmp_path, 3)
    index = await opened(tmp_path)
    await index.refresh()
    os.unlink(tmp_path / INDEX_FILE)
    assert places(await index.search("animal01")) == [("workspace/memory/topics/t01.md", 3)]
    assert index.freshness().state == "fresh"
    os.rename(tmp_path / INDEX_FILE, tmp_path / "taken.db")
    (tmp_path / INDEX_FILE).write_bytes(b"garbage " * 2000)
    place(tmp_path, MEMORY, "- The mascot is a quokka.\n")
    assert places(await index.search("quokka")) == [(MEMORY, 1)]
    assert await index.search("wombat") == []
    assert index.freshness().state == "fresh"
    await index.close()


async def test_deleting_the_index_loses_nothing(tmp_path: Path) -> None:
    zoo(tmp_path)
    index = await opened(tmp_path)
    before = {query: await index.search(query) for query in ("wombat", "animal", "lives here", "animal11 topic")}
    await index.close()
    os.unlink(tmp_path / INDEX_FILE)
    again = await opened(tmp_path)
    assert {query: await again.search(query) for query in before} == before
    await again.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@pytest.mark.req("AS-BUG-26", "FC-LOCKED")
async def test_a_locked_index_answers_from_the_files_and_says_so(tmp_path: Path) -> None:
    zoo(tmp_path, 3)
    index = await opened(tmp_path)
    await index.refresh()
    place(tmp_path, MEMORY, "- The mascot is a quokka.\n")
    with locked(tmp_path / INDEX_FILE):
        assert places(await index.search("quokka")) == [(MEMORY, 1)]
        assert await index.search("wombat") == []
        assert places(await index.search("animal02")) == [("workspace/memory/topics/t02.md", 3)]
        assert index.freshness().state == "broken"
        assert "locked" in index.freshness().reason
    assert places(await index.search("quokka")) == [(MEMORY, 1)]
    assert index.freshness().state == "fresh"
    await index.close()


async def test_a_full_disk_leaves_searching_and_freshness_true(tmp_path: Path) -> None:
    full = False

    def commit(connection: Connection) -> None:
        if full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        connection.execute("COMMIT")

    zoo(tmp_path, 3)
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, LocalFiles(tmp_path), commit=commit)
    await index.refresh()
    full = True
    place(tmp_path, MEMORY, "- The mascot is a quokka.\n")
    assert places(await index.search("quokka")) == [(MEMORY, 1)]
    await index.index_appended(MEMORY, 26, b"- And a numbat.\n")
    assert index.freshness().state == "broken"
    full = False
    assert places(await index.search("quokka")) == [(MEMORY, 1)]
    assert index.freshness().state == "fresh"
    await index.close()


@pytest.mark.req("AS-INDEX-04")
async def test_where_no_index_can_be_every_search_reads_the_files(tmp_path: Path) -> None:
    zoo(tmp_path, 3)
    index = await WorkspaceIndex.open(tmp_path / MEMORY / "memory_index.db", LocalFiles(tmp_path))
    assert places(await index.search("wombat")) == [(MEMORY, 1)]
    assert index.freshness().state == "broken"
    assert (await index.refresh()).failed
    await index.index_appended(MEMORY, 0, b"- The mascot.\n")
    place(tmp_path, MEMORY, "- The mascot is a quokka.\n")
    assert places(await index.search("quokka")) == [(MEMORY, 1)]
    assert [match.rank for match in await index.search("animal lives", 2)] == [1, 2]
    await index.close()


@pytest.mark.req("AS-INDEX-04", "AS-BUG-25")
async def test_a_scan_ranks_like_the_index(tmp_path: Path) -> None:
    zoo(tmp_path)
    index, scan = await opened(tmp_path), await WorkspaceIndex.open(tmp_path, LocalFiles(tmp_path))
    for query in ("wombat", "animal17 mascot", "topic animal03", "nothing of this", ""):
        assert await index.search(query, 5) == await scan.search(query, 5), query
    await index.close()
    await scan.close()


@pytest.mark.req("AS-INDEX-04")
async def test_what_a_search_has_no_time_to_take_in_is_read_from_the_files(tmp_path: Path) -> None:
    zoo(tmp_path)
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, LocalFiles(tmp_path), patience_seconds=0.0)
    assert places(await index.search("animal23")) == [("workspace/memory/topics/t23.md", 3)]
    assert (index.freshness().state, index.freshness().stale_files) == ("stale", 41)
    await index.refresh()
    place(tmp_path, "workspace/memory/topics/t23.md", "- Animal animal99 moved in.\n")
    assert await index.search("animal23") == []
    assert places(await index.search("animal99")) == [("workspace/memory/topics/t23.md", 1)]
    changed = {f"workspace/memory/topics/t{number:02d}.md" for number in range(12)}
    for path in changed:
        place(tmp_path, path, "# Topic\n\n- Animal lives.\n" if "0.md" in path else "# Topic\n\n- An animal.\n")
    found = await index.search("animal lives", 10)
    assert [match.rank for match in found] == [*range(1, 11)]
    scores = [match.score for match in found]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 1
    assert found[0].path in changed, "read from the files, and best"
    assert {match.path for match in found} - changed
    await index.close()


@pytest.mark.req("FC-LOCKED")
async def test_searches_and_a_refresh_of_one_process_do_not_hinder_each_other(tmp_path: Path) -> None:
    zoo(tmp_path)
    index = await opened(tmp_path)
    found: list[list[tuple[str, int]]] = []

    async def look() -> None:
        found.append(places(await index.search("animal31")))

    async with anyio.create_task_group() as group:
        group.start_soon(index.refresh)
        for _ in range(5):
            group.start_soon(look)
    assert found == [[("workspace/memory/topics/t31.md", 3)]] * 5
    assert index.freshness().state == "fresh"
    await index.close()


KILLED = """
import os, sys, anyio
from pathlib import Path
from ricordo.storage.local import LocalFiles
from ricordo.search.index import WorkspaceIndex
left = int(sys.argv[2])
def commit(connection):
    global left
    left -= 1
    if left < 0:
        os._exit(9)
    connection.execute("COMMIT")
async def main(root):
    index = await WorkspaceIndex.open(root / "memory_index.db", LocalFiles(root), commit=commit)
    await index.refresh()
anyio.run(main, Path(sys.argv[1]))
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_warm(["python", "-c", script, *arguments])


@pytest.mark.req("AS-BUG-26")
@pytest.mark.parametrize("taken", [None, 0, 2])
def test_a_process_killed_between_two_documents_leaves_a_sound_index_that_is_behind(
    tmp_path: Path, taken: int | None
) -> None:
    commits = 0 if taken is None else len(SCHEMA.steps) + taken
    zoo(tmp_path, 4)
    for path in tmp_path.rglob("*.md"):
        # what was written a moment ago would be looked at again
        os.utime(path, (1_795_000_000, 1_795_000_000))
    assert run(KILLED, str(tmp_path), str(commits)).returncode == 9

    async def look() -> None:
        index = await opened(tmp_path)
        assert index.freshness().stale_files == 5 - (taken or 0)
        for number in range(4):
            assert places(await index.search(f"animal{number:02d}")) == [
                (f"workspace/memory/topics/t{number:02d}.md", 3)
            ]
        assert (await index.refresh()).quarantined == ""
        await index.close()

    anyio.run(look)


CROWD = """
import os, sys, time, anyio
from pathlib import Path
from ricordo.storage.local import LocalFiles
from ricordo.search.index import WorkspaceIndex
async def main(root, name, seconds):
    files, end, number = LocalFiles(root), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        index = await WorkspaceIndex.open(root / "memory_index.db", files)
        for _ in range(5):
            word = f"word{name}x{number}"
            line = f"- Process {name} says {word}. ^0{name}jd{number:022d}\\n".encode()
            path = f"workspace/memory/2026-11-2{name % 3}.md"
            appended = await files.append(path, line)
            await index.index_appended(path, appended.offset, line)
            found = await index.search(word)
            assert [match.content for match in found] == [f"Process {name} says {word}."], (word, found)
            assert index.freshness().state != "broken", index.freshness()
            number += 1
        await index.refresh()
        await index.close()
    print(number)
anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
"""


def crowd(root: Path, seconds: float) -> None:
    """Let eight processes write, index and search one root; everything is found by all, nobody sees a lock."""
    (root / "workspace" / "memory").mkdir(parents=True)
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda name: run(CROWD, str(root), str(name), str(seconds)), range(8)))
    assert [process.stderr for process in done if process.stderr] == []
    written = {name: int(process.stdout) for name, process in enumerate(done)}
    assert all(written.values())

    async def look() -> None:
        index = await opened(root)
        for name, count in written.items():
            assert len(await index.search(f"word{name}x{count - 1}")) == 1
        with closing(sqlite3.connect(root / INDEX_FILE)) as connection:
            assert connection.execute("SELECT count(*) FROM chunk").fetchone() == (sum(written.values()),)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert not [name for name in os.listdir(root) if "broken" in name]
        await index.close()

    anyio.run(look)


@pytest.mark.req("FC-LOCKED")
@pytest.mark.may_block("the check reads the database itself")
def test_eight_processes_on_one_root_find_what_they_write_and_see_no_lock(tmp_path: Path) -> None:
    crowd(tmp_path, 1.0)


@pytest.mark.req("FC-LOCKED")
@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.may_block("the check reads the database itself")
def test_eight_processes_on_one_root_go_on_for_half_a_minute(tmp_path: Path) -> None:
    crowd(tmp_path, 30.0)


async def test_opening_needs_no_disk_but_that_of_the_index(tmp_path: Path) -> None:
    files = InMemoryFiles()
    await files.append(MEMORY, b"- The mascot is a wombat.\n")
    index = await WorkspaceIndex.open(tmp_path / INDEX_FILE, files)
    with anyio.fail_after(20):
        assert places(await index.search("wombat")) == [(MEMORY, 1)]
    await index.close()
