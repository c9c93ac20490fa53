"""todo_write: the list is what the model wrote last, whole and durable, or what it was before."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import CONTEXT
from held_standing import HeldStanding
from ricordo.agent import get_effect
from ricordo.agent.tools.todos import MAX_TODO_CHARS, MAX_TODOS, TodoItem, replace_todos, todo_write_tool
from ricordo.errors import ToolFailed
from ricordo.messages import JsonValue
from ricordo.workspace import PlanState, Todo, WorkState

pytestmark = pytest.mark.anyio


async def written(keeper: HeldStanding, *todos: JsonValue) -> str:
    """Call the tool as a model does; a failure begins with `failed: `."""
    try:
        return str(await todo_write_tool(keeper)({"todos": list(todos)}, CONTEXT))
    except ToolFailed as error:
        return f"failed: {error}"


def item(content: str, status: str = "pending") -> dict[str, JsonValue]:
    return {"content": content, "status": status}


def told(keeper: HeldStanding) -> list[tuple[str, str]]:
    return [(todo.content, todo.status) for todo in keeper.work_state.todos]


def ids(todos: Sequence[Todo]) -> dict[str, str]:
    return {todo.content: todo.id for todo in todos}


@pytest.mark.req("AS-STATE-06")
async def test_the_list_is_replaced_whole_and_all_else_that_stands_stays() -> None:
    plan = PlanState(path="plans/x.md")
    keeper = HeldStanding(WorkState(plan=plan, delivered_results=("t1",)))
    said = await written(keeper, item("read", "completed"), item("write", "in_progress"), {"content": "test"})
    assert said == "3 todos, 1 done, in progress: write"
    assert told(keeper) == [("read", "completed"), ("write", "in_progress"), ("test", "pending")]
    assert await written(keeper, item("ship")) == "1 todo, 0 done, none in progress"
    assert told(keeper) == [("ship", "pending")]
    assert (keeper.work_state.plan, keeper.work_state.delivered_results) == (plan, ("t1",))
    assert await written(keeper) == "The list is empty now."
    assert keeper.work_state.todos == ()


@pytest.mark.req("AS-STATE-06")
@pytest.mark.parametrize(
    ("todos", "why"),
    [
        ([item("a", "in_progress"), item("b"), item("c", "in_progress")], r"At most one .* not 2 \(1, 3\): set"),
        (
            [item("b", "in_progress"), *(item(f"c{number}") for number in range(20)), item("d", "in_progress")],
            r"At most one .* not 2 \(1, 22\): set",
        ),
        ([item("a"), item(" \n ")], "Todo 2 says nothing: give its content"),
        ([item("x" * (MAX_TODO_CHARS + 1))], "Todo 1 has 501 characters"),
        ([item("a")] * (MAX_TODOS + 1), "at most 100 todos, not 101"),
        ([item("a", "started")], "has to be one of"),
        ([item("a"), "b"], "has to be an object"),
    ],
)
async def test_a_list_that_can_not_be_taken_changes_nothing_and_says_what_to_do(
    todos: list[JsonValue], why: str
) -> None:
    keeper = HeldStanding()
    await written(keeper, item("as before", "in_progress"))
    with pytest.raises(ToolFailed, match=why):
        await todo_write_tool(keeper)({"todos": todos}, CONTEXT)
    assert told(keeper) == [("as before", "in_progress")]
    assert keeper.kept == 1


@pytest.mark.req("AS-STATE-06")
async def test_a_list_of_the_largest_size_is_taken() -> None:
    keeper = HeldStanding()
    todos = [item(f"{number:03}".ljust(MAX_TODO_CHARS, "x")) for number in range(MAX_TODOS)]
    assert (await written(keeper, *todos)).startswith("100 todos, 0 done")
    assert len(keeper.work_state.todos) == MAX_TODOS


@pytest.mark.req("AS-STATE-06")
async def test_a_list_that_could_not_be_kept_is_said_not_to_be_changed() -> None:
    keeper = HeldStanding()
    await written(keeper, item("first"))
    keeper.is_full = True
    said = await written(keeper, item("second"))
    assert said.startswith("failed: the list was not changed: The disk is full")
    assert told(keeper) == [("first", "pending")]


async def test_content_is_one_line_whatever_ends_its_lines() -> None:
    keeper = HeldStanding()
    await written(keeper, item("  one\r\n\n two\u2028three  four\ud800 "))
    assert told(keeper) == [("one two three  four?", "pending")]


@pytest.mark.req("AS-STATE-06")
async def test_a_todo_keeps_its_id_as_long_as_its_content_stays() -> None:
    keeper = HeldStanding()
    await written(keeper, item("read"), item("write"))
    first = ids(keeper.work_state.todos)
    await written(keeper, item("test"), item("write", "completed"), item("read", "in_progress"))
    second = ids(keeper.work_state.todos)
    assert {content: second[content] for content in first} == first
    again = HeldStanding()
    await written(again, item("write"))
    assert ids(again.work_state.todos)["write"] == first["write"], "an id is made of what it names, not of the hour"


def test_an_id_that_is_taken_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    [new] = replace_todos((), [TodoItem(content="new")])
    taken = Todo(id=new.id, content="old")
    made = replace_todos((taken,), [TodoItem(content="new"), TodoItem(content="old")])
    assert made[1] == taken
    assert made[0].id != new.id
    twice = replace_todos((taken, taken), [TodoItem(content="old"), TodoItem(content="old")])
    assert twice[0] == taken
    assert twice[1].id != taken.id
    monkeypatch.setattr("ricordo.agent.tools.todos._ID_BYTES", 1)
    assert len({todo.id for todo in replace_todos((), [TodoItem(content=str(number)) for number in range(100)])}) == 100


@pytest.mark.req("AS-PLAN-01")
async def test_it_may_be_called_while_the_agent_only_plans() -> None:
    assert get_effect(todo_write_tool(HeldStanding())) == "organizes"


_contents = st.one_of(st.sampled_from(["a", "b", "c", "a b"]), st.text(min_size=1, max_size=8)).filter(
    lambda text: bool(text.strip()) and len(text.splitlines()) == 1
)
_lists = st.lists(st.builds(TodoItem, content=_contents), max_size=12)
_held = st.lists(st.builds(Todo, id=st.sampled_from(["", "1", "2", "3"]), content=_contents), max_size=8)


@given(_held, _lists)
def test_ids_are_unique_whatever_stood_there_before(before: list[Todo], items: list[TodoItem]) -> None:
    made = replace_todos(before, items)
    assert len({todo.id for todo in made}) == len(made) == len(items)
    assert all(todo.id for todo in made)
    assert [todo.content for todo in made] == [
        item.content.encode("utf-8", "replace").decode().strip() for item in items
    ]


@given(_lists, _lists)
def test_what_is_in_both_lists_keeps_its_ids_also_when_it_is_there_twice(
    one: list[TodoItem], other: list[TodoItem]
) -> None:
    before = replace_todos((), one)
    made = replace_todos(before, other)
    for content in {todo.content for todo in made}:
        had = [todo.id for todo in before if todo.content == content]
        has = [todo.id for todo in made if todo.content == content]
        shared = min(len(had), len(has))
        assert has[:shared] == had[:shared]
    assert replace_todos(made, other) == made
    counted = Counter(todo.content for todo in before)
    assert all(counted[todo.content] for todo in made if todo.id in {each.id for each in before})
