"""A server works between its calls: it answers the hooks of coding agents, and learns from what they handed over."""

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from hooked_hosts import HookedHost, short_runtime_folder
from mcp_clients import say_handshake, say_request
from piped_processes import PipedProcess

QUESTION = "Which branch do we deploy from?"


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + 90
    while not condition():
        assert monotonic() < deadline
        sleep(0.05)


def test_a_server_answers_hooks_and_learns_from_what_they_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with short_runtime_folder() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        host = HookedHost(folder=tmp_path / "shop")
        host.said("one", "We decided to deploy only from the branch release.")
        host.hook("SessionEnd")
        assert host.waiting()
        monkeypatch.chdir(host.folder)
        with PipedProcess(["ricordo", "mcp"]) as server:
            server.stdin.write(say_handshake())
            server.stdin.flush()
            _wait_until(lambda: not host.waiting())
            server.stdin.write(say_request(1, "tools/call", {"name": "recall", "arguments": {"query": QUESTION}}))
            server.stdin.flush()
            while (answer := json.loads(server.stdout.readline())).get("id") != 1:
                pass
            assert "branch release" in answer["result"]["content"][0]["text"]
            assert "branch release" in host.prompt(QUESTION, "two").context
            last = json.loads((host.hooks_folder / "log.jsonl").read_text(encoding="utf-8").splitlines()[-1])
            assert last["source"] == "server"
            server.stdin.close()
            assert server.wait(timeout=60) == 0
