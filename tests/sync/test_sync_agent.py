"""The blocking face of agent and memory: from plain code, from threads, beside a loop, and through Ctrl-C."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ricordo
import ricordo.agent.sync
from agents_at_work import SCOPE, settings
from places import place_of
from ricordo import CompactionConfig
from ricordo.agent import tool
from ricordo.agent.sync import SyncHarnessAgent
from ricordo.errors import InvalidSetting, MemoryClosed, ModelUnavailable, ScopeMismatch, ScopeRequired
from ricordo.jobs import ReportProgress, TaskProgress
from ricordo.messages import Message, Text
from ricordo.models import TextDelta
from ricordo.runtime.sync import SyncMemory
from ricordo.scope import Scope
from ricordo.testing import Call, Fail, Say, ScriptedModel

FACT = "We deploy only from main."


@tool
def look_up(topic: str) -> str:
    """Look something up."""
    return f"found {topic}"


def talking() -> ScriptedModel:
    return ScriptedModel(lambda request: Say(f"Reply {request.number}. " + "words " * 40))


def _public(kind: type) -> set[str]:
    own = kind.__mro__[:-1] if kind is ricordo.HarnessAgent else (kind,)
    return {name for each in own for name in vars(each) if not name.startswith("_")}


def test_the_blocking_agent_has_what_the_other_has() -> None:
    assert _public(SyncHarnessAgent) == _public(ricordo.HarnessAgent) | {"open"}
    for name in _public(ricordo.HarnessAgent):
        own, other = getattr(SyncHarnessAgent, name), getattr(ricordo.HarnessAgent, name)
        assert inspect.getdoc(own)
        if inspect.iscoroutinefunction(other):
            assert inspect.signature(own) == inspect.signature(other)
            assert not inspect.iscoroutinefunction(inspect.unwrap(own, stop=lambda _: True))
    constructed = inspect.signature(ricordo.HarnessAgent)
    assert inspect.signature(SyncHarnessAgent.open).parameters == constructed.parameters
    assert inspect.signature(ricordo.HarnessAgent.with_recommended_settings).parameters == constructed.parameters


def test_plain_code_talks_to_an_agent(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Call("look_up", {"topic": "main"}), *[Say("Done. " + "words " * 40)] * 30])
    with SyncHarnessAgent.open(
        model, memory=root, scope=SCOPE, session="s", tools=[look_up], settings=settings(root, consolidates=True)
    ) as agent:
        assert agent.session == "s"
        assert str(agent.send(FACT)).startswith("Done.")
        assert [message.role for message in agent.window] == ["user", "assistant", "tool", "assistant"]
        with agent.stream("And now?") as events:
            texts = [event.text for event in events if isinstance(event, TextDelta)]
            assert "".join(texts) == events.result.message.text
        agent.record([Message(role="user", parts=(Text(text="Our fixtures live in tests/data."),))])
        for number in range(15):
            agent.send(f"Number {number}. " + "words " * 40)
        before = agent.get_context_usage().tokens
        assert [report.action for report in agent.compact() if report.status == "done"] == ["compact"]
        assert agent.get_context_usage().tokens < before
        assert agent.drain() == 0
        assert agent.consolidate().kept >= 2
        agent.system_prompt(rebuild=True)
        agent.clear()
        assert agent.window == ()
        assert FACT in agent.system_prompt()
        memory = agent.memory
        assert memory is not None
        assert FACT in {hit.entry.content for hit in memory.recall("deploy")}
    with pytest.raises(MemoryClosed):
        _ = agent.window
    with SyncMemory.open(root, scope=SCOPE, settings=settings(root)) as again:
        assert FACT in again.preamble()


@pytest.mark.parametrize("construct", [lambda: SyncHarnessAgent("offline", scope=SCOPE), lambda: SyncMemory("root")])  # type: ignore[arg-type, call-arg]
def test_what_is_constructed_instead_of_opened_says_how(construct: Callable[[], object]) -> None:
    with pytest.raises(InvalidSetting, match=r"`with (SyncHarnessAgent|SyncMemory)\.open\("):
        construct()


def test_a_plain_function_is_a_task_in_a_thread_of_its_own(tmp_path: Path) -> None:
    def work(report: ReportProgress) -> str:
        report(TaskProgress(done=1))
        return threading.current_thread().name

    async def other(report: ReportProgress) -> str:
        del report
        return threading.current_thread().name

    root = tmp_path / ".ricordo"
    with SyncHarnessAgent.open("offline", memory=root, scope=SCOPE, settings=settings(root)) as agent:
        tasks = [agent.tasks.start("dream", "Sort", each) for each in (work, other)]
        agent.tasks.wait()
        plain, on_loop = (agent.tasks.get(task.id) for task in tasks)
    assert (plain.state, plain.progress.done) == ("completed", 1)
    assert plain.result != on_loop.result


def test_a_recommended_agent_blocks_too(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    config = CompactionConfig(trigger_messages=6, keep_messages=2, model="offline")
    with SyncHarnessAgent.with_recommended_settings(
        talking(), memory=root, scope=SCOPE, compaction=config, settings=settings(root)
    ) as agent:
        for number in range(8):
            agent.send(f"Number {number}. " + "words " * 40)
        assert len(agent.window) < 8


def test_errors_come_out_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    with pytest.raises(ScopeRequired), SyncHarnessAgent.open("offline", memory=root, scope=None):
        pass
    model = ScriptedModel([Fail(500), Fail(500), Say("Here.")])
    with SyncHarnessAgent.open(model, memory=root, scope=SCOPE, settings=settings(root)) as agent:
        with pytest.raises(ModelUnavailable):
            agent.send("Hello?")
        with agent.stream("Hello?") as events, pytest.raises(ModelUnavailable):
            list(events)
        assert str(agent.send("Hello?")) == "Here."
    with (
        pytest.raises(ScopeMismatch),
        SyncHarnessAgent.open("offline", memory=root, scope=Scope(project="other"), settings=settings(root)),
    ):
        pass
    with (
        pytest.raises(ZeroDivisionError),
        SyncHarnessAgent.open("offline", memory=root, scope=SCOPE, settings=settings(root)),
    ):
        _ = 1 / 0


def test_several_threads_talk_to_one_agent(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    with SyncHarnessAgent.open(talking(), memory=root, scope=SCOPE, session="s", settings=settings(root)) as agent:
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda number: str(agent.send(f"Number {number}.")), range(16)))
        assert len(set(replies)) == 16
        assert [message.role for message in agent.window] == ["user", "assistant"] * 16


def test_an_agent_blocks_beside_a_running_loop(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"

    def chat() -> str:
        with SyncHarnessAgent.open(talking(), memory=root, scope=SCOPE, settings=settings(root)) as agent:
            return str(agent.send("Hello."))

    async def main() -> str:
        return await asyncio.to_thread(chat)

    assert asyncio.run(main()).startswith("Reply 1.")


def test_a_stream_that_is_left_stops(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    with SyncHarnessAgent.open(talking(), memory=root, scope=SCOPE, settings=settings(root)) as agent:
        with agent.stream("Count.") as events:
            assert isinstance(next(iter(events)), TextDelta)
        assert str(agent.send("And now?")).startswith("Reply 2.")
    assert not [thread for thread in threading.enumerate() if "portal" in thread.name]


_WAITING = """
import sys
from agents_at_work import SCOPE, settings
from pathlib import Path
from ricordo.agent.sync import SyncHarnessAgent
from ricordo.testing import Hang, ScriptedModel

root = Path(sys.argv[1])
try:
    model = ScriptedModel([Hang()])
    with SyncHarnessAgent.open(model, memory=root, scope=SCOPE, session="s", settings=settings(root)) as agent:
        print("asking", flush=True)
        agent.send("We deploy only from main.")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    paths = [str(Path(__file__).parents[1] / "support"), str(Path(ricordo.__file__).parents[1])]
    with subprocess.Popen(
        [sys.executable, "-c", _WAITING, str(root)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        log = place_of(root) / "workspace" / "agents"
        while not list(log.rglob("s.log.jsonl")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "interrupted\n"
    with SyncMemory.open(root, scope=SCOPE, settings=settings(root)) as memory:
        assert [message.text for message in memory.session("s").messages] == [FACT]
        assert [entry.content for entry in memory.entries()] == [FACT], "it was learned from before the end"
