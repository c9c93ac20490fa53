"""shell: nothing runs without a yes, and nothing is left running."""

import os
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from desks import CONTEXT, Desks, Person
from hand_tasks import hand_tasks
from ricordo.agent import get_effect

pytestmark = pytest.mark.anyio
REAL = os.path.realpath
SECRETS = {
    "ANTHROPIC_API_KEY": "x",
    "GITHUB_TOKEN": "abc123",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "PGPASSWORD": "a",
    "MYSQL_PWD": "abc",
    "ACME_KEY": "abcdef",
    "DATABASE_URL": "postgres://me:hunter2pw@host/db",
    "ODD_NAME": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
}
OTHERS = {
    "LANG": "C.UTF-8",
    "TOKENIZERS_PARALLELISM": "false",
    "SSH_AUTH_SOCK": "/tmp/ssh-a/agent.1",
    "DISPLAY": ":0",
    "OLDPWD": "/somewhere",
    "EMPTY_TOKEN": "",
}


async def test_there_is_no_shell_unless_it_is_asked_for(desks: Desks, yes: Person) -> None:
    assert [tool.spec.name for tool in desks(yes).tools] == [
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "glob_files",
        "grep_files",
    ]
    assert [tool.spec.name for tool in desks(yes, shell=True).tools][6:] == ["shell"]


async def test_every_command_is_shown_and_runs_only_after_a_yes(desks: Desks, yes: Person, no: Person) -> None:
    for desk, said in ((desks(no, shell=True), "not approved"), (desks(None, shell=True), "nobody to ask")):
        told = await desk.use("shell", command="touch made")
        assert told.startswith("failed: ")
        assert said in told
    assert desks().tree() == {}
    desk = desks(yes, shell=True)
    for command in ("touch made", "touch made"):
        assert await desk.use("shell", command=command) == "[exit code 0]"
    assert [(asked.tool, asked.action, asked.target) for asked in yes.asked] == [("shell", "run", "touch made")] * 2
    assert desk.tree() == {"made": b""}


async def test_the_output_the_exit_code_and_the_folder_are_the_commands_own(desks: Desks, yes: Person) -> None:
    desk = desks(yes, shell=True)
    told = await desk.use("shell", command="pwd; echo oops >&2; cat; exit 3")
    assert told == f"{REAL(desks.folder)}\noops\n[exit code 3]"


@pytest.mark.req("FC-SECRET")
async def test_a_command_does_not_see_the_secrets_of_the_process(
    desks: Desks, yes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (SECRETS | OTHERS).items():
        monkeypatch.setenv(name, value)
    said = (await desks(yes, shell=True).use("shell", command="env")).splitlines()
    seen = dict(line.split("=", 1) for line in said if "=" in line)
    assert not seen.keys() & SECRETS.keys()
    assert {name: seen.get(name) for name in OTHERS} == OTHERS
    assert {"PATH", "PWD"} <= seen.keys()
    given = desks(yes, shell=True, shell_environment={"GITHUB_TOKEN": "mine", "PATH": os.defpath})
    assert "GITHUB_TOKEN=mine" in (await given.use("shell", command="env")).splitlines()


async def test_a_long_output_keeps_its_head_and_its_tail(desks: Desks, yes: Person) -> None:
    desk = desks(yes, shell=True)
    told = await desk.use("shell", command="echo first; yes middle | head -c 3000000; echo last")
    assert told.startswith("first\nmiddle\n")
    assert told.endswith("last\n[exit code 0]")
    assert "bytes left out" in told
    assert len(told) < 400_100


async def test_what_takes_too_long_is_killed_with_all_that_it_started(desks: Desks, yes: Person) -> None:
    desk = desks(yes, shell=True)
    told = await desk.use("shell", command=_SLEEPERS + "; wait", timeout=0.5)
    assert told.endswith("[stopped after 0.5 seconds]")
    await _all_gone(desks.folder)


async def test_a_cancelled_call_kills_what_it_started(desks: Desks, yes: Person) -> None:
    desk = desks(yes, shell=True)

    async def run() -> None:
        await desk.use("shell", command=_SLEEPERS + "; wait")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        while len(_sleepers(desks.folder)) < 2:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    await _all_gone(desks.folder)


async def test_a_call_that_is_cancelled_while_its_command_begins_leaves_nothing_running(
    desks: Desks, yes: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = anyio.open_process

    async def slow(*args: object, **options: object) -> object:
        process = await opened(*args, **options)  # type: ignore[arg-type]
        while len(await anyio.to_thread.run_sync(_sleepers, desks.folder)) < 2:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        begun.set()
        await anyio.sleep(0.01)
        return process

    monkeypatch.setattr("anyio.open_process", slow)
    begun = anyio.Event()
    desk = desks(yes, shell=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(desk.use, "shell", command=_SLEEPERS + "; wait"))
        await begun.wait()
        tasks.cancel_scope.cancel()
    await _all_gone(desks.folder)


async def test_what_a_command_leaves_in_the_background_ends_with_it(desks: Desks, yes: Person) -> None:
    desk = desks(yes, shell=True)
    assert await desk.use("shell", command=_SLEEPERS + "; echo done") == "done\n[exit code 0]"
    await _all_gone(desks.folder)


@pytest.mark.parametrize("seconds", [0, -1, 1e9])
async def test_a_timeout_out_of_range_is_refused_before_anybody_is_asked(
    desks: Desks, yes: Person, seconds: float
) -> None:
    told = await desks(yes, shell=True).use("shell", command="true", timeout=seconds)
    assert told.startswith("failed: A command has a timeout above 0")
    assert yes.asked == []


async def test_nobody_is_asked_of_a_command_that_a_rule_lets_through(desks: Desks, no: Person) -> None:
    [shell] = [tool for tool in desks(no, shell=True).tools if tool.spec.name == "shell"]
    assert await shell({"command": "echo hi"}, replace(CONTEXT, approved=True)) == "hi\n[exit code 0]"
    assert no.asked == []


async def test_the_background_is_offered_only_where_there_are_tasks(desks: Desks, yes: Person) -> None:
    async with hand_tasks() as tasks:
        for given, offered in ((None, False), (tasks, True)):
            [shell] = [tool for tool in desks(yes, shell=True, tasks=given).tools if tool.spec.name == "shell"]
            properties = shell.spec.parameters["properties"]
            assert isinstance(properties, dict)
            assert ("background" in properties) == offered
            assert get_effect(shell) == "acts"
    told = await desks(yes, shell=True).use("shell", command="true", background=True)
    assert told.startswith("failed: There is no argument `background`")


@pytest.mark.req("HE-C3-task", "AS-STATE-04")
async def test_a_command_in_the_background_is_approved_as_ever_and_goes_on_as_a_task(
    desks: Desks, yes: Person, no: Person
) -> None:
    async with hand_tasks() as tasks:
        told = await desks(no, shell=True, tasks=tasks).use("shell", command="touch made", background=True)
        assert "not approved" in told
        assert await tasks.tasks() == ()
        desk = desks(yes, shell=True, tasks=tasks, shell_timeout=0.001)
        command = "touch begun; while [ ! -e go ]; do sleep 0.01; done; echo done; exit 3"
        told = await desk.use("shell", command=command, background=True)
        assert [asked.target for asked in yes.asked] == [command]
        [task] = await tasks.tasks()
        assert told.startswith(f"The command runs in the background as task {task.id[-8:]}. Its result comes by itself")
        assert (task.type, task.title, task.state) == ("local_bash", command, "running")
        while not (desks.folder / "begun").exists():  # noqa: ASYNC110
            await anyio.sleep(0.01)
        await anyio.sleep(0.01)
        desks.put("go", "")
        await tasks.wait(task.id)
        ended = await tasks.get(task.id)
        assert (ended.state, ended.result) == ("completed", "done\n[exit code 3]")
        assert re.fullmatch(r"1 line of output, process \d+", ended.progress.text)
    assert desk.tree() == {"begun": b"", "go": b""}


async def test_a_command_in_the_background_ends_at_the_timeout_that_it_was_given(desks: Desks, yes: Person) -> None:
    async with hand_tasks() as tasks:
        desk = desks(yes, shell=True, tasks=tasks)
        await desk.use("shell", command="sleep 300", background=True, timeout=0.1)
        [task] = await tasks.tasks()
        await tasks.wait(task.id)
        assert (await tasks.get(task.id)).result == "[stopped after 0.1 seconds]"
        told = await desk.use("shell", command="true", background=True, timeout=4_000)
        assert told.startswith("failed: A command has a timeout")


async def test_a_cancelled_task_kills_the_command_with_all_that_it_started(desks: Desks, yes: Person) -> None:
    async with hand_tasks() as tasks:
        await desks(yes, shell=True, tasks=tasks).use("shell", command=_SLEEPERS + "; wait", background=True)
        while len(_sleepers(desks.folder)) < 2:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        [task] = await tasks.tasks()
        assert (await tasks.cancel(task.id)).state == "cancelled"
        await _all_gone(desks.folder)


async def test_of_a_long_output_in_the_background_less_is_kept(desks: Desks, yes: Person) -> None:
    async with hand_tasks() as tasks:
        command = "echo first; yes middle | head -c 300000; echo last"
        await desks(yes, shell=True, tasks=tasks).use("shell", command=command, background=True)
        [task] = await tasks.tasks()
        await tasks.wait(task.id)
        result = (await tasks.get(task.id)).result
    assert result.startswith("first\nmiddle\n")
    assert result.endswith("last\n[exit code 0]")
    assert 99_000 < len(result) < 100_200


async def test_a_task_names_the_process_group_of_its_command_from_the_beginning(desks: Desks, yes: Person) -> None:
    async with hand_tasks() as tasks:
        desk = desks(yes, shell=True, tasks=tasks)
        await desk.use("shell", command="echo $$ > pid-1; exec sleep 300", background=True)
        while not (_sleepers(desks.folder) and (await tasks.tasks())[0].progress.text):  # noqa: ASYNC110
            await anyio.sleep(0.01)
        [task] = await tasks.tasks()
        [pid] = _sleepers(desks.folder)
        assert (task.progress.text, os.getpgid(pid)) == (f"process {pid}", pid)
        await desk.use("shell", command=" ", background=True)
        assert (await tasks.tasks())[1].title == "an empty command"


_SLEEPERS = "for n in 1 2; do sh -c 'echo $$ > pid-$0; exec sleep 300' $n & done; while [ ! -s pid-2 ]; do :; done"


def _sleepers(folder: Path) -> list[int]:
    return [int(text) for path in folder.glob("pid-*") if (text := path.read_text().strip())]


async def _all_gone(folder: Path) -> None:
    """Wait until the processes are gone; a killed one may need a moment to be taken off the list."""
    deadline = time.monotonic() + 30
    pids = _sleepers(folder)
    assert pids
    while any(_is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process was left running"
        await anyio.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and ") Z " in state.read_text())
