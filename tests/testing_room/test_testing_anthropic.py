"""Anthropic's own client talks to the server: messages, streams and counts."""

import anthropic
import pytest
from anthropic.types import MessageParam

from ricordo.messages import Usage
from ricordo.testing import Call, Calls, Empty, Hold, LoopbackServer, Say

HELLO: list[MessageParam] = [{"role": "user", "content": "hello"}]


def _client(server: LoopbackServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0, timeout=10)


def test_a_message_arrives_with_thinking_and_usage_that_leaves_the_cache_out() -> None:
    usage = Usage(input=100, output=7, cache_read=60, cache_write=10)
    with (
        LoopbackServer([Say("Good morning.", thinking="It is early.", usage=usage)]) as server,
        _client(server) as client,
    ):
        reply = client.messages.create(model="m", max_tokens=9, messages=HELLO)
    thinking, said = reply.content
    assert thinking.type == "thinking"
    assert (thinking.thinking, bool(thinking.signature)) == ("It is early.", True)
    assert said.type == "text"
    assert (said.text, reply.stop_reason) == ("Good morning.", "end_turn")
    counted = reply.usage
    assert (counted.input_tokens, counted.cache_read_input_tokens, counted.cache_creation_input_tokens) == (30, 60, 10)
    assert counted.output_tokens == 7


def test_parallel_tool_calls_arrive_whole_and_streamed_alike() -> None:
    item = Calls(Call("look", {"at": "the sea"}), Call("look", {"at": "a map"}), text="I look.", thinking="Hm.")
    with LoopbackServer([item, item]) as server, _client(server) as client:
        whole = client.messages.create(model="m", max_tokens=9, messages=HELLO)
        with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
            streamed = stream.get_final_message()
    for number, reply in ((1, whole), (2, streamed)):
        assert [block.type for block in reply.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert reply.stop_reason == "tool_use"
        calls = [(block.id, block.input) for block in reply.content if block.type == "tool_use"]
        assert calls == [(f"call_{number}_1", {"at": "the sea"}), (f"call_{number}_2", {"at": "a map"})]
        assert reply.usage.output_tokens == whole.usage.output_tokens


def test_the_first_piece_is_seen_while_the_rest_is_held_back() -> None:
    with LoopbackServer([Hold(Say("one two three"))]) as server, _client(server) as client:
        seen = []
        with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
            for text in stream.text_stream:
                seen.append((text, server.held_count))
                server.release()
    assert seen == [("one ", 1), ("two ", 0), ("three", 0)]


@pytest.mark.anyio
async def test_an_async_client_streams_from_the_same_server() -> None:
    with LoopbackServer([Hold(Say("one two"))]) as server:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key="key", max_retries=0) as client:
            seen = []
            async with client.messages.stream(model="m", max_tokens=9, messages=HELLO) as stream:
                async for text in stream.text_stream:
                    seen.append((text, server.held_count))
                    server.release()
    assert seen == [("one ", 1), ("two", 0)]


def test_a_reply_says_why_it_ended() -> None:
    script = [Say("a", stop="length"), Say("b", stop="window"), Say("c", stop="refused")]
    with LoopbackServer(script) as server, _client(server) as client:
        stops = [client.messages.create(model="m", max_tokens=9, messages=HELLO).stop_reason for _ in script]
    assert stops == ["max_tokens", "model_context_window_exceeded", "refusal"]


def test_an_empty_reply_has_no_blocks() -> None:
    with LoopbackServer([Empty()]) as server, _client(server) as client:
        assert client.messages.create(model="m", max_tokens=9, messages=HELLO).content == []


def test_a_schema_the_tools_and_the_system_prompt_are_recorded() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with LoopbackServer([Say('{"n": 1}')]) as server, _client(server) as client:
        client.messages.create(
            model="m",
            max_tokens=9,
            system="Be brief.",
            messages=HELLO,
            tools=[{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}],
            output_config={"format": {"type": "json_schema", "schema": dict(schema)}},
        )
        request = server.requests[0]
    assert request.schema == schema
    assert [(tool.name, tool.description, tool.parameters) for tool in request.tools] == [
        ("look", "Look.", {"type": "object"})
    ]
    assert [(message.role, message.text) for message in request.messages] == [
        ("system", "Be brief."),
        ("user", "hello"),
    ]


def test_counting_tokens_takes_nothing_from_the_script_and_grows_with_the_text() -> None:
    with LoopbackServer([Say("still there")]) as server, _client(server) as client:
        short = client.messages.count_tokens(model="m", messages=HELLO).input_tokens
        long = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hello " * 100}])
        reply = client.messages.create(model="m", max_tokens=9, messages=HELLO)
    assert 0 < short < long.input_tokens
    assert [block.text for block in reply.content if block.type == "text"] == ["still there"]
    assert reply.usage.input_tokens == short
