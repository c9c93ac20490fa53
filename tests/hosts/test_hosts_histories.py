"""What the real hosts wrote before they were connected is found by `ricordo import NAME`, and taken in once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from real_hosts import ClaudeCode, Codex, GeminiCli, OpenCode, RealHost, call_shell, start_host

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

DECISION = "We decided to deploy only from the branch mainline, never from a feature branch."


@pytest.fixture(params=[ClaudeCode, Codex, GeminiCli, OpenCode], ids=lambda kind: kind.name)
def unconnected(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealHost]:
    """Return each host, not connected."""
    with start_host(request.param, tmp_path) as host:
        yield host


def test_the_history_of_a_host_is_imported_once_also_after_it_was_connected(unconnected: RealHost) -> None:
    host = unconnected
    session = host.say(DECISION, answer=call_shell(host, "echo mainline")).session
    [planned] = host.ricordo_json("import", host.name, "--dry-run")["plans"]
    assert [(each["name"], each["sessions"]) for each in planned["formats"] if each["messages"]] == [(host.name, 1)]
    assert not (host.project / ".ricordo").exists()
    done = host.ricordo_json("import", host.name)
    assert (done["sessions"], done["problems"], done["unreadable"]) == (1, [], [])
    [entry] = host.ricordo_json("memory", "list")["entries"]
    assert entry["content"] == DECISION
    assert entry["source"]["origin"].startswith(f"{host.name}:")
    shown = host.ricordo_json("session", "show", entry["source"]["session"])["conversation"]
    assert [each["role"] for each in shown if each["text"] == DECISION] == ["user"]
    assert "mainline" in str([each for each in shown if each["role"] == "tool"])
    assert host.ricordo_json("import", host.name)["messages"]["new"] == 0
    host.install()
    host.say("Thanks, that is all.", session=session)
    later = host.ricordo_json("import", host.name)
    assert later["messages"]["known"] >= done["messages"]["new"]
    assert later["messages"]["new"] >= 2
    host.learn()
    assert [each["content"] for each in host.ricordo_json("memory", "list")["entries"]] == [DECISION]
    said = host.ricordo_json("session", "show", entry["source"]["session"])["conversation"]
    assert [each["text"] for each in said].count(DECISION) == 1
    assert len(host.ricordo_json("session", "list")["sessions"]) == 1
