"""Chats of Gemini CLI: what was said, in its newest version, without what was rewound."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from importing import json_lines, take
from ricordo.importers import find_histories
from ricordo.messages import JsonValue, get_mark

HEAD: dict[str, JsonValue] = {
    "sessionId": "s-1",
    "projectHash": "ab",
    "startTime": "2026-11-24T19:57:30.844Z",
    "kind": "main",
}


def said(name: str, content: JsonValue, *, by: str = "user", **more: JsonValue) -> dict[str, JsonValue]:
    return {"id": name, "timestamp": "2026-11-24T19:57:31.000Z", "type": by, "content": content, **more}


def test_a_chat_is_read_with_its_tools_each_message_in_its_newest_version(tmp_path: Path) -> None:
    response: JsonValue = {"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.py"}}}
    call: JsonValue = {"id": "c1", "name": "ls", "args": {"dir": "."}, "result": [response], "status": "success"}
    context = said("ctx", [{"text": "<session_context>\nThis is the Gemini CLI."}])
    records: list[JsonValue] = [
        HEAD,
        {"$set": {"messages": [context]}},
        said("u1", [{"text": "What is here?"}]),
        {"$set": {"lastUpdated": "2026-11-24T19:57:31.000Z"}},
        said("g1", "", by="gemini", thoughts=[{"subject": "Looking", "description": "I look."}]),
        said("g1", "", by="gemini", toolCalls=[call]),
        said("r1", [response]),
        said("g2", "Only a.py.", by="gemini"),
        said("i1", "Press Ctrl-C", by="info"),
        said("u2", "/quit"),
        # a session that is resumed begins with a copy of all that it sends
        {"$set": {"messages": [context, said("u1", [{"text": "What is here?"}]), said("g1_response", [response])]}},
        said("u3", "Thanks."),
    ]
    taken = take(tmp_path / "session.jsonl", json_lines(records))
    assert [(each.message.id, each.message.role, each.line) for each in taken.imported] == [
        ("u1", "user", 3), ("g1", "assistant", 6), ("r1", "tool", 7), ("g2", "assistant", 8), ("u3", "user", 12),
    ]  # fmt: skip
    assert taken.imported[1].message.tool_calls[0].name == "ls"
    assert taken.imported[2].message.tool_results[0].text == "a.py"
    assert set(taken.sessions) == {"s-1"}
    assert taken.imported[0].message.time is not None
    assert taken.problems == []


def test_what_was_rewound_is_no_part_of_the_conversation(tmp_path: Path) -> None:
    rewound: list[JsonValue] = [said("u2", "two"), said("g2", "no", by="gemini"), {"$rewindTo": "u2"}]
    records = [HEAD, said("u1", "one"), *rewound, said("u3", "three")]
    assert take(tmp_path / "session.jsonl", json_lines(records)).texts == ["one", "three"]


def test_a_chat_of_an_early_version_is_one_document_with_its_results_in_the_calls(tmp_path: Path) -> None:
    call: JsonValue = {"id": "c1", "name": "ls", "args": {}, "result": "a.py"}
    document: JsonValue = {
        **HEAD,
        "messages": [said("u1", "What is here?"), said("g1", "I look.", by="gemini", toolCalls=[call])],
    }
    taken = take(tmp_path / "session.json", json.dumps(document, indent=2))
    assert [each.message.role for each in taken.imported] == ["user", "assistant", "tool"]
    assert taken.imported[2].message.tool_results[0].text == "a.py"


def test_what_a_sub_agent_was_asked_was_said_by_nobody(tmp_path: Path) -> None:
    records: list[JsonValue] = [{**HEAD, "kind": "subagent"}, said("u1", "Find it."), said("g1", "Found.", by="gemini")]
    taken = take(tmp_path / "s-2.jsonl", json_lines(records))
    assert [get_mark(each.message) for each in taken.imported] == ["notice", None]


def test_a_torn_or_strange_record_hides_no_other(tmp_path: Path) -> None:
    content = json_lines([HEAD, said("u1", "one"), {"$set": 7}, said("u2", {"odd": 1}), said("u3", "three")])
    taken = take(tmp_path / "session.jsonl", content + '{"id": "u4", "ty')
    assert taken.texts == ["one", "three"]
    assert taken.lines_with_problems == [6]


@pytest.mark.parametrize("how", ["marker", "registry", "hash"])
def test_chats_and_notes_are_found_with_the_folder_of_their_project(tmp_path: Path, how: str) -> None:
    home, shop = tmp_path / "home", tmp_path / "shop"
    name = sha256(str(shop).encode()).hexdigest() if how == "hash" else "shop"
    files = home / ".gemini" / "tmp" / name
    chat = files / "chats" / "session-2026-11-24T19-57-7f3884a4.jsonl"
    for path in (chat, files / "memory" / "MEMORY.md", shop / "GEMINI.md", home / ".gemini" / "GEMINI.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    chat.with_suffix(".json").write_text("{}")
    if how == "marker":
        (files / ".project_root").write_text(str(shop))
    elif how == "registry":
        (home / ".gemini" / "projects.json").write_text(json.dumps({"projects": {str(shop): "shop"}}))
    found = find_histories("gemini", home, {"PWD": str(shop / "src")})
    assert [(each.source.path, each.folder, each.everywhere) for each in found] == [
        (chat, shop, False),
        (files / "memory" / "MEMORY.md", shop, False),
        (shop / "GEMINI.md", shop, False),
        (home / ".gemini" / "GEMINI.md", None, True),
    ]
