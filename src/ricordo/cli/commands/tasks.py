"""`tasks`, `tasks show` and `tasks cancel`: what runs in the background, or did, in every session of the root.

Invariants: looking changes nothing; a task is said to have stopped only when its record says so. A chat and the command
line print tasks in the same words.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption, decode_argument
from ricordo.cli.render import dim, escape, format_age, pluralize, print_error, print_json, print_line, wrap
from ricordo.cli.target import Target, load_redactor, require_target, run_async
from ricordo.cli.task_output import (
    NO_TASKS_MESSAGE,
    format_task,
    format_task_table,
    format_unreadable,
    is_active,
    sort_active_first,
    task_document,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.jobs.tasks import Task, TaskListing

__all__ = ["cancel", "format_outcome", "list_tasks", "show", "tasks"]


_CANCEL_SECONDS, _POLL_SECONDS = 5.0, 0.2
_Session = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", show_default=False, help="Only of this session, or how its id begins."),
]
_Running = Annotated[bool, typer.Option("--running", help="Only those that wait or run.")]
_TaskId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The id of a task as `ricordo tasks` shows it, or six characters or more of its beginning or its end that "
        "no other has.",
    ),
]


def tasks(
    context: typer.Context,
    *,
    session: _Session = None,
    running: _Running = False,
    limit: LimitOption = 50,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what runs in the background, and stop it.

    Tasks are commands and sub-agents of every session of the root, and its dreams. Without a further command they are
    listed.
    """
    if context.invoked_subcommand is None:
        list_tasks(
            session=decode_argument(session, "--session"),
            running=running,
            limit=limit,
            root=root,
            user=user,
            project=project,
            as_json=as_json,
        )
    elif session is not None or running:
        raise typer.BadParameter("--session and --running are for the list: they stand after `tasks list`.")


def list_tasks(
    *,
    session: _Session = None,
    running: _Running = False,
    limit: LimitOption = 50,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the tasks of the root, those that run first, then the newest.

    Each with the end of its id, its type, state, progress, title, age and session; whoever it belongs to.
    """
    target = require_target(root, user, project)
    listing = run_async(lambda: _load_tasks(target))
    matches = _filter_by_session(sort_active_first(listing.tasks), session)
    matches = [task for task in matches if is_active(task) or not running]
    unread = [target.display_path(path) for path in listing.unreadable]
    if as_json:
        documents = [task_document(task) for task in matches[:limit]]
        print_json({"total": len(matches), "tasks": [*documents], "unreadable": [*unread]})
        return
    if not matches and not unread:
        print_line(wrap(_empty_list_message(listing, session, running=running)))
    for line in format_task_table(matches[:limit]):
        print_line(line)
    if len(matches) > limit:
        print_line(dim(f"… and {len(matches) - limit:,} more: --limit shows them"))
    for line in format_unreadable(unread):
        print_error(line)


def show(
    *,
    task_id: _TaskId,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show all of one task, with its result."""
    target = require_target(root, user, project)
    task = run_async(lambda: _load_task(target, task_id))
    if as_json:
        print_json({"task": task_document(task)})
    else:
        print_line("\n".join(format_task(task)))


def cancel(
    *,
    task_id: _TaskId,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a task, in whatever process it runs.

    It waits up to 5 seconds until the task has ended. The exit code is 1 if nobody answered.
    """
    target = require_target(root, user, project)
    before, after = run_async(lambda: _cancel_and_wait(target, task_id))
    if as_json:
        print_json({"task": task_document(after), "stopped": after.has_ended})
    else:
        (print_line if after.has_ended else print_error)(format_outcome(before, after, user=target.user))
    if not after.has_ended:
        raise typer.Exit(1)


async def _load_tasks(target: Target) -> "TaskListing":
    from ricordo.jobs.tasks import list_tasks
    from ricordo.runtime.workspace import root_files

    return await list_tasks(root_files(target.user_folder), now=datetime.now(UTC))


async def _load_task(target: Target, task_id: str) -> "Task":
    from ricordo.jobs.tasks import find_task
    from ricordo.jobs.tasks.contract import orphan_if_silent
    from ricordo.runtime.workspace import root_files

    return orphan_if_silent((await find_task(root_files(target.user_folder), task_id))[1], datetime.now(UTC))


async def _cancel_and_wait(target: Target, task_id: str) -> "tuple[Task, Task]":
    """Return a task as it was, and as it is after it was asked to stop and was given the time to."""
    import anyio

    from ricordo.jobs.tasks import request_stop
    from ricordo.runtime.workspace import root_files

    files = root_files(target.user_folder)
    before = await _load_task(target, task_id)
    after = before
    if not before.has_ended:
        after = await request_stop(files, await load_redactor(target), before.id, now=datetime.now(UTC))
    with anyio.move_on_after(_CANCEL_SECONDS):
        while not after.has_ended:
            await anyio.sleep(_POLL_SECONDS)
            after = await _load_task(target, before.id)
    return before, after


def format_outcome(before: "Task", after: "Task", *, user: str = "") -> str:
    """Return the result of a stop request of `user`, with the owner of another user's task."""
    from ricordo.agent.tools.tasks import short_id

    whose = f" of {escape(after.user)}" if after.user not in {"", user} else ""
    name = f"Task {escape(short_id(after))}{whose}"
    if before.has_ended:
        return f"{name} had ended already: it is {after.state}."
    if before.state == "orphaned" and after.state == "cancelled":
        return f"{name} was orphaned: nobody ran it any more. It is cancelled now."
    if after.state == "cancelled":
        return f"{name} was cancelled."
    if after.has_ended:
        return f"{name} ended before it could be cancelled: it is {after.state}."
    return (
        f"{name} was asked to stop, and its process did not answer within {_CANCEL_SECONDS:g} seconds; its last sign "
        f"of life was {format_age(after.last_seen_at)} ago. It stops when that process looks. Without a sign of life "
        f"for 10 minutes "
        "it is orphaned, and can be cancelled then."
    )


def _filter_by_session(candidates: "Sequence[Task]", session: str | None) -> "list[Task]":
    """Return the tasks of the session with this id, else of those whose id begins so; all without an id."""
    if session is None:
        return [*candidates]
    return [task for task in candidates if task.session == session] or [
        task for task in candidates if session and task.session.startswith(session)
    ]


def _empty_list_message(listing: "TaskListing", session: str | None, *, running: bool) -> str:
    if not listing.tasks:
        return NO_TASKS_MESSAGE
    of = "" if session is None else f" of session {escape(session)}"
    others = pluralize(len(listing.tasks), "other task")
    return f"No task{of}{' runs' if running else ''}. There {'is' if len(listing.tasks) == 1 else 'are'} {others}."
