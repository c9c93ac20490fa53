"""The flush of one session as a job: extract, write to the ledger, and let the index know at once.

A long session is extracted in parts, each written and indexed before the next one is begun. Invariant: whoever flushes,
and whatever for, keeps to the policy of the configuration.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from ricordo.errors import RicordoError
from ricordo.events import Emitter
from ricordo.flush.config import FlushConfig
from ricordo.flush.flush import Flushed, Flusher
from ricordo.flush.throttle import Throttle
from ricordo.flush.types import Finding
from ricordo.queue import Job
from ricordo.scopes import Scope
from ricordo.stores.place import Place
from ricordo.uncut import finish
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import DEFAULT_AGENT
from ricordo.workspace.ledger import Block

__all__ = ["SessionFlush"]

_NOTHING_NEW = "no new messages"


@dataclass(frozen=True, kw_only=True)
class SessionFlush:
    """Carries out flush jobs of the sessions in `place`; a job does the same whoever carries it out.

    `later` takes a job that has to wait, as its `after` says, because its scope was flushed a moment ago.
    """

    place: Place
    flusher: Flusher
    emitter: Emitter
    scope: Scope
    config: FlushConfig = field(default_factory=FlushConfig)
    later: Callable[[Job], Awaitable[object]] | None = None

    @property
    def asks_a_model(self) -> bool:
        """Whether a model is asked what a session teaches."""
        return self.config.is_on and self.flusher.model is not None

    async def __call__(self, job: Job) -> Flushed:
        """Extract what the job's session holds after its cursor, and index what was learned.

        Does nothing where nothing is to be extracted, and puts off what comes too soon. Raises as `Flusher.flush`,
        but no error of a model from its try number `attempts` on.
        """
        if not self.config.is_on:
            return self._skipped("the flush is off")
        if not self.config.min_gap:
            return await self._all(job)
        if not await self.flusher.has_new(job.agent, job.session):
            return self._skipped(_NOTHING_NEW)
        until = await self._throttle.take(self._slot(job))
        if until is not None:
            if self.later:
                await self.later(replace(job, after=until, deadline=None, id="", attempts=0))
            return self._skipped("throttled")
        try:
            return await self._all(job)
        except BaseException:
            with suppress(RicordoError):
                await finish(partial(self._throttle.give_back, self._slot(job)))
            raise

    async def may_learn(self, job: Job) -> bool:
        """Tell whether the session may be learned from now by somebody else, such as the request for a summary."""
        if not self.config.is_on or self.config.has_own_request:
            return False
        return await self._throttle.until(self._slot(job)) is None

    async def again(self, job: Job, ids: Collection[str]) -> Flushed:
        """Extract the messages `ids` of the job's session once more, and index what was learned."""
        if not self.config.is_on:
            return self._skipped("the flush is off")
        again = partial(self.flusher.again, job.agent, job.session, ids)
        return await self._done(partial(again, scope=self._authorship(job)))

    async def _all(self, job: Job) -> Flushed:
        """Extract part after part."""
        given_up = self.flusher.model is not None and job.attempts > self.config.attempts
        flush = partial(
            self.flusher.flush, job.agent, job.session, scope=self._authorship(job), by_rules=given_up,
            signals=job.signals, trace=job.trace,
        )  # fmt: skip
        if given_up:
            tries = f"the rules extracted: the model did not answer in {self.config.attempts} tries"
            return await self._done(flush, tries)
        done = part = await self._done(flush)
        while part.more:
            part = await self._done(flush)
            done = done.then(part)
        return done

    def _skipped(self, why: str) -> Flushed:
        with self.emitter.stage("extract", self.scope) as progress:
            progress.counts.update(Flushed().counts)
            progress.skipped = why
        return Flushed()

    @property
    def _throttle(self) -> Throttle:
        return Throttle(files=self.place.files, clock=self.place.clock, min_gap=self.config.min_gap)

    def _slot(self, job: Job) -> Scope:
        parts = self.scope.parts() | {"agent": job.agent} | ({"user": job.user} if job.user else {})
        return Scope(**{name: value for name, value in parts.items() if value})

    async def learned(self, job: Job, findings: Sequence[Finding], pending: Collection[str]) -> Flushed:
        """Write what was learned elsewhere from the messages `pending` of the job's session, and index it."""
        learned = partial(self.flusher.learned, job.agent, job.session, findings, pending=pending)
        flushed = await self._done(partial(learned, scope=self._authorship(job), signals=job.signals, trace=job.trace))
        if flushed.messages:
            await self._throttle.take(self._slot(job))
        return flushed

    async def _done(self, act: Callable[[], Awaitable[Flushed]], *notes: str) -> Flushed:
        with self.emitter.stage("extract", self.scope) as progress:
            flushed = await act()
            progress.counts.update(flushed.counts)
            progress.reason = "; ".join([*notes, *flushed.notes]) or None
            if not flushed.messages:
                progress.skipped = _NOTHING_NEW
        if flushed.block:
            await self._kept(flushed.block)
        return flushed

    async def _kept(self, block: Block) -> None:
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
        inside = self.place.inward(Entry(content="-", scope=Scope(**parts))) if parts else None
        return inside.scope if inside else None
