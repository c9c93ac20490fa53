"""Conversations of Anthropic's messages API, both ways."""

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
from ricordo.messages.formats import AnthropicPrompt, from_anthropic, from_openai, to_anthropic, to_openai

SYSTEM: list[JsonValue] = [
    {"type": "text", "text": "Be brief."},
    {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}},
]
MESSAGES: list[JsonValue] = [
    {"role": "user", "content": "Hello"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "EmwK"},
            {"type": "text", "text": "So:", "citations": [{"type": "char_location", "cited_text": "x"}]},
            {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "/", "deep": [1, None]}},
            {"type": "tool_use", "id": "t2", "name": "ls", "input": {}, "cache_control": {"type": "ephemeral"}},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        ],
        "stop_reason": "tool_use",
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [
                    {"type": "text", "text": "a.py", "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
                    {"type": "search_result", "source": "s", "title": "t", "content": []},
                ],
            },
            {"type": "tool_result", "tool_use_id": "t2", "content": [], "is_error": True},
            {"type": "text", "text": "and this?"},
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_011"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
                "title": "Report",
                "citations": {"enabled": True},
            },
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}},
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a"}, "context": "c"},
        ],
    },
]


def test_a_conversation_comes_back_as_it_was() -> None:
    assert to_anthropic(from_anthropic(MESSAGES, SYSTEM)) == AnthropicPrompt(messages=MESSAGES, system=SYSTEM)  # type: ignore[arg-type]


def test_it_also_does_after_it_lay_in_a_transcript() -> None:
    stored = [decode_message(encode_message(message)) for message in from_anthropic(MESSAGES, "Be brief.")]
    assert to_anthropic(stored) == AnthropicPrompt(messages=MESSAGES, system="Be brief.")  # type: ignore[arg-type]


def test_everything_that_was_said_is_understood() -> None:
    system, hello, called, answered = from_anthropic(MESSAGES, SYSTEM)
    assert (system.role, system.text) == ("system", "Be brief.\nBe kind.")
    assert hello == Message(role="user", parts=(Text(text="Hello"),))
    assert called.parts[0] == Thinking(text="hm", signature="EqQB")
    assert called.parts[1] == Unknown(
        kind="anthropic:redacted_thinking", raw='{"type":"redacted_thinking","data":"EmwK"}'
    )
    assert called.text == "So:"
    assert called.tool_calls[0] == ToolCall(id="t1", name="ls", arguments='{"path":"/","deep":[1,null]}')
    assert answered.role == "user"
    assert answered.tool_results[0].parts[:2] == (
        Text(text="a.py"),
        Media(media_type="image/png", uri="data:image/png;base64,iVBO"),
    )
    assert answered.tool_results[1].is_error
    assert answered.parts[5] == Media(
        media_type="application/pdf", uri="data:application/pdf;base64,JVBE", name="Report"
    )
    assert find_orphan_results([called, answered]) == ()


def test_a_message_of_results_alone_is_a_tool_message() -> None:
    result: JsonValue = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    (message,) = from_anthropic([{"role": "user", "content": [result]}])
    assert message.role == "tool"
    assert message.tool_results[0].text == "x"


def test_results_of_parallel_calls_are_gathered_and_stand_first() -> None:
    results = [Message(role="tool", parts=(ToolResult(call_id=i),)) for i in "ab"]
    mixed = Message(role="user", parts=(Text(text="now?"), ToolResult(call_id="c")))
    said = Message(role="assistant", parts=(Text(text="ok"),))
    written = to_anthropic([said, *results, said, mixed]).messages
    empty = {"type": "tool_result", "content": []}
    assert [message["role"] for message in written] == ["assistant", "user", "assistant", "user"]
    assert written[1]["content"] == [{**empty, "tool_use_id": "a"}, {**empty, "tool_use_id": "b"}]
    assert written[3]["content"] == [{**empty, "tool_use_id": "c"}, {"type": "text", "text": "now?"}]


def test_what_the_shape_cannot_say_is_left_out() -> None:
    prompt = to_anthropic(
        [
            Message(role="user", parts=(Text(text=""),)),
            Message(role="user", name="ann", parts=(Media(media_type="audio/wav", uri="https://example.com/a.wav"),)),
            Message(role="assistant", parts=(Thinking(text="unsealed"), Unknown(kind="openai:x", raw="{}"))),
            Message(role="assistant", parts=(ToolCall(id="c", name="ls", arguments="{broken"),)),
            Message(role="system", parts=(Text(text="late"),)),
        ]
    )
    call: JsonValue = {"type": "tool_use", "id": "c", "name": "ls", "input": {"arguments": "{broken"}}
    assert prompt == AnthropicPrompt(messages=[{"role": "assistant", "content": [call]}], system="late")


def test_a_conversation_crosses_to_the_other_dialect_with_its_calls_and_results() -> None:
    crossed: list[JsonValue] = [*to_openai(from_anthropic(MESSAGES, SYSTEM))]
    roles = [message["role"] for message in crossed if isinstance(message, dict)]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert find_orphan_results(from_openai(crossed)) == ()


@given(st.lists(messages(), max_size=3))
def test_any_messages_can_be_written_and_read_again(history: list[Message]) -> None:
    once = to_anthropic(history)
    assert to_anthropic(from_anthropic([*once.messages], once.system)) == once


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "messages: a list is needed, not nothing"),
        ([{"role": "tool"}], "messages[0].role: one of "),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text: "),
        ([{"role": "user", "content": [{"type": "image"}]}], "messages[0].content[0].source: "),
        ([{"role": "assistant", "content": [{"type": "tool_use", "input": []}]}], "messages[0].content[0].input: "),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{}]}]}],
            "messages[0].content[0].content[0].type: ",
        ),
    ],
)
def test_a_shape_that_is_not_understood_is_refused_with_its_position(value: JsonValue, reason: str) -> None:
    with pytest.raises(InvalidMessage, match=re.escape(reason)):
        from_anthropic(value)


@given(st.lists(st.dictionaries(st.sampled_from(["role", "content", "id"]), json_values()), max_size=2), json_values())
def test_any_json_is_read_or_refused_in_our_own_words(values: list[JsonValue], system: JsonValue) -> None:
    assert _refusal(values, system).startswith(("messages[", "system"))


def _refusal(values: list[JsonValue], system: JsonValue) -> str:
    try:
        return f"messages[{len(from_anthropic(values, system))}]"
    except InvalidMessage as error:
        return str(error)
