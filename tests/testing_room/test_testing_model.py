"""The scripted model answers as a real one would: replies, streams, and the errors of `ModelError`."""

import json
from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given

from message_strategies import any_text
from ricordo.errors import (
    ModelError,
    ModelNotFound,
    ModelOverflow,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ReplyInvalid,
)
from ricordo.messages import Message, Text, Thinking, ToolCall, ToolResult, ToolSpec, Usage
from ricordo.models import ChatModel, ReplyEvent, ReplyFinished, TextDelta, ThinkingDelta
from ricordo.testing import (
    Call,
    Calls,
    Empty,
    Fail,
    Garbage,
    HalfStream,
    Hang,
    Hold,
    Respond,
    Say,
    ScriptedModel,
    ScriptItem,
    ScriptUsedUp,
    overflow,
    rate_limit_error,
    server_error,
)

HELLO = [Message(role="user", parts=(Text(text="hello"),))]
BACKENDS = ["asyncio", "trio"]


async def _stream(model: ChatModel, messages: Sequence[Message] = HELLO) -> list[ReplyEvent]:
    return [event async for event in model.stream(messages)]


@pytest.mark.anyio
async def test_a_reply_has_its_parts_its_usage_and_its_end() -> None:
    usage = Usage(input=10, output=3, cache_read=5)
    model: ChatModel = ScriptedModel([Say("Good morning.", thinking="Early.", usage=usage)], name="m", window=8_192)
    reply = await model.complete(HELLO)
    assert (model.name, model.window, reply.model, reply.stop) == ("m", 8_192, "m", "end")
    assert (reply.message.role, reply.message.text, reply.usage) == ("assistant", "Good morning.", usage)
    assert [part.text for part in reply.message.parts if isinstance(part, Thinking)] == ["Early."]


@pytest.mark.anyio
async def test_calls_get_ids_that_no_other_call_has() -> None:
    model = ScriptedModel([Calls(Call("a", {"n": 1}), Call("a", id="own"), text="Now.")] * 2)
    first, second = await model.complete(HELLO), await model.complete(HELLO)
    assert [call.id for call in first.message.tool_calls] == ["call_1_1", "own"]
    assert [call.id for call in second.message.tool_calls] == ["call_2_1", "own"]
    assert (first.stop, first.message.text, json.loads(first.message.tool_calls[0].arguments)) == (
        "tools",
        "Now.",
        {"n": 1},
    )


@pytest.mark.anyio
async def test_every_request_is_recorded_with_all_it_had() -> None:
    model = ScriptedModel([Say("{}"), Fail(500)])
    tool = ToolSpec(name="look", description="Look.", parameters={"type": "object"})
    await model.complete(HELLO, tools=[tool], schema={"type": "object"})
    with pytest.raises(ModelUnavailable):
        await _stream(model)
    first, second = model.requests
    assert (first.number, first.messages, first.tools, first.schema) == (1, tuple(HELLO), (tool,), {"type": "object"})
    assert (second.number, first.streamed, second.streamed) == (2, False, True)


@pytest.mark.anyio
async def test_usage_that_is_not_given_grows_with_what_was_asked_and_said() -> None:
    model = ScriptedModel([Say("a"), Say("a " * 50)])
    short = await model.complete(HELLO)
    long = await model.complete(HELLO * 20)
    assert 0 < short.usage.input < long.usage.input
    assert 0 < short.usage.output < long.usage.output


@pytest.mark.anyio
@pytest.mark.parametrize("text", ['{"n": 1}', "[1]", "no json", '{"n": NaN}'])
async def test_what_a_schema_asks_for_is_parsed_or_invalid(text: str) -> None:
    model = ScriptedModel([Say(text)])
    if text == '{"n": 1}':
        assert (await model.complete(HELLO, schema={"type": "object"})).parsed == {"n": 1}
    else:
        with pytest.raises(ReplyInvalid):
            await model.complete(HELLO, schema={"type": "object"})


@pytest.mark.anyio
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (Fail(400), ModelRefused),
        (Fail(401), ModelRefused),
        (Fail(404), ModelNotFound),
        (Fail(408), ModelTimeout),
        (rate_limit_error(2.5), ModelRateLimited),
        (server_error(), ModelUnavailable),
        (overflow("anthropic", window=5, size=6), ModelOverflow),
        (overflow("openai-responses"), ModelOverflow),
        (Empty(), ReplyInvalid),
        (Say(""), ReplyInvalid),
        (Garbage(), ReplyInvalid),
        (HalfStream(1), ReplyInvalid),
    ],
)
async def test_a_failure_raises_what_the_contract_says(
    item: ScriptItem, kind: type[ModelError], streamed: bool
) -> None:
    model = ScriptedModel([item])
    with pytest.raises(ModelError) as caught:
        await (_stream(model) if streamed else model.complete(HELLO))
    assert type(caught.value) is kind


@pytest.mark.anyio
async def test_errors_carry_what_the_provider_said() -> None:
    model = ScriptedModel([overflow("anthropic", window=5, size=6), overflow("ollama"), rate_limit_error(2.5)])
    sizes = []
    for _ in range(2):
        with pytest.raises(ModelOverflow) as too_large:
            await model.complete(HELLO)
        sizes.append((too_large.value.window, too_large.value.size))
    with pytest.raises(ModelRateLimited) as limited:
        await model.complete(HELLO)
    assert (sizes, limited.value.retry_after) == ([(5, 6), (None, None)], 2.5)


@given(text=any_text(), thinking=any_text())
def test_the_pieces_of_a_stream_are_the_reply(text: str, thinking: str) -> None:
    async def check() -> None:
        *deltas, last = await _stream(ScriptedModel([Calls(Call("look"), text=text, thinking=thinking)]))
        assert isinstance(last, ReplyFinished)
        assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == text
        assert "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)) == thinking
        assert last.reply.message.text == text
        assert len(last.reply.message.tool_calls) == 1

    anyio.run(check)


@pytest.mark.anyio
@pytest.mark.parametrize("after", [0, 1, 2, 9])
async def test_a_half_stream_gives_its_pieces_and_then_raises(after: int) -> None:
    model = ScriptedModel([HalfStream(after, Say("one two three"))])
    seen: list[ReplyEvent] = []

    async def read() -> None:
        async for event in model.stream(HELLO):
            seen.append(event)  # noqa: PERF401

    with pytest.raises(ReplyInvalid):
        await read()
    assert [event.text for event in seen if isinstance(event, TextDelta)] == ["one ", "two ", "three"][:after]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", BACKENDS)
@pytest.mark.parametrize("item", [Say("one two"), Call("look")])
async def test_a_held_stream_stands_still_until_it_is_released(item: Say | Call, anyio_backend: str) -> None:
    del anyio_backend
    model = ScriptedModel([Hold(item)])
    seen: list[ReplyEvent] = []

    async def read() -> None:
        async for event in model.stream(HELLO):
            seen.append(event)  # noqa: PERF401

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await model.wait_for_held()
        await anyio.wait_all_tasks_blocked()
        held = list(seen)
        model.release()
    assert held == ([TextDelta(text="one ")] if isinstance(item, Say) else [])
    assert isinstance(seen[-1], ReplyFinished)
    assert model.held_count == 0


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", BACKENDS)
async def test_a_model_that_hangs_can_be_cancelled_and_times_out_when_released(anyio_backend: str) -> None:
    del anyio_backend
    model = ScriptedModel([Hang(), Hang(), Say("late")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(model.complete, HELLO)
        await model.wait_for_held()
        tasks.cancel_scope.cancel()
    assert model.held_count == 0

    async def release() -> None:
        await model.wait_for_held()
        model.release()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(release)
        with pytest.raises(ModelTimeout):
            await model.complete(HELLO)
    assert (await model.complete(HELLO)).message.text == "late"


@pytest.mark.anyio
async def test_a_function_stands_in_place_of_a_script() -> None:
    model = ScriptedModel(lambda request: Say(f"{request.number}: {request.messages[-1].text}"))
    assert [(await model.complete(HELLO)).message.text for _ in range(2)] == ["1: hello", "2: hello"]


@pytest.mark.anyio
async def test_an_item_can_be_computed_and_may_be_a_failure() -> None:
    model = ScriptedModel([Respond(lambda request: Fail(500, f"request {request.number}"))])
    with pytest.raises(ModelUnavailable, match="request 1"):
        await model.complete(HELLO)


@pytest.mark.anyio
async def test_a_script_that_is_used_up_names_the_request_and_is_no_error_of_a_model() -> None:
    model = ScriptedModel([Say("only")])
    await model.complete(HELLO)
    with pytest.raises(ScriptUsedUp, match=r"1 items.*request 2") as caught:
        await model.complete(HELLO)
    assert not isinstance(caught.value, ModelError)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([*HELLO, Message(role="tool", parts=(ToolResult(call_id="lost"),))], "lost"),
        ([*HELLO, Message(role="assistant", parts=(ToolCall(id="open", name="look"),)), *HELLO], "open"),
        ([*HELLO, Message(role="assistant", parts=(ToolCall(id="open", name="look"),))], "open"),
    ],
)
async def test_a_conversation_that_no_provider_takes_is_refused(messages: list[Message], named: str) -> None:
    model = ScriptedModel([Say("never")])
    with pytest.raises(ModelRefused, match=named):
        await model.complete(messages)
    assert len(model.requests) == 1
