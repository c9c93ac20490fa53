"""What stands beside the window: durable at once, and the same whatever happens to the window and the process."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept_sessions import REDACTOR, TRANSCRIPT, Kept, said
from ricordo.errors import InvalidMessage, StorageFailed, StorageFull, VersionConflict
from ricordo.guard.permissions import PermissionRule, ToolPattern
from ricordo.harness.conversation import Conversation, Keeper
from ricordo.harness.taking_up import taken_up, told_in
from ricordo.messages import Message, mark_of, marked, telling
from ricordo.middleware import Request, Response, Turn, TurnResult
from ricordo.models import Reply
from ricordo.scopes import Scope
from ricordo.state import AgentState, KeepsStanding, Plan, Standing, Todo
from ricordo.state.files import FileStates
from ricordo.state.grants import Grants
from ricordo.state.in_memory import MemoryStates
from ricordo.workspace.transcript import read_log
from standings import standings, todo_lists

pytestmark = pytest.mark.anyio

NEW = AgentState(agent="main", session="s")
RULE = PermissionRule(decision="deny", pattern=ToolPattern(tool="shell", argument="git push*"))
STANDING = Standing(
    plan=Plan(active=True, path="plans/a.md"),
    todos=(Todo(id="1", content="Go"),),
    permissions=(RULE,),
    delivered=("t",),
)


def put(standing: Standing) -> Callable[[Standing], Standing]:
    return lambda _: standing


def adding(text: str) -> Callable[[Standing], Standing]:
    return lambda now: replace(now, todos=(*now.todos, Todo(id=text, content=text)))


def contents(standing: Standing) -> list[str]:
    return [todo.content for todo in standing.todos]


async def opened(states: MemoryStates) -> Keeper:
    stated = await states.load("main", "s")
    return Keeper(stated.state, states=states, version=stated.version)


@pytest.fixture
async def kept() -> Kept:
    return await Kept().open()


async def stored(kept: Kept) -> AgentState:
    return (await FileStates(kept.files, REDACTOR, Grants(kept.granted, "granted")).load("main", "s")).state


@pytest.mark.req("AS-STATE-06", "AS-STATE-07", "AS-STATE-03")
async def test_what_was_made_of_what_stands_is_durable_when_it_is_returned(kept: Kept) -> None:
    keeper: KeepsStanding = kept.keeper
    assert keeper.standing == Standing()
    assert await keeper.stand(put(STANDING)) == STANDING == keeper.standing
    assert (await stored(kept)).standing == STANDING
    assert await keeper.stand(adding("More")) == (await stored(kept)).standing
    assert (await kept.open()).keeper.standing == keeper.standing


async def test_without_a_store_it_stands_as_long_as_the_process() -> None:
    keeper = Keeper(NEW)
    assert await keeper.stand(put(STANDING)) == keeper.standing == STANDING
    await keeper.save()
    await keeper.record([telling(said("Done."), ["u"])])
    assert keeper.standing == replace(STANDING, delivered=("t", "u"))


async def test_what_stands_changes_within_a_turn_and_from_outside_of_it(kept: Kept) -> None:
    async def run(turn: Turn) -> TurnResult:
        stored_messages = await kept.keeper.record(turn.messages)
        async with anyio.create_task_group() as group:
            for letter in "abc":
                group.start_soon(kept.keeper.stand, adding(letter))
        assert set("abc") <= set(contents((await stored(kept)).standing))
        return TurnResult(message=said("Yes."), window=(*turn.window, *stored_messages))

    conversation = Conversation(scope=Scope(user="ada"), run=run, keeper=kept.keeper)
    async with anyio.create_task_group() as group:
        group.start_soon(conversation.send, [said("Go.")])
        group.start_soon(kept.keeper.stand, adding("outside"))
    assert sorted(contents(kept.keeper.standing)) == ["a", "b", "c", "outside"]
    assert (await stored(kept)) == kept.keeper.state
    assert kept.texts == ["Go."]


@dataclass
class Slow(MemoryStates):
    """Says when a saving has begun, waits to be let on, and fails if told to, before or after it wrote."""

    begun: anyio.Event = field(default_factory=anyio.Event)
    go: anyio.Event = field(default_factory=anyio.Event)
    fails: str = ""
    saved: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    async def save(self, state: AgentState, *, expected: str) -> str:
        self.begun.set()
        await self.go.wait()
        self.saved += 1
        if self.fails == "before":
            raise StorageFull
        version = await super().save(state, expected=expected)
        if self.fails == "after":
            self.fails = ""
            raise StorageFailed
        return version


@pytest.mark.req("AS-STATE-01")
async def test_the_turn_goes_on_while_what_stands_is_saved() -> None:
    states = Slow()
    keeper = await opened(states)
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.stand, put(STANDING))
        await states.begun.wait()
        assert keeper.standing == Standing(), "nobody sees what is not durable yet"
        keeper.go_on([said("Yes."), said("And?")], turns=1)
        states.go.set()
    assert keeper.standing == STANDING
    assert [message.text for message in keeper.state.window] == ["Yes.", "And?"]
    assert keeper.state.turns == 1
    await keeper.record([telling(said("Done."), ["u"])])
    await keeper.save()
    assert (await states.load("main", "s")).state == keeper.state
    assert keeper.standing.delivered == ("t", "u")


async def test_a_cancellation_waits_for_what_was_begun() -> None:
    states = Slow()
    keeper = await opened(states)
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.stand, put(STANDING))
        await states.begun.wait()
        group.cancel_scope.cancel()
        states.go.set()
    assert keeper.standing == STANDING == (await states.load("main", "s")).state.standing


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_task_waits_for_what_was_begun() -> None:
    states = Slow()
    keeper = await opened(states)
    task = asyncio.ensure_future(keeper.stand(put(STANDING)))
    await states.begun.wait()
    task.cancel()
    await anyio.lowlevel.checkpoint()
    states.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert keeper.standing == STANDING == (await states.load("main", "s")).state.standing
    assert await keeper.stand(adding("More")) == keeper.standing, "and holds up nobody"


@pytest.mark.parametrize("fails", ["before", "after"])
async def test_what_could_not_be_saved_has_changed_nothing(fails: str) -> None:
    states = Slow()
    states.go.set()
    keeper = await opened(states)
    await keeper.stand(put(STANDING))
    before = (await states.load("main", "s")).state
    states.fails = fails
    with pytest.raises((StorageFull, StorageFailed)):
        await keeper.stand(adding("More"))
    assert keeper.standing == STANDING
    assert (await states.load("main", "s")).state == before, "who comes next finds nothing of it"
    states.fails = ""
    keeper.go_on([said("Yes.")])
    await keeper.save()
    assert (await opened(states)).standing == STANDING


async def test_a_change_that_raises_or_has_no_form_changes_nothing(kept: Kept) -> None:
    def raising(_: Standing) -> Standing:
        raise ValueError("no")

    await kept.keeper.stand(put(STANDING))
    with pytest.raises(ValueError, match="no"):
        await kept.keeper.stand(raising)
    begun = tuple(Todo(id=letter, content=letter, status="in_progress") for letter in "ab")
    with pytest.raises(InvalidMessage):
        await kept.keeper.stand(lambda now: replace(now, todos=begun))
    await kept.say("on")
    await kept.keeper.save()
    assert kept.keeper.standing == STANDING == (await stored(kept)).standing


@pytest.mark.req("AS-STATE-06")
async def test_two_processes_in_one_session_go_on_with_what_both_made_of_it() -> None:
    states = MemoryStates()
    one, other = await opened(states), await opened(states)
    theirs = replace(RULE, decision="ask", pattern=ToolPattern(tool="write_file"))
    await one.stand(lambda now: replace(now, permissions=(RULE,), todos=(Todo(id="1", content="Go"),)))
    await other.stand(lambda now: replace(now, permissions=(*now.permissions, theirs)))
    await one.stand(lambda now: replace(now, plan=Plan(active=True)))
    assert one.standing.permissions == (RULE, theirs)
    other.go_on([said("Yes.")], turns=1)
    await other.save()
    assert other.standing == one.standing == (await states.load("main", "s")).state.standing
    assert (await opened(states)).standing == one.standing
    assert [message.text for message in other.state.window] == ["Yes."]


async def test_a_change_that_is_refused_takes_away_nothing_that_another_process_made() -> None:
    class Full(MemoryStates):
        refuses = 0

        async def save(self, state: AgentState, *, expected: str) -> str:
            if self.refuses:
                self.refuses -= 1
                raise StorageFull
            return await super().save(state, expected=expected)

    states = Full()
    one, other = await opened(states), await opened(states)
    await other.stand(lambda now: replace(now, permissions=(RULE,), todos=(Todo(id="1", content="Go"),)))
    states.refuses = 1
    with pytest.raises(StorageFull):
        await one.stand(lambda now: replace(now, plan=Plan(active=True)))
    assert one.standing.plan == Plan()
    await one.stand(lambda now: replace(now, delivered=("t",)))
    for left in (one.standing, (await states.load("main", "s")).state.standing):
        assert (left.permissions, contents(left), left.delivered) == ((RULE,), ["Go"], ("t",))


class Astray(MemoryStates):
    """Fails at the given savings, before or after they wrote; another process saves just before the first ones."""

    def __init__(self, failing: dict[int, str], others: int) -> None:
        super().__init__()
        self.failing, self.others = dict(failing), others
        self.saved = 0

    async def save(self, state: AgentState, *, expected: str) -> str:
        self.saved += 1
        if self.saved <= self.others:
            stated = await self.load("main", "s")
            rule = PermissionRule(decision="deny", pattern=ToolPattern(tool=f"theirs{self.saved}"))
            standing = replace(stated.state.standing, permissions=(*stated.state.standing.permissions, rule))
            await super().save(replace(stated.state, standing=standing), expected=stated.version)
        fails = self.failing.pop(self.saved, "")
        if fails == "before":
            raise StorageFull
        version = await super().save(state, expected=expected)
        if fails:
            raise StorageFull
        return version


@settings(max_examples=40)
@given(st.dictionaries(st.integers(1, 8), st.sampled_from(["before", "after"]), max_size=5), st.integers(0, 4))
async def test_whatever_fails_here_nothing_is_lost_of_what_another_process_made(
    failing: dict[int, str], others: int
) -> None:
    states = Astray(failing, others)
    keeper = await opened(states)
    kept = []
    for number in range(4):
        with suppress(StorageFull):
            await keeper.stand(adding(str(number)))
            kept.append(str(number))
        with suppress(StorageFull):
            await keeper.save()
    states.failing = {}
    await keeper.save()
    left = (await states.load("main", "s")).state.standing
    assert left == keeper.standing
    assert [rule.pattern.tool for rule in left.permissions] == [f"theirs{number + 1}" for number in range(others)]
    assert set(kept) <= set(contents(left))


async def test_what_always_comes_second_is_refused_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ricordo.state.saved._SECONDS", 0)

    class Taken(MemoryStates):
        async def save(self, state: AgentState, *, expected: str) -> str:
            raise VersionConflict

    keeper = Keeper(NEW, states=Taken())
    with pytest.raises(VersionConflict):
        await keeper.stand(put(STANDING))
    assert keeper.standing == Standing()


@pytest.mark.req("AS-STATE-05")
async def test_a_reply_that_was_recorded_has_told_what_it_answers(kept: Kept) -> None:
    await kept.keeper.record([said("Go."), telling(said("Both are done.", role="assistant"), ["b", "a"])])
    assert list(kept.keeper.standing.delivered) == ["b", "a"]
    await kept.keeper.record([telling(said("As I said.", role="assistant"), ["a", "c"])])
    assert list(kept.keeper.standing.delivered) == ["b", "a", "c"]
    logged = [telling(said("Done."), ["b", "a"]), said("Go."), telling(said("As I said."), ["a", "c"])]
    assert told_in(Standing(delivered=("c",)), logged).delivered == ("c", "b", "a")
    assert told_in(STANDING, logged[1:2]) is STANDING


@pytest.mark.req("AS-STATE-01", "AS-STATE-02")
async def test_what_is_sent_is_kept_smaller_in_the_middle_of_a_turn_and_what_stands_is_as_it_was(kept: Kept) -> None:
    await kept.keeper.stand(put(STANDING))
    await kept.say(*"abcdef")
    summary = marked(said("What was said."), "summary")

    async def step(request: Request) -> Response:
        # whoever comes after a kill here
        again = await Kept(files=kept.files).open()
        assert [mark_of(message) for message in again.window] == ["summary", None]
        assert again.keeper.standing == STANDING
        return Response(reply=Reply(message=said("Yes.", role="assistant")), window=request.window)

    turn = Turn(scope=Scope(user="ada"), agent="main", session="s", messages=(), window=kept.window)
    request = Request(turn=turn, system="", window=(replace(summary, id="sum"), kept.window[-1]))
    await kept.keeper.watch(request, step)
    assert kept.texts == ["What was said.", "f"]
    conversation = Conversation(scope=Scope(user="ada"), run=_unused, keeper=kept.keeper)

    async def cleared(window: Sequence[Message]) -> Sequence[Message]:
        return window[:0]

    await conversation.rework(cleared)
    assert (kept.window, kept.keeper.standing) == ((), STANDING)
    assert (await stored(kept)).standing == STANDING


async def _unused(turn: Turn) -> TurnResult:
    raise AssertionError(turn)


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), standings()),
        st.tuples(st.just("todos"), todo_lists()),
        st.tuples(st.just("tell"), st.lists(st.sampled_from("abcd"), max_size=2)),
        st.tuples(st.just("go on"), st.lists(st.booleans(), max_size=8)),
        st.tuples(st.sampled_from(["say", "save", "reload", "kill"]), st.none()),
    ),
    max_size=12,
)


@pytest.mark.req("AS-STATE-02")
@settings(max_examples=20)
@given(_steps)
async def test_nothing_but_its_own_changes_changes_what_stands(steps: list[tuple[str, object]]) -> None:
    kept = await Kept().open()
    expected = Standing()
    for name, value in steps:
        expected = await _taken(kept, name, value, expected)
        assert kept.keeper.standing == expected
    await kept.keeper.save()
    assert (await stored(kept)).standing == expected


async def _taken(kept: Kept, name: str, value: object, expected: Standing) -> Standing:
    """Take one step and return what has to stand then."""
    keeper = kept.keeper
    match name, value:
        case "put", Standing():
            expected = replace(value, delivered=expected.delivered)
            await keeper.stand(put(expected))
        case "todos", tuple():
            todos = cast("tuple[Todo, ...]", value)
            expected = replace(expected, todos=todos)
            await keeper.stand(lambda now: replace(now, todos=todos))
        case "tell", list():
            message = telling(said(f"reply {len(kept.window)}", role="assistant"), value)
            await keeper.record([message])
            new = [each for each in dict.fromkeys(value) if each not in expected.delivered]
            expected = replace(expected, delivered=(*expected.delivered, *new))
        case "go on", list():
            keeper.go_on([message for message, stays in zip(kept.window, value, strict=False) if stays])
        case "say", _:
            await kept.say("one", "two")
        case "kill", _:
            await _take_up(kept)
        case _:
            await keeper.save()
            if name == "reload":
                await kept.open()
    return expected


async def _take_up(kept: Kept) -> None:
    """Go on from what was durable, as the process does that comes after a kill."""
    logged = (await read_log(kept.files, TRANSCRIPT)).messages
    await kept.open()
    state = kept.keeper.state
    standing = told_in(state.standing, logged)
    await kept.keeper.stand(put(standing))
    kept.keeper.go_on(taken_up(state.window, state.last, logged))
