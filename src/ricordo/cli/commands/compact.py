"""`compact` and `expand`: a window made smaller by hand, what that took away, and how it is brought back."""

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.agents import open_session_agent, find_session_id
from ricordo.cli.chat_window import (
    format_compaction_result,
    format_expanded,
    format_compactions,
    format_undo,
    unused_focus_note,
)
from ricordo.cli.context import Target, require_target, find_target, run_async
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import print_json, print_line
from ricordo.cli.window_documents import (
    compaction_result_document,
    compaction_document,
    expanded_messages_document,
    context_usage_document,
)
from ricordo.errors import SessionNotFound, StorageReadOnly

if TYPE_CHECKING:
    from ricordo.agent import HarnessAgent
    from ricordo.messages.types import JsonValue

__all__ = ["compact", "expand"]

_CompactSession = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="ID", show_default=False, help="The session, or how its id begins; else the newest."
    ),
]
_Handle = Annotated[
    str | None, typer.Argument(metavar="HANDLE", show_default=False, help="With --undo: which compaction.")
]
_Focus = Annotated[
    str, typer.Option("--focus", metavar="TEXT", show_default=False, help="What the summary is to dwell on.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what it would come to; no model is asked.")]
_List = Annotated[bool, typer.Option("--list", help="Show the compactions of the session, newest first.")]
_Undo = Annotated[
    bool, typer.Option("--undo", help="Bring back the window from before a compaction, the newest if none is named.")
]


def compact(
    *,
    handle: _Handle = None,
    session: _CompactSession = None,
    focus: _Focus = "",
    dry_run: _DryRun = False,
    listed: _List = False,
    undo: _Undo = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the window of a session smaller, and show what fills it before and after.

    Nothing is lost: the transcript keeps every message, `ricordo expand` opens what went, and --undo brings it back.
    Without a model in the settings, rules write the summary. The exit code is 1 if it failed.
    """
    if bool(focus or dry_run) + listed + undo > 1:
        raise typer.BadParameter("--list and --undo each stand alone.")
    if handle and not undo:
        raise typer.BadParameter("A HANDLE is for --undo; `ricordo expand HANDLE` opens one.")
    target, real = require_target(root, user, project), not (dry_run or listed or undo)
    if real:
        # what is summed up stays so: other settings than the person's are not good enough for it
        find_target(root, user, project, strict=True)

    async def act() -> "tuple[dict[str, JsonValue], list[str], bool]":
        async with _open_existing_session(target, session, learns=real, changes=real or undo) as agent:
            if listed:
                return *await _list_compactions(agent), True
            if undo:
                return *await _undo_compaction(agent, handle), True
            done = await agent.compact(focus=focus, dry_run=dry_run)
            note = unused_focus_note(focus, done.before.model, target.settings)
            suffix = f" --session {shlex.quote(session)}" if session else ""
            lines = format_compaction_result(done, dry_run=dry_run, note=note, prefix="ricordo ", suffix=suffix)
            statuses = {each.status for each in done}
            well = "done" in statuses or "failed" not in statuses
            return compaction_result_document(done, dry_run=dry_run, note=note), lines, well

    document, lines, well = run_async(act)
    print_json(document) if as_json else print_line("\n".join(lines))
    if not well:
        raise typer.Exit(1)


def expand(
    *,
    handle: Annotated[
        str, typer.Argument(metavar="HANDLE", help="The handle of a compaction, or m: and the id of a message.")
    ],
    session: _CompactSession = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a compaction took out of the window, as it was said.

    `ricordo compact --list` names the handles.
    """
    target = require_target(root, user, project)

    async def act() -> "tuple[dict[str, JsonValue], list[str]]":
        async with _open_existing_session(target, session) as agent:
            messages = await agent.compactions.expand(handle)
            return expanded_messages_document(handle, messages), format_expanded(messages)

    document, lines = run_async(act)
    print_json(document) if as_json else print_line("\n".join(lines))


@asynccontextmanager
async def _open_existing_session(
    target: Target, session: str | None, *, learns: bool = False, changes: bool = False
) -> AsyncIterator["HarnessAgent"]:
    """Open the agent in the session that was named, else the newest.

    Raises: SessionNotFound; StorageReadOnly when its window is to be changed and can't be kept.
    """
    found = await find_session_id(target, session)
    if found is None:
        raise SessionNotFound("There is no session yet: `ricordo chat` begins one.")
    async with open_session_agent(target, found, asks=learns, learns=learns) as agent:
        if changes and not agent.is_recorded:
            raise StorageReadOnly(
                f"The memory in {target.root} can only be read, so the window stays as it is: "
                "`ricordo compact --dry-run` tells what making it smaller would come to."
            )
        yield agent


async def _list_compactions(agent: "HarnessAgent") -> "tuple[dict[str, JsonValue], list[str]]":
    found = await agent.compactions.all()
    return {"session": agent.session, "compactions": [compaction_document(each) for each in found]}, format_compactions(
        found
    )


async def _undo_compaction(agent: "HarnessAgent", handle: str | None) -> "tuple[dict[str, JsonValue], list[str]]":
    before = await agent.get_context_usage()
    made = await agent.compactions.undo(handle)
    after = await agent.get_context_usage()
    document: dict[str, JsonValue] = {
        "undone": compaction_document(made),
        "before": context_usage_document(before),
        "after": context_usage_document(after),
    }
    return document, format_undo(made, before, after)
