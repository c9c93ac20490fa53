"""A memory that is a rule stands before the tools of an agent, whatever its model remembers."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings, system
from desks import Person
from hand_made_roots import begun
from places import place_of
from ricordo import BuiltinTools, CompactionConfig, HarnessAgent, Memory, MemoryConfig, Scope, SubAgent
from ricordo.agent import Tool, tool
from ricordo.agent.tools import ApprovalHandler
from ricordo.messages import get_mark
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

PUSH = "git push --force origin main"
SUMMARY = "## SESSION INTENT\nTalk.\n## SUMMARY\nTalked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"


class Bench:
    """A tool that runs nothing, and an agent whose model calls it with whatever the user says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ran: list[str] = []
        self.model = ScriptedModel(self._answer)

    def agent(
        self,
        session: str = "s",
        *,
        approve: ApprovalHandler | None = None,
        kept: bool = True,
        most: int = 60,
        sub_agents: Sequence[SubAgent] = (),
    ) -> HarnessAgent:
        return HarnessAgent(
            self.model,
            memory=MemoryConfig(root=self.root, hooks=kept),
            scope=SCOPE,
            session=session,
            tools=[self._shell(), self._look()],
            approve=approve,
            permissions=["allow shell"],
            builtin_tools=BuiltinTools(memory=kept),
            sub_agents=sub_agents,
            compaction=CompactionConfig(trigger_messages=most, keep_messages=2),
            settings=settings(self.root),
        )

    def memory(self) -> AbstractAsyncContextManager[Memory]:
        return Memory.open(self.root, scope=SCOPE, settings=settings(self.root))

    @property
    def answers(self) -> Sequence[str]:
        """What the model was told of its calls in its last request."""
        return [result.text for message in self.model.requests[-1].messages for result in message.tool_results]

    def _shell(self) -> Tool:
        async def shell(command: str) -> str:
            self.ran.append(command)
            return "done"

        return tool(shell)

    def _look(self) -> Tool:
        async def look(at: str) -> str:
            self.ran.append(at)
            return "seen"

        return tool(look, effect="reads")

    def _answer(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return Say(SUMMARY)
        last = [message for message in request.messages if get_mark(message) is None][-1]
        if last.tool_results:
            return Say("Done.")
        if last.text.startswith("spawn "):
            return Call("spawn", {"prompt": last.text.removeprefix("spawn "), "wait": True})
        return Call("look", {"at": last.text}) if last.text.startswith("/") else Call("shell", {"command": last.text})


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / ".ricordo")


@pytest.mark.req("CC-ENFORCE")
async def test_a_rule_that_the_model_was_never_shown_refuses_a_call_until_it_is_forgotten(bench: Bench) -> None:
    person = Person(True)
    async with bench.agent(approve=person) as agent:
        await agent.send(PUSH)
        async with bench.memory() as memory:
            saved = await memory.remember("Never force-push.", rule="deny shell(git push --force*)")
        await agent.send(PUSH)
        assert bench.ran == [PUSH]
        assert not any("force-push" in system(request) for request in bench.model.requests)
        assert "Never force-push." in bench.answers[-1]
        await agent.send("git status")
        assert bench.ran == [PUSH, "git status"]
        async with bench.memory() as memory:
            await memory.forget(saved.id)
        await agent.send(PUSH)
    assert bench.ran == [PUSH, "git status", PUSH]
    assert person.asked == [], "what is denied is asked of nobody"


@pytest.mark.req("CC-ENFORCE")
async def test_a_rule_holds_in_whatever_document_of_memory_it_stands_and_for_each_kind_of_tool(bench: Bench) -> None:
    begun(bench.root, bench.root.parent / "data")
    rules = {
        "MEMORY.md": "deny shell(rm *)",
        "memory/2026-01-01.md": "deny shell(git push*)",
        "memory/topics/release.md": "deny look(/secrets/*)",
        "memory/topics/deploys.md": "ask look(/deploys/*)",
        "memory/topics/shared.md": "deny look(/shared/*)",
    }
    for name, rule in rules.items():
        place = bench.root if "shared" in name else place_of(bench.root)
        path = place / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"- As it is told in {name}. [rule:: {rule}]\n")
    with (place_of(bench.root) / "workspace" / "MEMORY.md").open("a") as curated:
        curated.write("- A model says so. [rule:: deny look(/notes*)] [by:: agent]\n")
    async with bench.memory() as memory:
        everywhere = "As I say in all projects."
        await memory.remember(everywhere, rule="deny look(/mine/*)", scope=Scope(user="me"), reason="it is mine")
    person = Person(False)
    async with bench.agent(approve=person, kept=False) as agent:
        for name, text in zip(rules, ("rm -rf build", PUSH, "/secrets/key", "/deploys/1", "/shared/1"), strict=True):
            await agent.send(text)
            assert f"As it is told in {name}." in bench.answers[-1]
        await agent.send("/mine/1")
        assert everywhere in bench.answers[-1]
        await agent.send("/notes")
    assert bench.ran == ["/notes"]
    assert [asked.target for asked in person.asked] == ["/deploys/1"]


@pytest.mark.req("CC-ENFORCE")
@pytest.mark.parametrize("kept", [True, False])
async def test_a_rule_holds_after_compactions_in_new_sessions_and_without_memory_in_the_prompt(
    bench: Bench, kept: bool
) -> None:
    async with bench.memory() as memory:
        await memory.remember("Never force-push.", rule="deny shell(git push --force*)")
    async with bench.agent(kept=kept, most=6) as agent:
        for number in range(6):
            await agent.send(f"git log -{number}")
        assert any(get_mark(message) == "summary" for message in agent.window)
        await agent.send(PUSH)
    async with bench.agent("another", kept=kept) as agent:
        await agent.send(PUSH)
        await agent.send(f"cd shop && {PUSH}")
    assert bench.ran == [f"git log -{number}" for number in range(6)]


@pytest.mark.req("CC-ENFORCE")
async def test_a_rule_holds_for_a_sub_agent_which_has_no_memory(bench: Bench) -> None:
    async with bench.memory() as memory:
        await memory.remember("Never force-push.", rule="deny shell(git push --force*)")
    async with bench.agent(sub_agents=[SubAgent(name="helper", description="Helps.")]) as agent:
        await agent.send("spawn git status")
        await agent.send(f"spawn {PUSH}")
    assert bench.ran == ["git status"]


@pytest.mark.req("CC-ENFORCE")
@pytest.mark.parametrize("answer", [True, False])
async def test_a_rule_that_asks_lets_a_person_decide_on_each_call(bench: Bench, answer: bool) -> None:
    async with bench.memory() as memory:
        await memory.remember("Ask Nadia before a deployment.", rule="ask shell(deploy*)")
    person = Person(answer)
    async with bench.agent(approve=person) as agent:
        await agent.send("deploy shop")
        await agent.send("deploy shop")
        await agent.send("git status")
    assert [asked.target for asked in person.asked] == ["deploy shop"] * 2
    assert bench.ran == [*(["deploy shop"] * 2 if answer else []), "git status"]


@pytest.mark.req("CC-ENFORCE")
async def test_where_nobody_can_be_asked_a_rule_that_asks_refuses(bench: Bench) -> None:
    async with bench.memory() as memory:
        await memory.remember("Ask Nadia before a deployment.", rule="ask shell(deploy*)")
    async with bench.agent() as agent:
        await agent.send("deploy shop")
    assert bench.ran == []
    assert "Ask Nadia" in bench.answers[-1]


@pytest.mark.req("CC-ENFORCE")
async def test_no_tool_that_acts_runs_while_rules_can_not_be_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def scandir(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        if str(path).endswith("/topics"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    async with bench.agent() as agent:
        (place_of(bench.root) / "workspace" / "memory" / "topics").mkdir(parents=True)
        await agent.send("git status")
        with monkeypatch.context() as patched:
            patched.setattr(os, "scandir", scandir)
            (place_of(bench.root) / "workspace" / "memory" / "2026-01-01.md").write_text("- New.\n")
            await agent.send("git log")
        assert bench.ran == ["git status"]
        assert "topics" in bench.answers[-1]
        await agent.send("git diff")
    assert bench.ran == ["git status", "git diff"]
