"""The official conformance suite and the inspector's command line against real servers.

`make test-mcp` installs both programs into `build/mcp-tools`, from npm, and runs these tests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_clients import serve_over_http

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(600)]

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "mcp-tools" / "node_modules"
NODE = PROGRAMS / "node" / "bin" / "node"
CONFORMANCE = PROGRAMS / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = PROGRAMS / "@modelcontextprotocol" / "inspector" / "clients" / "cli" / "build" / "index.js"
SERVER = (sys.executable, "-m", "ricordo", "mcp")
# The others need tools, resources and prompts of a test server, or a feature that is not offered: logging, completion,
# sampling, elicitation and resumable streams.
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)


def _require(program: Path) -> str:
    if not (NODE.exists() and program.exists()):
        missing = pytest.fail if os.environ.get("RICORDO_HOSTS") == "required" else pytest.skip
        missing(f"{program} is not installed: `make test-mcp` installs it")
    return str(program)


def test_the_conformance_suite_passes_for_every_feature_that_is_offered(tmp_path: Path) -> None:
    program, failed = _require(CONFORMANCE), []
    with serve_over_http(tmp_path, "--without-token") as url:
        for scenario in SCENARIOS:
            command = [str(NODE), program, "server", "--url", url, "--scenario", scenario]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
            if done.returncode or ", 0 failed" not in done.stdout:
                failed.append(f"{scenario}: {done.stdout[-500:]}{done.stderr[-500:]}")
    assert failed == []


def _inspect(root: Path, method: str, *options: str) -> Any:
    command = [str(NODE), _require(INSPECTOR), "--cli", *SERVER, "--root", str(root), "--method", method, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls_every_tool(tmp_path: Path) -> None:
    root = tmp_path / "root"
    called: set[str] = set()

    def call(name: str, **arguments: str) -> Any:
        given = [part for key, value in arguments.items() for part in ("--tool-arg", f"{key}={value}")]
        result = _inspect(root, "tools/call", "--tool-name", name, *given)
        assert not result.get("isError"), result
        called.add(name)
        return result["structuredContent"]

    saved = call("remember", content="We deploy only from main.")
    assert call("recall", query="deploy")["memories"][0]["id"] == saved["id"]
    assert len(call("list_memories")["memories"]) == 1
    changed = call("update_memory", id=saved["id"], content="We deploy only from release.")
    call("undo", change=changed["change"])
    assert call("show_memory", id=saved["id"])["memory"]["text"] == "We deploy only from main."
    assert call("forget", ids=json.dumps([saved["id"]]))["forgotten"] == [saved["id"]]
    assert call("search_sessions", query="deploy")["messages"] == []
    assert called == {tool["name"] for tool in _inspect(root, "tools/list")["tools"]}
    assert _inspect(root, "resources/list")["resources"]
    assert _inspect(root, "resources/templates/list")["resourceTemplates"]
    assert _inspect(root, "prompts/list")["prompts"]
