"""Whoever is cancelled while a lock is taken, held or given back: it is free afterwards."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import anyio
import pytest

from cancelling import cancel_at, ways
from ricordo.storage import FileStore
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("DF-C52")]
Made = Callable[[Path], FileStore]


def _local(folder: Path) -> FileStore:
    return LocalFiles(folder, busy_seconds=0.2)


def _in_memory(folder: Path) -> FileStore:
    del folder
    return InMemoryFiles()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize("made", [_local, _in_memory])
async def test_a_lock_is_free_after_a_cancellation_wherever_it_comes(
    made: Made, tmp_path: Path, anyio_backend: str
) -> None:
    files = made(tmp_path / "root")

    async def hold() -> None:
        async with files.lock("work"):
            await files.append("notes", b"inside\n")

    for how in ways(anyio_backend):
        points = 0
        for point in count():
            reached = await cancel_at(point, hold, how)
            with anyio.fail_after(20):
                async with files.lock("work"):
                    pass
            if not reached:
                break
            points += 1
        assert points >= (1 if made is _in_memory else 3), how


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_whoever_stops_waiting_for_a_lock_does_not_get_it_later(tmp_path: Path, anyio_backend: str) -> None:
    files = LocalFiles(tmp_path, busy_seconds=20)
    async with files.lock("work"):
        for _ in range(3):
            with anyio.move_on_after(0.01):
                async with files.lock("work"):
                    pytest.fail(f"two hold it with {anyio_backend}")
    for _ in range(3):
        with anyio.fail_after(20):
            async with files.lock("work"):
                pass
