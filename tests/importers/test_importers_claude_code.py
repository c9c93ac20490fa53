"""Transcripts of Claude Code: the chain that counts, and only what somebody said."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import json_lines, take
from ricordo.importers import JsonRecord, find_histories
from ricordo.importers.claude_code import find_chain
from ricordo.messages import JsonValue, get_mark

SESSION = "5b0e3f6a-1111-4222-8333-444455556666"


def row(
    uuid: str, parent: str | None, content: JsonValue, *, by: str = "user", **more: JsonValue
) -> dict[str, JsonValue]:
    return {
        "type": by,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": SESSION,
        "timestamp": "2026-10-05T07:12:20.000Z",
        "cwd": "/home/ines/src/shop",
        "version": "2.1.330",
        "message": {"role": by, "content": content, "id": f"msg_{uuid}"}
        if by == "assistant"
        else {"role": by, "content": content},
        **more,
    }


def test_the_conversation_of_a_transcript_is_what_people_tools_and_the_model_said(tmp_path: Path) -> None:
    records: list[JsonValue] = [
        {"type": "mode", "mode": "default"},
        {"type": "queue-operation", "operation": "enqueue"},
        row("u1", None, "Which port?"),
        {"type": "attachment", "uuid": "x1", "parentUuid": "u1", "attachment": {}},
        row("a1", "x1", [{"type": "thinking", "thinking": "Grep.", "signature": "s"}], by="assistant"),
        row(
            "a2", "a1", [{"type": "tool_use", "id": "t1", "name": "Grep", "input": {"pattern": "port"}}], by="assistant"
        ),
        row(
            "u2",
            "a2",
            [{"type": "tool_result", "tool_use_id": "t1", "content": "8443"}],
            toolUseResult={"stdout": "8443"},
        ),
        row("a3", "u2", [{"type": "text", "text": "8443."}], by="assistant"),
        {"type": "last-prompt", "text": "Which port?"},
    ]
    taken = take(tmp_path / "t.jsonl", json_lines(records))
    messages = [each.message for each in taken.imported]
    assert [message.id for message in messages] == ["u1", "a1", "a2", "u2", "a3"]
    assert [message.parent for message in messages] == [None, "x1", "a1", "a2", "u2"]
    assert [each.line for each in taken.imported] == [3, 5, 6, 7, 8]
    assert set(taken.sessions) == {SESSION}
    assert messages[2].tool_calls[0].id == messages[3].tool_results[0].call_id == "t1"
    assert messages[3].tool_results[0].text == "8443"
    assert all(message.time is not None for message in messages)
    assert taken.problems == []


@pytest.mark.parametrize(
    "unsaid",
    [
        row("n", "u1", "Caveat", isMeta=True),
        row("n", "u1", "Look around", isSidechain=True),
        row("n", "u1", "This session is being continued", isCompactSummary=True),
        row("n", "u1", "<command-name>/model</command-name>"),
        row("n", "u1", [{"type": "text", "text": "<local-command-stdout>ok</local-command-stdout>"}]),
        row("n", "u1", "<system-reminder>Be careful</system-reminder>"),
        row("n", "u1", [{"type": "text", "text": "API Error: 529"}], by="assistant", isApiErrorMessage=True),
        {"type": "system", "subtype": "stop_hook_summary", "uuid": "n", "parentUuid": "u1", "content": "done"},
    ],
)
def test_what_nobody_said_is_no_message(tmp_path: Path, unsaid: JsonValue) -> None:
    records: list[JsonValue] = [row("u1", None, "Hello"), unsaid, row("u2", "n", "Go on")]
    assert take(tmp_path / "t.jsonl", json_lines(records)).texts == ["Hello", "Go on"]


def test_a_rewound_attempt_is_not_part_of_the_conversation(tmp_path: Path) -> None:
    records: list[JsonValue] = [
        row("u1", None, "Use MySQL"),
        row("a1", "u1", [{"type": "text", "text": "Done"}], by="assistant"),
        row("u2", "a1", "and add tables"),
        row("u3", "a1", "and stop there"),
    ]
    assert take(tmp_path / "t.jsonl", json_lines(records)).texts == ["Use MySQL", "Done", "and stop there"]


def test_the_conversation_goes_on_over_a_compaction(tmp_path: Path) -> None:
    boundary: JsonValue = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "parentUuid": None,
        "logicalParentUuid": "u1",
    }
    records: list[JsonValue] = [
        row("u1", None, "Before"),
        boundary,
        row("s", "b", "Summary", isCompactSummary=True),
        row("u2", "s", "After"),
    ]
    assert take(tmp_path / "t.jsonl", json_lines(records)).texts == ["Before", "After"]


def test_results_of_parallel_calls_are_all_kept(tmp_path: Path) -> None:
    def calling(uuid: str, parent: str, call: str) -> dict[str, JsonValue]:
        block: JsonValue = {"type": "tool_use", "id": call, "name": "Read", "input": {}}
        return {
            **row(uuid, parent, None, by="assistant"),
            "message": {"id": "m", "role": "assistant", "content": [block]},
        }

    def answering(uuid: str, parent: str, call: str) -> dict[str, JsonValue]:
        return row(uuid, parent, [{"type": "tool_result", "tool_use_id": call, "content": call}])

    records: list[JsonValue] = [
        row("u1", None, "Read both"),
        calling("a1", "u1", "one"),
        calling("a2", "a1", "two"),
        answering("r1", "a1", "one"),
        answering("r2", "a2", "two"),
        row("a3", "r1", [{"type": "text", "text": "Both read"}], by="assistant"),
    ]
    taken = take(tmp_path / "t.jsonl", json_lines(records))
    assert [each.message.id for each in taken.imported] == ["u1", "a1", "a2", "r1", "r2", "a3"]


def test_a_torn_row_costs_that_row_and_not_the_history_before_it(tmp_path: Path) -> None:
    lines = json_lines([row("u1", None, "one"), row("u2", "u1", "two"), row("u3", "u2", "three")]).splitlines()
    lines[1] = lines[1][:40]
    taken = take(tmp_path / "t.jsonl", "\n".join(lines))
    assert taken.texts == ["one", "three"]
    assert taken.lines_with_problems == [2]


@given(parents=st.lists(st.integers(0, 12), min_size=1, max_size=12))
def test_the_chain_ends_however_the_rows_point_at_each_other(parents: list[int]) -> None:
    rows = [JsonRecord(value=row(str(number), str(parent), "x"), line=1) for number, parent in enumerate(parents)]
    assert str(len(parents) - 1) in find_chain(rows)


def put(home: Path, name: str, *, cwd: Path | None, age: int) -> Path:
    path = home / ".claude" / "projects" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**row("u1", None, "Hello"), "cwd": str(cwd)} if cwd else row("u1", None, "Hello")))
    os.utime(path, (1_790_000_000 - age, 1_790_000_000 - age))
    return path


def test_the_whole_history_is_found_oldest_first_with_the_folder_of_each_session(tmp_path: Path) -> None:
    home, shop, club = tmp_path / "home", tmp_path / "my.shop", tmp_path / "my" / "shop"
    # two folders whose names differ in dots and slashes alone share one of Claude Code's
    new = put(home, "-my-shop/a.jsonl", cwd=shop, age=10)
    old = put(home, "-my-shop/b.jsonl", cwd=club, age=90)
    sub_agent = put(home, "-my-shop/a/subagents/agent-77.jsonl", cwd=shop, age=5)
    found = find_histories("claude-code", home, {})
    assert [(each.source.path, each.folder) for each in found] == [(old, club), (new, shop), (sub_agent, shop)]
    assert find_histories("claude-code", tmp_path / "nobody", {}) == []


def test_the_history_is_found_where_the_environment_says(tmp_path: Path) -> None:
    path = put(tmp_path, "-shop/a.jsonl", cwd=tmp_path, age=1)
    elsewhere = {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    assert [each.source.path for each in find_histories("claude-code", tmp_path / "home", elsewhere)] == [path]


def test_notes_of_a_project_and_of_the_person_are_found_with_whose_they_are(tmp_path: Path) -> None:
    home, shop = tmp_path / "home", tmp_path / "shop"
    put(home, "-shop/a.jsonl", cwd=shop, age=1)
    paths = [home / ".claude/projects/-shop/memory/MEMORY.md", shop / "CLAUDE.md", home / ".claude/CLAUDE.md"]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("- Boots run small.\n")
    notes = [each for each in find_histories("claude-code", home, {}) if each.form and each.form.name == "notes"]
    assert [(each.source.path, each.folder, each.everywhere) for each in notes] == [
        (paths[0], shop, False),
        (paths[1], shop, False),
        (paths[2], None, True),
    ]


def test_a_sub_agent_has_a_session_of_its_own_and_what_it_was_asked_was_said_by_nobody(tmp_path: Path) -> None:
    records: list[JsonValue] = [
        row("u1", None, "Find every boot.", isSidechain=True, agentId="77"),
        row("a1", "u1", "There are nine boots.", by="assistant", isSidechain=True, agentId="77"),
    ]
    taken = take(tmp_path / "agent-77.jsonl", json_lines(records))
    assert taken.sessions == [f"{SESSION}-agent-77"] * 2
    assert [get_mark(each.message) for each in taken.imported] == ["notice", None]
