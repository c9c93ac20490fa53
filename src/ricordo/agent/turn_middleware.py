"""Turn middleware: usage totals, waking the background worker, extraction jobs, and recording into the transcript.

An inbox that can't be written to ends no turn: the next extraction catches up.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from anyio.to_thread import run_sync

from ricordo.agent.contract import Turn, TurnHandler, TurnResult
from ricordo.clock import Clock, SystemClock
from ricordo.concurrency import run_even_if_cancelled
from ricordo.errors import RicordoError
from ricordo.events import Emitter, current_trace_id
from ricordo.jobs import InboxConfig, Job, JobQueue
from ricordo.jobs.turn_activity import TurnActivity
from ricordo.messages import Message, Usage, get_mark
from ricordo.scope import Scope
from ricordo.workspace.transcript import Transcript

__all__ = ["EXTRACTION_JOB", "ExtractionMiddleware", "MaintenanceMiddleware", "TranscriptRecorder", "UsageTotals"]


class UsageTotals:
    """Turn middleware that adds up turns, usage and cost. `cost` is None once a reply had no price; `messages` are the
    messages of all turns.
    """

    def __init__(self) -> None:
        """Start with zero totals."""
        self.turns = 0
        self.usage = Usage()
        self.cost: Decimal | None = Decimal(0)
        self.messages: tuple[Message, ...] = ()

    async def __call__(self, turn: Turn, handler: TurnHandler) -> TurnResult:
        """Run the turn and count it; a failed turn counts too."""
        self.turns += 1
        self.messages += turn.messages
        result = await handler(turn)
        self.messages += tuple(message for message in result.messages if message not in turn.messages)
        self.usage += result.usage
        self.cost = None if self.cost is None or result.cost is None else self.cost + result.cost
        return result


class MaintenanceMiddleware:
    """Turn middleware that calls `wake` after each turn, even a failed or cancelled one; put it outside the flush."""

    def __init__(self, wake: Callable[[], None], turns: TurnActivity | None = None) -> None:
        """Call `wake`, which returns at once and raises nothing, and count each turn in `turns`."""
        self._wake = wake
        self._turns = turns or TurnActivity()

    async def __call__(self, turn: Turn, handler: TurnHandler) -> TurnResult:
        """Run the turn."""
        try:
            with self._turns.turn(turn.session):
                return await handler(turn)
        finally:
            self._wake()


EXTRACTION_JOB = "flush"
"""The kind of extraction jobs."""


class ExtractionMiddleware:
    """Turn middleware that enqueues a durable job at the end of each turn, also if it failed or was cancelled.

    The job waits for a pause in the session; messages that leave the window are extracted at once. An inbox that can't
    be written to ends no turn: it is reported as a failed `extract`, and the next flush catches up from the session's
    cursor.
    """

    def __init__(
        self,
        queue: JobQueue,
        *,
        config: InboxConfig | None = None,
        clock: Clock | None = None,
        signals: Callable[[Sequence[Message]], frozenset[str]] | None = None,
        on_enqueue: Callable[[Job], None] | None = None,
        emitter: Emitter | None = None,
    ) -> None:
        """Put jobs into `queue`, with the scope's user and the result of `signals` for a turn's messages.

        `config` says how long a job waits for more messages. `on_enqueue` is called with each job that waits.
        """
        self._queue = queue
        self._config = config or InboxConfig()
        self._clock = clock or SystemClock()
        self._signals = signals
        self._on_enqueue = on_enqueue or (lambda _: None)
        self._emitter = emitter or Emitter(SystemClock())

    async def __call__(self, turn: Turn, handler: TurnHandler) -> TurnResult:
        """Run the turn and enqueue the extraction of its messages."""
        try:
            return await handler(turn)
        finally:
            after, deadline = self._config.due_times(self._clock.now())
            job = self._build_job(turn.scope, turn.agent, turn.session)
            await self._enqueue_job(turn.scope, replace(job, not_before=after, deadline=deadline), turn.messages)

    async def before_drop(self, scope: Scope, agent: str, session: str, dropped: Sequence[Message]) -> None:
        """Enqueue the extraction of messages that leave the window; summaries and other generated messages are skipped.

        With all arguments except `dropped` bound by `functools.partial`, this is the hook of a compaction in that
        session.
        """
        ids = [message.id for message in dropped if message.id and get_mark(message) in {None, "cut"}]
        if ids:
            await self.enqueue(scope, agent, session, first=ids[0], last=ids[-1])

    async def enqueue(
        self, scope: Scope, agent: str, session: str, *, first: str | None = None, last: str | None = None
    ) -> None:
        """Durably enqueue one job for the messages from `first` to `last`, due at once.

        A cancellation waits until the job is stored.
        """
        await self._enqueue_job(scope, replace(self._build_job(scope, agent, session), first_id=first, last_id=last))

    @staticmethod
    def _build_job(scope: Scope, agent: str, session: str) -> Job:
        return Job(kind=EXTRACTION_JOB, agent=agent, session=session, user=scope.user or "", trace=current_trace_id())

    async def _enqueue_job(self, scope: Scope, job: Job, messages: Sequence[Message] = ()) -> None:
        try:
            await run_even_if_cancelled(partial(self._put_job, job, messages))
        except RicordoError as error:
            self._emitter.report_failure("extract", scope, error, "the inbox did not take the job")

    async def _put_job(self, job: Job, messages: Sequence[Message]) -> None:
        if messages and self._signals is not None:
            job = replace(job, signals=await run_sync(self._signals, messages))
        self._on_enqueue(await self._queue.put(job))


class TranscriptRecorder:
    """A `Recorder` that writes to one session's transcript."""

    def __init__(
        self,
        transcript: Transcript,
        *,
        scope: Scope | None = None,
        clock: Clock | None = None,
        emitter: Emitter | None = None,
    ) -> None:
        """Append to `transcript`; a message without a time gets the clock's. Events carry `scope`."""
        self._transcript = transcript
        self._scope = scope
        self._clock = clock or SystemClock()
        self._emitter = emitter or Emitter(self._clock)

    async def __call__(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return `messages` as stored: without secrets, with ids and times. Raises `StorageError`."""
        with self._emitter.stage("record", self._scope) as progress:
            now = self._clock.now()
            timed = [message if message.time else replace(message, time=now) for message in messages]
            recorded = await self._transcript.append(timed)
            progress.counts["messages"] = len(recorded.added)
            return recorded.messages
