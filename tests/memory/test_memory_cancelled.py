"""Whoever is cancelled in the middle of a change keeps no lock, and the next change is made as ever."""

import fcntl
import os
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from cancelling import cancel_at, ways
from ricordo import Memory, Scope

pytestmark = pytest.mark.anyio
SCOPE = Scope(user="me", project="shop")
_STRIDE = 5


def held(root: Path) -> list[str]:
    """Return the lock files of a root that somebody holds."""
    found = []
    for path in sorted(root.rglob("*.lock")):
        descriptor = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append(path.name)
        finally:
            os.close(descriptor)
    return found


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_forget_that_is_cancelled_keeps_no_lock_wherever_it_is(tmp_path: Path, anyio_backend: str) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SCOPE) as memory:
        for number, how in enumerate(ways(anyio_backend)):
            points = 0
            # the ways take turns with the points; a lock is given back over five of them
            for point in count(number, _STRIDE):
                saved = await memory.remember(f"The printer is in room {point}.")
                reached = await cancel_at(point, partial(memory.forget, saved.id), how)
                assert held(root) == [], (how, point)
                if not reached:
                    break
                points += 1
            assert points > 10, how
        await memory.forget((await memory.remember("The printer is on floor 2.")).id)
        assert "The printer is on floor 2." not in [entry.content for entry in await memory.entries()]
