"""`undo` and `history`: every write, and how to take it back."""

from typing import Annotated

import typer

from ricordo.cli.context import existing, with_memory
from ricordo.cli.documents import change_document
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, counted, dim, emit, say, shown

__all__ = ["history", "undo"]


def undo(
    *,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="CHANGE", help="The id of a change, its beginning, or the id of a memory it added; else the newest."
        ),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back one write; an undo can be undone by its own id."""
    target = existing(root, user, project)
    item = with_memory(target, lambda memory: memory.undo(change))
    if as_json:
        emit({"undone": change_document(item)})
    else:
        say(f"Took back {item.act} {item.id} of {item.at.astimezone():%Y-%m-%d %H:%M}: {', '.join(item.paths)}")


def history(
    *,
    limit: LimitOption = 20,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who changed what, when and why, newest first."""
    target = existing(root, user, project)
    items = with_memory(target, lambda memory: memory.history(limit=limit))
    if as_json:
        emit({"changes": [change_document(item) for item in items]})
        return
    if not items:
        say("Nothing was written yet.")
    for item in items:
        added = f"  {counted(len(item.entries), 'entry', 'entries')}" if item.entries else ""
        state = "  (undone)" if item.undone else ""
        say(f"{bold(item.id)}  {item.at.astimezone():%Y-%m-%d %H:%M}  {item.act} by {shown(item.who)}{added}{state}")
        say(dim(f"  {shown(', '.join(item.paths))}{f': {shown(item.why)}' if item.why else ''}"))
