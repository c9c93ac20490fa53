"""Generated standings: plans, todos, permission rules and told results, as agents have them and as they might."""

from dataclasses import replace

from hypothesis import strategies as st

from message_strategies import any_text
from ricordo.guard import PermissionRule, ToolPattern
from ricordo.workspace import PlanState, Todo, WorkState

__all__ = ["rules", "standings", "todo_lists"]


def _texts(max_size: int = 12) -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(["a", "b", "git push --force*", "src/(*)"]), any_text(max_size))


def rules() -> st.SearchStrategy[PermissionRule]:
    pattern = st.builds(ToolPattern, tool=st.sampled_from(["shell", "write_file", "a(b", "*"]), argument=_texts())
    return st.builds(
        PermissionRule,
        decision=st.sampled_from(["allow", "deny", "ask"]),
        pattern=pattern,
        reason=_texts(),
        source=st.sampled_from(["", "person"]),
    )


def todo_lists() -> st.SearchStrategy[tuple[Todo, ...]]:
    """Lists of which one todo at most is in progress."""
    todos = st.lists(
        st.builds(Todo, id=_texts(), content=_texts(20), status=st.sampled_from(["pending", "completed"])), max_size=4
    )
    return st.builds(_with_one_begun, todos, st.integers(0, 5))


def standings() -> st.SearchStrategy[WorkState]:
    return st.builds(
        WorkState,
        plan=st.builds(PlanState, active=st.booleans(), path=_texts(), author=st.sampled_from(["user", "agent"])),
        todos=todo_lists(),
        permissions=st.lists(rules(), max_size=4).map(tuple),
        delivered_results=st.lists(_texts(4), max_size=4, unique=True).map(tuple),
    )


def _with_one_begun(todos: list[Todo], begun: int) -> tuple[Todo, ...]:
    return tuple(replace(todo, status="in_progress") if at == begun else todo for at, todo in enumerate(todos))
