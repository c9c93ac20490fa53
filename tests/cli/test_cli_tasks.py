"""Tasks from the command line: what runs in the background in any session of a root, and how it is stopped."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from command_line import ricordo
from hand_made_roots import begun
from places import place_of
from ricordo.cli.commands import tasks as commands
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.events import Emitter
from ricordo.guard import Redactor
from ricordo.jobs import (
    FileTaskStore,
    ReportProgress,
    Task,
    TaskDocument,
    TaskPace,
    TaskProgress,
    TaskRunner,
    decode_tasks,
    encode_tasks,
)
from ricordo.storage.local import LocalFiles
from ricordo.workspace import tasks_path
from ricordo.workspace.layout import ROOT_TASKS

pytestmark = pytest.mark.req("HE-C3-task")

ROOT = Path(".ricordo")
PLACE = place_of(ROOT)
MONDAY, TUESDAY = tasks_path("main", "monday"), tasks_path("main", "tuesday")
_KEYS = {
    *("id", "type", "title", "state", "cancelling", "worker", "agent", "session", "user", "created", "seen", "ended"),
    *("progress", "result", "error"),
}


def _task(number: int, title: str, *, minutes: int = 1, **more: Any) -> Task:
    """Return a running sub-agent of the session monday that was begun so many minutes ago; `more` says otherwise."""
    begun = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=minutes)
    standard: dict[str, Any] = {"type": "local_agent", "state": "running", "worker": "general", "agent": "main"}
    seen = more.pop("seen", datetime.now(UTC).replace(microsecond=0))
    facts = {**standard, "session": "monday", **more}
    return Task(id=f"01jd{number:022}", title=title, created_at=begun, last_seen_at=seen, **facts)


def _keep(path: str, *tasks: Task) -> None:
    file = PLACE / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_tasks(TaskDocument(tasks=tasks)))


def _kept(path: str) -> tuple[Task, ...]:
    return decode_tasks((PLACE / path).read_bytes()).tasks


def _titles(*options: str) -> list[str]:
    return [task["title"] for task in ricordo("tasks", *options, "--json").document["tasks"]]


@pytest.fixture(autouse=True)
def root() -> None:
    """Make a root in the working directory."""
    begun(ROOT)
    (ROOT / "project.json").write_text('{"scope": {"project": "shop"}}', encoding="utf-8")


@pytest.fixture
def several() -> None:
    """Keep tasks of two sessions and of the root, the newest of which have ended."""
    now = datetime.now(UTC).replace(microsecond=0)
    _keep(
        MONDAY,
        _task(1, "Read all logs", minutes=50, progress=TaskProgress(done=3, total=7, text="reads syslog")),
        _task(
            3,
            "Compare the two",
            minutes=3,
            type="local_bash",
            state="completed",
            ended_at=now,
            result="They differ\nin one line.",
        ),
    )
    _keep(
        TUESDAY,
        _task(2, "Find the leak", minutes=20, type="remote_agent", session="tuesday", state="pending", cancelling=True),
    )
    _keep(
        ROOT_TASKS,
        _task(
            4, "Consolidate", minutes=2, type="dream", worker="", agent="", session="", state="failed", error="Full."
        ),
    )


def test_a_root_without_tasks_says_so_and_what_makes_one() -> None:
    done = ricordo("tasks")
    assert done.code == 0
    assert done.out.startswith("There are no tasks.")
    assert "`spawn`" in done.out
    assert ricordo("tasks", "--json").document == {"total": 0, "tasks": [], "unreadable": []}


def test_where_there_is_no_root_there_are_no_tasks_to_list() -> None:
    done = ricordo("tasks", "--root", "elsewhere", "--json")
    assert (done.code, done.document["error"]) == (1, "RootNotFound")
    assert not Path("elsewhere").exists()
    tasks, sessions = ricordo("tasks", "--root", "elsewhere"), ricordo("session", "list", "--root", "elsewhere")
    assert (tasks.code, tasks.err) == (sessions.code, sessions.err), "in the words of every other list"


@pytest.mark.req("HE-C3-task")
@pytest.mark.usefixtures("several")
def test_the_tasks_of_all_sessions_are_listed_and_those_that_run_come_first() -> None:
    shown = ricordo("tasks").out.splitlines()
    assert shown[0].split() == ["id", "type", "state", "progress", "title", "age", "session"]
    assert [line.split()[0] for line in shown[1:]] == ["00000002", "00000001", "00000004", "00000003"]
    assert [" ".join(line.split()[1:]) for line in shown[1:]] == [
        "remote_agent cancelling - Find the leak 20 min tuesday",
        "local_agent running 3 of 7, reads syslog Read all logs 50 min monday",
        "dream failed - Consolidate 2 min -",
        "local_bash completed - Compare the two 3 min monday",
    ]
    assert ricordo("tasks", "list").out.splitlines() == shown
    columns = {line.index(line.split()[1]) for line in shown}
    assert len(columns) == 1, "the columns are even"


def test_whose_a_task_is_stands_in_the_list_where_several_people_have_some() -> None:
    ended: dict[str, Any] = {"state": "completed", "ended_at": datetime.now(UTC).replace(microsecond=0)}
    _keep(MONDAY, _task(1, "Read all logs", user="ada", **ended))
    _keep(ROOT_TASKS, _task(2, "Consolidate", minutes=2, type="dream", agent="", session="", **ended))
    assert ricordo("tasks").out.splitlines()[0].split()[-1] == "session"
    _keep(TUESDAY, _task(3, "Find the leak", minutes=3, session="tuesday", user="bob", **ended))
    shown = ricordo("tasks").out.splitlines()
    assert [line.split()[-1] for line in shown] == ["user", "ada", "-", "bob"]


def test_who_cancels_the_task_of_another_is_told_whose_it_was() -> None:
    _keep(MONDAY, _task(1, "Read all logs", user="bob", seen=datetime(2026, 1, 1, tzinfo=UTC)))
    done = ricordo("tasks", "cancel", "00000001")
    assert done.out == "Task 00000001 of bob was orphaned: nobody ran it any more. It is cancelled now.\n"
    again = ricordo("tasks", "cancel", "00000001", "--user", "bob")
    assert (again.code, again.out) == (1, "")


@pytest.mark.usefixtures("several")
def test_a_list_is_of_one_session_of_what_runs_and_of_so_many() -> None:
    assert _titles("--running") == ["Find the leak", "Read all logs"]
    assert _titles("--session", "monday") == ["Read all logs", "Compare the two"]
    assert _titles("--session", "mon", "--running") == ["Read all logs"]
    assert _titles("list", "--session", "tues") == ["Find the leak"]
    assert _titles("--limit", "1") == ["Find the leak"]
    assert ricordo("tasks", "--limit", "1", "--json").document["total"] == 4
    assert "3 more" in ricordo("tasks", "--limit", "1").out
    nothing = ricordo("tasks", "--session", "friday", "--running")
    assert (nothing.code, nothing.out) == (0, "No task of session friday runs. There are 4 other tasks.\n")


def test_a_session_is_meant_whole_before_it_is_meant_as_a_beginning() -> None:
    _keep(MONDAY, _task(1, "Of monday"))
    _keep(tasks_path("main", "monday-2"), _task(2, "Of another", session="monday-2"))
    assert _titles("--session", "monday") == ["Of monday"]
    assert _titles("--session", "mond") == ["Of another", "Of monday"]


@pytest.mark.usefixtures("several")
def test_one_task_is_shown_with_all_that_is_known_of_it() -> None:
    done = ricordo("tasks", "show", "00000003")
    assert done.code == 0
    head, *facts = done.out.splitlines()
    assert head.split("  ") == ["01jd0000000000000000000003", "Compare the two"]
    assert facts[-3:] == ["  result", "    They differ", "    in one line."]
    named = dict(line.strip().split("  ", 1) for line in facts[:-3])
    assert {name: named[name].strip() for name in ("type", "state", "session")} == {
        "type": "local_bash general",
        "state": "completed",
        "session": "monday",
    }
    assert "error" not in named
    assert "Full." in ricordo("tasks", "show", "00000004").out
    document = ricordo("tasks", "show", "01jd0000000000000000000001", "--json").document["task"]
    assert document.keys() == _KEYS
    assert document["progress"] == {"done": 3, "total": 7, "text": "reads syslog"}
    assert (document["result"], document["error"], document["ended"]) == (None, None, None)


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("act", ["show", "cancel"])
def test_an_id_that_fits_no_task_or_several_changes_nothing(act: str) -> None:
    for given, error in (("nosuchtask", "TaskNotFound"), ("01jd00", "InvalidQuery"), ("3", "TaskNotFound")):
        done = ricordo("tasks", act, given, "--json")
        assert (done.code, done.document["error"]) == (1, error)
    assert [task.cancelling for task in _kept(MONDAY)] == [False, False]


@pytest.mark.usefixtures("several")
def test_what_can_not_be_read_is_named_and_the_rest_is_shown() -> None:
    (PLACE / MONDAY).write_text("not json", encoding="utf-8")
    done = ricordo("tasks")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["00000002", "00000004"]
    assert done.err.count("\n") == 1
    assert str(PLACE / MONDAY) in done.err
    assert ricordo("tasks", "--json").document["unreadable"] == [str(PLACE / MONDAY)]
    assert (PLACE / MONDAY).read_text(encoding="utf-8") == "not json"
    hidden = ricordo("tasks", "show", "00000001")
    assert hidden.code == 1
    assert "can't be read" in hidden.err


@pytest.mark.req("AS-TASK-01")
def test_a_task_without_a_sign_of_life_is_shown_as_orphaned_and_left_as_it_is() -> None:
    _keep(MONDAY, _task(1, "Lost", minutes=30, seen=datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=11)))
    assert ricordo("tasks", "--json").document["tasks"][0]["state"] == "orphaned"
    assert "orphaned" in ricordo("tasks", "show", "00000001").out
    assert ricordo("tasks", "--running", "--json").document["total"] == 0
    assert _kept(MONDAY)[0].state == "running"


def test_an_orphaned_task_is_said_to_be_one_and_cancelled_at_once() -> None:
    _keep(MONDAY, _task(1, "Lost", minutes=30, seen=datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=11)))
    done = ricordo("tasks", "cancel", "00000001")
    assert done.code == 0
    assert done.out == "Task 00000001 was orphaned: nobody ran it any more. It is cancelled now.\n"
    assert _kept(MONDAY)[0].state == "cancelled"


@pytest.mark.req("AS-TASK-01")
@pytest.mark.usefixtures("several")
def test_a_task_that_has_ended_stays_as_it_ended() -> None:
    before = (PLACE / MONDAY).read_bytes()
    done = ricordo("tasks", "cancel", "00000003")
    assert (done.code, done.out) == (0, "Task 00000003 had ended already: it is completed.\n")
    assert (PLACE / MONDAY).read_bytes() == before


@pytest.mark.usefixtures("several")
def test_where_nobody_answers_it_is_said_so_and_the_wish_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_CANCEL_SECONDS", 0.05)
    done = ricordo("tasks", "cancel", "00000001")
    assert (done.code, done.out) == (1, "")
    assert "did not answer within 0.05 seconds" in done.err
    assert [task.cancelling for task in _kept(MONDAY)] == [True, False]
    document = ricordo("tasks", "cancel", "00000001", "--json")
    assert (document.code, document.document["stopped"]) == (1, False)
    assert document.document["task"]["state"] == "running"


@contextmanager
def _at_work(work: Any) -> Iterator[str]:
    """Run a task in another thread's event loop, as another process would; give its id."""
    clock = SystemClock()
    store = FileTaskStore(LocalFiles(PLACE), MONDAY, Redactor(b"k" * 32))
    runner = TaskRunner(
        store, agent="main", session="monday", user="", clock=clock, ids=MonotonicIds(clock), emitter=Emitter(clock),
        pace=TaskPace(poll=0.02),
    )  # fmt: skip
    begun: list[str] = []
    running, over = threading.Event(), threading.Event()

    async def host() -> None:
        async with runner.lifespan():
            begun.append((await runner.start("local_agent", "Read all logs", work)).id)
            running.set()
            await anyio.to_thread.run_sync(over.wait)

    with anyio.from_thread.start_blocking_portal() as portal:
        hosted = portal.start_task_soon(host)
        assert running.wait(10)
        try:
            yield begun[0]
        finally:
            over.set()
            hosted.result(10)


def test_a_task_that_runs_elsewhere_is_stopped_there() -> None:
    stopped: list[str] = []

    async def work(report: ReportProgress) -> str:
        report(TaskProgress(done=1, total=2))
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append("here")
        return "never"

    with _at_work(work) as task_id:
        done = ricordo("tasks", "cancel", task_id)
        assert (done.code, done.out) == (0, f"Task {task_id[-8:]} was cancelled.\n")
        assert stopped == ["here"]
    assert ricordo("tasks", "show", task_id, "--json").document["task"]["state"] == "cancelled"


def test_a_task_that_ends_before_it_could_be_stopped_is_not_said_to_be_cancelled() -> None:
    before = _task(1, "Quick")
    after = replace(before, state="completed", ended_at=before.last_seen_at, result="Done.")
    assert (
        commands.format_outcome(before, after) == "Task 00000001 ended before it could be cancelled: it is completed."
    )


def test_options_of_the_list_are_not_taken_for_another_command() -> None:
    done = ricordo("tasks", "--running", "show", "00000001")
    assert done.code == 2
    assert "list" in done.err


def test_what_a_task_says_reaches_the_terminal_without_control_sequences() -> None:
    nasty = "\x1b[2Jred\x07"
    _keep(MONDAY, _task(1, nasty, state="failed", error=nasty, progress=TaskProgress(text=nasty), worker=nasty))
    for out in (ricordo("tasks").out, ricordo("tasks", "show", "00000001").out):
        assert "\\x1b[2Jred\\x07" in out
        assert not {"\x1b", "\x07"} & set(out)


@pytest.mark.usefixtures("several")
def test_the_doctor_notes_task_files_that_can_not_be_read_or_were_set_aside() -> None:
    def told() -> Any:
        checks = ricordo("doctor", "--json").document["checks"]
        return next(check for check in checks if check["name"] == "tasks")

    assert (told()["ok"], told()["count"]) == (True, 0)
    (PLACE / MONDAY).write_text("not json", encoding="utf-8")
    aside = [f"{TUESDAY}.broken-1", f"{ROOT_TASKS}.broken-12"]
    for path in aside:
        (PLACE / path).write_text("not json either", encoding="utf-8")
    assert (told()["ok"], told()["count"]) == (True, 3)
    assert told()["detail"].endswith(f": {', '.join([MONDAY, *aside])}")
    assert "note" in next(line for line in ricordo("doctor").out.splitlines() if " tasks " in line)
