"""Shown: the results of background tasks that a tool showed, which count as told with the message that holds them.

A tool's result is durable only when its message is recorded. What it showed is told by that message, as what a reminder
shows is told by the reply to it, so a process that is killed between the two tells it again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ricordo.messages import Message, mark_of, telling
from ricordo.middleware import Record
from ricordo.state import KeepsStanding, Standing

__all__ = ["Shown"]


class Shown:
    """What stands in a session, for tools that add to what was told and change nothing else of it."""

    def __init__(self, keeper: KeepsStanding) -> None:
        """Begin with what `keeper` holds."""
        self._keeper = keeper
        self._ids: tuple[str, ...] = ()

    @property
    def standing(self) -> Standing:
        """What stands, with what was shown and is not recorded yet."""
        standing = self._keeper.standing
        new = tuple(each for each in self._ids if each not in standing.delivered)
        return replace(standing, delivered=(*standing.delivered, *new)) if new else standing

    async def stand(self, change: Callable[[Standing], Standing]) -> Standing:
        """Take what `change` adds to what was told, until the next results are recorded."""
        known = self.standing.delivered
        self._ids += tuple(each for each in change(self.standing).delivered if each not in known)
        return self.standing

    def recording(self, record: Record) -> Record:
        """Return `record`, which names on the message of results what they told.

        What belongs to no result that is recorded is not told: the next reminder tells it.
        """

        async def recorded(messages: Sequence[Message]) -> tuple[Message, ...]:
            if not any(message.tool_results for message in messages):
                return await record(messages)
            ids, self._ids = self._ids, ()
            return await record([telling(each, ids) if _holds_results(each) else each for each in messages])

        return recorded


def _holds_results(message: Message) -> bool:
    return bool(message.tool_results) and mark_of(message) is None
