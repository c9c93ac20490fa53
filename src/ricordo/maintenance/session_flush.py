"""The flush of one session as a job: extract, write to the ledger, and let the index know at once."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from ricordo.events import Emitter
from ricordo.flush.flush import Flushed, Flusher
from ricordo.flush.types import Finding
from ricordo.queue import Job
from ricordo.scopes import Scope
from ricordo.stores.place import Place
from ricordo.workspace.entry import Entry
from ricordo.workspace.layout import DEFAULT_AGENT
from ricordo.workspace.ledger import Block

__all__ = ["SessionFlush"]


@dataclass(frozen=True, kw_only=True)
class SessionFlush:
    """Carries out flush jobs of the sessions in `place`; a job does the same whoever carries it out."""

    place: Place
    flusher: Flusher
    emitter: Emitter
    scope: Scope

    async def __call__(self, job: Job) -> Flushed:
        """Extract what the job's session holds after its cursor, and index what was learned."""
        return await self._done(partial(self.flusher.flush, job.agent, job.session, scope=self._authorship(job)))

    async def learned(self, job: Job, findings: Sequence[Finding], pending: Collection[str]) -> Flushed:
        """Write what was learned elsewhere from the messages `pending` of the job's session, and index it."""
        learned = partial(self.flusher.learned, job.agent, job.session, findings, pending=pending)
        return await self._done(partial(learned, scope=self._authorship(job)))

    async def _done(self, act: Callable[[], Awaitable[Flushed]]) -> Flushed:
        with self.emitter.stage("extract", self.scope) as progress:
            flushed = await act()
            progress.counts.update(flushed.counts)
            if not flushed.messages:
                progress.skipped = "no new messages"
        if flushed.block:
            await self._indexed(flushed.block)
        return flushed

    async def _indexed(self, block: Block) -> None:
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
