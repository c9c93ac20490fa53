"""Hooks of the hosts beside Claude Code and Codex: what each sends, what it reads, and what is learned from it."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from command_line import ricordo
from hooked_hosts import HookedHost, Printed

DECISION = "We decided to deploy only from the branch release, never from main."
QUESTION = "Which branch do we deploy from?"
TIME = "2026-11-02T09:00:00.000Z"
MILLISECONDS = 1_793_610_000_000


@pytest.fixture
def taught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookedHost:
    """A project with two memories, of which one is about the question."""
    host = HookedHost(folder=tmp_path / "shop")
    monkeypatch.chdir(host.folder)
    ricordo("remember", DECISION)
    ricordo("remember", "The cellar has forty chairs.")
    return host


def _run(host: HookedHost, name: str, event: str, **payload: object) -> Printed:
    return host.run(event, json.dumps(payload).encode(), host=name)


def _gemini(host: HookedHost, prompt: str, session: str = "one", transcript: str = "") -> Printed:
    payload = {"session_id": session, "cwd": str(host.folder), "hook_event_name": "BeforeAgent", "timestamp": TIME}
    return _run(host, "gemini", "BeforeAgent", **payload, transcript_path=transcript, prompt=prompt)


def test_gemini_gets_at_the_first_prompt_what_a_session_starts_with_and_nothing_twice(taught: HookedHost) -> None:
    taught.is_real = True
    first = _gemini(taught, "Hello.")
    assert "branch release" in first.context
    assert set(json.loads(first.out)) == {"hookSpecificOutput"}
    assert json.loads(first.out)["hookSpecificOutput"]["hookEventName"] == "BeforeAgent"
    assert _gemini(taught, QUESTION).out == ""
    assert "branch release" in _gemini(taught, "/chat list", "two").context
    assert _gemini(taught, "And now?", "two").out == ""


def test_gemini_gets_it_again_at_the_first_prompt_after_the_session_was_summed_up(taught: HookedHost) -> None:
    path = taught.folder / "chat.jsonl"

    def sum_up(name: str) -> None:
        summary = {"id": name, "timestamp": TIME, "type": "user", "content": [{"text": "<state_snapshot>\n<x/>"}]}
        with path.open("a", encoding="utf-8") as file:
            # the program writes the message, and then the whole window, which it may write again
            file.writelines(json.dumps(each) + "\n" for each in (summary, {"$set": {"messages": [summary]}}))

    prompts = iter(f"{number} of these, please." for number in range(9))

    def ask() -> str:
        return _gemini(taught, next(prompts), transcript=str(path)).context

    path.write_text(json.dumps({"sessionId": "one", "projectHash": "ab"}) + "\n")
    assert "branch release" in ask()
    assert ask() == ""
    sum_up("c1")
    assert "branch release" in ask()
    assert ask() == ""
    sum_up("c1")
    assert ask() == ""
    sum_up("c2")
    assert "branch release" in ask()


def test_what_other_hooks_of_gemini_put_before_a_prompt_is_not_asked_for(taught: HookedHost) -> None:
    _gemini(taught, "Hello.")
    ricordo("remember", "The invoices are kept for ten years.")
    prompt = "<hook_context>The invoices are kept.</hook_context>\n\nHow tall is the tree?"
    assert _gemini(taught, prompt).out == ""
    assert "ten years" in _gemini(taught, "How long are the invoices kept?").context


def test_a_start_that_can_not_be_noted_is_not_given_with_each_prompt(taught: HookedHost) -> None:
    taught.hooks_folder.mkdir(parents=True, exist_ok=True)
    (taught.hooks_folder / "given").write_text("in the way")
    assert "forty chairs" not in _gemini(taught, QUESTION).context
    assert "branch release" in _gemini(taught, f"{QUESTION} Tell me.").context


def test_opencode_begins_anew_after_a_compaction_of_which_it_is_told_what_must_survive(taught: HookedHost) -> None:
    taught.is_real = True
    payload = {"session_id": "ses_1", "cwd": str(taught.folder)}
    assert "branch release" in _run(taught, "opencode", "chat.message", **payload, prompt="Hello.").context
    assert _run(taught, "opencode", "chat.message", **payload, prompt=QUESTION).out == ""
    assert "Keep in the summary" in _run(taught, "opencode", "session.compacting", **payload).out
    assert "branch release" in _run(taught, "opencode", "chat.message", **payload, prompt="Go on.").context
    assert _run(taught, "opencode", "session.idle", **payload).out == ""


def test_cursor_gets_the_memory_of_the_folder_that_is_open(taught: HookedHost) -> None:
    taught.is_real = True
    roots = [str(taught.folder), "/elsewhere"]
    done = _run(
        taught, "cursor", "sessionStart", conversation_id="c1", workspace_roots=roots, is_background_agent=False
    )
    assert "branch release" in json.loads(done.out)["additional_context"]
    assert list(json.loads(done.out)) == ["additional_context"]
    [given] = [each for each in taught.command("why", "--session", "c1")["memories"] if "branch" in each["content"]]
    assert given["event"] == "session-start"


@pytest.mark.parametrize("key", ["session_id", "sessionId"])
def test_vscode_gets_the_answers_of_claude_code(taught: HookedHost, key: str) -> None:
    taught.is_real = key == "session_id"
    payload = {key: "v1", "cwd": str(taught.folder), "timestamp": TIME}
    started = _run(taught, "vscode", "SessionStart", **payload, hookEventName="SessionStart", source="new")
    assert "branch release" in started.context
    assert _run(taught, "vscode", "UserPromptSubmit", **payload, prompt=QUESTION).out == ""
    assert (
        "branch release"
        in _run(taught, "vscode", "UserPromptSubmit", **{**payload, key: "v2"}, prompt=QUESTION).context
    )
    assert _run(taught, "vscode", "PreCompact", **payload, trigger="auto").out == ""


@pytest.mark.parametrize("data", [b"", b"\xff", b'{"workspace_roots": [[]], "session_id": {}, "prompt": 7}'])
@pytest.mark.parametrize(
    ("name", "event"),
    [("gemini", "BeforeAgent"), ("opencode", "chat.message"), ("cursor", "sessionStart"), ("vscode", "Stop")],
)
def test_input_that_the_host_does_not_send_is_no_trouble_for_it(
    taught: HookedHost, name: str, event: str, data: bytes
) -> None:
    done = taught.run(event, data, host=name)
    assert done.code == 0
    assert done.out == "" or isinstance(json.loads(done.out), dict)


def _lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "{torn", encoding="utf-8")
    return path


def _gemini_transcript(path: Path) -> Path:
    """Write a transcript as Gemini CLI does, with all that nobody said, and a message that is written again."""
    user: dict[str, Any] = {"type": "user", "timestamp": TIME}
    model: dict[str, Any] = {"id": "g1", "type": "gemini", "timestamp": TIME, "content": "I look."}
    answer = [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "port 5433"}}}]
    call = {"id": "c1", "name": "read_file", "args": {"path": "db.toml"}, "result": answer, "status": "success"}
    return _lines(path, [
        {"sessionId": "s1", "projectHash": "h", "startTime": TIME, "lastUpdated": TIME, "kind": "main"},
        {"$set": {"messages": [{"id": "x", **user, "content": [{"text": "<state_snapshot>We decided to sell."}]}]}},
        {"id": "u0", **user, "content": [{"text": "<session_context>\nWe decided to buy a boat."}]},
        {"id": "u1", **user, "content": [
            {"text": f"<hook_context>&lt;memory&gt;We decided to paint it green.</hook_context>\n\n{DECISION}"},
            {"text": "<hook_context>We decided to paint it red.</hook_context>"},
        ]},
        model,
        {"$set": {"lastUpdated": TIME}},
        {**model, "toolCalls": [call], "thoughts": [{"subject": "a", "description": "b"}]},
        {"id": "u2", **user, "content": "/stats"},
        {"id": "i1", "type": "info", "timestamp": TIME, "content": "We decided to wait."},
    ])  # fmt: skip


def _copilot_transcript(path: Path) -> Path:
    """Write a transcript as the agents of VS Code do."""
    request = {"toolCallId": "c1", "name": "read_file", "arguments": '{"path": "db.toml"}', "type": "function"}
    events: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": "v1", "version": 1, "producer": "copilot-agent"}),
        ("user.message", {"content": DECISION, "attachments": []}),
        ("assistant.turn_start", {"turnId": "0"}),
        (
            "assistant.message",
            {"messageId": "m", "content": "I look.", "toolRequests": [request], "reasoningText": "x"},
        ),
        ("tool.execution_start", {"toolCallId": "c1", "toolName": "read_file", "arguments": {}}),
        ("tool.execution_complete", {"toolCallId": "c1", "success": True, "result": {"content": "port 5433"}}),
        ("assistant.turn_end", {"turnId": "0"}),
    ]
    return _lines(path, [
        {"type": kind, "data": data, "id": f"e{number}", "timestamp": TIME, "parentId": None}
        for number, (kind, data) in enumerate(events)
    ])  # fmt: skip


def _opencode_database(path: Path) -> Path:
    """Write a database as opencode does, with two sessions, what nobody said, and a damaged row."""
    tool = {"type": "tool", "tool": "read", "callID": "c1"}
    state = {"status": "completed", "input": {"path": "db.toml"}, "output": "port 5433"}
    messages: list[tuple[str, str, dict[str, Any], list[Any]]] = [
        ("m1", "s1", {"role": "user", "summary": {"diffs": []}}, [
            {"type": "text", "text": f'"{DECISION}"'},
            {"type": "text", "text": "<memory>We decided to paint it green.</memory>", "synthetic": True},
        ]),
        ("m2", "s1", {"role": "assistant"}, [
            {"type": "step-start"}, {"type": "text", "text": "I look."}, {**tool, "state": state},
        ]),
        ("m3", "s1", {"role": "assistant", "summary": True}, [
            {"type": "text", "text": "We decided to sell the house."},
        ]),
        ("m4", "s2", {"role": "user"}, [{"type": "text", "text": "We decided to buy a boat."}]),
        ("m5", "s1", {"role": "user"}, ["{torn"]),
    ]  # fmt: skip
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE message (id, session_id, time_created, time_updated, data)")
        database.execute("CREATE TABLE session (id, parent_id, directory, revert, time_created)")
        database.execute("INSERT INTO session VALUES ('s1', NULL, '/shop', NULL, 1), ('s2', NULL, '/shop', NULL, 2)")
        database.execute("CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data)")
        for number, (name, session, data, parts) in enumerate(messages):
            time = MILLISECONDS + number
            database.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (name, session, time, time, json.dumps(data))
            )
            for index, part in enumerate(parts):
                text = part if isinstance(part, str) else json.dumps(part)
                row = (f"{name}p{index}", name, session, time, time, text)
                database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    return path


@pytest.mark.parametrize(
    ("name", "event", "write", "ending", "count"),
    [
        ("gemini", "AfterAgent", _gemini_transcript, "", 3),
        ("vscode", "Stop", _copilot_transcript, "", 3),
        # a summary of the host is kept with the session
        ("opencode", "session.idle", _opencode_database, "#s1", 4),
    ],
)
def test_what_was_said_is_learned_once_and_what_nobody_said_is_not(
    tmp_path: Path, name: str, event: str, write: Any, ending: str, count: int
) -> None:
    host = HookedHost(folder=tmp_path / "shop")
    transcript = f"{write(tmp_path / 'transcript')}{ending}"
    payload = {"session_id": "s1", "cwd": str(host.folder), "transcript_path": transcript}
    assert _run(host, name, event, **payload).out == ""
    report = host.command("maintain")["hooks"]
    assert report["messages"] == count
    assert host.entries() == [DECISION]
    root = ("--root", str(host.folder / ".ricordo"))
    message, call, result, *_ = ricordo("session", "show", "s1", *root, "--json").document["conversation"]
    assert (message["role"], message["text"]) == ("user", DECISION)
    assert (call["role"], result["role"]) == ("assistant", "tool")
    _run(host, name, event, **payload)
    assert host.command("maintain")["hooks"]["messages"] == 0
    assert host.waiting() == []


@pytest.mark.parametrize(
    ("name", "event", "write", "ending"),
    [("gemini", "AfterAgent", _gemini_transcript, ""), ("opencode", "session.idle", _opencode_database, "#s1")],
)
def test_an_import_of_what_hooks_have_handed_over_doubles_nothing(
    tmp_path: Path, name: str, event: str, write: Any, ending: str
) -> None:
    host = HookedHost(folder=tmp_path / "shop")
    history = write(tmp_path / "transcript.jsonl")
    payload = {"session_id": "s1", "cwd": str(host.folder), "transcript_path": f"{history}{ending}"}
    _run(host, name, event, **payload)
    host.command("maintain")
    root = ("--root", str(host.folder / ".ricordo"))
    before = ricordo("session", "show", "s1", *root, "--json").document["conversation"]
    done = ricordo("import", str(history), *root, "--json")
    assert done.code == 0, done.err
    assert ricordo("session", "show", "s1", *root, "--json").document["conversation"] == before


def test_a_database_of_opencode_that_is_damaged_or_gone_is_told_and_holds_up_nothing(tmp_path: Path) -> None:
    host = HookedHost(folder=tmp_path / "shop")
    path = tmp_path / "opencode.db"
    path.write_bytes(b"no database at all" * 100)
    payload = {"session_id": "s1", "cwd": str(host.folder)}
    _run(host, "opencode", "session.idle", **payload, transcript_path=f"{path}#s1")
    _run(host, "opencode", "session.idle", **payload, transcript_path=f"{tmp_path / 'missing.db'}#s1")
    assert len(host.waiting()) == 1
    host.command("maintain")
    assert host.troubles() == ["DocumentInvalid"]
    assert path.read_bytes().startswith(b"no database")
    assert not list(tmp_path.glob("opencode.db-*"))
    path.unlink()
    host.command("maintain")
    assert host.waiting() == []
