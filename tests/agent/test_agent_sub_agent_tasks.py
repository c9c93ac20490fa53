"""What sub-agents come to: kept beside the window, told to their parent once, and stopped when nobody wants it."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree, ignore_patterns

import anyio
import anyio.lowlevel
import pytest

from agents_at_work import SCOPE, said, settings, transcript
from named_disks import NamedDisk
from places import place_of
from ricordo import CompactionConfig, HarnessAgent, RemoteAgent, Scope
from ricordo.agent import Approval, tool
from ricordo.errors import ModelUnavailable
from ricordo.jobs import ReportProgress, TaskProgress
from ricordo.messages import delivered_results, get_mark
from ricordo.testing import Call, Calls, Fail, Hang, Hold, RecordedRequest, Say, ScriptedModel, ScriptItem
from spawning import LONG, Spawning, reminded, result_texts, said_in, spawn

pytestmark = pytest.mark.anyio

FOUND = "Found it: the tap drips."
COMPACTION = CompactionConfig(trigger_messages=1_000, keep_messages=2)
BY_RULES = CompactionConfig(trigger_messages=1_000, keep_messages=2, model="offline")

Happening = Callable[[HarnessAgent], Awaitable[None]]


@pytest.fixture
def bench(tmp_path: Path) -> Spawning:
    """Return an agent whose sub-agent answers when it is released."""
    worker = ScriptedModel([Hold(Say(FOUND))])
    return Spawning(tmp_path / "root", worker, {"Go.": spawn("What drips?")})


async def compacted(one: HarnessAgent) -> None:
    await one.record([said(f"Number {number}. {LONG}") for number in range(4)])
    reports = await one.compact()
    assert [report.status for report in reports if report.action == "compact"] == ["done"]
    assert get_mark(one.window[0]) == "summary"


async def ended(one: HarnessAgent, bench: Spawning) -> None:
    """Let the sub-agent come to its end."""
    await bench.worker.wait_for_held()
    bench.worker.release()
    await one.tasks.wait()


async def failed(one: HarnessAgent) -> None:
    with pytest.raises(ModelUnavailable):
        await one.send("Fail.")


async def broken_off(one: HarnessAgent) -> None:
    async with one.stream("Talk.") as events:
        async for _ in events:
            break


async def nothing(one: HarnessAgent) -> None:
    assert one.session == "s"


@pytest.mark.req("AS-STATE-05", "AS-BUG-hint-erased", "AS-STATE-08")
@pytest.mark.parametrize(
    ("compaction", "happens", "tried", "reopened"),
    [
        (COMPACTION, compacted, 0, False),
        (BY_RULES, compacted, 0, False),
        (COMPACTION, failed, 1, False),
        (COMPACTION, broken_off, 1, False),
        (COMPACTION, nothing, 0, True),
        (COMPACTION, compacted, 0, True),
    ],
    ids=["by a model", "by rules", "failed", "broken off", "reopened", "compacted and reopened"],
)
async def test_a_result_is_in_the_reminder_of_the_next_request_that_is_answered_and_in_no_other_and_in_no_message(
    bench: Spawning, compaction: CompactionConfig, happens: Happening, tried: int, reopened: bool
) -> None:
    bench.orders = {**bench.orders, "Fail.": Fail(503), "Talk.": Hold(Say("This is never said to its end."))}
    async with bench.agent(compaction=compaction) as one:
        await one.send("Go.")
        await ended(one, bench)
        await happens(one)
        asked = len(bench.asked)
        if not reopened:
            await one.send("And?")
    async with bench.agent(compaction=compaction) as one:
        if reopened:
            await one.send("And?")
        await compacted(one)
        await one.send("And then?")
        await one.send("And now?")
        assert FOUND not in str(one.window)
        (task,) = await one.tasks.all()
    assert bench.told(FOUND) == [*range(asked - tried, asked), asked]
    assert not any(FOUND in message.text for request in bench.asked for message in said_in(request))
    logged = await transcript(bench.root)
    assert FOUND not in str(logged)
    assert (task.type, task.worker, task.state, task.result) == ("local_agent", "researcher", "completed", FOUND)


@pytest.mark.req("AS-STATE-05")
async def test_a_result_that_comes_within_a_turn_is_told_with_its_next_request(bench: Spawning) -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await ended(one, bench)
        return "It ended."

    bench.orders = {"Go.": Calls(Call("spawn", {"prompt": "What drips?", "agent": "researcher"}), Call("wait"))}
    async with bench.agent(tools=[wait]) as one:
        await one.send("Go.")
        await one.send("And?")
    assert len(bench.asked) == 3
    assert bench.told(FOUND) == [1]


@pytest.mark.req("AS-STATE-05")
async def test_a_result_that_was_told_is_not_told_again_when_the_state_was_not_saved_after_the_reply(
    bench: Spawning,
) -> None:
    state = bench.path("state", "s.json")
    async with bench.agent() as one:
        await one.send("Go.")
        await ended(one, bench)
        before = state.read_bytes()
        await one.send("And?")
    state.write_bytes(before)
    async with bench.agent() as one:
        await one.send("And then?")
        assert one.state.work_state.delivered_results == tuple(task.id for task in await one.tasks.all())
    assert len(bench.told(FOUND)) == 1


@pytest.mark.req("AS-STATE-05")
@pytest.mark.parametrize("wait", [False, True], ids=["by a reminder", "by the call"])
async def test_wherever_a_process_is_killed_a_result_is_told_once(tmp_path: Path, wait: bool) -> None:
    left = dict[tuple[bytes, bytes], Path]()
    root = tmp_path / "root"
    bench = Spawning(root, ScriptedModel([Say(FOUND)]), {"Go.": spawn("What drips?", wait=wait)})
    files = [bench.path(*parts) for parts in (("tasks", "s.json"), ("sessions", "s.log.jsonl"), ("state", "s.json"))]

    def reached(step: str) -> None:
        if step in {"write transcript", "write transcript done", "rename state", "rename state done"}:
            tasks, log, state = (file.read_bytes() if file.exists() else b"" for file in files)
            if FOUND.encode() in tasks and (log, state) not in left:
                left[log, state] = tmp_path / f"left{len(left)}"
                copytree(root, left[log, state], ignore=ignore_patterns("*.db*"))

    async with bench.agent(disk=NamedDisk(reached)) as one:
        await one.send("Go.")
        await one.tasks.wait()
        await one.send("And?")
        (task,) = await one.tasks.all()
    seen = set[bool]()
    for (log, _), folder in left.items():
        later = Spawning(folder, bench.worker)
        known = FOUND.encode() in log or any(
            task.id in delivered_results(message) for message in await transcript(folder)
        )
        async with later.agent() as one:
            await one.send("And then?")
            await one.send("And now?")
        assert len(later.told(FOUND)) == (0 if known else 1)
        seen.add(known)
    assert seen == {False, True}


@pytest.mark.req("AS-STATE-04")
@pytest.mark.parametrize(
    ("compaction", "parent"), [(COMPACTION, "main"), (BY_RULES, "foreman")], ids=["by a model", "by rules"]
)
async def test_the_file_of_tasks_tells_of_each_and_no_compaction_changes_a_byte_of_it(
    tmp_path: Path, compaction: CompactionConfig, parent: str
) -> None:
    found = f"{FOUND} " * 100
    worker = ScriptedModel([Say(found), Hang()])
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn("What drips?"), "On.": spawn("And what else?")})
    tasks = bench.path("tasks", "s.json", agent=parent)
    async with bench.agent(compaction=compaction, scope=replace(SCOPE, agent=parent)) as one:
        await one.send("Go.")
        await one.tasks.wait()
        await one.send("On.")
        await worker.wait_for_held()
        running, done = await one.tasks.all()
        before = tasks.read_bytes()
        await compacted(one)
        assert tasks.read_bytes() == before
        assert await one.tasks.all() == (running, done)
    kept = [(each["id"], each["state"], each.get("result", "")) for each in json.loads(before)["tasks"]]
    assert kept == [(done.id, "completed", found), (running.id, "running", "")]


@pytest.mark.req("AS-STATE-04")
async def test_tasks_lie_in_the_folder_of_the_agent_that_has_them(bench: Spawning) -> None:
    async with bench.agent(scope=replace(SCOPE, agent="foreman")) as one:
        await one.send("Go.")
        await ended(one, bench)
    agents = bench.path("tasks", "s.json").parents[2]
    (kept,) = json.loads((agents / "foreman" / "tasks" / "s.json").read_bytes())["tasks"]
    assert (kept["state"], kept["result"]) == ("completed", FOUND)
    assert not (agents / "main" / "tasks").exists()


@pytest.mark.req("AS-STATE-08")
@pytest.mark.parametrize("due", [False, True], ids=["before the request", "on the way of the request"])
async def test_a_task_that_ends_after_a_compaction_is_told_of_with_the_plan_that_was_begun_before(
    bench: Spawning, due: bool
) -> None:
    plan = "# Repairs\n\n1. Find what drips.\n"
    bench.orders = {**bench.orders, "Plan.": Call("plan_write", {"content": plan})}
    config = CompactionConfig(trigger_messages=12, keep_messages=2) if due else COMPACTION
    async with bench.agent(compaction=config, planning=True) as one:
        assert one.plan is not None
        await one.plan.enter("Repairs", by="user")
        await one.send("Plan.")
        await one.send("Go.")
        standing = one.state.work_state
        if due:
            await one.record([said(f"Number {number}. {LONG}") for number in range(4)])
        else:
            await compacted(one)
        await ended(one, bench)
        await one.send("And?")
        assert get_mark(one.window[0]) == "summary"
        assert one.state.work_state.plan == standing.plan
        assert await one.plan.text() == plan
    items = reminded(bench.asked[-1])
    assert any("You are planning." in item for item in items)
    assert [item for item in items if item in {plan.strip(), plan, FOUND}] == [plan, FOUND]


@pytest.mark.req("AS-STATE-05", "AS-STATE-08")
async def test_results_of_several_tasks_are_each_told_once_as_they_come(tmp_path: Path) -> None:
    def answered(request: RecordedRequest) -> ScriptItem:
        prompt = request.messages[-1].text
        return Hold(Say(f"Found {prompt}")) if prompt == "late" else Say(f"Found {prompt}")

    bench = Spawning(tmp_path / "root", ScriptedModel(answered), {"Go.": spawn("one", "late", "two")})
    async with bench.agent() as one:
        await one.send("Go.")
        early = [task for task in await one.tasks.all() if task.title != "late"]
        for task in early:
            await one.tasks.wait(task.id)
        await one.send("And?")
        assert any("late: running" in item for item in reminded(bench.asked[-1]))
        await ended(one, bench)
        async with one.stream("And then?") as heard:
            assert [event async for event in heard]
        await one.send("And now?")
    at = bench.told("Found late")
    assert len(at) == len(bench.told("Found one")) == len(bench.told("Found two")) == 1
    assert bench.told("Found one")[0] < at[0] == len(bench.asked) - 2


@pytest.mark.req("AS-STATE-05")
async def test_twenty_tasks_run_eight_at_a_time_and_ten_results_are_told_with_a_request(tmp_path: Path) -> None:
    prompts = [f"number {number:02}" for number in range(20)]
    worker = ScriptedModel(lambda request: Hold(Say(f"Found {request.messages[-1].text}")))
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn(*prompts)})
    bench.root.write_text("a file where the root should be, so that nothing waits for a disk")
    most = 0
    async with bench.agent() as one:
        await one.send("Go.")
        await worker.wait_for_held(8)
        states = sorted(task.state for task in await one.tasks.all())
        assert states == ["pending"] * 12 + ["running"] * 8
        while one.tasks.running_count:
            most = max(most, worker.held_count)
            worker.release()
            await anyio.lowlevel.checkpoint()
        for _ in range(3):
            await one.send("And?")
    assert most == 8
    told = [[item for item in reminded(request) if item.startswith("Found ")] for request in bench.asked[-3:]]
    assert [len(items) for items in told] == [10, 10, 0]
    assert sorted([*told[0], *told[1]]) == [f"Found {prompt}" for prompt in prompts]


@pytest.mark.req("AS-STATE-05", "AS-STATE-04")
async def test_a_sub_agent_whose_model_fails_is_a_failed_task_and_its_parent_goes_on(tmp_path: Path) -> None:
    worker = ScriptedModel([Fail(503, "The provider is down for today.")])
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn("What drips?")})
    async with bench.agent() as one:
        await one.send("Go.")
        await one.tasks.wait()
        assert str(await one.send("And?")) == "Reply 3."
        (task,) = await one.tasks.all()
    assert task.state == "failed"
    assert "The provider is down for today." in task.error
    assert bench.told("The provider is down for today.") == [2]


@pytest.mark.req("HE-C3-task", "AS-STATE-05")
async def test_what_was_waited_for_is_the_result_of_the_call_and_is_told_no_second_time(tmp_path: Path) -> None:
    worker = ScriptedModel([Say(FOUND), Fail(503, "The provider is down.")])
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn("What drips?", wait=True)})
    async with bench.agent() as one:
        await one.send("Go.")
        assert result_texts(bench.asked[-1]) == [FOUND]
        await one.send("Go.")
        assert "The provider is down." in result_texts(bench.asked[-1])[-1]
        assert [task.type for task in await one.tasks.all()] == ["local_agent"] * 2
    async with bench.agent() as one:
        await one.send("And?")
    assert bench.told(FOUND) == bench.told("The provider is down.") == []


@pytest.mark.req("HE-C3-task", "AS-STATE-04", "AS-STATE-05")
async def test_an_agent_that_runs_elsewhere_is_asked_and_tells_how_far_it_is(tmp_path: Path) -> None:
    asked, going, go_on = list[str](), anyio.Event(), anyio.Event()

    async def ask(prompt: str, report: ReportProgress) -> str:
        asked.append(prompt)
        report(TaskProgress(done=1, total=2, text="under way"))
        going.set()
        await go_on.wait()
        if prompt == "Fail.":
            raise ConnectionError("nobody is there")
        return FOUND

    far = RemoteAgent(name="far", description="Runs elsewhere.", ask=ask)
    orders = {"Go.": spawn("What drips?", agent="far"), "On.": spawn("Fail.", agent="far")}
    bench = Spawning(tmp_path / "root", ScriptedModel([]), orders)
    async with bench.agent(far) as one:
        await one.send("Go.")
        await going.wait()
        go_on.set()
        await one.tasks.wait()
        await one.send("On.")
        await one.tasks.wait()
        await one.send("And?")
        bad, good = await one.tasks.all()
    assert asked == ["What drips?", "Fail."]
    assert (good.type, good.worker, good.state, good.result) == ("remote_agent", "far", "completed", FOUND)
    assert (bad.state, "nobody is there" in bad.error) == ("failed", True)
    assert len(bench.told(FOUND)) == len(bench.told("nobody is there")) == 1


@pytest.mark.req("AS-STATE-08", "AS-STATE-05")
async def test_a_sub_agent_that_is_cancelled_asks_its_model_no_more(bench: Spawning) -> None:
    async with bench.agent() as one:
        await one.send("Go.")
        await bench.worker.wait_for_held()
        (task,) = await one.tasks.all()
        assert (await one.tasks.cancel(task.id)).state == "cancelled"
        assert bench.worker.held_count == 0
        await one.send("And?")
        await one.send("And then?")
    assert len(bench.told("It was cancelled.")) == 1
    assert len(bench.worker.requests) == 1


@pytest.mark.req("AS-TASK-01", "AS-STATE-04")
async def test_a_session_that_ends_stops_its_sub_agents_and_the_next_process_tells_so(bench: Spawning) -> None:
    async with bench.agent() as one:
        await one.send("Go.")
        await bench.worker.wait_for_held()
    assert bench.worker.held_count == 0
    async with bench.agent() as one:
        await one.send("And?")
        await one.send("And then?")
    assert bench.told("the session ended before it did") == [2]


@pytest.mark.req("AS-STATE-04")
async def test_a_sub_agent_that_works_too_long_is_stopped(bench: Spawning) -> None:
    async with bench.agent(bench.researcher(seconds=0.01)) as one:
        await one.send("Go.")
        await one.tasks.wait()
        (task,) = await one.tasks.all()
    assert task.state == "failed"
    assert "It did not end within 0.01 seconds." in task.error
    assert bench.worker.held_count == 0


async def test_what_a_sub_agent_said_last_is_told_when_it_was_stopped_at_its_limit(tmp_path: Path) -> None:
    worker = ScriptedModel([Call("look_up", {"size": 9}), Call("look_up", {"size": 9}, "again"), Say("Never.")])
    talking = ScriptedModel([Say("It is the tap, and it dr", stop="length")])
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn("What drips?"), "On.": spawn("Why?", agent="talker")})
    found = [bench.researcher(max_iters=2), bench.researcher(name="talker", model=talking)]
    async with bench.agent(*found) as one:
        await one.send("Go.")
        await one.tasks.wait()
        await one.send("On.")
        await one.tasks.wait()
        long, limited = await one.tasks.all()
    assert limited.result == "[It was stopped at its limit of requests, before it had come to an end.]"
    assert limited.progress == TaskProgress(done=2, text="look_up")
    assert long.result == "It is the tap, and it dr\n[Its answer was cut off before its end.]"


@pytest.mark.req("AS-BUG-28")
async def test_its_transcript_is_its_own_and_belongs_to_the_user_of_its_parent(bench: Spawning) -> None:
    bench.orders = {
        **bench.orders,
        "List.": Call("session_list", {}),
        "Theirs.": Call("session_list", {"agent_id": "researcher"}),
    }
    async with bench.agent() as one:
        await one.send("Go.")
        await ended(one, bench)
        await one.send("List.")
        own = result_texts(bench.asked[-1])[-1]
        await one.send("Theirs.")
        theirs = result_texts(bench.asked[-1])[-1]
    folder = place_of(bench.root) / "workspace" / "agents" / "researcher"
    (log,) = (folder / "sessions").glob("*.log.jsonl")
    name = log.name.removesuffix(".log.jsonl")
    assert name.startswith("s-")
    assert "What drips?" in log.read_text()
    assert FOUND in log.read_text()
    assert json.loads((folder / "state" / f"{name}.json").read_text())["user"] == SCOPE.user
    assert name not in own
    assert name in theirs
    assert [path.name for path in bench.path("sessions", "").iterdir()] == ["s.log.jsonl"]
    other = HarnessAgent(
        ScriptedModel([Call("session_list", {"agent_id": "researcher"}), Say("Nothing.")]), memory=bench.root,
        scope=Scope(user="you", project="shop"), settings=settings(bench.root),
    )  # fmt: skip
    async with other as one:
        result = await one.send("Look.")
    assert name not in str(result.messages)


async def test_an_agent_without_a_root_has_sub_agents_all_the_same(bench: Spawning) -> None:
    bench.root.write_text("a file where the root should be")
    async with bench.agent() as one:
        assert one.memory is None
        await one.send("Go.")
        await ended(one, bench)
        await one.send("And?")
        await one.send("And then?")
        (task,) = await one.tasks.all()
    assert task.result == FOUND
    assert bench.told(FOUND) == [2]


async def test_a_person_is_asked_one_question_at_a_time_whoever_asks(tmp_path: Path) -> None:
    asking, most, asked = 0, 0, list[Approval]()

    async def approve(approval: Approval) -> bool:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        asked.append(approval)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        asking -= 1
        return True

    def answered(request: RecordedRequest) -> ScriptItem:
        return Say("Done.") if result_texts(request) else Hold(Call("look_up", {"size": 9}))

    worker = ScriptedModel(answered)
    bench = Spawning(tmp_path / "root", worker, {"Go.": spawn("one", "two", "three")})
    bench.root.write_text("a file where the root should be, so that nothing waits for a disk")
    async with bench.agent(approve=approve, permissions=["ask look_up"]) as one:
        await one.send("Go.")
        await worker.wait_for_held(3)
        worker.release()
        await one.tasks.wait()
    assert [approval.agent for approval in asked] == ["researcher"] * 3, "and is told who asks"
    assert most == 1
