"""Inbox: the job queue in one SQLite file next to the workspace, shared by all processes that use the root.

The file is created by the first job. A damaged file is moved aside and created again, and the extractions that the
workspace files show as missing are queued again, without their user.

Invariant: a job that `put` returned is stored durably, as waiting, running or ended, even if a process is killed.
"""

import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from ricordo.clock import Clock, IdSource
from ricordo.concurrency import run_even_if_cancelled, run_in_thread
from ricordo.errors import DocumentInvalid, LeaseLost, StorageFailed
from ricordo.jobs.contract import Job, JobOutcome, JobRecord, JobState, Lease, is_same_work, widen_job
from ricordo.jobs.job_table import (
    INBOX_SCHEMA,
    InboxLimits,
    add_job,
    begin_job,
    complete_job,
    has_work,
    lease_job,
    list_jobs,
    make_jobs_due,
    release_job,
    renew_lease,
    to_microseconds,
    withdraw_job,
)
from ricordo.storage.sqlite import Commit, Connection, Database

__all__ = ["Inbox"]


_T = TypeVar("_T")
_REFILL_SECONDS = 0.5


class Inbox:
    """The jobs in the file at `path`."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        ids: IdSource,
        commit: Commit | None = None,
        busy_seconds: float = 10.0,
        limits: InboxLimits | None = None,
        lost: Callable[[], Awaitable[Sequence[Job]]] | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        """Prepare the inbox without opening the file.

        `busy_seconds` is how long to wait for another process; `commit` ends transactions, for tests. `lost` returns
        the jobs that a damaged file may have contained; `check` raises if the folder has been replaced by another one.
        """
        self._path = path
        self._clock = clock
        self._ids = ids
        self._commit = commit
        self._busy_seconds = busy_seconds
        self._limits = limits or InboxLimits()
        self._find_lost_jobs = lost
        self._check = check
        self._open_lock = anyio.Lock()
        self._database: Database | None = None
        self._closed = False
        self._not_before = 0.0

    async def put(self, job: Job) -> Job:
        """Add `job` durably, or widen the waiting job with its key, and return the waiting job."""
        new = replace(job, id=self._ids.new())
        return await self._write_creating(new, lambda connection: add_job(connection, new, self._clock.now()))

    async def begin(self, job: Job, *, seconds: float) -> Lease | None:
        """Add `job` and lease it at once; None if a job with its key is running, then the new job waits."""
        new = replace(job, id=self._ids.new())
        return await self._write_creating(
            new, lambda connection: begin_job(connection, new, self._clock.now(), seconds, self._limits)
        )

    async def lease(
        self, *, seconds: float, kinds: Collection[str] | None = None, key: str | None = None
    ) -> Lease | None:
        """Lease the next due job for `seconds`; None if none is due.

        After a damaged file was replaced, this waits half a second.
        """
        # a read does not block other processes, a write does
        if not await self._run(lambda database: database.read(has_work)):
            return None
        # processes that work on a lost session queue it again in this time, with its user
        await anyio.sleep_until(self._not_before)
        act = partial(lease_job, limits=self._limits, kinds=kinds, key=key)
        return await self._run(lambda database: database.write(lambda found: act(found, self._clock.now(), seconds)))

    async def renew(self, lease: Lease, *, seconds: float) -> Lease:
        """Extend the lease to `seconds` from now. Raises `LeaseLost`."""
        renewed = await self._write(lambda connection: renew_lease(connection, lease, self._clock.now(), seconds))
        if renewed is None:
            raise LeaseLost
        return renewed

    async def complete(self, lease: Lease, outcome: JobOutcome) -> None:
        """End the job. Raises `LeaseLost`."""

        def act(connection: Connection) -> bool:
            complete_job(connection, lease, outcome, self._clock.now(), self._limits)
            return True

        if not await self._write(act):
            raise LeaseLost

    async def release(self, lease: Lease, *, error: str | None = None, after: datetime | None = None) -> None:
        """Return the job to the queue, due at `after`, with the type of the `error` that stopped it. Raises
        `LeaseLost`.
        """

        def act(connection: Connection) -> bool:
            release_job(connection, lease, self._clock.now(), self._limits, error=error, after=after)
            return True

        if not await self._write(act):
            raise LeaseLost

    async def make_due(self, *, keys: Collection[str] | None = None, kinds: Collection[str] | None = None) -> int:
        """Make waiting jobs due at once; return how many."""
        act = partial(make_jobs_due, keys=keys, kinds=kinds)
        return await self._write(lambda connection: act(connection, self._clock.now())) or 0

    async def withdraw(self, job_id: str) -> bool:
        """Remove a waiting job; return False if it is not waiting."""
        return bool(await self._write(partial(withdraw_job, job_id=job_id)))

    async def jobs(
        self,
        *,
        states: Collection[JobState] | None = None,
        kinds: Collection[str] | None = None,
        limit: int = 100,
    ) -> list[JobRecord]:
        """Return at most `limit` jobs, newest first."""
        act = partial(list_jobs, states=states, kinds=kinds, limit=limit)
        return await self._run(lambda database: database.read(act)) or []

    async def close(self) -> None:
        """Close the inbox permanently; closing it again does nothing."""

        async def close() -> None:
            async with self._open_lock:
                database, self._database = self._database, None
                if database is not None:
                    await database.close()

        self._closed = True
        await run_even_if_cancelled(close)

    async def _write_creating(self, asked: Job, act: Callable[[Connection], _T]) -> _T:
        """Return the result of a write; the file is created if necessary."""
        made = await self._run(lambda database: database.write(lambda connection: (act(connection),)), asked=asked)
        assert made is not None
        return made[0]

    async def _write(self, act: Callable[[Connection], _T]) -> _T | None:
        """Return the result of a write; None if there is no file."""
        return await self._run(lambda database: database.write(act))

    async def _run(self, act: Callable[[Database], Awaitable[_T]], *, asked: Job | None = None) -> _T | None:
        """Return the result of `act`; None if there is no file, which is created only to add the job `asked`.

        `act` is repeated if the file had to be created again.
        """
        broken: DocumentInvalid | None = None
        for _ in range(2):
            database = await self._open_if_needed(asked)
            if database is None:
                return None
            try:
                return await act(database)
            except DocumentInvalid as error:
                broken = error
                await self._discard(database)
        raise StorageFailed(f"{self._path} can't be used: {broken}") from broken

    async def _open_if_needed(self, asked: Job | None) -> Database | None:
        async with self._open_lock:
            if self._closed:
                raise StorageFailed(f"{self._path} is closed.")
            if self._database is None and (asked or await run_in_thread(self._is_needed)):
                self._database = await self._open_database(asked)
            return self._database

    async def _open_database(self, asked: Job | None) -> Database:
        database = await Database.open(
            self._path,
            schema=INBOX_SCHEMA,
            busy_seconds=self._busy_seconds,
            synchronous="FULL",
            commit=self._commit,
            cache=True,
            verify=True,
            check=self._check,
        )
        try:
            await self._refill(database, asked)
        except BaseException:
            await database.close()
            raise
        return database

    async def _refill(self, database: Database, asked: Job | None) -> None:
        """Queue the jobs that a damaged file may have contained; only once, even if a kill interrupts it."""
        if self._find_lost_jobs is None or not await run_in_thread(self._has_quarantined_file):
            return
        if await database.read(lambda connection: connection.execute("SELECT 1 FROM refilled").fetchone()):
            return
        lost = [replace(job, id=self._ids.new()) for job in await self._find_lost_jobs()]
        # merge with the new job now, as another process may lease a job before it is added
        jobs = [widen_job(job, asked) if asked and is_same_work(job, asked) else job for job in lost]

        def act(connection: Connection) -> None:
            for job in jobs:
                add_job(connection, job, self._clock.now())
            connection.execute("INSERT INTO refilled VALUES (?)", (to_microseconds(self._clock.now()),))

        await database.write(act)
        self._not_before = anyio.current_time() + _REFILL_SECONDS

    def _is_needed(self) -> bool:
        """Return whether there is a file, or a damaged one whose jobs were not queued again. Raises: RootMoved."""
        if self._check is not None:
            self._check()
        return os.path.lexists(self._path) or (self._find_lost_jobs is not None and self._has_quarantined_file())

    def _has_quarantined_file(self) -> bool:
        return any(self._path.parent.glob(f"{self._path.name}.broken-*"))

    async def _discard(self, database: Database) -> None:
        """Move a damaged file aside, unless another task already did."""
        async with self._open_lock:
            if self._database is database:
                self._database = None
                await database.quarantine()
