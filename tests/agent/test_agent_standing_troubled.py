"""Full and read-only disks and broken files under what stands beside a window: it is told, and nothing is lost."""

import errno
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from agents_at_work import SCOPE, settings
from hand_clock import HandClock
from hand_made_roots import begun
from named_disks import NamedDisk
from places import place_of
from ricordo import BuiltinTools, HarnessAgent, MemoryConfig
from ricordo.errors import StorageError
from ricordo.guard import parse_fence
from ricordo.jobs import ReportProgress, Task, decode_tasks
from ricordo.messages import JsonValue, get_mark
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import PlanState, state_path, tasks_path

pytestmark = pytest.mark.anyio

STEPS = ("make {}", "write {}", "half {}", "sync {}", "rename {}", "rename {} done")
FAULTS = [*((errno.ENOSPC, step) for step in STEPS), (errno.EROFS, "make {}"), (errno.EIO, "rename {} done")]
OLD = [("Look", "in_progress"), ("Ask", "pending")]
NEW = [("Look", "completed"), ("Ask", "in_progress")]
RESULT = "There are 12 tables."
UNREAD = "The record of the background tasks can't be read now."


def wrote(todos: list[tuple[str, str]]) -> Call:
    listed: list[JsonValue] = [{"content": content, "status": status} for content, status in todos]
    return Call("todo_write", {"todos": listed})


@dataclass
class Bench:
    """An agent on a disk that refuses the step `refusing`; its model makes the calls in `calls`."""

    root: Path
    refusing: str = ""
    code: int = errno.ENOSPC
    calls: list[Call] = field(default_factory=list)
    requests: list[RecordedRequest] = field(default_factory=list)
    may_end: anyio.Event = field(default_factory=anyio.Event)
    clock: HandClock = field(default_factory=HandClock)
    begun: int = 0

    def agent(self) -> HarnessAgent:
        return HarnessAgent(
            ScriptedModel(self._answer),
            memory=MemoryConfig(root=self.root, hooks=False),
            scope=SCOPE,
            session="s",
            builtin_tools=BuiltinTools(planning=True),
            settings=settings(self.root),
            disk=NamedDisk(self._reached),
            clock=self.clock,
        )

    async def work(self, report: ReportProgress) -> str:
        del report
        self.begun += 1
        await self.may_end.wait()
        return RESULT

    @property
    def reminded(self) -> list[str]:
        """What the last request was reminded of, item by item."""
        last = self.requests[-1].messages[-1]
        return [*(parse_fence(last.text) or ())] if get_mark(last) == "reminder" else []

    @property
    def results(self) -> list[tuple[str, bool]]:
        """What the last request told of calls: text, and whether it is an error."""
        parts = [result for message in self.requests[-1].messages for result in message.tool_results]
        return [(result.text, result.is_error) for result in parts]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What the record of the tasks holds."""
        return decode_tasks((place_of(self.root) / tasks_path("main", "s")).read_bytes()).tasks

    def _reached(self, step: str) -> None:
        if step == self.refusing:
            raise OSError(self.code, os.strerror(self.code))

    def _answer(self, request: RecordedRequest) -> ScriptItem:
        self.requests.append(request)
        return self.calls.pop(0) if self.calls else Say("Done.")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / ".ricordo")


def listed(agent: HarnessAgent) -> list[tuple[str, str]]:
    return [(todo.content, todo.status) for todo in agent.todos]


@pytest.mark.req("AS-STATE-06", "AS-STATE-07")
@pytest.mark.parametrize(("code", "step"), FAULTS)
async def test_what_can_not_be_kept_of_what_stands_is_told_and_has_changed_nothing(
    bench: Bench, code: int, step: str
) -> None:
    bench.code = code
    async with bench.agent() as agent:
        bench.calls = [wrote(OLD)]
        await agent.send("Begin.")
        await agent.permissions.deny("shell(git push*)")
        assert agent.plan is not None
        before = agent.state.work_state
        bench.refusing, bench.calls = step.format("state"), [wrote(NEW), Call("plan_enter", {"title": "Move"})]
        assert str(await agent.send("Go on.")) == "Done."
        assert [is_error for _, is_error in bench.results[-2:]] == [True, True]
        assert "not changed" in bench.results[-2][0]
        for change in (
            agent.permissions.allow("shell"), agent.permissions.remove("shell(git push*)"),
            agent.plan.enter("Move", by="user"),
        ):  # fmt: skip
            with pytest.raises(StorageError):
                await change
        assert agent.state.work_state == before
        assert "0 of 2 done:\n[>] Look\n[ ] Ask" in bench.reminded
        bench.refusing = ""
        await agent.send("And now?")
        async with bench.agent() as another:
            assert another.state.work_state == before, "who comes next finds nothing of it"
        bench.calls = [wrote(NEW)]
        await agent.send("Again.")
    async with bench.agent() as agent:
        assert listed(agent) == NEW
        assert agent.state.work_state.permissions == before.permissions
        assert agent.state.work_state.plan == PlanState()


@pytest.mark.req("AS-STATE-04")
@pytest.mark.parametrize("step", STEPS)
async def test_a_task_that_can_not_be_recorded_does_not_begin(bench: Bench, step: str) -> None:
    async with bench.agent() as agent:
        bench.refusing = step.format("tasks")
        with pytest.raises(StorageError):
            await agent.tasks.start("local_bash", "count", bench.work)
        assert agent.tasks.running_count == 0
        bench.refusing = ""
        assert str(await agent.send("And now?")) == "Done."
        assert not any("running" in item for item in bench.reminded)
        assert [task for task in await agent.tasks.all() if not task.has_ended] == []
        await agent.tasks.start("local_bash", "count again", bench.work)
        bench.may_end.set()
        await agent.tasks.wait()
        assert [task.state for task in await agent.tasks.all()][:1] == ["completed"]
    assert bench.begun == 1


@pytest.mark.req("AS-STATE-04", "AS-STATE-05", "AS-TASK-01")
@pytest.mark.parametrize(("code", "step"), FAULTS)
async def test_the_end_of_a_task_that_can_not_be_written_is_told_and_is_written_later(
    bench: Bench, code: int, step: str
) -> None:
    bench.code = code
    async with bench.agent() as agent:
        started = await agent.tasks.start("local_bash", "count", bench.work)
        bench.refusing = step.format("tasks")
        bench.may_end.set()
        await agent.tasks.wait(started.id)
        assert [(task.state, task.result) for task in await agent.tasks.all()] == [("completed", RESULT)]
        if not step.endswith("done"):
            assert [task.state for task in bench.tasks] == ["running"]
        assert str(await agent.send("Well?")) == "Done."
        assert bench.reminded == [RESULT]
        await agent.send("And now?")
        assert bench.reminded == []
        bench.refusing = ""
    assert [(task.state, task.result) for task in bench.tasks] == [("completed", RESULT)]
    async with bench.agent() as agent:
        await agent.send("Still there?")
        assert bench.reminded == []


@pytest.mark.req("AS-STATE-05", "AS-TASK-01")
async def test_an_end_that_was_told_and_never_written_is_not_told_as_lost(bench: Bench, tmp_path: Path) -> None:
    async with bench.agent() as agent:
        await agent.tasks.start("local_bash", "count", bench.work)
        bench.refusing = "write tasks"
        bench.may_end.set()
        await agent.tasks.wait()
        await agent.send("Well?")
        assert bench.reminded == [RESULT]
        # as it is left by a process that is killed now
        await run_sync(shutil.copytree, bench.root, tmp_path / "after" / ".ricordo")
    bench.root, bench.refusing = tmp_path / "after" / ".ricordo", ""
    await run_sync(shutil.copytree, tmp_path / "data" / "trusted", tmp_path / "after" / "data" / "trusted")
    bench.clock.turn(minutes=11)
    async with bench.agent() as agent:
        assert [task.state for task in await agent.tasks.all()] == ["orphaned"]
        await agent.send("Still there?")
        assert bench.reminded == []


@pytest.mark.req("AS-TASK-01")
@pytest.mark.parametrize("damage", [b"", b"{", b'{"v": 1, "tasks": [{"id": "a"}]}'], ids=["empty", "torn", "wrong"])
async def test_a_record_of_tasks_that_is_broken_is_told_and_takes_nothing_else_down(
    bench: Bench, damage: bytes
) -> None:
    file = place_of(bench.root) / tasks_path("main", "s")
    async with bench.agent() as agent:
        bench.calls = [wrote(OLD), Call("plan_enter", {"title": "Move"})]
        await agent.send("Begin.")
        await agent.tasks.start("local_bash", "count", bench.work)
        file.write_bytes(damage)
        bench.calls = [Call("task_list", {})]
        assert str(await agent.send("How far is it?")) == "Done."
        assert bench.reminded[0].startswith("You are planning.")
        assert bench.reminded[-2:] == ["0 of 2 done:\n[>] Look\n[ ] Ask", UNREAD]
        assert file.read_bytes() == damage, "who reads leaves it as it is"
        bench.may_end.set()
        await agent.tasks.wait()
        assert file.with_name("s.json.broken-1").read_bytes() == damage
        assert [(task.state, task.result) for task in bench.tasks] == [("completed", RESULT)]
        await agent.send("And now?")
        assert bench.reminded[-1] == RESULT
    async with bench.agent() as agent:
        await agent.send("Still there?")
        assert RESULT not in bench.reminded
        assert listed(agent) == OLD


@pytest.mark.req("AS-TASK-01")
async def test_a_record_of_tasks_that_is_broken_when_a_session_opens_keeps_nobody_from_working(bench: Bench) -> None:
    file = place_of(bench.root) / tasks_path("main", "s")
    async with bench.agent() as agent:
        bench.calls = [wrote(OLD)]
        await agent.send("Begin.")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"{")
    async with bench.agent() as agent:
        await agent.send("Still there?")
        assert bench.reminded == ["0 of 2 done:\n[>] Look\n[ ] Ask", UNREAD]
    assert file.read_bytes() == b"{", "nothing is written where there is nothing to write"
    assert [path.name for path in file.parent.glob("*broken*")] == []
    async with bench.agent() as agent:
        await agent.tasks.start("local_bash", "count", bench.work)
        assert [task.title for task in await agent.tasks.all()] == ["count"]
        assert file.with_name("s.json.broken-1").read_bytes() == b"{"


@pytest.mark.req("AS-STATE-04", "AS-TASK-01")
async def test_in_a_root_that_can_only_be_read_tasks_are_shown_and_new_ones_begin_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.may_end.set()
    async with bench.agent() as agent:
        done = await agent.tasks.start("local_bash", "count", bench.work)
        await agent.tasks.wait()
        await agent.send("Well?")
        await agent.tasks.start("dream", "dream", bench.work)
        await agent.tasks.wait()
    recorded = (place_of(bench.root) / tasks_path("main", "s")).read_bytes()
    monkeypatch.setattr("ricordo.agent.session_factory._is_writable", lambda root: False)
    bench.clock.turn(1)
    async with bench.agent() as agent:
        assert [task.title for task in await agent.tasks.all()] == ["dream", "count"]
        assert (await agent.tasks.get(done.id)).result == RESULT
        await agent.tasks.start("local_bash", "count again", bench.work)
        await agent.tasks.wait()
        await agent.send("And now?")
        assert bench.reminded == [RESULT, RESULT], "what was told before is not told again"
        assert [task.title for task in await agent.tasks.all()] == ["count again", "dream", "count"]
    assert (place_of(bench.root) / tasks_path("main", "s")).read_bytes() == recorded


@pytest.mark.req("AS-TASK-01", "FC-DOCTOR")
async def test_a_folder_in_the_place_of_the_tasks_is_told_as_what_can_not_be_read(bench: Bench) -> None:
    (place_of(begun(bench.root, bench.root.parent / "data")) / tasks_path("main", "s")).mkdir(parents=True)
    async with bench.agent() as agent:
        with pytest.raises(StorageError, match="is no file"):
            await agent.tasks.all()
        with pytest.raises(StorageError, match="is no file"):
            await agent.tasks.start("local_bash", "count", bench.work)
        bench.calls = [wrote(OLD)]
        await agent.send("Begin.")
        assert bench.reminded[-1] == UNREAD
        assert agent.memory is not None
        checks = [check for check in await agent.memory.doctor() if check.name == "tasks"]
    assert [(check.count, check.detail.endswith(tasks_path("main", "s"))) for check in checks] == [(1, True)]


@pytest.mark.req("AS-BUG-29")
async def test_a_state_that_somebody_breaks_is_kept_aside_and_what_stands_is_written_anew(bench: Bench) -> None:
    file = place_of(bench.root) / state_path("main", "s")
    async with bench.agent() as agent:
        bench.calls = [wrote(OLD)]
        await agent.send("Begin.")
        await agent.permissions.deny("shell(git push*)")
        file.write_bytes(b"{")
        bench.calls = [wrote(NEW)]
        assert str(await agent.send("Go on.")) == "Done."
        stands = agent.state.work_state
        assert file.with_name("s.json.broken-1").read_bytes() == b"{"
        assert len(json.loads(file.read_text())["permissions"]) == 1
    async with bench.agent() as agent:
        assert listed(agent) == NEW
        assert agent.state.work_state == stands
