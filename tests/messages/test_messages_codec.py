"""The lines of a transcript."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given

from message_strategies import messages
from ricordo.errors import InvalidMessage
from ricordo.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    decode_message,
    encode_message,
)


@pytest.mark.req("AS-BUG-11")
@given(messages())
def test_every_message_reads_back_as_it_was(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


@given(messages())
def test_every_line_is_one_line_of_json_in_utf8(message: Message) -> None:
    line = encode_message(message)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line.decode("utf-8").splitlines()) == 1
    json.loads(line)


@given(messages())
def test_a_line_read_and_written_again_has_the_same_bytes(message: Message) -> None:
    line = encode_message(message)
    assert encode_message(decode_message(line)) == line
    assert decode_message(line.decode()) == decode_message(line)


@pytest.mark.req("AS-BUG-11")
def test_a_megabyte_of_mixed_text_reads_back() -> None:
    body = "naïve 記憶 \x00 \ud83d \U0001f600\n" * 50_000
    message = Message(role="tool", parts=(ToolResult(call_id="c", parts=(Text(text=body),)),))
    assert decode_message(encode_message(message)) == message


def test_keys_stand_in_a_stable_order() -> None:
    message = Message(
        role="user",
        parts=(Text(text="hi"),),
        id="m2",
        time=datetime(2026, 11, 21, 8, 3, 11, 482_001, tzinfo=UTC),
        name="ann",
        parent="m1",
        usage=Usage(input=1),
        metadata={"b": 1, "a": 2},
    )
    assert encode_message(message) == (
        b'{"v":1,"id":"m2","parent":"m1","role":"user","name":"ann","time":"2026-11-21T08:03:11.482001Z",'
        b'"parts":[{"kind":"text","text":"hi"}],'
        b'"usage":{"input":1,"output":0,"cache_read":0,"cache_write":0},"metadata":{"b":1,"a":2}}\n'
    )


def test_what_has_its_default_value_is_not_written() -> None:
    assert encode_message(Message(role="system")) == b'{"v":1,"role":"system"}\n'


def test_a_time_is_written_in_utc_whatever_its_offset() -> None:
    there = datetime(2026, 11, 21, 23, 30, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))
    assert b'"time":"2026-11-22T05:00:00Z"' in encode_message(Message(role="user", time=there))


def test_a_moment_that_utc_has_no_name_for_keeps_its_offset() -> None:
    first = Message(role="user", time=datetime.min.replace(tzinfo=timezone(timedelta(hours=2))))
    assert decode_message(encode_message(first)) == first


def test_fields_and_kinds_of_a_newer_writer_survive() -> None:
    line = (
        '{"v":2,"id":"a","role":"assistant","parts":[{"kind":"video","frames":[1.5,null]},'
        '{"kind":"tool_result","call_id":"c","parts":[{"kind":"video","frames":[]}]}],'
        '"metadata":{"x":1},"mood":"calm","branch":{"of":"b"}}\n'
    )
    message = decode_message(line)
    assert message.parts[0] == Unknown(kind="video", raw='{"kind":"video","frames":[1.5,null]}')
    assert message.metadata["x"] == 1
    assert encode_message(message).decode() == line


def test_an_unknown_field_of_this_version_survives_without_metadata() -> None:
    line = b'{"v":1,"role":"user","mood":null}\n'
    assert encode_message(decode_message(line)) == line


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_cannot_say_is_refused_before_it_is_written(number: float) -> None:
    with pytest.raises(InvalidMessage, match="JSON"):
        encode_message(Message(role="user", metadata={"score": number}))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "not JSON"),
        (b'{"v":1,"role":"us', "not JSON"),
        (b'{"v":1,"role":"\xff"}', "not JSON"),
        (b'{"v":1,"role":"user","metadata":{"a":NaN}}', "NaN"),
        (b"[]", "The line: an object is needed, not a list"),
        (b'{"role":"user"}', "v: a whole number is needed, not nothing"),
        (b'{"v":0,"role":"user"}', "v: a line has a version from 1"),
        (b'{"v":1}', "role: a string is needed"),
        (b'{"v":1,"role":"robot"}', "role: one of system, user, assistant, tool"),
        (b'{"v":1,"role":"user","id":5}', "id: a string is needed, not a number"),
        (b'{"v":1,"role":"user","time":"yesterday"}', "time: "),
        (b'{"v":1,"role":"user","time":"2026-11-21T08:00:00"}', "time zone"),
        (b'{"v":1,"role":"user","parts":{}}', "parts: a list is needed, not an object"),
        (b'{"v":1,"role":"user","parts":[{"kind":"text"}]}', r"parts[0].text: a string is needed"),
        (b'{"v":1,"role":"tool","parts":[{"kind":"tool_result","call_id":"c","parts":[7]}]}', "parts[0].parts[0]: "),
        (b'{"v":1,"role":"user","usage":{"input":true}}', "usage.input: a whole number is needed"),
        (b'{"v":1,"role":"user","metadata":[]}', "metadata: an object is needed"),
        (b'{"v":1,"role":"user","mood":1,"metadata":{"ricordo.fields":{}}}', "reserved"),
        (b'{"v":1,"role":"user","metadata":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_message_is_refused_with_its_reason(line: bytes, reason: str) -> None:
    with pytest.raises(InvalidMessage, match=re.escape(reason)):
        decode_message(line)


@pytest.mark.req("AS-BUG-11")
def test_every_kind_of_part_has_a_form_of_its_own() -> None:
    message = Message(
        role="assistant",
        parts=(
            Thinking(text="hm", signature="s"),
            ToolCall(id="c", name="ls", arguments="{broken"),
            ToolResult(call_id="c", parts=(Text(text="no"),), name="ls", is_error=True),
        ),
    )
    assert json.loads(encode_message(message))["parts"] == [
        {"kind": "thinking", "text": "hm", "signature": "s"},
        {"kind": "tool_call", "id": "c", "name": "ls", "arguments": "{broken"},
        {
            "kind": "tool_result",
            "call_id": "c",
            "parts": [{"kind": "text", "text": "no"}],
            "name": "ls",
            "is_error": True,
        },
    ]
