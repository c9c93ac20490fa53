"""Tasks as an agent sees them: begun, looked at and stopped by tools, and each result told once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import anyio
import pytest

from desks import CONTEXT
from hand_clock import HandClock
from hand_tasks import HandTasks, hand_tasks
from held_standing import HeldStanding
from ricordo.agent import Tool, get_effect
from ricordo.agent.tools.tasks import DELIVERY_NOTE, SessionTasks, SubAgentWorker, short_id, spawn_tool, task_tools
from ricordo.clock import MonotonicIds
from ricordo.errors import InvalidSetting, ToolFailed
from ricordo.events import Emitter
from ricordo.jobs import MemoryTaskStore, ReportProgress, Task, TaskProgress, TaskRunner, TaskState
from ricordo.messages import JsonValue
from ricordo.workspace import PlanState, WorkState

pytestmark = pytest.mark.anyio


class Reader:
    """A sub-agent that ends when it is told to, if it has an event to wait for."""

    type: Literal["local_agent", "remote_agent"] = "local_agent"

    def __init__(self, name: str = "reader", *, waits_for: anyio.Event | None = None, fails: bool = False) -> None:
        self.name = name
        self.description = f"reads files,\nas {name}"
        self.seconds: float | None = 60.0
        self.prompts: list[str] = []
        self._waits_for = waits_for
        self._fails = fails

    async def __call__(self, prompt: str, report: ReportProgress) -> str:
        self.prompts.append(prompt)
        report(TaskProgress(done=1, total=3, text="opening\nfiles"))
        if self._waits_for:
            await self._waits_for.wait()
        if self._fails:
            raise RuntimeError("no such folder")
        return f"{self.name} read: {prompt}"


async def used(tools: Mapping[str, Tool], name: str, **arguments: JsonValue) -> str:
    try:
        return str(await tools[name](arguments, CONTEXT))
    except ToolFailed as error:
        return f"failed: {error}"


def made(
    tasks: SessionTasks, *workers: Reader, keeper: HeldStanding | None = None, clock: HandClock | None = None
) -> dict[str, Tool]:
    """Return all the tools by their names."""
    given: dict[str, SubAgentWorker] = {worker.name: worker for worker in workers or (Reader(),)}
    tools = (
        *task_tools(tasks, state_holder=keeper, clock=clock or HandClock()),
        spawn_tool(tasks, given, state_holder=keeper),
    )
    return {tool.spec.name: tool for tool in tools}


def record(tasks: HandTasks, number: int, *, state: TaskState = "completed", result: str = "") -> Task:
    """Put a task among the records that nothing runs for."""
    now = HandClock().now()
    task = Task(
        id=f"{number:026}", type="local_bash", title=f"command\n{number}", state=state, created_at=now,
        last_seen_at=now, result=result,
    )  # fmt: skip
    tasks.records[task.id] = task
    return task


@pytest.mark.req("AS-STATE-05")
async def test_a_sub_agent_works_in_the_background_and_its_result_is_left_for_the_reminder() -> None:
    keeper, reader = HeldStanding(), Reader(waits_for=anyio.Event())
    async with hand_tasks() as tasks:
        tools = made(tasks, reader, keeper=keeper)
        said = await used(tools, "spawn", prompt="Read\nall of it.", agent="reader")
        [task] = await tasks.tasks()
        assert said == f"reader works on it as task {task.id[-8:]}. {DELIVERY_NOTE}"
        assert "as a reminder" in said
        assert (task.type, task.title, task.worker, tasks.seconds) == ("local_agent", "Read", "reader", [60.0])
        assert reader._waits_for is not None
        reader._waits_for.set()
        await tasks.wait(task.id)
        assert (await tasks.get(task.id)).result == "reader read: Read\nall of it."
    assert keeper.work_state.delivered_results == ()


@pytest.mark.req("AS-STATE-05")
async def test_a_result_that_was_waited_for_is_told_at_once_and_never_again() -> None:
    keeper = HeldStanding(WorkState(delivered_results=("before",)))
    async with hand_tasks() as tasks:
        tools = made(tasks, keeper=keeper)
        assert await used(tools, "spawn", prompt="Read.", title="All files", wait=True) == "reader read: Read."
        [task] = await tasks.tasks()
        assert task.title == "All files"
        assert keeper.work_state.delivered_results == ("before", task.id)
        assert "reader read: Read." in await used(tools, "task_output", task_id=task.id)
        assert keeper.work_state.delivered_results == ("before", task.id)


@pytest.mark.req("AS-STATE-05")
async def test_a_failure_that_was_waited_for_is_told_at_once_and_never_again() -> None:
    keeper = HeldStanding()
    async with hand_tasks() as tasks:
        tools = made(tasks, Reader(fails=True), keeper=keeper)
        said = await used(tools, "spawn", prompt="Read.", wait=True)
        [task] = await tasks.tasks()
        assert said == f"failed: reader did not do it: task {short_id(task)} is failed: no such folder"
        assert keeper.work_state.delivered_results == (task.id,)


async def test_who_stops_waiting_for_a_sub_agent_stops_it() -> None:
    reader = Reader(waits_for=anyio.Event())
    async with hand_tasks() as tasks:
        tools = made(tasks, reader)
        async with anyio.create_task_group() as turn:
            turn.start_soon(lambda: used(tools, "spawn", prompt="Read.", wait=True))
            await anyio.wait_all_tasks_blocked()
            assert reader.prompts == ["Read."]
            turn.cancel_scope.cancel()
        [task] = await tasks.tasks()
        assert task.state == "cancelled"


async def test_a_sub_agent_is_named_where_there_are_several_and_all_are_described() -> None:
    async with hand_tasks() as tasks:
        reader, writer = Reader(), Reader("writer")
        tools = made(tasks, reader, writer)
        listed = "- reader: reads files, as reader\n- writer: reads files, as writer"
        assert tools["spawn"].spec.description.endswith(listed)
        assert "result" in tools["spawn"].spec.description
        assert await used(tools, "spawn", prompt="x") == f"failed: Say which of the sub-agents is to do it:\n{listed}"
        unknown = await used(tools, "spawn", prompt="x", agent="painter")
        assert unknown == f"failed: There is no sub-agent painter. There are:\n{listed}"
        assert "needs a prompt" in await used(tools, "spawn", prompt=" \n", agent="reader")
        assert await tasks.tasks() == ()
        assert await used(tools, "spawn", prompt="x", agent="writer", wait=True) == "writer read: x"
        with pytest.raises(InvalidSetting, match="at least one"):
            spawn_tool(tasks, {})


@pytest.mark.req("HE-C3-task")
async def test_the_tasks_of_a_session_are_listed_with_how_far_they_are_and_their_last_sign_of_life() -> None:
    clock = HandClock()
    async with hand_tasks(clock) as tasks:
        tools = made(tasks, Reader(waits_for=anyio.Event()), clock=clock)
        assert await used(tools, "task_list") == "There are no tasks."
        record(tasks, 1)
        await used(tools, "spawn", prompt="Read\nall.")
        await anyio.wait_all_tasks_blocked()
        *_, task = await tasks.tasks()
        clock.turn(minutes=7, seconds=5)
        assert (await used(tools, "task_list")).splitlines() == [
            "00000001 local_bash: command 1 (completed)",
            f"{short_id(task)} local_agent reader: Read (running, 1 of 3 opening files, last sign of life 7 min ago)",
        ]
        tasks.records[task.id] = replace(tasks.records[task.id], cancelling=True)
        assert "(running, asked to stop, 1 of 3" in await used(tools, "task_list")


async def test_of_very_many_tasks_the_newest_are_listed() -> None:
    async with hand_tasks() as tasks:
        for number in range(53):
            record(tasks, number)
        lines = (await used(made(tasks), "task_list")).splitlines()
        assert lines[0] == "[3 older ones are left out]"
        assert len(lines) == 51
        assert lines[-1].startswith("00000052")


@pytest.mark.req("AS-STATE-05")
async def test_a_result_is_read_page_by_page_to_its_end_and_counts_as_told() -> None:
    keeper = HeldStanding()
    whole = "".join(f"line {number} {'x' * 90}\n" for number in range(500)) + "y" * 30_000
    async with hand_tasks() as tasks:
        task = record(tasks, 7, result=whole)
        tools = made(tasks, keeper=keeper)
        read, place = "", {"offset": 1, "character": 0}
        for _ in range(20):
            head, _, text = (await used(tools, "task_output", task_id=short_id(task), **place)).partition("\n")
            read += text
            if "Read on with " not in head:
                break
            where = head.partition("Read on with ")[2].rstrip("]").split(", ")
            place = {"character": 0} | {key: int(value) for key, value in (each.split("=") for each in where)}
        assert read == whole
        assert head == "[task 00000007, command 7: completed, lines 501 to 501 of 501]"
        assert "nothing at line 900" in await used(tools, "task_output", task_id=task.id, offset=900)
        assert "count from 1" in await used(tools, "task_output", task_id=task.id, offset=0)
    assert keeper.work_state.delivered_results == (task.id,)
    assert keeper.kept == 1


@pytest.mark.req("AS-STATE-05")
@pytest.mark.parametrize(
    ("state", "shown", "counts"),
    [
        ("pending", "pending, 2 of 9 reading", False),
        ("running", "running, 2 of 9 reading", False),
        ("orphaned", "orphaned, 2 of 9 reading, no reason", False),
        ("failed", "failed, 2 of 9 reading, no reason", True),
        ("cancelled", "cancelled, 2 of 9 reading, no reason", True),
        ("completed", "completed, with an empty result", True),
    ],
)
async def test_what_is_told_of_a_task_that_can_still_end_is_not_its_result(
    state: TaskState, shown: str, counts: bool
) -> None:
    keeper = HeldStanding()
    async with hand_tasks() as tasks:
        task = record(tasks, 7, state=state)
        error = "no reason" if state in {"orphaned", "failed", "cancelled"} else ""
        progress = TaskProgress(done=2, total=9, text="reading")
        tasks.records[task.id] = replace(task, progress=progress, error=error)
        told = await used(made(tasks, keeper=keeper), "task_output", task_id=task.id)
    assert told == f"[task 00000007, command 7: {shown}]"
    assert (task.id in keeper.work_state.delivered_results) == counts


async def test_a_result_is_told_twice_rather_than_never_when_the_telling_can_not_be_kept() -> None:
    keeper = HeldStanding()
    keeper.is_full = True
    async with hand_tasks() as tasks:
        tools = made(tasks, keeper=keeper)
        assert await used(tools, "spawn", prompt="Read.", wait=True) == "reader read: Read."
        [task] = await tasks.tasks()
        assert "reader read: Read." in await used(tools, "task_output", task_id=task.id)
    assert keeper.work_state.delivered_results == ()


@pytest.mark.req("HE-C3-task")
async def test_a_task_is_cancelled_once_and_what_has_ended_stays() -> None:
    keeper = HeldStanding()
    async with hand_tasks() as tasks:
        tools = made(tasks, Reader(waits_for=anyio.Event()), keeper=keeper)
        await used(tools, "spawn", prompt="Read.")
        [task] = await tasks.tasks()
        key = short_id(task)
        assert await used(tools, "task_cancel", task_id=f" `{key}` ") == f"Task {key} was cancelled."
        assert keeper.work_state.delivered_results == (task.id,)
        assert await used(tools, "task_cancel", task_id=key) == f"Task {key} had ended already: it is cancelled."
        elsewhere = record(tasks, 8, state="running")
        assert await used(tools, "task_cancel", task_id=elsewhere.id) == "Task 00000008 was asked to stop."
        assert elsewhere.id not in keeper.work_state.delivered_results, "it may still end with a result"


async def test_an_id_that_names_no_task_is_answered_with_where_to_find_one() -> None:
    async with hand_tasks() as tasks:
        tools = made(tasks)
        for name in ("task_output", "task_cancel"):
            assert await used(tools, name, task_id="none") == "failed: No task has this id: task_list shows them."


async def test_the_tools_work_over_the_runner_of_the_house() -> None:
    keeper, clock = HeldStanding(), HandClock()
    runner = TaskRunner(
        MemoryTaskStore(),
        agent="main",
        session="s1",
        user="",
        clock=clock,
        ids=MonotonicIds(clock),
        emitter=Emitter(clock),
    )
    async with runner.lifespan():
        tools = made(runner, Reader(waits_for=anyio.Event()), Reader("writer"), keeper=keeper, clock=clock)
        assert await used(tools, "spawn", prompt="Write.", agent="writer", wait=True) == "writer read: Write."
        await used(tools, "spawn", prompt="Read.", agent="reader")
        written, read = await runner.tasks()
        assert "(running, " in (await used(tools, "task_list")).splitlines()[1]
        assert "was cancelled" in await used(tools, "task_cancel", task_id=short_id(read))
        told = await used(tools, "task_output", task_id=short_id(written))
        assert told.endswith("completed, lines 1 to 1 of 1]\nwriter read: Write.")
    assert keeper.work_state.delivered_results == (written.id, read.id)


@pytest.mark.req("AS-PLAN-01")
async def test_an_agent_that_runs_elsewhere_is_not_asked_while_the_agent_only_plans() -> None:
    keeper = HeldStanding(WorkState(plan=PlanState(active=True)))
    there, here = Reader("there"), Reader("here")
    there.type = "remote_agent"
    async with hand_tasks() as tasks:
        tools = made(tasks, there, here, keeper=keeper)
        told = await used(tools, "spawn", agent="there", prompt="Deploy.")
        assert told.startswith("failed: there was not asked: plan mode is on, and a sub-agent that runs elsewhere")
        assert await tasks.tasks() == ()
        assert await used(tools, "spawn", agent="here", prompt="Read.", wait=True) == "here read: Read."
        keeper.work_state = WorkState(
            plan=PlanState(path="plans/a.md"), delivered_results=keeper.work_state.delivered_results
        )
        assert await used(tools, "spawn", agent="there", prompt="Go.", wait=True) == "there read: Go."


@pytest.mark.req("AS-PLAN-01")
async def test_tasks_may_be_begun_and_looked_at_while_the_agent_only_plans() -> None:
    async with hand_tasks() as tasks:
        assert {name: get_effect(tool) for name, tool in made(tasks).items()} == dict.fromkeys(
            ("task_list", "task_output", "task_cancel", "spawn"), "organizes"
        )
