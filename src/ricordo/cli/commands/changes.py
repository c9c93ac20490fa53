"""`undo` and `history`: every write, and how to take it back."""

from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import existing, with_memory
from ricordo.cli.deeds import Deed, deeds_of
from ricordo.cli.documents import change_document
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, counted, dim, emit, say, shown

if TYPE_CHECKING:
    from ricordo.audit import HistoryItem
    from ricordo.memory import Memory

__all__ = ["history", "undo"]

# so many writes of other processes may follow an undo before it is told
_NEWEST = 20


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

    async def take_back(memory: "Memory") -> "tuple[HistoryItem, Deed | None]":
        item = await memory.undo(change)
        newest = [each for each in await memory.history(limit=_NEWEST) if each.undoes == item.id]
        deeds = await deeds_of(target, newest[:1])
        return item, deeds[0] if deeds else None

    item, deed = with_memory(target, take_back)
    if as_json:
        emit({"undone": change_document(item), "about": deed.about or None if deed else None})
        return
    about = f' "{shown(deed.about)}"' if deed and deed.about else ""
    say(f"Took back {shown(item.act)}{about} of {item.at.astimezone():%Y-%m-%d %H:%M}")
    say(dim(f"  {item.id}  {shown(deed.paths if deed else ', '.join(item.paths))}"))


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

    async def look(memory: "Memory") -> list[Deed]:
        return await deeds_of(target, await memory.history(limit=limit))

    deeds = with_memory(target, look)
    if as_json:
        emit({"changes": [{**change_document(each.item), "about": each.about or None} for each in deeds]})
        return
    if not deeds:
        say("Nothing was written yet.")
    for each in deeds:
        _print_deed(each)


def _print_deed(deed: Deed) -> None:
    item = deed.item
    added = f"  {counted(len(item.entries), 'entry', 'entries')}" if item.entries else ""
    state = "  (undone)" if item.undone else ""
    say(f"{bold(item.id)}  {item.at.astimezone():%Y-%m-%d %H:%M}  {item.act} by {shown(item.who)}{added}{state}")
    if deed.told:
        say(f"  {shown(deed.told)}")
    say(dim(f"  {shown(deed.paths)}{f': {shown(item.why)}' if item.why else ''}"))
