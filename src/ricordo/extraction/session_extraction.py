"""The extraction of one session as a job: extract, write to the ledger, and index at once.

A long session is extracted in parts, each written and indexed before the next one is begun.

Invariant: whoever extracts, and whatever for, keeps to the policy of the configuration.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from ricordo.concurrency import run_even_if_cancelled
from ricordo.errors import RicordoError
from ricordo.events import Emitter
from ricordo.extraction.config import FlushConfig
from ricordo.extraction.contract import Finding
from ricordo.extraction.flusher import Flusher, FlushResult
from ricordo.extraction.throttle import Throttle
from ricordo.jobs import Job
from ricordo.scope import Scope
from ricordo.search.memory_root import MemoryRoot
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import DEFAULT_AGENT
from ricordo.workspace.ledger import LedgerBlock

__all__ = ["SessionExtraction"]


_NOTHING_NEW = "no new messages"


@dataclass(frozen=True, kw_only=True)
class SessionExtraction:
    """Carries out flush jobs of the sessions in `place`; a job does the same whoever carries it out.

    `postpone` takes a job that has to wait, as its `after` says, because its scope was flushed a moment ago.
    """

    place: MemoryRoot
    flusher: Flusher
    emitter: Emitter
    scope: Scope
    config: FlushConfig = field(default_factory=FlushConfig)
    postpone: Callable[[Job], Awaitable[object]] | None = None

    @property
    def uses_model(self) -> bool:
        """Whether a model is asked what a session teaches."""
        return self.config.is_enabled and self.flusher.model is not None

    async def __call__(self, job: Job) -> FlushResult:
        """Extract what the job's session holds after its cursor, and index what was learned.

        Does nothing where nothing is to be extracted, and puts off what comes too soon. Raises as `Flusher.flush`,
        but no error of a model from its try number `attempts` on.
        """
        if not self.config.is_enabled:
            return self._skip("the flush is off")
        if not self.config.min_gap:
            return await self._extract_all(job)
        if not await self.flusher.has_new(job.agent, job.session):
            return self._skip(_NOTHING_NEW)
        until = await self._throttle.acquire(self._throttle_scope(job))
        if until is not None:
            if self.postpone:
                await self.postpone(replace(job, after=until, deadline=None, id="", attempts=0))
            return self._skip("throttled")
        try:
            return await self._extract_all(job)
        except BaseException:
            with suppress(RicordoError):
                await run_even_if_cancelled(partial(self._throttle.release, self._throttle_scope(job)))
            raise

    async def may_learn(self, job: Job) -> bool:
        """Tell whether the session may be learned from now by somebody else, such as the request for a summary."""
        if not self.config.is_enabled or self.config.has_own_request:
            return False
        return await self._throttle.next_start(self._throttle_scope(job)) is None

    async def extract_again(self, job: Job, ids: Collection[str]) -> FlushResult:
        """Extract the messages `ids` of the job's session once more, and index what was learned."""
        if not self.config.is_enabled:
            return self._skip("the flush is off")
        again = partial(self.flusher.extract_again, job.agent, job.session, ids)
        return await self._run_and_index(partial(again, scope=self._authorship(job)))

    async def _extract_all(self, job: Job) -> FlushResult:
        """Extract part after part."""
        given_up = self.flusher.model is not None and job.attempts > self.config.attempts
        flush = partial(
            self.flusher.flush, job.agent, job.session, scope=self._authorship(job), by_rules=given_up,
            signals=job.signals, trace=job.trace,
        )  # fmt: skip
        if given_up:
            tries = f"the rules extracted: the model did not answer in {self.config.attempts} tries"
            return await self._run_and_index(flush, tries)
        done = part = await self._run_and_index(flush)
        while part.has_more:
            part = await self._run_and_index(flush)
            done = done.combine(part)
        return done

    def _skip(self, why: str) -> FlushResult:
        with self.emitter.stage("extract", self.scope) as progress:
            progress.counts.update(FlushResult().counts)
            progress.skipped = why
        return FlushResult()

    @property
    def _throttle(self) -> Throttle:
        return Throttle(files=self.place.files, clock=self.place.clock, min_gap=self.config.min_gap)

    def _throttle_scope(self, job: Job) -> Scope:
        parts = self.scope.parts() | {"agent": job.agent} | ({"user": job.user} if job.user else {})
        return Scope(**{name: value for name, value in parts.items() if value})

    async def record_findings(self, job: Job, findings: Sequence[Finding], pending: Collection[str]) -> FlushResult:
        """Write what was learned elsewhere from the messages `pending` of the job's session, and index it."""
        learned = partial(self.flusher.record_findings, job.agent, job.session, findings, pending=pending)
        flushed = await self._run_and_index(
            partial(learned, scope=self._authorship(job), signals=job.signals, trace=job.trace)
        )
        if flushed.messages:
            await self._throttle.acquire(self._throttle_scope(job))
        return flushed

    async def _run_and_index(self, act: Callable[[], Awaitable[FlushResult]], *notes: str) -> FlushResult:
        with self.emitter.stage("extract", self.scope) as progress:
            flushed = await act()
            progress.counts.update(flushed.counts)
            progress.reason = "; ".join([*notes, *flushed.notes]) or None
            if not flushed.messages:
                progress.skipped = _NOTHING_NEW
        if flushed.block:
            await self._index_block(flushed.block)
        return flushed

    async def _index_block(self, block: LedgerBlock) -> None:
        """Tell that a block stands in its ledger, which extracting it has written, and index it."""
        with self.emitter.stage("save", self.scope) as progress:
            progress.counts["entries"] = len(block.entries)
        with self.emitter.stage("index", self.scope) as progress:
            progress.counts["entries"] = len(block.entries)
            await self.place.index.index_appended(block.path, block.offset, block.data)

    def _authorship(self, job: Job) -> Scope | None:
        """Return who is named on what a session taught, beside whom the root already names.

        The agent that sessions without one are kept under is nobody.
        """
        named = {"user": job.user, "agent": "" if job.agent == DEFAULT_AGENT else job.agent}
        parts = {name: value for name, value in named.items() if value}
        inside = self.place.to_stored_entry(Entry(content="-", scope=Scope(**parts))) if parts else None
        return inside.scope if inside else None
