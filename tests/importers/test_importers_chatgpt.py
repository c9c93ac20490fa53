"""ChatGPT's export: the branch that was open last, as it was said."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports import bio_note, chatgpt_conversation, chatgpt_node, saved_memories
from importing import take, take_all
from ricordo.messages import JsonValue, Media, Unknown


def _node(name: str, parent: str | None, text: Any, role: str = "user", time: float = 0.0, **more: Any) -> Any:
    content = {"content_type": "text", "parts": [text]} if isinstance(text, str) else text
    message = {"id": f"m-{name}", "author": {"role": role}, "create_time": time, "content": content, **more}
    return {"id": name, "parent": parent, "children": [], "message": message}


def _export(*nodes: Any, current: str | None = None) -> str:
    root: dict[str, Any] = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {node["id"]: node for node in (root, *nodes)}
    conversation = {"title": "Ports", "conversation_id": "c-1", "mapping": mapping, "current_node": current}
    return json.dumps([conversation])


TALK = (
    _node("a", "root", "On which port does staging run?", time=1_700_000_000.0),
    _node("b", "a", "On 5432.", "assistant", 1_700_000_001.0),
    _node("c", "a", "On 5433.", "assistant", 1_700_000_002.0),
    _node("d", "c", "Thank you.", time=1_700_000_003.0),
)


@pytest.mark.parametrize("current", ["d", None, "gone"])
def test_the_branch_that_was_open_last_is_read_and_the_one_made_anew_is_not(
    tmp_path: Path, current: str | None
) -> None:
    taken = take(tmp_path / "conversations.json", _export(*TALK, current=current))
    assert taken.texts == ["On which port does staging run?", "On 5433.", "Thank you."]
    assert [each.message.role for each in taken.imported] == ["user", "assistant", "user"]
    assert [each.message.id for each in taken.imported] == ["m-a", "m-c", "m-d"]
    assert [each.message.time and each.message.time.timestamp() for each in taken.imported] == [
        1_700_000_000.0,
        1_700_000_002.0,
        1_700_000_003.0,
    ]
    assert set(taken.sessions) == {"c-1"}
    assert taken.lines_with_problems == []
    assert taken.notes == ["messages that were edited or answered anew are left out: 1, in conversations: 1"]


def test_an_earlier_branch_is_read_when_it_is_the_one_that_is_open(tmp_path: Path) -> None:
    assert take(tmp_path / "c.json", _export(*TALK, current="b")).texts[-1] == "On 5432."


def test_what_nobody_said_is_left_out(tmp_path: Path) -> None:
    nodes = (
        _node("s", "root", "", "system"),
        _node("p", "s", {"content_type": "user_editable_context", "user_profile": "x", "user_instructions": "y"}),
        _node("h", "p", "hidden", "system", metadata={"is_visually_hidden_from_conversation": True}),
        _node("a", "h", "We deploy only from main."),
        _node("t", "a", {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}, "assistant"),
    )
    taken = take(tmp_path / "c.json", _export(*nodes, current="t"))
    assert taken.texts == ["We deploy only from main."]
    assert taken.problems == []


def test_a_call_of_a_tool_and_its_result_find_each_other(tmp_path: Path) -> None:
    code = {"content_type": "code", "language": "python", "text": "print(6 * 7)"}
    result = {"content_type": "execution_output", "text": "42"}
    called = _node("b", "a", code, "assistant", recipient="python")
    answered = _node("c", "b", result, "tool")
    answered["message"]["author"]["name"] = "python"
    taken = take(tmp_path / "c.json", _export(_node("a", "root", "Compute."), called, answered, current="c"))
    call, answer = taken.imported[1].message.tool_calls[0], taken.imported[2].message.tool_results[0]
    assert (call.name, "print(6 * 7)" in str(call.arguments)) == ("python", True)
    assert (answer.text, answer.call_id) == ("42", call.id)


def test_a_picture_is_kept_beside_the_text(tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    content = {"content_type": "multimodal_text", "parts": [picture, "What is this?"]}
    taken = take(tmp_path / "c.json", _export(_node("a", "root", content), current="a"))
    assert taken.texts == ["What is this?"]
    assert [part.uri for part in taken.imported[0].message.parts if isinstance(part, Media)] == [
        "file-service://file-1"
    ]


def test_a_broken_message_hides_no_other_and_a_ring_ends(tmp_path: Path) -> None:
    nodes = (
        _node("a", "c", "First."),
        _node("b", "a", {"content_type": "text"}, "moderator"),
        _node("c", "b", "Last."),
    )
    nodes[1]["message"]["content"] = {"content_type": "text", "parts": ["hush"]}
    taken = take(tmp_path / "c.json", _export(*nodes, current="c"))
    assert taken.texts == ["First.", "Last."]
    assert len(taken.problems) == 1


def test_what_the_program_remembers_is_read_once_with_its_time_and_its_place(tmp_path: Path) -> None:
    first = chatgpt_conversation(
        saved_memories("s", "root", "Prefers oak for tables.", "Lives in Ghent."),
        chatgpt_node("a", "s", "Please remember that I am left-handed.", minute=1),
        bio_note(
            "n", "a", "User is left-handed.\n- User's workshop is cold.\nForget that the user likes pine.", minute=2
        ),
        chatgpt_node("t", "n", "Model set context updated.", "tool", 3),
        name="c-1",
    )
    second = chatgpt_conversation(
        saved_memories("s", "root", "Prefers oak for tables.", "User is left-handed.", day="2025-01-01"), name="c-2"
    )
    taken = take_all(tmp_path / "conversations.json", [first, second])
    assert [(each.text, each.kind, str(each.time and each.time.date())) for each in taken.memories] == [
        ("Prefers oak for tables.", "fact", "2024-12-05"),
        ("Lives in Ghent.", "fact", "2024-12-05"),
        ("User is left-handed.", "fact", "2025-03-09"),
        ("User's workshop is cold.", "fact", "2025-03-09"),
    ]
    assert [each.metadata["source"] for each in taken.memories] == ["saved memory", "saved memory", "note", "note"]
    assert {each.metadata["conversation"] for each in taken.memories} == {"c-1"}
    assert taken.texts[0] == "Please remember that I am left-handed."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1. [2024-12-05]. One.\n\n2. [2024-12-06]. Two,\nover two lines.", ["One.", "Two,\nover two lines."]),
        ("# Model Set Context\n\n1. One.\n2. Two.", ["One.", "Two."]),
        ("Model Set Context:\n- One.\n- Two.", ["One.", "Two."]),
        ("Only one.", ["Only one."]),
        ("", []),
        (None, []),
        (["x"], []),
    ],
)
def test_saved_memories_are_told_apart_however_they_are_listed(
    tmp_path: Path, text: JsonValue, told: list[str]
) -> None:
    content = {"content_type": "model_editable_context", "model_set_context": text, "repository": None}
    node = chatgpt_node("s", "root", content, "assistant")
    assert take_all(tmp_path / "c.json", [chatgpt_conversation(node)]).told == told


def test_custom_instructions_become_memories_and_no_messages(tmp_path: Path) -> None:
    wrapped = {
        "content_type": "user_editable_context",
        "user_profile": "The user wrote this about themselves:\n```I mend clocks.```",
        "user_instructions": "How to answer:\n```Answer in short sentences.```",
    }
    hidden = {"is_visually_hidden_from_conversation": True, "is_user_system_message": True}
    data = {"about_user_message": "I mend old clocks.", "about_model_message": ""}
    nodes = (
        chatgpt_node("p", "root", wrapped, metadata=hidden),
        chatgpt_node("q", "p", wrapped, metadata={**hidden, "user_context_message_data": data}),
    )
    taken = take_all(tmp_path / "c.json", [chatgpt_conversation(*nodes)])
    assert [(each.text, each.kind) for each in taken.memories] == [
        ("I mend clocks.", "fact"),
        ("Answer in short sentences.", "preference"),
        ("I mend old clocks.", "fact"),
    ]
    assert taken.texts == []


def test_the_first_message_tells_the_title_and_the_project_of_its_conversation(tmp_path: Path) -> None:
    talk = chatgpt_conversation(
        chatgpt_node("a", "root", "One."), chatgpt_node("b", "a", "Two.", "assistant"), gizmo_id="g-p-7"
    )
    taken = take_all(tmp_path / "c.json", [talk])
    assert [each.message.metadata for each in taken.imported] == [
        {"chatgpt": {"title": "Ports", "project": "g-p-7"}},
        {},
    ]


def test_content_of_a_kind_that_is_not_known_yet_is_kept_as_it_is(tmp_path: Path) -> None:
    scene = {"content_type": "hologram", "beams": [1, 2]}
    mixed = {"content_type": "multimodal_text", "parts": ["Look.", scene, {"text": "said aloud"}, 7]}
    file = [
        {"id": "f-1", "name": "plan.pdf", "mime_type": "application/pdf"},
        {"name": "a.png", "mime_type": "image/png"},
    ]
    taken = take_all(
        tmp_path / "c.json",
        [
            chatgpt_conversation(
                chatgpt_node("a", "root", scene),
                chatgpt_node("b", "a", mixed),
                chatgpt_node("c", "b", "Here.", metadata={"attachments": file}),
            )
        ],
    )
    first, second, third = (each.message.parts for each in taken.imported)
    assert [json.loads(part.raw)["beams"] for part in (*first, *second) if isinstance(part, Unknown)] == [
        [1, 2],
        [1, 2],
    ]
    assert taken.texts[1] == "Look.\nsaid aloud"
    assert [(part.uri, part.name) for part in third if isinstance(part, Media)] == [("f-1", "plan.pdf")]
    assert taken.problems == []


_NAMES = st.sampled_from(["a", "b", "c", "root"])
_ANY: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | _NAMES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "author", "role", "content", "parts", "text", "parent", "message", "create_time"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(mapping=st.dictionaries(_NAMES, _ANY, max_size=4), current=_ANY)
def test_whatever_the_tree_holds_what_was_said_before_it_is_read(
    mapping: dict[str, JsonValue], current: JsonValue
) -> None:
    odd = {"id": "odd", "mapping": mapping, "current_node": current}
    good = json.loads(_export(*TALK, current="d"))[0]
    with tempfile.TemporaryDirectory() as folder:
        taken = take(Path(folder) / "c.json", json.dumps([good, odd]))
    assert taken.texts[:3] == ["On which port does staging run?", "On 5433.", "Thank you."]
