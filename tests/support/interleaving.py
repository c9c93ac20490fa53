"""Two acts on one root, the second begun before a chosen call of the first: every order in which they can meet."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

import anyio
from anyio.abc import TaskGroup

from ricordo.storage import FileStore
from ricordo.testing import InMemoryFiles
from watched_files import WatchedFiles

__all__ = ["SharedFiles", "at_every_step"]

Act = Callable[[FileStore], Awaitable[object]]


class SharedFiles(InMemoryFiles):
    """Files in memory that tell when somebody has to wait for a lock."""

    def __init__(self) -> None:
        """Hold nothing."""
        super().__init__()
        self._held: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self.waits = anyio.Event()

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Hold the lock `name`."""
        if self._held[name].locked():
            self.waits.set()
        async with self._held[name]:
            yield


async def at_every_step(prepare: Callable[[], Awaitable[SharedFiles]], first: Act, second: Act) -> AsyncIterator[str]:
    """Run both for each call that `first` makes to the files, and yield what that call was, with both ended.

    `second` begins right before the call and runs until it ends or has to wait for a lock that `first` holds. The
    files of the last run are those that `prepare` returned last.
    """
    for step in count(1):
        meeting = _Meeting(files=await prepare(), second=second, step=step)
        async with anyio.create_task_group() as group:
            meeting.group = group
            await first(WatchedFiles(meeting.files, meeting.before))
        if not meeting.reached:
            return
        yield f"{step}: {meeting.reached}"


@dataclass(kw_only=True)
class _Meeting:
    """Lets the second act begin before the call number `step` of the first."""

    files: SharedFiles
    second: Act
    step: int
    group: TaskGroup | None = None
    calls: int = 0
    reached: str = ""

    async def before(self, verb: str, path: str) -> None:
        self.calls += 1
        if self.calls == self.step and self.group:
            self.reached = f"{verb} {path}"
            self.files.waits = anyio.Event()
            self.group.start_soon(self._act)
            await self.files.waits.wait()

    async def _act(self) -> None:
        await self.second(self.files)
        self.files.waits.set()
