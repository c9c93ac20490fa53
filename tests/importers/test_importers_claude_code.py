"""Transcripts of Claude Code: the chain that counts, and only what somebody said."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import json_lines, take
from ricordo.importers import find_claude_code
from ricordo.importers.claude_code import find_chain, transcript_folder_name
from ricordo.importers.records import JsonRecord
from ricordo.messages import JsonValue

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


def put(home: Path, project: Path, name: str, *, cwd: str, age: int) -> Path:
    folder = home / ".claude" / "projects" / transcript_folder_name(project)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps({**row("u1", None, "Hello"), "cwd": cwd}))
    os.utime(path, (1_790_000_000 - age, 1_790_000_000 - age))
    return path


def test_the_folder_of_a_project_is_its_path_with_dashes() -> None:
    assert transcript_folder_name(Path("/home/ines/src/my.shop_2/é")) == "-home-ines-src-my-shop-2--"


def test_the_transcripts_of_a_project_come_newest_last_and_without_sub_agents(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "my.shop"
    project.mkdir(parents=True)
    new = put(home, project, "a.jsonl", cwd=str(project), age=10)
    old = put(home, project, "b.jsonl", cwd=str(project), age=90)
    put(home, project, "agent-77.jsonl", cwd=str(project), age=5)
    inside = new.parent / "a" / "subagents"
    inside.mkdir(parents=True)
    (inside / "c.jsonl").write_text("{}")
    assert find_claude_code(project, home) == [old, new]


def test_a_transcript_of_another_directory_with_the_same_folder_name_is_left_out(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "my-shop"
    ours = put(home, project, "a.jsonl", cwd=str(project), age=1)
    put(home, project, "b.jsonl", cwd=str(tmp_path / "my" / "shop"), age=2)
    assert find_claude_code(project, home) == [ours]


def test_a_project_without_transcripts_has_none(tmp_path: Path) -> None:
    assert find_claude_code(tmp_path / "shop", tmp_path / "home") == []
