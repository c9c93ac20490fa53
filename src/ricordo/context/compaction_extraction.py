"""Extraction during a compaction: one request sums messages up and learns from them, and no worker does so too.

What was not extracted yet is leased in the inbox before the model is asked. Lessons that can be used are written and
end the job; without them the job goes back to the workers.

Invariant: each message is extracted once, by the one or the other, whoever is killed when: the job is durable before
the request, and the session's cursor tells who was first.
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
    """Takes messages of one session out of the workers' hands; see `ricordo.context.contract.ExtractionHandover`."""

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
        """Lease from `queue`, write by `flush`, and leave to `worker` what is not done here.

        The lease lasts `seconds` and is not renewed, as nothing of this runs while the model writes. So let it be as
        long as all requests of a summary may take, four times what one may. When it runs out nothing is lost or
        doubled: a worker learns from the messages, and the lessons that come later are left out. Where `may_learn` says
        no, the work is left to the workers from the start.
        """
        self._queue = queue
        self._flush = flush
        self._worker = worker
        self._job = Job(kind="flush", agent=agent, session=session, user=user)
        self._seconds = seconds
        self._may_learn = may_learn

    async def __call__(self, messages: Sequence[Message]) -> ExtractionLease | None:
        """Take those of `messages` that were not learned from yet.

        None when there are none, when somebody else works on the session, for whom the job waits in the inbox, and
        when the inbox or the transcript can't be used, which is reported as a failed `extract`.
        """
        taken: list[_LeasedMessages] = []
        try:
            await run_even_if_cancelled(partial(self._take, [message.id for message in messages], taken))
        except RicordoError as error:
            self._flush.emitter.report_failure("extract", self._flush.scope, error, "the inbox did not take the job")
        except BaseException:
            # nobody will know of the lease
            for each in taken:
                await each.release()
            raise
        return taken[0] if taken else None

    async def _take(self, ids: Sequence[str], taken: "list[_LeasedMessages]") -> None:
        job = self._job
        pending = await self._flush.flusher.filter_pending(job.agent, job.session, ids)
        if not pending:
            return
        job = replace(job, first=pending[0], last=pending[-1], trace=current_trace_id())
        if self._may_learn and not await self._may_learn(job):
            await self._queue.put(job)
            return
        lease = await self._queue.begin(job, seconds=self._seconds)
        if lease is not None:
            taken.append(_LeasedMessages(self._queue, lease, pending, flush=self._flush, worker=self._worker))


class _LeasedMessages:
    """Messages under a lease, until they are accepted or released; whatever comes after that does nothing."""

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
        """The ids of the messages to learn from, in the order of the transcript."""
        return self._pending

    async def accept(self, lessons: Sequence[Finding]) -> None:
        """Write `lessons`, then end the job; what can't be written is reported, and left to the workers."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        await run_even_if_cancelled(partial(self._accept, lease, lessons))

    async def release(self) -> None:
        """Let the workers do it, at once; an inbox that can't be written to is reported."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        await run_even_if_cancelled(partial(self._release_lease, lease))

    async def _accept(self, lease: Lease, lessons: Sequence[Finding]) -> None:
        job = lease.job
        try:
            flushed = await self._flush.record_findings(job, lessons, self._pending)
            if job.last != self._pending[-1]:
                # a job that waited for more was taken along
                await self._queue.put(Job(kind=job.kind, agent=job.agent, session=job.session, user=job.user))
        except RicordoError as error:
            # lessons that are no entries are as good as none; other trouble needs a pause
            await self._release_lease(lease, None if isinstance(error, InvalidInput) else error)
            return
        except BaseException as error:
            await self._release_lease(lease, error)
            raise
        try:
            await self._queue.complete(lease, JobOutcome(state="done", counts=flushed.counts))
        except LeaseLost:
            # whoever has it finds that the cursor moved
            pass
        except RicordoError as error:
            self._report_failure(error)
        await self._worker.consolidate_if_due(flushed)
        self._worker.wake()

    async def _release_lease(self, lease: Lease, error: BaseException | None = None) -> None:
        after = self._flush.place.clock.now() + backoff(lease.job.attempts) if error else None
        try:
            await self._queue.release(lease, error=type(error).__name__ if error else None, after=after)
        except LeaseLost:
            # somebody took it over
            pass
        except RicordoError as trouble:
            self._report_failure(trouble)
        self._worker.wake()

    def _report_failure(self, error: RicordoError) -> None:
        self._flush.emitter.report_failure("extract", self._flush.scope, error, "the inbox did not take the job back")
