"""Hooks and the drainer can be killed at any act on a file, and several can run at once: nothing is lost or doubled."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from command_line import ricordo
from hooked_hosts import HookedHost
from warm_processes import run_warm

SAID = ("We decided to deploy only from the branch release.", "We decided to keep invoices for ten years.")

# Ends the process before its `number`th act that changes a file below one of the folders.
_KILLING = """
import os, runpy, sys
number, data, root = int(sys.argv[1]), sys.argv[2], sys.argv[3]
del sys.argv[1:4]
sys.argv[0] = "ricordo"
count = 0
def end(event, values):
    global count
    if event == "open":
        path, _, flags = values
        is_act = isinstance(path, (str, bytes)) and bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    else:
        path, is_act = values[0] if values else "", event in {"os.rename", "os.remove", "os.mkdir", "os.truncate"}
    if is_act and str(path).startswith((data, root)):
        count += 1
        if count == number:
            os._exit(9)
sys.addaudithook(end)
runpy.run_module("ricordo", run_name="__main__")
"""


@pytest.fixture
def host(tmp_path: Path) -> HookedHost:
    return HookedHost(folder=tmp_path / "shop")


def _run_killed(host: HookedHost, number: int, arguments: list[str], data: bytes = b"") -> int:
    """Run a command that is killed before an act, and return its exit code: 9 if it was."""
    folders = [str(host.hooks_folder.parent), str(host.folder)]
    command = ["python", "-c", _KILLING, str(number), *folders, *arguments]
    return run_warm(command, given=data, folder=host.folder).returncode


def _check_learned_once(host: HookedHost) -> None:
    document = host.command("maintain")
    assert document["hooks"] is None or document["hooks"]["left"] == 0
    assert host.waiting() == []
    shown = ricordo("session", "show", "one", "--root", str(host.folder / ".ricordo"), "--json").document
    texts = json.dumps(shown)
    assert [texts.count(each) for each in SAID] == [1, 1]
    assert [sum(each in entry for entry in host.entries()) for each in SAID] == [1, 1]


def _say(host: HookedHost) -> None:
    for each in SAID:
        host.said("one", each)


def test_a_hook_that_is_killed_at_any_act_leaves_an_item_or_none_and_the_next_one_hands_all_over(
    host: HookedHost,
) -> None:
    _say(host)
    payload = {"session_id": "one", "cwd": str(host.folder), "transcript_path": str(host.transcript("one"))}
    codes = []
    for number in range(1, 12):
        codes.append(_run_killed(host, number, ["hook", "claude-code", "Stop"], json.dumps(payload).encode()))
        assert all(json.loads(path.read_text("ascii"))["size"] for path in host.waiting())
    assert codes[0] == 9
    assert codes[-1] == 0
    host.hook("SessionEnd", reason="other")
    _check_learned_once(host)


@pytest.mark.req("DF-B24")
@pytest.mark.parametrize("number", [1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144])
def test_a_drainer_that_is_killed_at_any_act_loses_and_doubles_nothing(host: HookedHost, number: int) -> None:
    _say(host)
    host.hook("Stop")
    _run_killed(host, number, ["maintain", "--root", str(host.folder / ".ricordo")])
    _check_learned_once(host)


@pytest.mark.soak
def test_a_drainer_that_is_killed_at_each_act_loses_and_doubles_nothing(tmp_path: Path) -> None:
    number, code = 1, 9
    while code == 9:
        host = HookedHost(folder=tmp_path / str(number))
        _say(host)
        host.hook("Stop")
        code = _run_killed(host, number, ["maintain", "--root", str(host.folder / ".ricordo")])
        _check_learned_once(host)
        number += 1


def test_three_sessions_that_end_at_once_and_two_drainers_lose_and_double_nothing(host: HookedHost) -> None:
    sessions = ("one", "two", "three")
    for number, session in enumerate(sessions):
        host.said(session, f"We decided to keep document {number} for {number + 2} years.")
    with ThreadPoolExecutor() as pool:
        done = pool.map(lambda session: host.hook("SessionEnd", session, reason="other"), sessions * 2)
        assert [each.code for each in done] == [0] * 6
    assert len(host.waiting()) == 6
    command = ["ricordo", "maintain", "--root", str(host.folder / ".ricordo")]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: run_warm(command, timeout=100), range(2)))
    host.command("maintain")
    assert host.waiting() == []
    assert sorted(sum(f"document {number}" in each for each in host.entries()) for number in range(3)) == [1, 1, 1]


def test_a_long_transcript_is_taken_in_part_by_part_across_runs(host: HookedHost) -> None:
    for number in range(6):
        host.said("one", f"We decided to keep document {number} for {number + 2} years.", answer="x" * 1_500_000)
    host.hook("Stop")
    runs = 0
    while host.waiting():
        runs += 1
        command = ["maintain", "--root", str(host.folder / ".ricordo"), "--seconds", "0.001"]
        ricordo(*command)
        assert runs < 10
    assert runs > 1
    assert [sum(f"document {number}" in each for each in host.entries()) for number in range(6)] == [1] * 6


def test_a_line_that_the_host_is_still_writing_waits_for_the_next_hook(host: HookedHost) -> None:
    _say(host)
    path = host.transcript("one")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    host.hook("Stop")
    assert host.command("maintain")["hooks"]["messages"] == 3
    path.write_bytes(whole)
    host.hook("Stop")
    assert host.command("maintain")["hooks"]["messages"] == 1
    _check_learned_once(host)


@pytest.mark.req("GO-D13")
def test_what_hooks_keep_can_be_read_by_its_user_only(host: HookedHost) -> None:
    _say(host)
    host.hook("Stop")
    host.command("maintain")
    host.start("two")
    modes = {path: path.stat().st_mode & 0o077 for path in host.hooks_folder.rglob("*")}
    assert {str(path): mode for path, mode in modes.items() if mode and os.name == "posix"} == {}
