"""Tasks in the background, told in lines and as JSON; the promise of the JSON is that of `ricordo.cli.documents`.

Invariant: a chat and the command line say it in the same words.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ricordo.cli.render import age, bold, counted, shown, wrapped
from ricordo.clock import rfc3339
from ricordo.messages.types import JsonValue

if TYPE_CHECKING:
    from ricordo.tasks import Progress, Task

__all__ = [
    "NO_TASKS",
    "is_going",
    "running_first",
    "task_document",
    "task_lines",
    "task_rows",
    "task_state",
    "unread_lines",
]

NO_TASKS = (
    "There are no tasks. A model in a chat begins one with `spawn`, which lets a sub-agent work in the background; "
    "memory begins one, a dream, when it consolidates."
)

_TITLE, _PROGRESS = 40, 24
_HEADS = ("id", "type", "state", "progress", "title", "age", "session")


def is_going(task: "Task") -> bool:
    """Tell whether a task waits or runs, as far as anybody knows."""
    return task.state in {"pending", "running"}


def running_first(tasks: Iterable["Task"]) -> list["Task"]:
    """Return those that wait or run, then the others, each in the order given."""
    return sorted(tasks, key=lambda task: not is_going(task))


def task_rows(tasks: Sequence["Task"]) -> list[str]:
    """Tell each task in a line, below the names of the columns; empty for none.

    Whose a task is has a column where they are several people's.
    """
    cells: list[Sequence[str]] = [_HEADS, *(_cells(task) for task in tasks)]
    if len({task.user for task in tasks} - {""}) > 1:
        users = ["user", *(shown(task.user or "-") for task in tasks)]
        cells = [[*row, user] for row, user in zip(cells, users, strict=True)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    rows = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return [bold(rows[0]), *rows[1:]] if tasks else []


def task_lines(task: "Task") -> list[str]:
    """Tell all of a task: its facts, one a line, then its result or why there is none."""
    facts = {
        "type": f"{task.type} {task.worker}".strip(),
        "state": task_state(task),
        "progress": _far(task.progress),
        "session": task.session or "none: it works for the whole root",
        "agent": task.agent,
        "user": task.user,
        "created": _moment(task.created),
        "last sign": _moment(task.seen),
        "ended": _moment(task.ended) if task.ended else "",
        "error": " ".join(task.error.split()),
    }
    told = [f"  {name:<9}  {shown(fact)}" for name, fact in facts.items() if fact]
    result = ["  result", wrapped(task.result.rstrip(), "    ")] if task.result.strip() else []
    return [f"{bold(shown(task.id))}  {shown(_one_line(task.title))}", *told, *result]


def unread_lines(files: Sequence[str]) -> list[str]:
    """Tell which task files can't be read; empty for none."""
    if not files:
        return []
    others = "the tasks of the others are shown"
    return [f"{counted(len(files), 'task file')} can't be read, {others}: {', '.join(map(shown, files))}"]


def task_state(task: "Task") -> str:
    """Return the state of a task in a word; of one that was asked to stop, that it was."""
    return "cancelling" if task.cancelling and is_going(task) else task.state


def task_document(task: "Task") -> dict[str, JsonValue]:
    """Describe a task."""
    return {
        "id": task.id,
        "type": task.type,
        "title": task.title,
        "state": task.state,
        "cancelling": task.cancelling,
        "worker": task.worker or None,
        "agent": task.agent or None,
        "session": task.session or None,
        "user": task.user or None,
        "created": rfc3339(task.created),
        "seen": rfc3339(task.seen),
        "ended": rfc3339(task.ended) if task.ended else None,
        "progress": {"done": task.progress.done, "total": task.progress.total, "text": task.progress.text or None},
        "result": task.result or None,
        "error": task.error or None,
    }


def _cells(task: "Task") -> Sequence[str]:
    from ricordo.tools.task_tools import short_id

    facts = (
        short_id(task),
        task.type,
        task_state(task),
        _cut(_far(task.progress), _PROGRESS) or "-",
        _cut(_one_line(task.title), _TITLE) or "-",
        age(task.created),
        task.session or "-",
    )
    return [shown(fact) for fact in facts]


def _far(progress: "Progress") -> str:
    """Return how far a task is; empty where nothing is known."""
    total = "" if progress.total is None else f" of {progress.total:,}"
    steps = f"{progress.done:,}{total}" if progress.done or total else ""
    return ", ".join(filter(None, (steps, _one_line(progress.text))))


def _moment(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}, {age(time)} ago"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
