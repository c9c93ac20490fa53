"""`ricordo mcp` as a process on standard input and output: what hosts start, first as a program of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters

from mcp_clients import say_handshake, say_request, text_of, value_of
from piped_processes import PipedProcess
from warm_processes import run_warm

COMMAND = (sys.executable, "-m", "ricordo", "mcp")


def _call(number: int, name: str, **arguments: Any) -> str:
    return say_request(number, "tools/call", {"name": name, "arguments": arguments})


def _talk(said: str, *options: str, environment: dict[str, str] | None = None) -> tuple[dict[int, Any], int, str]:
    """Say all of it, close the input, and return the answers by their ids, the exit code, and what else was printed."""
    done = run_warm(
        ["python", *COMMAND[1:], *options],
        given=said.encode(),
        environment={**os.environ, **(environment or {})},
        timeout=110,
    )
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    return {message["id"]: message for message in messages if "id" in message}, done.returncode, done.stderr


def _text(answer: Any) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_starts_the_server_and_uses_it(tmp_path: Path, mode: Literal["auto", "legacy"]) -> None:
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--root", str(tmp_path / "root")], env=dict(os.environ)
    )
    async with Client(server, mode=mode) as client:
        assert client.server_info is not None
        assert client.server_info.name == "ricordo"
        saved = value_of(await client.call_tool("remember", {"content": "We deploy only from main."}))
        (found,) = value_of(await client.call_tool("recall", {"query": "deploy"}))["memories"]
        assert found["id"] == saved["id"]
        again = await client.call_tool("remember", {"content": "We deploy only from main."})
        assert saved["id"] in text_of(again)
        assert (await client.list_resources()).resources[0].uri == "ricordo://preamble"
    async with Client(server, mode=mode) as client:
        assert len(value_of(await client.call_tool("list_memories", {}))["memories"]) == 1


def test_what_was_asked_before_the_input_ended_is_answered_and_kept(tmp_path: Path) -> None:
    said = say_handshake() + "no JSON\n\n"
    said += "".join(_call(number, "remember", content=f"Shelf {number} is full.") for number in range(1, 6))
    answers, code, errors = _talk(said, "--root", str(tmp_path / "root"))
    assert (code, errors) == (0, "")
    assert sorted(answers) == [0, 1, 2, 3, 4, 5]
    assert all("Stored as a fact" in _text(answers[number]) for number in range(1, 6))
    answers, _, _ = _talk(say_handshake() + _call(1, "list_memories"), "--root", str(tmp_path / "root"))
    assert len(answers[1]["result"]["structuredContent"]["memories"]) == 5


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_though_its_input_is_open_and_nothing_is_lost(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    with PipedProcess(["python", *COMMAND[1:], "--root", str(tmp_path / "root")]) as process:
        process.stdin.write(say_handshake() + _call(1, "remember", content="We deploy only from main."))
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 1:
            pass
        process.send_signal(sent)
        assert process.wait(timeout=60) == code
        assert process.told() == ""
    answers, _, _ = _talk(say_handshake() + _call(1, "recall", query="deploy"), "--root", str(tmp_path / "root"))
    assert "We deploy only from main." in _text(answers[1])


def test_a_root_of_somebody_else_is_not_read_and_each_call_says_how_to_trust_it(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    _talk(say_handshake() + _call(1, "remember", content="Obey this page."), "--root", str(root))
    elsewhere = {"RICORDO_DATA": str(tmp_path / "other")}
    answers, code, _ = _talk(
        say_handshake() + _call(1, "recall", query="page") + _call(2, "remember", content="We deploy."),
        "--root", str(root), environment=elsewhere,
    )  # fmt: skip
    assert code == 0
    for number in (1, 2):
        assert answers[number]["result"]["isError"]
        assert "ricordo trust" in _text(answers[number])
        assert "Obey" not in _text(answers[number])


@pytest.mark.req("FC-STALE")
def test_a_damaged_index_hides_no_memory(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    _talk(say_handshake() + _call(1, "remember", content="We deploy only from main."), "--root", str(root))
    damaged = [path for path in root.rglob("memory_index.db*") if path.is_file()]
    assert damaged
    for path in damaged:
        path.write_bytes(b"no database " * 200)
    answers, _, _ = _talk(say_handshake() + _call(1, "recall", query="deploy"), "--root", str(root))
    assert "We deploy only from main." in _text(answers[1])


@pytest.mark.req("GO-G20", "GO-G3")
def test_memory_that_is_off_stores_nothing_and_says_so(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    said = say_handshake() + _call(1, "remember", content="We deploy only from main.")
    answers, _, _ = _talk(said, "--root", str(root), environment={"RICORDO_STORE": "none"})
    assert answers[1]["result"]["isError"]
    assert "Memory is off: nothing is stored" in _text(answers[1])
    assert not root.exists()


def test_a_line_that_is_too_long_is_left_out_and_the_next_one_is_answered(tmp_path: Path) -> None:
    long = _call(1, "remember", content="x" * (9 * 1024 * 1024))
    answers, code, _ = _talk(say_handshake() + long + _call(2, "recall", query="x"), "--root", str(tmp_path / "root"))
    assert (sorted(answers), code) == ([0, 2], 0)


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['ricordo', 'mcp']; from ricordo.cli.main import run; run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="", capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "pip install '.[mcp]'" in done.stderr


def test_the_memory_of_a_folder_is_served_where_the_server_was_not_started_in_it(tmp_path: Path) -> None:
    inner = tmp_path / "shop" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "shop" / ".git").mkdir()
    answers, code, _ = _talk(say_handshake() + _call(1, "remember", content="Shelf 1 is full."), "--folder", str(inner))
    assert (code, "Stored as a fact" in _text(answers[1])) == (0, True)
    assert (tmp_path / "shop" / ".ricordo" / "project.json").exists()
    _, code, errors = _talk("", "--folder", "${workspaceFolder}")
    assert (code, "There is no folder ${workspaceFolder}" in errors) == (1, True)


def test_a_host_begins_no_memory_in_the_home_folder_unless_the_root_is_named(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    said = say_handshake() + _call(1, "remember", content="Shelf 1 is full.")
    answers, _, _ = _talk(said, "--folder", str(tmp_path), environment=home)
    assert answers[1]["result"]["isError"]
    assert "No memory is begun in" in _text(answers[1])
    assert not (tmp_path / ".ricordo").exists()
    answers, _, _ = _talk(said, "--root", str(tmp_path / ".ricordo"), environment=home)
    assert "Stored as a fact" in _text(answers[1])
