"""`ricordo status` and `ricordo why --session`: what the hooks of coding agents did."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import ricordo
from hooked_hosts import HookedHost

DECISION = "We decided to deploy only from the branch release, never from main."
QUESTION = "Which branch do we deploy from?"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookedHost:
    host = HookedHost(folder=tmp_path / "shop")
    monkeypatch.chdir(host.folder)
    return host


def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ricordo("status", "--json").document["hosts"]
    return rows


def test_hosts_of_this_machine_are_shown_with_how_to_connect_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "No coding agent is connected, and none was found" in ricordo("status").out
    (home / ".codex").mkdir()
    out = ricordo("status").out
    assert "Codex          not connected: `ricordo install codex`" in out
    assert "Not found: Claude Code, Gemini CLI" in out
    assert not Path(".ricordo").exists()


def test_a_connected_host_is_shown_with_its_last_hook(host: HookedHost) -> None:
    ricordo("install", "claude-code", "--yes")
    ricordo("remember", DECISION)
    assert "no hook has run yet" in ricordo("status").out
    host.start("one")
    host.prompt(QUESTION, "two")
    out = ricordo("status").out
    assert "last hook: UserPromptSubmit" in out
    assert "ms, gave 1 memory" in out
    row = _rows()[0]
    assert (row["host"], row["connected"], row["scope"], row["troubles"]) == ("claude-code", True, "user", 0)
    assert (row["last_hook"]["event"], row["last_hook"]["given"]) == ("UserPromptSubmit", 1)
    assert row["last_hook"]["milliseconds"] > 0


def test_trouble_of_a_hook_is_counted(host: HookedHost) -> None:
    ricordo("install", "claude-code", "--yes")
    host.run("SessionStart", b"{")
    assert _rows()[0]["troubles"] == 1
    assert "1 run had trouble: `ricordo doctor`" in ricordo("status").out


def test_a_host_that_was_changed_or_damaged_is_shown_as_such(home: Path) -> None:
    ricordo("install", "codex", "--yes")
    hooks = home / ".codex" / "hooks.json"
    text = hooks.read_text()
    hooks.write_text(text.replace("hook codex Stop", "hook codex Halt"))
    assert "by another version: `ricordo install codex`" in ricordo("status").out
    hooks.write_text(text[:-9])
    assert "hooks.json can't be changed safely" in ricordo("status").out
    assert _rows()[1]["state"] == "unreadable"


def test_a_program_that_is_gone_is_told(home: Path) -> None:
    ricordo("install", "claude-code", "--yes")
    [record] = (home / ".local/share/ricordo/installs").glob("claude-code-*.json")
    manifest = home / ".claude/skills/ricordo/.claude-plugin/plugin.json"
    program = ricordo("install", "claude-code", "--dry-run", "--json").document["program"]
    for path in (record, manifest, home / ".claude/skills/ricordo/hooks/hooks.json"):
        path.write_text(path.read_text().replace(program, "/gone/ricordo"))
    assert "the program /gone/ricordo is not there" in ricordo("status").out


def test_a_project_that_is_connected_is_shown_beside_the_user() -> None:
    ricordo("install", "claude-code", "--yes", "--scope", "project")
    rows = [(row["host"], row["scope"], row["connected"]) for row in _rows()]
    assert rows[:3] == [("claude-code", "user", False), ("claude-code", "project", True), ("codex", "user", False)]
    assert not any(connected for _, _, connected in rows[3:])


def test_what_waits_is_counted_and_what_was_learned_is_shown(host: HookedHost) -> None:
    host.said("monday", DECISION)
    host.hook("Stop", "monday")
    assert ricordo("status", "--json").document["waiting"] == 1
    assert "1 part of a transcript: learned from" in ricordo("status").out
    ricordo("maintain")
    document = ricordo("status", "--json").document
    [learned] = [each for each in document["learned"] if each["session"] == "monday"]
    assert any("branch release" in memory["content"] for memory in learned["memories"])
    assert document["waiting"] == 0
    assert "branch release" in ricordo("status").out


def test_why_says_what_a_session_was_given_and_when(host: HookedHost) -> None:
    entry = ricordo("remember", DECISION, "--json").document["entry"]["id"]
    host.start("abc-1")
    host.prompt(QUESTION, "xyz-2")
    for session, event in (("abc", "session-start"), ("xyz-2", "prompt")):
        report = ricordo("why", "--session", session, "--json").document
        assert [(each["id"], each["content"], each["event"]) for each in report["memories"]] == [
            (entry, DECISION, event)
        ]
    assert ricordo("why", "--session", "last", "--json").document["session"] == "xyz-2"
    out = ricordo("why", "--session", "abc-1").out
    assert "Claude Code, session abc-1" in out
    assert "as the session began" in out
    given = ricordo("why", entry, "--json").document["given"]
    assert [(each["session"], each["event"]) for each in given] == [("xyz-2", "prompt"), ("abc-1", "session-start")]
    assert "given to Claude Code session xyz-2 at a prompt" in ricordo("why", entry).out
    ricordo("forget", entry, "--yes")
    assert "(forgotten)" in ricordo("why", "--session", "xyz").out


def test_an_unknown_session_is_refused_with_those_that_are_known(host: HookedHost) -> None:
    ricordo("remember", DECISION)
    host.start("abc-1")
    host.start("abc-2")
    assert "No session begins with q: abc-" in ricordo("why", "--session", "q").err
    assert "More than one session begins with abc" in ricordo("why", "--session", "abc").err


def test_a_host_without_hooks_is_shown_with_the_last_start_of_its_server(tmp_path: Path) -> None:
    ricordo("install", "claude-desktop", "--yes")
    assert "it has not started the server yet" in ricordo("status").out
    # the input ends after the handshake, and the server with it
    request = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": request})
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": {"query": "x"}},
    }
    command = [sys.executable, "-m", "ricordo", "mcp", "--root", str(tmp_path / "own"), "--client", "claude-desktop"]
    done = subprocess.run(
        command, check=False, input=f"{message}\n{json.dumps(call)}\n", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "it last started the server" in ricordo("status").out
    [row] = [row for row in _rows() if row["host"] == "claude-desktop"]
    assert (row["connected"], row["last_hook"], row["troubles"]) == (True, None, 0)
    assert row["last_served"] is not None
