"""What one turn sends is as the providers document it, and its recording holds nothing of this machine."""

import json
from typing import Any

from source_tree import ROOT
from warm_processes import run_warm


def _recorded() -> list[dict[str, object]]:
    done = run_warm(["python", str(ROOT / "scripts" / "record_turn.py")])
    assert done.returncode == 0, done.stderr
    assert "not-a-key" not in done.stdout
    assert "127.0.0.1" not in done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_recorded_turn_shows_the_call_and_its_result_in_each_protocol() -> None:
    chat_first, chat_second, messages_first, messages_second = _recorded()
    assert [each["path"] for each in (chat_first, messages_second)] == ["/v1/chat/completions", "/v1/messages"]
    assert chat_first["headers"] == chat_second["headers"]
    assert "***" in str(chat_first["headers"])

    (first, second) = (_body(chat_first), _body(chat_second))
    assert second["messages"][: len(first["messages"])] == first["messages"], "each request extends the last one"
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][2]["tool_calls"][0]["id"] == second["messages"][3]["tool_call_id"] == "call_1"
    assert second["messages"][3]["content"] == "main"
    assert first["tools"][0]["function"]["name"] == "branch"

    (first, second) = (_body(messages_first), _body(messages_second))
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"][0]["type"] == "tool_use"
    assert second["messages"][2]["content"][0]["type"] == "tool_result"
    assert second["messages"][2]["content"][0]["tool_use_id"] == second["messages"][1]["content"][0]["id"]
    assert first["system"] == second["system"]
    assert first["tools"][0]["name"] == "branch"


def _body(request: dict[str, object]) -> dict[str, Any]:
    body = request["body"]
    assert isinstance(body, dict)
    return body
