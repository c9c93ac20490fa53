"""Who finds a root in use waits for the others: for how long, and what becomes of the call then. No time passes."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from places import place_of
from ricordo import Memory, Message, Scope
from ricordo.errors import StorageBusy
from ricordo.messages import Text
from ricordo.storage import local
from ricordo.storage import local as path_lock
from ricordo.storage import sqlite as opening

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-LOCKED", "GO-D9", "GO-I6")]
SCOPE = Scope(user="me", project="shop")


class Ticks:
    """A clock that is a second later each time somebody looks at it; `at_second` is called when it gets there."""

    def __init__(self, second: float, at_second: Callable[[], None]) -> None:
        self.seconds = 0.0
        self.pauses = 0
        self._calls = {second: at_second}

    def monotonic(self) -> float:
        self.seconds += 1
        self._calls.pop(self.seconds, lambda: None)()
        return self.seconds

    def sleep(self, _: float) -> None:
        """Sleep for no time at all."""
        self.pauses += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@contextmanager
def flocked(path: Path) -> Iterator[None]:
    """Hold a lock file as another process does."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def written_to(path: Path) -> Iterator[None]:
    """Be in the middle of a write to a database, as another process is."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
    finally:
        connection.close()


async def contents(memory: Memory) -> list[str]:
    return sorted(entry.content for entry in await memory.entries())


@pytest.mark.parametrize("second", [29.0, 60.0])
async def test_who_finds_a_file_locked_waits_for_thirty_seconds_and_no_longer(
    second: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ".ricordo"
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.remember("The door is red.")
        with ExitStack() as held:
            locks = [*(place_of(root) / "locks").glob("files-*.lock")]
            assert locks
            for path in locks:
                held.enter_context(flocked(path))
            clock = Ticks(second, held.close)
            monkeypatch.setattr(path_lock, "time", clock)
            monkeypatch.setattr(local, "time", clock)
            if second < 30:
                await memory.remember("The roof is flat.")
                assert clock.seconds >= second, "nobody writes while another does"
            else:
                with pytest.raises(StorageBusy, match="for 30 seconds"):
                    await memory.remember("The roof is flat.")
        monkeypatch.undo()
        await memory.remember("The cellar is dry.")
        roof = ["The roof is flat."] if second < 30 else []
        assert await contents(memory) == ["The cellar is dry.", "The door is red.", *roof]


@pytest.mark.parametrize(
    ("name", "second", "waited"), [("memory_index.db", 4.0, 4), ("memory_index.db", 90.0, 5), ("queue.db", 9.0, 9)]
)
async def test_who_finds_a_database_locked_waits_and_hears_of_no_lock(
    name: str, second: float, waited: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, timeouts = tmp_path / ".ricordo", dict[str, float]()

    def connect(path: Path, *, timeout: float, **given: Any) -> sqlite3.Connection:
        timeouts[Path(path).name] = timeout
        connection: sqlite3.Connection = sqlite3.connect(path, timeout=0, **given)
        return connection

    driver = SimpleNamespace(**{**vars(sqlite3), "connect": connect})
    monkeypatch.setattr(opening, "sqlite3", driver)
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.remember("The door is red.")
        await memory.ingest([Message(role="user", parts=(Text(text="We deploy only from main."),))], session="s1")
        assert timeouts.items() >= {"memory_index.db": 5.0, "queue.db": 10.0}.items()
        with ExitStack() as held:
            held.enter_context(written_to(place_of(root) / name))
            clock = Ticks(second, held.close)
            monkeypatch.setattr(opening, "time", clock)
            await memory.remember("The roof is flat.")
            said = Message(role="user", parts=(Text(text="We use uv for all locks."),))
            await memory.ingest([said], session="s1")
            assert "The roof is flat." in [hit.entry.content for hit in await memory.recall("roof")]
            assert clock.seconds >= waited
            assert clock.pauses >= waited // 2
        found = await contents(memory)
        assert [*found[:2], len(found)] == ["The door is red.", "The roof is flat.", 4]
        assert len((await memory.session("s1")).messages) == 2
