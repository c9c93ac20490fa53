"""Replaying a recorded conversation from the command line: all of it, once, whatever wrote it."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from command_line import TALK, chat, ricordo
from conversation_strategies import call, result, said
from ricordo.messages import Message, Text, ToolCall, ToolResult

_BUILT_IN = files("ricordo.cli") / "demo_data" / "conversation.jsonl"


@pytest.fixture
def weeks() -> Path:
    """The first half of three sessions of the conversation that is built in."""
    sessions: dict[str, list[str]] = {}
    for line in _BUILT_IN.read_text(encoding="utf-8").splitlines(keepends=True):
        sessions.setdefault(json.loads(line)["session"], []).append(line)
    path = Path("weeks.jsonl")
    path.write_text("".join("".join(said[:16]) for said in list(sessions.values())[:3]), encoding="utf-8")
    return path


def _said(session: str) -> list[tuple[str, str]]:
    messages = ricordo("session", "show", session, "--json").document["conversation"]
    # calls are shown as a text, after what was said beside them
    return [(each["role"], each["text"].split("[calls ")[0]) for each in messages if each["role"] != "tool"]


def _everything() -> dict[str, list[tuple[str, str]]]:
    sessions = ricordo("session", "list", "--json").document["sessions"]
    return {each["id"]: _said(each["id"]) for each in sessions}


def _part(part: object) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": json.loads(part.arguments)}
        case ToolResult():
            return {"type": "tool_result", "tool_use_id": part.call_id, "content": part.text}
    raise AssertionError(part)


def _record(path: Path, talk: list[Message], session: str = "s") -> Path:
    rows = [{"session": session, "role": each.role, "content": [_part(part) for part in each.parts]} for each in talk]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_it_says_where_it_wrote_and_whether_that_is_new() -> None:
    file = chat(Path("chat.jsonl"), session="monday")
    assert f"Created a memory in {Path.cwd() / '.ricordo'}." in ricordo("replay", file).out
    again = ricordo("replay", file)
    assert f"Memory is in {Path.cwd() / '.ricordo'}." in again.out
    assert "1 session skipped: the root has a session of that name." in again.out
    assert ricordo("replay", file, "--json").document["created"] is False


def test_a_second_run_adds_nothing() -> None:
    file = chat(Path("chat.jsonl"), session="monday")
    ricordo("replay", file)
    before, entries = _everything(), ricordo("memory", "list", "--json").document
    told = ricordo("replay", file, "--json").document
    assert (told["known"], told["sessions"], told["learned"]) == (["monday"], [], {})
    assert (_everything(), ricordo("memory", "list", "--json").document) == (before, entries)


@pytest.mark.parametrize(
    "talk",
    [
        [said("Hello!", role="assistant"), said("Hi."), said("How are you?", role="assistant"), said("Well?")],
        [said("Hi."), said("Hello.", role="assistant"), said("Still there?", role="assistant"), said("Yes.")],
        [said("Go."), call("a", "a"), result("a", "1"), result("a", "2"), call("a"), result("a", "3")],
        [said("Go."), call("a"), said("Wait."), result("a", "late"), said("Ok.", role="assistant")],
        [result("x", "nobody asked"), said("Hi."), said("Hello.", role="assistant")],
        [said("Hi."), said("Same.", role="assistant"), said("Hi."), said("Same.", role="assistant")],
    ],
    ids=["assistant first", "two replies", "ids repeat", "late result", "orphan", "same words"],
)
def test_of_a_record_of_any_shape_everything_is_in_the_transcript_once(talk: list[Message]) -> None:
    file = _record(Path("chat.jsonl"), talk)
    told = ricordo("replay", file, "--json").document
    assert told["sessions"][0]["messages"] == len(talk)
    assert _said("s") == [(each.role, each.text) for each in talk if each.role != "tool"]
    log = next(Path(".ricordo").rglob("s.log.jsonl")).read_text(encoding="utf-8")
    for each in talk:
        assert all(json.dumps(answer.text) in log for answer in each.tool_results)
    assert ricordo("replay", file, "--json").document["known"] == ["s"]


def _claude_code(path: Path) -> None:
    parent = None
    for number, (role, text) in enumerate([*TALK, ("assistant", "Noted.")]):
        row = {
            "type": role,
            "uuid": f"u{number}",
            "parentUuid": parent,
            "sessionId": "coding",
            "timestamp": f"2026-11-02T09:0{number}:00.000Z",
            "message": {"role": role, "content": text},
        }
        parent = row["uuid"]
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _chatgpt(path: Path) -> None:
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": ["n0"]}}
    talk = [*TALK, ("assistant", "Noted.")]
    for number, (role, text) in enumerate(talk):
        nodes[f"n{number}"] = {
            "id": f"n{number}",
            "parent": f"n{number - 1}" if number else "root",
            "children": [f"n{number + 1}"] if number + 1 < len(talk) else [],
            "message": {
                "id": f"n{number}",
                "author": {"role": role},
                "create_time": 1_793_610_000 + 60 * number,
                "content": {"content_type": "text", "parts": [text]},
            },
        }
    conversation = {"conversation_id": "gpt", "title": "t", "current_node": f"n{len(talk) - 1}", "mapping": nodes}
    path.write_text(json.dumps([conversation]), encoding="utf-8")


def _dialogue(path: Path) -> None:
    turns = [
        {"speaker": "Ana" if at % 2 else "Bo", "dia_id": f"D1:{at}", "text": text} for at, (_, text) in enumerate(TALK)
    ]
    conversation = {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": turns,
    }
    path.write_text(json.dumps([{"sample_id": "talk", "conversation": conversation}]), encoding="utf-8")


@pytest.mark.parametrize("write", [_claude_code, _chatgpt, _dialogue], ids=["claude code", "chatgpt", "dialogue"])
def test_what_other_programs_wrote_is_lived_through_whole(write: Any) -> None:
    write(Path("history.json"))
    told = ricordo("replay", "history.json", "--json").document
    (said,) = _everything().values()
    assert [text for _, text in said][: len(TALK)] == [text for _, text in TALK]
    assert told["sessions"][0]["messages"] == len(said)
    assert "Nadia" in ricordo("ask", "Who owns the staging database?").out
    assert ricordo("replay", "history.json", "--json").document["sessions"] == []


def test_a_session_of_that_name_with_another_conversation_is_left_alone() -> None:
    ricordo("replay", chat(Path("one.jsonl"), [("user", "Something else."), ("assistant", "Yes.")], session="monday"))
    before = _everything()
    assert ricordo("replay", chat(Path("two.jsonl"), session="monday"), "--json").document["known"] == ["monday"]
    assert _everything() == before


def test_each_compaction_is_told_with_the_summary_that_it_made(weeks: Path) -> None:
    told = ricordo("replay", weeks, "--budget", "1000", "--json").document
    lives = [life for life in told["sessions"] if sum(each["action"] == "compact" for each in life["reductions"]) > 1]
    assert lives
    for life in told["sessions"]:
        summaries = [each["summary"] for each in life["reductions"] if each["action"] == "compact"]
        assert all(summaries)
        assert len(set(summaries)) == len(summaries)
        assert not summaries or life["window"][0]["text"] == summaries[-1]


def test_a_file_that_is_not_there_makes_no_root() -> None:
    done = ricordo("replay", "nosuch.json")
    assert (done.code, done.out, done.err) == (1, "", "ricordo: There is no file nosuch.json.\n")
    assert not Path(".ricordo").exists()
