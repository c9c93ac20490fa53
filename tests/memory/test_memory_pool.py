"""A pool opens a bounded number of memories, each once for all who use it at the same time, and closes idle ones."""

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from ricordo import Memory, MemoryPool, Scope
from ricordo.errors import InvalidQuery, InvalidScope, MemoryClosed, PoolExhausted, ScopeMismatch

pytestmark = pytest.mark.anyio
SHOP = Scope(project="shop")
DESCRIPTORS = Path("/proc/self/fd")


def count_open_files(root: Path) -> int:
    """Return how many files below `root` this process has open; 0 where the system does not list them."""
    names = []
    for number in os.listdir(DESCRIPTORS) if DESCRIPTORS.is_dir() else ():
        try:
            names.append(os.readlink(DESCRIPTORS / number))
        except OSError:
            continue
    return sum(name.startswith(str(root)) for name in names)


@pytest.mark.req("HE-O-tenancy")
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_many_users_share_few_open_memories_and_see_only_their_own(root: Path, anyio_backend: str) -> None:
    async with MemoryPool(root, scope=SHOP, max_open=3) as pool:
        async with pool.user(None) as memory:
            await memory.remember("Visitors park behind the house.")

        async def serve(number: int) -> None:
            async with pool.user(f"user{number}") as memory:
                await memory.remember(f"My desk is number {number}.")
                counts.append(pool.open_count)
                files.append(count_open_files(root))

        counts, files = list[int](), list[int]()
        for _ in range(2):
            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(serve, number)
        assert len(counts) == 16
        assert max(counts) == 3
        assert max(files) <= 3 * 10
        for number in range(8):
            async with pool.user(f"user{number}") as memory:
                assert {entry.content for entry in await memory.entries()} == {
                    f"My desk is number {number}.",
                    "Visitors park behind the house.",
                }
                assert len(await memory.history(limit=9)) == 3
    assert count_open_files(root) == 0


async def test_one_user_at_the_same_time_has_one_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Scope | None] = []
    original = Memory.open.__func__  # type: ignore[attr-defined]

    def counting(*given: object, scope: Scope, **named: object) -> object:
        opened.append(scope)
        return original(*given, scope=scope, **named)

    monkeypatch.setattr(Memory, "open", classmethod(counting))
    async with MemoryPool(root, scope=SHOP, max_open=2) as pool:
        memories: list[Memory] = []

        async def serve() -> None:
            async with pool.user("ann") as memory:
                memories.append(memory)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(serve)
        assert len({id(memory) for memory in memories}) == 1
        assert opened == [Scope(user="ann", project="shop")]
        async with pool.user("ann") as memory:
            await memory.close()
        async with pool.user("ann") as memory:
            assert await memory.entries() == []
        assert len(opened) == 2


async def test_the_memory_that_was_not_used_for_longest_makes_place(root: Path) -> None:
    async with MemoryPool(root, scope=SHOP, max_open=2) as pool:
        async with pool.user("ann") as ann, pool.user("ben") as ben:
            pass
        async with pool.user("ann") as again:
            assert again is ann
        async with pool.user("cleo"):
            assert (ann.is_closed, ben.is_closed) == (False, True)


async def test_a_full_pool_waits_for_a_place_and_says_when_there_was_none_in_time(root: Path) -> None:
    async with MemoryPool(root, scope=SHOP, max_open=1, wait_seconds=0.0) as pool:
        async with pool.user("ann"):
            with pytest.raises(PoolExhausted, match="max_open"):
                async with pool.user("ben"):
                    pass
        async with pool.user("ann"):
            pass
    async with MemoryPool(root, scope=SHOP, max_open=1) as pool:
        served: list[str] = []

        async def serve(user: str) -> None:
            async with pool.user(user):
                served.append(user)

        async with anyio.create_task_group() as group, pool.user("ann"):
            for user in ("ben", "cleo"):
                group.start_soon(serve, user)
            await anyio.wait_all_tasks_blocked()
            assert served == []
        assert sorted(served) == ["ben", "cleo"]


async def test_a_failed_opening_and_a_closed_pool_leave_nothing_behind(root: Path) -> None:
    async with Memory.open(root, scope=Scope(user="ann", project="another")):
        pass
    async with MemoryPool(root, scope=SHOP, max_open=1) as pool:
        for user in ("ann", "ben"):
            with pytest.raises(ScopeMismatch):
                async with pool.user(user):
                    pass
        assert pool.open_count == 0
    await pool.close()
    with pytest.raises(MemoryClosed):
        async with pool.user("ann"):
            pass
    with pytest.raises(InvalidScope):
        MemoryPool(root, scope=Scope(user="me", project="shop"))
    with pytest.raises(InvalidQuery):
        MemoryPool(root, scope=SHOP, max_open=0)
