"""What every file store does, on disk and in memory alike."""

from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import AlreadyExists, FileMissing, PathRefused, VersionConflict
from ricordo.storage import ABSENT, FileStore, compute_version
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["local", "in memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    return LocalFiles(tmp_path / "root", locks=tmp_path / "locks") if request.param == "local" else InMemoryFiles()


async def test_what_was_created_is_read_with_its_version(files: FileStore) -> None:
    version = await files.create("a/b.md", b"one\n")
    stored = await files.read("a/b.md")
    assert (stored.data, stored.version) == (b"one\n", version) == (b"one\n", compute_version(b"one\n"))


async def test_equal_bytes_have_equal_versions_and_others_do_not(files: FileStore) -> None:
    first, second = await files.create("a", b"same"), await files.create("b", b"same")
    assert first == second
    assert await files.replace("b", b"other", expected=second) != first


async def test_a_missing_file_is_told_from_an_empty_one(files: FileStore) -> None:
    await files.create("empty", b"")
    assert (await files.read("empty")).data == b""
    assert await files.info("none") is None
    with pytest.raises(FileMissing):
        await files.read("none")
    with pytest.raises(FileMissing):
        await files.read_from("none", 0)
    with pytest.raises(FileMissing):
        await files.delete("none")


async def test_a_folder_is_no_file(files: FileStore) -> None:
    await files.create("folder/file", b"x")
    with pytest.raises(FileMissing):
        await files.read("folder")


async def test_reading_from_an_offset_gives_what_follows_and_nothing_past_the_end(files: FileStore) -> None:
    await files.create("a", b"0123456789")
    assert await files.read_from("a", 7) == b"789"
    assert await files.read_from("a", 2, 3) == b"234"
    assert await files.read_from("a", 10) == b""
    assert await files.read_from("a", 99, 5) == b""


@pytest.mark.req("AS-FS-02")
async def test_a_created_file_is_not_created_again(files: FileStore) -> None:
    await files.create("a", b"first")
    with pytest.raises(AlreadyExists):
        await files.create("a", b"second")
    assert (await files.read("a")).data == b"first"


@pytest.mark.req("GO-D9")
async def test_only_the_expected_version_is_replaced(files: FileStore) -> None:
    old = await files.create("a", b"old")
    new = await files.replace("a", b"new", expected=old)
    for expected in (old, ABSENT, "0" * 32):
        with pytest.raises(VersionConflict):
            await files.replace("a", b"lost", expected=expected)
    assert (await files.read("a")).version == new


@pytest.mark.req("AS-FS-02")
async def test_a_file_that_is_absent_is_made_by_replacing_nothing(files: FileStore) -> None:
    await files.replace("a", b"made", expected=ABSENT)
    assert (await files.read("a")).data == b"made"
    with pytest.raises(VersionConflict):
        await files.replace("b", b"x", expected=compute_version(b"made"))


@pytest.mark.req("AS-FS-02")
async def test_only_the_expected_version_is_deleted(files: FileStore) -> None:
    old = await files.create("a", b"old")
    new = await files.replace("a", b"new", expected=old)
    with pytest.raises(VersionConflict):
        await files.delete("a", expected=old)
    await files.delete("a", expected=new)
    assert await files.info("a") is None
    with pytest.raises(VersionConflict):
        await files.delete("a", expected=new)


async def test_deleting_what_is_not_there_leaves_nothing_behind(files: FileStore, tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        await files.delete("deep/down/none")
    assert not (tmp_path / "root" / "deep").exists()


@pytest.mark.req("AS-LEDGER-01")
async def test_an_append_keeps_every_earlier_byte_and_tells_where_it_lies(files: FileStore) -> None:
    first = await files.append("log", b"one\n", header=b"# head\n")
    second = await files.append("log", b"two\n", header=b"# head\n")
    data = (await files.read("log")).data
    assert data == b"# head\none\ntwo\n"
    assert data[first.offset :][: first.length] == b"one\n"
    assert data[second.offset :][: second.length] == b"two\n"


@pytest.mark.req("AS-LEDGER-01")
async def test_a_torn_last_line_is_closed_by_the_next_append(files: FileStore) -> None:
    await files.create("log", b"one\ntor")
    appended = await files.append("log", b"two\n", header=b"# head\n")
    assert (await files.read("log")).data == b"one\ntor\ntwo\n"
    assert appended.offset == 8
    assert await files.read_from("log", appended.offset, appended.length) == b"two\n"


@pytest.mark.req("AS-LEDGER-01")
async def test_an_append_to_an_empty_file_adds_no_header_and_no_line(files: FileStore) -> None:
    await files.create("log", b"")
    appended = await files.append("log", b"one\n", header=b"# head\n")
    assert (await files.read("log")).data == b"one\n"
    assert appended.offset == 0


@pytest.mark.req("AS-LEDGER-01")
@given(
    start=st.none() | st.binary(max_size=12),
    blocks=st.lists(st.binary(min_size=1, max_size=12).map(lambda data: data + b"\n"), min_size=1, max_size=5),
)
async def test_both_stores_append_alike(
    start: bytes | None, blocks: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    stores: list[FileStore] = [LocalFiles(tmp_path_factory.mktemp("root")), InMemoryFiles()]
    told = []
    for files in stores:
        if start is not None:
            await files.create("log", start)
        places = [await files.append("log", block, header=b"#\n") for block in blocks]
        data = (await files.read("log")).data
        assert all(
            data[place.offset :].startswith(block) and place.length == len(block)
            for place, block in zip(places, blocks, strict=True)
        )
        told.append((data, places))
    assert told[0] == told[1]
    assert told[0][0].startswith(b"#\n" if start is None else start)


async def test_a_listing_is_sorted_and_tells_sizes(files: FileStore) -> None:
    for path, data in (("b/2.md", b"22"), ("a.md", b"1"), ("b/1.md", b""), ("bb", b"333")):
        await files.create(path, data)
    assert [(info.path, info.size) for info in await files.list()] == [
        ("a.md", 1),
        ("b/1.md", 0),
        ("b/2.md", 2),
        ("bb", 3),
    ]
    assert [info.path for info in await files.list("b")] == ["b/1.md", "b/2.md"]
    assert [info.path for info in await files.list("/b/")] == ["b/1.md", "b/2.md"]
    assert await files.list("none") == []
    assert await files.list("a.md") == []


@pytest.mark.req("AS-FS-01")
async def test_a_leading_slash_means_the_root(files: FileStore) -> None:
    await files.create("/a/b", b"x")
    assert (await files.read("a/b")).data == (await files.read("/a//./b")).data == b"x"
    assert [info.path for info in await files.list("/")] == ["a/b"]


@pytest.mark.req("AS-FS-01")
@pytest.mark.parametrize("path", ["", "/", ".", "./."])
async def test_the_root_itself_is_no_file(files: FileStore, path: str) -> None:
    with pytest.raises(PathRefused):
        await files.create(path, b"x")
    with pytest.raises(PathRefused):
        await files.append(path, b"x\n")


@pytest.mark.req("GO-D9")
async def test_a_lock_is_held_by_one_at_a_time(files: FileStore) -> None:
    inside: list[int] = []
    most = 0

    async def work(number: int) -> None:
        nonlocal most
        async with files.lock("name"):
            inside.append(number)
            most = max(most, len(inside))
            await anyio.sleep(0.002)
            inside.remove(number)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(work, number)
    assert most == 1


@pytest.mark.req("DF-C52")
async def test_two_locks_with_different_names_do_not_wait_for_each_other(files: FileStore) -> None:
    with anyio.fail_after(20):
        async with files.lock("one"), files.lock("two"), files.lock("notes/alice"):
            await files.create("a", b"written under two locks")


@pytest.mark.req("DF-C52")
async def test_a_lock_is_free_again_after_an_error_and_after_a_cancellation(files: FileStore) -> None:
    with pytest.raises(ValueError, match="inside"):
        async with files.lock("name"):
            raise ValueError("inside")
    with anyio.move_on_after(0.02):
        async with files.lock("name"):
            await anyio.sleep(5)
    with anyio.fail_after(20):
        async with files.lock("name"):
            pass


@pytest.mark.req("GO-D9")
async def test_replacing_in_turn_loses_no_update(files: FileStore) -> None:
    await files.create("count", b"0")

    async def add() -> None:
        for _ in range(5):
            while True:
                stored = await files.read("count")
                try:
                    await files.replace("count", str(int(stored.data) + 1).encode(), expected=stored.version)
                    break
                except VersionConflict:
                    continue

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(add)
    assert (await files.read("count")).data == b"20"
