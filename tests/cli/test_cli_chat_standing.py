"""What stands beside the window of a chat: tasks, plan, todos and rules, as a person sees and changes them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from command_line import Done, loopback_model, ricordo
from hand_made_roots import begun
from places import place_of
from ricordo.agent import Approval
from ricordo.cli.chat_input import COMMAND_NAMES
from ricordo.cli.chat_session_commands import format_ended_tasks, format_stopped_tasks, permanent_rule
from ricordo.guard import PermissionRule, ToolPattern
from ricordo.guard.permissions import PermissionQuery, decide, parse_rule
from ricordo.jobs import Task, TaskDocument, encode_tasks
from ricordo.testing import Call, Hold, RecordedRequest, Say, ScriptItem
from ricordo.workspace import tasks_path
from ricordo.workspace.layout import ROOT_TASKS

pytestmark = pytest.mark.usefixtures("time_to_close")

if TYPE_CHECKING:
    from ricordo.messages import JsonValue

ROOT = Path(".ricordo")
SESSION = "monday"
MONDAY = place_of(ROOT) / tasks_path("main", SESSION)


def _chat(*lines: str) -> Done:
    return ricordo("chat", "--session", SESSION, stdin="".join(f"{line}\n" for line in lines))


def _root() -> None:
    begun(ROOT)
    (ROOT / "project.json").write_text('{"scope": {"project": "shop"}}', encoding="utf-8")


def _task(number: int, title: str, **more: Any) -> Task:
    now = datetime.now(UTC).replace(microsecond=0)
    standard: dict[str, Any] = {"type": "local_agent", "state": "completed", "agent": "main", "session": SESSION}
    seen = more.pop("seen", now)
    return Task(
        id=f"01jd{number:022}", title=title, created_at=now - timedelta(hours=1), last_seen_at=seen, **standard | more
    )


def _keep(path: Path, *tasks: Task) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_tasks(TaskDocument(tasks=tasks)))


def _plans() -> list[Path]:
    return sorted((place_of(ROOT) / "workspace" / "plans").glob("*.md"))


def _last(request: RecordedRequest) -> str:
    return request.messages[-1].text


def test_every_command_has_its_name_for_completion_and_its_line_in_the_help() -> None:
    out = _chat("/help").out
    for name in ("tasks", "plan", "todos", "permissions"):
        assert name in COMMAND_NAMES
        assert re.search(rf"^  /{name}\b.* {{2}}\w", out, re.MULTILINE)
    assert "Did you mean /permissions?" in _chat("/permission").err


def test_before_anything_was_said_there_is_nothing_to_see_and_no_root_is_made() -> None:
    done = _chat("/tasks", "/plan", "/todos", "/permissions")
    assert done.out == "Nothing was said yet.\n" * 4
    assert not ROOT.exists()


def test_a_session_in_which_nothing_stands_says_so_of_each_part() -> None:
    _root()
    tasks, plan, todos, rules = _chat("/tasks", "/plan", "/todos", "/permissions").out.splitlines()
    assert tasks.startswith("There are no tasks.")
    assert plan == "Plan mode is off, and there is no plan."
    assert todos.startswith("There are no todos")
    assert rules.startswith("There are no rules.")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/tasks cancel", "/tasks stands alone, or takes the ID of a task, or cancel ID."),
        ("/tasks stop abcdef", "not stop abcdef."),
        ("/tasks abcdef", "No task has the id 'abcdef'"),
        ("/plan sideways", "/plan stands alone, or takes on [TITLE], off, drop or done; not sideways."),
        ("/plan off now", "not off now."),
        ("/plan off", "Plan mode is not on."),
        ("/plan done", "There is no plan."),
        ("/plan drop", "There is no plan."),
        ("/plan drop it", "not drop it."),
        ("/plan on", "Without a model there is nobody to plan"),
        ("/todos all", "/todos stands alone; not with all."),
        ("/permissions forbid shell", "takes allow, deny, ask or remove, and a pattern"),
        ("/permissions deny", "takes allow, deny, ask or remove, and a pattern"),
        ("/permissions deny two words", "A permission rule names a tool"),
        ("/permissions remove shell(ls)", "This session has no rule shell(ls): /permissions lists them."),
    ],
)
def test_what_a_command_does_not_take_is_told_with_what_it_takes(line: str, told: str) -> None:
    _root()
    done = _chat(line)
    assert (done.code, done.out) == (1, "")
    assert told in done.err


@pytest.mark.req("CC-ENFORCE")
def test_rules_are_listed_with_where_they_come_from_and_taken_back() -> None:
    ricordo("remember", "Never push by force.", "--deny", "shell(git push --force*)")
    done = _chat(
        "/permissions deny read_file(secret/*)", "/permissions allow recall(branch)", "/permissions ask remember",
        "/permissions", "/permissions remove recall(branch)", "/permissions remove deny read_file(secret/*)",
    )  # fmt: skip
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:3] == [
        "From now on in this session: deny read_file(secret/*)",
        "From now on in this session: allow recall(branch)",
        "From now on in this session: ask remember",
    ]
    listed = [re.split(r" {2,}", line.strip()) for line in lines[3:7]]
    assert [rule for rule, _ in listed] == [
        "deny read_file(secret/*)", "allow recall(branch)", "ask remember", "deny shell(git push --force*)",
    ]  # fmt: skip
    entry = ricordo("memory", "list", "--json").document["entries"][0]["id"]
    assert [source for _, source in listed] == ["of this session"] * 3 + [f"of the memory {entry}"]
    again = _chat("/permissions").out.splitlines()
    assert [line.split("  ")[1] for line in again if "session" in line] == ["ask remember"], "the rest was kept"


def test_a_rule_that_takes_the_place_of_another_or_names_no_tool_says_so() -> None:
    _root()
    done = _chat(
        "/permissions deny recall", "/permissions deny recall", "/permissions allow recall",
        "/permissions deny shel(git push*)", "/permissions",
    )  # fmt: skip
    assert done.out.splitlines() == [
        "From now on in this session: deny recall",
        "From now on in this session: deny recall",
        "From now on in this session: allow recall",
        "It takes the place of: deny recall",
        "From now on in this session: deny shel(git push*)",
        "  allow recall          of this session",
        "  deny shel(git push*)  of this session; the agent has no tool of that name",
    ]
    assert "ricordo: The rule `deny shel(git push*)` decides nothing here" in done.err


@pytest.mark.req("AS-STATE-07")
def test_a_rule_of_the_person_holds_for_what_the_model_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([Call("recall", {"query": "branch"}), Say("I may not.")], monkeypatch) as server:
        done = _chat("/permissions deny recall", "From which branch do we deploy?")
        told = [result.text for each in server.requests[1].messages for result in each.tool_results]
    assert done.out.endswith("I may not.\n")
    assert len(told) == 1
    assert "`deny recall` forbids it" in told[0]


def test_plan_mode_is_entered_before_the_first_word_and_left_without_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([Call("remember", {"content": "x"}), Say("I plan."), Say("Well.")], monkeypatch) as server:
        done = _chat("/plan on Move the database", "Go on.", "/plan", "/plan off", "And now?")
        refused = [result.text for each in server.requests[1].messages for result in each.tool_results]
        reminders = ["You are planning" in _last(request) for request in server.requests]
    assert done.code == 0
    (file,) = _plans()
    assert "move-the-database" in file.name
    assert done.out.count(f"Plan mode is on, begun by you: {file}\n  # Move the database\n") == 2
    assert "plan mode is on" in refused[0]
    assert reminders == [True, True, False]
    assert "Plan mode is off, and there is no plan.\n" in done.out
    assert file.exists()


def test_a_plan_that_is_written_is_in_force_when_the_person_ends_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    script: list[ScriptItem] = [Call("plan_write", {"content": "# Move\n\n1. Dump it."}), Say("It is written.")]
    with loopback_model(script, monkeypatch):
        done = _chat("/plan on Move", "Plan it.", "/plan off", "/plan off")
        (file,) = _plans()
        assert done.out.endswith(f"Plan mode is off, and a plan is in force: {file}\n  # Move\n\n  1. Dump it.\n")
        assert "Plan mode is not on; /plan done ends the plan in force." in done.err
        file.write_text("# Move\n\n1. Dump it twice.\n", encoding="utf-8")
        later = _chat("/plan", "/plan done")
    assert "Dump it twice." in later.out
    assert later.out.endswith("Plan mode is off, and there is no plan.\n")
    assert "Dump it twice." in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("ends", [(), ("/plan off",)])
def test_a_plan_that_is_dropped_is_gone_and_its_file_stays(
    ends: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script: list[ScriptItem] = [Call("plan_write", {"content": "# Move\n\n1. Dump it."}), Say("It is written.")]
    with loopback_model(script, monkeypatch):
        done = _chat("/plan on Move", "Plan it.", *ends, "/plan drop", "/plan")
    (file,) = _plans()
    assert done.out.splitlines()[-2:] == [
        f"The plan is dropped, and plan mode is off; its file stays: {file}",
        "Plan mode is off, and there is no plan.",
    ]
    assert "Dump it." in file.read_text(encoding="utf-8")


def test_a_plan_can_be_left_without_a_model_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([], monkeypatch):
        _chat("/plan on Move")
    assert "begun by you" in ricordo("chat", "--session", SESSION, "--model", "offline", stdin="/plan\n").out
    done = ricordo("chat", "--session", SESSION, "--model", "offline", stdin="/plan off\n")
    assert done.out == "Plan mode is off, and there is no plan.\n"


def test_a_session_in_which_only_planning_was_begun_can_be_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([], monkeypatch):
        done = ricordo("chat", stdin="/plan on Move\n")
    session = done.err.split("--session ")[1].strip()
    assert "begun by you" in ricordo("chat", "--session", session, "--model", "offline", stdin="/plan\n").out


def test_the_todos_of_the_agent_are_shown_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    todos: list[JsonValue] = [
        {"content": "Dump it", "status": "completed"},
        {"content": "Copy it", "status": "in_progress"},
        {"content": "Start it", "status": "pending"},
    ]
    with loopback_model([Call("todo_write", {"todos": todos}), Say("Noted.")], monkeypatch):
        done = _chat("Move it.", "/todos")
    assert done.out.splitlines()[1:] == ["1 of 3 todos done", "  [x] Dump it", "  [>] Copy it", "  [ ] Start it"]
    assert _chat("/todos").out.splitlines()[0] == "1 of 3 todos done"


@pytest.mark.req("HE-C3-task")
def test_tasks_are_those_of_the_session_and_the_dreams_of_the_root() -> None:
    _root()
    _keep(MONDAY, _task(1, "Read all logs", result="Nothing in them."))
    _keep(place_of(ROOT) / tasks_path("main", "tuesday"), _task(2, "Of another", session="tuesday"))
    _keep(place_of(ROOT) / ROOT_TASKS, _task(3, "Consolidate", type="dream", agent="", session=""))
    done = _chat("/tasks", "/tasks 00000001", "/tasks cancel 00000001")
    rows = done.out.splitlines()
    assert {line.split()[0] for line in rows[1:3]} == {"00000001", "00000003"}
    assert rows[3].split("  ")[0] == "01jd0000000000000000000001"
    assert "    Nothing in them." in rows
    assert rows[-1] == "Task 00000001 had ended already: it is completed."
    assert "Of another" not in done.out


@pytest.mark.req("AS-TASK-01")
def test_a_task_that_was_orphaned_is_cancelled_at_once() -> None:
    _root()
    _keep(MONDAY, _task(1, "Lost", state="running", seen=datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)))
    done = _chat("/tasks", "/tasks cancel 00000001", "/tasks")
    states = [line.split()[2] for line in done.out.splitlines() if line.startswith("00000001")]
    assert states == ["orphaned", "cancelled"]
    assert "Task 00000001 was cancelled.\n" in done.out


@pytest.mark.req("AS-TASK-01", "HE-C3-task")
def test_a_task_file_that_can_not_be_read_hides_no_dream() -> None:
    _root()
    _keep(place_of(ROOT) / ROOT_TASKS, _task(3, "Consolidate", type="dream", agent="", session=""))
    MONDAY.parent.mkdir(parents=True)
    MONDAY.write_text("not json", encoding="utf-8")
    done = _chat("/tasks")
    assert "Consolidate" in done.out
    assert f"1 task file can't be read, the tasks of the others are shown: {MONDAY}" in done.out
    assert MONDAY.read_text(encoding="utf-8") == "not json"


def _answer(request: RecordedRequest) -> ScriptItem:
    """Spawn once, and let the sub-agent, which has no `spawn`, never come to an end."""
    if "spawn" not in {tool.name for tool in request.tools}:
        return Hold(Say("Nothing in them."))
    has_spawned = any(message.tool_calls for message in request.messages)
    return Say("It is begun.") if has_spawned else Call("spawn", {"prompt": "Read all logs.", "title": "Read logs"})


def test_what_still_runs_at_the_end_is_stopped_and_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model(_answer, monkeypatch):
        done = _chat("Read all logs.", "/tasks")
        listed = ricordo("tasks", "--json").document["tasks"]
    assert "running" in done.out
    assert "1 task was still at work and was stopped with the chat: `ricordo tasks` lists them." in done.err
    assert done.err.splitlines()[-1].startswith("Learned")
    assert [(task["title"], task["state"], task["worker"]) for task in listed] == [
        ("Read logs", "cancelled", "general")
    ]
    with loopback_model(_answer, monkeypatch):
        once = ricordo("chat", "Read all logs.", "--session", "tuesday")
    assert once.out == "It is begun.\n"
    assert once.err.count("1 task was still at work") == 1


def test_the_window_is_measured_with_the_tools_that_a_chat_has(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_model([Say("Hello.")], monkeypatch):
        inside = _chat("Hello?", "/context").out.splitlines()
        outside = ricordo("context", "--window").out.splitlines()
    measured = [[line for line in lines if line.strip().startswith("t tools ")] for lines in (inside, outside)]
    assert len(measured[0]) == 1
    assert measured[0] == measured[1]


@pytest.mark.parametrize(
    ("asked", "rules", "pattern"),
    [
        (Approval(tool="shell", action="run", target="git status"), (), "shell(git status)"),
        (Approval(tool="shell", action="run", target="make && make test"), (), "shell(make && make test)"),
        (Approval(tool="write_file", action="create", target="src/a.py"), (), "write_file(src/a.py)"),
        (Approval(tool="edit_file", action="change", target="(a) b.py"), (), "edit_file((a) b.py)"),
        (Approval(tool="shell", action="run", target="rm *.tmp"), (), ""),
        (Approval(tool="shell", action="run", target=""), (), ""),
        (Approval(tool="shell", action="run", target=f"login sk-ant-api03-{'q' * 93}AA"), (), ""),
        (Approval(tool="shell", action="run", target="x" * 400), (), ""),
        (Approval(tool="shell", action="call", target="git push"), (), ""),
        (Approval(tool="plan_exit", action="carry out", target="/plans/a.md"), (), ""),
        (Approval(tool="write_file", action="create", target="src/a.py"), ("ask write_file(src/*)",), ""),
    ],
    ids=[
        *("command", "chained", "new file", "changed file", "star", "nothing", "secret", "long", "question of a rule"),
        *("plan", "a rule that asks all the same"),
    ],
)
def test_always_is_offered_only_where_a_rule_says_just_that_call(
    asked: Approval, rules: Sequence[str], pattern: str
) -> None:
    assert permanent_rule(asked, [parse_rule(rule) for rule in rules]) == pattern


@given(
    st.sampled_from(["shell", "write_file", "edit_file"]),
    st.text(st.sampled_from("ab *()\\\n./u00"), min_size=1, max_size=12),
    st.text(st.sampled_from("ab *()\\\n./u00"), min_size=1, max_size=12),
)
def test_what_is_always_let_through_is_that_call_and_no_other(tool: str, target: str, other: str) -> None:
    pattern = permanent_rule(Approval(tool=tool, action="run", target=target), ())
    assume(pattern)
    rules = [parse_rule(f"allow {pattern}")]
    assert rules == [PermissionRule(decision="allow", pattern=ToolPattern(tool=tool, argument=target))]
    assert decide(rules, PermissionQuery(tool=tool, argument=target)) is rules[0]
    if " ".join(other.split()) != " ".join(target.split()):
        assert decide(rules, PermissionQuery(tool=tool, argument=other)) is None


def test_the_end_of_one_task_names_the_command_that_shows_it() -> None:
    one, other = _task(1, "Read\x1b logs"), _task(2, "Count", state="failed")
    assert format_ended_tasks([one]) == "· task 00000001 (Read\\x1b logs) completed: /tasks 00000001"
    assert format_ended_tasks([one, other]).endswith("task 00000002 (Count) failed: /tasks")
    assert format_stopped_tasks(2).startswith("2 tasks were still at work and were stopped")
