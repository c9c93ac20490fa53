"""Conversations of pydantic-ai, both ways."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
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
    Usage,
    decode_message,
    encode_message,
    find_orphan_results,
)
from ricordo.messages.formats import from_pydantic_ai, to_pydantic_ai

theirs = pytest.importorskip("pydantic_ai.messages")
ADAPTER = theirs.ModelMessagesTypeAdapter
SAID = datetime(2026, 11, 21, 8, 3, 11, 482_001, tzinfo=UTC)


def _conversation() -> list[object]:
    picture = theirs.BinaryContent(b"abc\xff\xfe?>", media_type="image/png")
    return [
        theirs.ModelRequest(
            parts=[
                theirs.SystemPromptPart("Be brief.", timestamp=SAID),
                theirs.UserPromptPart(
                    [
                        "What is this?",
                        theirs.ImageUrl("https://example.com/a.png", vendor_metadata={"detail": "low"}),
                        picture,
                        theirs.AudioUrl("https://example.com/a.mp3"),
                        theirs.DocumentUrl("https://example.com/a.pdf"),
                        theirs.CachePoint(),
                    ],
                    timestamp=SAID,
                ),
                theirs.UserPromptPart("Quick!", timestamp=SAID),
            ],
            instructions="Help.",
            run_id="r1",
        ),
        theirs.ModelResponse(
            parts=[
                theirs.ThinkingPart("hm", signature="s", id="i", provider_name="p"),
                theirs.TextPart("So:"),
                theirs.ToolCallPart("ls", {"path": "/"}, tool_call_id="c1"),
                theirs.ToolCallPart("ls", '{"path":"/b"}', tool_call_id="c2"),
                theirs.ToolCallPart("ls", "{broken", tool_call_id="c3"),
                theirs.NativeToolCallPart("web_search", {"q": "x"}, tool_call_id="n1"),
                theirs.FilePart(picture),
            ],
            usage=theirs.RequestUsage(input_tokens=50, output_tokens=7, cache_read_tokens=20, details={"x": 1}),
            model_name="m",
            timestamp=SAID,
            finish_reason="tool_call",
        ),
        theirs.ModelRequest(
            parts=[
                theirs.ToolReturnPart("ls", "a.py", tool_call_id="c1", timestamp=SAID, metadata={"k": [1]}),
                theirs.ToolReturnPart("ls", {"files": [1, None]}, tool_call_id="c2", timestamp=SAID),
                theirs.ToolReturnPart("ls", "not JSON", tool_call_id="c3", timestamp=SAID, outcome="failed"),
            ]
        ),
        theirs.ModelRequest(parts=[theirs.UserPromptPart(["only one"], timestamp=SAID)]),
        theirs.ModelRequest(parts=[], instructions="only these"),
        theirs.ModelResponse(parts=[], timestamp=SAID),
    ]


def _dumped() -> list[JsonValue]:
    dumped: list[JsonValue] = ADAPTER.dump_python(_conversation(), mode="json")
    return dumped


def test_a_conversation_validates_to_the_same_messages() -> None:
    back = ADAPTER.validate_python(to_pydantic_ai(from_pydantic_ai(_dumped())))
    expected = ADAPTER.validate_python(_dumped())
    expected[3].parts[0].content = "only one"
    assert back == expected


def test_it_also_does_after_it_lay_in_a_transcript() -> None:
    ours = from_pydantic_ai(_dumped())
    assert to_pydantic_ai([decode_message(encode_message(message)) for message in ours]) == to_pydantic_ai(ours)


def test_everything_that_was_said_is_understood() -> None:
    system, asked, quick, reply, *results, one, _, _ = from_pydantic_ai(_dumped())
    assert (system.role, system.text, system.time) == ("system", "Be brief.", SAID)
    assert asked.parts[:3] == (
        Text(text="What is this?"),
        Media(media_type="image/png", uri="https://example.com/a.png"),
        Media(media_type="image/png", uri="data:image/png;base64,YWJj//4/Pg=="),
    )
    assert (quick.role, quick.text) == ("user", "Quick!")
    assert reply.parts[0] == Thinking(text="hm", signature="s")
    assert [call.arguments for call in reply.tool_calls] == ['{"path":"/"}', '{"path":"/b"}', "{broken"]
    assert reply.usage == Usage(input=50, output=7, cache_read=20)
    assert [part.kind for part in reply.parts if isinstance(part, Unknown)] == [
        "pydantic-ai:builtin-tool-call",
        "pydantic-ai:file",
    ]
    assert [(m.role, m.tool_results[0].text, m.tool_results[0].is_error) for m in results] == [
        ("tool", "a.py", False),
        ("tool", '{"files":[1,null]}', False),
        ("tool", "not JSON", True),
    ]
    assert find_orphan_results([reply, *results]) == ()
    assert one.text == "only one"


def test_a_retry_that_answers_a_call_is_a_result() -> None:
    retry: JsonValue = {
        "kind": "request",
        "parts": [
            {
                "part_kind": "retry-prompt",
                "content": "bad path",
                "tool_name": "ls",
                "tool_call_id": "c",
                "timestamp": "2026-11-21T08:03:11Z",
            }
        ],
    }
    (message,) = from_pydantic_ai([retry])
    assert message.tool_results[0].is_error
    assert ADAPTER.validate_python(to_pydantic_ai([message]))[0].parts == ADAPTER.validate_python([retry])[0].parts


def test_what_was_said_elsewhere_becomes_requests_and_responses() -> None:
    history = [
        Message(role="system", parts=(Text(text="Be brief."),)),
        Message(role="user", name="ann", parts=(Text(text="Hi"), Media(media_type="image/png", uri="/home/me/a.png"))),
        Message(role="assistant", parts=(ToolCall(id="c", name="ls"), Unknown(kind="openai:x", raw="{}"))),
        Message(role="tool", parts=(ToolResult(call_id="c", parts=(Text(text="a.py"),)),)),
        Message(role="user", parts=(Text(text="and?"),)),
    ]
    first, reply, second = ADAPTER.validate_python(to_pydantic_ai(history))
    assert [part.content for part in first.parts] == ["Be brief.", "Hi"]
    assert [part.tool_name for part in reply.parts] == ["ls"]
    assert [(part.part_kind, part.content) for part in second.parts] == [
        ("tool-return", "a.py"),
        ("user-prompt", "and?"),
    ]
    assert second.parts[0].tool_name == "ls"


def test_an_edited_result_is_written_with_its_new_text() -> None:
    result = from_pydantic_ai(_dumped())[5]
    edited = Message(
        role="tool",
        parts=(ToolResult(call_id="c2", name="ls", parts=(Text(text="[cleared]"),)),),
        metadata=result.metadata,
    )
    (request,) = ADAPTER.validate_python(to_pydantic_ai([edited]))
    assert request.parts[0].content == "[cleared]"


@given(st.lists(messages(), max_size=3))
def test_any_messages_become_what_their_library_validates(history: list[Message]) -> None:
    assume(not any(b"\\ud" in encode_message(message) for message in history))  # it refuses lone surrogates
    ADAPTER.validate_python(to_pydantic_ai(history))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "messages: a list is needed"),
        ([{"kind": "reply"}], "messages[0].kind: request or response is needed"),
        ([{"kind": "request"}], "messages[0].parts: a list is needed"),
        ([{"kind": "request", "parts": [{}]}], "messages[0].parts[0].part_kind: "),
        ([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [5]}]}], "parts[0].content[0]: "),
        ([{"kind": "response", "parts": [{"part_kind": "tool-call"}]}], "messages[0].parts[0].tool_call_id: "),
    ],
)
def test_a_shape_that_is_not_understood_is_refused_with_its_position(value: JsonValue, reason: str) -> None:
    with pytest.raises(InvalidMessage, match=re.escape(reason)):
        from_pydantic_ai(value)


_FIELDS = st.sampled_from(["kind", "parts", "usage", "timestamp"])


@given(st.lists(st.dictionaries(_FIELDS, st.one_of(json_values(), st.just("response"))), max_size=2))
def test_any_json_is_read_or_refused_in_our_own_words(values: list[JsonValue]) -> None:
    assert _refusal(values).startswith("messages[")


def _refusal(values: list[JsonValue]) -> str:
    try:
        return f"messages[{len(from_pydantic_ai(values))}]"
    except InvalidMessage as error:
        return str(error)
