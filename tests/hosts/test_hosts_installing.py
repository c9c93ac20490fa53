"""What `ricordo install` writes is what the real hosts accept, and `uninstall` takes it back."""

import json

import pytest

from real_hosts import ClaudeCode, Codex

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]


def test_claude_code_accepts_and_loads_the_plugin(claude_code: ClaudeCode) -> None:
    plugin = claude_code.home / ".claude" / "skills" / "ricordo"
    done = claude_code.run(["plugin", "validate", str(plugin), "--strict"])
    assert done.returncode == 0, done.stdout + done.stderr
    listed = claude_code.run(["plugin", "list"]).stdout
    assert "ricordo@skills-dir" in listed
    assert "loaded" in listed
    claude_code.ricordo("uninstall", "claude-code", "--yes")
    assert "ricordo" not in claude_code.run(["plugin", "list"]).stdout


def test_claude_code_offers_the_tools_and_the_skills_without_a_search(claude_code: ClaudeCode) -> None:
    reply = claude_code.use_tool("recall", query="")
    tools = {tool.name for tool in reply.requests[-1].tools}
    assert {f"{claude_code.tool_prefix}{name}" for name in ("remember", "recall", "forget")} <= tools
    for skill in ("remember", "recall", "forget"):
        assert f"ricordo:{skill}" in reply.sent


def test_codex_knows_the_hooks_and_runs_none_before_they_are_reviewed(codex: Codex) -> None:
    ours = [hook for hook in codex.list_hooks() if "ricordo" in hook["command"]]
    assert {hook["trustStatus"] for hook in ours} == {"trusted"}
    assert {hook["eventName"] for hook in ours} == {
        "sessionStart", "userPromptSubmit", "preCompact", "postCompact", "stop", "subagentStop", "sessionEnd",
    }  # fmt: skip
    codex.ricordo("install", "codex", "--yes")
    assert {hook["trustStatus"] for hook in codex.list_hooks()} == {"trusted"}
    codex.ricordo("uninstall", "codex", "--yes")
    assert codex.list_hooks() == []


def test_codex_tells_when_a_session_begins_and_ends(codex: Codex) -> None:
    codex.say("Hello.")
    log = (codex.home / ".local" / "share" / "ricordo" / "hooks" / "log.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]


def test_codex_offers_the_tools(codex: Codex) -> None:
    tools = {tool.name for tool in codex.use_tool("recall", query="").requests[-1].tools}
    assert {f"{codex.tool_prefix}{name}" for name in ("remember", "recall", "forget")} <= tools
