"""The loop: a turn goes from what was said to the reply, over as many tools as the model calls."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import anyio
import anyio.lowlevel
import pytest

from fake_models import FakeModel, FunctionTool, call, calling, reply, say
from ricordo.agent import (
    AgentLoop,
    ModelRequest,
    ModelResponse,
    ToolContext,
    ToolFinished,
    Turn,
    TurnLimits,
    TurnResult,
)
from ricordo.agent.contract import StepHandler, ToolStarted, TurnEvent, TurnHandler, TurnListener
from ricordo.clock import SystemClock
from ricordo.errors import InvalidSetting, ModelUnavailable, ReplyInvalid, StorageFull
from ricordo.events import Emitter, Event
from ricordo.messages import JsonValue, Message, Text, ToolResult, Usage, get_mark, pair_calls
from ricordo.models import TextDelta, ThinkingDelta
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me", project="shop")


def turn(*messages: Message, window: Sequence[Message] = (), listener: TurnListener | None = None) -> Turn:
    given = messages or (say("hello"),)
    return Turn(scope=SCOPE, agent="main", session="s1", messages=given, window=tuple(window), listener=listener)


async def echo(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    return {"path": arguments.get("path"), "from": context.call_id}


async def test_a_turn_without_tools_is_one_request_and_its_reply() -> None:
    model = FakeModel(reply("hi"))
    result = await AgentLoop(model, instructions="Be brief.").run(turn(say("hello")))
    assert str(result) == "hi"
    assert [(message.role, message.text) for message in model.asked[0]] == [("system", "Be brief."), ("user", "hello")]
    assert [message.text for message in result.messages] == ["hello", "hi"]
    assert result.window == result.messages
    assert (result.ending, result.steps) == ("end", 1)


async def test_results_reach_the_model_in_the_order_of_the_calls_however_long_each_takes() -> None:
    second_done = anyio.Event()

    async def slow(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        await second_done.wait()
        return "slow one"

    async def quick(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        second_done.set()
        return "quick one"

    model = FakeModel(calling(call("slow"), call("quick")), reply("done"))
    result = await AgentLoop(model, tools=[FunctionTool("slow", slow), FunctionTool("quick", quick)]).run(turn())
    told = model.asked[1][-1]
    assert told.role == "tool"
    assert [each.text for each in told.tool_results] == ["slow one", "quick one"]
    assert [each.call_id for each in told.tool_results] == ["id-slow", "id-quick"]
    assert result.steps == 2
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "assistant"]


async def test_no_more_calls_run_at_once_than_are_allowed() -> None:
    running = most = 0

    async def count(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1

    calls = [call("count", id=f"c{number}") for number in range(9)]
    await AgentLoop(FakeModel(calling(*calls), reply("done")), tools=[FunctionTool("count", count)], parallel=3).run(
        turn()
    )
    assert most == 3


@pytest.mark.req("AS-BUG-23", "GO-G26-cache")
async def test_each_request_extends_the_last_one_byte_for_byte() -> None:
    model = FakeModel(calling(call("echo")), calling(call("echo")), reply("done"))
    await AgentLoop(model, tools=[FunctionTool("echo", echo)], instructions="base").run(turn())
    first, second, third = model.asked
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [spec.name for spec in model.told[0]] == ["echo"]
    assert model.told[0] == model.told[2]


async def test_the_next_turn_goes_on_from_the_window_of_the_last_one() -> None:
    model = FakeModel(reply("one"), reply("two"))
    harness = AgentLoop(model)
    first = await harness.run(turn(say("a")))
    second = await harness.run(turn(say("b"), window=first.window))
    assert [message.text for message in model.asked[1]] == ["a", "one", "b"]
    assert [message.text for message in second.window] == ["a", "one", "b", "two"]
    assert [message.text for message in second.messages] == ["b", "two"]


async def test_usage_is_added_up_and_a_step_without_a_price_leaves_the_cost_unknown() -> None:
    used = Usage(input=10, output=3, cache_read=4, cache_write=1)
    tools = [FunctionTool("echo", echo)]
    priced = FakeModel(calling(call("echo"), usage=used), reply("x", usage=used, cost=Decimal(2)))
    result = await AgentLoop(priced, tools=tools).run(turn())
    assert result.usage == Usage(input=20, output=6, cache_read=8, cache_write=2)
    assert result.cost == Decimal(3)
    assert [message.usage for message in result.messages if message.role == "assistant"] == [used, used]
    unpriced = FakeModel(calling(call("echo"), usage=used), reply("x"))
    assert (await AgentLoop(unpriced, tools=tools).run(turn())).cost is None


@pytest.mark.req("AS-TRIG-02", "AS-BUG-12", "AS-BUG-11")
async def test_what_was_given_is_recorded_before_the_model_is_asked_and_the_rest_as_it_comes() -> None:
    recorded: list[Message] = []
    seen: list[list[str]] = []

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        recorded.extend(messages)
        return tuple(messages)

    async def look(request: ModelRequest, step: StepHandler) -> ModelResponse:
        seen.append([message.role for message in recorded])
        return await step(request)

    model = FakeModel(calling(call("echo")), reply("done"))
    await AgentLoop(model, tools=[FunctionTool("echo", echo)], steps=[look], record=record).run(turn())
    assert seen == [["user"], ["user", "assistant", "tool"]]
    assert [message.role for message in recorded] == ["user", "assistant", "tool", "assistant"]


async def test_the_model_is_sent_what_the_record_holds() -> None:
    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple(Message(role=message.role, parts=(Text(text="[mark]"),), id="x1") for message in messages)

    model = FakeModel(reply("done"))
    await AgentLoop(model, record=record).run(turn(say("a secret")))
    assert [message.text for message in model.asked[0]] == ["[mark]"]


async def test_nothing_is_asked_when_what_was_given_could_not_be_recorded() -> None:
    async def record(_messages: Sequence[Message]) -> tuple[Message, ...]:
        raise StorageFull

    model = FakeModel(reply("never"))
    with pytest.raises(StorageFull):
        await AgentLoop(model, record=record).run(turn())
    assert model.asked == []


async def test_a_message_that_the_window_holds_already_is_not_sent_twice() -> None:
    said = Message(role="user", parts=(Text(text="again"),), id="m1")
    model = FakeModel(reply("done"))
    await AgentLoop(model).run(turn(said, window=[said]))
    assert [message.id for message in model.asked[0]] == ["m1"]


async def test_calls_that_an_earlier_turn_left_open_are_answered_before_the_model_is_asked() -> None:
    window = [say("go"), Message(role="assistant", parts=(call("echo", id="left"),), id="a1")]
    model = FakeModel(reply("done"))
    result = await AgentLoop(model).run(turn(say("and now?"), window=window))
    assert pair_calls(model.asked[0]).pending == ()
    assert pair_calls(model.asked[0]).abandoned == ()
    assert [message.role for message in model.asked[0]] == ["user", "assistant", "tool", "user"]
    assert "not known" in model.asked[0][2].tool_results[0].text
    assert [message.text for message in result.messages] == ["and now?", "done"]


async def test_results_that_were_missing_follow_their_calls_though_more_was_said_since() -> None:
    window = [
        Message(role="assistant", parts=(call("a"), call("b")), id="a1"),
        Message(role="tool", parts=(ToolResult(call_id="id-a", parts=(Text(text="ok"),)),), id="t1"),
        say("still there?"),
    ]
    model = FakeModel(reply("done"))
    await AgentLoop(model).run(turn(say("hello?"), window=window))
    sent = model.asked[0]
    assert [message.role for message in sent] == ["assistant", "tool", "tool", "user", "user"]
    assert [each.call_id for message in sent for each in message.tool_results].count("id-b") == 1
    assert pair_calls(sent).pending == ()


async def test_a_turn_can_itself_bring_the_results_of_open_calls() -> None:
    window = [say("go"), Message(role="assistant", parts=(call("ask", id="left"),), id="a1")]
    brought = Message(role="tool", parts=(ToolResult(call_id="left", parts=(Text(text="42"),)),))
    model = FakeModel(reply("done"))
    await AgentLoop(model).run(turn(brought, window=window))
    assert [message.role for message in model.asked[0]] == ["user", "assistant", "tool"]


async def test_at_its_limit_a_turn_ends_with_a_notice_that_is_not_the_models_and_no_open_call() -> None:
    ran: list[str] = []

    async def note(_arguments: Mapping[str, JsonValue], context: ToolContext) -> str:
        ran.append(context.call_id)
        return "ok"

    model = FakeModel(*(calling(call("note", id=f"c{number}")) for number in range(3)))
    result = await AgentLoop(model, tools=[FunctionTool("note", note)], limits=TurnLimits(max_iters=3)).run(turn())
    assert (result.ending, result.steps, len(model.asked)) == ("max_iters", 3, 3)
    assert get_mark(result.message) == "notice"
    assert "limit of 3 requests" in result.message.text
    assert pair_calls(result.window).pending == pair_calls(result.window).abandoned == ()
    assert ran == ["c0", "c1"]
    assert "was not run" in result.window[-2].tool_results[0].text
    assert result.window[-1] == result.message


@pytest.mark.parametrize("stop", ["length", "refused", "window"])
async def test_a_reply_that_was_cut_off_or_refused_says_so_in_its_ending(stop: str) -> None:
    result = await AgentLoop(FakeModel(reply("half", stop=stop))).run(turn())  # type: ignore[arg-type]
    assert result.ending == stop


async def test_a_call_in_a_reply_that_was_cut_off_is_not_run_and_the_model_may_try_again() -> None:
    model = FakeModel(calling(call("echo"), stop="length"), reply("done"))
    result = await AgentLoop(model, tools=[FunctionTool("echo", echo)]).run(turn())
    told = model.asked[1][-1].tool_results[0]
    assert told.is_error
    assert "not run" in told.text
    assert result.ending == "end"


async def test_a_call_in_a_reply_that_was_refused_is_not_run_and_is_not_said_to_be_cut_off() -> None:
    model = FakeModel(calling(call("echo"), stop="refused"))
    result = await AgentLoop(model, tools=[FunctionTool("echo", echo)]).run(turn())
    told = result.window[-1].tool_results[0]
    assert told.is_error
    assert "refused" in told.text
    assert "not run" in told.text
    assert "cut off" not in told.text
    assert result.ending == "refused"


async def test_with_a_listener_everything_is_told_in_the_order_in_which_it_happens() -> None:
    heard: list[TurnEvent] = []

    async def listen(event: TurnEvent) -> None:
        heard.append(event)

    pieces = (ThinkingDelta(text="hm"), TextDelta(text="he"), TextDelta(text="llo"))
    wanted = call("echo")
    model = FakeModel(((TextDelta(text="I look."),), calling(wanted, text="I look.")), (pieces, reply("hello")))
    result = await AgentLoop(model, tools=[FunctionTool("echo", echo)]).run(turn(listener=listen))
    assert [type(event).__name__ for event in heard] == [
        "TextDelta",
        "ToolStarted",
        "ToolFinished",
        "ThinkingDelta",
        "TextDelta",
        "TextDelta",
    ]
    assert heard[1] == ToolStarted(call=wanted)
    assert isinstance(heard[2], ToolFinished)
    assert "".join(event.text for event in heard[4:] if isinstance(event, TextDelta)) == str(result)


@pytest.mark.req("AS-BUG-12")
async def test_a_stream_that_ends_without_a_whole_reply_is_an_error_and_what_was_said_is_kept() -> None:
    class Torn(FakeModel):
        async def stream(self, messages, *, tools=(), schema=None):  # type: ignore[no-untyped-def]
            yield TextDelta(text="I was say")

    kept: list[Message] = []

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        kept.extend(messages)
        return tuple(messages)

    async def listen(_event: TurnEvent) -> None:
        return

    with pytest.raises(ReplyInvalid):
        await AgentLoop(Torn(), record=record).run(turn(listener=listen))
    assert [(message.text, get_mark(message)) for message in kept] == [("hello", None), ("I was say", "cut")]


@pytest.mark.req("AS-BUG-12")
async def test_when_the_model_fails_the_users_message_and_what_had_streamed_are_in_the_record() -> None:
    kept: list[Message] = []

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        kept.extend(messages)
        return tuple(messages)

    async def listen(_event: TurnEvent) -> None:
        return

    model = FakeModel(((TextDelta(text="The ans"),), ModelUnavailable("gone")))
    with pytest.raises(ModelUnavailable, match="gone"):
        await AgentLoop(model, record=record).run(turn(say("why?"), listener=listen))
    assert [(message.role, message.text, get_mark(message)) for message in kept] == [
        ("user", "why?", None),
        ("assistant", "The ans", "cut"),
    ]


@pytest.mark.req("AS-BUG-12")
async def test_an_error_of_the_model_is_raised_as_it_is_when_the_record_fails_too() -> None:
    heard: list[Event] = []
    given = 0

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        nonlocal given
        given += 1
        if given > 1:
            raise StorageFull
        return tuple(messages)

    async def listen(_event: TurnEvent) -> None:
        return

    model = FakeModel(((TextDelta(text="The ans"),), ModelUnavailable("gone")))
    harness = AgentLoop(model, record=record, emitter=Emitter(SystemClock(), (heard.append,)))
    with pytest.raises(ModelUnavailable):
        await harness.run(turn(listener=listen))
    assert ("record", "failed", "StorageFull") in [(event.stage, event.status, event.error) for event in heard]


@pytest.mark.req("AS-BUG-12")
async def test_what_a_listener_raises_ends_the_turn_as_itself_and_leaves_no_call_open() -> None:
    kept: list[Message] = []

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        kept.extend(messages)
        return tuple(messages)

    async def listen(event: TurnEvent) -> None:
        if isinstance(event, ToolFinished):
            raise BrokenPipeError("nobody listens")

    async def hang(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        await anyio.sleep_forever()
        return "never"

    tools = [FunctionTool("echo", echo), FunctionTool("hang", hang)]
    model = FakeModel(calling(call("echo"), call("hang")))
    with anyio.fail_after(20), pytest.raises(BrokenPipeError, match="nobody listens"):
        await AgentLoop(model, tools=tools, record=record).run(turn(listener=listen))
    assert pair_calls(kept).pending == ()
    assert [each.is_error for each in kept[-1].tool_results] == [False, True]


async def test_a_listener_is_told_one_thing_at_a_time() -> None:
    telling = most = 0

    async def listen(_event: TurnEvent) -> None:
        nonlocal telling, most
        telling += 1
        most = max(most, telling)
        await anyio.lowlevel.checkpoint()
        telling -= 1

    model = FakeModel(calling(*(call("echo", id=f"c{number}") for number in range(4))), reply("done"))
    await AgentLoop(model, tools=[FunctionTool("echo", echo)]).run(turn(listener=listen))
    assert most == 1


async def test_the_first_middleware_is_outermost_around_turns_and_around_requests() -> None:
    order: list[str] = []

    def around_turn(name: str):  # type: ignore[no-untyped-def]
        async def middleware(given: Turn, handler: TurnHandler) -> TurnResult:
            order.append(f"{name} in")
            result = await handler(given)
            order.append(f"{name} out")
            return result

        return middleware

    def around_step(name: str):  # type: ignore[no-untyped-def]
        async def middleware(request: ModelRequest, step: StepHandler) -> ModelResponse:
            order.append(f"{name} in")
            response = await step(request)
            order.append(f"{name} out")
            return response

        return middleware

    harness = AgentLoop(
        FakeModel(reply("hi")),
        turns=[around_turn("t1"), around_turn("t2")],
        steps=[around_step("s1"), around_step("s2")],
    )
    await harness.run(turn())
    assert order == ["t1 in", "t2 in", "s1 in", "s2 in", "s2 out", "s1 out", "t2 out", "t1 out"]


async def test_the_turn_goes_on_from_the_window_that_was_sent() -> None:
    async def forget(request: ModelRequest, step: StepHandler) -> ModelResponse:
        return await step(replace(request, window=request.window[-1:]))

    model = FakeModel(reply("one"))
    result = await AgentLoop(model, steps=[forget]).run(turn(say("b"), window=[say("old"), say("older")]))
    assert [message.text for message in result.window] == ["b", "one"]


async def test_a_turn_a_request_and_a_call_report_their_end_with_counts_and_no_content() -> None:
    heard: list[Event] = []
    used = Usage(input=7, output=2)
    model = FakeModel(calling(call("echo"), call("none"), usage=used), reply("secret words", usage=used))
    emitter = Emitter(SystemClock(), (heard.append,))
    await AgentLoop(model, tools=[FunctionTool("echo", echo)], emitter=emitter).run(turn(say("secret words")))
    ended = [(event.stage, event.reason) for event in heard if event.status == "finished"]
    assert ended[0] == ("model", "tools")
    assert sorted(ended[1:3]) == [("tool", "echo"), ("tool", "unknown tool")]
    assert ended[3:] == [("model", "end"), ("turn", "end")]
    assert heard[-1].counts == {"steps": 2, "messages": 4, "input": 14, "output": 4}
    assert "secret words" not in repr(heard)


async def test_a_harness_that_could_not_work_is_refused() -> None:
    tools = [FunctionTool("echo", echo), FunctionTool("echo", echo)]
    with pytest.raises(InvalidSetting, match="called echo"):
        AgentLoop(FakeModel(), tools=tools)
    with pytest.raises(InvalidSetting, match="max_iters"):
        AgentLoop(FakeModel(), limits=TurnLimits(max_iters=0))
    with pytest.raises(InvalidSetting, match="parallel"):
        AgentLoop(FakeModel(), parallel=0)


async def test_two_sessions_share_one_harness_without_meeting() -> None:
    model = FakeModel(reply("one"), reply("two"))
    harness = AgentLoop(model)
    results: dict[str, TurnResult] = {}

    async def talk(name: str) -> None:
        results[name] = await harness.run(turn(say(name)))

    async with anyio.create_task_group() as group:
        group.start_soon(talk, "a")
        group.start_soon(talk, "b")
    for name, result in results.items():
        assert result.window[0].text == name
        assert len(result.window) == 2
