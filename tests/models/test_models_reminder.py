"""A request that ends with a reminder is valid everywhere, and all before the reminder is what providers keep."""

import json
from collections.abc import Sequence
from itertools import count, pairwise

import pytest

from dialect_validity import anthropic_faults, openai_faults
from fake_models import FunctionTool
from reached_models import ASK, MODELS, ask, load_packages, reach, serving
from ricordo.agent import AgentLoop, ModelRequest, ToolContext, ToolOutput, Turn, build_reminder_message
from ricordo.agent.reminder import ComposedReminder, ReminderMiddleware
from ricordo.messages import JsonValue, Media, Message, Text, Thinking, ToolCall, ToolResult, ToolSpec
from ricordo.models.request_settings import cache_settings, with_breakpoint
from ricordo.scope import Scope
from ricordo.testing import Call, Calls, RecordedRequest, Say, ScriptItem

WEATHER = ToolSpec(name="weather", description="Tell the weather.", parameters={"type": "object", "properties": {}})
CALLED = Message(role="assistant", parts=(ToolCall(id="c1", name="weather"), ToolCall(id="c2", name="weather")))
ANSWERED = Message(
    role="tool",
    parts=tuple(ToolResult(call_id=each, name="weather", parts=(Text(text="sunny"),)) for each in ("c1", "c2")),
)
SAID = Message(role="assistant", parts=(Text(text="Sunny."),))
OWN: JsonValue = {"parts": {"1": {"of": "thinking", "fields": {"provider_name": "anthropic"}}}}
THOUGHT = Message(
    role="assistant",
    parts=(Text(text="Sunny."), Thinking(text="Is it?", signature="s")),
    metadata={"pydantic-ai": OWN},
)
REMINDER = build_reminder_message("You are planning.")
WINDOWS = {
    "a user": ASK,
    "two users": (*ASK, Message(role="user", parts=(Text(text="Well?"),))),
    "results": (*ASK, CALLED, ANSWERED),
    "an assistant": (*ASK, CALLED, ANSWERED, SAID),
    "thoughts": (*ASK, THOUGHT),
}

pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(openai|anthropic):ResourceWarning")


@pytest.fixture(autouse=True, scope="module")
def packages() -> None:
    """Load the packages of the providers outside of the event loop, as a program does."""
    load_packages()


def pieces(request: RecordedRequest) -> list[tuple[str, bool]]:
    """Return a request in the order in which a provider reads it, piece by piece, each with whether it is marked."""
    body = request.body
    found: list[JsonValue] = [*_list(body.get("tools")), *_list(body.get("system")), *_list(body.get("input"))]
    for message in _list(body.get("messages")):
        assert isinstance(message, dict)
        content = message["content"]
        blocks = content if isinstance(content, list) else [content]
        found += [{**message, "content": block} for block in blocks]
    return [_unmarked(each) for each in found]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _unmarked(piece: JsonValue) -> tuple[str, bool]:
    assert isinstance(piece, dict)
    inside = piece.get("content")
    block = inside if isinstance(inside, dict) else piece
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    return json.dumps({**piece, "content": bare} if block is inside else bare), len(bare) < len(block)


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", MODELS)
async def test_a_reminder_is_the_end_of_a_valid_request_and_changes_nothing_before_it(name: str, stream: bool) -> None:
    with serving([Say("Yes.")] * 2 * len(WINDOWS)) as server:
        model = reach(server, name)
        for window in WINDOWS.values():
            await ask(model, window, stream=stream, tools=[WEATHER])
            await ask(model, (*window, REMINDER), stream=stream, tools=[WEATHER])
    sent = server.requests
    for after_what, bare, reminded in zip(WINDOWS, sent[::2], sent[1::2], strict=True):
        # without a reminder, who is asked to go on stands where the assistant spoke last
        before, after = [each for each in pieces(bare) if '"Go on."' not in each[0]], pieces(reminded)
        assert [text for text, _ in after[:-1]] == [text for text, _ in before], after_what
        assert json.dumps(REMINDER.text) in after[-1][0]
        faults = anthropic_faults if name.startswith("anthropic:") else openai_faults
        assert not faults(reminded.messages), after_what
        marks = [at for at, (_, is_marked) in enumerate(after) if is_marked]
        newest = max((at for at, (text, _) in enumerate(after[:-1]) if '"role": "user"' in text), default=0)
        expected = [0, 1, newest] if name.startswith("anthropic:") else []
        assert marks == expected, "the tools, the system prompt, and what was said or found last"


@pytest.mark.req("AS-CURATED-03")
@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", MODELS)
async def test_all_before_a_changing_reminder_begins_the_next_request(name: str, stream: bool) -> None:
    number = count(1)

    async def compose(request: ModelRequest) -> ComposedReminder:
        del request
        return build_reminder_message(f"Round {next(number)}."), ()

    async def look(arguments: object, context: ToolContext) -> ToolOutput:
        del arguments, context
        return "seen"

    async def listener(event: object) -> None:
        del event

    script: list[ScriptItem] = [
        Say("Hello."),
        Calls(Call("look", {}), Call("look", {"line": 1})),
        Call("look", {}),
        Say("Seen."),
        Say("Bye."),
    ]
    with serving(script) as server:
        harness = AgentLoop(
            reach(server, name),
            tools=[FunctionTool("look", look)],
            instructions="Be short.",
            steps=[ReminderMiddleware(compose)],
        )
        window: tuple[Message, ...] = ()
        for text in ("Hello.", "Look.", "Bye."):
            said = (Message(role="user", parts=(Text(text=text),)),)
            turn = Turn(
                scope=Scope(user="me"),
                agent="a",
                session="s",
                messages=said,
                window=window,
                listener=listener if stream else None,
            )
            window = (await harness.run(turn)).window
    sent = [pieces(request) for request in server.requests]
    assert len(sent) == len(script)
    for at, request in enumerate(sent):
        assert f"Round {at + 1}." in request[-1][0]
        assert not any("Round " in text for text, _ in request[:-1])
    for earlier, later in pairwise(sent):
        kept = _kept(earlier, is_marked=name.startswith("anthropic:"))
        assert [text for text, _ in later[: len(kept)]] == kept
        assert len(earlier) - 1 == len(kept), "all but the reminder is kept"
        assert len(_kept(later, is_marked=name.startswith("anthropic:"))) > len(kept)


def _kept(request: Sequence[tuple[str, bool]], *, is_marked: bool) -> list[str]:
    """Return what a provider keeps of a request: up to the last mark, else all that does not change."""
    end = max(at for at, (_, mark) in enumerate(request) if mark) + 1 if is_marked else len(request) - 1
    return [text for text, _ in request[:end]]


@pytest.mark.anyio
async def test_a_single_question_with_a_reminder_asks_anthropic_to_keep_no_message() -> None:
    with serving([Say("Yes.")]) as server:
        await reach(server, MODELS[2]).complete((*ASK, REMINDER))
    assert [is_marked for _, is_marked in pieces(server.requests[0])] == [True, False, False]


@pytest.mark.parametrize("caching", ["none", "key"])
def test_others_get_no_breakpoint(caching: str) -> None:
    messages = (*WINDOWS["results"], REMINDER)
    assert with_breakpoint(caching, messages, [WEATHER]) is messages  # type: ignore[arg-type]


def test_without_a_reminder_the_package_sets_the_breakpoint_itself_and_never_twice() -> None:
    for window in WINDOWS.values():
        assert with_breakpoint("breakpoints", window, [WEATHER]) is window
        assert cache_settings("breakpoints", "m", window, [WEATHER]).get("anthropic_cache_messages") is True
        reminded = (*window, REMINDER)
        assert len(with_breakpoint("breakpoints", reminded, [WEATHER])) == len(reminded) + 1
        assert cache_settings("breakpoints", "m", reminded, [WEATHER]).get("anthropic_cache_messages") is False


@pytest.mark.parametrize(
    "parts", [(), (Text(text=" \n"),), (Media(media_type="video/mp4", uri="file:///x"),)], ids=["no", "blank", "unsent"]
)
def test_a_breakpoint_stands_after_something_that_is_sent(parts: tuple[Text | Media, ...]) -> None:
    nothing = Message(role="user", parts=parts)
    assert with_breakpoint("breakpoints", (nothing, REMINDER), [WEATHER]) == (nothing, REMINDER)
    found = with_breakpoint("breakpoints", (*ASK, nothing, REMINDER), [WEATHER])
    assert (found[:2], found[3:]) == (ASK, (nothing, REMINDER))
