"""OpenAI's own client talks to the server: chat completions, responses and embeddings, whole and streamed."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam

from ricordo.messages import Usage
from ricordo.testing import Call, Calls, Empty, Hold, LoopbackServer, Respond, Say, ScriptLike

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]
TOOLS: list[ChatCompletionToolUnionParam] = [
    {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
]


class Talk:
    """A server and a client of it."""

    def __init__(self, script: ScriptLike) -> None:
        self.server = LoopbackServer(script)
        self.client = openai.OpenAI(base_url=self.server.url, api_key="key", max_retries=0, timeout=10)

    def __enter__(self) -> "Talk":
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.server.stop()


def test_a_chat_reply_arrives_with_text_thinking_and_usage() -> None:
    usage = Usage(input=100, output=7, cache_read=60, cache_write=10)
    with Talk([Say("Good morning.", thinking="It is early.", usage=usage)]) as talk:
        reply = talk.client.chat.completions.create(model="m", messages=HELLO)
    choice = reply.choices[0]
    assert (choice.message.content, choice.finish_reason, reply.model) == ("Good morning.", "stop", "m")
    assert (choice.message.model_extra or {})["reasoning_content"] == "It is early."
    assert reply.usage is not None
    assert reply.usage.prompt_tokens_details is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (100, 7)
    assert reply.usage.prompt_tokens_details.cached_tokens == 60


def test_parallel_tool_calls_arrive_whole_and_streamed_alike() -> None:
    item = Calls(Call("look", {"at": "the sea"}), Call("look", {"at": "a map"}, id="mine"), text="I look.")
    with Talk([item, item]) as talk:
        whole = talk.client.chat.completions.create(model="m", messages=HELLO, tools=TOOLS)
        with talk.client.chat.completions.stream(model="m", messages=HELLO, tools=TOOLS) as stream:
            stream.until_done()
            streamed = stream.get_final_completion()
    for number, reply in ((1, whole), (2, streamed)):
        choice = reply.choices[0]
        assert (choice.message.content, choice.finish_reason) == ("I look.", "tool_calls")
        calls = [call for call in choice.message.tool_calls or [] if call.type == "function"]
        assert [call.id for call in calls] == [f"call_{number}_1", "mine"]
        assert [json.loads(call.function.arguments)["at"] for call in calls] == ["the sea", "a map"]


def test_the_first_piece_is_seen_while_the_rest_is_held_back() -> None:
    with Talk([Hold(Say("one two three"))]) as talk:
        seen = []
        for chunk in talk.client.chat.completions.create(model="m", messages=HELLO, stream=True):
            if chunk.choices[0].delta.content:
                seen.append((chunk.choices[0].delta.content, talk.server.held_count))
                talk.server.release()
    assert seen == [("one ", 1), ("two ", 0), ("three", 0)]


def test_a_stream_tells_its_usage_only_when_asked() -> None:
    with Talk([Say("hi", usage=Usage(input=5, output=2))] * 2) as talk:
        asked = talk.client.chat.completions.create(
            model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        assert [chunk.usage.total_tokens for chunk in asked if chunk.usage] == [7]
        silent = talk.client.chat.completions.create(model="m", messages=HELLO, stream=True)
        assert [chunk.usage for chunk in silent if chunk.usage] == []


@pytest.mark.parametrize(("stop", "reason"), [("length", "length"), ("refused", "content_filter")])
def test_a_reply_says_why_it_ended(stop: str, reason: str) -> None:
    item = Say("Once upon", stop="length" if stop == "length" else "refused")
    with Talk([item]) as talk:
        reply = talk.client.chat.completions.create(model="m", messages=HELLO)
    assert reply.choices[0].finish_reason == reason


def test_an_empty_reply_has_no_content_at_all() -> None:
    with Talk([Empty()]) as talk:
        message = talk.client.chat.completions.create(model="m", messages=HELLO).choices[0].message
    assert (message.content, message.tool_calls) == (None, None)


def test_a_reply_can_be_computed_from_the_request() -> None:
    with Talk([Respond(lambda request: Say(request.messages[-1].text.upper()))]) as talk:
        reply = talk.client.chat.completions.create(model="m", messages=HELLO)
    assert reply.choices[0].message.content == "HELLO"


def test_a_schema_is_recorded_and_its_json_returned_as_given() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with Talk([Say('{"n": 1}')]) as talk:
        reply = talk.client.chat.completions.create(
            model="m",
            messages=HELLO,
            response_format={"type": "json_schema", "json_schema": {"name": "N", "schema": dict(schema)}},
        )
        assert talk.server.requests[0].schema == schema
    assert reply.choices[0].message.content == '{"n": 1}'


# On trio the client leaves generators of its own behind, and a later test would be blamed for them.
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_async_client_streams_from_the_same_server(anyio_backend: str) -> None:
    del anyio_backend
    with LoopbackServer([Hold(Say("one two"))]) as server:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="key", max_retries=0) as client:
            seen = []
            async for chunk in await client.chat.completions.create(model="m", messages=HELLO, stream=True):
                if chunk.choices[0].delta.content:
                    seen.append((chunk.choices[0].delta.content, server.held_count))
                    server.release()
    assert seen == [("one ", 1), ("two", 0)]


@pytest.mark.anyio
async def test_two_clients_at_once_get_a_reply_each() -> None:
    with LoopbackServer([Hold(Say("first")), Say("second")]) as server:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="key", max_retries=0) as client:
            said: list[str | None] = []

            async def ask() -> None:
                reply = await client.chat.completions.create(model="m", messages=HELLO)
                said.append(reply.choices[0].message.content)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await anyio.to_thread.run_sync(server.wait_for_held)
                await ask()
                server.release()
        assert said == ["second", "first"]
        assert [request.number for request in server.requests] == [1, 2]


def _deltas(events: Iterator[object], server: LoopbackServer) -> Iterator[tuple[str, int]]:
    for event in events:
        if getattr(event, "type", "") == "response.output_text.delta":
            yield str(getattr(event, "delta", "")), server.held_count
            server.release()


def test_a_response_arrives_with_reasoning_calls_and_usage_whole_and_streamed_alike() -> None:
    usage = Usage(input=50, output=9, cache_read=20)
    item = Calls(Call("look", {"at": "sea"}), Call("look", {"at": "map"}), text="I look.", thinking="Hm.", usage=usage)
    with Talk([item, item]) as talk:
        whole = talk.client.responses.create(model="m", input="hello")
        with talk.client.responses.stream(model="m", input="hello") as stream:
            stream.until_done()
            streamed = stream.get_final_response()
    for number, reply in ((1, whole), (2, streamed)):
        assert [part.type for part in reply.output] == ["reasoning", "message", "function_call", "function_call"]
        assert (reply.output_text, reply.status) == ("I look.", "completed")
        calls = [part for part in reply.output if part.type == "function_call"]
        assert [call.call_id for call in calls] == [f"call_{number}_1", f"call_{number}_2"]
        assert [json.loads(call.arguments) for call in calls] == [{"at": "sea"}, {"at": "map"}]
        assert reply.usage is not None
        assert (reply.usage.input_tokens, reply.usage.input_tokens_details.cached_tokens) == (50, 20)


def test_the_first_piece_of_a_response_is_seen_while_the_rest_is_held_back() -> None:
    with Talk([Hold(Say("one two"))]) as talk:
        events = talk.client.responses.create(model="m", input="hello", stream=True)
        assert list(_deltas(iter(events), talk.server)) == [("one ", 1), ("two", 0)]


def test_a_response_that_was_cut_off_is_incomplete() -> None:
    with Talk([Say("Once upon", stop="length")] * 2) as talk:
        whole = talk.client.responses.create(model="m", input="hello")
        last = list(talk.client.responses.create(model="m", input="hello", stream=True))[-1]
    assert whole.incomplete_details is not None
    assert (whole.status, whole.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert last.type == "response.incomplete"


def test_the_input_items_of_a_response_are_recorded_as_messages() -> None:
    with Talk([Say("done")]) as talk:
        talk.client.responses.create(
            model="m",
            instructions="Be brief.",
            input=[
                {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
                {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "sea"},
                {"type": "function_call_output", "call_id": "b", "output": "map"},
            ],
            tools=[{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}],
        )
        request = talk.server.requests[0]
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool", "tool"]
    assert [call.id for call in request.messages[2].tool_calls] == ["a", "b"]
    assert [message.tool_results[0].text for message in request.messages[3:]] == ["sea", "map"]
    assert [tool.name for tool in request.tools] == ["look"]


def test_a_tool_of_a_namespace_is_called_with_its_namespace() -> None:
    look = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
    offered: Any = [{"type": "namespace", "name": "sea", "description": "At sea.", "tools": [look]}, look]
    with Talk([Calls(Call("sea__look"), Call("look")), Say("done")]) as talk:
        reply = talk.client.responses.create(model="m", input="hello", tools=offered)
        calls = [part.to_dict() for part in reply.output]
        results: Any = [{"type": "function_call_output", "call_id": call["call_id"], "output": ""} for call in calls]
        talk.client.responses.create(model="m", input=[*calls, *results], tools=offered)  # type: ignore[list-item]
        first, second = talk.server.requests
    assert [(call.get("namespace"), call["name"]) for call in calls] == [("sea", "look"), (None, "look")]
    assert [tool.name for tool in first.tools] == ["sea__look", "look"]
    assert [call.name for call in second.messages[0].tool_calls] == ["sea__look", "look"]


def test_embeddings_are_near_each_other_when_texts_share_words() -> None:
    with Talk([]) as talk:
        texts = ["the sea at night", "NIGHT the sea at", "a paper map", ""]
        found = talk.client.embeddings.create(model="e", input=texts, dimensions=32)
        plain = talk.client.embeddings.create(model="e", input=texts[0], dimensions=32, encoding_format="float")
    sea, same, other, empty = [row.embedding for row in found.data]
    assert sea == same
    assert plain.data[0].embedding == pytest.approx(sea)
    assert [sum(value * value for value in vector) for vector in (sea, other, empty)] == pytest.approx([1, 1, 1])
    assert sum(a * b for a, b in zip(sea, other, strict=True)) < 0.5
