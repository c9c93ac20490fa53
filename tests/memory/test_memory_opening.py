"""A memory may be opened in one task and closed in another, by a block or by hand, and what is closed is released."""

import os
from pathlib import Path

import anyio
import anyio.abc
import pytest

from ricordo import Memory, Scope
from ricordo.errors import InvalidSetting, MemoryClosed, ScopeMismatch

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]
SHOP = Scope(user="me", project="shop")


def open_files(root: Path) -> list[str]:
    """Return the open files of this process below `root`, where the system lists them."""
    names = []
    for number in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return [name for name in names if name.startswith(str(root))]


async def test_a_memory_opened_in_one_task_is_closed_in_another(root: Path) -> None:
    opened: list[Memory] = []

    async def open_it() -> None:
        with anyio.CancelScope():
            opened.append(await Memory.open(root, scope=SHOP))

    async def close_it() -> None:
        await opened[0].close()

    async with anyio.create_task_group() as group:
        group.start_soon(open_it)
    (memory,) = opened
    await memory.remember("We deploy only from main.")
    assert [hit.entry.content for hit in await memory.recall("where do we deploy")] == ["We deploy only from main."]
    async with anyio.create_task_group() as group:
        group.start_soon(close_it)
    assert open_files(root) == []
    with pytest.raises(MemoryClosed):
        await memory.recall("deploy")


async def test_closing_twice_and_inside_a_block_is_harmless(root: Path) -> None:
    memory = await Memory.open(root, scope=SHOP)
    async with anyio.create_task_group() as group:
        group.start_soon(memory.close)
        group.start_soon(memory.close)
    await memory.close()
    async with Memory.open(root, scope=SHOP) as memory:
        await memory.close()
        assert open_files(root) == []
        with pytest.raises(MemoryClosed):
            await memory.entries()


async def test_an_opening_that_fails_raises_its_error_and_leaves_nothing_open(root: Path) -> None:
    async with Memory.open(root, scope=SHOP):
        pass
    with pytest.raises(ScopeMismatch):
        await Memory.open(root, scope=Scope(user="me", project="another"))
    opening = Memory.open(root, scope=SHOP)
    await (await opening).close()
    with pytest.raises(InvalidSetting, match="used once"):
        await opening
    assert open_files(root) == []


@pytest.mark.parametrize("at_once", [False, True])
async def test_an_error_in_a_block_and_a_cancellation_pass_through_and_release_everything(
    root: Path, at_once: bool
) -> None:
    class OurError(Exception):
        pass

    with pytest.raises(OurError):  # noqa: PT012
        async with Memory.open(root, scope=SHOP) as memory:
            await memory.remember("The printer is on floor 2.")
            raise OurError
    with anyio.CancelScope() as scope:
        if at_once:
            scope.cancel()
        async with Memory.open(root, scope=SHOP) as memory:
            scope.cancel()
            await memory.entries()
    assert scope.cancelled_caught
    assert open_files(root) == []
    async with Memory.open(root, scope=SHOP) as memory:
        assert len(await memory.entries()) == 1


async def test_a_memory_left_open_by_a_finished_task_still_works(root: Path) -> None:
    with anyio.move_on_after(60):
        memory = await Memory.open(root, scope=SHOP)
    await memory.ingest([], session="monday")
    await memory.remember("We use uv.")
    await memory.drain(seconds=5)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await memory.close()
    await memory.close()
    assert open_files(root) == []
