"""What every adapter withstands with its real framework: one suite, which an adapter's tests instantiate.

An adapter's tests derive from `FrameworkConformance` and name a `Framework`: a small class that runs turns of the
framework's own agent. That agent has one tool, `add`, and its model is a server on this machine that plays a part: it
calls `add` twice at once for a message with `add`, and else says how many messages it was sent.
"""

import json
import os
import re
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import ClassVar, Protocol

import anyio
import pytest

from ricordo import CompactionConfig, Scope
from ricordo.adapters import Conversation
from ricordo.messages import Message, ToolCall
from ricordo.testing import Call, Calls, Hang, Hold, LoopbackServer, RecordedRequest, Say, ScriptItem
from snippets import blocks
from source_tree import ROOT

__all__ = [
    "COMPACTION",
    "FRAMEWORK_PROPERTY",
    "Framework",
    "FrameworkConformance",
    "FrameworkTurns",
    "check_example",
    "is_installed",
    "play",
    "render_table",
    "run_example",
    "run_page",
]

COMPACTION = CompactionConfig(trigger_messages=24, keep_messages=8, trigger_tokens=20_000)
FRAMEWORK_PROPERTY = "framework"
"""The property of a report that names the framework of a test."""
_NUMBER = re.compile(r"\d+")
_CHILD = """
import importlib, sys
import anyio
framework = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(sys.argv[3], sys.argv[4])
async def main():
    async with framework.open("s1", user="ann") as turns:
        for number in range(1, 9):
            await turns.ask(f"Turn {number}: add {number} and 1")
anyio.run(main)
"""


class FrameworkTurns(Protocol):
    """One session of the framework's agent."""

    @property
    def conversation(self) -> Conversation:
        """The conversation of the adapter."""
        ...

    async def ask(self, text: str) -> str:
        """Run one turn and return the reply."""
        ...

    async def stream(self, text: str) -> str:
        """Run one turn as a stream, consume all of it, and return the reply."""
        ...


class Framework(ABC):
    """A framework, with the memory in `root` and the model at `url`."""

    label: ClassVar[str]
    """The name of the framework, as people write it."""

    def __init__(self, url: str, root: str) -> None:
        self.url, self.root = url, root

    @abstractmethod
    def open(self, session: str, *, user: str) -> AbstractAsyncContextManager[FrameworkTurns]:
        """Open a session of a user, with the compaction of `COMPACTION`."""

    def scope(self, user: str) -> Scope:
        """Return the scope of a user."""
        return Scope(project="conformance", user=user)


def is_installed(name: str) -> bool:
    """Return whether a framework can be imported; where the frameworks are required, fail without it."""
    try:
        __import__(name)
    except ImportError:
        if os.environ.get("RICORDO_ADAPTERS") == "required":
            raise
        return False
    return True


def render_table(passed: Mapping[tuple[str, str], bool]) -> str:
    """Return the table of frameworks and tests, by whether each passed, in Markdown."""
    frameworks = sorted({framework for framework, _ in passed})
    tests = sorted({test for _, test in passed})
    rows = [["", *frameworks], ["---"] * (len(frameworks) + 1)]
    for test in tests:
        sentence = test.removeprefix("test_").replace("_", " ")
        marks = {True: "yes", False: "no", None: ""}
        rows.append([sentence, *(marks[passed.get((framework, test))] for framework in frameworks)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def run_page(name: str, url: str, folder: Path) -> str:
    """Run the program of a guide against a server, and return what it prints."""
    (block,) = blocks((ROOT / "docs/guide" / f"{name}.md").read_text(encoding="utf-8"))
    return _run_program(["-c", block.body], url, folder)


def run_example(name: str, url: str, folder: Path, *arguments: str) -> str:
    """Run an example against a server, and return what it prints."""
    return _run_program([str(ROOT / "examples" / f"{name}.py"), *arguments], url, folder)


def check_example(name: str, folder: Path, *calls: Call) -> None:
    """Check that an example remembers in its first run what it sends to the model in the second.

    `calls` are the calls of the model, one in each run; without them it remembers by our tool, and is given it back.
    """
    remembered = "The user never eats nuts."
    first, *others = calls or (Call("remember", {"content": remembered}),)
    script: list[ScriptItem] = [first, Say("Soup."), *others, Say("Soup again.")]
    with LoopbackServer(script) as server:
        assert run_example(name, server.url, folder) == "Soup.\n"
        assert run_example(name, server.url, folder, "And tomorrow?") == "Soup again.\n"
    assert server.problems == ()
    assert remembered in _content(server.requests[-1])


def _run_program(code: list[str], url: str, folder: Path) -> str:
    variables = {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return subprocess.run(
        [sys.executable, *code],
        cwd=folder,
        env={**os.environ, **variables},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def play(request: RecordedRequest) -> ScriptItem:
    """Return the reply of the model."""
    spoken = [each for each in request.messages if not each.text.startswith("<system-reminder")]
    last = spoken[-1]
    if last.role == "tool":
        run = list(_results_at_end(spoken))
        return Say("Sums: " + ", ".join(run))
    if "Hold" in last.text:
        return Hold(Say("Held."))
    if "Hang" in last.text:
        return Hang()
    numbers = _NUMBER.findall(last.text)
    if " add " in last.text:
        number = int(numbers[-2])
        return Calls(Call("add", {"a": number, "b": 1}), Call("add", {"a": number, "b": 2}))
    return Say(f"I was sent {len(spoken)} messages.")


def _results_at_end(messages: list[Message]) -> Iterator[str]:
    for message in messages[-2:]:
        for result in message.tool_results:
            yield result.text


class FrameworkConformance:
    """The suite. A class of an adapter's tests sets `framework`."""

    framework: ClassVar[type[Framework]]

    @pytest.fixture(autouse=True)
    def _name_framework(self, record_property: Callable[[str, object], None]) -> None:
        record_property(FRAMEWORK_PROPERTY, self.framework.label)

    @pytest.fixture
    def server(self) -> Iterator[LoopbackServer]:
        with LoopbackServer(play) as server:
            yield server

    @pytest.fixture
    def agent(self, server: LoopbackServer, tmp_path: Path) -> Framework:
        return self.framework(server.url, str(tmp_path))

    @pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.soak)])
    async def test_many_turns_with_parallel_tools_lose_and_double_nothing(
        self, agent: Framework, server: LoopbackServer, count: int
    ) -> None:
        async with agent.open("s1", user="ann") as turns:
            for number in range(1, count + 1):
                reply = await turns.ask(f"Turn {number}: add {number} and 1")
                assert reply == f"Sums: {number + 1}, {number + 2}"
            recorded = await _recorded(turns, "s1")
        assert _user_texts(recorded) == [f"Turn {number}: add {number} and 1" for number in range(1, count + 1)]
        calls = [part.id for each in recorded for part in each.parts if isinstance(part, ToolCall)]
        results = [result.call_id for each in recorded for result in each.tool_results]
        assert len(calls) == 2 * count
        assert sorted(calls) == sorted(results) == sorted({*calls})
        assert server.problems == ()
        assert max(len(each.messages) for each in server.requests) < 60

    async def test_a_stream_is_recorded_like_a_whole_reply(self, agent: Framework, server: LoopbackServer) -> None:
        async with agent.open("s1", user="ann") as turns:
            assert await turns.stream("Turn 1: add 1 and 1") == "Sums: 2, 3"
            recorded = await _recorded(turns, "s1")
        assert any(each.streamed for each in server.requests)
        assert _user_texts(recorded) == ["Turn 1: add 1 and 1"]
        assert recorded[-1].text == "Sums: 2, 3"
        assert len([part for each in recorded for part in each.parts if isinstance(part, ToolCall)]) == 2

    async def test_a_session_is_continued_where_it_stopped(self, agent: Framework, server: LoopbackServer) -> None:
        async with agent.open("s1", user="ann") as turns:
            await turns.ask("Turn 1: add 1 and 1")
        async with agent.open("s1", user="ann") as turns:
            await turns.ask("Turn 2: add 2 and 1")
        continued = _content(server.requests[-1])
        assert continued.index("Turn 1") < continued.index("Sums: 2, 3") < continued.index("Turn 2")
        assert server.problems == ()

    async def test_a_killed_process_is_continued_from_what_it_had_recorded(self, tmp_path: Path) -> None:
        with LoopbackServer(_until_the_sixth_turn) as server:
            child = await anyio.to_thread.run_sync(self._start_child, server.url, str(tmp_path))
            try:
                await anyio.to_thread.run_sync(lambda: server.wait_for_held(timeout=200))
            finally:
                child.send_signal(signal.SIGKILL)
                child.wait()
        with LoopbackServer(play) as server:
            agent = self.framework(server.url, str(tmp_path))
            async with agent.open("s1", user="ann") as turns:
                assert await turns.ask("Turn 7: add 7 and 1") == "Sums: 8, 9"
                recorded = await _recorded(turns, "s1")
        assert server.problems == ()
        texts = _user_texts(recorded)
        assert texts[:5] == [f"Turn {number}: add {number} and 1" for number in range(1, 6)]
        assert texts[-1] == "Turn 7: add 7 and 1"
        assert len(texts) == len({*texts})

    def _start_child(self, url: str, root: str) -> "subprocess.Popen[bytes]":
        paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        arguments = [self.framework.__module__, self.framework.__name__, url, root]
        return subprocess.Popen(
            [sys.executable, "-c", _CHILD, *arguments], env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        )

    async def test_a_compaction_keeps_the_session_going(self, agent: Framework, server: LoopbackServer) -> None:
        async with agent.open("s1", user="ann") as turns:
            await turns.ask("The harbour is called Porto Valtravaglia.")
            for number in range(1, 9):
                await turns.ask(f"Turn {number}: add {number} and 1")
            before = max(len(each.messages) for each in server.requests)
            await turns.conversation.compact()
            await turns.ask("Turn 9: add 9 and 1")
            compactions = await (await turns.conversation.agent()).compactions.all()
        first_after = server.requests[-2]
        assert len(first_after.messages) < before
        assert [each.action for each in compactions]
        assert "Porto Valtravaglia" in _content(first_after)
        assert server.problems == ()

    async def test_a_forgotten_fact_appears_in_no_later_request(self, agent: Framework, server: LoopbackServer) -> None:
        fact = "The spare key lies below the blue kettle"
        async with agent.open("s1", user="ann") as turns:
            memory = (await turns.conversation.agent()).memory
            assert memory is not None
            entry = await memory.remember(fact)
            await turns.ask("Where does the spare key lie?")
            assert "blue kettle" in _content(server.requests[-1])
            await memory.forget(entry.id)
            await turns.ask("And where does the spare key lie now?")
            assert "blue kettle" not in _content(server.requests[-1])
        async with agent.open("s2", user="ann") as turns:
            await turns.ask("Where does the spare key lie?")
        assert "blue kettle" not in _content(server.requests[-1])

    async def test_two_users_never_see_each_other(self, agent: Framework, server: LoopbackServer) -> None:
        async with agent.open("a", user="ann") as ann, agent.open("b", user="bob") as bob:
            memory = (await ann.conversation.agent()).memory
            assert memory is not None
            await memory.remember("The spare key lies below the blue kettle")
            await ann.ask("My cat is called Ludmilla.")
            asked = len(server.requests)
            await bob.ask("Where does the spare key lie, and what is my cat called?")
        for request in server.requests[asked:]:
            assert "kettle" not in _content(request)
            assert "Ludmilla" not in _content(request)
        async with agent.open("a", user="bob") as thief:
            await thief.ask("What was said here?")
        assert "Ludmilla" not in _content(server.requests[-1])

    @pytest.mark.parametrize("text", ["Hold", "Hang"])
    async def test_a_cancelled_turn_leaves_a_session_that_goes_on(
        self, agent: Framework, server: LoopbackServer, text: str
    ) -> None:
        async with agent.open("s1", user="ann") as turns:
            await turns.ask("Turn 1: add 1 and 1")
            async with anyio.create_task_group() as group:
                group.start_soon(turns.stream, f"{text} on")
                await anyio.to_thread.run_sync(lambda: server.wait_for_held(timeout=100))
                group.cancel_scope.cancel()
            server.release()
            assert await turns.ask("Turn 2: add 2 and 1") == "Sums: 3, 4"
            recorded = await _recorded(turns, "s1")
        texts = [each for each in _user_texts(recorded) if each.startswith("Turn")]
        assert texts == ["Turn 1: add 1 and 1", "Turn 2: add 2 and 1"]
        assert server.problems == ()


def _until_the_sixth_turn(request: RecordedRequest) -> ScriptItem:
    spoken = [each for each in request.messages if not each.text.startswith("<system-reminder")]
    is_sixth = any("Turn 6" in each.text for each in spoken) and spoken[-1].role == "tool"
    return Hang() if is_sixth else play(request)


async def _recorded(turns: FrameworkTurns, session: str) -> list[Message]:
    """Return the transcript of a session: everything that was said and done, once each."""
    memory = (await turns.conversation.agent()).memory
    assert memory is not None
    return list((await memory.session(session)).messages)


def _user_texts(messages: list[Message]) -> list[str]:
    return [each.text for each in messages if each.role == "user"]


def _content(request: RecordedRequest) -> str:
    return json.dumps(request.body, ensure_ascii=False)
