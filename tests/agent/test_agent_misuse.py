"""Plain mistakes in describing and using an agent: each is told in words, at once, and changes nothing."""

import threading
import time
from collections.abc import Awaitable
from pathlib import Path

import anyio.to_thread
import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings
from ricordo import HarnessAgent, RemoteAgent, SubAgent
from ricordo.errors import InvalidSetting
from ricordo.jobs import ReportProgress, TaskProgress
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = pytest.mark.anyio

READER = SubAgent(name="reader", description="Reads.")


def agent(root: Path, **options: object) -> HarnessAgent:
    given = {"model": "offline", "settings": settings(root)} | options
    return HarnessAgent(**agent_arguments(workspace=root, scope=SCOPE, **given))


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("permissions", "deny shell", "permissions are several lines such as `deny shell(git push*)`, in a list"),
        ("permissions", None, "not None"),
        ("permissions", [5], "not [5]"),
        ("permissions", ["deny shell()"], "Leave the parentheses out"),
        ("sub_agents", READER, "sub_agents are several SubAgent and RemoteAgent values, in a list"),
        ("sub_agents", ["x"], "not ['x']"),
        ("sub_agents", None, "not None"),
        ("approve", "x", "approve is an async function"),
        ("states", "x", "which loads and saves, not 'x'"),
        ("strategies", "x", "strategies are several"),
        ("max_iters", 1.5, "a whole number, at least 1, not 1.5"),
        ("max_iters", "x", "not 'x'"),
    ],
)
def test_what_an_agent_does_not_take_is_refused_when_it_is_described(
    tmp_path: Path, option: str, value: object, words: str
) -> None:
    with pytest.raises(InvalidSetting) as refused:
        agent(tmp_path / ".ricordo", **{option: value})
    assert words in str(refused.value)


async def work(report: ReportProgress) -> str:
    report(TaskProgress(done=1))
    return "done"


def begun(report: ReportProgress) -> Awaitable[str]:
    return work(report)


async def test_what_is_no_task_begins_none_and_what_is_no_id_finds_none(tmp_path: Path) -> None:
    async with agent(tmp_path / ".ricordo") as one:
        tasks = one.tasks
        wrong = (
            lambda: tasks.start("nope", "T", work),  # type: ignore[arg-type]
            lambda: tasks.start("dream", None, work),  # type: ignore[arg-type]
            lambda: tasks.start("dream", " \n", work),
            lambda: tasks.start("dream", "T", None),  # type: ignore[arg-type]
            lambda: tasks.start("dream", "T", work, seconds="x"),  # type: ignore[arg-type]
            lambda: tasks.start("dream", "T", work, seconds=-1),
            lambda: tasks.start("dream", "T", work, seconds=0),
            lambda: tasks.start("dream", "T", work, seconds=True),
            lambda: tasks.start("dream", "T", work, seconds=float("nan")),
            lambda: tasks.get(5),  # type: ignore[arg-type]
            lambda: tasks.cancel(None),  # type: ignore[arg-type]
            lambda: tasks.wait(5),  # type: ignore[arg-type]
            lambda: tasks.wait(seconds="x"),  # type: ignore[arg-type]
        )
        for act in wrong:
            with pytest.raises(InvalidSetting):
                await act()
        assert await tasks.all() == ()


async def test_a_plain_function_works_in_a_thread_and_is_waited_for(tmp_path: Path) -> None:
    began, ended = threading.Event(), list[str]()

    def plain(report: ReportProgress) -> str:
        report(TaskProgress(done=1, total=2))
        began.set()
        time.sleep(0.02)
        ended.append("plain")
        return "by a thread"

    async with agent(tmp_path / ".ricordo") as one:
        task = await one.tasks.start("dream", "Sort", plain)
        await one.tasks.wait()
        done = await one.tasks.get(task.id)
        assert (done.state, done.result, done.progress.done) == ("completed", "by a thread", 1)
        made = await one.tasks.start("dream", "Sort", begun)
        await one.tasks.wait()
        assert (await one.tasks.get(made.id)).result == "done", "what it returns may be awaited"
        began.clear()
        await one.tasks.start("dream", "Sort", plain)
        await anyio.to_thread.run_sync(began.wait)
    assert ended == ["plain"] * 2, "what cannot be stopped has ended before the session has"


async def test_an_agent_elsewhere_may_be_asked_by_a_plain_function(tmp_path: Path) -> None:
    model = ScriptedModel([Call("spawn", {"prompt": "ciao", "wait": True}), Say("Done.")])
    echo = RemoteAgent(name="echo", description="Echoes.", ask=lambda prompt, _report: f"echo {prompt}")
    async with agent(tmp_path / ".ricordo", model=model, sub_agents=[echo]) as one:
        await one.send("Go.")
        assert [task.result for task in await one.tasks.all()] == ["echo ciao"]


async def test_a_rule_of_the_program_for_no_tool_is_told_once_when_the_agent_is_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel([Call("spawn", {"prompt": "Go.", "wait": True}), Say("Here."), Say("Done.")])
    lines = ["deny shel(git push*)", "deny read_file", "ask mcp__*", "deny recall"]
    options = {"model": model, "permissions": lines, "sub_agents": [READER], "file_tools": True}
    described = agent(tmp_path / ".ricordo", **options)
    assert caplog.messages == []
    async with described as one:
        await one.send("Go.")
        assert [message for message in caplog.messages if "the agent has no tool of that name" in message] == [
            "The rule `deny shel(git push*)` decides nothing here: the agent has no tool of that name."
        ]
