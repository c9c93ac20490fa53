"""The bytes on the wire, read without any client: nothing is lost, and nothing waits."""

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import any_text, json_values
from ricordo.testing import Call, Calls, Hold, LoopbackServer, Respond, Say, ScriptItem

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
_script: list[ScriptItem] = []


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: _script.pop()) as running:
        yield running


def _body(path: str, *, stream: bool) -> bytes:
    hello = [{"role": "user", "content": "hello"}]
    key = "input" if path.endswith("responses") else "messages"
    return json.dumps({"model": "m", key: hello, "stream": stream}).encode()


def _ask(server: LoopbackServer, path: str, item: ScriptItem, *, stream: bool) -> str:
    _script.append(item)
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    connection.request("POST", path, _body(path, stream=stream))
    answered = connection.getresponse()
    content = answered.read().decode("ascii")
    connection.close()
    assert answered.status == 200, content
    return content


def _events(content: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in content.split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def _whole(path: str, content: str) -> tuple[str | None, str, list[str]]:
    """Read what was said, thought and called."""
    body = json.loads(content)
    if path == PATHS[0]:
        message = body["choices"][0]["message"]
        calls = [call["function"]["arguments"] for call in message.get("tool_calls", [])]
        return message["content"], message.get("reasoning_content", ""), calls
    items = body["output" if path == PATHS[1] else "content"]
    by_type: dict[str, list[Any]] = {}
    for item in items:
        by_type.setdefault(item["type"], []).append(item)
    if path == PATHS[1]:
        said = [item["content"][0]["text"] for item in by_type.get("message", [])]
        thought = [item["summary"][0]["text"] for item in by_type.get("reasoning", [])]
        return (
            next(iter(said), None),
            "".join(thought),
            [call["arguments"] for call in by_type.get("function_call", [])],
        )
    said = [block["text"] for block in by_type.get("text", [])]
    thought = [block["thinking"] for block in by_type.get("thinking", [])]
    return next(iter(said), None), "".join(thought), [json.dumps(call["input"]) for call in by_type.get("tool_use", [])]


def _streamed(path: str, content: str) -> tuple[str, str, list[str]]:
    said, thought, calls = "", "", dict[int, str]()
    for event in _events(content):
        if path == PATHS[0]:
            delta = event["choices"][0]["delta"]
            said += delta.get("content") or ""
            thought += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", []):
                calls[call["index"]] = calls.get(call["index"], "") + call["function"]["arguments"]
        elif path == PATHS[1]:
            said += event["delta"] if event["type"] == "response.output_text.delta" else ""
            thought += event["delta"] if event["type"] == "response.reasoning_summary_text.delta" else ""
            if event["type"] == "response.function_call_arguments.delta":
                index = event["output_index"]
                calls[index] = calls.get(index, "") + event["delta"]
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            said += delta.get("text", "")
            thought += delta.get("thinking", "")
            if "partial_json" in delta:
                calls[event["index"]] = calls.get(event["index"], "") + delta["partial_json"]
    return said, thought, [calls[index] for index in sorted(calls)]


@pytest.mark.parametrize("path", PATHS)
@given(text=any_text(), thinking=any_text())
def test_any_text_arrives_as_it_was_said(server: LoopbackServer, path: str, text: str, thinking: str) -> None:
    item = Say(text, thinking=thinking)
    assert _whole(path, _ask(server, path, item, stream=False)) == (text, thinking, [])
    assert _streamed(path, _ask(server, path, item, stream=True)) == (text, thinking, [])


@pytest.mark.parametrize("path", PATHS)
@given(arguments=st.lists(st.dictionaries(any_text(5), json_values(), max_size=3), min_size=1, max_size=3))
def test_any_arguments_of_parallel_calls_arrive_as_they_were_given(
    server: LoopbackServer, path: str, arguments: list[dict[str, Any]]
) -> None:
    item = Calls(*(Call("look", given) for given in arguments))
    _, _, whole = _whole(path, _ask(server, path, item, stream=False))
    _, _, streamed = _streamed(path, _ask(server, path, item, stream=True))
    assert [json.loads(text) for text in whole] == arguments
    assert [json.loads(text) for text in streamed] == arguments


@pytest.mark.parametrize("path", PATHS)
def test_arguments_that_are_not_json_travel_as_they_are(server: LoopbackServer, path: str) -> None:
    _, _, streamed = _streamed(path, _ask(server, path, Call("look", '{"at": '), stream=True))
    assert streamed == ['{"at": ']


@pytest.mark.parametrize("path", PATHS)
def test_what_is_held_back_is_not_on_the_wire(server: LoopbackServer, path: str) -> None:
    _script.append(Hold(Say("first second")))
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        body = _body(path, stream=True)
        connection.sendall(
            b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (path.encode(), len(body)) + body
        )
        received = b""
        while b"first" not in received:
            received += connection.recv(65_536)
        connection.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            while more := connection.recv(65_536):
                received += more
        assert b"second" not in received
        connection.settimeout(10)
        server.release()
        while more := connection.recv(65_536):
            received += more
    assert b"second" in received
    assert received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("path", [path.removeprefix("/v1") for path in PATHS])
def test_the_prefix_of_a_path_may_be_left_out(server: LoopbackServer, path: str) -> None:
    content = _ask(server, path, Respond(lambda request: Say(f"came by {request.path}")), stream=False)
    assert f"came by {path}" in content
