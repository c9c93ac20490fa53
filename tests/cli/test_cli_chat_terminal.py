"""A chat at a terminal: keys, signals, and what is on the screen while a reply still comes."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import anyio
import pytest

from command_line import ricordo
from places import place_of
from ricordo.clock import MonotonicIds, SystemClock
from ricordo.jobs import Inbox, Job
from ricordo.runtime import Settings
from ricordo.testing import Call, Fail, Hang, Hold, LoopbackServer, RecordedRequest, Say, ScriptItem, ScriptLike
from warm_processes import WarmProcess

pytestmark = pytest.mark.usefixtures("time_to_close")

_SECONDS = 40.0
# A terminal is the controlling one, to which keys send signals, of the session that takes it.
_LAUNCH = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_DFL)
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for number in range(3):
    os.dup2(terminal, number)
os.execv(sys.executable, [sys.executable, "-m", "ricordo", "chat", *sys.argv[2:]])
"""


class Terminal:
    """A chat in a process of its own, at a terminal of its own; a real one also imports what it needs."""

    def __init__(self, *arguments: str, is_real: bool = False) -> None:
        self._ours, theirs = pty.openpty()
        self._shown = ""
        self._read = 0
        self.process: subprocess.Popen[bytes] | WarmProcess
        if is_real:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _LAUNCH, os.ttyname(theirs), *arguments], start_new_session=True
            )
        else:
            command = ["ricordo", "chat", *arguments]
            self.process = WarmProcess(command, streams=(theirs, theirs, theirs), start_new_session=True)
        os.close(theirs)

    def type(self, keys: str) -> None:
        """Press keys; a line ends with `\\n`."""
        os.write(self._ours, keys.encode())

    def until(self, text: str) -> str:
        """Return what was shown since the last call, up to `text`, which is waited for."""
        deadline = time.monotonic() + _SECONDS
        while text not in self._shown[self._read :]:
            assert time.monotonic() < deadline, f"{text!r} was not shown: {self._shown!r}"
            if select.select([self._ours], [], [], 0.1)[0]:
                self._shown += self._piece()
        start, end = self._read, self._shown.index(text, self._read) + len(text)
        self._read = end
        return self._shown[start:end]

    def rest(self) -> str:
        """Return what is shown until the end of the process."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            if select.select([self._ours], [], [], 0.1)[0]:
                piece = self._piece()
                if not piece:
                    break
                self._shown += piece
        self.process.wait(_SECONDS)
        return self._shown[self._read :]

    def hang_up(self) -> None:
        """Close the terminal."""
        os.close(self._ours)
        self._ours = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        if self._ours >= 0:
            os.close(self._ours)

    def _piece(self) -> str:
        try:
            return os.read(self._ours, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
        except OSError:
            # Linux's way to say that nobody has the other side any more
            return ""


@contextmanager
def _model(script: ScriptLike, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(script) as server:
        monkeypatch.setenv("RICORDO_MODEL", "openai-chat:gpt-4o")
        monkeypatch.setenv("RICORDO_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-" + "q" * 32)
        yield server


def _transcript() -> str:
    paths = (place_of(Path(".ricordo")) / "workspace").glob("agents/*/sessions/*.log.jsonl")
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def _tasks() -> str:
    paths = (place_of(Path(".ricordo")) / "workspace").glob("agents/*/tasks/*.json")
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def test_a_reply_is_on_the_screen_while_the_rest_of_it_still_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    with _model([Hold(Say("First second third."))], monkeypatch) as server, Terminal() as terminal:
        terminal.until("> ")
        terminal.type("Count.\n")
        terminal.until("First")
        assert server.held_count == 1
        server.release()
        terminal.until("second third.\n")
        terminal.until("> ")
        terminal.type("\x04")
        assert "Learned" in terminal.rest()
    assert terminal.process.returncode == 0


def test_ctrl_c_stops_a_reply_keeps_what_came_and_the_chat_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        _model([Hold(Say("First second third.")), Say("Still here.")], monkeypatch) as server,
        Terminal(is_real=True) as terminal,
    ):
        terminal.until("> ")
        terminal.type("Count.\n")
        terminal.until("First")
        server.wait_for_held()
        terminal.type("\x03")
        terminal.until("Stopped.")
        terminal.until("> ")
        assert '"First ' in _transcript()
        assert '"cut"' in _transcript()
        assert "third" not in _transcript()
        terminal.type("And now?\n")
        terminal.until("Still here.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert terminal.process.returncode == 0


def test_ctrl_c_while_another_try_is_waited_for_says_no_more_than_that_it_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script: list[ScriptItem] = [Fail(429, "too many", headers={"retry-after": "30"}), Say("Still here.")]
    with _model(script, monkeypatch), Terminal() as terminal:
        terminal.until("> ")
        terminal.type("Count.\n")
        terminal.until("waiting 30 s")
        terminal.type("\x03")
        shown = terminal.until("Stopped.") + terminal.until("> ")
        assert "kept" not in shown
        terminal.type("And now?\n")
        terminal.until("Still here.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert terminal.process.returncode == 0


def test_ctrl_c_at_the_prompt_drops_the_line_and_says_how_to_leave() -> None:
    with Terminal() as terminal:
        terminal.until("> ")
        terminal.type("half a li")
        terminal.until("half a li")
        terminal.type("\x03")
        terminal.until("Ctrl-D or /quit ends the chat.")
        terminal.until("> ")
        terminal.type("/quit\n")
        terminal.rest()
    assert terminal.process.returncode == 0
    assert not Path(".ricordo").exists()


def test_ctrl_d_ends_with_what_was_learned_and_how_to_go_on() -> None:
    with Terminal() as terminal:
        terminal.until("Offline")
        terminal.until("> ")
        terminal.type("We decided to deploy only from main, never from a branch.\n")
        terminal.until("Noted.")
        terminal.until("> ")
        terminal.type("\x04")
        told = terminal.rest().splitlines()[-1]
    assert terminal.process.returncode == 0
    session = ricordo("session", "list", "--json").document["sessions"][0]["id"]
    entries = ricordo("memory", "list", "--json").document["entries"]
    assert len(entries) == 1
    assert told.startswith(f"Learned 1 {entries[0]['kind']}. It is in {Path('.ricordo').absolute()}; ")
    assert told.endswith(f"ricordo chat --session {session}")


@pytest.mark.req("GO-G24-sync")
def test_ctrl_c_skips_the_summary_that_is_announced_and_keeps_what_was_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RICORDO_STORE", f"sessions:{Path.cwd() / '.harness'}")
    script: list[ScriptItem] = [
        Call("remember", {"content": "Fixtures live in testdata/golden."}),
        Say("Kept."),
        Hang(),
    ]
    with _model(script, monkeypatch) as server, Terminal() as terminal:
        terminal.until("> ")
        terminal.type("Remember where fixtures live.\n")
        terminal.until("Kept.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.until("Summarizing this session; Ctrl-C skips it.")
        server.wait_for_held()
        terminal.type("\x03")
        terminal.rest()
        assert len(server.requests) == 3
    assert terminal.process.returncode == 0
    (file,) = Path(".harness/sessions").iterdir()
    text = file.read_text(encoding="utf-8")
    assert "summary: pending" in text
    assert "- Fixtures live in testdata/golden." in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("when", ["at the prompt", "in a reply"])
def test_a_signal_ends_the_chat_in_order(when: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with _model([Hold(Say("First second third."))], monkeypatch) as server, Terminal() as terminal:
        terminal.until("> ")
        if when == "in a reply":
            terminal.type("We decided to deploy only from main.\n")
            terminal.until("First")
            server.wait_for_held()
        terminal.process.send_signal(number)
        terminal.rest()
        assert terminal.process.returncode == 128 + number
    if when == "in a reply":
        assert '"First ' in _transcript()
        assert len(ricordo("memory", "list", "--json").document["entries"]) == 1


def test_a_terminal_that_is_closed_ends_the_chat_and_what_was_said_is_learned() -> None:
    with Terminal(is_real=True) as terminal:
        terminal.until("> ")
        terminal.type("We decided to deploy only from main.\n")
        terminal.until("Noted.")
        terminal.until("> ")
        terminal.hang_up()
        terminal.process.wait(_SECONDS)
    assert len(ricordo("memory", "list", "--json").document["entries"]) == 1


def test_what_was_said_survives_a_kill_during_the_reply_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script: list[ScriptItem] = [Hold(Say("First second third.")), Say("Port 5433.")]
    with _model(script, monkeypatch) as server:
        with Terminal("--session", "monday") as terminal:
            terminal.until("> ")
            terminal.type("The staging database is on port 5433.\n")
            server.wait_for_held()
            assert "port 5433" in _transcript()
            terminal.process.kill()
            terminal.rest()
        with Terminal("--session", "monday") as terminal:
            terminal.until("Going on with session monday")
            terminal.until("> ")
            terminal.type("Which port was it?\n")
            terminal.until("Port 5433.")
            terminal.until("> ")
            terminal.type("\x04")
            terminal.rest()
        said = [message.text for message in server.requests[1].messages if message.role == "user"]
    assert said[0] == "The staging database is on port 5433."
    assert said[-1] == "Which port was it?"


def test_two_chats_on_one_root_at_once_keep_what_both_say() -> None:
    ricordo("remember", "We use uv.")
    with Terminal("--session", "left") as left, Terminal("--session", "right") as right:
        for terminal, text in ((left, "Nadia owns staging."), (right, "Ada writes the release notes.")):
            terminal.until("> ")
            terminal.type(f"We decided: {text}\n")
        for terminal in (left, right):
            terminal.until("Noted.")
            terminal.until("> ")
            terminal.type("\x04")
        for terminal in (left, right):
            assert "Learned" in terminal.rest()
            assert terminal.process.returncode == 0
    sessions = ricordo("session", "list", "--json").document["sessions"]
    assert {each["id"]: each["messages"] for each in sessions} == {"left": 2, "right": 2}
    # a busy machine may leave the learning to whoever comes next, for two seconds each
    for _ in range(5):
        remembered = " ".join(each["content"] for each in ricordo("memory", "list", "--json").document["entries"])
        if "Nadia" in remembered and "Ada" in remembered:
            break
    assert "Nadia owns staging" in remembered
    assert "Ada writes the release notes" in remembered


def test_forgetting_asks_first_and_the_next_request_no_longer_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = ricordo("remember", "The launch is in May.", "--json").document["entry"]["id"]
    with _model([Say("In May."), Say("Not known."), Say("In May.")], monkeypatch) as server, Terminal() as terminal:
        for answer, reply in (("n", "In May."), ("y", "Not known.")):
            terminal.until("> ")
            terminal.type(f"/memory forget {secret}\n")
            terminal.until("Forget this?")
            terminal.type(f"{answer}\n")
            terminal.until("> ")
            terminal.type("When is the launch?\n")
            terminal.until(reply)
        terminal.until("> ")
        terminal.type("/undo\n")
        terminal.until("Took back forget")
        terminal.until("> ")
        terminal.type("When is the launch?\n")
        terminal.until("In May.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
        prompts = ["\n".join(each.text for each in request.messages[:1]) for request in server.requests]
    assert ["The launch is in May." in prompt for prompt in prompts] == [True, False, True]


@pytest.mark.req("GO-G26-diff")
def test_a_file_is_written_only_after_a_yes_to_its_change(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Call("write_file", {"path": "notes.txt", "content": "Deploy from main.\n"})
    script: list[ScriptItem] = [write, Say("Too bad."), write, Say("It is there.")]
    with _model(script, monkeypatch), Terminal("--files") as terminal:
        for answer, reply in (("", "Too bad."), ("y", "It is there.")):
            terminal.until("> ")
            terminal.type("Write it down.\n")
            terminal.until("+Deploy from main.")
            terminal.until("[y/N/a]")
            assert not Path("notes.txt").exists()
            terminal.type(f"{answer}\n")
            terminal.until(reply)
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert Path("notes.txt").read_text(encoding="utf-8") == "Deploy from main.\n"


@pytest.mark.parametrize(("ahead", "answer"), [("y\n", ""), ("always\nno, tr", "y\n")])
def test_nothing_that_was_typed_before_a_question_answers_it(
    ahead: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Hold(Call("write_file", {"path": "notes.txt", "content": "Deploy from main.\n"}))
    with _model([write, Say("Too bad.")], monkeypatch) as server, Terminal("--files") as terminal:
        terminal.until("> ")
        terminal.type("Write it down.\n")
        server.wait_for_held()
        terminal.type(ahead)
        terminal.until(ahead.splitlines()[-1])
        server.release()
        shown = terminal.until("[y/N/a]")
        assert "\ncreate notes.txt\n" in shown
        assert "What was typed before this question is dropped." in shown
        if answer:
            terminal.type(answer)
            terminal.until("no answer.")
            terminal.until("[y/N/a]")
        assert not Path("notes.txt").exists()
        terminal.type("n\n")
        terminal.until("Too bad.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert not Path("notes.txt").exists()


def test_a_question_of_a_sub_agent_says_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: RecordedRequest) -> ScriptItem:
        if any(each.tool_results for each in request.messages):
            return Say("Done.")
        if "spawn" in {tool.name for tool in request.tools}:
            return Call("spawn", {"prompt": "Write it.", "wait": True})
        return Call("write_file", {"path": "sub.txt", "content": "Deploy from main.\n"})

    with _model(answer, monkeypatch), Terminal("--files") as terminal:
        terminal.until("> ")
        terminal.type("Let it be written.\n")
        assert "\ngeneral wants to: create sub.txt\n" in terminal.until("[y/N/a]")
        terminal.type("y\n")
        terminal.until("Done.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert Path("sub.txt").read_text(encoding="utf-8") == "Deploy from main.\n"


def test_what_is_always_let_through_is_not_asked_again_and_the_rule_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: str, content: str) -> Call:
        return Call("write_file", {"path": path, "content": content})

    script: list[ScriptItem] = [write("notes.txt", "one\n"), Say("First."), write("notes.txt", "two\n"), Say("Second.")]
    with _model([*script, write("other.txt", "x\n"), Say("Third.")], monkeypatch), Terminal("--files") as terminal:
        terminal.until("> ")
        terminal.type("Write it down.\n")
        terminal.until("[y/N/a]")
        terminal.type("a\n")
        terminal.until("From now on in this session: ")
        assert "allow write_file(notes.txt)" in terminal.until("First.")
        terminal.until("> ")
        terminal.type("And again.\n")
        assert "May it?" not in terminal.until("Second.")
        assert Path("notes.txt").read_text(encoding="utf-8") == "two\n"
        terminal.until("> ")
        terminal.type("Elsewhere.\n")
        terminal.until("[y/N/a]")
        terminal.type("n\n")
        terminal.until("Third.")
        terminal.until("> ")
        terminal.type("/permissions\n")
        assert "of this session" in terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert not Path("other.txt").exists()


def test_what_a_persons_own_configuration_permits_is_not_asked_and_all_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Settings.from_environment().data / "config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('permissions = ["allow write_file(notes.txt)", "deny write_file(never*)"]\n', encoding="utf-8")
    script = [Call("write_file", {"path": f"{name}.txt", "content": "x\n"}) for name in ("notes", "never", "other")]
    with _model([*script, Say("Done.")], monkeypatch), Terminal("--files") as terminal:
        terminal.until("> ")
        terminal.type("Write.\n")
        asked = terminal.until("[y/N/a]")
        assert "other.txt" in asked
        assert "create notes.txt" not in asked
        terminal.type("n\n")
        terminal.until("Done.")
        terminal.until("> ")
        terminal.type("/permissions\n")
        listed = terminal.until("> ")
        assert "allow write_file(notes.txt)  of your settings" in listed
        terminal.type("\x04")
        terminal.rest()
    assert [path.name for path in Path().glob("*.txt")] == ["notes.txt"]


def test_a_task_goes_on_between_lines_is_stopped_by_its_id_and_its_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: RecordedRequest) -> ScriptItem:
        if "spawn" not in {tool.name for tool in request.tools}:
            return Hold(Say("Nothing in them."))
        if request.messages[-1].role == "tool" or len([each for each in request.messages if each.tool_results]) > 1:
            return Say("It is begun.")
        return Call("spawn", {"prompt": request.messages[-1].text, "title": "Read logs"})

    with _model(answer, monkeypatch) as server, Terminal() as terminal:
        terminal.until("> ")
        for waiting in (1, 2):
            terminal.type("Read all logs.\n")
            terminal.until("It is begun.")
            terminal.until("> ")
            server.wait_for_held(waiting)
        terminal.type("/tasks\n")
        newest, oldest = (line.split() for line in terminal.until("> ").splitlines() if " local_agent " in line)
        assert (newest[2], oldest[2]) == ("running", "running")
        terminal.type(f"/tasks cancel {oldest[0]}\n")
        terminal.until(f"Task {oldest[0]} was cancelled.")
        assert "·" not in terminal.until("> "), "what was just said is not told again"
        server.release()
        deadline = time.monotonic() + _SECONDS
        while "completed" not in _tasks():
            assert time.monotonic() < deadline, _tasks()
            time.sleep(0.05)
        terminal.type("/todos\n")
        assert f"· task {newest[0]} (Read logs) completed: /tasks {newest[0]}\n" in terminal.until("> ")
        terminal.type(f"/tasks {newest[0]}\n")
        assert "Nothing in them." in terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert terminal.process.returncode == 0


def test_ctrl_c_at_a_question_stops_the_reply_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Call("write_file", {"path": "notes.txt", "content": "Deploy from main.\n"})
    with _model([write, Say("Hello.")], monkeypatch), Terminal("--files") as terminal:
        terminal.until("> ")
        terminal.type("Write it down.\n")
        terminal.until("[y/N/a]")
        terminal.type("\x03")
        terminal.until("Stopped.")
        terminal.until("> ")
        terminal.type("Hi.\n")
        terminal.until("Hello.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert not Path("notes.txt").exists()


def test_a_failure_of_the_model_is_one_line_and_the_chat_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with _model([Fail(401, "bad key"), Say("Now it works.")], monkeypatch), Terminal() as terminal:
        terminal.until("> ")
        terminal.type("Hello?\n")
        shown = terminal.until("\n> ")
        assert shown.count("ricordo: ") == 1
        assert "Traceback" not in shown
        terminal.type("Again?\n")
        terminal.until("Now it works.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert "Hello?" in _transcript()


def test_what_a_tool_does_is_shown_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call("remember", {"content": "Nadia owns staging."})
    with _model([call, Say("I keep it in mind.")], monkeypatch), Terminal() as terminal:
        terminal.until("> ")
        terminal.type("Keep in mind who owns staging: Nadia.\n")
        terminal.until('· remember {"content": "Nadia owns staging."}\n')
        terminal.until("remember: done\n")
        terminal.until("I keep it in mind.\n")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()


def test_lines_can_be_called_back_and_are_written_nowhere(home: Path) -> None:
    with Terminal() as terminal:
        terminal.until("> ")
        terminal.type("Which port is taken?\n")
        terminal.until("Not in memory.")
        terminal.until("> ")
        terminal.type("\x1b[A\n")
        terminal.until("Not in memory.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.rest()
    assert _transcript().count("Which port is taken?") == 2
    kept = [path for path in home.rglob("*") if path.is_file() and b"Which port" in path.read_bytes()]
    assert kept == []


@pytest.mark.req("HE-C8-async")
def test_ctrl_c_at_the_end_leaves_the_learning_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ricordo("remember", "We deploy only from main.")
    # as long as somebody else works on a job, the end waits for it, with a model up to ten seconds
    anyio.run(_begin_a_job, place_of(Path(".ricordo")) / "queue.db")
    with _model([Say("All right.")], monkeypatch), Terminal("--session", "monday") as terminal:
        terminal.until("> ")
        terminal.type("We decided that Nadia owns staging.\n")
        terminal.until("All right.")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.until("Ctrl-C skips it.")
        terminal.type("\x03")
        told = terminal.until("--session monday")
        terminal.process.wait(6)
    assert "the rest is learned when it is opened next" in told
    assert terminal.process.returncode == 0


async def _begin_a_job(path: Path) -> None:
    clock = SystemClock()
    inbox = Inbox(path, clock=clock, ids=MonotonicIds(clock))
    assert await inbox.begin(Job(kind="flush", agent="main", session="another"), seconds=60) is not None
    await inbox.close()


@pytest.mark.req("GO-AT4")
@pytest.mark.parametrize("store", ["sessions:.harness", "markdown:.harness"])
def test_what_a_person_edits_between_two_chats_is_what_the_second_one_knows(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RICORDO_STORE", store)
    keep = Call("remember", {"content": "Fixtures live in testdata/golden."})
    talk: list[ScriptItem] = [keep, Say("Kept.")]

    def played(request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return Say("They settled where fixtures live: testdata/golden.\nTAGS: fixtures")
        return talk.pop(0)

    with _model(played, monkeypatch) as server:
        with Terminal() as terminal:
            terminal.until("> ")
            terminal.type("Remember that fixtures live in testdata/golden.\n")
            terminal.until("Kept.")
            terminal.until("> ")
            terminal.type("\x04")
            terminal.rest()
        assert terminal.process.returncode == 0
        edited = [path for path in Path(".harness").rglob("*.md") if "testdata/golden" in path.read_text()]
        for path in edited:
            path.write_text(path.read_text().replace("testdata/golden", "testdata/silver"))
        talk.append(Say("In testdata/silver."))
        with Terminal() as terminal:
            terminal.until("> ")
            terminal.type("Where do fixtures live?\n")
            terminal.until("In testdata/silver.")
            terminal.until("> ")
            terminal.type("\x04")
            terminal.rest()
        prompts = [
            "\n".join(each.text for each in request.messages[:1]) for request in server.requests if request.tools
        ]
    assert len(edited) == 1
    assert ["testdata/silver" in prompt for prompt in prompts] == [False, False, True]
    assert "testdata/golden" not in prompts[2]
