"""Items of OpenAI's Responses API become messages and the same items again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import InvalidMessage
from ricordo.messages import JsonValue, Message, Text, Thinking, ToolCall, Unknown
from ricordo.messages.formats import from_openai_responses, to_openai_responses

_TEXT = st.text(min_size=1, max_size=12)
_USER = st.builds(lambda text: {"type": "message", "role": "user", "content": text}, _TEXT)
_DEVELOPER = st.builds(lambda text: {"type": "message", "role": "developer", "content": text}, _TEXT)
_REPLY = st.builds(
    lambda text, name: {
        "type": "message", "role": "assistant", "id": f"msg_{name}", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    },
    _TEXT, _TEXT,
)  # fmt: skip
_REFUSAL = st.builds(
    lambda text: {
        "type": "message", "role": "assistant", "id": "msg_1",
        "content": [{"type": "refusal", "refusal": text}, {"type": "output_text", "text": text, "annotations": []}],
    },
    _TEXT,
)  # fmt: skip
_REASONING = st.builds(
    lambda texts: {
        "type": "reasoning", "id": "rs_1", "encrypted_content": "x",
        "summary": [{"type": "summary_text", "text": text} for text in texts],
    },
    st.lists(_TEXT, max_size=3),
)  # fmt: skip
_CALL = st.builds(
    lambda name, text: {
        "type": "function_call", "id": "fc_1", "call_id": name, "name": "add", "arguments": text, "status": "completed"
    },
    _TEXT, _TEXT,
)  # fmt: skip
_RESULT = st.builds(lambda name, text: {"type": "function_call_output", "call_id": name, "output": text}, _TEXT, _TEXT)
_IMAGE = st.builds(
    lambda text: {
        "type": "message", "role": "user",
        "content": [
            {"type": "input_text", "text": text},
            {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
            {"type": "input_file", "file_id": "file_1"},
        ],
    },
    _TEXT,
)  # fmt: skip
_HOSTED = st.builds(lambda name: {"type": "web_search_call", "id": name, "status": "completed", "action": {}}, _TEXT)
_ITEMS = st.lists(
    st.one_of(_USER, _DEVELOPER, _REPLY, _REFUSAL, _REASONING, _CALL, _RESULT, _IMAGE, _HOSTED), max_size=8
)


@given(items=_ITEMS)
def test_items_come_back_as_they_were(items: list[JsonValue]) -> None:
    assert to_openai_responses(from_openai_responses(items)) == items


def test_a_thought_stays_with_the_calls_that_it_led_to() -> None:
    items: list[JsonValue] = [
        {"role": "user", "content": "Add them."},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "3"}]},
    ]
    user, reply, result = from_openai_responses(items)
    assert user.text == "Add them."
    assert [type(part) for part in reply.parts] == [Thinking, ToolCall, ToolCall]
    assert result.tool_results[0].text == "3"


def test_messages_that_follow_each_other_stay_apart() -> None:
    said: list[JsonValue] = [{"role": "assistant", "content": text} for text in ("One.", "Two.")]
    assert [each.text for each in from_openai_responses(said)] == ["One.", "Two."]


def test_what_came_from_elsewhere_is_written_plainly() -> None:
    messages = [
        Message(role="user", parts=(Text(text="Hello."),)),
        Message(role="assistant", parts=(Text(text="Good day."), Unknown(kind="anthropic:x", raw="{}"))),
    ]
    assert to_openai_responses(messages) == [
        {"type": "message", "role": "user", "content": "Hello."},
        {"type": "message", "role": "assistant", "content": "Good day."},
    ]


def test_a_text_is_a_message_of_the_user() -> None:
    assert [(each.role, each.text) for each in from_openai_responses("Hello.")] == [("user", "Hello.")]


@pytest.mark.parametrize(
    ("items", "path"),
    [
        (7, "input"),
        (["text"], r"input\[0\]"),
        ([{"role": "nobody", "content": "x"}], r"input\[0\]\.role"),
        ([{"type": "function_call", "name": "add", "arguments": "{}"}], r"input\[0\]\.call_id"),
        ([{"type": "function_call_output", "call_id": "a"}], r"input\[0\]\.output"),
    ],
)
def test_an_item_that_lacks_a_field_is_named(items: Any, path: str) -> None:
    with pytest.raises(InvalidMessage, match=path):
        from_openai_responses(items)
