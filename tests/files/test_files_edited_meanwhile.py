"""What an editor writes between the look at a file and the write of ours is not lost; editors know no locks."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ricordo import Memory, Scope
from ricordo.errors import AlreadyExists, VersionConflict
from ricordo.storage import ABSENT, Disk
from ricordo.storage.local import LocalFiles

pytestmark = pytest.mark.anyio
SHOP = Scope(user="me", project="shop")


class EditedDisk(Disk):
    """A disk on which `edit` is called once, right before a file is put into its place or removed."""

    def __init__(self) -> None:
        self.edit: Callable[[Path], None] | None = None

    def _edited(self, target: str) -> None:
        edit, self.edit = self.edit, None
        if edit:
            edit(Path(target))

    def exchange(self, source: str, target: str) -> bool:
        self._edited(target)
        return super().exchange(source, target)

    def rename_new(self, source: str, target: str) -> bool:
        self._edited(target)
        return super().rename_new(source, target)

    def rename(self, source: str, target: str) -> None:
        self._edited(source)
        super().rename(source, target)


def in_place(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"By hand.\n")


def by_another_file(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes() + b"By hand.\n")
    os.replace(other, path)


def by_hand(path: Path) -> None:
    path.write_bytes(b"By hand.\n")


@pytest.mark.req("GO-D9")
@pytest.mark.parametrize("edit", [in_place, by_another_file])
async def test_an_edit_between_the_look_and_the_write_refuses_the_write(
    tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    disk = EditedDisk()
    files = LocalFiles(tmp_path, disk=disk)
    version = await files.create("note.md", b"One.\n")
    disk.edit = edit
    with pytest.raises(VersionConflict):
        await files.replace("note.md", b"Ours.\n", expected=version)
    assert (tmp_path / "note.md").read_bytes() == b"One.\nBy hand.\n"
    found = await files.read("note.md")
    disk.edit = edit
    with pytest.raises(VersionConflict):
        await files.delete("note.md", expected=found.version)
    assert (tmp_path / "note.md").read_bytes() == b"One.\nBy hand.\nBy hand.\n"
    assert os.listdir(tmp_path / "locks") != []
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".~")]
    await files.replace("note.md", b"Ours.\n", expected=(await files.read("note.md")).version)
    assert (tmp_path / "note.md").read_bytes() == b"Ours.\n"


@pytest.mark.req("AS-FS-02")
async def test_a_file_that_appears_between_the_look_and_the_write_stays(tmp_path: Path) -> None:
    disk = EditedDisk()
    files = LocalFiles(tmp_path, disk=disk)
    disk.edit = by_hand
    with pytest.raises(AlreadyExists):
        await files.create("note.md", b"Ours.\n")
    (tmp_path / "note.md").unlink()
    disk.edit = by_hand
    with pytest.raises(VersionConflict):
        await files.replace("note.md", b"Ours.\n", expected=ABSENT)
    (tmp_path / "note.md").unlink()
    disk.edit = by_hand
    await files.append("note.md", b"Ours.\n", header=b"# Head\n")
    assert (tmp_path / "note.md").read_bytes() == b"By hand.\nOurs.\n"


async def test_a_file_that_vanishes_between_the_look_and_the_write_is_a_conflict(tmp_path: Path) -> None:
    disk = EditedDisk()
    files = LocalFiles(tmp_path, disk=disk)
    version = await files.create("note.md", b"One.\n")
    disk.edit = Path.unlink
    with pytest.raises(VersionConflict):
        await files.replace("note.md", b"Ours.\n", expected=version)
    assert not (tmp_path / "note.md").exists()


@pytest.mark.req("HE-O-audit-forget", "GO-D9")
async def test_a_hand_edit_while_a_memory_is_forgotten_is_kept_and_the_memory_forgotten(tmp_path: Path) -> None:
    disk = EditedDisk()
    async with Memory.open(tmp_path / "r", scope=SHOP, disk=disk) as memory:
        gone = await memory.remember("We use uv.")
        await memory.remember("We deploy only from main.")
        (ledger,) = (memory.folder / "workspace" / "memory").glob("2*.md")

        edited: list[Path] = []

        def edit(path: Path) -> None:
            if path.name != ledger.name:
                disk.edit = edit
                return
            in_place(path)
            edited.append(path)

        disk.edit = edit
        await memory.forget(gone.id)
        assert edited == [ledger]
        text = ledger.read_text()
        assert "By hand." in text
        assert "uv" not in text
        await memory.undo()
        assert "By hand." in ledger.read_text()
        assert "We use uv." in ledger.read_text()
