"""What stands beside an agent's window is the same after compactions and in the next process, and decides the same."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agents_at_work import SCOPE, said, settings
from desks import Person
from ricordo import CompactionConfig, HarnessAgent, Memory
from ricordo.guard import unfence
from ricordo.harness.sub_agents import RemoteAgent
from ricordo.messages import JsonValue, mark_of
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.tools import tool

pytestmark = pytest.mark.anyio

PLAN = "# Release\n\n1. Tag it <now>.\n2. Say so to everybody.\n"
LONG = "Some more words about it, as people use them. " * 40
SUMMARY = "## SESSION INTENT\n- Talk.\n## SUMMARY\n- Talked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
LISTED = [("Tag it", "completed"), ("Build it", "in_progress"), ("Say so", "pending"), ("Rest", "pending")]
TODOS: list[JsonValue] = [{"content": content, "status": status} for content, status in LISTED]


@dataclass
class Bench:
    """An agent whose model makes the call that the user names, as `{"tool": ..., "with": {...}}`, and then says so."""

    root: Path
    summary: str = SUMMARY
    ran: list[str] = field(default_factory=list)
    requests: list[RecordedRequest] = field(default_factory=list)

    def agent(self, **options: object) -> HarnessAgent:
        given = {
            "session": "s",
            "tools": [self._deploy()],
            "compaction": CompactionConfig(trigger_messages=1_000, keep_messages=2),
            "planning": True,
            "memory_hooks": False,
            "settings": settings(self.root),
        } | options
        return HarnessAgent(ScriptedModel(self._answer), workspace=self.root, scope=SCOPE, **given)  # type: ignore[arg-type]

    @property
    def reminded(self) -> tuple[str, ...]:
        """What the last request was reminded of, item by item."""
        last = self.requests[-1].messages[-1]
        return (unfence(last.text) or ()) if mark_of(last) == "reminder" else ()

    @property
    def sent(self) -> str:
        """All text of the last request."""
        return "\n".join(message.text for message in self.requests[-1].messages)

    @property
    def results(self) -> list[tuple[str, bool]]:
        """What the last request told of calls: text, and whether it is an error."""
        parts = [result for message in self.requests[-1].messages for result in message.tool_results]
        return [(result.text, result.is_error) for result in parts]

    def _deploy(self) -> object:
        async def deploy(branch: str) -> str:
            """Deploy a branch."""
            self.ran.append(branch)
            return f"deployed {branch}"

        return tool(deploy)

    def _answer(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return Say(json.dumps({"summary": self.summary, "lessons": []}) if request.schema else self.summary)
        self.requests.append(request)
        last = [message for message in request.messages if mark_of(message) is None][-1]
        if last.tool_results or not last.text.startswith("{"):
            return Say(f"Done. {LONG}")
        asked = json.loads(last.text)
        return Call(asked["tool"], asked["with"])


def wanted(name: str, **arguments: JsonValue) -> str:
    return json.dumps({"tool": name, "with": arguments})


async def compacted(agent: HarnessAgent) -> None:
    """Talk a little, and have it summed up."""
    await agent.record([said(f"Number {number}. {LONG}") for number in range(4)])
    reports = await agent.compact()
    assert [report.status for report in reports if report.act == "compact"] == ["done"]
    assert mark_of(agent.window[0]) == "summary"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / ".ricordo")


@pytest.mark.req("AS-STATE-03")
async def test_plan_mode_and_its_file_are_the_same_after_a_compaction_and_the_banner_is_in_the_next_request(
    bench: Bench,
) -> None:
    async with bench.agent() as agent:
        await agent.send(wanted("plan_enter", title="Release"))
        await agent.send(wanted("plan_write", content=PLAN))
        before = agent.state.standing.plan
        file = bench.root / "workspace" / before.path
        assert (before.active, before.path.startswith("plans/"), file.read_text()) == (True, True, PLAN)
        await compacted(agent)
        assert agent.state.standing.plan == before
        assert file.read_text() == PLAN
        await agent.send("Go on.")
        assert bench.reminded[0].startswith("You are planning.")
        assert f"/{before.path}" in bench.reminded[0]
    async with bench.agent() as agent:
        assert agent.state.standing.plan == before
        await agent.send("Still there?")
    assert bench.reminded[0].startswith("You are planning.")
    assert PLAN in bench.reminded
    assert file.read_text() == PLAN


@pytest.mark.req("AS-STATE-06")
async def test_the_todo_list_is_the_same_after_a_compaction_and_a_reload(bench: Bench) -> None:
    async with bench.agent() as agent:
        await agent.send(wanted("todo_write", todos=TODOS))
        before = agent.todos
        assert [(todo.content, todo.status) for todo in before] == LISTED
        both: list[JsonValue] = [{"content": each, "status": "in_progress"} for each in ("Build it", "Say so")]
        await agent.send(wanted("todo_write", todos=both))
        assert bench.results[-1][1]
        assert agent.todos == before, "at most one is in progress"
        await compacted(agent)
        assert agent.todos == before
        await agent.send("Go on.")
        assert "[x] Tag it\n[>] Build it\n[ ] Say so\n[ ] Rest" in "\n".join(bench.reminded)
        shorter: list[JsonValue] = [
            {"content": "Build it", "status": "completed"}, {"content": "Say so", "status": "in_progress"}
        ]  # fmt: skip
        await agent.send(wanted("todo_write", todos=shorter))
        kept = agent.todos
        assert [todo.id for todo in kept] == [before[1].id, before[2].id]
        await compacted(agent)
    async with bench.agent() as agent:
        assert agent.todos == kept
        await agent.send("And now?")
    assert "[x] Build it\n[>] Say so" in "\n".join(bench.reminded)


@pytest.mark.req("AS-STATE-07")
async def test_a_rule_decides_the_same_call_before_and_after_a_compaction_and_a_reload(bench: Bench) -> None:
    person = Person(True)
    calls = [wanted("deploy", branch=branch) for branch in ("wild", "main", "release/1", "other")]

    async def decided(agent: HarnessAgent) -> list[bool]:
        bench.ran.clear()
        for each in calls:
            await agent.send(each)
        return [branch in bench.ran for branch in ("wild", "main", "release/1", "other")]

    async with bench.agent(approve=person) as agent:
        assert await decided(agent) == [True] * 4
        await agent.permissions.deny("deploy(wild)")
        await agent.permissions.ask("deploy(release/*)")
        await agent.permissions.deny("deploy(ma*)")
        await agent.permissions.allow("deploy(ma*)")
        granted = agent.state.standing.permissions
        assert await decided(agent) == [False, True, True, True]
        await compacted(agent)
        assert agent.state.standing.permissions == granted
        assert await decided(agent) == [False, True, True, True]
    async with bench.agent(approve=person) as agent:
        assert agent.state.standing.permissions == granted
        assert await decided(agent) == [False, True, True, True]
    assert [asked.target for asked in person.asked] == ["release/1"] * 3
    async with bench.agent(approve=Person(False)) as agent:
        assert await decided(agent) == [False, True, False, True]
    async with bench.agent(session="another") as agent:
        assert await decided(agent) == [True] * 4, "a rule of one session is none of another"


@pytest.mark.req("AS-PLAN-01")
async def test_while_planning_only_tools_that_read_and_organize_run(bench: Bench, tmp_path: Path) -> None:
    notes, made = tmp_path / "notes.txt", tmp_path / "made.txt"
    notes.write_text("tag: v1\n")

    async def done(prompt: str, report: object) -> str:
        del report
        return prompt

    helper = RemoteAgent(name="helper", description="Helps.", ask=done)
    denied = (
        wanted("deploy", branch="main"),
        wanted("shell", command=f"touch {made}"),
        wanted("write_file", path="made.txt", content="x"),
        wanted("edit_file", path="notes.txt", old_text="v1", new_text="v2"),
        wanted("remember", content="We tag every release."),
    )
    runs = (
        wanted("read_file", path="notes.txt"),
        wanted("recall", query="release"),
        wanted("grep_files", pattern="tag"),
        wanted("todo_write", todos=TODOS),
        wanted("plan_write", content=PLAN),
        wanted("spawn", prompt="Look around."),
        wanted("task_list"),
    )
    person = Person(True)
    async with bench.agent(
        file_tools=True, shell=True, approve=person, working_directory=tmp_path, sub_agents=[helper]
    ) as agent:
        await agent.send(wanted("plan_enter", title="Release"))
        for each in denied:
            await agent.send(each)
            text, is_error = bench.results[-1]
            assert is_error, each
            assert "plan" in text.lower(), text
        for each in runs:
            await agent.send(each)
            assert not bench.results[-1][1], bench.results[-1]
        assert bench.ran == []
        assert (notes.read_text(), made.exists()) == ("tag: v1\n", False)
        assert agent.memory is not None
        assert await agent.memory.entries() == []
        await agent.send(wanted("plan_exit", outcome="ready"))
        assert not agent.state.standing.plan.active
        await agent.send(denied[0])
    assert bench.ran == ["main"]


@pytest.mark.req("CC-PIN")
async def test_what_must_stay_is_carried_word_for_word_whatever_a_summary_says(bench: Bench) -> None:
    bench.summary = SUMMARY.replace("Talked", "Something else altogether")
    async with Memory.open(bench.root, scope=SCOPE, settings=settings(bench.root)) as memory:
        await memory.remember("We deploy only from main, never on a Friday.", kind="decision")
    rule = "Whatever happens: <never> touch the vendor folder, & ask before you rename."
    asked = [f"Please look at part {number}: is it {number}% done?" for number in range(5)]
    async with bench.agent() as agent:
        await agent.send(wanted("plan_enter", title="Release"))
        await agent.send(wanted("plan_write", content=PLAN))
        (pinned,) = await agent.record([said(rule)])
        await agent.compactions.pin(pinned.id)
        for text in asked:
            await agent.send(text)
        for _ in range(2):
            reports = await agent.compact()
            assert [report.status for report in reports if report.act == "compact"] == ["done"]
            await agent.send("And further?")
        await agent.compact()
        assert not any(message.id == pinned.id for message in agent.window)
        await agent.send("Go on.")
    items = [text for message in bench.requests[-1].messages for text in _quoted(message.text)]
    assert any(rule in item for item in items)
    assert PLAN in items
    assert all(any(text in item for item in items) for text in asked)
    assert "We deploy only from main, never on a Friday." in bench.sent
    assert "Something else altogether" in bench.sent


async def test_an_agent_without_a_model_is_not_led_astray_by_its_reminders(bench: Bench) -> None:
    async with HarnessAgent(
        "offline", workspace=bench.root, scope=SCOPE, settings=settings(bench.root), memory_hooks=False
    ) as agent:
        assert agent.plan is not None
        await agent.plan.enter("Release", by="user")
        result = await agent.send("Remember that we tag every release.")
        # the call that would keep it is refused while planning, and is made once
        assert (result.steps, result.ending) == (2, "end")
        await agent.plan.exit("dropped", by="user")
        assert (await agent.send("Remember that we tag every release.")).steps == 2
        assert agent.memory is not None
        assert [entry.content for entry in await agent.memory.entries()] == ["we tag every release."]


async def test_a_plan_is_written_over_only_when_the_model_was_shown_all_of_it(bench: Bench) -> None:
    long = "\n".join(f"{number}. Step number {number} of what a person wrote." for number in range(900))
    async with bench.agent() as agent:
        assert agent.plan is not None
        plan = await agent.plan.enter("Release", by="user")
        (bench.root / "workspace" / plan.path).write_text("# What a person wrote\n")
        await agent.send(wanted("plan_write", content=PLAN))
        assert (bench.root / "workspace" / plan.path).read_text() == PLAN, "it was shown what it writes over"
        (bench.root / "workspace" / plan.path).write_text(long)
        await agent.send("Go on.")
        assert not any(long in item for item in bench.reminded)
        assert any("0. Step number 0 of" in item for item in bench.reminded)
        await agent.send(wanted("plan_write", content=PLAN))
        assert bench.results[-1][1]
        assert (bench.root / "workspace" / plan.path).read_text() == long


def _quoted(text: str) -> list[str]:
    """Return the items of every fenced block in a text."""
    found: list[str] = []
    for name in ("system-reminder", "summary", "instructions", "memory"):
        for part in text.split(f"<{name} ")[1:]:
            block = f"<{name} " + part.split(f"\n</{name}>")[0] + f"\n</{name}>"
            found += unfence(block) or ()
    return found
