"""Gemini CLI and opencode, the real programs: what is written is accepted, hooks run, and a memory comes back."""

import json

import pytest

from real_hosts import GeminiCli, OpenCode, RealHost

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

DECISION = "We decided to deploy only from the branch mainline, never from a feature branch."
QUESTION = "From which branch do we deploy?"
_TRIES = 5
STATEMENT = "The staging database runs on port 5433."


def _list_events(host: RealHost) -> list[str]:
    log = host.home / ".local" / "share" / "ricordo" / "hooks" / "log.jsonl"
    runs = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [run["trouble"] for run in runs if run["trouble"]] == []
    return [run["event"] for run in runs if run["host"] == host.name]


def _list_servers(host: RealHost) -> str:
    """Return the line in which the host lists our server; it gives a server few seconds, so it is asked again."""
    for _ in range(_TRIES):
        listed = host.run(["mcp", "list"])
        [line] = [line for line in (listed.stdout + listed.stderr).splitlines() if " ricordo" in line]
        if "connected" in line.lower() and "disconnected" not in line.lower():
            break
    return line


def _check_memory(host: RealHost) -> None:
    """Say something in a session, learn, ask in the next one, and let the model use a tool."""
    host.say(DECISION)
    host.learn()
    [entry] = host.ricordo_json("memory", "list")["entries"]
    assert entry["content"] == DECISION
    asked = host.say(QUESTION)
    assert asked.sent.count("branch mainline") == 1
    [given] = host.ricordo_json("why", "--session", asked.session)["memories"]
    assert given["id"] == entry["id"]
    saved = host.use_tool("remember", content=STATEMENT, kind="fact")
    assert "Stored as a fact" in saved.results[-1]
    assert STATEMENT in [each["content"] for each in host.ricordo_json("memory", "list")["entries"]]


def test_gemini_accepts_what_is_written_and_has_a_memory_across_sessions(gemini: GeminiCli) -> None:
    assert "Connected" in _list_servers(gemini)
    _check_memory(gemini)
    assert _list_events(gemini)[:3] == ["BeforeAgent", "AfterAgent", "SessionEnd"]
    gemini.ricordo("uninstall", "gemini", "--yes")
    assert "ricordo" not in gemini.run(["mcp", "list"]).stderr


def test_opencode_accepts_what_is_written_and_has_a_memory_across_sessions(opencode: OpenCode) -> None:
    assert "connected" in _list_servers(opencode)
    _check_memory(opencode)
    assert _list_events(opencode)[:2] == ["chat.message", "session.idle"]
    opencode.ricordo("uninstall", "opencode", "--yes")
    assert "ricordo" not in opencode.run(["mcp", "list"]).stdout
