"""The gate: no tool is called that plan mode or a rule forbids, and nobody is asked who need not be."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from desks import Person
from fake_models import FakeModel, FunctionTool, call, calling, reply, say
from hand_clock import HandClock
from held_standing import HeldStanding
from ricordo.agent import AgentLoop, Approval, Tool, ToolContext, ToolOutput, Turn, tool
from ricordo.agent.permissions import Permissions, RuleGate, describe_call
from ricordo.agent.tool_calls import GateDecision, PermissionGate
from ricordo.agent.tools import ToolEffect
from ricordo.errors import InvalidSetting, StorageError
from ricordo.events import Emitter, Event
from ricordo.guard import PermissionRule, render_rule
from ricordo.guard.permissions import PermissionQuery, parse_rule
from ricordo.messages import JsonValue, ToolCall, ToolResult, ToolSpec, dumps
from ricordo.scope import Scope
from ricordo.workspace import PlanState, WorkState

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-ENFORCE")]

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
CONTEXT = ToolContext(call_id="c1", scope=Scope(user="me"), agent="main", session="s1")


def rules(*lines: str) -> tuple[PermissionRule, ...]:
    return tuple(parse_rule(line) for line in lines)


def named(name: str, effect: ToolEffect = "acts") -> Tool:
    async def act(command: str = "", path: str = "", note: str = "") -> str:
        return f"{command}{path}{note}"

    return tool(act, name=name, effect=effect)


def deciding(act: Callable[[], Awaitable[GateDecision]]) -> PermissionGate:
    async def gate(tool: Tool, arguments: Mapping[str, JsonValue], context: ToolContext) -> GateDecision:
        del tool, arguments, context
        return await act()

    return gate


def raising(error: BaseException) -> PermissionGate:
    async def act() -> GateDecision:
        raise error

    return deciding(act)


async def decided(gate: PermissionGate, name: str, effect: ToolEffect = "acts", **arguments: JsonValue) -> GateDecision:
    return await gate(named(name, effect), arguments, CONTEXT)


def remembering(*lines: str, error: StorageError | None = None) -> Callable[[], Awaitable[Sequence[PermissionRule]]]:
    async def remembered() -> Sequence[PermissionRule]:
        await anyio.lowlevel.checkpoint()
        if error is not None:
            raise error
        return rules(*lines)

    return remembered


@pytest.mark.req("AS-PLAN-01")
@pytest.mark.parametrize(("effect", "runs"), [("acts", False), ("reads", True), ("organizes", True)])
async def test_while_planning_only_what_reads_or_plans_is_called(effect: ToolEffect, runs: bool) -> None:
    standing = WorkState(plan=PlanState(active=True, path="plans/move.md"), permissions=tuple(rules("allow deploy")))
    gate = RuleGate(lambda: standing, configured=rules("allow *"), load_remembered=remembering("allow deploy"))
    verdict = await decided(gate, "deploy", effect)
    if runs:
        assert verdict == GateDecision(approved=True)
    else:
        assert "/plans/move.md" in verdict.refusal
        assert "`plan_exit`" in verdict.refusal
        assert "deploy was not run" in verdict.refusal
    assert not (await decided(RuleGate(WorkState), "deploy", effect)).refusal


@pytest.mark.req("AS-PLAN-01")
async def test_a_tool_that_does_not_say_what_it_changes_is_not_called_while_planning() -> None:
    async def act(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> ToolOutput:
        return "done"

    gate = RuleGate(lambda: WorkState(plan=PlanState(active=True)))
    assert "plan mode is on" in (await gate(FunctionTool("deploy", act), {}, CONTEXT)).refusal


@pytest.mark.req("AS-PLAN-01")
async def test_a_plan_in_force_stops_nothing() -> None:
    gate = RuleGate(lambda: WorkState(plan=PlanState(active=False, path="plans/move.md")))
    assert await decided(gate, "deploy") == GateDecision()


@pytest.mark.req("AS-STATE-07")
@pytest.mark.parametrize("place", ["given", "session", "remembered"])
async def test_a_denial_from_anywhere_refuses_with_its_words(place: str) -> None:
    [rule] = rules("deny shell(git push*)")
    spoken = replace(rule, reason="Only Nadia pushes.")
    every: dict[str, tuple[PermissionRule, ...]] = {"given": (), "session": (), "remembered": (), place: (spoken,)}

    async def remembered() -> Sequence[PermissionRule]:
        return (*rules("allow shell"), *every["remembered"])

    standing = WorkState(permissions=(*rules("allow shell"), *every["session"]))
    gate = RuleGate(lambda: standing, configured=(*rules("allow shell"), *every["given"]), load_remembered=remembered)
    verdict = await decided(gate, "shell", command="cd x && git push")
    assert verdict.refusal == (
        "shell was not run: the rule `deny shell(git push*)` forbids it. Reason: Only Nadia pushes."
    )
    assert await decided(gate, "shell", command="ls") == GateDecision(approved=True)


async def test_a_denial_and_a_question_hold_for_what_a_path_really_names_and_a_permission_for_what_it_says() -> None:
    looked: list[str] = []

    async def real(texts: Sequence[str]) -> Sequence[str]:
        looked.extend(texts)
        await anyio.lowlevel.checkpoint()
        return [text.replace("link/", "secret/") for text in texts]

    lines = rules("deny read_file(secret/*)", "ask write_file(secret/*)", "allow move(secret/*)")
    person = Person(False)
    gate = RuleGate(WorkState, configured=lines, approve=person, resolve_paths=real)
    assert "`deny read_file(secret/*)` forbids it" in (await decided(gate, "read_file", path="link/key")).refusal
    assert "was not approved" in (await decided(gate, "write_file", path="link/key")).refusal
    assert [asked.target for asked in person.asked] == ["link/key"]
    assert await decided(gate, "read_file", path="src/key") == GateDecision()
    looked.clear()
    assert await decided(gate, "move", path="link/key") == GateDecision(), (
        "nothing is looked for where nothing is forbidden"
    )
    assert await decided(gate, "shell", command="cat link/key") == GateDecision(), "words of a command are no paths"
    assert looked == []


async def test_what_no_rule_speaks_of_runs_as_without_a_gate() -> None:
    gate = RuleGate(WorkState, configured=rules("deny shell(git push*)", "allow read_file"))
    assert await decided(gate, "shell", command="ls") == GateDecision()


@pytest.mark.req("AS-STATE-07")
async def test_the_rules_of_now_decide_and_not_those_of_the_beginning() -> None:
    kept = HeldStanding()
    gate = RuleGate(lambda: kept.work_state)
    assert await decided(gate, "shell", command="ls") == GateDecision()
    await Permissions(kept).deny("shell(ls*)")
    assert (await decided(gate, "shell", command="ls")).refusal


async def test_a_question_shows_a_person_the_whole_call() -> None:
    for person in (Person(True), Person(False)):
        gate = RuleGate(WorkState, configured=rules("ask deploy", "allow deploy"), approve=person)
        verdict = await decided(gate, "deploy", path="shop", note="größer\n\ud83d")
        assert bool(verdict.refusal) == (not person.answer)
        [asked] = person.asked
        assert (asked.tool, asked.action, asked.target) == ("deploy", "call", "shop")
        assert '"note": "größer\\n' in asked.change
        asked.change.encode()
    assert verdict.refusal == "deploy was not run: it was not approved."


async def test_a_call_with_one_argument_is_shown_once() -> None:
    yes = Person(True)
    gate = RuleGate(WorkState, configured=rules("ask *"), approve=yes)
    await decided(gate, "shell", command="ls")
    await decided(gate, "shell")
    assert yes.asked == [Approval(tool="shell", action="call", target=target) for target in ("ls", "")]


@pytest.mark.parametrize(("name", "approved"), [("shell", True), ("write_file", False), ("mine", False)])
async def test_a_person_who_was_shown_a_command_is_not_asked_for_it_again(name: str, approved: bool) -> None:
    gate = RuleGate(WorkState, configured=rules("ask *"), approve=Person(True))
    assert await decided(gate, name, path="a") == GateDecision(approved=approved)


async def test_with_nobody_to_ask_a_question_refuses() -> None:
    refused = (await decided(RuleGate(WorkState, configured=rules("ask deploy")), "deploy")).refusal
    assert "`ask deploy`" in refused
    assert "nobody to ask" in refused


async def test_when_remembered_rules_cannot_be_read_only_what_acts_is_refused() -> None:
    gate = RuleGate(
        WorkState,
        configured=rules("allow *", "deny read_file(secrets/*)"),
        load_remembered=remembering(error=StorageError("The disk is gone.")),
    )
    refused = (await decided(gate, "deploy")).refusal
    assert "a rule in memory may forbid it" in refused
    assert "The disk is gone." in refused
    assert await decided(gate, "read_file", "reads", path="a") == GateDecision(approved=True)
    assert await decided(gate, "todo_write", "organizes") == GateDecision(approved=True)
    assert "deny read_file" in (await decided(gate, "read_file", "reads", path="secrets/a")).refusal


async def test_questions_come_one_at_a_time_and_an_answer_may_decide_the_next() -> None:
    kept, asking, questions = HeldStanding(), 0, 0

    async def approve(asked: Approval) -> bool:
        del asked
        nonlocal asking, questions
        asking, questions = asking + 1, questions + 1
        assert asking == 1
        await anyio.lowlevel.checkpoint()
        if questions == 2:
            await Permissions(kept).allow("deploy")
        asking -= 1
        return True

    await Permissions(kept).ask("deploy")
    gate = RuleGate(lambda: kept.work_state, approve=approve)
    verdicts: list[GateDecision] = []

    async def one() -> None:
        verdicts.append(await decided(gate, "deploy"))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
    assert questions == 2
    assert sorted(verdict.approved for verdict in verdicts) == [False, False, True, True, True]


SPEC = ToolSpec(
    name="t", description="", parameters={"type": "object", "properties": {"text": {}, "path": {}, "command": {}}}
)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"command": "c", "text": "t", "path": "p"}, "p"),
        ({"command": "c", "text": "t"}, "c"),
        ({"path": 5, "command": "c"}, "c"),
        ({"other": "o", "text": "t"}, "t"),
        ({"other": "o", "more": "m"}, "o"),
        ({"text": ["t"]}, ""),
        ({}, ""),
    ],
)
def test_what_a_call_acts_on_is_told_by_the_names_of_its_arguments(
    arguments: dict[str, JsonValue], argument: str
) -> None:
    called = describe_call(SPEC, arguments)
    assert (called.tool, called.argument) == ("t", argument)
    assert describe_call(replace(SPEC, parameters={}), {"a": "x"}) == PermissionQuery(
        tool="t", argument="x", texts=("x",)
    )


def test_all_texts_of_a_call_are_seen() -> None:
    assert describe_call(SPEC, {"text": ["t", {"k": "v"}], "path": "p"}).texts == ("t", "k", "v", "p")


@pytest.mark.req("AS-STATE-07")
async def test_a_rule_for_the_same_calls_takes_the_place_of_the_older_one() -> None:
    kept = HeldStanding()
    permissions = Permissions(kept)
    first = await permissions.ask("write_file(src/*)", why="It is new.")
    await permissions.deny("shell")
    assert (first.source, first.reason) == ("user", "It is new.")
    assert [render_rule(rule) for rule in permissions.rules] == ["ask write_file(src/*)", "deny shell"]
    await permissions.allow(" write_file(src/*)")
    assert [render_rule(rule) for rule in permissions.rules] == ["deny shell", "allow write_file(src/*)"]


@pytest.mark.parametrize(
    ("text", "removes"),
    [
        ("shell(ls)", True),
        ("deny shell(ls)", True),
        (" deny  shell (ls) ", True),
        ("allow shell(ls)", False),
        ("shell", False),
        ("deny", False),
    ],
)
async def test_a_rule_is_taken_back_by_its_line_or_its_pattern(text: str, removes: bool) -> None:
    kept = HeldStanding()
    permissions = Permissions(kept)
    await permissions.deny("shell(ls)")
    await permissions.allow("read_file")
    assert await permissions.remove(text) == removes
    assert "allow read_file" in map(render_rule, permissions.rules)
    assert ("deny shell(ls)" in map(render_rule, permissions.rules)) != removes
    assert kept.kept == 2 + removes


@pytest.mark.parametrize("text", ["git push", "", "shell()", None, 5])
async def test_a_text_that_is_no_rule_changes_nothing(text: str) -> None:
    kept = HeldStanding()
    permissions = Permissions(kept)
    for act in (permissions.allow, permissions.deny, permissions.ask, permissions.remove):
        with pytest.raises(InvalidSetting, match="such as"):
            await act(text)
    assert kept.kept == 0


@pytest.mark.parametrize("why", [None, 5])
async def test_a_reason_that_is_no_text_changes_nothing(why: str) -> None:
    kept = HeldStanding()
    with pytest.raises(InvalidSetting, match="is a text, empty for no reason"):
        await Permissions(kept).deny("shell", why=why)
    assert kept.kept == 0


@pytest.mark.req("FC-SECRET")
@pytest.mark.parametrize("text", [f"shell(echo {TOKEN}*)", TOKEN, f"shell(echo \\u0067{TOKEN[1:]})"])
async def test_a_rule_with_a_secret_is_refused_for_it_would_be_another_one_on_disk(text: str) -> None:
    kept = HeldStanding()
    permissions = Permissions(kept)
    for act in (permissions.allow, permissions.deny, permissions.ask):
        with pytest.raises(InvalidSetting, match="A rule holds no secrets"):
            await act(text)
    assert kept.kept == 0


async def test_a_rule_for_a_tool_that_is_not_there_is_kept_and_told_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    permissions = Permissions(HeldStanding())
    await permissions.deny("shel(git push*)")
    assert caplog.messages == [], "before the tools are known nothing is told"
    permissions.set_tool_names(["shell", "read_file"], rules("allow shell", "deny read_fil(a)", "ask mcp__*"))
    await permissions.deny("shel(git pull*)")
    await permissions.deny("shell(git push*)")
    await permissions.ask("*")
    told = "The rule `%s` decides nothing here: the agent has no tool of that name. Did you mean %s?"
    assert caplog.messages == [told % ("deny read_fil(a)", "read_file"), told % ("deny shel(git pull*)", "shell")]
    assert [permissions.names_unknown_tool(rule) for rule in permissions.rules] == [True, True, False, False]


@dataclass(frozen=True, kw_only=True)
class Told:
    results: tuple[ToolResult, ...]
    events: Sequence[Event]


async def told(gate: PermissionGate | None, *calls: ToolCall, seconds: float | None = None, **acts: object) -> Told:
    """Run `calls` against tools that return the given values, behind `gate`."""

    def made(name: str, act: object) -> FunctionTool:
        async def run(_arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolOutput:
            return f"{act} approved" if context.approved else str(act)

        return FunctionTool(name, run)

    model, events = FakeModel(calling(*calls), reply("done")), list[Event]()
    harness = AgentLoop(
        model,
        tools=[made(name, act) for name, act in acts.items()],
        gate=gate,
        tool_timeout=seconds,
        emitter=Emitter(HandClock(), (events.append,)),
    )
    turn = Turn(scope=Scope(user="me"), agent="main", session="s1", messages=(say("go"),))
    assert str(await harness.run(turn)) == "done"
    finished = [event for event in events if (event.stage, event.status) == ("tool", "finished")]
    return Told(results=model.asked[1][-1].tool_results, events=finished)


@pytest.mark.req("AS-PLAN-01")
async def test_a_refused_call_is_told_to_the_model_and_counted_and_others_run() -> None:
    gate = RuleGate(WorkState, configured=rules("deny write(secrets/*)", "allow read"))
    arguments = dumps({"path": "./secrets/a"})
    found = await told(gate, call("write", arguments), call("read"), call("none"), read="r", write="w", none="n")
    assert [(result.is_error, result.text) for result in found.results] == [
        (True, "write was not run: the rule `deny write(secrets/*)` forbids it."),
        (False, "r approved"),
        (False, "n"),
    ]
    counts = {event.reason: event.counts for event in found.events}
    assert (counts["write"]["refused"], counts["write"]["errors"]) == (1, 1)
    assert "refused" not in counts["read"]


async def test_a_call_that_is_none_is_not_decided_on() -> None:
    found = await told(
        raising(AssertionError("asked")), call("gone"), call("read", "[1]", id="2"), call("read", "{", id="3"), read="r"
    )
    assert all("AssertionError" not in result.text for result in found.results)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StorageError("The disk is gone."), "The disk is gone."),
        (ValueError("secret"), "ValueError"),
        (SystemExit(1), "SystemExit"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_gate_that_fails_refuses_the_call_and_not_the_turn(error: BaseException, said: str) -> None:
    [result] = (await told(raising(error), call("read"), read="r")).results
    assert result.is_error
    assert result.text == f"read was not run, because it could not be decided whether it may be: {said}"


async def test_the_time_of_a_tool_begins_when_a_person_has_answered() -> None:
    async def wait() -> GateDecision:
        await anyio.sleep(0.004)
        return GateDecision()

    [result] = (await told(deciding(wait), call("read"), seconds=0.002, read="r")).results
    assert result.text == "r"


async def test_a_turn_that_is_cancelled_while_a_person_is_asked_ends() -> None:
    reached = anyio.Event()

    async def approve(asked: Approval) -> bool:
        del asked
        reached.set()
        await anyio.sleep_forever()
        return True

    gate = RuleGate(WorkState, configured=rules("ask read"), approve=approve)
    async with anyio.create_task_group() as group:
        group.start_soon(partial(told, gate, call("read"), read="r"))
        await reached.wait()
        group.cancel_scope.cancel()
    assert group.cancel_scope.cancelled_caught
