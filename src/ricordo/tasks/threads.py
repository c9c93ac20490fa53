"""Works that are plain functions: they run in a thread, so that the loop goes on meanwhile.

Invariant: a function that is not async never runs on the loop, and nobody goes on before it has ended.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeAlias, cast

from anyio.to_thread import run_sync

from ricordo.tasks.contract import ReportProgress

__all__ = ["BlockingWork", "run_in_worker_thread"]

_P = ParamSpec("_P")

BlockingWork: TypeAlias = Callable[[ReportProgress], str]
"""A piece of work that does not await: it may report how far it is, and returns its result."""


def run_in_worker_thread(work: Callable[_P, Awaitable[str] | str]) -> Callable[_P, Awaitable[str]]:
    """Return `work` as it is when it is async, else what runs it in a thread, which can't be stopped."""
    if inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(type(work).__call__):
        return cast("Callable[_P, Awaitable[str]]", work)

    async def run(*args: _P.args, **kwargs: _P.kwargs) -> str:
        found: object = await run_sync(partial(work, *args, **kwargs))
        return str(await found if inspect.isawaitable(found) else found)

    return run
