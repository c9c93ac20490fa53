"""The SQLite adapter: transactions that are whole, files that are private, and trouble that has a name."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ricordo.errors import DocumentInvalid, StorageBusy, StorageFailed, StorageFull
from ricordo.storage import Connection
from ricordo.storage.sqlite import Database, Schema
from warm_processes import run_warm

pytestmark = pytest.mark.anyio

NOTES = Schema(owner=0x4E4F5445, steps=(("CREATE TABLE note (text TEXT NOT NULL)",),))


def add(text: str) -> Callable[[Connection], None]:
    def act(connection: Connection) -> None:
        connection.execute("INSERT INTO note VALUES (?)", (text,))

    return act


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_warm(["python", "-c", script, *arguments])


def held(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return texts(connection)


def texts(connection: Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT text FROM note ORDER BY rowid")]


async def test_what_was_written_is_read_by_the_next_to_open_it(tmp_path: Path) -> None:
    first = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await first.write(add("kept"))
    await first.close()
    second = await Database.open(tmp_path / "notes.db", schema=NOTES)
    assert await second.read(texts) == ["kept"]
    await second.close()


async def test_an_error_in_a_write_undoes_all_of_it(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "notes.db", schema=NOTES)

    def fail(connection: Connection) -> None:
        connection.execute("INSERT INTO note VALUES ('half')")
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(fail)
    await database.write(add("whole"))
    assert await database.read(texts) == ["whole"]
    await database.close()


async def test_a_commit_that_fails_for_want_of_room_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    full = False

    def commit(connection: Connection) -> None:
        if full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        connection.execute("COMMIT")

    database = await Database.open(tmp_path / "notes.db", schema=NOTES, commit=commit)
    await database.write(add("before"))
    full = True
    with pytest.raises(StorageFull):
        await database.write(add("lost"))
    full = False
    assert await database.read(texts) == ["before"]
    await database.close()


async def test_a_write_whose_caller_is_cancelled_runs_to_its_end(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "notes.db", schema=NOTES)
    began = threading.Event()

    def slowly(connection: Connection) -> None:
        connection.execute("INSERT INTO note VALUES ('first half')")
        began.set()
        time.sleep(0.1)
        connection.execute("INSERT INTO note VALUES ('second half')")

    async with anyio.create_task_group() as group:
        group.start_soon(database.write, slowly)
        await anyio.to_thread.run_sync(began.wait)
        group.cancel_scope.cancel()
    assert await database.read(texts) == ["first half", "second half"]
    await database.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_write_whose_task_is_cancelled_natively_ends_before_the_next_begins(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "notes.db", schema=NOTES)
    began, running = threading.Event(), []

    def slowly(connection: Connection) -> None:
        running.append("first")
        connection.execute("INSERT INTO note VALUES ('first half')")
        began.set()
        time.sleep(0.1)
        connection.execute("INSERT INTO note VALUES ('second half')")
        running.append("first ended")

    def next_one(connection: Connection) -> list[str]:
        running.append("second")
        return texts(connection)

    task = asyncio.ensure_future(database.write(slowly))
    await anyio.to_thread.run_sync(began.wait)
    task.cancel()
    assert await database.read(next_one) == ["first half", "second half"]
    assert running == ["first", "first ended", "second"]
    with pytest.raises(asyncio.CancelledError):
        await task
    await database.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_that_is_cancelled_while_it_waits_for_its_turn_never_runs(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "notes.db", schema=NOTES)
    began, go = threading.Event(), threading.Event()

    def slowly(connection: Connection) -> None:
        began.set()
        go.wait(10)
        add("first")(connection)

    first = asyncio.ensure_future(database.write(slowly))
    await anyio.to_thread.run_sync(began.wait)
    second = asyncio.ensure_future(database.write(add("second")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go.set()
    await first
    assert await database.read(texts) == ["first"]
    await database.close()


async def test_a_read_sees_one_snapshot_though_another_writes(tmp_path: Path) -> None:
    reader = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await reader.write(add("one"))

    def twice(connection: Connection) -> tuple[int, int]:
        before = len(texts(connection))
        with closing(sqlite3.connect(tmp_path / "notes.db")) as other, other:
            other.execute("INSERT INTO note VALUES ('two')")
        return before, len(texts(connection))

    assert await reader.read(twice) == (1, 1)
    assert await reader.read(texts) == ["one", "two"]
    await reader.close()


@pytest.mark.req("GO-D13")
@pytest.mark.parametrize("umask", [0, 0o277])
async def test_the_file_and_its_logs_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        database = await Database.open(tmp_path / "notes.db", schema=NOTES)
        await database.write(add("secret"))
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(tmp_path)}
    finally:
        os.umask(before)
    assert modes == {"notes.db": 0o600, "notes.db-wal": 0o600, "notes.db-shm": 0o600}
    await database.close()


@pytest.mark.req("GO-D13")
async def test_a_file_that_others_could_read_becomes_private_when_it_is_opened(tmp_path: Path) -> None:
    first = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await first.close()
    (tmp_path / "notes.db").chmod(0o644)
    again = await Database.open(tmp_path / "notes.db", schema=NOTES)
    assert stat.S_IMODE((tmp_path / "notes.db").stat().st_mode) == 0o600
    await again.close()


async def test_later_steps_keep_what_earlier_ones_hold_and_are_taken_once(tmp_path: Path) -> None:
    old = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await old.write(add("old"))
    await old.close()
    newer = Schema(owner=NOTES.owner, steps=(*NOTES.steps, ("ALTER TABLE note ADD COLUMN tag TEXT",)))
    for _ in range(2):
        database = await Database.open(tmp_path / "notes.db", schema=newer)
        assert await database.read(texts) == ["old"]
        await database.close()
    with pytest.raises(StorageFailed, match="newer version"):
        await Database.open(tmp_path / "notes.db", schema=NOTES, cache=True)


async def test_a_step_that_fails_leaves_the_schema_before_it(tmp_path: Path) -> None:
    first = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await first.close()
    broken = Schema(owner=NOTES.owner, steps=(*NOTES.steps, ("CREATE TABLE extra (a)", "CREATE TABLE note (b)")))
    with pytest.raises(StorageFailed):
        await Database.open(tmp_path / "notes.db", schema=broken)
    again = await Database.open(tmp_path / "notes.db", schema=NOTES)
    tables = await again.read(lambda connection: connection.execute("SELECT name FROM sqlite_master").fetchall())
    assert tables == [("note",)]
    await again.close()


@pytest.mark.parametrize("content", [b"This is not a database, only a text that is long enough." * 40, b"\0" * 4096])
async def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "notes.db").write_bytes(content)
    with pytest.raises(DocumentInvalid):
        await Database.open(tmp_path / "notes.db", schema=NOTES)
    assert (tmp_path / "notes.db").read_bytes() == content


async def test_the_database_of_another_program_is_named_and_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "notes.db") as foreign:
        foreign.execute("CREATE TABLE theirs (a)")
    foreign.close()
    with pytest.raises(DocumentInvalid):
        await Database.open(tmp_path / "notes.db", schema=NOTES)
    with sqlite3.connect(tmp_path / "notes.db") as again:
        assert again.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    again.close()


@pytest.mark.req("FC-STALE")
async def test_a_broken_cache_is_put_aside_and_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    for number in (1, 2):
        path.write_bytes(b"garbage" * 1000)
        database = await Database.open(path, schema=NOTES, cache=True)
        assert database.quarantined == f"notes.db.broken-{number}"
        await database.write(add("fresh"))
        await database.close()
        assert (tmp_path / f"notes.db.broken-{number}").read_bytes() == b"garbage" * 1000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"CREATE TABLE note", b"CREATE TABLE n\xffte"),
        (b"note (text", b"note (tXxt"),
        (b"tablenotenote", b"tableXoteXote"),
    ],
)
@pytest.mark.parametrize("cache", [True, False])
async def test_a_damaged_schema_is_damage_whatever_the_driver_makes_of_it(
    tmp_path: Path, old: bytes, new: bytes, *, cache: bool
) -> None:
    path = tmp_path / "notes.db"
    await (await Database.open(path, schema=NOTES)).close()
    broken = path.read_bytes().replace(old, new)
    path.write_bytes(broken)
    if not cache:
        with pytest.raises(DocumentInvalid):
            await (await Database.open(path, schema=NOTES)).read(texts)
        return
    database = await Database.open(path, schema=NOTES, cache=True)
    assert database.quarantined == "notes.db.broken-1"
    assert (tmp_path / "notes.db.broken-1").read_bytes() == broken
    assert await database.read(texts) == []
    await database.close()


async def test_a_database_removed_under_its_connection_is_reported_instead_of_written_to(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "notes.db", schema=NOTES)
    (tmp_path / "notes.db").unlink()
    with pytest.raises(DocumentInvalid, match="removed or replaced"):
        await database.write(add("nowhere"))
    assert await database.quarantine() == ""
    fresh = await Database.open(tmp_path / "notes.db", schema=NOTES)
    assert await fresh.read(texts) == []
    await fresh.close()


async def open_idle(folder: Path, count: int) -> list[Database]:
    """Return so many open databases with a note each, after the idle ones among them were closed."""
    databases = [await Database.open(folder / f"{number}.db", schema=NOTES) for number in range(count)]
    for number, database in enumerate(databases):
        await database.write(add(f"of {number}"))
    with anyio.fail_after(20):
        while count_open(folder) > 24:  # noqa: ASYNC110 - a thread closes them, and tells nobody
            await anyio.sleep(0.1)
    return databases


def count_open(folder: Path) -> int:
    """Return how many databases below a folder have a write-ahead log, which the last connection removes."""
    return len([*folder.glob("*.db-wal")])


async def test_of_many_idle_databases_24_stay_open_and_the_others_open_again_when_used(tmp_path: Path) -> None:
    databases = await open_idle(tmp_path, 30)
    assert count_open(tmp_path) == 24
    assert [await database.read(texts) for database in databases] == [[f"of {number}"] for number in range(30)]
    await databases[0].write(add("and more"))
    assert await databases[0].read(texts) == ["of 0", "and more"]
    for database in databases:
        await database.close()
    assert count_open(tmp_path) == 0
    with pytest.raises(StorageFailed, match="closed"):
        await databases[0].read(texts)


@pytest.mark.parametrize(
    "change", [Path.unlink, lambda path: path.write_bytes(b""), lambda path: path.rename(f"{path}x")]
)
async def test_a_change_of_an_idle_database_by_others_is_reported_as_that_of_an_open_one(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    databases = await open_idle(tmp_path, 25)
    change(tmp_path / "0.db")
    with pytest.raises(DocumentInvalid, match=r"removed or replaced|cut off"):
        await databases[0].write(add("nowhere"))
    for database in databases:
        await database.close()


async def test_a_new_database_does_not_play_back_the_log_of_one_that_was_removed(tmp_path: Path) -> None:
    old = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await old.write(add("of the old one"))
    (tmp_path / "notes.db").unlink()
    fresh = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await fresh.write(add("of the new one"))
    await old.close()
    third = await Database.open(tmp_path / "notes.db", schema=NOTES)
    assert await third.read(texts) == ["of the new one"]
    await third.close()
    await fresh.close()


@pytest.mark.req("FC-LOCKED")
async def test_a_lock_held_for_too_long_is_named(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "notes.db", schema=NOTES, busy_seconds=0.1)
    other = sqlite3.connect(tmp_path / "notes.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageBusy):
        await database.write(add("waits"))
    assert await database.read(texts) == []
    other.close()
    await database.write(add("goes"))
    assert await database.read(texts) == ["goes"]
    await database.close()


async def test_a_call_after_closing_is_refused(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "notes.db", schema=NOTES)
    await database.close()
    await database.close()
    with pytest.raises(StorageFailed):
        await database.read(texts)


async def test_a_place_that_can_hold_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageFailed):
        await Database.open(tmp_path / "file" / "notes.db", schema=NOTES)


SEALED = """
import os, sys, anyio
from pathlib import Path
from ricordo.storage.sqlite import Database, Schema
from ricordo.errors import StorageReadOnly
NOTES = Schema(owner=7, steps=(("CREATE TABLE note (text)",),))
async def main(warm, sealed):
    await (await Database.open(Path(warm), schema=NOTES)).close()
    if os.geteuid() == 0:
        os.setuid(65534)
    try:
        await Database.open(Path(sealed), schema=NOTES)
    except StorageReadOnly:
        print("named")
anyio.run(main, *sys.argv[1:])
"""


def test_a_folder_that_is_read_only_is_named(tmp_path: Path) -> None:
    sealed = tmp_path / "sealed"
    sealed.mkdir(mode=0o555)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    done = run(SEALED, str(tmp_path / "warm.db"), str(sealed / "notes.db"))
    assert done.stdout.strip() == "named", done.stderr


WRITER = """
import sys, anyio
from pathlib import Path
from ricordo.storage.sqlite import Database, Schema
NOTES = Schema(owner=0x4E4F5445, steps=(("CREATE TABLE note (text TEXT NOT NULL)",),))
async def main(path, name, count):
    for number in range(count):
        database = await Database.open(Path(path), schema=NOTES)
        await database.write(lambda c: c.execute("INSERT INTO note VALUES (?)", (f"{name}-{number}",)) and None)
        await database.read(lambda c: c.execute("SELECT count(*) FROM note").fetchone())
        await database.close()
anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


@pytest.mark.req("FC-LOCKED")
def test_eight_processes_that_open_one_new_file_at_once_lose_no_write_and_see_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notes.db"
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda name: run(WRITER, str(path), str(name), "12"), range(8)))
    assert [process.stderr for process in done if process.stderr] == []
    assert len(set(held(path))) == 8 * 12


KILLED = """
import os, sys, anyio
from pathlib import Path
from ricordo.storage.sqlite import Database, Schema
NOTES = Schema(owner=0x4E4F5445, steps=(("CREATE TABLE note (text TEXT NOT NULL)",),))
armed = False
def commit(connection):
    if armed:
        os._exit(9)
    connection.execute("COMMIT")
async def main(path):
    global armed
    database = await Database.open(Path(path), schema=NOTES, commit=commit)
    await database.write(lambda c: c.execute("INSERT INTO note VALUES ('done')") and None)
    armed = True
    await database.write(lambda c: c.execute("INSERT INTO note VALUES ('torn')") and None)
anyio.run(main, sys.argv[1])
"""


@pytest.mark.req("DF-B24")
def test_a_process_killed_before_its_commit_leaves_nothing_of_the_write(tmp_path: Path) -> None:
    assert run(KILLED, str(tmp_path / "notes.db")).returncode == 9
    assert held(tmp_path / "notes.db") == ["done"]
