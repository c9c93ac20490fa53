"""Extraction during a compaction: one request summarizes messages and extracts lessons from them.

Messages without extracted lessons are leased in the inbox before the model is called, so that no worker extracts from
them too. Usable lessons are written and end the job; otherwise the job returns to the workers.

Invariant: each message is extracted once, even if a process is killed. The job is durable before the request, and the
session's cursor decides which result counts.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from ricordo.concurrency import run_even_if_cancelled
from ricordo.context.contract import ExtractionLease
from ricordo.errors import InvalidInput, LeaseLost, RicordoError
from ricordo.events import current_trace_id
from ricordo.extraction.contract import Finding
from ricordo.extraction.session_extraction import SessionExtraction
from ricordo.extraction.worker import JobWorker
from ricordo.jobs import Job, JobOutcome, JobQueue, Lease
from ricordo.jobs.schedule import backoff
from ricordo.messages import Message

__all__ = ["CompactionExtraction"]


class CompactionExtraction:
    """Leases messages of one session from the workers; see `ricordo.context.contract.ExtractionHandover`."""

    def __init__(
        self,
        queue: JobQueue,
        *,
        flush: SessionExtraction,
        worker: JobWorker,
        agent: str,
        session: str,
        user: str = "",
        seconds: float = 240.0,
        may_learn: Callable[[Job], Awaitable[bool]] | None = None,
    ) -> None:
        """Lease from `queue`, write through `flush`, and leave unfinished work to `worker`.

        The lease lasts `seconds` and is not renewed, because nothing here runs while the model writes. Set it to the
        time of all requests of a summary: four times the limit of one request. If it expires, nothing is lost or
        duplicated: a worker extracts from the messages, and late lessons are discarded. If `may_learn` returns False,
        the work is left to the workers from the start.
        """
        self._queue = queue
        self._flush = flush
        self._worker = worker
        self._job = Job(kind="flush", agent=agent, session=session, user=user)
        self._seconds = seconds
        self._may_learn = may_learn

    async def __call__(self, messages: Sequence[Message]) -> ExtractionLease | None:
        """Lease those of `messages` without extracted lessons.

        Return None if there are none, if another worker has the session (the job then waits in the inbox), or if the
        inbox or the transcript is unusable, which is reported as a failed `extract`.
        """
        leased: list[_LeasedMessages] = []
        try:
            await run_even_if_cancelled(partial(self._take, [message.id for message in messages], leased))
        except RicordoError as error:
            self._flush.emitter.report_failure("extract", self._flush.scope, error, "the inbox did not take the job")
        except BaseException:
            # The caller never receives the lease, so release it.
            for each in leased:
                await each.release()
            raise
        return leased[0] if leased else None

    async def _take(self, ids: Sequence[str], leased: "list[_LeasedMessages]") -> None:
        job = self._job
        pending = await self._flush.flusher.filter_pending(job.agent, job.session, ids)
        if not pending:
            return
        job = replace(job, first_id=pending[0], last_id=pending[-1], trace=current_trace_id())
        if self._may_learn and not await self._may_learn(job):
            await self._queue.put(job)
            return
        lease = await self._queue.begin(job, seconds=self._seconds)
        if lease is not None:
            leased.append(_LeasedMessages(self._queue, lease, pending, flush=self._flush, worker=self._worker))


class _LeasedMessages:
    """Messages under a lease until they are accepted or released; later calls do nothing."""

    def __init__(
        self, queue: JobQueue, lease: Lease, pending: tuple[str, ...], *, flush: SessionExtraction, worker: JobWorker
    ) -> None:
        self._queue = queue
        self._lease: Lease | None = lease
        self._pending = pending
        self._flush = flush
        self._worker = worker

    @property
    def pending_ids(self) -> Collection[str]:
        """The ids of the messages to extract from, in transcript order."""
        return self._pending

    async def accept(self, lessons: Sequence[Finding]) -> None:
        """Write `lessons`, then end the job. On an error, report it and leave the job to the workers."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        await run_even_if_cancelled(partial(self._accept, lease, lessons))

    async def release(self) -> None:
        """Return the job to the workers at once. A failed write to the inbox is reported."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        await run_even_if_cancelled(partial(self._release_lease, lease))

    async def _accept(self, lease: Lease, lessons: Sequence[Finding]) -> None:
        job = lease.job
        try:
            result = await self._flush.record_findings(job, lessons, self._pending)
            if job.last_id != self._pending[-1]:
                # The lease also took over a queued job with more messages.
                await self._queue.put(Job(kind=job.kind, agent=job.agent, session=job.session, user=job.user))
        except RicordoError as error:
            # Invalid lessons count as none: the job returns without a pause. Other errors need one.
            await self._release_lease(lease, None if isinstance(error, InvalidInput) else error)
            return
        except BaseException as error:
            await self._release_lease(lease, error)
            raise
        try:
            await self._queue.complete(lease, JobOutcome(state="done", counts=result.counts))
        except LeaseLost:
            # The new owner of the lease finds that the cursor has moved.
            pass
        except RicordoError as error:
            self._report_failure(error)
        await self._worker.consolidate_if_due(result)
        self._worker.wake()

    async def _release_lease(self, lease: Lease, error: BaseException | None = None) -> None:
        after = self._flush.place.clock.now() + backoff(lease.job.attempts) if error else None
        try:
            await self._queue.release(lease, error=type(error).__name__ if error else None, after=after)
        except LeaseLost:
            # Another worker took over the lease.
            pass
        except RicordoError as trouble:
            self._report_failure(trouble)
        self._worker.wake()

    def _report_failure(self, error: RicordoError) -> None:
        self._flush.emitter.report_failure("extract", self._flush.scope, error, "the inbox did not take the job back")
