"""The extraction of one session as a job: extract, write to the ledger, and index at once.

A long session is extracted in parts; each is written and indexed before the next one begins.

Invariant: every extraction follows the policy of the configuration, whatever started it.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial

from ricordo.concurrency import run_even_if_cancelled
from ricordo.errors import RicordoError
from ricordo.events import Emitter
from ricordo.extraction.config import FlushConfig
from ricordo.extraction.contract import Finding
from ricordo.extraction.flusher import Flusher, FlushResult
from ricordo.extraction.throttle import Throttle
from ricordo.jobs import Job
from ricordo.lazy import dataclass
from ricordo.scope import Scope
from ricordo.search.memory_root import MemoryRoot
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import DEFAULT_AGENT
from ricordo.workspace.ledger import LedgerBlock

__all__ = ["SessionExtraction"]


_NOTHING_NEW = "no new messages"


@dataclass(frozen=True, kw_only=True)
class SessionExtraction:
    """Carries out flush jobs of the sessions in `place`, in the same way for every caller.

    `postpone` takes a job that has to wait until its `after` time, because its scope was flushed recently.
    """

    place: MemoryRoot
    flusher: Flusher
    emitter: Emitter
    scope: Scope
    config: FlushConfig = field(default_factory=FlushConfig)
    postpone: Callable[[Job], Awaitable[object]] | None = None

    @property
    def uses_model(self) -> bool:
        """Whether a model extracts from sessions."""
        return self.config.is_enabled and self.flusher.model is not None

    async def __call__(self, job: Job) -> FlushResult:
        """Extract the messages of the job's session after its cursor, and index the entries.

        It does nothing if the flush is off, and postpones a flush that comes too early. Raises as `Flusher.flush`, but
        no model error after `attempts` tries.
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
                await self.postpone(replace(job, not_before=until, deadline=None, id="", attempts=0))
            return self._skip("throttled")
        try:
            return await self._extract_all(job)
        except BaseException:
            with suppress(RicordoError):
                await run_even_if_cancelled(partial(self._throttle.release, self._throttle_scope(job)))
            raise

    async def needs_model(self, job: Job) -> bool:
        """Return whether a model should read the job's session: there is one, and both sides said something."""
        return self.uses_model and await self.flusher.is_conversation(job.agent, job.session)

    async def extract_by_rules(self, job: Job) -> FlushResult:
        """Extract the messages of the job's session after its cursor by rules, and index the entries."""
        if not self.config.is_enabled:
            return self._skip("the flush is off")
        flush = partial(self.flusher.flush, job.agent, job.session, scope=self._authorship(job), by_rules=True)
        return await self._run_and_index(flush)

    async def may_learn(self, job: Job) -> bool:
        """Return whether another request, such as the summary request, may extract from the session now."""
        if not self.config.is_enabled or self.config.has_own_request:
            return False
        return await self._throttle.next_start(self._throttle_scope(job)) is None

    async def extract_again(self, job: Job, ids: Collection[str]) -> FlushResult:
        """Extract the messages `ids` of the job's session again, and index the entries."""
        if not self.config.is_enabled:
            return self._skip("the flush is off")
        extract = partial(self.flusher.extract_again, job.agent, job.session, ids)
        return await self._run_and_index(partial(extract, scope=self._authorship(job)))

    async def skip(self, agent: str, session: str) -> None:
        """Let nothing be learned from the messages that a session has now."""
        await self.flusher.skip_pending(agent, session)

    async def _extract_all(self, job: Job) -> FlushResult:
        """Extract part by part."""
        by_rules = self.flusher.model is not None and job.attempts > self.config.attempts
        flush = partial(
            self.flusher.flush, job.agent, job.session, scope=self._authorship(job), by_rules=by_rules,
            signals=job.signals, trace=job.trace,
        )  # fmt: skip
        if by_rules:
            note = f"the rules extracted: the model did not answer in {self.config.attempts} tries"
            return await self._run_and_index(flush, note)
        result = part = await self._run_and_index(flush)
        while part.has_more:
            part = await self._run_and_index(flush)
            result = result.combine(part)
        return result

    def _skip(self, reason: str) -> FlushResult:
        with self.emitter.stage("extract", self.scope) as progress:
            progress.counts.update(FlushResult().counts)
            progress.skipped = reason
        return FlushResult()

    @property
    def _throttle(self) -> Throttle:
        return Throttle(files=self.place.files, clock=self.place.clock, min_gap=self.config.min_gap)

    def _throttle_scope(self, job: Job) -> Scope:
        parts = self.scope.parts() | {"agent": job.agent} | ({"user": job.user} if job.user else {})
        return Scope(**{name: value for name, value in parts.items() if value})

    async def record_findings(self, job: Job, findings: Sequence[Finding], pending: Collection[str]) -> FlushResult:
        """Write findings of another request about the messages `pending` of the job's session, and index them."""
        record = partial(self.flusher.record_findings, job.agent, job.session, findings, pending=pending)
        result = await self._run_and_index(
            partial(record, scope=self._authorship(job), signals=job.signals, trace=job.trace)
        )
        if result.messages:
            await self._throttle.acquire(self._throttle_scope(job))
        return result

    async def _run_and_index(self, extract: Callable[[], Awaitable[FlushResult]], *notes: str) -> FlushResult:
        with self.emitter.stage("extract", self.scope) as progress:
            result = await extract()
            progress.counts.update(result.counts)
            progress.reason = "; ".join([*notes, *result.notes]) or None
            if not result.messages:
                progress.skipped = _NOTHING_NEW
        for block in result.blocks:
            await self._index_block(block)
        return result

    async def _index_block(self, block: LedgerBlock) -> None:
        """Report that extraction has written a block to its ledger, and index it."""
        with self.emitter.stage("save", self.scope) as progress:
            progress.counts["entries"] = len(block.entries)
        with self.emitter.stage("index", self.scope) as progress:
            progress.counts["entries"] = len(block.entries)
            await self.place.index.index_appended(block.path, block.offset, block.data)
        if self.place.audit and self.place.audit.records_changes:
            await self.place.audit.record("extract", [entry.id for entry in block.entries], by="flush")

    def _authorship(self, job: Job) -> Scope | None:
        """Return the scope to store on the entries, without the parts that the root implies.

        The default agent of sessions without an agent is not stored.
        """
        authors = {"user": job.user, "agent": "" if job.agent == DEFAULT_AGENT else job.agent}
        parts = {name: value for name, value in authors.items() if value}
        stored_entry = self.place.to_stored_entry(Entry(content="-", scope=Scope(**parts))) if parts else None
        return stored_entry.scope if stored_entry else None
