"""What stands beside the window: durable at once, and the same whatever happens to the window and the process."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept_sessions import REDACTOR, TRANSCRIPT, Kept, said
from ricordo.agent import ModelRequest, ModelResponse, SessionState, Turn, TurnResult
from ricordo.agent.session_state import TurnRunner, mark_delivered, resume_window
from ricordo.errors import InvalidMessage, StorageFailed, StorageFull, VersionConflict
from ricordo.guard import PermissionRule, ToolPattern
from ricordo.messages import Message, get_mark, with_delivered_results, with_mark
from ricordo.models import Reply
from ricordo.scope import Scope
from ricordo.workspace import AgentState, FileStateStore, PermissionGrants, PlanState, Todo, WorkState, read_transcript
from ricordo.workspace.agent_state_store import InMemoryStateStore
from standings import standings, todo_lists

if TYPE_CHECKING:
    from ricordo.workspace.agent_state import WorkStateHolder

pytestmark = pytest.mark.anyio

NEW = AgentState(agent="main", session="s")
RULE = PermissionRule(decision="deny", pattern=ToolPattern(tool="shell", argument="git push*"))
STANDING = WorkState(
    plan=PlanState(active=True, path="plans/a.md"),
    todos=(Todo(id="1", content="Go"),),
    permissions=(RULE,),
    delivered_results=("t",),
)


def put(standing: WorkState) -> Callable[[WorkState], WorkState]:
    return lambda _: standing


def adding(text: str) -> Callable[[WorkState], WorkState]:
    return lambda now: replace(now, todos=(*now.todos, Todo(id=text, content=text)))


def contents(standing: WorkState) -> list[str]:
    return [todo.content for todo in standing.todos]


async def opened(states: InMemoryStateStore) -> SessionState:
    stated = await states.load("main", "s")
    return SessionState(stated.state, states=states, version=stated.version)


@pytest.fixture
async def kept() -> Kept:
    return await Kept().open()


async def stored(kept: Kept) -> AgentState:
    return (
        await FileStateStore(kept.files, REDACTOR, PermissionGrants(kept.granted, "granted")).load("main", "s")
    ).state


@pytest.mark.req("AS-STATE-06", "AS-STATE-07", "AS-STATE-03")
async def test_what_was_made_of_what_stands_is_durable_when_it_is_returned(kept: Kept) -> None:
    keeper: WorkStateHolder = kept.keeper
    assert keeper.work_state == WorkState()
    assert await keeper.update_work_state(put(STANDING)) == STANDING == keeper.work_state
    assert (await stored(kept)).work_state == STANDING
    assert await keeper.update_work_state(adding("More")) == (await stored(kept)).work_state
    assert (await kept.open()).keeper.work_state == keeper.work_state


async def test_without_a_store_it_stands_as_long_as_the_process() -> None:
    keeper = SessionState(NEW)
    assert await keeper.update_work_state(put(STANDING)) == keeper.work_state == STANDING
    await keeper.save()
    await keeper.record([with_delivered_results(said("Done."), ["u"])])
    assert keeper.work_state == replace(STANDING, delivered_results=("t", "u"))


async def test_what_stands_changes_within_a_turn_and_from_outside_of_it(kept: Kept) -> None:
    async def run(turn: Turn) -> TurnResult:
        stored_messages = await kept.keeper.record(turn.messages)
        async with anyio.create_task_group() as group:
            for letter in "abc":
                group.start_soon(kept.keeper.update_work_state, adding(letter))
        assert set("abc") <= set(contents((await stored(kept)).work_state))
        return TurnResult(message=said("Yes."), window=(*turn.window, *stored_messages))

    conversation = TurnRunner(scope=Scope(user="ada"), run=run, session_state=kept.keeper)
    async with anyio.create_task_group() as group:
        group.start_soon(conversation.send, [said("Go.")])
        group.start_soon(kept.keeper.update_work_state, adding("outside"))
    assert sorted(contents(kept.keeper.work_state)) == ["a", "b", "c", "outside"]
    assert (await stored(kept)) == kept.keeper.state
    assert kept.texts == ["Go."]


@dataclass
class Slow(InMemoryStateStore):
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
        group.start_soon(keeper.update_work_state, put(STANDING))
        await states.begun.wait()
        assert keeper.work_state == WorkState(), "nobody sees what is not durable yet"
        keeper.replace_window([said("Yes."), said("And?")], turns=1)
        states.go.set()
    assert keeper.work_state == STANDING
    assert [message.text for message in keeper.state.window] == ["Yes.", "And?"]
    assert keeper.state.turns == 1
    await keeper.record([with_delivered_results(said("Done."), ["u"])])
    await keeper.save()
    assert (await states.load("main", "s")).state == keeper.state
    assert keeper.work_state.delivered_results == ("t", "u")


async def test_a_cancellation_waits_for_what_was_begun() -> None:
    states = Slow()
    keeper = await opened(states)
    async with anyio.create_task_group() as group:
        group.start_soon(keeper.update_work_state, put(STANDING))
        await states.begun.wait()
        group.cancel_scope.cancel()
        states.go.set()
    assert keeper.work_state == STANDING == (await states.load("main", "s")).state.work_state


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_task_waits_for_what_was_begun() -> None:
    states = Slow()
    keeper = await opened(states)
    task = asyncio.ensure_future(keeper.update_work_state(put(STANDING)))
    await states.begun.wait()
    task.cancel()
    await anyio.lowlevel.checkpoint()
    states.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert keeper.work_state == STANDING == (await states.load("main", "s")).state.work_state
    assert await keeper.update_work_state(adding("More")) == keeper.work_state, "and holds up nobody"


@pytest.mark.req("AS-STATE-06", "AS-STATE-07")
@pytest.mark.parametrize("fails", ["before", "after"])
async def test_what_could_not_be_saved_has_changed_nothing(fails: str) -> None:
    states = Slow()
    states.go.set()
    keeper = await opened(states)
    await keeper.update_work_state(put(STANDING))
    before = (await states.load("main", "s")).state
    states.fails = fails
    with pytest.raises((StorageFull, StorageFailed)):
        await keeper.update_work_state(adding("More"))
    assert keeper.work_state == STANDING
    assert (await states.load("main", "s")).state == before, "who comes next finds nothing of it"
    states.fails = ""
    keeper.replace_window([said("Yes.")])
    await keeper.save()
    assert (await opened(states)).work_state == STANDING


async def test_a_change_that_raises_or_has_no_form_changes_nothing(kept: Kept) -> None:
    def raising(_: WorkState) -> WorkState:
        raise ValueError("no")

    await kept.keeper.update_work_state(put(STANDING))
    with pytest.raises(ValueError, match="no"):
        await kept.keeper.update_work_state(raising)
    begun = tuple(Todo(id=letter, content=letter, status="in_progress") for letter in "ab")
    with pytest.raises(InvalidMessage):
        await kept.keeper.update_work_state(lambda now: replace(now, todos=begun))
    await kept.say("on")
    await kept.keeper.save()
    assert kept.keeper.work_state == STANDING == (await stored(kept)).work_state


@pytest.mark.req("AS-STATE-06")
async def test_two_processes_in_one_session_go_on_with_what_both_made_of_it() -> None:
    states = InMemoryStateStore()
    one, other = await opened(states), await opened(states)
    theirs = replace(RULE, decision="ask", pattern=ToolPattern(tool="write_file"))
    await one.update_work_state(lambda now: replace(now, permissions=(RULE,), todos=(Todo(id="1", content="Go"),)))
    await other.update_work_state(lambda now: replace(now, permissions=(*now.permissions, theirs)))
    await one.update_work_state(lambda now: replace(now, plan=PlanState(active=True)))
    assert one.work_state.permissions == (RULE, theirs)
    other.replace_window([said("Yes.")], turns=1)
    await other.save()
    assert other.work_state == one.work_state == (await states.load("main", "s")).state.work_state
    assert (await opened(states)).work_state == one.work_state
    assert [message.text for message in other.state.window] == ["Yes."]


@pytest.mark.req("AS-STATE-06", "AS-STATE-07")
async def test_a_change_that_is_refused_takes_away_nothing_that_another_process_made() -> None:
    class Full(InMemoryStateStore):
        refuses = 0

        async def save(self, state: AgentState, *, expected: str) -> str:
            if self.refuses:
                self.refuses -= 1
                raise StorageFull
            return await super().save(state, expected=expected)

    states = Full()
    one, other = await opened(states), await opened(states)
    await other.update_work_state(lambda now: replace(now, permissions=(RULE,), todos=(Todo(id="1", content="Go"),)))
    states.refuses = 1
    with pytest.raises(StorageFull):
        await one.update_work_state(lambda now: replace(now, plan=PlanState(active=True)))
    assert one.work_state.plan == PlanState()
    await one.update_work_state(lambda now: replace(now, delivered_results=("t",)))
    for left in (one.work_state, (await states.load("main", "s")).state.work_state):
        assert (left.permissions, contents(left), left.delivered_results) == ((RULE,), ["Go"], ("t",))


class Astray(InMemoryStateStore):
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
            standing = replace(stated.state.work_state, permissions=(*stated.state.work_state.permissions, rule))
            await super().save(replace(stated.state, work_state=standing), expected=stated.version)
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
            await keeper.update_work_state(adding(str(number)))
            kept.append(str(number))
        with suppress(StorageFull):
            await keeper.save()
    states.failing = {}
    await keeper.save()
    left = (await states.load("main", "s")).state.work_state
    assert left == keeper.work_state
    assert [rule.pattern.tool for rule in left.permissions] == [f"theirs{number + 1}" for number in range(others)]
    assert set(kept) <= set(contents(left))


async def test_what_always_comes_second_is_refused_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ricordo.workspace.agent_state_store._SECONDS", 0)

    class Taken(InMemoryStateStore):
        async def save(self, state: AgentState, *, expected: str) -> str:
            raise VersionConflict

    keeper = SessionState(NEW, states=Taken())
    with pytest.raises(VersionConflict):
        await keeper.update_work_state(put(STANDING))
    assert keeper.work_state == WorkState()


@pytest.mark.req("AS-STATE-05")
async def test_a_reply_that_was_recorded_has_told_what_it_answers(kept: Kept) -> None:
    await kept.keeper.record(
        [said("Go."), with_delivered_results(said("Both are done.", role="assistant"), ["b", "a"])]
    )
    assert list(kept.keeper.work_state.delivered_results) == ["b", "a"]
    await kept.keeper.record([with_delivered_results(said("As I said.", role="assistant"), ["a", "c"])])
    assert list(kept.keeper.work_state.delivered_results) == ["b", "a", "c"]
    logged = [
        with_delivered_results(said("Done."), ["b", "a"]),
        said("Go."),
        with_delivered_results(said("As I said."), ["a", "c"]),
    ]
    assert mark_delivered(WorkState(delivered_results=("c",)), logged).delivered_results == ("c", "b", "a")
    assert mark_delivered(STANDING, logged[1:2]) is STANDING


@pytest.mark.req("AS-STATE-01", "AS-STATE-02")
async def test_what_is_sent_is_kept_smaller_in_the_middle_of_a_turn_and_what_stands_is_as_it_was(kept: Kept) -> None:
    await kept.keeper.update_work_state(put(STANDING))
    await kept.say(*"abcdef")
    summary = with_mark(said("What was said."), "summary")

    async def step(request: ModelRequest) -> ModelResponse:
        # whoever comes after a kill here
        again = await Kept(files=kept.files).open()
        assert [get_mark(message) for message in again.window] == ["summary", None]
        assert again.keeper.work_state == STANDING
        return ModelResponse(reply=Reply(message=said("Yes.", role="assistant")), window=request.window)

    turn = Turn(scope=Scope(user="ada"), agent="main", session="s", messages=(), window=kept.window)
    request = ModelRequest(turn=turn, system="", window=(replace(summary, id="sum"), kept.window[-1]))
    await kept.keeper.observe_request(request, step)
    assert kept.texts == ["What was said.", "f"]
    conversation = TurnRunner(scope=Scope(user="ada"), run=_unused, session_state=kept.keeper)

    async def cleared(window: Sequence[Message]) -> Sequence[Message]:
        return window[:0]

    await conversation.rewrite_window(cleared)
    assert (kept.window, kept.keeper.work_state) == ((), STANDING)
    assert (await stored(kept)).work_state == STANDING


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
    expected = WorkState()
    for name, value in steps:
        expected = await _taken(kept, name, value, expected)
        assert kept.keeper.work_state == expected
    await kept.keeper.save()
    assert (await stored(kept)).work_state == expected


async def _taken(kept: Kept, name: str, value: object, expected: WorkState) -> WorkState:
    """Take one step and return what has to stand then."""
    keeper = kept.keeper
    match name, value:
        case "put", WorkState():
            expected = replace(value, delivered_results=expected.delivered_results)
            await keeper.update_work_state(put(expected))
        case "todos", tuple():
            todos = cast("tuple[Todo, ...]", value)
            expected = replace(expected, todos=todos)
            await keeper.update_work_state(lambda now: replace(now, todos=todos))
        case "tell", list():
            message = with_delivered_results(said(f"reply {len(kept.window)}", role="assistant"), value)
            await keeper.record([message])
            new = [each for each in dict.fromkeys(value) if each not in expected.delivered_results]
            expected = replace(expected, delivered_results=(*expected.delivered_results, *new))
        case "go on", list():
            keeper.replace_window([message for message, stays in zip(kept.window, value, strict=False) if stays])
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
    logged = (await read_transcript(kept.files, TRANSCRIPT)).messages
    await kept.open()
    state = kept.keeper.state
    standing = mark_delivered(state.work_state, logged)
    await kept.keeper.update_work_state(put(standing))
    kept.keeper.replace_window(resume_window(state.window, state.last, logged))
