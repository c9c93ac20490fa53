"""What stands beside an agent's window is the same after compactions and in the next process, and decides the same."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, said, settings
from desks import Person
from hand_made_roots import begun
from places import place_of
from ricordo import CompactionConfig, HarnessAgent, Memory, MemoryConfig, RemoteAgent, SubAgent
from ricordo.agent import ToolContext, tool
from ricordo.guard import parse_fence
from ricordo.messages import JsonValue, Message, Role, Text, ToolSpec, get_mark
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem

pytestmark = pytest.mark.anyio

PLAN = "# Release\n\n1. Tag it <now>.\n2. Say so to everybody.\n"
LONG = "Some more words about it, as people use them. " * 40
SUMMARY = "## SESSION INTENT\n- Talk.\n## SUMMARY\n- Talked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"
LISTED = [("Tag it", "completed"), ("Build it", "in_progress"), ("Say so", "pending"), ("Rest", "pending")]
TODOS: list[JsonValue] = [{"content": content, "status": status} for content, status in LISTED]
SMALL = CompactionConfig(trigger_messages=12, keep_messages=2)


@dataclass
class Bench:
    """An agent whose model makes the call that the user names, as `{"tool": ..., "with": {...}}`, and then says so."""

    root: Path
    summary: str = SUMMARY
    ran: list[str] = field(default_factory=list)
    approved: set[str] = field(default_factory=set)
    requests: list[RecordedRequest] = field(default_factory=list)

    def agent(self, **options: object) -> HarnessAgent:
        given = {
            "session": "s",
            "tools": [self.deploy()],
            "compaction": CompactionConfig(trigger_messages=1_000, keep_messages=2),
            "planning": True,
            "memory_hooks": False,
            "settings": settings(self.root),
        } | options
        return HarnessAgent(ScriptedModel(self._answer), **agent_arguments(workspace=self.root, scope=SCOPE, **given))

    @property
    def reminded(self) -> tuple[str, ...]:
        """What the last request was reminded of, item by item."""
        last = self.requests[-1].messages[-1]
        return (parse_fence(last.text) or ()) if get_mark(last) == "reminder" else ()

    @property
    def sent(self) -> str:
        """All text of the last request."""
        return "\n".join(message.text for message in self.requests[-1].messages)

    @property
    def results(self) -> list[tuple[str, bool]]:
        """What the last request told of calls: text, and whether it is an error."""
        parts = [result for message in self.requests[-1].messages for result in message.tool_results]
        return [(result.text, result.is_error) for result in parts]

    def deploy(self) -> object:
        async def deploy(branch: str, context: ToolContext) -> str:
            """Deploy a branch."""
            self.ran.append(branch)
            self.approved |= {branch} if context.approved else set()
            return f"deployed {branch}"

        return tool(deploy)

    def _answer(self, request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return Say(json.dumps({"summary": self.summary, "lessons": []}) if request.schema else self.summary)
        self.requests.append(request)
        last = [message for message in request.messages if get_mark(message) is None][-1]
        if last.tool_results or not last.text.startswith("{"):
            return Say(f"Done. {LONG}")
        asked, _ = json.JSONDecoder().raw_decode(last.text)
        return Call(asked["tool"], asked["with"])


def wanted(name: str, **arguments: JsonValue) -> str:
    return json.dumps({"tool": name, "with": arguments})


async def compacted(agent: HarnessAgent) -> None:
    """Talk a little, and have it summed up."""
    await agent.record([said(f"Number {number}. {LONG}") for number in range(4)])
    reports = await agent.compact()
    assert [report.status for report in reports if report.action == "compact"] == ["done"]
    assert get_mark(agent.window[0]) == "summary"


async def outgrown(agent: HarnessAgent) -> None:
    """Talk until the next request is summed up by itself, and send that."""
    texts = (f"Part {number}. {LONG}" for number in range(12))
    await agent.record([Message(role="assistant", parts=(Text(text=text),)) for text in texts])
    before = len(await agent.compactions.all())
    await agent.send("Go on.")
    assert len(await agent.compactions.all()) > before
    assert get_mark(agent.window[0]) == "summary"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / ".ricordo")


@pytest.mark.req("AS-STATE-03", "CC-PIN")
async def test_plan_mode_and_its_file_are_the_same_after_a_compaction_and_the_banner_is_in_the_next_request(
    bench: Bench,
) -> None:
    async with bench.agent() as agent:
        await agent.send(wanted("plan_enter", title="Release"))
        await agent.send(wanted("plan_write", content=PLAN))
        before = agent.state.work_state.plan
        file = place_of(bench.root) / "workspace" / before.path
        assert (before.active, before.path.startswith("plans/"), file.read_text()) == (True, True, PLAN)
        await compacted(agent)
        assert agent.state.work_state.plan == before
        assert file.read_text() == PLAN
        await agent.send("Go on.")
        assert bench.reminded[0].startswith("You are planning.")
        assert f"/{before.path}" in bench.reminded[0]
    async with bench.agent(compaction=SMALL) as agent:
        assert agent.state.work_state.plan == before
        async with agent.stream("Still there?") as heard:
            assert [event async for event in heard]
        assert bench.reminded[0].startswith("You are planning.")
        assert PLAN in bench.reminded
        longer = f"{PLAN}3. Rest.\n"
        await agent.send(wanted("plan_write", content=longer))
        assert longer not in bench.reminded, "the window holds it word for word"
        await outgrown(agent)
        assert agent.state.work_state.plan == before
        assert bench.reminded[0].startswith("You are planning.")
        assert f"/{before.path}" in bench.reminded[0]
        assert longer in bench.reminded
        await agent.send(wanted("plan_exit"))
        in_force = agent.state.work_state.plan
        assert (in_force.active, in_force.path) == (False, before.path)
        await outgrown(agent)
        assert agent.state.work_state.plan == in_force
    assert f"The plan /{before.path} is in force" in bench.reminded[0]
    assert longer in bench.reminded
    assert file.read_text() == longer


@pytest.mark.req("AS-STATE-06", "CC-PIN")
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
    async with bench.agent(compaction=SMALL) as agent:
        assert agent.todos == kept
        await agent.send("And now?")
        assert "[x] Build it\n[>] Say so" in "\n".join(bench.reminded)
        await outgrown(agent)
        assert agent.todos == kept
    assert "[x] Build it\n[>] Say so" in "\n".join(bench.reminded)


@pytest.mark.req("AS-STATE-07", "CC-ENFORCE")
async def test_a_rule_decides_the_same_call_before_and_after_a_compaction_and_a_reload(bench: Bench) -> None:
    person = Person(True)
    branches = ("wild", "main", "release/1", "other")

    async def decided(agent: HarnessAgent) -> list[str]:
        bench.ran.clear()
        bench.approved.clear()
        person.asked.clear()
        for branch in branches:
            await agent.send(wanted("deploy", branch=branch))
        found = dict.fromkeys(bench.ran, "made") | dict.fromkeys((asked.target for asked in person.asked), "asked")
        found |= dict.fromkeys(bench.approved, "let through")
        return [found.get(branch, "refused") for branch in branches]

    expected = ["refused", "let through", "asked", "made"]
    async with bench.agent(approve=person) as agent:
        assert await decided(agent) == ["made"] * 4
        await agent.permissions.deny("deploy(wild)", why="Nobody wants it.")
        await agent.permissions.allow("deploy(rel*)")
        await agent.permissions.ask("deploy(release/*)")
        await agent.permissions.deny("deploy(ma*)")
        await agent.permissions.allow("deploy(ma*)")
        granted = agent.permissions.rules
        assert await decided(agent) == expected
        await compacted(agent)
        assert agent.permissions.rules == granted
        assert await decided(agent) == expected
    async with bench.agent(approve=person, compaction=SMALL) as agent:
        assert agent.permissions.rules == granted
        await outgrown(agent)
        assert agent.permissions.rules == granted
        assert await decided(agent) == expected
    async with bench.agent(approve=Person(False)) as agent:
        assert await decided(agent) == ["refused", "let through", "refused", "made"]
    async with bench.agent(session="another") as agent:
        assert await decided(agent) == ["made"] * 4, "a rule of one session is none of another"


@dataclass
class Mute:
    """A tool of somebody else, which does not say what it changes."""

    ran: list[str]
    spec: ToolSpec = field(default=ToolSpec(name="mute", description="Does something.", parameters={"type": "object"}))

    async def __call__(self, arguments: object, context: ToolContext) -> str:
        del arguments, context
        self.ran.append("mute")
        return "done"


@pytest.mark.req("AS-PLAN-01")
async def test_while_planning_only_tools_that_read_and_organize_run(bench: Bench, tmp_path: Path) -> None:
    notes, made = tmp_path / "notes.txt", tmp_path / "made.txt"
    notes.write_text("tag: v1\n")
    asked: list[str] = []

    async def done(prompt: str, report: object) -> str:
        del report
        asked.append(prompt)
        return prompt

    helper = RemoteAgent(name="helper", description="Helps.", ask=done)
    local = SubAgent(name="local", description="Works here.")
    deploys: dict[str, JsonValue] = {"agent": "local", "prompt": wanted("deploy", branch="sub"), "wait": True}
    denied: dict[str, dict[str, JsonValue]] = {
        "deploy": {"branch": "main"},
        "mute": {},
        "shell": {"command": f"touch {made}"},
        "write_file": {"path": "made.txt", "content": "x"},
        "edit_file": {"path": "notes.txt", "old_text": "v1", "new_text": "v2"},
        "remember": {"content": "We tag every release."},
        "forget": {"entry_id": "1"},
        "memory": {"command": "view", "path": "/memories"},
        "spawn": {"prompt": "Look around.", "agent": "helper"},
    }
    runs: dict[str, dict[str, JsonValue]] = {
        "plan_enter": {},
        "plan_write": {"content": PLAN},
        "plan_read": {},
        "todo_write": {"todos": TODOS},
        "read_file": {"path": "notes.txt"},
        "list_files": {},
        "glob_files": {"pattern": "*.txt"},
        "grep_files": {"pattern": "tag"},
        "recall": {"query": "release"},
        "memory_search": {"query": "release"},
        "session_list": {},
        "session_history": {"session_id": "s"},
        "session_search": {"query": "release"},
        "spawn": {"prompt": "Look around.", "agent": "local", "wait": True},
        "task_list": {},
    }
    answers: dict[str, dict[str, JsonValue]] = {
        "memory_get": {"id": "1"},
        "expand": {"handle": "1"},
        "task_output": {"task_id": "1"},
        "task_cancel": {"task_id": "1"},
    }
    async with bench.agent(
        file_tools=True, shell=True, approve=Person(True), working_directory=tmp_path, sub_agents=[helper, local],
        tools=[bench.deploy(), Mute(bench.ran)], permissions=["allow *"], opt_in_tools=["forget", "memory"],
    ) as agent:  # fmt: skip
        await agent.send(wanted("plan_enter", title="Release"))
        assert {each.name for each in bench.requests[-1].tools} == {*denied, *runs, *answers, "plan_exit"}
        for name, arguments in denied.items():
            await agent.send(wanted(name, **arguments))
            text, is_error = bench.results[-1]
            assert is_error, name
            assert "plan mode is on" in text
        for name, arguments in runs.items():
            await agent.send(wanted(name, **arguments))
            assert not bench.results[-1][1], bench.results[-1]
        for name, arguments in answers.items():
            await agent.send(wanted(name, **arguments))
            assert "was not run" not in bench.results[-1][0], name
        await agent.send(wanted("spawn", **deploys))
        assert bench.ran == [], "a sub-agent is held by it too"
        assert asked == [], "and one that can't be held is not asked"
        assert (notes.read_text(), made.exists()) == ("tag: v1\n", False)
        assert agent.memory is not None
        assert await agent.memory.entries() == []
        await agent.send(wanted("plan_exit", outcome="ready"))
        assert not agent.state.work_state.plan.active
        for name in ("deploy", "mute"):
            await agent.send(wanted(name, **denied[name]))
        await agent.send(wanted("spawn", **deploys))
        await agent.send(wanted("spawn", **denied["spawn"]))
        await agent.tasks.wait()
    assert bench.ran == ["main", "mute", "sub"]
    assert asked == ["Look around."]


@pytest.mark.req("CC-PIN", "AS-STATE-03", "AS-COMPACT-10")
async def test_what_must_stay_is_carried_word_for_word_whatever_a_summary_says(bench: Bench) -> None:
    bench.summary = SUMMARY.replace("Talked", "Something else altogether")
    house, kept = "Answer in <English> & nothing else.", "We deploy only from main, never on a Friday."
    (place_of(begun(bench.root, bench.root.parent / "data")) / "workspace" / "rules").mkdir(parents=True)
    (place_of(bench.root) / "workspace" / "rules" / "house.md").write_text(house)
    async with Memory.open(bench.root, scope=SCOPE, settings=settings(bench.root)) as memory:
        await memory.remember(kept, kind="decision")
    rules = [
        "Whatever happens:\n\n  - <never> touch  the vendor folder,\n  - & ask.\n",
        "Say </summary> at the end.",
        "Be <brief>.",
    ]
    asked = ["Use tabs.", *(f"Please look at part {number}: is it {number}% done?" for number in range(4)), "Yes."]
    async with bench.agent() as agent:
        await agent.send(wanted("plan_enter", title="Release"))
        await agent.send("What is there to do first of all?")
        roles: tuple[Role, ...] = ("assistant", "user", "system")
        pinned = await agent.record(
            [Message(role=role, parts=(Text(text=text),)) for role, text in zip(roles, rules, strict=True)]
        )
        for message in pinned[:2]:
            await agent.compactions.pin(message.id)
    must = [house, kept, *rules]
    async with bench.agent(compaction=SMALL) as agent:
        await agent.send(wanted("plan_write", content=PLAN))
        since = len(bench.requests)
        for number, text in enumerate(asked):
            if number == 3:
                await agent.send(wanted("plan_exit"))
            # what a model writes may be no summary at all
            bench.summary = "" if number == 2 else SUMMARY.replace("Talked", "Something else altogether")
            await outgrown(agent)
            await agent.send(text)
        await outgrown(agent)
        assert len(await agent.compactions.all()) > len(asked)
        assert {message.id for message in agent.window}.isdisjoint(message.id for message in pinned)
    for request in bench.requests[since:]:
        told = _told(request)
        assert [each for each in must if each not in told] == []
        assert PLAN in told
    assert [each for each in asked if each not in told] == []
    assert "Something else altogether" in bench.sent


@pytest.mark.req("CC-PIN", "AS-COMPACT-10")
async def test_what_the_user_asked_is_carried_up_to_a_budget_the_first_and_the_latest_of_it(bench: Bench) -> None:
    asked = [f"Please look at part {number} of the release, and tell me of it." for number in range(20)]
    few = CompactionConfig(trigger_messages=1_000, keep_messages=2, carry_tokens=200)
    async with bench.agent(compaction=few) as agent:
        for text in asked:
            await agent.send(text)
        await agent.compact()
        await agent.send("Go on.")
    carried = [text for text in asked if text in _quoted(bench.requests[-1].messages[1].text)]
    assert 2 < len(carried) < 10
    assert carried == [asked[0], *asked[20 - len(carried) : -1]]


async def test_an_agent_without_a_model_is_not_led_astray_by_its_reminders(bench: Bench) -> None:
    async with HarnessAgent(
        "offline", memory=MemoryConfig(root=bench.root, hooks=False), scope=SCOPE, settings=settings(bench.root)
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
        (place_of(bench.root) / "workspace" / plan.path).write_text("# What a person wrote\n")
        await agent.send(wanted("plan_write", content=PLAN))
        assert (place_of(bench.root) / "workspace" / plan.path).read_text() == PLAN, "it was shown what it writes over"
        (place_of(bench.root) / "workspace" / plan.path).write_text(long)
        await agent.send("Go on.")
        assert not any(long in item for item in bench.reminded)
        assert any("0. Step number 0 of" in item for item in bench.reminded)
        await agent.send(wanted("plan_write", content=PLAN))
        assert bench.results[-1][1]
        assert (place_of(bench.root) / "workspace" / plan.path).read_text() == long


def _told(request: RecordedRequest) -> list[str]:
    """Return what a request says, each text on its own, also as an item of a block or as what a call writes."""
    texts = [message.text for message in request.messages]
    writes = [json.loads(call.arguments).get("content", "") for each in request.messages for call in each.tool_calls]
    return [*texts, *writes, *(item for text in texts for item in _quoted(text))]


def _quoted(text: str) -> list[str]:
    """Return the items of every fenced block in a text."""
    found: list[str] = []
    for name in ("system-reminder", "summary", "instructions", "memory"):
        for part in text.split(f"<{name} ")[1:]:
            block = f"<{name} " + part.split(f"\n</{name}>")[0] + f"\n</{name}>"
            found += parse_fence(block) or ()
    return found
