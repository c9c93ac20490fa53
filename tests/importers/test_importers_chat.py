"""Chats in the forms that programs write: the same conversation comes out of each of them."""

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from importing import json_lines, take
from ricordo.messages import JsonValue, Media, Text, Thinking, ToolCall, ToolResult, pair_calls

ASK: dict[str, JsonValue] = {"role": "user", "content": "Which branch do we deploy from?"}
ANSWER: dict[str, JsonValue] = {"role": "assistant", "content": "Only from main."}
SAID = ["Which branch do we deploy from?", "Only from main."]
CALL: JsonValue = {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"pattern": "port"}'}}


@pytest.mark.parametrize(
    "document",
    [
        [ASK, ANSWER],
        {"messages": [ASK, ANSWER]},
        {"title": "Deploys", "conversation": [ASK, ANSWER]},
        {"conversations": [{"from": "human", "value": SAID[0]}, {"from": "gpt", "value": SAID[1]}]},
        {"history": [ASK, ANSWER]},
        {"turns": [{"sender": "human", "text": SAID[0]}, {"sender": "ai", "text": SAID[1]}]},
        {
            "chat_messages": [
                {"sender": "human", "text": SAID[0]},
                {"sender": "assistant", "text": "", "content": SAID[1]},
            ]
        },
        [{"uuid": "7", "chat_messages": [{"sender": "human", "text": SAID[0]}, {"sender": "bot", "text": SAID[1]}]}],
        [{"author": {"role": "user"}, "parts": [SAID[0]]}, {"author": {"role": "model"}, "parts": [{"text": SAID[1]}]}],
        [{"role": "USER", "content": [{"type": "text", "text": SAID[0]}]}, {"role": "Assistant", "content": [SAID[1]]}],
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_every_form_of_a_chat_gives_the_same_messages(tmp_path: Path, document: JsonValue, indent: int | None) -> None:
    taken = take(tmp_path / "whatever.txt", json.dumps(document, indent=indent))
    assert taken.texts == SAID
    assert [each.message.role for each in taken.imported] == ["user", "assistant"]
    assert len(set(taken.sessions)) == 1
    assert taken.problems == []


def test_lines_of_messages_keep_the_number_of_their_line(tmp_path: Path) -> None:
    taken = take(tmp_path / "chat.jsonl", "\ufeff" + json_lines([ASK]) + "\r\n  \r\n" + json_lines([ANSWER]))
    assert taken.texts == SAID
    assert [each.line for each in taken.imported] == [1, 4]


def test_lines_of_conversations_keep_the_ids_of_their_sessions(tmp_path: Path) -> None:
    records: list[JsonValue] = [
        {"session": "monday", "messages": [ASK]},
        {"id": 42, "messages": [ANSWER]},
        {"conversation_id": "with/slash", "messages": [ASK, ANSWER]},
    ]
    taken = take(tmp_path / "chats.jsonl", json_lines(records))
    assert taken.sessions[:2] == ["monday", "42"]
    assert taken.sessions[2] == taken.sessions[3]
    assert taken.sessions[2].startswith("with-slash-")
    assert [each.line for each in taken.imported] == [1, 2, 3, 3]


def test_messages_that_name_their_session_are_sorted_into_it(tmp_path: Path) -> None:
    records: list[JsonValue] = [
        {**ASK, "session": "a"},
        {**ANSWER, "session_id": "b"},
        {**ASK},
        {**ASK, "sessionId": "a"},
    ]
    assert take(tmp_path / "chat.jsonl", json_lines(records)).sessions == ["a", "b", "b", "a"]


def test_tool_calls_and_their_results_arrive_with_their_ids(tmp_path: Path) -> None:
    records: list[JsonValue] = [
        ASK,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "compose.yml: 8443"},
    ]
    messages = [each.message for each in take(tmp_path / "chat.jsonl", json_lines(records)).imported]
    assert messages[1].tool_calls == (ToolCall(id="c1", name="grep", arguments='{"pattern": "port"}'),)
    (result,) = messages[2].tool_results
    assert (result.call_id, result.text) == ("c1", "compose.yml: 8443")


@pytest.mark.parametrize(
    ("call", "answered"),
    [
        (
            {"tool_calls": [{"id": "c1", "name": "grep", "args": {"pattern": "port"}}]},
            {"role": "tool", "tool_call_id": "c1"},
        ),
        (
            {"tool_calls": [{"function": {"name": "grep", "arguments": {"pattern": "port"}}}]},
            {"role": "tool", "name": "grep"},
        ),
        (
            {"content": [{"type": "tool_use", "name": "grep", "input": {"pattern": "port"}}]},
            {
                "role": "tool",
                "content": [{"type": "tool_result", "name": "grep", "tool_use_id": None, "content": "8443"}],
            },
        ),
        ({"function_call": {"name": "grep", "arguments": '{"pattern":"port"}'}}, {"role": "function", "name": "grep"}),
    ],
)
def test_calls_of_other_forms_find_their_results(
    tmp_path: Path, call: dict[str, JsonValue], answered: dict[str, JsonValue]
) -> None:
    records: list[JsonValue] = [{"role": "assistant", **call}, {"content": "8443", **answered}]
    messages = [each.message for each in take(tmp_path / "chat.jsonl", json_lines(records)).imported]
    (made,) = messages[0].tool_calls
    assert (made.name, json.loads(made.arguments)) == ("grep", {"pattern": "port"})
    assert len(pair_calls(messages).answered) == 1


def test_anthropic_blocks_arrive_as_their_parts(tmp_path: Path) -> None:
    records: list[JsonValue] = [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look it up.", "signature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "grep", "input": {"pattern": "port"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "8443", "is_error": False}],
        },
    ]
    messages = [each.message for each in take(tmp_path / "chat.jsonl", json_lines(records)).imported]
    thought, said, call = messages[0].parts
    assert thought == Thinking(text="Look it up.", signature="s")
    assert said == Text(text="Looking.")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, json.loads(call.arguments)) == ("t1", "grep", {"pattern": "port"})
    results = [part for message in messages[1:] for part in message.parts if isinstance(part, ToolResult)]
    assert [(result.call_id, result.text) for result in results] == [("t1", "8443")]


def test_name_id_parent_and_time_of_a_message_are_kept(tmp_path: Path) -> None:
    record = {**ASK, "name": "Ines", "id": "m2", "parent_id": "m1", "created_at": "2026-10-05T09:12:20+02:00"}
    (imported,) = take(tmp_path / "chat.json", json.dumps([record])).imported
    message = imported.message
    assert (message.name, message.id, message.parent) == ("Ines", "m2", "m1")
    assert message.time == datetime(2026, 10, 5, 7, 12, 20, tzinfo=UTC)


def test_a_time_that_is_none_is_kept_as_it_was_written(tmp_path: Path) -> None:
    (imported,) = take(tmp_path / "chat.json", json.dumps([{**ASK, "time": "after lunch"}])).imported
    assert imported.message.time is None
    assert imported.message.metadata["time"] == "after lunch"


def test_an_id_that_comes_twice_in_a_session_is_given_to_the_first_only(tmp_path: Path) -> None:
    records: list[JsonValue] = [{**ASK, "id": 1}, {**ANSWER, "id": 1}, {**ANSWER, "id": 2}]
    assert [each.message.id for each in take(tmp_path / "c.jsonl", json_lines(records)).imported] == ["1", "", "2"]


def test_whoever_speaks_under_a_name_is_a_person(tmp_path: Path) -> None:
    records: list[JsonValue] = [{"speaker": "Nadia", "text": "Hi"}, {"speaker": "Tom", "text": "Hello"}]
    messages = [each.message for each in take(tmp_path / "c.jsonl", json_lines(records)).imported]
    assert [(message.role, message.name) for message in messages] == [("user", "Nadia"), ("user", "Tom")]


def test_a_message_with_only_an_attachment_is_no_empty_message(tmp_path: Path) -> None:
    attached: JsonValue = [{"file_name": "prices.csv", "extracted_content": "sku;pence"}]
    record: JsonValue = {"sender": "human", "text": "", "content": [], "attachments": attached}
    (imported,) = take(tmp_path / "c.json", json.dumps({"chat_messages": [record]})).imported
    assert imported.message.parts == (
        Media(media_type="text/plain", uri="prices.csv", name="prices.csv", description="sku;pence"),
    )


_words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30)
_chats = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": _words}),
    min_size=1,
    max_size=6,
)


@given(chat=_chats, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_what_was_written_as_a_chat_is_what_comes_out(
    chat: list[JsonValue], indent: int | None, ascii_only: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        document = json.dumps({"messages": chat}, indent=indent, ensure_ascii=ascii_only)
        whole = take(Path(folder) / "chat.json", document)
        lines = take(Path(folder) / "chat.json", "\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in chat))
    written = [(each["role"], each["content"]) for each in chat if isinstance(each, dict)]
    for taken in (whole, lines):
        assert [(each.message.role, each.message.text) for each in taken.imported] == written
        assert taken.problems == []
    assert whole.sessions == lines.sessions


@given(chat=_chats, kept=st.integers(1, 6))
def test_a_file_that_grows_at_its_end_keeps_its_session(chat: list[JsonValue], kept: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        short = take(Path(folder) / "chat.jsonl", json_lines(chat[:kept]))
        long = take(Path(folder) / "chat.jsonl", json_lines(chat))
    assert long.sessions[: len(short.sessions)] == short.sessions
    assert len(set(long.sessions)) == 1


def test_two_conversations_that_begin_alike_stay_two(tmp_path: Path) -> None:
    records: list[JsonValue] = [{"messages": [ASK, ANSWER]}, {"messages": [ASK, ANSWER]}]
    first, again = (take(tmp_path / "chats.jsonl", json_lines(records)).sessions for _ in range(2))
    assert first[0] == first[1] != first[2] == first[3]
    assert again == first
