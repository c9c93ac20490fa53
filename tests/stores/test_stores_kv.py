"""Key-value: an LMDB file that may be foreign, cut off, full, read-only, or open twice."""

import json
import logging
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import lmdb
import pytest
from anyio.to_thread import run_sync

from hand_clock import HandClock
from plain_stores import SHOP, Shelves
from ricordo import Entry
from ricordo.errors import ExtraMissing, PathRefused, StorageFailed, StorageFull, StorageReadOnly
from ricordo.guard import parse_fence
from ricordo.messages import Tokens
from ricordo.runtime.stores import open_backend
from ricordo.scope import Scope
from ricordo.stores import Forgets, Store
from ricordo.stores.kv import KvStore

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-kv")]


async def contents(store: Store) -> list[str]:
    return [hit.entry.content for hit in await store.recall("", limit=999)]


def rows(file: Path) -> list[tuple[bytes, bytes]]:
    with lmdb.open(str(file), subdir=False) as environment, environment.begin() as transaction:
        return [(bytes(key), bytes(value)) for key, value in transaction.cursor()]


def put(file: Path, *pairs: tuple[bytes, bytes]) -> None:
    file.parent.mkdir(exist_ok=True)
    with lmdb.open(str(file), subdir=False) as environment, environment.begin(write=True) as transaction:
        for key, value in pairs:
            transaction.put(key, value)


@pytest.mark.req("GO-BK-kv")
async def test_keys_are_ordered_by_time_and_unique_and_only_the_kind_preamble_is_shown(tmp_path: Path) -> None:
    clock = HandClock()
    async with Shelves(folder=tmp_path, clock=clock).open("kv:notes") as backend:
        store = backend.bind(SHOP)
        for seconds, kind in ((0, "preamble"), (0, "fact"), (60, "preamble"), (-3600, "decision")):
            clock.turn(seconds)
            await store.save(Entry(content=f"Of the kind {kind}, {seconds}.", kind=kind, pinned=kind == "fact"))
        assert parse_fence(await store.preamble()) == ("Of the kind preamble, 60.", "Of the kind preamble, 0.")
        assert [hit.entry.kind for hit in await store.recall("KIND")] == ["decision", "preamble", "fact", "preamble"]
        assert [hit.entry.kind for hit in await store.recall("decision")] == ["decision"]
        for number in range(30):
            await store.save(Entry(content=f"Pin {number}. " + "word " * 40, kind="preamble"))
        shown = parse_fence(await store.preamble(Tokens(500)))
        assert shown is not None
        assert shown[0].startswith("Pin 29. ")
        assert 1 < len(shown) < 30
    kept = rows(tmp_path / "notes" / "memory.mdb")
    assert [key for key, _ in kept][:4] == [
        b"2026-11-21T08:00:00.000Z/000000000000",
        b"2026-11-21T08:00:00.000Z/000000000001",
        b"2026-11-21T08:01:00.000Z/000000000000",
        b"2026-11-21T08:01:00.000Z/000000000001",
    ]
    assert json.loads(kept[3][1])["time"] == "2026-11-21T07:01:00.000Z"
    assert len({key for key, _ in kept}) == 34


@pytest.mark.req("GO-I5", "HE-O-audit-forget")
async def test_foreign_values_and_keys_are_left_and_overwrite_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "notes" / "memory.mdb"
    foreign = ((b"\x00", b"not json"), (b"zzz", b'{"content":"By hand.","stars":5}'), (b"zzzz", b"[]"))
    put(file, *foreign)
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        store = backend.bind(SHOP)
        with caplog.at_level(logging.WARNING, logger="ricordo.stores"):
            for content in ("One.", "Two."):
                await store.save(Entry(content=content))
            assert sorted(await contents(store)) == ["By hand.", "One.", "Two."]
            assert len(await contents(store)) == 3
        assert [record.getMessage() for record in caplog.records] == [
            "memory.mdb has 2 values that are no entries; they are left in it."
        ]
        assert isinstance(backend, KvStore)
        assert backend.damaged_count == 2
        forgets = store.offers(Forgets)
        assert forgets is not None
        await forgets.forget((await store.recall("one"))[0].entry.id, who="me")
    assert set(foreign) < set(rows(file))


@pytest.mark.parametrize("size", [0.3, 0.9])
async def test_a_file_that_is_cut_off_is_kept_aside_and_a_new_one_begun(
    size: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "notes" / "memory.mdb"
    put(file, *((b"%03d" % number, b"x" * 9_000) for number in range(20)))
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * size)])
    await _is_kept_aside(tmp_path, caplog)


_CUT_WHILE_OPEN = """
import asyncio, os, sys
from ricordo.runtime.stores import open_store
from ricordo.scope import Scope
from ricordo.workspace.entry import Entry

async def use(size: int) -> None:
    async with open_store("kv:notes", scope=Scope(user="me", project="shop")) as store:
        for number in range(8):
            await store.save(Entry(content=f"Walnut {number}. " + "x" * 6_000))
        os.truncate("notes/memory.mdb", size)
        found = len(await store.recall("", limit=99))
        await store.save(Entry(content="One more."))
        print(found, len(await store.recall("", limit=99)), flush=True)
        await asyncio.to_thread(os.rename, "notes", f"notes-{size}")

for size in (5_000, 12_000, 40_000):
    asyncio.run(use(size))
"""


async def test_a_file_that_is_cut_off_while_it_is_open_ends_no_process(tmp_path: Path) -> None:
    done = await anyio.run_process([sys.executable, "-c", _CUT_WHILE_OPEN], cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert done.stdout.split() == [b"0", b"1"] * 3
    assert len(await run_sync(lambda: [*tmp_path.glob("notes-*/memory.mdb.broken-1")])) == 3


@pytest.mark.parametrize("data", [b"hello" * 2_000, b"x"])
async def test_a_foreign_file_is_kept_aside_and_a_new_one_begun(
    data: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "notes" / "memory.mdb"
    file.parent.mkdir()
    file.write_bytes(data)
    await _is_kept_aside(tmp_path, caplog)


async def _is_kept_aside(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = folder / "notes" / "memory.mdb"
    broken = file.read_bytes()
    async with Shelves(folder=folder).open("kv:notes") as backend:
        store = backend.bind(SHOP)
        with caplog.at_level(logging.WARNING, logger="ricordo.stores"):
            assert await contents(store) == []
            await store.save(Entry(content="One."))
        assert await contents(store) == ["One."]
        assert len(caplog.records) == 1
        assert caplog.records[0].getMessage().endswith("It is kept as memory.mdb.broken-1.")
    assert file.with_name("memory.mdb.broken-1").read_bytes() == broken


async def test_the_end_of_a_file_that_holds_nothing_may_be_missing(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.mdb"
    put(file, (b"a", b'{"content":"One."}'), (b"b", b"x" * 90_000))
    with lmdb.open(str(file), subdir=False) as environment, environment.begin(write=True) as transaction:
        transaction.delete(b"b")
    file.write_bytes(file.read_bytes()[:-4_096])
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        assert await contents(backend.bind(SHOP)) == ["One."]


async def test_the_file_grows_as_it_must_also_for_those_who_have_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ricordo.stores.kv._FIRST_SIZE", 64 * 1024)
    shelves = Shelves(folder=tmp_path)
    large = "x" * 20_000
    async with shelves.open("kv:notes") as one, shelves.open("kv:notes") as other:
        await other.bind(SHOP).save(Entry(content="Small."))
        for _ in range(10):
            await one.bind(SHOP).save(Entry(content=large))
        assert len(await contents(other.bind(SHOP))) == 11
    assert (tmp_path / "notes" / "memory.mdb").stat().st_size > 128 * 1024


async def test_two_backends_of_one_process_share_the_file_and_the_last_lets_it_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[lmdb.Environment] = []
    real: Callable[..., lmdb.Environment] = lmdb.open

    def counting(*given: object, **named: object) -> lmdb.Environment:
        opened.append(real(*given, **named))
        return opened[-1]

    monkeypatch.setattr(lmdb, "open", counting)
    shelves = Shelves(folder=tmp_path)
    async with shelves.open("kv:notes") as one:
        async with shelves.open("kv:notes") as other, anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon((one, other)[number % 2].bind(SHOP).save, Entry(content=f"{number}"))
        assert sorted(await contents(one.bind(SHOP)), key=int) == [str(number) for number in range(10)]
    assert len(opened) == 1
    with pytest.raises(lmdb.Error):
        opened[0].begin()
    assert len(rows(tmp_path / "notes" / "memory.mdb")) == 10


async def test_a_file_that_others_put_in_the_place_of_ours_is_the_one_that_counts(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "memory.mdb"
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        store = backend.bind(SHOP)
        await store.save(Entry(content="Old."))
        put(tmp_path / "x" / "new.mdb", (b"a", b'{"content":"New."}'))
        (tmp_path / "x" / "new.mdb").replace(file)
        assert await contents(store) == ["New."]
        file.unlink()
        assert await contents(store) == []
        await store.save(Entry(content="Again."))
        assert await contents(store) == ["Again."]


@pytest.mark.req("GO-I9")
async def test_a_disk_without_room_is_said_and_what_was_saved_stays(tmp_path: Path) -> None:
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        store = backend.bind(SHOP)
        await store.save(Entry(content="One."))
        size = (tmp_path / "notes" / "memory.mdb").stat().st_size
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8_192, hard))
        try:
            with pytest.raises(StorageFull):
                await store.save(Entry(content="x" * 100_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert await contents(store) == ["One."]
        await store.save(Entry(content="Two."))
        assert await contents(store) == ["Two.", "One."]


@pytest.mark.req("GO-I9")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (lmdb.ReadonlyError("memory.mdb: Permission denied"), StorageReadOnly),
        (lmdb.Error("memory.mdb: Read-only file system"), StorageReadOnly),
    ],
)
async def test_a_file_that_cannot_be_written_is_read(
    error: Exception, expected: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        await backend.bind(SHOP).save(Entry(content="One.", kind="preamble"))
    real: Callable[..., lmdb.Environment] = lmdb.open

    def refusing(*given: object, **named: object) -> lmdb.Environment:
        if not named.get("readonly"):
            raise error
        return real(*given, **named)

    monkeypatch.setattr(lmdb, "open", refusing)
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        store = backend.bind(SHOP)
        with pytest.raises(expected):
            await store.save(Entry(content="Two."))
        assert await contents(store) == ["One."]
        assert "One." in await store.preamble()
        with pytest.raises(expected):
            await store.save(Entry(content="Two."))
        monkeypatch.undo()
        await store.save(Entry(content="Two."))
        assert await contents(store) == ["Two.", "One."]


@pytest.mark.req("GO-I9")
async def test_other_trouble_is_a_failed_storage(tmp_path: Path) -> None:
    (tmp_path / "notes" / "memory.mdb").mkdir(parents=True)
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        with pytest.raises(StorageFailed, match="Is a directory"):
            await backend.bind(SHOP).save(Entry(content="One."))


@pytest.mark.req("GO-D13")
async def test_files_and_folders_are_private_and_stay_below_the_folder(tmp_path: Path) -> None:
    other = Scope(user="me", project="other")
    async with Shelves(folder=tmp_path).open("kv:notes") as backend:
        await backend.bind(other).save(Entry(content="One."))
        (tmp_path / "notes" / "users" / "me" / "projects" / "away").symlink_to(tmp_path)
        with pytest.raises(PathRefused):
            await backend.bind(Scope(user="me", project="away")).save(Entry(content="Two."))
    made = await run_sync(lambda: [path for path in (tmp_path / "notes").rglob("*") if not path.is_symlink()])
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}


async def test_without_its_package_the_store_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("ricordo.stores.kv", "lmdb"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(ExtraMissing, match=r"pip install .\.\[kv\]"):
        async with open_backend(f"kv:{tmp_path}/notes", scope=SHOP):
            pass
