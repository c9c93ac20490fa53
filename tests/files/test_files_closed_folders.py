"""A folder that can't be read, and links that came with a repository, cost nothing but themselves."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hand_made_roots import begun
from places import place_of
from ricordo import Memory, Scope
from ricordo.errors import PathRefused, StorageError
from ricordo.storage.local import LocalFiles

pytestmark = pytest.mark.anyio

SHOP = Scope(user="me", project="shop")
_scandir = os.scandir


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make folders called `closed` unreadable, for whoever runs the test."""

    def scandir(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        if str(path).endswith("/closed"):
            raise PermissionError(13, "Permission denied", path)
        return _scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return "closed"


@pytest.mark.req("FC-DOCTOR")
async def test_a_folder_that_can_not_be_read_hides_no_other_and_is_named(closed: str, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    for path in ("workspace/a.md", f"workspace/plans/{closed}/b.md", "workspace/z.md"):
        await files.create(path, b"x")
    assert [info.path for info in await files.list("workspace")] == ["workspace/a.md", "workspace/z.md"]
    assert await files.list_unreadable("workspace") == (f"workspace/plans/{closed}",)
    with pytest.raises(StorageError):
        await files.list(f"workspace/plans/{closed}")


async def test_a_memory_with_an_unreadable_folder_still_opens_and_works(closed: str, tmp_path: Path) -> None:
    for folder in ("memory", "plans", "agents", "agents/main/sessions"):
        (place_of(begun(tmp_path)) / "workspace" / folder / closed).mkdir(parents=True)
    async with Memory.open(tmp_path, scope=SHOP) as memory:
        await memory.remember("The door of the shop is red.")
        assert [hit.entry.content for hit in await memory.recall("door")] == ["The door of the shop is red."]
        assert await memory.sessions() == []


@pytest.mark.parametrize("target", ["outside", "workspace"])
async def test_locks_that_are_a_link_are_refused_and_nothing_is_written_there(target: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "workspace").mkdir(parents=True)
    outside.mkdir()
    (root / "locks").symlink_to({"outside": outside, "workspace": root / "workspace"}[target])
    files = LocalFiles(root)
    with pytest.raises(PathRefused):
        await files.create("workspace/a.md", b"x")
    with pytest.raises(PathRefused):
        async with files.lock("changes"):
            pass
    assert [*os.listdir(outside), *os.listdir(root / "workspace")] == []


@pytest.mark.parametrize("name", ["memory_index.db", "memory_index.db-wal"])
async def test_an_index_that_is_a_link_to_another_database_leaves_that_as_it_was(name: str, tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    other.chmod(0o644)
    before = other.read_bytes()
    begun(root)
    (root / name).symlink_to(other)
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.remember("The door of the shop is red.")
        assert len(await memory.recall("door")) == 1
    assert other.read_bytes() == before
    assert other.stat().st_mode & 0o777 == 0o644
    assert sorted(name for name in os.listdir(tmp_path) if name.startswith("other")) == ["other.db"]
    assert not (root / "memory_index.db").is_symlink()


async def test_a_database_of_another_program_is_put_aside_as_it_was(tmp_path: Path) -> None:
    index = begun(tmp_path) / "memory_index.db"
    with sqlite3.connect(index) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    index.chmod(0o644)
    before = index.read_bytes()
    async with Memory.open(tmp_path, scope=SHOP) as memory:
        await memory.recall("door")
    aside = tmp_path / "memory_index.db.broken-1"
    assert aside.read_bytes() == before
    assert aside.stat().st_mode & 0o777 == 0o644


@pytest.mark.req("FC-DOCTOR")
async def test_doctor_names_a_folder_that_can_not_be_read(closed: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    async with Memory.open(root, scope=SHOP) as memory:
        await LocalFiles(place_of(root)).create(f"workspace/memory/topics/{closed}/b.md", b"- a fact\n")
        await memory.remember("We deploy only from main.")
        check = next(check for check in await memory.doctor() if check.name == "files")
        assert not check.ok
        assert f"workspace/memory/topics/{closed}" in check.detail
        assert len(await memory.entries()) == 1
