"""Real packages of the providers against a server on this machine: what comes over the wire becomes our own types."""

import traceback
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import anyio
import pytest

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
from ricordo.messages import (
    JsonValue,
    Media,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    encode,
)
from ricordo.models import ChatModel, Finished, Reply, ReplyEvent, RetryConfig, TextDelta, ThinkingDelta
from ricordo.models.provider import load_model
from ricordo.testing import (
    Call,
    Calls,
    Empty,
    Fail,
    Garbage,
    HalfStream,
    Hang,
    Held,
    LoopbackServer,
    OverflowShape,
    Say,
    ScriptLike,
    overflow,
    overloaded,
    rate_limited,
    server_error,
)

MODELS = ("openai-chat:gpt-4o", "openai:gpt-4o", "anthropic:claude-sonnet-5")
KEY = "sk-test-" + "q" * 32
NOW = RetryConfig(first_delay=0.0, longest_delay=0.0)
ONCE = RetryConfig(attempts=1)
ASK = (Message(role="system", parts=(Text(text="Be short."),)), Message(role="user", parts=(Text(text="Hello?"),)))
WEATHER = ToolSpec(
    name="weather",
    description="Tell the weather.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
FORM: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
SHAPES: dict[OverflowShape, tuple[str, ...]] = {
    "openai-chat": ("openai-chat:gpt-4o",),
    "openai-responses": ("openai:gpt-4o",),
    "anthropic": ("anthropic:claude-sonnet-5",),
    "anthropic-bytes": ("anthropic:claude-sonnet-5",),
    "openrouter": ("openrouter:openai/gpt-4o",),
    "vllm": ("vllm:qwen", "openai-chat:local"),
    "llama.cpp": ("openai-chat:local",),
    "ollama": ("ollama:llama3",),
    "gemini": ("openai-chat:gemini",),
    "bedrock": ("openai-chat:proxy",),
    "xai": ("openai-chat:grok",),
    "kimi": ("openai-chat:kimi",),
    "lm-studio": ("openai-chat:local",),
}


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    for name in ("openai-chat:x", "openai:x", "anthropic:x", "openrouter:x/y", "ollama:x", "vllm:x"):
        load_model(name, base_url="http://127.0.0.1:9", api_key=KEY)


@contextmanager
def serving(script: ScriptLike) -> Iterator[LoopbackServer]:
    with LoopbackServer(script) as server:
        yield server
    assert server.problems == ()


def reach(
    server: LoopbackServer, name: str, *, retry: RetryConfig = ONCE, timeout: float = 20.0, window: int | None = None
) -> ChatModel:
    path = "" if name.startswith("anthropic:") else "/v1"
    return load_model(name, base_url=server.url + path, api_key=KEY, retry=retry, timeout=timeout, window=window)


async def drain(events: AsyncIterator[ReplyEvent], given: list[ReplyEvent] | None = None) -> list[ReplyEvent]:
    """Return the events; those that came before a failure are in `given`."""
    found = [] if given is None else given
    async for event in events:
        found.append(event)
    return found


async def ask(
    model: ChatModel,
    messages: Sequence[Message] = ASK,
    *,
    stream: bool = False,
    tools: Sequence[ToolSpec] = (),
    schema: Mapping[str, JsonValue] | None = None,
) -> Reply:
    """Return the reply, asked for as a whole or as a stream."""
    if not stream:
        return await model.complete(messages, tools=tools, schema=schema)
    last = (await drain(model.stream(messages, tools=tools, schema=schema)))[-1]
    assert isinstance(last, Finished)
    return last.reply


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_a_reply_comes_with_its_text_usage_price_and_stop(name: str) -> None:
    usage = Usage(input=1_000, output=10, cache_read=400)
    with serving([Say("Hi there.", usage=usage)]) as server:
        reply = await reach(server, name).complete(ASK)
    assert reply.message.text == "Hi there."
    assert (reply.usage.input, reply.usage.output, reply.usage.cache_read) == (1_000, 10, 400)
    assert reply.message.usage == reply.usage
    assert reply.stop == "end"
    assert reply.model
    assert reply.cost is not None
    assert reply.cost > 0
    assert [message.role for message in server.requests[0].messages] == ["system", "user"]
    assert server.requests[0].messages[0].text == "Be short."


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_tools_thinking_and_pictures_go_out_and_calls_come_back(name: str) -> None:
    picture = Media(media_type="image/png", uri="data:image/png;base64,iVBORw0KGgo=")
    asked = (*ASK[:1], Message(role="user", parts=(Text(text="Weather?"), picture)))
    with serving([Calls(Call("weather", {"city": "Rome"}), thinking="Look it up."), Say("Sunny.")]) as server:
        model = reach(server, name)
        reply = await model.complete(asked, tools=[WEATHER])
        call = reply.message.tool_calls[0]
        result = Message(role="tool", parts=(ToolResult(call_id=call.id, parts=(Text(text="sunny"),)),))
        await model.complete((*asked, reply.message, result), tools=[WEATHER])
    assert reply.stop == "tools"
    assert (call.name, call.arguments.replace(" ", "")) == ("weather", '{"city":"Rome"}')
    first, second = server.requests
    assert [(tool.name, tool.description) for tool in first.tools] == [("weather", "Tell the weather.")]
    assert any(isinstance(part, Media) for message in first.messages for part in message.parts)
    assert [sent.call_id for message in second.messages for sent in message.tool_results] == [call.id]
    assert "sunny" in "".join(sent.text for message in second.messages for sent in message.tool_results)
    if name.startswith("anthropic:"):
        before = [part for part in reply.message.parts if isinstance(part, Thinking)]
        after = [part for message in second.messages for part in message.parts if isinstance(part, Thinking)]
        assert before == after != []


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_the_first_piece_of_a_stream_comes_before_the_reply_is_whole(name: str) -> None:
    with serving([Held(Say("One two three four."))]) as server:
        events = reach(server, name).stream(ASK)
        first = await anext(events)
        assert server.waiting == 1
        server.release()
        rest = await drain(events)
    assert isinstance(first, TextDelta)
    text = "".join(event.text for event in (first, *rest) if isinstance(event, TextDelta))
    assert text == "One two three four."
    last = rest[-1]
    assert isinstance(last, Finished)
    assert last.reply.message.text == text
    assert last.reply.usage.output > 0


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-5", "openai:gpt-4o"])
async def test_thoughts_are_streamed_apart_from_the_text(name: str) -> None:
    with serving([Say("Yes.", thinking="Let me think.")]) as server:
        events = await drain(reach(server, name).stream(ASK))
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "Let me think."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Yes."


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_what_may_pass_is_asked_again_by_us_alone(name: str, stream: bool) -> None:
    with serving([rate_limited(0.0), server_error(), Say("At last.")]) as server:
        reply = await ask(reach(server, name, retry=NOW), stream=stream)
    assert reply.message.text == "At last."
    assert len(server.requests) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("fail", "error"),
    [
        (rate_limited(7.0), ModelRateLimited),
        (server_error(), ModelUnavailable),
        (overloaded(), ModelUnavailable),
        (Fail(401, f"Incorrect API key provided: {KEY}."), ModelRefused),
        (Fail(403, f"The key {KEY} may not use this."), ModelRefused),
        (Fail(404, "The model `x` does not exist.", code="model_not_found"), ModelNotFound),
        (Fail(400, "max_tokens is too large."), ModelRefused),
        (Garbage(), ReplyInvalid),
        (Empty(), ReplyInvalid),
    ],
    ids=["429", "500", "529", "401", "403", "404", "400", "garbage", "empty"],
)
async def test_a_failure_is_one_of_our_errors_and_shows_no_key(
    name: str, fail: Fail | Garbage | Empty, error: type[ModelError]
) -> None:
    with serving([fail]) as server, pytest.raises(error) as raised:
        await reach(server, name).complete(ASK)
    shown = "".join(map(str, (raised.value, raised.value.__cause__, raised.value.__cause__ and repr(raised.value))))
    assert KEY not in shown
    assert "Bearer" not in shown
    if isinstance(raised.value, ModelRateLimited):
        assert raised.value.retry_after == 7.0
        assert raised.value.__cause__ is not None


@pytest.mark.anyio
@pytest.mark.parametrize(("shape", "name"), [(shape, name) for shape, names in SHAPES.items() for name in names])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_every_shape_of_overflow_is_known_and_never_asked_again(
    shape: OverflowShape, name: str, stream: bool
) -> None:
    fail = overflow(shape, window=8_192, size=9_000)
    with serving([fail]) as server:
        model = reach(server, name, retry=NOW)
        with pytest.raises(ModelOverflow) as raised:
            await ask(model, stream=stream)
    assert (raised.value.window, raised.value.size) == (fail.window, fail.size)
    assert raised.value.__cause__ is not None
    assert len(server.requests) == 1
    if fail.window is not None:
        assert model.window == 8_192


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("shape", "name"),
    [("openai-responses", "openai:gpt-4o"), ("openai-chat", "openai-chat:gpt-4o"), ("anthropic", MODELS[2])],
)
async def test_an_overflow_told_in_an_open_stream_is_an_overflow(shape: OverflowShape, name: str) -> None:
    fail = overflow(shape, in_stream=True)
    with serving([fail]) as server, pytest.raises(ModelOverflow) as raised:
        await drain(reach(server, name).stream(ASK))
    assert (raised.value.window, raised.value.size) == (fail.window, fail.size)


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_an_error_in_an_open_stream_that_gave_nothing_is_asked_again(name: str) -> None:
    with serving([overloaded(in_stream=True), Say("Now.")]) as server:
        events = await drain(reach(server, name, retry=NOW).stream(ASK))
    assert isinstance(events[-1], Finished)


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("clean", [False, True], ids=["cut", "clean"])
async def test_half_a_stream_is_an_error_and_is_not_started_again(name: str, clean: bool) -> None:
    given: list[ReplyEvent] = []
    with serving([HalfStream(2, clean=clean)]) as server, pytest.raises((ReplyInvalid, ModelUnavailable)):
        await drain(reach(server, name, retry=NOW).stream(ASK), given)
    assert given
    assert not any(isinstance(event, Finished) for event in given)
    assert len(server.requests) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_half_a_body_is_an_error(name: str) -> None:
    with serving([HalfStream(0)]) as server, pytest.raises((ReplyInvalid, ModelUnavailable)):
        await reach(server, name).complete(ASK)


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_hang_ends_in_time(name: str, stream: bool) -> None:
    with serving([Hang()]) as server, pytest.raises(ModelTimeout):
        await ask(reach(server, name, timeout=0.3), stream=stream)


@pytest.mark.anyio
async def test_a_stream_that_stops_half_way_ends_in_time() -> None:
    given: list[ReplyEvent] = []
    with serving([Held(Say("One two three."))]) as server, pytest.raises(ModelTimeout):
        await drain(reach(server, MODELS[0], timeout=1.0, retry=NOW).stream(ASK), given)
    assert len(server.requests) == 1
    assert given


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_an_empty_reply_is_asked_for_once_more(name: str) -> None:
    with serving([Empty(), Say("Here.")]) as server:
        assert (await reach(server, name, retry=NOW).complete(ASK)).message.text == "Here."
    with serving([Empty(), Empty()]) as server, pytest.raises(ReplyInvalid):
        await reach(server, name, retry=replace(NOW, attempts=9)).complete(ASK)


@pytest.mark.anyio
@pytest.mark.parametrize("name", [*MODELS, "anthropic:claude-unheard-of"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_answer_in_a_form_is_parsed_and_leaves_no_call_behind(name: str, stream: bool) -> None:
    is_tool = "unheard" in name
    reply_of_server = Call("give_answer", {"city": "Rome"}) if is_tool else Say('{"city": "Rome"}')
    with serving([reply_of_server]) as server:
        reply = await ask(reach(server, name), stream=stream, schema=FORM)
    assert reply.parsed == {"city": "Rome"}
    assert reply.message.tool_calls == ()
    assert reply.stop == "end"
    sent = server.requests[0]
    assert sent.schema is not None or [tool.name for tool in sent.tools] == ["give_answer"]
    assert bool(sent.tools) is is_tool


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["Rome", "[]", '{"town": "Rome"}'])
async def test_an_answer_in_another_form_is_invalid(text: str) -> None:
    with serving([Say(text)]) as server, pytest.raises(ReplyInvalid):
        await reach(server, MODELS[0]).complete(ASK, schema=FORM)


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_broken_arguments_of_a_call_are_handed_on_as_they_are(name: str) -> None:
    broken = '{"city": "Ro'
    with serving([Call("weather", broken)]) as server:
        # Only its stream can carry broken arguments: Anthropic's whole reply holds them as a value.
        reply = await ask(reach(server, name), stream=name.startswith("anthropic:"), tools=[WEATHER])
    assert [(call.name, call.arguments) for call in reply.message.tool_calls] == [("weather", broken)]


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_a_reply_cut_by_its_limit_says_so(name: str) -> None:
    with serving([Say("This is cut", stop="length")]) as server:
        reply = await reach(server, name).complete(ASK)
    assert (reply.stop, reply.message.text) == ("length", "This is cut")


@pytest.mark.anyio
async def test_a_reply_that_the_window_cut_off_says_so() -> None:
    with serving([Say("This is cut", stop="window")]) as server:
        reply = await reach(server, MODELS[2]).complete(ASK)
    assert reply.stop == "window"


@pytest.mark.anyio
async def test_a_prompt_that_ollama_shortened_silently_is_an_overflow() -> None:
    long = Message(role="user", parts=(Text(text="many words of a long talk " * 2_000),))
    with serving([Say("Hm?", usage=Usage(input=4_096, output=2))]) as server:
        model = reach(server, "ollama:llama3")
        with pytest.raises(ModelOverflow) as raised:
            await model.complete((long,))
    assert raised.value.window == 4_096
    assert raised.value.size is not None
    assert raised.value.size > 8_192
    assert model.window == 4_096


@pytest.mark.anyio
async def test_a_window_that_was_given_stands_until_the_provider_tells_a_smaller_one() -> None:
    with serving([overflow("vllm", window=8_192), overflow("vllm", window=40_000)]) as server:
        model = reach(server, "openai-chat:local", window=32_000)
        assert model.window == 32_000
        with pytest.raises(ModelOverflow):
            await model.complete(ASK)
        assert model.window == 8_192
        with pytest.raises(ModelOverflow):
            await model.complete(ASK)
        assert model.window == 32_000


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "variable"), [(MODELS[0], "OPENAI_API_KEY"), (MODELS[2], "ANTHROPIC_API_KEY")])
async def test_a_key_of_the_environment_is_used_and_shown_nowhere(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, KEY)
    with serving([Fail(400, f"Bad request with {KEY}.")]) as server:
        model = load_model(name, base_url=server.url + ("" if "anthropic" in name else "/v1"), retry=ONCE)
        with pytest.raises(ModelRefused) as raised:
            await model.complete(ASK)
    assert KEY not in "".join(traceback.format_exception(raised.value))
    assert "***" in server.requests[0].headers.values()


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_a_stream_that_is_left_early_lets_go_of_its_connection(name: str) -> None:
    with serving([Held(Say("One two three.")), Say("Next.")]) as server:
        model = reach(server, name)
        async for _event in (events := model.stream(ASK)):
            break
        await events.aclose()  # type: ignore[attr-defined]
        server.release()
        assert (await model.complete(ASK)).message.text == "Next."


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_a_reply_keeps_no_address(name: str) -> None:
    with serving([Say("Yes.")]) as server:
        reply = await reach(server, name).complete(ASK)
    assert "127.0.0.1" not in encode(reply.message).decode()


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with LoopbackServer() as server:
        url = server.url
    with pytest.raises(ModelUnavailable):
        await load_model("openai-chat:x", base_url=url + "/v1", retry=ONCE).complete(ASK)


@pytest.mark.anyio
async def test_a_call_without_its_result_is_sent_as_it_is_and_the_refusal_told() -> None:
    torn = (*ASK, Message(role="assistant", parts=(ToolCall(id="a", name="weather", arguments="{}"),)))
    with LoopbackServer([]) as server, pytest.raises(ModelRefused):
        await reach(server, MODELS[0]).complete(torn)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_outlives_the_event_loop_it_was_used_in(name: str) -> None:
    with serving([Say("One."), Say("Two.")]) as server:
        model = reach(server, name)
        assert [anyio.run(model.complete, ASK).message.text for _ in range(2)] == ["One.", "Two."]
