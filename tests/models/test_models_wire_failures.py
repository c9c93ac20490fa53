"""Failures over the wire: each becomes the error that says what it means, and is asked again only where that helps."""

import traceback
from dataclasses import replace

import pytest

from reached_models import ASK, KEY, MODELS, NOW, ONCE, ask, drain, load_packages, reach, serving
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
from ricordo.messages import Message, Text, ToolCall, Usage
from ricordo.models import ReplyEvent, ReplyFinished, load_model
from ricordo.testing import (
    Empty,
    Fail,
    Garbage,
    HalfStream,
    Hang,
    Hold,
    LoopbackServer,
    OverflowShape,
    Say,
    overflow,
    overloaded_error,
    rate_limit_error,
    server_error,
)

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
ODD_BODIES = (
    b"",
    b"[]",
    b"null",
    b'"x"',
    b"{}",
    b"\xff\xfe",
    b'{"choices": [{"message": null}]}',
    b'{"output": [{}]}',
    b'{"content": [{}], "usage": null}',
)


# On trio, the vendors' packages leave the end of their streams to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic):ResourceWarning")


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_what_may_pass_is_asked_again_by_us_alone(name: str, stream: bool) -> None:
    with serving([rate_limit_error(0.0), server_error(), Say("At last.")]) as server:
        reply = await ask(reach(server, name, retry=NOW), stream=stream)
    assert reply.message.text == "At last."
    assert len(server.requests) == 3


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("fail", "error"),
    [
        (rate_limit_error(7.0), ModelRateLimited),
        (server_error(), ModelUnavailable),
        (overloaded_error(), ModelUnavailable),
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


@pytest.mark.req("AS-OVER-04", "AS-OVER-05", "AS-BUG-07")
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


@pytest.mark.req("AS-BUG-08", "AS-OVER-04")
@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_an_overflow_by_room_for_the_reply_alone_is_asked_again_with_less_room(stream: bool) -> None:
    text = "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, decrease them"
    refusal = Fail(400, text, overflow=True, window=200_000, size=199_000)
    with serving([refusal, Say("Now.")]) as server:
        reply = await ask(reach(server, "anthropic:claude-sonnet-5"), stream=stream)
    assert reply.message.text == "Now."
    first, again = (int(str(request.body["max_tokens"])) for request in server.requests)
    assert first > 1_000 > again > 0
    with serving([refusal, refusal, Say("Never.")]) as server, pytest.raises(ModelOverflow):
        await ask(reach(server, "anthropic:claude-sonnet-5"), stream=stream)


@pytest.mark.req("AS-OVER-04", "AS-BUG-07", "AS-BUG-08")
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
    with serving([overloaded_error(in_stream=True), Say("Now.")]) as server:
        events = await drain(reach(server, name, retry=NOW).stream(ASK))
    assert isinstance(events[-1], ReplyFinished)


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("clean", [False, True], ids=["cut", "clean"])
async def test_half_a_stream_is_an_error_and_is_not_started_again(name: str, clean: bool) -> None:
    given: list[ReplyEvent] = []
    with serving([HalfStream(2, clean=clean)]) as server, pytest.raises((ReplyInvalid, ModelUnavailable)):
        await drain(reach(server, name, retry=NOW).stream(ASK), given)
    assert given
    assert not any(isinstance(event, ReplyFinished) for event in given)
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
    with serving([Hold(Say("One two three."))]) as server, pytest.raises(ModelTimeout):
        await drain(reach(server, MODELS[0], timeout=2.0, retry=NOW).stream(ASK), given)
    assert len(server.requests) == 1
    assert given


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_an_empty_reply_is_asked_for_once_more(name: str) -> None:
    with serving([Empty(), Say("Here.")]) as server:
        assert (await reach(server, name, retry=NOW).complete(ASK)).message.text == "Here."
    with serving([Empty(), Empty()]) as server, pytest.raises(ReplyInvalid):
        await reach(server, name, retry=replace(NOW, attempts=9)).complete(ASK)


@pytest.mark.req("AS-BUG-07")
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


@pytest.mark.req("AS-BUG-02")
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
async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with LoopbackServer() as server:
        url = server.url
    with pytest.raises(ModelUnavailable):
        await load_model("openai-chat:x", base_url=url + "/v1", retry=ONCE).complete(ASK)


@pytest.mark.anyio
async def test_a_call_without_its_result_is_sent_with_one_that_says_so() -> None:
    torn = (*ASK, Message(role="assistant", parts=(ToolCall(id="a", name="weather", arguments="{}"),)))
    with serving([Say("Again?")]) as server:
        await reach(server, MODELS[0]).complete(torn)
    assert "no result" in server.requests[0].messages[-1].tool_results[0].text


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("body", ODD_BODIES)
async def test_an_answer_of_another_shape_is_an_error_of_ours(name: str, stream: bool, body: bytes) -> None:
    with serving([Garbage(body)]) as server, pytest.raises((ReplyInvalid, ModelUnavailable)):
        await ask(reach(server, name), stream=stream)
