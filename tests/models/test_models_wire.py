"""Replies over the wire, whole and as streams, become our own types."""

import anyio
import pytest

from reached_models import ASK, MODELS, ask, drain, load_packages, reach, serving
from ricordo.errors import (
    ReplyInvalid,
)
from ricordo.messages import JsonValue, Media, Message, Text, Thinking, ToolResult, ToolSpec, Usage, encode_message
from ricordo.models import Reply, ReplyFinished, TextDelta, ThinkingDelta, limit_replies
from ricordo.testing import (
    Call,
    Calls,
    Hold,
    Say,
)

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
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")

# On trio, the vendors' packages leave the end of their streams to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic):ResourceWarning")


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


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
    with serving([Hold(Say("One two three four."))]) as server:
        events = reach(server, name).stream(ASK)
        first = await anext(events)
        assert server.held_count == 1
        server.release()
        rest = await drain(events)
    assert isinstance(first, TextDelta)
    text = "".join(event.text for event in (first, *rest) if isinstance(event, TextDelta))
    assert text == "One two three four."
    last = rest[-1]
    assert isinstance(last, ReplyFinished)
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
    with serving([Say(text, usage=Usage(input=70, output=3))]) as server, pytest.raises(ReplyInvalid) as caught:
        await reach(server, MODELS[0]).complete(ASK, schema=FORM)
    assert caught.value.said == text
    assert isinstance(caught.value.reply, Reply)
    assert caught.value.reply.usage == Usage(input=70, output=3), "it was paid for"


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
@pytest.mark.parametrize("name", MODELS)
async def test_a_stream_that_is_left_early_lets_go_of_its_connection(name: str) -> None:
    with serving([Hold(Say("One two three.")), Say("Next.")]) as server:
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
    assert "127.0.0.1" not in encode_message(reply.message).decode()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_outlives_the_event_loop_it_was_used_in(name: str) -> None:
    with serving([Say("One."), Say("Two.")]) as server:
        model = reach(server, name)
        assert [anyio.run(model.complete, ASK).message.text for _ in range(2)] == ["One.", "Two."]


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_how_long_a_reply_may_get_reaches_the_provider_and_no_other_request(name: str) -> None:
    with serving([Say("Yes."), Say("No.")]) as server:
        model = reach(server, name)
        await limit_replies(model, 77).complete(ASK)
        await model.complete(ASK)
    told, plain = ({request.body.get(key) for key in _LIMITS} for request in server.requests)
    assert 77 in told
    assert 77 not in plain
