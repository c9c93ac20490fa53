"""Count how often a coroutine goes to a thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

import anyio.to_thread

from ricordo.concurrency import ThreadJob

__all__ = ["counted_trips"]


@contextmanager
def counted_trips() -> Iterator[list[object]]:
    """Collect what is run in threads into the list it yields, until the block ends."""
    trips: list[object] = []
    to_thread, start = anyio.to_thread.run_sync, ThreadJob.start

    async def going(act: Callable[..., object], *given: object, **named: object) -> object:
        trips.append(act)
        return await to_thread(act, *given, **named)  # type: ignore[arg-type]

    def started(work: ThreadJob[object], tell: Callable[[], object]) -> None:
        trips.append(work)
        start(work, tell)

    with mock.patch("anyio.to_thread.run_sync", going), mock.patch.object(ThreadJob, "start", started):
        yield trips
