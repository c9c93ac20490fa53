"""Whatever happens to a hook, the real hosts go on, and nothing that was said is lost."""

import json
import sys
from pathlib import Path

import pytest

from real_hosts import ClaudeCode, Codex, RealHost, call_shell

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

DECISION = "We decided to deploy only from the branch mainline, never from a feature branch."
QUESTION = "From which branch do we deploy?"
_HOOK_FILES = (
    ".claude/skills/ricordo/hooks/hooks.json",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".config/opencode/plugins/ricordo.js",
)


def _wrap_program(host: RealHost, script: str) -> None:
    """Let the hooks of a host start a shell script in place of the program, which is `$0` in it."""
    wrapper = host.home / "wrapper" / "ricordo"
    wrapper.parent.mkdir(exist_ok=True)
    wrapper.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    wrapper.chmod(0o755)
    for name in _HOOK_FILES:
        path = host.home / name
        if path.exists():
            program = Path(sys.executable).with_name("ricordo")
            path.write_text(path.read_text(encoding="utf-8").replace(str(program), str(wrapper)), encoding="utf-8")
    if isinstance(host, Codex):
        host.trust_hooks()


def _program(host: RealHost) -> str:
    return f"{Path(sys.executable).with_name('ricordo')}"


def test_a_killed_hook_stops_nobody_and_a_later_one_hands_over_all(host: RealHost) -> None:
    _wrap_program(host, "kill -9 $$")
    first = host.say(DECISION)
    _wrap_program(host, f'exec {_program(host)} "$@"')
    host.say("Thank you.", session=first.session)
    host.learn()
    assert "branch mainline" in host.say(QUESTION).sent


def test_a_full_disk_stops_nobody(host: RealHost) -> None:
    host.ricordo("remember", DECISION)
    _wrap_program(host, f'ulimit -f 0; exec {_program(host)} "$@"')
    host.say(QUESTION)
    _wrap_program(host, f'exec {_program(host)} "$@"')
    assert "branch mainline" in host.say(QUESTION).sent


def test_a_root_that_can_not_be_made_stops_nobody(host: RealHost) -> None:
    host.variables["RICORDO_ROOT"] = "/proc/ricordo"
    assert "Understood" in host.say(QUESTION).printed


def test_a_hook_that_prints_no_json_and_fails_stops_nobody(host: RealHost) -> None:
    _wrap_program(host, "echo nonsense; exit 3")
    assert "Understood" in host.say(QUESTION).printed


@pytest.mark.soak
def test_a_transcript_of_100_megabytes_stops_nobody(claude_code: ClaudeCode) -> None:
    session = claude_code.say(DECISION).session
    [transcript] = (claude_code.home / ".claude" / "projects").rglob(f"{session}.jsonl")
    noise = json.dumps({"type": "api-request-blob", "blob": "x" * 1_000_000}) + "\n"
    with transcript.open("a", encoding="utf-8") as file:
        file.writelines(noise for _ in range(100))
    claude_code.say("We decided to name the release marigold.", session=session)
    claude_code.learn()
    assert "mainline" in claude_code.ricordo("recall", "deploy branch")
    assert "marigold" in claude_code.ricordo("recall", "name of the release")


def test_an_agent_can_neither_connect_nor_disconnect_a_host(host: RealHost) -> None:
    command = f"{_program(host)} uninstall {host.name} --yes"
    reply = host.say("Disconnect.", answer=call_shell(host, command))
    assert "up to a person" in reply.results[-1]
    assert host.ricordo_json("install", host.name, "--dry-run")["files"] == []


def test_off_gives_nothing_and_learns_nothing(host: RealHost) -> None:
    host.ricordo("remember", DECISION)
    host.variables["RICORDO_HOOKS"] = "off"
    assert "branch mainline" not in host.say(f"We decided to use the port 7007. {QUESTION}").sent
    del host.variables["RICORDO_HOOKS"]
    host.learn()
    assert "7007" not in host.ricordo("recall", "which port")
