"""Learning in the same breath as summing up: messages are taken before the request, and the lessons accepted after it.

Invariant: what was taken is accepted or released, never both and never neither, whatever happens in between.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ricordo.compaction.cancelled import unwrapped
from ricordo.compaction.contract import Handover, Summary, Taken
from ricordo.errors import RicordoError
from ricordo.messages import Message
from ricordo.uncut import finish

__all__ = ["Learning", "learning"]


@dataclass
class Learning:
    """What was taken to be learned from, until it is settled; with nothing taken it does nothing."""

    notes: list[str]
    taken: Taken | None = None

    @property
    def pending(self) -> Collection[str]:
        """The ids of the messages to learn from; empty when there are none."""
        return self.taken.pending if self.taken else ()

    async def settle(self, summary: Summary) -> None:
        """Accept the lessons of `summary`; without any that can be used, leave the work to the workers."""
        if self.taken is None or summary.lessons is None:
            await self.release()
            return
        try:
            with unwrapped():
                await self.taken.accept(summary.lessons)
        except RicordoError as error:
            self.notes.append(f"the lessons were not kept: {type(error).__name__}")
            await self.release()
        else:
            self.taken = None

    async def release(self) -> None:
        """Leave the work to the workers, once; a cancellation waits for it."""
        taken, self.taken = self.taken, None
        if taken is None:
            return
        try:
            await finish(taken.release)
        except RicordoError as error:
            self.notes.append(f"the messages to learn from were not given back: {type(error).__name__}")


@asynccontextmanager
async def learning(handover: Handover | None, said: Sequence[Message], notes: list[str]) -> AsyncIterator[Learning]:
    """Take `said`, as far as `handover` gives it; what is not settled at the end is released."""
    found = Learning(notes=notes)
    if handover is not None and said:
        try:
            with unwrapped():
                found.taken = await handover(said)
        except RicordoError as error:
            notes.append(f"the messages to learn from were not taken: {type(error).__name__}")
    try:
        yield found
    finally:
        await found.release()
