"""A full disk, a lost index, a torn line, a hand in the files: memory still works, and says what is wrong."""

import errno
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from disks import FailingDisk, StepDisk
from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.errors import DocumentInvalid, FileMissing, RicordoError, StorageError, StorageFull, StorageReadOnly
from ricordo.messages import Text
from ricordo.storage import Disk

pytestmark = pytest.mark.anyio

SHOP = Scope(user="me", project="shop")
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def opened(root: Path) -> Opened:
    def open_again(disk: Disk | None = None, scope: Scope = SHOP) -> AbstractAsyncContextManager[Memory]:
        return Memory.open(root, scope=scope, disk=disk)

    return open_again


def said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


async def contents(memory: Memory) -> list[str]:
    return sorted(entry.content for entry in await memory.entries())


async def found(memory: Memory, query: str) -> list[str]:
    return [hit.entry.content for hit in await memory.recall(query)]


async def prepared(opened: Opened) -> None:
    async with opened() as memory:
        await memory.remember("The door of the shop is red.")
        await memory.ingest([said("We deploy only from main.")], session="s1")


class FullDisk(Disk):
    """A disk without room: nothing new is written, not half of it either."""

    def make_file(self, path: str, flags: int = 0) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, descriptor: int, data: bytes) -> None:
        super().write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class ReadOnlyDisk(Disk):
    """A disk that is mounted for reading only."""

    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return super().open(path, flags)

    def make_file(self, path: str, flags: int = 0) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def make_folder(self, path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.req("GO-I9")
@pytest.mark.parametrize(
    ("disk", "error"), [(FullDisk(), StorageFull), (ReadOnlyDisk(), StorageReadOnly)], ids=["full", "read-only"]
)
async def test_nothing_is_saved_and_everything_is_still_read(
    disk: Disk, error: type[RicordoError], opened: Opened
) -> None:
    await prepared(opened)
    async with opened(disk) as memory:
        before = await contents(memory)
        acts = (
            lambda: memory.remember("Not this."),
            lambda: memory.remember("Not this. " * 1000),
            lambda: memory.ingest([said("I prefer tea over coffee.")], session="s2"),
            lambda: memory.ingest([said("I prefer tea over coffee.")], session="s1"),
        )
        for act in acts:
            with pytest.raises(error):
                await act()
        with pytest.raises(error):
            await memory.forget((await memory.entries())[0].id)
        assert await contents(memory) == before
        assert "The door of the shop is red." in await found(memory, "door of the shop")
        assert "door" in await memory.preamble()
        assert len((await memory.session("s1")).messages) == 1
    async with opened() as memory:
        assert await contents(memory) == before
        await memory.ingest([said("I prefer tea over coffee.")], session="s1")
        assert len(await contents(memory)) == len(before) + 1
        assert [check.name for check in await memory.doctor() if not check.ok] == []


@pytest.mark.req("GO-I9")
async def test_a_disk_that_fills_up_at_any_step_of_an_ingest_loses_nothing_that_was_there(
    opened: Opened, tmp_path: Path
) -> None:
    counting = StepDisk(lambda _: None)
    told = [said("I prefer tea over coffee."), said("We decided to use PostgreSQL for the orders.")]
    async with Memory.open(tmp_path / "count", scope=SHOP, disk=counting) as memory:
        start = len(counting.steps)
        await memory.ingest(told, session="s1", known={})
        wanted = await contents(memory)
    for at in range(start + 1, len(counting.steps) + 1, 8):
        folder = tmp_path / str(at)
        try:
            async with Memory.open(folder, scope=SHOP, disk=FailingDisk(at, errno.ENOSPC, halves=True)) as memory:
                await memory.ingest(told, session="s1", known={})
        except StorageError as error:
            assert isinstance(error, StorageFull)  # noqa: PT017 - whether it is raised depends on the step
        async with Memory.open(folder, scope=SHOP) as memory:
            await memory.ingest(told, session="s1", known={})
            assert await contents(memory) == wanted, counting.steps[at - 1]
            assert len((await memory.session("s1")).messages) == 2


def ledger_of(root: Path) -> Path:
    [ledger] = (place_of(root) / "workspace" / "memory").glob("*.md")
    return ledger


def index_files(root: Path) -> list[Path]:
    return sorted(root.glob("memory_index.db*"))


def remove_index(root: Path) -> None:
    for path in index_files(root):
        path.unlink()


def overwrite_index(root: Path) -> None:
    for path in index_files(root):
        path.write_bytes(b"this is no database\n" * 500)


@pytest.mark.req("FC-STALE")
@pytest.mark.parametrize("damage", [remove_index, overwrite_index])
async def test_an_index_that_is_lost_or_damaged_while_open_costs_no_memory(
    damage: Callable[[Path], None], opened: Opened, root: Path
) -> None:
    await prepared(opened)
    async with opened() as memory:
        assert await found(memory, "door of the shop")
        damage(root)
        assert "The door of the shop is red." in await found(memory, "door of the shop")
        await memory.remember("The roof of the shop is flat.")
        assert "The roof of the shop is flat." in await found(memory, "roof of the shop")
    async with opened() as memory:
        assert "The roof of the shop is flat." in await found(memory, "roof of the shop")
        assert len(await contents(memory)) == 3
        assert [check.name for check in await memory.doctor() if not check.ok] == []


@pytest.mark.req("AS-TRANS-02", "FC-LOCKED", "DF-B14")
async def test_torn_lines_and_bytes_that_are_no_text_hide_nothing_else(opened: Opened, root: Path) -> None:
    await prepared(opened)
    log = place_of(root) / "workspace/agents/main/sessions/s1.log.jsonl"
    log.write_bytes(log.read_bytes() + b'{"v":1,"id":"torn","ro')
    (place_of(root) / "workspace/MEMORY.md").write_bytes(
        b"# \xff\xfe\n\n- The cellar is dry.\n- The attic \xff\xfe is not.\n"
    )
    async with opened() as memory:
        assert "The cellar is dry." in await contents(memory)
        assert "The cellar is dry." in await found(memory, "cellar dry")
        assert "The cellar is dry." in await memory.preamble()
        assert len(await contents(memory)) == 4
        session = await memory.session("s1")
        assert (len(session.messages), len(session.broken_lines)) == (1, 1)
        await memory.ingest([said("I prefer tea over coffee.")], session="s1")
        assert len((await memory.session("s1")).messages) == 2
        assert {check.name for check in await memory.doctor() if not check.ok} == {"encoding", "lines"}


async def test_a_file_with_an_odd_name_or_a_link_out_takes_nothing_down(opened: Opened, root: Path) -> None:
    await prepared(opened)
    topics = place_of(root) / "workspace" / "memory" / "topics"
    topics.mkdir()
    (topics / "good.md").write_bytes(b"- The cellar is dry.\n")
    (topics / os.fsdecode(b"odd-\xff.md")).write_bytes(b"- Odd.\n")
    (topics / "back\\slash.md").write_bytes(b"- Odd.\n")
    (topics / "out.md").symlink_to("/etc/hostname")
    (place_of(root) / "workspace" / "MEMORY.md").unlink(missing_ok=True)
    (place_of(root) / "workspace" / "MEMORY.md").symlink_to("/etc/hostname")
    async with opened() as memory:
        assert "The cellar is dry." in await contents(memory)
        assert "The cellar is dry." in await found(memory, "cellar dry")
        assert "The door" in await memory.preamble()
        assert await memory.history()
        assert "files" in {check.name for check in await memory.doctor() if not check.ok}


@pytest.mark.req("FC-LOCKED")
async def test_what_a_person_types_while_a_process_runs_is_seen_at_once(opened: Opened, root: Path) -> None:
    async with opened() as memory:
        await memory.remember("The door of the shop is red.")
        ledger = ledger_of(root)
        ledger.write_bytes(ledger.read_bytes() + b"- The lift is broken.")
        assert "The lift is broken." in await found(memory, "lift broken")
        await memory.remember("The stairs are fine.")
        assert {"The lift is broken.", "The stairs are fine."} <= {*await contents(memory)}
        ledger.write_bytes(
            ledger.read_bytes().replace(b"The door of the shop is red.", b"The door of the shop is green.")
        )
        assert "The door of the shop is green." in await contents(memory)
        assert "The door of the shop is green." in await found(memory, "door of the shop")
        assert "The door of the shop is red." not in await found(memory, "door of the shop")


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"scope": {}}', b'{"scope": {"galaxy": "x"}}', b"\xff"])
async def test_a_damaged_marker_is_a_clear_error_and_is_left_alone(damage: bytes, opened: Opened, root: Path) -> None:
    await prepared(opened)
    (root / "project.json").write_bytes(damage)
    with pytest.raises(DocumentInvalid, match=r"project\.json"):
        async with opened():
            pass
    assert (root / "project.json").read_bytes() == damage


@pytest.mark.parametrize("damage", [b"", b"short", bytes(33)])
async def test_a_damaged_key_is_a_clear_error(damage: bytes, opened: Opened, root: Path) -> None:
    await prepared(opened)
    (root / "guard.key").write_bytes(damage)
    with pytest.raises(DocumentInvalid, match=r"guard\.key"):
        async with opened():
            pass


async def test_a_root_that_is_a_file_is_a_typed_error(opened: Opened, root: Path, tmp_path: Path) -> None:
    (tmp_path / "root").write_bytes(b"a file")
    with pytest.raises((StorageError, FileMissing)):
        async with opened():
            pass
    assert (tmp_path / "root").read_bytes() == b"a file"
