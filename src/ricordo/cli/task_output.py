"""Tasks as lines: a chat and the command line print them in the same words."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ricordo.cli.render import bold, escape, format_age, pluralize, wrap
from ricordo.clock import format_rfc3339
from ricordo.messages.types import JsonValue

if TYPE_CHECKING:
    from ricordo.jobs.tasks import Task, TaskProgress

__all__ = [
    "NO_TASKS_MESSAGE",
    "displayed_state",
    "format_task",
    "format_task_table",
    "format_unreadable",
    "is_active",
    "sort_active_first",
    "task_document",
]


NO_TASKS_MESSAGE = (
    "There are no tasks. A model in a chat begins one with `spawn`, which lets a sub-agent work in the background; "
    "memory begins one, a dream, when it consolidates."
)
_TITLE_CHARS, _PROGRESS_CHARS = 40, 24
_COLUMN_NAMES = ("id", "type", "state", "progress", "title", "age", "session")


def is_active(task: "Task") -> bool:
    """Return whether a task waits or runs, as far as known."""
    return task.state in {"pending", "running"}


def sort_active_first(tasks: Iterable["Task"]) -> list["Task"]:
    """Return those that wait or run, then the others, each in the order given."""
    return sorted(tasks, key=lambda task: not is_active(task))


def format_task_table(tasks: Sequence["Task"]) -> list[str]:
    """Tell each task in a line, below the names of the columns; empty for none.

    Whose a task is has a column where they are several people's.
    """
    cells: list[Sequence[str]] = [_COLUMN_NAMES, *(_table_cells(task) for task in tasks)]
    if len({task.user for task in tasks} - {""}) > 1:
        users = ["user", *(escape(task.user or "-") for task in tasks)]
        cells = [[*row, user] for row, user in zip(cells, users, strict=True)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    rows = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return [bold(rows[0]), *rows[1:]] if tasks else []


def format_task(task: "Task") -> list[str]:
    """Return all lines about a task: one for each field, then its result or its error."""
    facts = {
        "type": f"{task.type} {task.worker}".strip(),
        "state": displayed_state(task),
        "progress": _format_progress(task.progress),
        "session": task.session or "none: it works for the whole root",
        "agent": task.agent,
        "user": task.user,
        "created": _format_time(task.created_at),
        "last sign": _format_time(task.last_seen_at),
        "ended": _format_time(task.ended_at) if task.ended_at else "",
        "error": " ".join(task.error.split()),
    }
    lines = [f"  {name:<9}  {escape(fact)}" for name, fact in facts.items() if fact]
    result = ["  result", wrap(task.result.rstrip(), "    ")] if task.result.strip() else []
    return [f"{bold(escape(task.id))}  {escape(_join_lines(task.title))}", *lines, *result]


def format_unreadable(files: Sequence[str]) -> list[str]:
    """Tell which task files can't be read; empty for none."""
    if not files:
        return []
    others = "the tasks of the others are shown"
    return [f"{pluralize(len(files), 'task file')} can't be read, {others}: {', '.join(map(escape, files))}"]


def displayed_state(task: "Task") -> str:
    """Return the state of a task in a word; of one that was asked to stop, that it was."""
    return "cancelling" if task.cancelling and is_active(task) else task.state


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
        "created": format_rfc3339(task.created_at),
        "seen": format_rfc3339(task.last_seen_at),
        "ended": format_rfc3339(task.ended_at) if task.ended_at else None,
        "progress": {"done": task.progress.done, "total": task.progress.total, "text": task.progress.text or None},
        "result": task.result or None,
        "error": task.error or None,
    }


def _table_cells(task: "Task") -> Sequence[str]:
    from ricordo.agent.tools.tasks import short_id

    facts = (
        short_id(task),
        task.type,
        displayed_state(task),
        _shorten(_format_progress(task.progress), _PROGRESS_CHARS) or "-",
        _shorten(_join_lines(task.title), _TITLE_CHARS) or "-",
        format_age(task.created_at),
        task.session or "-",
    )
    return [escape(fact) for fact in facts]


def _format_progress(progress: "TaskProgress") -> str:
    """Return how far a task is; empty where nothing is known."""
    total = "" if progress.total is None else f" of {progress.total:,}"
    steps = f"{progress.done:,}{total}" if progress.done or total else ""
    return ", ".join(filter(None, (steps, _join_lines(progress.text))))


def _format_time(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}, {format_age(time)} ago"


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
