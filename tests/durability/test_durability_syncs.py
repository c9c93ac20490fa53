"""What a process kill can't show: bytes are on the medium before anything builds on them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ricordo import Memory, Message, Scope
from ricordo.messages import Text
from ricordo.storage import Disk

pytestmark = pytest.mark.anyio

SHOP = Scope(user="me", project="shop")


class RecordingDisk(Disk):
    """A disk that notes each write, sync and rename with the path it is about."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []
        self._paths: dict[int, str] = {}

    def open(self, path: str, flags: int) -> int:
        descriptor = super().open(path, flags)
        self._paths[descriptor] = path
        return descriptor

    def make_file(self, path: str, flags: int = 0) -> int:
        descriptor = super().make_file(path, flags)
        self._paths[descriptor] = path
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        self.steps.append(("write", self._paths[descriptor]))
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self.steps.append(("sync", self._paths[descriptor]))
        super().sync(descriptor)

    def exchange(self, source: str, target: str) -> bool:
        return self._placed(super().exchange, source, target)

    def rename_new(self, source: str, target: str) -> bool:
        return self._placed(super().rename_new, source, target)

    def _placed(self, act: Callable[[str, str], bool], source: str, target: str) -> bool:
        self.steps.append(("rename", source))
        done = act(source, target)
        self.steps.append(("renamed", target))
        return done

    def make_folder(self, path: str) -> None:
        super().make_folder(path)
        self.steps.append(("folder", path))

    def sync_folder(self, path: str) -> None:
        self.steps.append(("sync_folder", path))
        super().sync_folder(path)


def check(steps: list[tuple[str, str]]) -> None:
    """Each write is synced next, each rename follows the sync of its file and is followed by that of its folder.

    The folder that holds a new one is synced before anything is put into the new one.
    """
    for number, (step, path) in enumerate(steps):
        # the head of the audit log may lag behind its lines, which are synced
        if step == "write" and not path.endswith("/audit/head"):
            assert steps[number + 1] == ("sync", path)
        elif step == "folder" and "/locks" not in path:
            entered = next((at for at, (_, used) in enumerate(steps) if used.startswith(f"{path}/")), len(steps))
            assert ("sync_folder", os.path.dirname(path)) in steps[number:entered], path
        elif step == "rename":
            assert steps[number - 1] == ("sync", path)
        elif step == "renamed":
            assert steps[number + 1] == ("sync_folder", os.path.dirname(path))


@pytest.mark.req("GO-G6", "GO-D1", "GO-D9")
async def test_every_write_is_synced_before_the_act_returns_and_before_its_file_is_put_in_place(tmp_path: Path) -> None:
    disk = RecordingDisk()
    async with Memory.open(tmp_path, scope=SHOP, disk=disk) as memory:
        entry = await memory.remember("A first memory.")
        assert disk.steps[-1][0] == "sync"
        await memory.ingest([Message(role="user", parts=(Text(text="We deploy only from main."),))], session="s")
        await memory.forget(entry.id)
        await memory.undo()
    check(disk.steps)
    appended = [path for step, path in disk.steps if step == "write" and "/.~" not in path]
    assert sum(path.endswith(".log.jsonl") for path in appended) == 1
    assert sum(path.endswith(".md") for path in appended) == 2


@pytest.mark.req("GO-G6", "GO-D9")
async def test_the_file_of_a_long_entry_is_durable_before_the_line_that_points_to_it(tmp_path: Path) -> None:
    disk = RecordingDisk()
    async with Memory.open(tmp_path, scope=SHOP, disk=disk) as memory:
        await memory.remember("A first memory.")
        disk.steps.clear()
        await memory.remember("The long one. " * 400)
    long = next(number for number, (step, path) in enumerate(disk.steps) if step == "renamed" and "/long/" in path)
    line = next(number for number, (step, path) in enumerate(disk.steps) if step == "write" and "/.~" not in path)
    assert disk.steps[long + 1][0] == "sync_folder"
    assert long + 1 < line
    check(disk.steps)
