"""Conversations of chat completions, both ways."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import json_values, messages
from ricordo.errors import InvalidMessage
from ricordo.messages import (
    JsonValue,
    Media,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    decode_message,
    encode_message,
    find_orphan_results,
)
from ricordo.messages.formats import from_openai, to_openai

CONVERSATION: list[JsonValue] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "house"},
    {
        "role": "user",
        "name": "ann",
        "content": [
            {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png?x=1", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,UklG"}},
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            {"type": "file", "file": {"file_id": "file-abc123"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"}},
            {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "two things to look up",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "/"}'}},
            {"id": "c2", "type": "function", "function": {"name": "ls", "arguments": "{broken"}, "index": 1},
            {"id": "c3", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    {
        "role": "tool",
        "tool_call_id": "c2",
        "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
    },
    {"role": "tool", "tool_call_id": "c3", "content": ""},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I'd rather not."}], "audio": {"id": "aud_1"}},
    {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
    {"role": "function", "name": "old", "content": "done"},
    {"role": "assistant", "content": "Done."},
]


def test_a_conversation_comes_back_as_it_was() -> None:
    assert to_openai(from_openai(CONVERSATION)) == CONVERSATION


def test_it_also_does_after_it_lay_in_a_transcript() -> None:
    assert to_openai([decode_message(encode_message(message)) for message in from_openai(CONVERSATION)]) == CONVERSATION


def test_everything_that_was_said_is_understood() -> None:
    developer, _, asked, called, first, *_, refused, _, _, last = from_openai(CONVERSATION)
    assert (developer.role, developer.text) == ("system", "Be brief.")
    assert asked.name == "ann"
    assert asked.parts[1:4] == (
        Media(media_type="image/png", uri="https://example.com/a.png?x=1"),
        Media(media_type="image/webp", uri="data:image/webp;base64,UklG"),
        Media(media_type="audio/wav", uri="data:audio/wav;base64,UklGRg=="),
    )
    assert asked.parts[6] == Unknown(
        kind="openai:video_url", raw='{"type":"video_url","video_url":{"url":"https://example.com/a.mp4"}}'
    )
    assert called.parts[0] == Thinking(text="two things to look up")
    assert [call.arguments for call in called.tool_calls] == ['{"path": "/"}', "{broken", "ls -l"]
    assert first == Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Text(text="a.py"),)),))
    assert isinstance(refused.parts[0], Unknown)
    assert last.text == "Done."


def test_every_result_finds_its_call_also_of_the_legacy_kind() -> None:
    assert find_orphan_results(from_openai(CONVERSATION)) == ()


def test_a_refusal_beside_the_content_becomes_part_of_it() -> None:
    reply = from_openai([{"role": "assistant", "content": None, "refusal": "No."}])
    assert to_openai(reply)[0]["content"] == [{"type": "refusal", "refusal": "No."}]


def test_an_edited_message_is_written_with_its_new_text_and_its_old_extras() -> None:
    (asked,) = from_openai([CONVERSATION[2]])
    edited = Message(role="user", parts=(Text(text="new"), *asked.parts[1:]), name="ann", metadata=asked.metadata)
    content = to_openai([edited])[0]["content"]
    assert isinstance(content, list)
    assert content[0] == {"type": "text", "text": "new", "cache_control": {"type": "ephemeral"}}


def test_several_results_in_one_message_become_several_messages_before_what_is_said() -> None:
    message = Message(
        role="user",
        parts=(Text(text="and?"), ToolResult(call_id="a"), ToolResult(call_id="b", parts=(Text(text="x"),))),
    )
    assert to_openai([message]) == [
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "tool", "tool_call_id": "b", "content": "x"},
        {"role": "user", "content": "and?"},
    ]


def test_what_the_shape_cannot_say_is_left_out() -> None:
    message = Message(
        role="assistant",
        parts=(
            Thinking(text="hm", signature="s"),
            Unknown(kind="anthropic:redacted_thinking", raw="{}"),
            Unknown(kind="openai:broken", raw="{"),
            Media(media_type="image/png", uri="/home/me/a.png"),
            Text(text="yes"),
            ToolCall(id="c", name="ls"),
        ),
    )
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    assert to_openai([message]) == [{"role": "assistant", "content": "yes", "tool_calls": [call]}]


@given(st.lists(messages(), max_size=3))
def test_any_messages_can_be_written_and_read_again(history: list[Message]) -> None:
    written: list[JsonValue] = [*to_openai(history)]
    assert to_openai(from_openai(written)) == written


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "messages: a list is needed, not an object"),
        (["hi"], "messages[0]: an object is needed"),
        ([{"content": "x"}], "messages[0].role: a string is needed"),
        ([{"role": "critic"}], "messages[0].role: one of "),
        ([{"role": "user", "content": 5}], "messages[0].content: a list is needed"),
        ([{"role": "user", "content": [{"text": "x"}]}], "messages[0].content[0].type: "),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], "content[0].image_url.url: "),
        ([{"role": "user", "content": ""}, {"role": "tool", "content": ""}], "messages[1].tool_call_id: "),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "messages[0].tool_calls[0].function: "),
        ([{"role": "function", "content": ""}], "messages[0].name: "),
    ],
)
def test_a_shape_that_is_not_understood_is_refused_with_its_position(value: JsonValue, reason: str) -> None:
    with pytest.raises(InvalidMessage, match=re.escape(reason)):
        from_openai(value)


@given(st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "name"]), json_values()), max_size=2))
def test_any_json_is_read_or_refused_in_our_own_words(values: list[JsonValue]) -> None:
    assert _refusal(values).startswith("messages[")


def _refusal(values: list[JsonValue]) -> str:
    try:
        return f"messages[{len(from_openai(values))}]"
    except InvalidMessage as error:
        return str(error)
