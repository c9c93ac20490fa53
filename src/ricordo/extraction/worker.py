"""JobWorker: runs the jobs of the inbox in the background of any live process.

A job runs under a lease that is renewed meanwhile. A failed job returns to the inbox with a pause and the type of its
error; a cancelled job returns at once.

Invariant: no error of a job or of the inbox leaves `drain` or `serve`; each is reported as a failed `drain`.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

from ricordo.clock import Clock
from ricordo.concurrency import background_task, run_even_if_cancelled
from ricordo.errors import LeaseLost, StorageError
from ricordo.events import Emitter
from ricordo.jobs import Job, JobOutcome, JobQueue, JobRecord, Lease
from ricordo.jobs.contract import job_key
from ricordo.jobs.schedule import ConsolidationDue, FlushSignal, at_most_every, backoff
from ricordo.lazy import dataclass
from ricordo.scope import Scope

if TYPE_CHECKING:
    from ricordo.extraction.flusher import FlushResult

__all__ = ["MAINTAIN_KIND", "DrainResult", "JobWorker", "WorkerPace"]


_T = TypeVar("_T")
_POLL_SECONDS = 0.02
_MAX_JOBS = 1_000
_UNENDED_STATES: Collection[str] = frozenset({"waiting", "running"})
MAINTAIN_KIND = "maintain"
"""The kind, and the key, of the jobs that maintain the root."""


@dataclass(frozen=True, kw_only=True)
class DrainResult:
    """The result of draining: the number of jobs done, failed, and left, including jobs that are not due."""

    done: int = 0
    failed: int = 0
    left: int = 0


@dataclass(frozen=True, kw_only=True)
class WorkerPace:
    """Times in seconds: of a lease, and the minimum and maximum pause between two checks of an idle inbox.

    `patience` is how long `run_now` waits for a session that another process works on.
    """

    lease: float = 60.0
    shortest_pause: float = 1.0
    longest_pause: float = 30.0
    patience: float = 2.0


@dataclass(frozen=True, kw_only=True)
class _NextCycle:
    """When the next maintenance is due, and the id of the previous job; empty for the first."""

    at: datetime
    after: str = ""


class JobWorker:
    """Runs `flush` jobs, and `consolidate` and `maintain` jobs if it has functions for them."""

    def __init__(
        self,
        queue: JobQueue,
        *,
        flush: Callable[[Job], Awaitable["FlushResult"]],
        consolidate: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        maintain: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        interval: timedelta = timedelta(hours=6),
        tidy: Callable[[], Awaitable[object]] | None = None,
        due: ConsolidationDue | None = None,
        emitter: Emitter,
        clock: Clock,
        scope: Scope | None = None,
        pace: WorkerPace | None = None,
        workers: int = 1,
    ) -> None:
        """Work on `queue`, with up to `workers` jobs at a time; `scope` is added to events.

        `due` decides when a flush requests a consolidation: by default 30 minutes after the last one, or after the
        worker was created. New entries are consolidated when the worker closes, see `lifespan`, and then `tidy` removes
        what is no longer needed. `maintain` runs every `interval`, in one of the processes of a root.
        """
        self._queue = queue
        self._flush = flush
        self._consolidate = consolidate
        self._maintain = maintain
        self._interval = interval
        self._cycle: _NextCycle | None = None
        self._tidy = tidy
        self._due = due or at_most_every(timedelta(minutes=30))
        self._emitter = emitter
        self._clock = clock
        self._scope = scope
        self._pace = pace or WorkerPace()
        self._workers = workers
        available = {"flush": True, "consolidate": consolidate is not None, MAINTAIN_KIND: maintain is not None}
        self._kinds = frozenset(kind for kind, is_available in available.items() if is_available)
        self._wake_events: set[anyio.Event] = set()
        self._tracked_keys: set[str] = set()
        self._began = clock.now()
        self._has_learned = False

    async def drain(self, *, seconds: float, kinds: Collection[str] | None = None) -> DrainResult:
        """Run due jobs of these kinds for at most `seconds`; unfinished jobs return to the inbox."""
        job_kinds = self._kinds if kinds is None else self._kinds.intersection(kinds)
        counts = {True: 0, False: 0}
        running: set[str] = set()

        async def work(lease: Lease) -> None:
            try:
                counts[await self._run_job(lease)] += 1
            finally:
                running.discard(lease.token)
                self.wake()

        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                while True:
                    with self._wake_event() as event:
                        lease = await self._lease_next(job_kinds) if len(running) < self._workers else None
                        if lease is not None:
                            running.add(lease.token)
                            group.start_soon(work, lease)
                        elif running:
                            await event.wait()
                        else:
                            break
        return DrainResult(done=counts[True], failed=counts[False], left=len(await self._list_unended(job_kinds)))

    async def drain_all(self, *, seconds: float) -> int:
        """Drain, wait for the jobs of other workers, in at most `seconds`, and return the number of jobs left."""
        with anyio.move_on_after(seconds):
            await self.drain(seconds=math.inf)
            while await self._has_due():
                await anyio.sleep(_POLL_SECONDS)
                await self.drain(seconds=math.inf)
        return (await self.drain(seconds=0)).left

    async def serve(self) -> None:
        """Drain whenever a job is due or `wake` is called, until cancelled."""
        while True:
            with self._wake_event() as event:
                await self._schedule()
                await self.drain(seconds=math.inf)
                with anyio.move_on_after(await self._seconds_until_due()):
                    await event.wait()

    def wake(self) -> None:
        """Make `serve` check the inbox now."""
        for each in self._wake_events:
            each.set()

    def track(self, job: Job) -> None:
        """Remember a job requested here, so that `make_due` and the closing worker run it without its pause."""
        self._tracked_keys.add(job_key(job))
        self.wake()

    async def make_due(self) -> None:
        """Make the jobs requested here due at once."""
        if not self._tracked_keys:
            return
        try:
            await self._queue.make_due(keys=self._tracked_keys)
        except StorageError as error:
            self._report(error)
        else:
            self._tracked_keys.clear()

    @contextmanager
    def _wake_event(self) -> Iterator[anyio.Event]:
        """Yield an event that `wake` sets from now on."""
        event = anyio.Event()
        self._wake_events.add(event)
        try:
            yield event
        finally:
            self._wake_events.discard(event)

    @asynccontextmanager
    async def lifespan(self, *, closing_seconds: float) -> AsyncIterator[None]:
        """Serve while the block runs, and drain for at most `closing_seconds` after it, unless it is cancelled.

        New entries are consolidated in that time; jobs without time wait in the inbox. An error of the block is raised
        as it is, not in a group.
        """
        try:
            async with background_task(self.serve):
                yield
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException:
            await self._close(closing_seconds)
            raise
        await self._close(closing_seconds)

    async def _close(self, seconds: float) -> None:
        started_at = anyio.current_time()
        await self.make_due()
        await self.drain(seconds=seconds)
        if self._has_learned:
            await self._request_consolidation()
            await self.drain(seconds=max(0.0, seconds - (anyio.current_time() - started_at)))
        await self._tidy_up(max(0.0, seconds - (anyio.current_time() - started_at)))

    async def _tidy_up(self, seconds: float) -> None:
        """Tidy for at most `seconds`; the next worker that closes continues."""
        if self._tidy is None:
            return
        try:
            with anyio.move_on_after(seconds):
                await self._tidy()
        except StorageError as error:
            self._report(error)

    async def run_now(self, job: Job) -> "FlushResult":
        """Run a flush job now, with the inbox as its safety net, and return its result.

        The job is in the inbox before the work begins, so another process runs it after a crash. If the inbox cannot be
        used, or another worker keeps this session for too long, the work runs without it. Errors of the work are
        raised; the job waits for a retry.
        """
        lease = await self._begin_job(job)
        if lease is None:
            self.wake()
            return await self._flush(job)
        try:
            result = await self._run_renewing(lease, self._flush)
        except BaseException as error:
            await self._release(lease, error)
            raise
        await self._complete(lease, result.counts)
        await self.consolidate_if_due(result)
        return result

    async def consolidate_if_due(self, flush_result: "FlushResult") -> None:
        """Request a consolidation if a flush wrote entries and one is due, counting those of other workers."""
        if self._consolidate is None or flush_result.block is None:
            return
        self._has_learned = True
        try:
            completed = await self._queue.jobs(states={"done"}, kinds={"consolidate"}, limit=1)
        except StorageError as error:
            self._report(error)
            return
        last = max([self._began, *(record.changed_at for record in completed)])
        if self._due(FlushSignal(now=self._clock.now(), last=last, entries=len(flush_result.entries))):
            await self._request_consolidation()

    async def _lease_next(self, kinds: Collection[str]) -> Lease | None:
        try:
            return await self._queue.lease(seconds=self._pace.lease, kinds=kinds)
        except StorageError as error:
            self._report(error)
            return None

    async def _begin_job(self, job: Job) -> Lease | None:
        try:
            lease = await self._queue.begin(job, seconds=self._pace.lease)
            if lease is None:
                key = job_key(job)
                with anyio.move_on_after(self._pace.patience):
                    while lease is None:
                        await anyio.sleep(0.02)
                        lease = await self._queue.lease(seconds=self._pace.lease, key=key)
        except StorageError as error:
            self._report(error)
            return None
        return lease

    async def _run_job(self, lease: Lease) -> bool:
        """Run a job and return whether it succeeded. It is completed or released afterwards in every case."""
        try:
            with self._emitter.stage("drain", self._scope) as progress:
                counts = await self._run_renewing(lease, self._perform)
                progress.counts.update(counts)
        except Exception as error:  # noqa: BLE001  (work that fails waits in the inbox, and is shown there)
            await self._release(lease, error)
            return False
        except BaseException as error:
            await self._release(lease, error)
            raise
        await self._complete(lease, counts)
        return True

    async def _schedule(self) -> None:
        """Request the next maintenance if due: one interval after the last one, or after the first job."""
        cycle, now = self._cycle, self._clock.now()
        if self._maintain is None or (cycle and now < cycle.at):
            return
        try:
            self._cycle = await self._find_next_cycle()
            overdue = cycle and self._cycle and cycle.after == self._cycle.after
            if self._cycle and (overdue or now >= self._cycle.at):
                await self._queue.put(Job(kind=MAINTAIN_KIND, key=MAINTAIN_KIND))
                self._cycle = None
        except StorageError as error:
            self._report(error)

    async def _find_next_cycle(self) -> "_NextCycle | None":
        """Return the next cycle; None if one is requested already, or there was never a job."""
        records = await self._queue.jobs(kinds={MAINTAIN_KIND}, limit=1)
        if any(record.state in _UNENDED_STATES for record in records):
            return None
        timestamps = [record.changed_at for record in records] or [
            record.created_at for record in (await self._queue.jobs(limit=_MAX_JOBS))[-1:]
        ]
        if not timestamps:
            return None
        # A clock that was set back must not delay it for long.
        due_at = min(timestamps[0], self._clock.now()) + self._interval
        return _NextCycle(at=due_at, after=records[0].job.id if records else "")

    async def _perform(self, job: Job) -> Mapping[str, int]:
        if job.kind == MAINTAIN_KIND and self._maintain is not None:
            return await self._maintain()
        if job.kind == "consolidate" and self._consolidate is not None:
            return await self._consolidate()
        result = await self._flush(job)
        await self.consolidate_if_due(result)
        return result.counts

    async def _run_renewing(self, lease: Lease, work: Callable[[Job], Awaitable[_T]]) -> _T:
        """Return the result of `work`, and renew the lease meanwhile."""
        async with background_task(partial(self._renew_lease, lease)):
            return await work(lease.job)

    async def _renew_lease(self, lease: Lease) -> None:
        while True:
            await anyio.sleep(self._pace.lease / 3)
            try:
                await self._queue.renew(lease, seconds=self._pace.lease)
            except LeaseLost:
                # The new owner finds the work done: a flush ends in one write, and only the first counts.
                return
            except StorageError as error:
                self._report(error)

    async def _complete(self, lease: Lease, counts: Mapping[str, int]) -> None:
        try:
            await run_even_if_cancelled(partial(self._queue.complete, lease, JobOutcome(state="done", counts=counts)))
        except (LeaseLost, StorageError) as error:
            self._report(error)

    async def _release(self, lease: Lease, error: BaseException) -> None:
        """Release the job: after an error with a pause and the error's type, after a cancellation unchanged."""
        failed = isinstance(error, Exception)
        after = self._clock.now() + backoff(lease.job.attempts) if failed else None
        release = partial(self._queue.release, lease, error=type(error).__name__ if failed else None, after=after)
        try:
            await run_even_if_cancelled(release)
        except (LeaseLost, StorageError) as trouble:
            self._report(trouble)

    async def _request_consolidation(self) -> None:
        self._has_learned = False
        try:
            await self._queue.put(Job(kind="consolidate"))
        except StorageError as error:
            self._report(error)
        self.wake()

    async def _has_due(self) -> bool:
        """Return whether a job is running, or is waiting only for a worker."""
        now = self._clock.now()
        open_jobs = await self._list_unended(self._kinds)
        return any(
            each.state == "running" or each.job.not_before is None or each.job.not_before <= now for each in open_jobs
        )

    async def _seconds_until_due(self) -> float:
        """Return how many seconds to sleep."""
        now = self._clock.now()
        open_jobs = await self._list_unended(self._kinds)
        times = [
            (record.leased_until if record.state == "running" else record.job.not_before) or now for record in open_jobs
        ]
        if not times:
            return self._pace.longest_pause
        soonest = (min(times) - now).total_seconds()
        return min(max(soonest, self._pace.shortest_pause), self._pace.longest_pause)

    async def _list_unended(self, kinds: Collection[str]) -> list[JobRecord]:
        try:
            return await self._queue.jobs(states={"waiting", "running"}, kinds=kinds, limit=_MAX_JOBS)
        except StorageError as error:
            self._report(error)
            return []

    def _report(self, error: Exception) -> None:
        with suppress(type(error)), self._emitter.stage("drain", self._scope):
            raise error
