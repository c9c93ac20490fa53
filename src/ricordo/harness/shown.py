"""Shown: the results of background tasks that a tool showed, which count as told with the message that holds them.

A tool's result is durable only when its message is recorded. What it showed is told by that message, as what a reminder
shows is told by the reply to it, so a process that is killed between the two tells it again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ricordo.messages import Message, get_mark, with_delivered_results
from ricordo.middleware import Recorder
from ricordo.state import WorkStateHolder, WorkState

__all__ = ["TaskDelivery"]


class TaskDelivery:
    """What stands in a session, for tools that add to what was told and change nothing else of it."""

    def __init__(self, keeper: WorkStateHolder) -> None:
        """Begin with what `keeper` holds."""
        self._session_state = keeper
        self._shown_ids: tuple[str, ...] = ()

    @property
    def work_state(self) -> WorkState:
        """What stands, with what was shown and is not recorded yet."""
        standing = self._session_state.work_state
        new = tuple(each for each in self._shown_ids if each not in standing.delivered)
        return replace(standing, delivered=(*standing.delivered, *new)) if new else standing

    async def update_work_state(self, change: Callable[[WorkState], WorkState]) -> WorkState:
        """Take what `change` adds to what was told, until the next results are recorded."""
        known = self.work_state.delivered
        self._shown_ids += tuple(each for each in change(self.work_state).delivered if each not in known)
        return self.work_state

    def wrap_recorder(self, record: Recorder) -> Recorder:
        """Return `record`, which names on the message of results what they told.

        What belongs to no result that is recorded is not told: the next reminder tells it.
        """

        async def record_delivery(messages: Sequence[Message]) -> tuple[Message, ...]:
            if not any(message.tool_results for message in messages):
                return await record(messages)
            ids, self._shown_ids = self._shown_ids, ()
            return await record(
                [with_delivered_results(each, ids) if _has_results(each) else each for each in messages]
            )

        return record_delivery


def _has_results(message: Message) -> bool:
    return bool(message.tool_results) and get_mark(message) is None
