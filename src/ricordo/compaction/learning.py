"""Learning in the same breath as summing up: messages are taken before the request, and the lessons accepted after it.

Invariant: what was taken is accepted or released, never both and never neither, whatever happens in between.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ricordo.compaction.cancelled import unwrap_cancellation
from ricordo.compaction.contract import ExtractionHandover, CompactionSummary, ExtractionLease
from ricordo.errors import RicordoError
from ricordo.messages import Message
from ricordo.uncut import run_even_if_cancelled

__all__ = ["PendingExtraction", "hand_over_messages"]


@dataclass
class PendingExtraction:
    """What was taken to be learned from, until it is settled; with nothing taken it does nothing."""

    notes: list[str]
    lease: ExtractionLease | None = None

    @property
    def pending_ids(self) -> Collection[str]:
        """The ids of the messages to learn from; empty when there are none."""
        return self.lease.pending_ids if self.lease else ()

    async def accept_lessons(self, summary: CompactionSummary) -> None:
        """Accept the lessons of `summary`; without any that can be used, leave the work to the workers."""
        if self.lease is None or summary.lessons is None:
            await self.release()
            return
        try:
            with unwrap_cancellation():
                await self.lease.accept(summary.lessons)
        except RicordoError as error:
            self.notes.append(f"the lessons were not kept: {type(error).__name__}")
            await self.release()
        else:
            self.lease = None

    async def release(self) -> None:
        """Leave the work to the workers, once; a cancellation waits for it."""
        taken, self.lease = self.lease, None
        if taken is None:
            return
        try:
            await run_even_if_cancelled(taken.release)
        except RicordoError as error:
            self.notes.append(f"the messages to learn from were not given back: {type(error).__name__}")


@asynccontextmanager
async def hand_over_messages(
    handover: ExtractionHandover | None, said: Sequence[Message], notes: list[str]
) -> AsyncIterator[PendingExtraction]:
    """Take `said`, as far as `handover` gives it; what is not settled at the end is released."""
    found = PendingExtraction(notes=notes)
    if handover is not None and said:
        try:
            with unwrap_cancellation():
                found.lease = await handover(said)
        except RicordoError as error:
            notes.append(f"the messages to learn from were not taken: {type(error).__name__}")
    try:
        yield found
    finally:
        await found.release()
