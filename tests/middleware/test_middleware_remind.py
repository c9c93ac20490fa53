"""A request is reminded of where the agent stands, and only a whole reply makes a result count as told."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from fake_models import FakeModel, FunctionTool, call, calling, reply, say
from ricordo.agent import (
    AgentLoop,
    CompactionMiddleware,
    ModelRequest,
    ModelResponse,
    ToolContext,
    ToolOutput,
    Turn,
    build_reminder_message,
)
from ricordo.agent.compaction_middleware import RequestMeter
from ricordo.agent.contract import StepHandler
from ricordo.agent.reminder import ComposedReminder, ReminderMiddleware
from ricordo.context import Act, Reduction, StrategyReport, Window
from ricordo.errors import DocumentInvalid, ModelOverflow, ModelUnavailable
from ricordo.messages import Message, delivered_results, estimate_message, get_mark
from ricordo.models import TextDelta
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me")


class Standing:
    """What there is to remind of: a text, and results until they were told."""

    def __init__(self, text: str = "You are planning.", results: tuple[str, ...] = ()) -> None:
        self.text, self.results = text, results
        self.windows: list[tuple[Message, ...]] = []
        self.error: DocumentInvalid | None = None

    async def compose(self, request: ModelRequest) -> ComposedReminder:
        assert request.reminder is None
        self.windows.append(request.window)
        if self.error:
            raise self.error
        text = f"{self.text} {len(request.window)} messages, {','.join(self.results)}"
        return (build_reminder_message(text) if self.text else None), self.results


def turn(*messages: Message, listens: bool = False) -> Turn:
    async def listener(event: object) -> None:
        del event

    given = messages or (say("Go."),)
    return Turn(scope=SCOPE, agent="a", session="s", messages=given, listener=listener if listens else None)


def reminders(model: FakeModel) -> list[str]:
    """Return the reminder of each request, which is its last message and its only one."""
    for asked in model.asked:
        assert [get_mark(each) for each in asked].count("reminder") == 1
    return [asked[-1].text for asked in model.asked if get_mark(asked[-1]) == "reminder"]


@pytest.mark.req("AS-STATE-03", "AS-STATE-05")
@pytest.mark.parametrize("listens", [False, True])
async def test_each_request_ends_with_the_reminder_and_nothing_keeps_it(listens: bool) -> None:
    async def look(arguments: object, context: ToolContext) -> ToolOutput:
        del arguments, context
        return "seen"

    model, standing = FakeModel(calling(call("look")), reply("Done.")), Standing()
    harness = AgentLoop(
        model, tools=[FunctionTool("look", look)], instructions="Be.", steps=[ReminderMiddleware(standing.compose)]
    )
    result = await harness.run(turn(listens=listens))
    assert reminders(model) == ["You are planning. 1 messages, ", "You are planning. 3 messages, "]
    assert [each.role for each in model.asked[1]] == ["system", "user", "assistant", "tool", "user"]
    assert [get_mark(each) for each in (*result.messages, *result.window)] == [None] * 8


async def test_without_anything_to_say_the_request_and_the_reply_stay_as_they_are() -> None:
    model = FakeModel(reply("Done."))
    result = await AgentLoop(model, steps=[ReminderMiddleware(Standing("").compose)]).run(turn())
    assert [each.text for each in model.asked[0]] == ["Go."]
    assert delivered_results(result.message) == ()
    assert result.message.metadata == {}


@pytest.mark.req("AS-STATE-05")
async def test_the_reply_names_the_results_that_its_request_told_of() -> None:
    standing = Standing(results=("one", "two:orphaned"))
    recorded: list[Message] = []

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        recorded.extend(messages)
        return tuple(messages)

    harness = AgentLoop(FakeModel(reply("Fine.")), steps=[ReminderMiddleware(standing.compose)], record=record)
    await harness.run(turn())
    assert [delivered_results(each) for each in recorded] == [(), ("one", "two:orphaned")]


@pytest.mark.req("AS-STATE-05")
async def test_a_reply_that_does_not_come_or_is_cut_off_tells_of_nothing() -> None:
    cut = ((TextDelta(text="I beg"),), ModelUnavailable("down"))
    model = FakeModel(ModelUnavailable("down"), cut, reply("Fine."))
    remind = ReminderMiddleware(Standing(results=("one",)).compose)
    recorded: list[Message] = []

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        recorded.extend(messages)
        return tuple(messages)

    harness = AgentLoop(model, steps=[remind], record=record)
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await harness.run(turn(listens=True))
    assert get_mark(recorded[-1]) == "cut"
    assert [delivered_results(each) for each in recorded] == [()] * 3
    await harness.run(turn())
    assert delivered_results(recorded[-1]) == ("one",)


async def test_a_reminder_that_can_not_be_made_is_logged_once_and_ends_no_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, standing = FakeModel(*(reply("Fine.") for _ in range(3))), Standing(results=("one",))
    harness = AgentLoop(model, steps=[ReminderMiddleware(standing.compose)])
    standing.error = DocumentInvalid("agents/a/tasks/s.json, with words of somebody")
    with caplog.at_level(logging.WARNING, logger="ricordo.middleware"):
        for _ in range(2):
            result = await harness.run(turn())
            assert delivered_results(result.message) == ()
    assert [len(asked) for asked in model.asked] == [1, 1]
    assert [record.getMessage() for record in caplog.records] == [
        "Where the agent stands can't be told to the model: DocumentInvalid."
    ]
    standing.error = None
    assert delivered_results((await harness.run(turn())).message) == ("one",)


class Last:
    """A strategy that keeps the last message alone when it is forced, or always."""

    action: Act = "compact"

    def __init__(self, *, always: bool) -> None:
        self.always = always
        self.seen: list[Window] = []

    async def reduce(self, window: Window) -> Reduction:
        self.seen.append(window)
        is_due = (self.always or window.forced) and len(window.messages) > 1
        left = window.messages[-1:] if is_due else window.messages
        report = StrategyReport(
            action="compact",
            status="done" if is_due else "skipped",
            messages_before=len(window.messages),
            messages_after=len(left),
            tokens_before=0,
            tokens_after=0,
        )
        return Reduction(messages=left, report=report)


def stack(
    remind: ReminderMiddleware, last: Last, *, retries: int = 0
) -> list[Callable[[ModelRequest, StepHandler], Awaitable[ModelResponse]]]:
    return [remind, CompactionMiddleware([last], retries=retries), remind.refresh_reminder]


@pytest.mark.req("AS-STATE-03")
async def test_a_window_that_got_shorter_on_the_way_gets_a_reminder_of_its_own() -> None:
    model, standing, last = FakeModel(reply("Fine.")), Standing(results=("one",)), Last(always=True)
    harness = AgentLoop(model, steps=stack(ReminderMiddleware(standing.compose), last))
    result = await harness.run(turn(say("One."), say("Two.")))
    assert [each.text for each in model.asked[0]] == ["Two.", "You are planning. 1 messages, one"]
    assert [len(window) for window in standing.windows] == [2, 1]
    assert delivered_results(result.message) == ("one",)
    (seen,) = last.seen
    assert seen.overhead == estimate_message(build_reminder_message("You are planning. 2 messages, one"))
    assert all(get_mark(each) is None for each in seen.messages)


@pytest.mark.req("AS-OVER-06", "AS-STATE-05", "AS-STATE-08")
async def test_after_an_overflow_what_ended_meanwhile_is_told_and_what_was_refused_is_not() -> None:
    standing = Standing()

    async def compose(request: ModelRequest) -> ComposedReminder:
        standing.results = ("one",) if len(request.window) == 2 else ("two",)
        return await standing.compose(request)

    model = FakeModel(ModelOverflow("full", window=100, size=120), reply("Fine."))
    harness = AgentLoop(model, steps=stack(ReminderMiddleware(compose), Last(always=False), retries=1))
    result = await harness.run(turn(say("One."), say("Two.")))
    assert [len(asked) for asked in model.asked] == [3, 2]
    assert reminders(model) == ["You are planning. 2 messages, one", "You are planning. 1 messages, two"]
    assert delivered_results(result.message) == ("two",)


async def test_where_the_second_reminder_can_not_be_made_the_first_one_is_sent() -> None:
    model, standing = FakeModel(reply("Fine.")), Standing(results=("one",))
    made = standing.compose

    async def compose(request: ModelRequest) -> ComposedReminder:
        standing.error = DocumentInvalid("torn") if len(request.window) == 1 else None
        return await made(request)

    harness = AgentLoop(model, steps=stack(ReminderMiddleware(compose), Last(always=True)))
    result = await harness.run(turn(say("One."), say("Two.")))
    assert reminders(model) == ["You are planning. 2 messages, one"]
    assert delivered_results(result.message) == ("one",)


async def test_a_request_that_is_only_measured_gets_its_reminder_and_tells_of_nothing() -> None:
    standing = Standing(results=("one",))
    remind = ReminderMiddleware(standing.compose)
    request = ModelRequest(turn=turn(), system="", window=(say("Go."),))
    reminded = await remind.add_reminder(request)
    assert reminded.reminder == build_reminder_message("You are planning. 1 messages, one")
    assert replace(reminded, reminder=None) == request
    standing.error = DocumentInvalid("torn")
    assert await remind.add_reminder(request) == request


@pytest.mark.req("AS-BUG-21")
async def test_the_reminder_counts_as_what_nothing_can_shorten() -> None:
    measure, window = RequestMeter(), (say("Go on with it."),)
    bare = ModelRequest(turn=turn(), system="Be.", window=window)
    long, short = (replace(bare, reminder=build_reminder_message("word " * count)) for count in (500, 3))
    sizes = []
    for request in (bare, long, short, bare):
        measured = await measure.measure(request)
        size = estimate_message(request.reminder) if request.reminder else 0
        assert measured.estimate.reminder == size
        assert measured.window.messages == window
        assert measured.tokens == estimate_message(window[0])
        sizes.append(measured.window.overhead - size)
    assert sizes == [sizes[0]] * 4, "a reminder changes nothing but the overhead"


@pytest.mark.req("AS-BUG-21")
async def test_what_a_provider_counts_is_compared_with_all_that_was_sent() -> None:
    window = tuple(say("Some words of it. " * 50) for _ in range(4))
    request = ModelRequest(turn=turn(), system="Be.", window=window, reminder=build_reminder_message("word " * 2_000))
    measure = RequestMeter()
    reported = (await measure.measure(request)).estimate.input
    await measure.learn(request, reported)
    assert measure.ratio == pytest.approx(1.0)
