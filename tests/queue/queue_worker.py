"""One of several processes on one inbox: `queue_worker.py <file> <name> <what> <amount>`."""

import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from ricordo.clock import MonotonicIds, SystemClock
from ricordo.jobs import Inbox, Job, JobOutcome

PATH, NAME = Path(sys.argv[1]), sys.argv[2]


def tell(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def alone() -> None:
    """Fail when another process is in here too."""
    with Path(f"{PATH}.running").open("x"):
        pass
    Path(f"{PATH}.running").unlink()


def inbox(commit: Callable[[sqlite3.Connection], None] | None = None) -> Inbox:
    clock = SystemClock()
    return Inbox(PATH, clock=clock, ids=MonotonicIds(clock), commit=commit)


async def work(count: int) -> None:
    """Put `count` jobs, then do jobs, whosever they are, until nothing waits."""
    mine = inbox()
    for number in range(count):
        await mine.put(Job(kind="flush", session=f"{NAME}-{number}"))
        lease = await mine.lease(seconds=600)
        if lease is not None:
            tell(f"did {lease.job.session}")
            await mine.complete(lease, JobOutcome(state="done"))
    while await mine.jobs(states={"waiting"}, limit=1):
        lease = await mine.lease(seconds=600)
        if lease is not None:
            tell(f"did {lease.job.session}")
            await mine.complete(lease, JobOutcome(state="done"))
    await mine.close()


async def same_key(count: int) -> None:
    """Do jobs of one key, telling when each begins and ends."""
    mine = inbox()
    for _ in range(count):
        await mine.put(Job(kind="flush", session="one"))
        lease = await mine.lease(seconds=600)
        if lease is not None:
            tell(f"begin {lease.job.attempts}")
            alone()
            await mine.complete(lease, JobOutcome(state="done"))
    await mine.close()


async def killed(at: int) -> None:
    """Put, lease and settle jobs, killed before commit number `at`, or after it when `at` is negative."""
    commits = 0

    def commit(connection: sqlite3.Connection) -> None:
        nonlocal commits
        commits += 1
        if commits == at:
            os.kill(os.getpid(), signal.SIGKILL)
        connection.execute("COMMIT")
        if commits == -at:
            os.kill(os.getpid(), signal.SIGKILL)

    mine = inbox(commit)
    for session in ("a", "b"):
        await mine.put(Job(kind="flush", session=session))
        tell(f"put {session}")
        lease = await mine.lease(seconds=600)
        assert lease is not None
        tell(f"leased {session}")
        await mine.complete(lease, JobOutcome(state="done"))
        tell(f"settled {session}")
    await mine.close()
    tell("lived")


ACTS: dict[str, Callable[[int], Awaitable[None]]] = {"work": work, "same_key": same_key, "killed": killed}

if __name__ == "__main__":
    anyio.run(ACTS[sys.argv[3]], int(sys.argv[4]))
