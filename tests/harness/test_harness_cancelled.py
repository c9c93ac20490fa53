"""A cancelled turn raises the cancellation, loses nothing that was said, and leaves no call open."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_models import FakeModel, FunctionTool, Hanging, Item, call, calling, reply, say
from ricordo.agent import AgentLoop, ToolContext, Turn, TurnLimits, TurnResult
from ricordo.agent.contract import TurnEvent, TurnListener
from ricordo.clock import SystemClock
from ricordo.errors import ModelUnavailable, RicordoError, StorageFull, ToolFailed
from ricordo.events import Emitter, Event
from ricordo.messages import JsonValue, Message, get_mark, pair_calls, with_ids
from ricordo.models import TextDelta
from ricordo.scope import Scope

pytestmark = pytest.mark.anyio

SCOPE = Scope(user="me")


@dataclass
class Kept:
    """A record in memory; at append number `holds` it waits until it is let go."""

    holds: int = 0
    messages: list[Message] = field(default_factory=list)
    reached: anyio.Event = field(default_factory=anyio.Event)
    let_go: anyio.Event = field(default_factory=anyio.Event)
    appends: int = 0

    async def __call__(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        self.appends += 1
        if self.appends == self.holds:
            self.reached.set()
            await self.let_go.wait()
        named = with_ids(messages, session="s1", counts={})
        self.messages.extend(named)
        return tuple(named)

    def said(self) -> list[tuple[str, str, str | None]]:
        return [(message.role, message.text, get_mark(message)) for message in self.messages]


def turn(listener: TurnListener | None = None) -> Turn:
    return Turn(scope=SCOPE, agent="main", session="s1", messages=(say("go"),), listener=listener)


async def hear_nothing(_event: TurnEvent) -> None:
    return


async def by_scope(act: Callable[[], Awaitable[TurnResult]], when: Callable[[], Awaitable[None]]) -> bool:
    """Cancel `act` by its scope once `when` returns; tell whether it ended as cancelled."""
    with anyio.CancelScope() as outer:
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_when, when, outer.cancel)
            await act()
            group.cancel_scope.cancel()
    return outer.cancelled_caught


async def natively(act: Callable[[], Awaitable[TurnResult]], when: Callable[[], Awaitable[None]]) -> bool:
    """Cancel the asyncio task of `act` once `when` returns; tell whether it ended as cancelled."""
    task = asyncio.ensure_future(act())
    await cancel_when(when, task.cancel)
    await asyncio.wait([task])
    return task.cancelled()


async def cancel_when(when: Callable[[], Awaitable[None]], cancel: Callable[[], object]) -> None:
    await when()
    cancel()


WAYS = [pytest.param(by_scope, id="by scope"), pytest.param(natively, id="natively")]
Way = Callable[[Callable[[], Awaitable[TurnResult]], Callable[[], Awaitable[None]]], Awaitable[bool]]


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("cancelled", WAYS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancelled_while_the_model_speaks_keeps_what_it_had_said_marked_as_cut(cancelled: Way) -> None:
    kept = Kept()
    silence = Hanging(pieces=(TextDelta(text="Once upon "), TextDelta(text="a ti")))
    harness = AgentLoop(FakeModel(silence), record=kept)
    assert await cancelled(lambda: harness.run(turn(hear_nothing)), silence.reached.wait)
    assert kept.said() == [("user", "go", None), ("assistant", "Once upon a ti", "cut")]


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("cancelled", WAYS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancelled_while_a_piece_is_heard_keeps_that_piece_too(cancelled: Way) -> None:
    kept, reached = Kept(), anyio.Event()

    async def hang(event: TurnEvent) -> None:
        if isinstance(event, TextDelta) and event.text == "a ti":
            reached.set()
            await anyio.sleep_forever()

    model = FakeModel(Hanging(pieces=(TextDelta(text="Once upon "), TextDelta(text="a ti"))))
    assert await cancelled(lambda: AgentLoop(model, record=kept).run(turn(hang)), reached.wait)
    assert kept.said()[1:] == [("assistant", "Once upon a ti", "cut")]


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("cancelled", WAYS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancelled_before_the_model_says_anything_keeps_what_was_asked(cancelled: Way) -> None:
    kept = Kept()
    silence = Hanging()
    harness = AgentLoop(FakeModel(silence), record=kept)
    assert await cancelled(lambda: harness.run(turn()), silence.reached.wait)
    assert kept.said() == [("user", "go", None)]


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("cancelled", WAYS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancelled_while_tools_run_keeps_what_they_had_answered_and_says_which_did_not(cancelled: Way) -> None:
    kept, begun = Kept(), anyio.Event()

    async def quick(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        return "done in time"

    async def hang(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        begun.set()
        await anyio.sleep_forever()
        return "never"

    model = FakeModel(calling(call("hang"), call("quick")))
    harness = AgentLoop(model, tools=[FunctionTool("hang", hang), FunctionTool("quick", quick)], record=kept)

    async def both() -> None:
        await begun.wait()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()

    assert await cancelled(lambda: harness.run(turn()), both)
    assert [message.role for message in kept.messages] == ["user", "assistant", "tool"]
    slow, fast = kept.messages[-1].tool_results
    assert (fast.text, fast.is_error) == ("done in time", False)
    assert slow.is_error
    assert "cancelled before it ended" in slow.text
    assert pair_calls(kept.messages).pending == ()


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("cancelled", WAYS)
@pytest.mark.parametrize("append", [1, 2, 3, 4])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancelled_while_something_is_recorded_ends_it_first_and_leaves_no_call_open(
    cancelled: Way, append: int
) -> None:
    async def echo(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        return "ok"

    kept = Kept(holds=append)
    model = FakeModel(calling(call("echo")), reply("done"))
    harness = AgentLoop(model, tools=[FunctionTool("echo", echo)], record=kept)

    async def later() -> None:
        await kept.reached.wait()
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(kept.let_go.set))

    assert await cancelled(lambda: harness.run(turn()), later)
    roles = ["user", "assistant", "tool", "assistant"]
    assert [message.role for message in kept.messages] == roles[: max(append, 3 if append > 1 else 1)]
    assert pair_calls(kept.messages).pending == ()
    assert len(model.asked) == (0 if append == 1 else 1 if append < 4 else 2)


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_by_a_time_limit_is_a_cancellation_and_not_an_error_of_the_model() -> None:
    kept, heard = Kept(), list[Event]()
    silence = Hanging(pieces=(TextDelta(text="so far"),))
    harness = AgentLoop(FakeModel(silence), record=kept, emitter=Emitter(SystemClock(), (heard.append,)))

    async def end_the_time() -> None:
        await silence.reached.wait()
        limit.deadline = anyio.current_time()

    async with anyio.create_task_group() as group:
        with anyio.move_on_after(60) as limit:
            group.start_soon(end_the_time)
            await harness.run(turn(hear_nothing))
    assert limit.cancelled_caught
    assert kept.said()[-1] == ("assistant", "so far", "cut")
    ended = [(event.stage, event.status, event.reason) for event in heard if event.status != "started"]
    assert ended == [("model", "failed", "cancelled"), ("turn", "failed", "cancelled")]


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_is_raised_though_the_record_can_not_take_the_last_words() -> None:
    given = 0

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        nonlocal given
        given += 1
        if given > 1:
            raise StorageFull
        return tuple(messages)

    silence = Hanging(pieces=(TextDelta(text="so far"),))
    harness = AgentLoop(FakeModel(silence), record=record)
    assert await natively(lambda: harness.run(turn(hear_nothing)), silence.reached.wait)
    assert given == 2


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_second_cancellation_does_not_cut_the_last_words() -> None:
    kept = Kept(holds=2)
    silence = Hanging(pieces=(TextDelta(text="so far"),))
    task = asyncio.ensure_future(AgentLoop(FakeModel(silence), record=kept).run(turn(hear_nothing)))
    await silence.reached.wait()
    task.cancel()
    await kept.reached.wait()
    task.cancel()
    await asyncio.sleep(0)
    kept.let_go.set()
    await asyncio.wait([task])
    assert task.cancelled()
    assert kept.said()[-1] == ("assistant", "so far", "cut")


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_turn_that_is_cancelled_before_it_begins_does_nothing() -> None:
    kept, model = Kept(), FakeModel(reply("never"))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await AgentLoop(model, record=kept).run(turn())
    assert (kept.messages, model.asked) == ([], [])


@pytest.mark.req("AS-BUG-12")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_turn_after_a_record_that_failed_answers_the_open_calls() -> None:
    kept = Kept()
    full = 3

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        if kept.appends + 1 == full:
            kept.appends += 1
            raise StorageFull
        return await kept(messages)

    async def echo(_arguments: Mapping[str, JsonValue], _context: ToolContext) -> str:
        return "ok"

    model = FakeModel(calling(call("echo")), reply("done"))
    harness = AgentLoop(model, tools=[FunctionTool("echo", echo)], record=record)
    with pytest.raises(StorageFull):
        await harness.run(turn())
    assert pair_calls(kept.messages).pending != ()
    again = Turn(scope=SCOPE, agent="main", session="s1", messages=(say("well?"),), window=tuple(kept.messages))
    await harness.run(again)
    assert [message.role for message in kept.messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert pair_calls(kept.messages).pending == pair_calls(kept.messages).abandoned == ()


@pytest.mark.req("AS-BUG-12")
async def test_a_reply_that_could_not_be_recorded_leaves_no_results_without_their_calls() -> None:
    kept, refused = Kept(), 0

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        nonlocal refused
        if any(message.tool_calls for message in messages):
            refused += 1
            raise StorageFull
        return await kept(messages)

    with pytest.raises(StorageFull):
        await AgentLoop(FakeModel(calling(call("echo"))), record=record).run(turn())
    assert refused == 1
    assert pair_calls(kept.messages).orphans == ()
    assert [message.role for message in kept.messages] == ["user"]


OUTCOMES = ["text", "json", "nothing", "raises", "fails", "hangs", "missing"]
STEPS = st.lists(st.lists(st.sampled_from(OUTCOMES), max_size=3), max_size=4)
ENDS = st.sampled_from(["reply", "error", "error after text", "hangs", "hangs after text"])


async def behave(kind: str, reached: anyio.Event) -> JsonValue:
    if kind == "hangs":
        reached.set()
        await anyio.sleep_forever()
    if kind == "raises":
        raise ValueError(kind)
    if kind == "fails":
        raise ToolFailed(kind)
    outcomes: dict[str, JsonValue] = {"text": "said", "json": {"a": 1}}
    return outcomes.get(kind)


def script(steps: list[list[str]], end: str, reached: anyio.Event) -> list[Item]:
    items: list[Item] = [
        calling(*(call(kind, id=f"c{number}") for number, kind in enumerate(kinds)), text="I try.")
        for kinds in steps
        if kinds
    ]
    pieces = (TextDelta(text="half a "),) if end.endswith("text") else ()
    if end.startswith("hangs"):
        return [*items, Hanging(pieces=pieces, reached=reached)]
    return [*items, (pieces, ModelUnavailable("gone")) if end.startswith("error") else reply("done")]


async def random_turn(steps: list[list[str]], end: str, *, native: bool, patience: int, limit: int) -> Kept:
    """Run a turn and cancel it a few passes after something hangs; return what was recorded."""
    kept, reached = Kept(), anyio.Event()
    tools = [
        FunctionTool(kind, lambda _arguments, _context, kind=kind: behave(kind, reached))  # type: ignore[misc]
        for kind in OUTCOMES
        if kind != "missing"
    ]
    harness = AgentLoop(
        FakeModel(*script(steps, end, reached)), tools=tools, record=kept, limits=TurnLimits(max_iters=limit)
    )

    async def run() -> TurnResult:
        try:
            return await harness.run(turn(hear_nothing))
        finally:
            reached.set()

    async def when() -> None:
        await reached.wait()
        for _ in range(patience):
            await anyio.lowlevel.checkpoint()

    async def tolerant() -> TurnResult:
        try:
            return await run()
        except RicordoError:
            return TurnResult(message=say(""))

    await (natively if native else by_scope)(tolerant, when)
    return kept


@pytest.mark.req("AS-BUG-12")
@given(steps=STEPS, end=ENDS, native=st.booleans(), patience=st.integers(0, 4), limit=st.integers(1, 4))
def test_after_any_turn_the_record_holds_what_was_asked_and_every_call_with_its_one_result(
    steps: list[list[str]], end: str, native: bool, patience: int, limit: int
) -> None:
    kept = asyncio.run(random_turn(steps, end, native=native, patience=patience, limit=limit))
    found = pair_calls(kept.messages)
    assert (found.orphans, found.abandoned, found.pending) == ((), (), ())
    assert kept.said()[0] == ("user", "go", None)
    assert len({called for called, _ in found.answered}) == len(found.answered)
    asked = [kinds for kinds in steps if kinds]
    if end.endswith("text") and len(asked) < limit and not any("hangs" in kinds for kinds in asked):
        assert kept.said()[-1] == ("assistant", "half a ", "cut")
