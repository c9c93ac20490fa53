"""Work beside a block: begun with it, cancelled at its end, and never in the way of what the block raises."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

__all__ = ["background_task", "background_group"]


@asynccontextmanager
async def background_task(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `work` while the block runs, and cancel it when the block ends.

    An error of the block comes out as it was raised, not in a group, as a task group would give it; an error of `work`
    ends the block and is raised in its place.
    """
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as raised:
        if len(raised.exceptions) > 1:
            raise
        alone = raised.exceptions[0]
        raise alone from alone.__cause__


@asynccontextmanager
async def background_group() -> AsyncIterator[TaskGroup]:
    """Give a group whose tasks run while the block does; at its end they are cancelled and waited for.

    Errors come out as those of `background_task`.
    """
    ready: list[TaskGroup] = []
    begun = anyio.Event()

    async def run_group() -> None:
        async with anyio.create_task_group() as group:
            ready.append(group)
            begun.set()
            await anyio.sleep_forever()

    async with background_task(run_group):
        await begun.wait()
        yield ready[0]
