"""Work in a thread that a cancellation follows, and never cuts in two."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ricordo.concurrency import run_in_thread
from warm_processes import run_warm

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


class Work:
    """Work that has begun when `begun` is set and goes on until `let` is."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.begun, self.let = threading.Event(), threading.Event()
        self.ended = False
        self._error = error

    def __call__(self) -> str:
        self.begun.set()
        assert self.let.wait(10)
        self.ended = True
        if self._error:
            raise self._error
        return "done"


async def begun(work: Work) -> None:
    await asyncio.to_thread(work.begun.wait, 10)


async def test_it_returns_and_raises_what_is_returned_and_raised() -> None:
    def fail() -> None:
        raise KeyError("gone")

    assert await run_in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(KeyError, match="gone"):
        await run_in_thread(fail)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("error", [None, ValueError("failed")])
async def test_who_is_cancelled_goes_on_when_the_thread_has_ended(times: int, error: Exception | None) -> None:
    work = Work(error)
    task = asyncio.ensure_future(run_in_thread(work))
    await begun(work)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.002)
        assert not task.done()
    work.let.set()
    await asyncio.wait([task])
    assert (work.ended, task.cancelled()) == (True, True)
    with pytest.raises(asyncio.CancelledError) as raised:
        await task
    assert raised.value.__cause__ is error or error is None


async def by_scope(work: Work) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(run_in_thread, work)
            await begun(work)
            scope.cancel()
            threading.Timer(0.01, work.let.set).start()
    assert scope.cancelled_caught


async def test_who_is_cancelled_by_a_scope_gets_what_the_thread_came_to() -> None:
    work, got = Work(), list[str]()

    async def keep() -> None:
        got.append(await run_in_thread(work))
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(keep)
        await begun(work)
        group.cancel_scope.cancel()
        threading.Timer(0.01, work.let.set).start()
    assert got == ["done"]


async def by_time_out(work: Work) -> None:
    async def timed() -> None:
        async with limit:
            await run_in_thread(work)

    limit = asyncio.timeout(None)
    task = asyncio.ensure_future(timed())
    await begun(work)
    limit.reschedule(0)
    threading.Timer(0.01, work.let.set).start()
    with pytest.raises(TimeoutError):
        await task


async def by_both(work: Work) -> None:
    async def both() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            with anyio.CancelScope(shield=True):
                await run_in_thread(work)

    task = asyncio.ensure_future(both())
    await begun(work)
    task.cancel()
    threading.Timer(0.01, work.let.set).start()
    await asyncio.wait([task])


@pytest.mark.parametrize("cancel", [by_scope, by_time_out, by_both])
async def test_it_has_ended_however_its_caller_was_cancelled(cancel: Callable[[Work], Awaitable[None]]) -> None:
    work = Work()
    await cancel(work)
    assert work.ended


async def test_what_is_cancelled_before_a_thread_is_free_never_begins() -> None:
    limiter = anyio.to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 1
    try:
        first, second = Work(), Work()
        running, waiting = (asyncio.ensure_future(run_in_thread(work)) for work in (first, second))
        await begun(first)
        waiting.cancel()
        await asyncio.wait([waiting])
        first.let.set()
        assert await running == "done"
        await asyncio.sleep(0.002)
        assert (waiting.cancelled(), second.begun.is_set()) == (True, False)
    finally:
        limiter.total_tokens = before


async def test_a_thread_is_used_again_by_the_next_work_of_any_event_loop() -> None:
    before = await run_in_thread(threading.get_ident)
    in_another_loop = await asyncio.to_thread(asyncio.run, run_in_thread(threading.get_ident))
    assert {in_another_loop, await run_in_thread(threading.get_ident)} == {before}


async def test_work_sees_the_context_of_its_caller() -> None:
    asked: ContextVar[str] = ContextVar("asked", default="nobody")
    asked.set("somebody")
    assert await run_in_thread(asked.get) == "somebody"


_ENDING = """
import asyncio, os, sys, threading
from pathlib import Path
from ricordo.concurrency import run_in_thread

begun, let = threading.Event(), threading.Event()

def write():
    begun.set()
    let.wait(10)
    Path("written").write_text("whole")

async def leave():
    work = run_in_thread(write)
    work.send(None)
    begun.wait(10)
    if child := os.fork():
        let.set()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return work

loop = asyncio.new_event_loop()
work = loop.run_until_complete(leave())
if work is None:
    asyncio.run(run_in_thread(os.getpid))
    os._exit(0)
"""


async def test_a_process_that_ends_lets_its_work_end_and_a_forked_one_has_threads_of_its_own() -> None:
    done = await asyncio.to_thread(run_warm, ["python", "-c", _ENDING])
    assert done.returncode == 0, done.stderr
    assert await asyncio.to_thread(Path("written").read_text) == "whole"
