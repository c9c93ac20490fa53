"""A memory across the sessions of the real hosts: what is said in one of them is there in the next."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from real_hosts import ClaudeCode, OpenCode, RealHost
from ricordo.messages import Usage
from ricordo.testing import RecordedRequest, Say, ScriptItem

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(400)]

DECISION = "We decided to deploy only from the branch mainline, never from a feature branch."
QUESTION = "From which branch do we deploy?"


def test_a_decision_of_one_session_is_brought_by_a_prompt_of_the_next(host: RealHost) -> None:
    host.variables["RICORDO_CONSOLIDATION"] = "off"
    host.say(DECISION)
    host.learn()
    assert "branch mainline" not in host.say("Hello.").sent
    asked = host.say(QUESTION)
    assert "branch mainline" in asked.sent
    [given] = host.ricordo_json("why", "--session", asked.session)["memories"]
    assert given["event"] == "prompt"


def test_after_consolidation_a_session_begins_with_it(host: RealHost) -> None:
    host.say(DECISION)
    host.learn()
    assert "branch mainline" in host.say("Hello.").sent


def test_what_the_model_saves_is_there_at_once_and_every_tool_answers_with_types(typed_host: RealHost) -> None:
    host = typed_host
    statement = "The staging database runs on port 5433."
    saved = host.use_tool("remember", content=statement, kind="fact")
    stored = saved.typed_results()[-1]
    assert (stored["text"], stored["kind"]) == (statement, "fact")
    assert [entry["content"] for entry in host.ricordo_json("memory", "list")["entries"]] == [statement]
    found = host.use_tool("recall", query="port of the staging database")
    assert [memory["text"] for memory in found.typed_results()[-1]["memories"]] == [statement]
    assert [memory["trust"] for memory in found.typed_results()[-1]["memories"]] == ["agent"]
    forgotten = host.use_tool("forget", ids=[stored["id"]])
    assert forgotten.typed_results()[-1]["forgotten"] == [stored["id"]]
    assert host.ricordo_json("memory", "list")["entries"] == []


def test_what_is_forgotten_is_gone_from_the_next_session(host: RealHost) -> None:
    host.ricordo("remember", DECISION)
    assert "branch mainline" in host.say(QUESTION).sent
    [entry] = host.ricordo_json("memory", "list")["entries"]
    host.ricordo("forget", entry["id"], "--yes")
    assert "branch mainline" not in host.say(QUESTION).sent


def test_a_resumed_session_gets_nothing_twice(host: RealHost) -> None:
    host.ricordo("remember", DECISION)
    first = host.say(QUESTION)
    assert first.sent.count("branch mainline") >= 1
    again = host.say(f"Once more: {QUESTION}", session=first.session)
    assert again.session == first.session
    assert again.sent.count("branch mainline") == first.sent.count("branch mainline")


def test_a_compaction_keeps_what_was_said_and_what_is_remembered(claude_code: ClaudeCode) -> None:
    claude_code.ricordo("remember", "Releases are signed with the key of the year.")
    session = claude_code.say(DECISION).session
    claude_code.say("And the staging port is 5433.", session=session)

    def sum_up(request: RecordedRequest) -> ScriptItem:
        del request
        return Say("<summary>They talked about deployments. The word is marigold.</summary>")

    asked = claude_code.compact(session, sum_up)
    assert any("what the user decided, asked for, corrected" in json.dumps(each.body) for each in asked)
    after = claude_code.say("Go on.", session=session)
    assert "key of the year" in after.sent
    claude_code.learn()
    assert "branch mainline" in claude_code.ricordo("recall", "deploy branch")
    assert "branch mainline" in claude_code.say(QUESTION).sent


@pytest.mark.soak
def test_opencode_keeps_what_was_said_through_a_compaction_and_begins_anew(opencode: OpenCode) -> None:
    opencode.ricordo("remember", "Releases are signed with the key of the year.")

    def fill(request: RecordedRequest) -> ScriptItem:
        is_turn = any(DECISION in message.text for message in request.messages[-1:]) and bool(request.tools)
        return Say("Understood.", usage=Usage(input=99_500, output=10) if is_turn else None)

    first = opencode.say(DECISION, answer=fill)
    assert first.sent.count("key of the year") == 1
    second = opencode.say("And the staging port is 5433.", session=first.session)
    assert any(
        "what the user decided, asked for, corrected" in json.dumps(each.body) for each in opencode.server.requests
    )
    assert "key of the year" in json.dumps(opencode.say("Go on.", session=second.session).requests[0].body)
    opencode.learn()
    assert "branch mainline" in opencode.ricordo("recall", "deploy branch")


def test_three_sessions_at_once_lose_and_double_nothing(host: RealHost) -> None:
    said = [f"We decided that the service {name} listens on port {port}." for name, port in
            (("atlas", 7001), ("borealis", 7002), ("cirrus", 7003))]  # fmt: skip
    with ThreadPoolExecutor(3) as pool:
        sessions = {reply.session for reply in pool.map(host.say, said)}
    assert len(sessions) == 3
    host.learn()
    contents = [entry["content"] for entry in host.ricordo_json("memory", "list")["entries"]]
    assert {text: sum(text.rstrip(".") in content for content in contents) for text in said} == dict.fromkeys(said, 1)


def test_status_and_why_tell_what_happened_in_a_session(host: RealHost) -> None:
    host.ricordo("remember", DECISION)
    session = host.say(QUESTION).session
    status = host.ricordo_json("status")
    [row] = [row for row in status["hosts"] if row["host"] == host.name and row["connected"]]
    assert row["last_hook"]["milliseconds"] > 0
    assert row["troubles"] == 0
    report = host.ricordo_json("why", "--session", session)
    assert [each["content"] for each in report["memories"]] == [DECISION]
