"""`remember`, `forget`, `pin` and `confirm`: a person's own hand in memory."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import require_target, find_target, with_memory
from ricordo.cli.contradictions import load_contradictions, print_confirmation_effect
from ricordo.cli.documents import entry_document
from ricordo.cli.locate import FileLocation, locate_new_entry
from ricordo.cli.options import (
    EntryId,
    JsonOption,
    ProjectOption,
    RootOption,
    SharedOption,
    UserOption,
    YesOption,
    given_options,
)
from ricordo.cli.remaining import print_remaining, remaining_documents
from ricordo.cli.render import dim, print_json, print_line, escape, wrap
from ricordo.errors import InvalidEntry

if TYPE_CHECKING:
    from ricordo.memory import Memory
    from ricordo.workspace.entry import Entry

__all__ = ["confirm", "forget", "pin", "remember"]

_KIND_PATTERN = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_Kind = Annotated[
    str,
    typer.Option(
        "--kind", "-k", metavar="KIND", help="fact, decision, preference, lesson, convention, goal, or any other."
    ),
]
_Deny = Annotated[
    str | None,
    typer.Option("--deny", metavar="CALLS", help="A rule: refuse tool calls such as 'shell(git push --force*)'."),
]
_Ask = Annotated[
    str | None,
    typer.Option("--ask", metavar="CALLS", help="A rule: ask before tool calls such as 'write_file(src/*)'."),
]


def remember(
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads it from standard input.")],
    kind: _Kind = "fact",
    tag: Annotated[
        list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag; more than one may be given.")
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Make it visible in all of your projects; needs --reason.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why it is visible in all of your projects.")
    ] = None,
    shared: SharedOption = False,
    deny: _Deny = None,
    ask: _Ask = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Save a memory; a root is created when there is none.

    It is yours alone in the project, unless --shared saves it for all who work there. With --deny or --ask an agent's
    tool calls are checked against it until it is forgotten.
    """
    from ricordo.scopes import Scope

    _check_scope_options(everywhere=everywhere, shared=shared, reason=reason)
    if not _KIND_PATTERN.fullmatch(kind):
        raise InvalidEntry(f"{kind!r} is no kind: write letters, digits and dashes, such as decision or code-style.")
    rule = _build_rule(deny, ask)
    target = find_target(root, user, project, shared=shared)
    content = sys.stdin.buffer.read().decode("utf-8", "replace").replace("\r\n", "\n") if text == "-" else text

    async def save(memory: "Memory") -> "tuple[Entry, FileLocation | None]":
        scope = Scope(user=target.user, tenant=memory.scope.tenant) if everywhere else None
        entry = await memory.remember(content, kind=kind, tags=tag or (), scope=scope, reason=reason, rule=rule)
        return entry, await locate_new_entry(target, entry)

    entry, position = with_memory(target, save)
    if as_json:
        print_json(
            {
                "entry": entry_document(entry),
                "root": str(target.root),
                "created": not target.exists,
                "file": position.file if position else None,
                "line": position.line if position else None,
            }
        )
        return
    if not target.exists:
        print_line(f"Created a memory in {escape(str(target.root))}.")
    print_line(f"Remembered {entry.id}")
    print_line(dim(f"  {entry.kind} in {escape(str(position))}"))
    if entry.rule:
        print_line(dim(wrap(f"rule: {entry.rule}", "  ")))


def _check_scope_options(*, everywhere: bool, shared: bool, reason: str | None) -> None:
    if everywhere and shared:
        raise typer.BadParameter(
            "What is visible in all of your projects is yours alone: --shared does not go with it."
        )
    if everywhere and not reason:
        raise typer.BadParameter("What is visible in all of your projects needs a --reason.")


def _build_rule(deny: str | None, ask: str | None) -> str | None:
    """Return the rule that the options make; one with a form of its own is checked where it is saved."""
    if deny is not None and ask is not None:
        raise typer.BadParameter("A rule either refuses or asks: give --deny or --ask, not both.")
    if deny is not None:
        return f"deny {deny}"
    return f"ask {ask}" if ask is not None else None


def forget(
    *,
    entry_id: EntryId,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why it is forgotten; the history keeps it.")
    ] = "",
    yes: YesOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a memory at once; `ricordo undo` restores it.

    On a terminal it asks first. What still says it, such as a longer memory, is shown with the command that removes it.
    """
    target = require_target(root, user, project)
    if sys.stdin.isatty() and not yes and not as_json:
        entry = with_memory(target, lambda memory: memory.entry(entry_id))
        print_line(wrap(entry.content, "  "))
        typer.confirm("Forget this?", abort=True)
    done = with_memory(target, lambda memory: memory.forget(entry_id, reason=reason))
    options = given_options(root, user, project)
    if as_json:
        remaining = remaining_documents(done.remaining, options)
        print_json({"forgotten": entry_document(done.entry), "remaining": remaining})
        return
    print_line(f"Forgot {done.entry.id}. `ricordo undo` brings it back.")
    print_remaining(done.remaining, options)


def pin(
    *,
    entry_id: EntryId,
    off: Annotated[bool, typer.Option("--off", help="Pin it no longer.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a memory in view: it stands in every prompt, does not age, and is never rewritten."""
    entry = with_memory(require_target(root, user, project), lambda memory: memory.pin(entry_id, on=not off))
    if as_json:
        print_json({"pinned": not off, "entry": entry_document(entry)})
        return
    print_line(f"{'Unpinned' if off else 'Pinned'} {entry.id}")
    print_line(dim(wrap(entry.content, "  ")))


def confirm(
    *,
    entry_id: EntryId,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that a memory holds: it is sure from now on, and as fresh as if it was learned today.

    What contradicts it then gives way to it with the next consolidation, unless that was confirmed too.
    """

    async def hold(memory: "Memory") -> "tuple[Entry, list[Entry]]":
        entry = await memory.confirm(entry_id)
        return entry, await load_contradictions(memory, entry.id)

    entry, others = with_memory(require_target(root, user, project), hold)
    if as_json:
        print_json({"confirmed": entry_document(entry, [other.id for other in others])})
        return
    print_line(f"Confirmed {entry.id}")
    print_line(dim(wrap(entry.content, "  ")))
    print_confirmation_effect(others)
