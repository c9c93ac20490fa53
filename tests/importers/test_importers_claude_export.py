"""Claude.ai's export: conversations, what Claude remembers, projects and the user, in whatever archives they come."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from exports import NOON, claude_conversation, claude_files, write_zip
from importing import Taken, take_all
from ricordo.messages import Media, Thinking, ToolCall

MEMORY = """**Work context**

Ada runs a joinery in Ghent. She makes tables.

Her lathe is from 1950.

---

## Preferences

- Prefers oak.
- Writes in short
  sentences.
"""


def told(taken: Taken) -> set[tuple[str, str]]:
    return {(each.kind, each.text) for each in taken.memories}


def test_each_file_of_an_export_is_read_and_its_fields_are_kept(tmp_path: Path) -> None:
    taken = take_all(write_zip(tmp_path / "data.zip", claude_files(MEMORY, "The table is for Nadia.")))
    assert taken.texts == ["How do I oil the lathe?", "With a drop on each bearing."]
    assert [each.message.time for each in taken.imported] == [NOON, NOON + timedelta(minutes=1)]
    assert [each.message.role for each in taken.imported] == ["user", "assistant"]
    assert taken.imported[0].message.metadata["claude.ai"] == {"title": "The lathe"}
    assert told(taken) == {
        ("fact", "Ada runs a joinery in Ghent. She makes tables."),
        ("fact", "Her lathe is from 1950."),
        ("fact", "Prefers oak."),
        ("fact", "Writes in short\nsentences."),
        ("fact", "The table is for Nadia."),
        ("fact", "Project Workshop: Tables and chairs"),
        ("convention", "Measures are in millimetres."),
        ("document", "Oak is hard."),
        ("fact", "The user's name is Ada Lovelace."),
    }
    by_text = {each.text: each for each in taken.memories}
    assert by_text["Prefers oak."].metadata == {"source": "memory of conversations", "section": "Preferences"}
    assert by_text["The table is for Nadia."].metadata["project"] == "p-1"
    document = by_text["Oak is hard."]
    assert (document.metadata["filename"], document.metadata["project"], document.time) == ("wood.md", "Workshop", NOON)
    assert taken.problems == []


def test_several_archives_and_unpacked_folders_hold_the_same_as_one(tmp_path: Path) -> None:
    files = claude_files(MEMORY)
    whole = take_all(write_zip(tmp_path / "whole.zip", files))
    parts = tmp_path / "parts"
    parts.mkdir()
    write_zip(parts / "conversations-000.zip", {"data/conversations.json": files["conversations.json"]})
    write_zip(parts / "memories-000.zip", {"memories/acc-1.json": files["memories.json"][0]})
    write_zip(parts / "projects-000.zip", {f"projects/{each['uuid']}.json": each for each in files["projects.json"]})
    write_zip(parts / "users-000.zip", {"users.json": files["users.json"]})
    several = take_all(parts)
    assert (told(several), several.texts, several.problems) == (told(whole), whole.texts, [])
    assert {each.id for each in several.memories} == {each.id for each in whole.memories}


def test_a_paragraph_that_changed_is_known_by_its_place(tmp_path: Path) -> None:
    before = take_all(write_zip(tmp_path / "a.zip", claude_files(MEMORY)))
    after = take_all(write_zip(tmp_path / "b.zip", claude_files(MEMORY.replace("1950", "1951"))))
    ids = [{each.text: each.id for each in taken.memories} for taken in (before, after)]
    assert ids[0]["Her lathe is from 1950."] == ids[1]["Her lathe is from 1951."]
    assert len(set(ids[0].values())) == len(ids[0])


@pytest.mark.parametrize(
    ("more", "texts"),
    [({}, ["a", "b", "e", "f"]), ({"current_leaf_message_uuid": "7c0f-3"}, ["a", "b", "c", "d"])],
    ids=["newest", "open"],
)
def test_of_a_conversation_with_branches_one_is_read(tmp_path: Path, more: Any, texts: list[str]) -> None:
    talk = claude_conversation("a", "b", "c", "d", "e", "f", parents=[None, 0, 1, 2, 1, 4], **more)
    taken = take_all(tmp_path / "conversations.json", [talk])
    assert taken.texts == texts
    assert taken.notes == ["messages that were edited or answered anew are left out: 2"]


def test_tools_thoughts_files_and_the_summary_of_a_conversation_are_kept(tmp_path: Path) -> None:
    talk = claude_conversation("Look it up.", "", summary="They looked it up.")
    question, answer = talk["chat_messages"]
    question["attachments"] = [{"file_name": "a.txt", "extracted_content": "words"}]
    question["files"] = [{"file_name": "plan.png", "file_uuid": "f-1"}]
    answer["content"] = [
        {"type": "thinking", "thinking": "Where?"},
        {"type": "tool_use", "id": "t-1", "name": "search", "input": {"query": "lathe"}},
        {"type": "tool_result", "tool_use_id": "t-1", "name": "search", "content": [{"type": "text", "text": "1950"}]},
        {"type": "text", "text": "It is from 1950."},
    ]
    taken = take_all(tmp_path / "conversations.json", [talk])
    asked, answered = (each.message for each in taken.imported)
    assert [(part.name, part.description) for part in asked.parts if isinstance(part, Media)] == [
        ("a.txt", "words"),
        ("plan.png", None),
    ]
    assert [type(part) for part in answered.parts[:2]] == [Thinking, ToolCall]
    assert (answered.text, answered.tool_results[0].text) == ("It is from 1950.", "1950")
    assert [(each.kind, each.text, each.time) for each in taken.memories] == [
        ("session-summary", "They looked it up.", NOON)
    ]


def test_a_message_without_content_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    talk = claude_conversation("One.", "Two.", "Three.")
    talk["chat_messages"][1].update(text="", content=[])
    taken = take_all(tmp_path / "conversations.json", [talk, {"uuid": "x"}, claude_conversation("Four.", name="8")])
    assert taken.texts == ["One.", "Three.", "Four."]
    assert len(taken.lines_with_problems) == 2
