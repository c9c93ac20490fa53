"""Flush: what a session taught is extracted later, by whoever works off the inbox; here the work is only asked for."""

from collections.abc import Sequence
from functools import partial

import anyio

from ricordo.clock import SystemClock
from ricordo.errors import RicordoError
from ricordo.events import Emitter
from ricordo.messages import Message, mark_of
from ricordo.middleware.contract import Turn, TurnHandler, TurnResult
from ricordo.queue import Job, Queue
from ricordo.scopes import Scope
from ricordo.uncut import uncut

__all__ = ["FLUSH", "FlushJobs"]

FLUSH = "flush"
"""The kind of the jobs."""


class FlushJobs:
    """Turn middleware that puts a durable job at the end of each turn, a failed or cancelled one too.

    An inbox that can't be written to ends no turn: it is reported as a failed `extract`, and the cursor of the session
    makes the next flush catch up.
    """

    def __init__(self, queue: Queue, *, emitter: Emitter | None = None) -> None:
        """Put jobs into `queue`; the user of the scope is named on them."""
        self._queue = queue
        self._emitter = emitter or Emitter(SystemClock())

    async def __call__(self, turn: Turn, handler: TurnHandler) -> TurnResult:
        """Carry the turn out, and ask for the extraction of what was said."""
        try:
            return await handler(turn)
        finally:
            await self.ask(turn.scope, turn.agent, turn.session)

    async def before_drop(self, scope: Scope, agent: str, session: str, dropped: Sequence[Message]) -> None:
        """Ask for the extraction of what leaves the window; messages that nobody said are not named.

        With all but `dropped` bound by `functools.partial`, this is the hook of a compaction in that session.
        """
        ids = [message.id for message in dropped if message.id and mark_of(message) in {None, "cut"}]
        if ids:
            await self.ask(scope, agent, session, first=ids[0], last=ids[-1])

    async def ask(
        self, scope: Scope, agent: str, session: str, *, first: str | None = None, last: str | None = None
    ) -> None:
        """Put one job, durably, for the messages from `first` to `last`; a cancellation waits until it is there."""
        job = Job(kind=FLUSH, agent=agent, session=session, user=scope.user or "", first=first, last=last)
        try:
            with anyio.CancelScope(shield=True):
                await uncut(partial(self._put, job))
        except RicordoError as error:
            self._emitter.failed("extract", scope, error, "the inbox did not take the job")

    async def _put(self, job: Job) -> None:
        await self._queue.put(job)
