"""What a tool showed of a task counts as told with the message of its result, and with no other."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from held_standing import HeldStanding
from ricordo.agent.reminder import TaskDelivery
from ricordo.errors import StorageFull
from ricordo.messages import Message, Text, ToolResult, delivered_results, with_mark
from ricordo.workspace import Todo, WorkState

pytestmark = pytest.mark.anyio

RESULT = Message(role="tool", parts=(ToolResult(call_id="c1", name="spawn", parts=(Text(text="Done."),)),))
SAID = Message(role="user", parts=(Text(text="Go."),))


def telling(*ids: str) -> Callable[[WorkState], WorkState]:
    return lambda standing: replace(standing, delivered_results=(*standing.delivered_results, *ids), todos=())


class Log:
    """Records what it is given, unless it is full."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []
        self.is_full = False

    async def __call__(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        if self.is_full:
            raise StorageFull
        self.told += [delivered_results(message) for message in messages]
        return tuple(messages)


async def test_what_was_shown_is_named_once_with_the_next_results_and_changes_nothing_else() -> None:
    held = HeldStanding(WorkState(todos=(Todo(id="1", content="Go"),), delivered_results=("t1",)))
    shown, log = TaskDelivery(held), Log()
    record = shown.wrap_recorder(log)
    standing = await shown.update_work_state(telling("t2"))
    assert standing == shown.work_state == replace(held.work_state, delivered_results=("t1", "t2"))
    await shown.update_work_state(telling("t1", "t2", "t3"))
    await record([SAID])
    await record([RESULT])
    await record([RESULT])
    assert log.told == [(), ("t2", "t3"), ()]
    assert (held.kept, shown.work_state) == (0, held.work_state)


async def test_what_was_shown_in_no_result_that_is_recorded_is_not_told() -> None:
    held = HeldStanding()
    shown, log = TaskDelivery(held), Log()
    record = shown.wrap_recorder(log)
    await shown.update_work_state(telling("t1"))
    log.is_full = True
    with pytest.raises(StorageFull):
        await record([RESULT])
    log.is_full = False
    await shown.update_work_state(telling("t2"))
    await record([with_mark(RESULT, "notice")])
    await record([RESULT])
    assert log.told == [(), ()]
    assert shown.work_state == held.work_state
