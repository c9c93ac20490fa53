"""What shows only in processes of their own: the module, pipes, terminals, and the demo."""

import json
import os
import pty
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import ricordo
from command_line import Done, chat
from command_line import ricordo as run_here
from ricordo.cli.commands import demo
from warm_processes import WarmProcess, run_warm

COMMAND = [sys.executable, "-m", "ricordo"]
CONVERSATION = files("ricordo.cli") / "demo_data" / "conversation.jsonl"


def _run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.returncode == code, done.stderr
    return done


def test_the_module_is_the_command() -> None:
    assert _run("--version").stdout == f"ricordo {ricordo.__version__}\n"
    assert _run("recall", "a", code=1).stderr.startswith("ricordo: There is no memory yet")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("ricordo.cli.application", b""),
        ("ricordo.cli.commands.status", b"ricordo: interrupted; what was saved before is kept\n"),
    ],
)
def test_an_interruption_while_modules_are_loaded_shows_no_traceback(module: str, message: bytes) -> None:
    code = f"""
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *more):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from ricordo.cli.main import run
run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.replace(b"\r\n", b"\n")) == (130, b"", message)


def test_a_reader_that_leaves_early_is_no_failure_to_talk_about() -> None:
    chat(Path("chat.jsonl"), [("user", f"Thought {number} about something long. " * 40) for number in range(100)])
    run_here("import", "chat.jsonl", "--session", "s")
    with subprocess.Popen(
        [*COMMAND, "session", "show", "s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_text_that_the_terminal_can_not_show_does_not_stop_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    run_here("remember", "Größe: 猫 \U0001f600")
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    done = subprocess.run([*COMMAND, "recall", "Größe"], capture_output=True, timeout=60, check=True)
    assert done.stdout.startswith("1. Größe: \\u732b \\U0001f600\n".encode("latin-1"))


def test_text_is_kept_as_it_was_typed_where_the_locale_can_not_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    chat(Path("Müller.jsonl"))
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(name, value)
    _run("remember", "Frau Müller mag 猫", "--tag", "größe")
    _run("import", "Müller.jsonl")
    found = json.loads(_run("recall", "Müller", "--tag", "größe", "--json").stdout)
    assert found["query"] == "Müller"
    assert found["hits"][0]["entry"]["content"] == "Frau Müller mag 猫"
    assert found["hits"][0]["entry"]["tags"] == ["größe"]


@pytest.mark.parametrize("plain", [True, False])
def test_colour_is_for_terminals_and_not_when_it_is_unwanted(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    run_here("remember", "We deploy only from main.")
    monkeypatch.setenv("TERM", "xterm")
    if not plain:
        monkeypatch.delenv("NO_COLOR")
    assert ("\x1b[" in _on_terminal("memory", "list")) is not plain
    assert "\x1b[" not in run_warm(["ricordo", "memory", "list"]).stdout


def test_progress_is_shown_on_a_terminal_only() -> None:
    chat(Path("chat.jsonl"))
    assert "Importing" in _on_terminal("import", "chat.jsonl")
    assert "Importing" not in run_warm(["ricordo", "import", "chat.jsonl"]).stderr


def _on_terminal(*arguments: str) -> str:
    """Run a command with a terminal as its output and return what the terminal got."""
    ours, theirs = pty.openpty()
    with open(os.devnull, "rb") as nothing:
        process = WarmProcess(["ricordo", *arguments], streams=(nothing.fileno(), theirs, theirs))
    os.close(theirs)
    shown = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:
            break
        if not read:
            break
        shown += read
    assert process.wait(60) == 0
    os.close(ours)
    return shown.decode()


def test_the_demo_lives_in_one_process_and_answers_with_sources_from_curated_memory_in_another(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # a life of weeks takes seconds, so both forms of the demo tell of the same one
    run, lived = demo._run, {}

    def run_once(stage: Any, *arguments: str) -> Any:
        if arguments not in lived:
            lived[arguments] = run(stage, *arguments)
        return lived[arguments]

    monkeypatch.setattr(demo, "_run", run_once)
    shown = run_here("demo", "--root", "kept/.ricordo")
    told = run_here("demo", "--root", "kept/.ricordo", "--json").document
    assert capfd.readouterr() == ("", "")
    _check_what_is_shown(shown, told["processes"])
    _check_what_is_told(told)


def _check_what_is_shown(done: Done, processes: list[int]) -> None:
    lived, answered = map(int, re.findall(r"\(process (\d+)\)", done.out))
    assert [lived, answered] == processes
    assert lived != answered
    assert os.getpid() not in {lived, answered}
    places = re.findall(r"^   — \.ricordo/(\S+):(\d+)$", done.out, re.MULTILINE)
    assert len(places) >= 6
    for path, line in places:
        assert len((Path("kept/.ricordo") / path).read_text(encoding="utf-8").splitlines()) >= int(line)
    assert "not in memory" in done.out
    assert "[secret:" in done.out
    assert "## Conventions" in done.out
    assert "6 of 6 hold the words" in done.out
    assert done.err == ""


def _check_what_is_told(told: Any) -> None:
    lives = told["replay"]["sessions"]
    assert sum(life["messages"] for life in lives) == CONVERSATION.read_bytes().count(b"\n")
    assert len(lives) >= 3
    assert max(life["said_tokens"] for life in lives) > 70_000
    assert max(life["largest_tokens"] for life in lives) <= told["replay"]["budget"]
    assert {each["action"] for life in lives for each in life["reductions"]} == {"evict", "compact"}
    *known, never_said = told["answers"]
    assert len(known) == 5
    assert sum(answer["hit"]["path"] == "workspace/MEMORY.md" for answer in known) >= 3
    assert any("ord-<ticket>-<slug>" in answer["text"] for answer in known)
    database = next(answer for answer in known if "database" in answer["question"])
    assert "PostgreSQL" in database["hit"]["entry"]["content"]
    assert any("MySQL 8" in old["entry"]["content"] for old in database["superseded"])
    assert not never_said["found"]


def test_an_answer_changes_with_the_sentence_it_rests_on() -> None:
    lines = CONVERSATION.read_text(encoding="utf-8").splitlines(keepends=True)
    # the sessions in which a person speaks of either; the others only take their time
    heard = [line for line in lines if json.loads(line)["session"][-5:] in {"10-05", "10-29", "11-09"}]
    rest = [line for line in heard if "Postgres" not in line and "ord-<ticket>" not in line]
    assert len(rest) < len(heard)
    Path("without.jsonl").write_text("".join(rest), encoding="utf-8")
    assert run_here("replay", "without.jsonl", "--budget", "2000").code == 0
    database = run_here("ask", "Which database does the orders service use?", "--json").document
    assert "MySQL 8" in database["hit"]["entry"]["content"]
    assert database["superseded"] == []
    assert "ord-<ticket>" not in run_here("ask", "How are branches named?").out


@pytest.mark.soak
def test_the_demo_leaves_nothing_behind_unless_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    _run("demo")
    assert list(tmp_path.iterdir()) == []
    assert list(Path.cwd().iterdir()) == []
    kept = re.search(r"--root (\S+)", _run("demo", "--keep").stdout)
    assert kept is not None
    assert "ord-<ticket>-<slug>" in _run("ask", "How are branches named?", "--root", kept[1]).stdout
