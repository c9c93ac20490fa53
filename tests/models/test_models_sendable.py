"""What was recorded is sent as providers take it: against a server that refuses whatever they refuse."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import anyio
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from conversation_strategies import conversations
from message_strategies import messages as any_messages
from reached_models import ASK, MODELS, ask, load_packages, reach
from ricordo.errors import InvalidMessage, ModelOverflow
from ricordo.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult, ToolSpec, Unknown
from ricordo.models import ChatModel, limit_replies
from ricordo.models.request_messages import ANTHROPIC, CHAT_COMPLETIONS, RESPONSES, prepare_messages
from ricordo.testing import Call, Calls, LoopbackServer, RecordedRequest, Say

pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic):ResourceWarning")

TOOL = ToolSpec(name="look", description="Look.", parameters={"type": "object", "properties": {}})
RULES = (CHAT_COMPLETIONS, RESPONSES, ANTHROPIC)


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


@contextmanager
def strict(window: int | None = None) -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda _: Say("Yes."), strict=True, window=window) as server:
        yield server
    assert server.problems == ()


def user(*parts: Part | str) -> Message:
    return _message("user", parts)


def assistant(*parts: Part | str) -> Message:
    return _message("assistant", parts)


def results(*parts: Part) -> Message:
    return _message("tool", parts)


def _message(role: str, parts: Sequence[Part | str]) -> Message:
    said = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Message(role=role, parts=said)  # type: ignore[arg-type]


def call(name: str = "look", call_id: str = "c1", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def result(*parts: Text | Media, call_id: str = "c1", is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=call_id, parts=parts, is_error=is_error)


PICTURE = Media(media_type="image/png", uri="data:image/png;base64,iVBORw0KGgo=")
UNREACHABLE = Media(media_type="image/png", uri="/home/me/chart.png", name="chart.png")
HALF, FOREIGN, LONG = "\ud83d", "functions.look:0", "c" * 90
FOUND = results(result(Text(text="found")))
THEIRS = Thinking(text="Hm.", signature="theirs")


def system(text: str) -> Message:
    return _message("system", (text,))


def answered(asked: ToolCall, text: str = "found") -> tuple[Message, ...]:
    return (*ASK, assistant(asked), results(result(Text(text=text), call_id=asked.id)))


ODD = {
    "a blank result": answered(call(), " \n"),
    "a result without a part": (*ASK, assistant(call()), results(result())),
    "an empty error": (*ASK, assistant(call()), results(result(Text(text=""), is_error=True))),
    "blank text beside calls": (*ASK, assistant("\n\n", call()), FOUND),
    "a blank question between others": (*ASK, user("  "), user("Well?")),
    "a blank system message": (system(" "), *ASK),
    "a picture alone": (*ASK, assistant("Yes."), user(PICTURE)),
    "a picture that nobody can fetch, alone": (*ASK, assistant("Yes."), user(UNREACHABLE)),
    "broken base64": (*ASK, user(Media(media_type="image/png", uri="data:image/png;base64,%%%"))),
    "a film": (*ASK, user(Media(media_type="video/mp4", uri="data:video/mp4;base64,AAAA"))),
    "a result that is a picture": (*ASK, assistant(call()), results(result(PICTURE))),
    "half of a surrogate pair": (*ASK, user(HALF), *answered(call(arguments='{"a": "\\ud83d"}'), HALF)[2:]),
    "a name that was made up": answered(call("look<|channel|>json")),
    "a name that is too long": answered(call("look" * 40)),
    "no name": answered(call("")),
    "an id of another provider": answered(call(call_id=FOREIGN)),
    "an id that is too long": answered(call(call_id=LONG)),
    "no id": answered(call(call_id="")),
    "one id in two turns": (*answered(call(), "first"), user("Again."), *answered(call(), "second")[2:]),
    "one id twice in a turn": (
        *ASK,
        assistant(call(), call()),
        results(result(Text(text="a")), result(Text(text="b"))),
    ),
    "a call without a result": (*ASK, assistant("I look.", call())),
    "a result without a call": (*ASK, FOUND, user("And?")),
    "words between a call and its result": (*ASK, assistant(call()), user("Wait."), FOUND),
    "arguments that are no object": answered(call(arguments="[1, 2")),
    "an assistant that speaks first": (assistant("Hello, I am here."), user("Who?")),
    "an assistant that speaks last": (*ASK, assistant("Yes.")),
    "a system message in the middle": (*ASK, assistant("Yes."), system("Speak French."), user("And?")),
    "a system message between call and result": (*ASK, assistant(call()), system("Be kind."), FOUND),
    "thoughts of another provider": (*ASK, assistant(THEIRS, "Yes."), user("And?")),
    "thoughts alone": (*ASK, assistant(THEIRS), user("And?")),
    "a part that nobody knows": (*ASK, user(Unknown(kind="other:thing", raw='{"a":1}')), user("And?")),
    "an empty assistant": (*ASK, assistant(), user("And?")),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_no_odd_message_makes_a_provider_refuse_the_conversation(name: str) -> None:
    with strict() as server:
        model = reach(server, name)
        for what, window in ODD.items():
            reply = await ask(model, window, tools=[TOOL])
            assert reply.message.text == "Yes.", what
        assert server.refusals == ()


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_what_is_sent_instead_says_as_much_as_can_be_said(name: str) -> None:
    with strict() as server:
        model = reach(server, name)
        for what in ("one id in two turns", "one id twice in a turn", "an id of another provider"):
            await ask(model, ODD[what], tools=[TOOL])
        await ask(model, ODD["a system message in the middle"])
        await ask(model, ODD["a picture that nobody can fetch, alone"])
        await ask(model, ODD["thoughts of another provider"])
    twice, together, foreign, system, picture, thoughts = server.requests
    for request in (twice, together, foreign):
        calls = [part.id for message in request.messages for part in message.tool_calls]
        answers = [part.call_id for message in request.messages for part in message.tool_results]
        assert calls == answers
        assert len(set(calls)) == len(calls)
    assert _texts(twice)[-1] == "second"
    assert _texts(together)[-2:] == ["a", "b"]
    assert [message.role for message in system.messages].count("system") == 1
    assert system.messages[0].text == "Be short.\n\nSpeak French."
    assert "chart.png" in picture.messages[-1].text
    assert "Hm." not in "".join(_texts(thoughts))


def _texts(request: RecordedRequest) -> list[str]:
    return [text for each in request.messages for text in (each.text, *(one.text for one in each.tool_results)) if text]


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_half_of_a_surrogate_pair_in_a_reply_is_handed_on(name: str, stream: bool) -> None:
    with LoopbackServer([Calls(Call("look", '{"a":"\\ud83d"}'), text="so \ud83d")]) as server:
        reply = await ask(reach(server, name), stream=stream, tools=[TOOL])
    assert reply.message.text.startswith("so ")
    assert [each.name for each in reply.message.tool_calls] == ["look"]


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
async def test_a_conversation_in_which_nobody_speaks_is_refused_before_a_byte_is_sent(name: str) -> None:
    with strict() as server, pytest.raises(InvalidMessage, match="nothing to answer"):
        await ask(reach(server, name), (ASK[0], user(" ")))
    assert server.requests == ()


@pytest.mark.anyio
@pytest.mark.req("DF-B19", "AS-BUG-07")
@pytest.mark.parametrize("name", MODELS[:2])
async def test_more_messages_than_a_provider_takes_are_an_overflow_before_a_byte_is_sent(name: str) -> None:
    window = [user("Hello?"), assistant("Yes.")] * 1_100
    with strict() as server:
        with pytest.raises(ModelOverflow, match="2,048") as raised:
            await ask(reach(server, name), window)
        assert server.requests == ()
        await ask(reach(server, name), window[-2_048:])
    assert raised.value.messages == 2_048
    assert server.refusals == ()


@pytest.mark.req("GO-G26-cache")
@given(window=st.one_of(st.lists(any_messages(), max_size=8), conversations()))
def test_whatever_is_recorded_is_sent_with_one_beginning_as_it_goes_on(window: Sequence[Message]) -> None:
    for rules in RULES:
        try:
            before = prepare_messages([*window, user("One.")], rules, provider="x")
        except InvalidMessage:
            continue
        after = prepare_messages([*window, user("One."), assistant("Yes."), user("Two.")], rules, provider="x")
        assert after[: len(before)] == before
        assert prepare_messages(before, rules, provider="x") == before


@pytest.fixture(scope="module")
def at_strict() -> Iterator[tuple[LoopbackServer, list[ChatModel]]]:
    with strict() as server:
        yield server, [reach(server, name) for name in MODELS]


@pytest.mark.may_block("the examples are sent from a test that does not await")
@hypothesis_settings(max_examples=20)
@given(window=st.one_of(st.lists(any_messages(), max_size=8), conversations()))
def test_whatever_is_recorded_is_taken_by_every_provider_or_refused_with_a_sentence(
    at_strict: tuple[LoopbackServer, list[ChatModel]], window: Sequence[Message]
) -> None:
    server, models = at_strict

    async def sent() -> None:
        for model in models:
            with suppress(InvalidMessage):
                await model.complete(window, tools=[TOOL])
        assert server.refusals == ()

    anyio.run(sent)


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("size", [8_192, 16_384])
async def test_a_reply_is_never_asked_to_be_longer_than_the_window_leaves_room_for(
    name: str, stream: bool, size: int
) -> None:
    with strict(window=size) as server:
        for model in (reach(server, name, window=size), limit_replies(reach(server, name, window=size), 8_000)):
            await ask(model, (*ASK, user("word " * 2_000)), stream=stream)
        assert server.refusals == ()


@pytest.mark.anyio
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_reply_that_a_refusal_tells_to_be_too_long_is_asked_for_again_shorter(name: str, stream: bool) -> None:
    with strict(window=8_192) as server:
        model = limit_replies(reach(server, name), 8_000)
        reply = await ask(model, (*ASK, user("word " * 2_000)), stream=stream)
    assert reply.message.text == "Yes."
    assert len(server.refusals) == 1
    assert len(server.requests) == 2
