"""todo_write: the agent's todo list, replaced as a whole by each call and stored apart from the window.

Invariants: at most one todo is in progress. Ids are unique, and a todo keeps its id while its content stays. A refused
list changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from typing import Annotated

from ricordo.agent.tools.contract import Tool
from ricordo.agent.tools.function import tool
from ricordo.errors import StorageError, ToolFailed
from ricordo.lazy import dataclass
from ricordo.workspace.agent_state import Todo, TodoStatus, WorkStateHolder

__all__ = ["MAX_TODOS", "MAX_TODO_CHARS", "TodoItem", "replace_todos", "todo_write_tool"]


MAX_TODOS = 100
"""Maximum number of todos in a list."""
MAX_TODO_CHARS = 500
"""Maximum characters of the content of a todo."""
_ID_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class TodoItem:
    """One todo as a model writes it."""

    content: Annotated[str, "what is to be done, in one line"]
    status: TodoStatus = "pending"


def todo_write_tool(state_holder: WorkStateHolder) -> Tool:
    """Return the tool for the todos in `state_holder`."""

    async def todo_write(
        todos: Annotated[list[TodoItem], "the whole list in its order, at most one of them in_progress"],
    ) -> str:
        """Replace the list of what you have to do.

        Use it for work of several steps: write all steps at once, set one to in_progress before you begin it and to
        completed as soon as it is done. Leave out what no longer matters; an empty list clears it.
        """
        try:
            work_state = await state_holder.update_work_state(
                lambda state: replace(state, todos=replace_todos(state.todos, todos))
            )
        except StorageError as error:
            raise ToolFailed(f"the list was not changed: {error}") from error
        return _render_summary(work_state.todos)

    return tool(todo_write, effect="organizes")


def replace_todos(previous: Sequence[Todo], items: Sequence[TodoItem]) -> tuple[Todo, ...]:
    """Return the new list for `items`, in their order, with ids from the list `previous`. Pure.

    The first todo with some content keeps the id of the first with that content before, the second that of the second.
    A new id is derived from the content and its number among equal contents. Raises: ToolFailed with advice.
    """
    contents = _check_items(items)
    kept_ids = _match_ids(previous, contents)
    used_ids = {each for each in kept_ids if each}
    new_todos = []
    for item, (content, ordinal), kept_id in zip(items, _number_duplicates(contents), kept_ids, strict=True):
        new = kept_id or next(each for each in _candidate_ids(content, ordinal) if each not in used_ids)
        used_ids.add(new)
        new_todos.append(Todo(id=new, content=content, status=item.status))
    return tuple(new_todos)


def _check_items(items: Sequence[TodoItem]) -> list[str]:
    """Return the content of each item as one line."""
    if len(items) > MAX_TODOS:
        raise ToolFailed(
            f"A list has at most {MAX_TODOS} todos, not {len(items)}: leave out what is done, or join small steps."
        )
    contents = [_one_line(item.content) for item in items]
    for place, content in enumerate(contents, start=1):
        if not content:
            raise ToolFailed(f"Todo {place} says nothing: give its content, or leave it out.")
        if len(content) > MAX_TODO_CHARS:
            raise ToolFailed(
                f"Todo {place} has {len(content):,} characters: say it in at most {MAX_TODO_CHARS}, or split it."
            )
    in_progress = [str(place) for place, item in enumerate(items, start=1) if item.status == "in_progress"]
    if len(in_progress) > 1:
        raise ToolFailed(
            f"At most one todo is in_progress, not {len(in_progress)} ({', '.join(in_progress)}): "
            "set the others to pending."
        )
    return contents


def _one_line(content: str) -> str:
    text = content.encode("utf-8", "replace").decode()
    return " ".join(filter(None, (line.strip() for line in text.splitlines())))


def _match_ids(previous: Sequence[Todo], contents: Sequence[str]) -> list[str]:
    """Return the id that each content keeps, empty for a new one; no id is returned twice."""
    ids_by_content: defaultdict[str, list[str]] = defaultdict(list)
    for todo in previous:
        ids_by_content[todo.content].append(todo.id)
    ids: list[str] = []
    for content, ordinal in _number_duplicates(contents):
        matching = ids_by_content[content][ordinal : ordinal + 1]
        ids += [each if each not in ids else "" for each in matching] or [""]
    return ids


def _number_duplicates(contents: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each content with the number of equal contents before it."""
    seen: defaultdict[str, int] = defaultdict(int)
    for content in contents:
        yield content, seen[content]
        seen[content] += 1


def _candidate_ids(content: str, ordinal: int) -> Iterator[str]:
    for attempt in count():
        seed = f"{attempt}:{ordinal}:{content}".encode()
        yield blake2b(seed, digest_size=_ID_BYTES).hexdigest()


def _render_summary(todos: Sequence[Todo]) -> str:
    if not todos:
        return "The list is empty now."
    completed = sum(todo.status == "completed" for todo in todos)
    current = next((todo.content for todo in todos if todo.status == "in_progress"), "")
    summary = f"{len(todos)} todo{'' if len(todos) == 1 else 's'}, {completed} done, "
    return summary + (f"in progress: {current}" if current else "none in progress")
