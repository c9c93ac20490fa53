"""Reductions of the window around a request: run in order, seen by everybody, forced once when a size is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import anyio
import pytest

from fake_models import FakeModel, FunctionTool, call, calling, reply, say
from ricordo.agent import AgentLoop, CompactionMiddleware, ModelRequest, ModelResponse, Turn, TurnResult
from ricordo.agent.compaction_middleware import RequestMeter, run_strategy
from ricordo.agent.contract import TurnEvent, TurnListener
from ricordo.clock import SystemClock
from ricordo.context import Act, Reduction, Strategy, StrategyReport, Window
from ricordo.errors import ModelOverflow, ModelUnavailable, StorageFull
from ricordo.events import Emitter, Event
from ricordo.messages import Message, Usage
from ricordo.models import Reply, TextDelta
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me", project="shop")


@dataclass
class Halving:
    """Keeps the last `keep` messages once there are more than `over`, or when forced; notes what it was given."""

    action: Act = "compact"
    over: int = 1_000
    keep: int = 1
    raises: Exception | None = None
    fails: str = ""
    handle: str = ""
    seen: list[Window] = field(default_factory=list)

    async def reduce(self, window: Window) -> Reduction:
        self.seen.append(window)
        if self.raises:
            raise self.raises
        due = bool(window.forced) or len(window.messages) > self.over
        kept = window.messages[-self.keep :] if due and not self.fails else window.messages
        report = StrategyReport(
            action=self.action,
            status="failed" if self.fails else "done" if due else "skipped",
            reason=self.fails or ("too many messages" if due else "below the thresholds"),
            messages_before=len(window.messages),
            messages_after=len(kept),
            tokens_before=10 * len(window.messages),
            tokens_after=10 * len(kept),
            handle=self.handle if due else "",
        )
        return Reduction(messages=kept, report=report)


class Dropping(Halving):
    """Drops the oldest message when forced."""

    async def reduce(self, window: Window) -> Reduction:
        self.keep = len(window.messages) - 1
        return await super().reduce(window)


@dataclass
class Sent:
    """The end of a chain: notes each request, and answers it or raises."""

    answers: list[Reply | Exception]
    requests: list[ModelRequest] = field(default_factory=list)

    async def __call__(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelResponse(reply=answer, window=request.window)


def request(count: int, *, listener: TurnListener | None = None) -> ModelRequest:
    window = tuple(replace(say(f"message {number}"), id=f"m{number}") for number in range(count))
    turn = Turn(scope=SCOPE, agent="main", session="s1", messages=window[-1:], listener=listener)
    return ModelRequest(turn=turn, system="Be brief.", window=window)


async def ignore(event: TurnEvent) -> None:
    """Listen to a turn, which is streamed because of that."""
    del event


def ended(heard: Sequence[Event]) -> list[tuple[str, str, str | None]]:
    return [(event.stage, event.status, event.reason) for event in heard if event.status != "started"]


@pytest.mark.req("AS-TRIG-01", "AS-BUG-10")
async def test_reductions_run_in_their_order_each_on_what_the_last_one_left() -> None:
    truncate, compact = Halving(action="truncate", over=5, keep=4), Halving(over=3, keep=2)
    sent = Sent([reply("ok")])
    response = await CompactionMiddleware([truncate, compact])(request(6), sent)
    assert [len(window.messages) for window in (*truncate.seen, *compact.seen)] == [6, 4]
    assert [message.id for message in sent.requests[0].window] == ["m4", "m5"]
    assert response.window == sent.requests[0].window


@pytest.mark.req("AS-BUG-21", "AS-MEM-02")
async def test_a_reduction_is_told_what_surrounds_the_window_and_how_estimates_are_to_be_corrected() -> None:
    strategy = Halving()
    measure = RequestMeter(limit=8_000, ratio=1.5)
    await CompactionMiddleware([strategy], meter=measure)(request(2), Sent([reply("ok")]))
    (window,) = strategy.seen
    assert (window.agent, window.session, window.limit, window.ratio) == ("main", "s1", 8_000, 1.5)
    assert window.overhead > 0
    assert window.forced == ""


@pytest.mark.req("AS-BUG-21", "AS-MEM-02")
async def test_what_the_provider_reports_corrects_the_next_estimate() -> None:
    strategy, measure = Halving(), RequestMeter()
    long = request(400)
    window = CompactionMiddleware([strategy], meter=measure)
    estimated = (await measure.measure(long)).estimate.input
    await window(long, Sent([reply("ok", usage=Usage(input=2 * estimated))]))
    await window(long, Sent([reply("ok")]))
    before, after = strategy.seen
    assert before.ratio == 1.0
    assert 1.0 < after.ratio <= 2.0
    tokens = (await measure.measure(long)).estimate.messages
    assert abs(tokens * after.ratio + after.overhead - 2 * estimated) <= 2
    assert measure.ratio == after.ratio


@pytest.mark.req("AS-BUG-21")
async def test_each_request_is_measured_as_it_is_and_none_as_the_one_before() -> None:
    measure = RequestMeter()
    whole = request(6)
    sizes = [
        (await measure.measure(each)).estimate.input
        for each in (whole, replace(whole, window=whole.window[:3]), replace(whole, system=""), whole)
    ]
    assert sizes[0] == sizes[3]
    assert len(set(sizes)) == 3


@pytest.mark.req("AS-BUG-32")
@pytest.mark.parametrize("forced", ["", "asked"])
@pytest.mark.parametrize(
    ("strategy", "status", "reason", "after"),
    [
        (Halving(over=3), "finished", "too many messages", 1),
        (Halving(over=99), "skipped", "below the thresholds", 6),
        (Halving(fails="the summary was empty"), "failed", "the summary was empty", 6),
        (Halving(raises=StorageFull()), "failed", "StorageFull", 6),
        (Halving(raises=ModelUnavailable("words of a provider")), "failed", "ModelUnavailable", 6),
    ],
    ids=["done", "skipped", "failed", "storage", "model"],
)
@pytest.mark.parametrize("act", ["evict", "truncate", "compact"])
async def test_every_run_reports_its_start_and_its_end_with_the_reason_messages_and_tokens_before_and_after(
    act: Act, strategy: Halving, status: str, reason: str, after: int, forced: str
) -> None:
    heard: list[Event] = []
    measured = await RequestMeter().measure(request(6), forced=forced)
    forced_run = forced and status == "skipped"
    await run_strategy(replace(strategy, action=act), measured, Emitter(SystemClock(), (heard.append,)), SCOPE)
    begun, end = heard
    assert (begun.stage, begun.status, begun.scope) == (act, "started", SCOPE)
    assert (end.stage, end.status, end.scope) == (act, "finished" if forced_run else status, SCOPE)
    assert (end.reason or "").startswith(forced)
    assert forced_run or reason in (end.reason or "")
    left = 1 if forced_run else after
    assert (end.counts["messages_before"], end.counts["messages_after"]) == (6, left)
    assert 0 < end.counts["tokens_after"] <= end.counts["tokens_before"]
    assert (end.counts["tokens_after"] < end.counts["tokens_before"]) == (left < 6)
    assert "words of a provider" not in repr(heard)


@pytest.mark.req("AS-BUG-32")
async def test_a_run_that_is_cancelled_reports_that_too() -> None:
    heard: list[Event] = []
    reached = anyio.Event()

    class Slow(Halving):
        async def reduce(self, window: Window) -> Reduction:
            reached.set()
            await anyio.sleep_forever()
            return await super().reduce(window)

    middleware = CompactionMiddleware([Slow()], emitter=Emitter(SystemClock(), (heard.append,)))
    async with anyio.create_task_group() as group:
        group.start_soon(middleware, request(6), Sent([]))
        await reached.wait()
        group.cancel_scope.cancel()
    assert ended(heard) == [("compact", "failed", "cancelled")]
    assert heard[-1].counts["messages_before"] == heard[-1].counts["messages_after"] == 6
    assert heard[-1].counts["tokens_before"] > 0


@pytest.mark.req("AS-BUG-32")
async def test_around_a_request_due_forced_and_idle_runs_are_all_reported() -> None:
    heard: list[Event] = []
    emitter = Emitter(SystemClock(), (heard.append,))
    window = CompactionMiddleware(
        [Halving(action="evict", keep=6), Halving(action="truncate", keep=2), Halving(over=5, keep=3)],
        emitter=emitter,
        retries=1,
    )
    sent = Sent([ModelOverflow(), reply("ok")])
    await window(request(6), sent)
    assert ended(heard) == [
        ("evict", "skipped", "below the thresholds"),
        ("truncate", "skipped", "below the thresholds"),
        ("compact", "finished", "too many messages"),
        ("evict", "finished", "overflow: too many messages"),
        ("truncate", "finished", "overflow: too many messages"),
        ("compact", "finished", "overflow: too many messages"),
        ("overflow", "finished", "the request was larger than the model's window"),
    ]
    assert [event.status for event in heard].count("started") == 7


@pytest.mark.req("AS-BUG-32")
async def test_a_reduction_that_can_not_do_its_work_does_not_end_the_turn() -> None:
    sent = Sent([reply("ok")])
    await CompactionMiddleware([Halving(raises=StorageFull())])(request(6), sent)
    assert sent.requests[0].window == request(6).window


@pytest.mark.req("AS-OVER-01", "AS-BUG-08", "AS-BUG-32", "AS-BUG-21")
@pytest.mark.parametrize("listener", [None, ignore], ids=["whole", "streamed"])
async def test_an_overflow_is_made_good_once_with_a_forced_reduction_to_the_window_the_provider_named(
    listener: TurnListener | None,
) -> None:
    strategy, meter = Halving(keep=2), RequestMeter(limit=100_000)
    sent = Sent([ModelOverflow(window=5_000, size=9_000), reply("ok")])
    middleware = CompactionMiddleware([strategy], meter=meter, retries=1)
    response = await middleware(request(6, listener=listener), sent)
    assert meter.limit == 5_000
    assert [len(asked.window) for asked in sent.requests] == [6, 2]
    assert [(window.forced, window.limit) for window in strategy.seen] == [("", 100_000), ("overflow", 5_000)]
    assert strategy.seen[1].overhead + strategy.seen[1].ratio > strategy.seen[0].overhead + strategy.seen[0].ratio
    assert len(response.window) == 2


@pytest.mark.req("AS-OVER-05", "AS-OVER-01", "AS-BUG-08")
async def test_a_second_overflow_is_raised_and_the_first_one_can_be_found_from_it() -> None:
    first, second = ModelOverflow("first"), ModelOverflow("second")
    second.__cause__ = ValueError("the provider's own")
    sent = Sent([first, second])
    with pytest.raises(ModelOverflow, match="second") as raised:
        await CompactionMiddleware([Halving()], retries=1)(request(6), sent)
    assert len(sent.requests) == 2
    assert isinstance(raised.value.__cause__, ValueError)
    assert raised.value.__context__ is first


@dataclass
class Ending:
    """Keeps what stands after the first message, as long as there is another; notes what it was given."""

    action: Act = "drop"
    seen: list[Window] = field(default_factory=list)

    async def reduce(self, window: Window) -> Reduction:
        self.seen.append(window)
        kept = window.messages[1:] or window.messages
        status: Literal["done", "skipped"] = "done" if window.forced else "skipped"
        left = kept if window.forced else window.messages
        return Reduction(messages=left, report=StrategyReport(action=self.action, status=status, handle="c1"))


@pytest.mark.req("AS-OVER-01", "AS-BUG-08", "AS-BUG-32")
@pytest.mark.parametrize("retries", [2, 3])
async def test_each_retry_has_a_deeper_target_and_at_the_end_the_first_overflow_can_be_found(retries: int) -> None:
    strategy, heard = Ending(), []  # type: ignore[var-annotated]
    overflows = [ModelOverflow(f"number {number}") for number in range(retries + 1)]
    sent = Sent([*overflows])
    middleware = CompactionMiddleware([strategy], retries=retries, emitter=Emitter(SystemClock(), (heard.append,)))
    with pytest.raises(ModelOverflow) as raised:
        await middleware(request(9), sent)
    assert raised.value is overflows[-1]
    chain = [raised.value]
    while isinstance(before := chain[-1].__context__, ModelOverflow):
        chain.append(before)
    assert chain == overflows[::-1]
    assert [len(asked.window) for asked in sent.requests] == list(range(9, 9 - len(overflows), -1))
    targets = [window.target for window in strategy.seen]
    assert targets[0] is None
    assert all(later is not None and before and later <= before // 2 for before, later in pairwise(targets[1:]))
    assert [window.forced for window in strategy.seen] == ["", *["overflow"] * retries]
    told = [event for event in heard if event.stage == "overflow" and event.status == "finished"]
    assert [(event.counts["messages_before"], event.counts["messages_after"]) for event in told] == [
        (9 - number, 8 - number) for number in range(retries)
    ]
    assert all(event.counts["tokens_after"] < event.counts["tokens_before"] for event in told)


@pytest.mark.req("AS-OVER-01", "AS-BUG-06", "AS-BUG-08")
@pytest.mark.parametrize("listener", [None, ignore], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("overflow", "known", "least", "most"),
    [
        (ModelOverflow(window=400), 100_000, 250, 300),
        (ModelOverflow(window=1_000), 100_000, 600, 900),
        (ModelOverflow(), 400, 250, 300),
        (ModelOverflow(), None, 480, 520),
        (ModelOverflow(), 100_000, 480, 520),
        (ModelOverflow(window=90_000), 100_000, 480, 520),
        (ModelOverflow(window=10), None, 0, 7),
    ],
    ids=[
        "named",
        "named, above half",
        "known",
        "neither",
        "known, too large",
        "named, too large",
        "smaller than the prompt",
    ],
)
async def test_the_target_of_a_retry_is_what_the_window_leaves_and_half_where_no_number_can_be_used(
    overflow: ModelOverflow, known: int | None, least: int, most: int, listener: TurnListener | None
) -> None:
    strategy = Ending()
    middleware = CompactionMiddleware([strategy], meter=RequestMeter(limit=known), retries=1)
    long = request(125, listener=listener)
    tokens = (await RequestMeter().measure(long)).tokens
    assert 960 <= tokens <= 1_040, tokens
    await middleware(long, Sent([overflow, reply("ok")]))
    target = strategy.seen[1].target
    assert target is not None
    assert least <= target <= most


@pytest.mark.req("AS-OVER-06", "CC-UNDO")
async def test_what_goes_is_noted_before_the_retry_and_only_where_nothing_was_refused_must_that_work() -> None:
    noted: list[tuple[int, int]] = []

    async def note(before: Window, reduction: Reduction) -> None:
        noted.append((len(before.messages), len(reduction.messages)))
        raise StorageFull

    sent = Sent([ModelOverflow(), reply("ok")])
    await CompactionMiddleware([Ending()], retries=1, record_reduction=note)(request(6), sent)
    assert (noted, [len(asked.window) for asked in sent.requests]) == ([(6, 5)], [6, 5])
    sent = Sent([reply("ok")])
    due = Halving(over=3, handle="c1")
    await CompactionMiddleware([due], record_reduction=note)(request(6), sent)
    assert (len(due.seen), len(noted), len(sent.requests[0].window)) == (1, 2, 6)


async def test_a_reduction_is_told_how_large_the_window_was_when_one_was_undone() -> None:
    strategy = Halving()
    await CompactionMiddleware([strategy], get_undone=lambda: 40)(request(2), Sent([reply("ok")]))
    assert strategy.seen[0].messages_at_undo == 40


@pytest.mark.req("AS-OVER-02", "AS-COMPACT-14", "AS-BUG-08")
@pytest.mark.parametrize(
    "make",
    [
        lambda: CompactionMiddleware([Halving()]),
        lambda: CompactionMiddleware([Halving(fails="no")], retries=1),
        lambda: CompactionMiddleware([Halving(raises=StorageFull())], retries=1),
        lambda: CompactionMiddleware([], retries=1),
    ],
    ids=["not asked for", "failed", "raised", "nothing to run"],
)
async def test_an_overflow_that_nothing_is_done_about_is_raised_as_it_is(
    make: Callable[[], CompactionMiddleware],
) -> None:
    overflow = ModelOverflow("too much")
    sent = Sent([overflow])
    with pytest.raises(ModelOverflow) as raised:
        await make()(request(6), sent)
    assert raised.value is overflow
    assert len(sent.requests) == 1


@pytest.mark.req("AS-OVER-04", "AS-BUG-07")
async def test_other_errors_of_the_model_cause_no_reduction() -> None:
    strategy = Halving()
    with pytest.raises(ModelUnavailable):
        await CompactionMiddleware([strategy], retries=1)(request(6), Sent([ModelUnavailable()]))
    assert [window.forced for window in strategy.seen] == [""]


def harness(
    model: FakeModel,
    reducers: Sequence[Strategy],
    kept: list[Message],
    tools: Sequence[FunctionTool] = (),
    retries: int = 1,
) -> AgentLoop:
    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        named = [replace(message, id=f"r{len(kept) + place}") for place, message in enumerate(messages)]
        kept.extend(named)
        return tuple(named)

    return AgentLoop(model, tools=tools, steps=[CompactionMiddleware(reducers, retries=retries)], record=record)


async def run(made: AgentLoop, listener: TurnListener | None = None) -> TurnResult:
    window = tuple(replace(say(f"old {number}"), id=f"o{number}") for number in range(4))
    turn = Turn(scope=SCOPE, agent="a", session="s", messages=(say("why?"),), window=window, listener=listener)
    return await made.run(turn)


@pytest.mark.req("AS-OVER-06", "AS-BUG-retry-duplicate", "AS-BUG-08")
@pytest.mark.parametrize("streamed", [False, True])
async def test_in_a_loop_an_overflow_adds_what_the_user_said_once_and_the_turn_goes_on_from_the_smaller_window(
    streamed: bool,
) -> None:
    heard: list[TurnEvent] = []

    async def listen(event: TurnEvent) -> None:
        heard.append(event)

    kept: list[Message] = []
    model = FakeModel(ModelOverflow(), reply("because"))
    result = await run(harness(model, [Halving(keep=2)], kept), listen if streamed else None)
    assert [message.text for message in kept] == ["why?", "because"]
    assert [[message.text for message in asked] for asked in model.asked] == [
        ["old 0", "old 1", "old 2", "old 3", "why?"],
        ["old 3", "why?"],
    ]
    assert [message.text for message in result.window] == ["old 3", "why?", "because"]
    assert heard == ([TextDelta(text="because")] if streamed else [])


@pytest.mark.req("AS-BUG-08", "AS-OVER-01", "AS-OVER-05")
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_streamed_request_is_made_again_as_often_as_any_other(streamed: bool) -> None:
    heard: list[TurnEvent] = []

    async def listen(event: TurnEvent) -> None:
        heard.append(event)

    model = FakeModel(ModelOverflow(), ModelOverflow(), reply("because"))
    result = await run(harness(model, [Dropping()], [], retries=2), listen if streamed else None)
    assert result.message.text == "because"
    assert [len(asked) for asked in model.asked] == [5, 4, 3]
    assert heard == ([TextDelta(text="because")] if streamed else [])


@pytest.mark.req("AS-BUG-08", "AS-OVER-05")
async def test_an_overflow_in_the_middle_of_a_streamed_reply_is_raised_and_nothing_is_said_twice() -> None:
    heard: list[TurnEvent] = []

    async def listen(event: TurnEvent) -> None:
        heard.append(event)

    kept: list[Message] = []
    model = FakeModel(((TextDelta(text="beca"),), ModelOverflow()))
    with pytest.raises(ModelOverflow):
        await run(harness(model, [Halving(keep=2)], kept), listen)
    assert heard == [TextDelta(text="beca")]
    assert [message.text for message in kept] == ["why?", "beca"]


@pytest.mark.req("AS-OVER-06", "AS-COMPACT-10")
async def test_a_window_that_was_made_smaller_stays_so_for_the_later_requests_of_the_turn() -> None:
    async def act(_arguments: object, _context: object) -> str:
        return "ok"

    kept: list[Message] = []
    model = FakeModel(calling(call("act")), reply("done"))
    made = harness(model, [Halving(over=4, keep=1)], kept, [FunctionTool("act", act)])
    await run(made)
    assert [[message.role for message in asked] for asked in model.asked] == [["user"], ["user", "assistant", "tool"]]
