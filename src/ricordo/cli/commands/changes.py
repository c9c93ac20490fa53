"""`undo`, `history` and `diff`: every write, what it did, and how to take it back."""

from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import require_target, with_memory
from ricordo.cli.deeds import ChangeSummary, summarize_changes
from ricordo.cli.documents import change_document
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, pluralize, dim, print_json, print_line, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.audit import HistoryItem
    from ricordo.audit.runs import BackgroundRun
    from ricordo.memory import Memory
    from ricordo.messages.types import JsonValue

__all__ = ["diff", "history", "undo"]

# so many writes of other processes may follow an undo before it is told
_UNDO_LOOKBACK = 20


def undo(
    *,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="CHANGE",
            help="The id of a change, its beginning, or the id of a memory it added; else what you did last.",
        ),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take back one write; an undo can be undone by its own id.

    Without an id it is what you did last, in this root or for all of your projects. What an agent saved, and what was
    learned or consolidated in the background, is undone by its id, which `ricordo history` shows.
    """
    target = require_target(root, user, project)

    async def undo_change(memory: "Memory") -> "tuple[HistoryItem, ChangeSummary | None]":
        item = await memory.undo(change)
        newest = [each for each in await memory.history(limit=_UNDO_LOOKBACK) if each.undoes == item.id]
        deeds = await summarize_changes(target, newest[:1])
        return item, deeds[0] if deeds else None

    item, deed = with_memory(target, undo_change)
    if as_json:
        print_json({"undone": change_document(item), "about": deed.about or None if deed else None})
        return
    about = f' "{escape(deed.about)}"' if deed and deed.about else ""
    print_line(f"Took back {escape(item.act)}{about} of {item.at.astimezone():%Y-%m-%d %H:%M}")
    print_line(dim(f"  {item.id}  {escape(deed.paths if deed else ', '.join(item.paths))}"))


def history(
    *,
    limit: LimitOption = 20,
    runs: Annotated[
        bool, typer.Option("--runs", help="Show what was done in the background, and what it cost.")
    ] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who changed what, when and why, newest first.

    What other users did to what the project shares is shown with their name. With --runs: what was done in the
    background, with what each phase counted, how it ended and what it cost.
    """
    target = require_target(root, user, project)
    if runs:
        _print_runs(with_memory(target, lambda memory: memory.background_runs(limit=limit)), as_json=as_json)
        return

    async def load(memory: "Memory") -> list[ChangeSummary]:
        return await summarize_changes(target, await memory.history(limit=limit))

    deeds = with_memory(target, load)
    if as_json:
        print_json({"changes": [{**change_document(each.item), "about": each.about or None} for each in deeds]})
        return
    if not deeds:
        print_line("Nothing was written yet.")
    for each in deeds:
        _print_change(each, target.user)


def diff(
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
    """Show what one write did to each of its files, line by line."""
    target = require_target(root, user, project)
    found = with_memory(target, lambda memory: memory.diff(change))
    if as_json:
        files: list[JsonValue] = [
            {"path": each.path, "created": each.created, "deleted": each.deleted, "added": each.added_lines,
             "removed": each.removed_lines, "diff": each.text}
            for each in found.files
        ]  # fmt: skip
        print_json({"change": change_document(found.item), "files": files})
        return
    item = found.item
    print_line(
        f"{bold(item.id)}  {item.at.astimezone():%Y-%m-%d %H:%M}  {item.act} by {escape(_writer(item, target.user))}"
    )
    for each in found.files:
        state = " (new)" if each.created else " (deleted)" if each.deleted else ""
        print_line(f"\n{dim(escape(each.path) + state)}  +{each.added_lines} -{each.removed_lines}")
        for line in each.text.split("\n")[2:]:
            print_line(escape(line))


def _print_runs(runs: "Sequence[BackgroundRun]", *, as_json: bool) -> None:
    if as_json:
        print_json({"runs": [_run_document(run) for run in runs]})
        return
    if not runs:
        print_line("Nothing was done in the background lately.")
    for run in runs:
        about = f" of {escape(run.session)}" if run.session else ""
        error = f"  {escape(run.error)}" if run.error else ""
        print_line(f"{bold(run.kind)}{about}  {run.queued_at.astimezone():%Y-%m-%d %H:%M}  {run.state}{error}")
        for phase, counts in run.phases.items():
            print_line(
                f"  {escape(phase):<12} {escape(', '.join(f'{name} {count:,}' for name, count in counts.items()))}"
            )
        spent = run.spent
        if spent.requests:
            print_line(dim(f"  {pluralize(spent.requests, 'request')}, {spent.tokens:,} tokens, ${spent.cost:,.4f}"))


def _run_document(run: "BackgroundRun") -> "JsonValue":
    return {
        "id": run.id,
        "kind": run.kind,
        "state": run.state,
        "session": run.session or None,
        "asked": run.queued_at.isoformat(),
        "ended": run.ended_at.isoformat() if run.ended_at else None,
        "phases": {phase: dict(counts) for phase, counts in run.phases.items()},
        "error": run.error or None,
        "requests": run.spent.requests,
        "tokens": run.spent.tokens,
        "cost": float(run.spent.cost),
    }


def _writer(item: "HistoryItem", user: str) -> str:
    """Return who did it, as `user` is told of it: another user is named."""
    from ricordo.audit.history import PERSON

    if item.user in {"", user}:
        return item.who
    return item.user if item.who == PERSON else f"{item.who} of {item.user}"


def _print_change(deed: ChangeSummary, user: str) -> None:
    item = deed.item
    added = f"  {pluralize(len(item.entries), 'entry', 'entries')}" if item.entries else ""
    state = "  (undone)" if item.undone else ""
    done = f"{item.act} by {escape(_writer(item, user))}"
    print_line(f"{bold(item.id)}  {item.at.astimezone():%Y-%m-%d %H:%M}  {done}{added}{state}")
    if deed.description:
        print_line(f"  {escape(deed.description)}")
    print_line(dim(f"  {escape(deed.paths)}{f': {escape(item.why)}' if item.why else ''}"))
