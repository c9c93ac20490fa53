"""`remember`, `forget`, `pin`, `confirm`, `erase` and `review`: change one memory by hand, or what is doubtful."""

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.json_output import entry_document
from ricordo.cli.memory_output import FileLocation, load_contradictions, locate_new_entry, print_confirmation_effect
from ricordo.cli.options import (
    EntryId,
    JsonOption,
    LimitOption,
    MetadataOption,
    OptionalEntryId,
    ProjectOption,
    RootOption,
    SharedOption,
    UserOption,
    YesOption,
    given_options,
    last_values,
)
from ricordo.cli.render import dim, escape, pluralize, print_json, print_line, wrap
from ricordo.cli.target import find_target, read_memory, require_target, with_memory
from ricordo.errors import InvalidEntry, InvalidInput
from ricordo.lazy import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ricordo.cli.target import Target
    from ricordo.curation.quality_checks import Doubt
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.doctor import Verb
    from ricordo.runtime.memory import Memory
    from ricordo.scope import ScopeName
    from ricordo.workspace.entry import Entry
    from ricordo.workspace.history.repetition import Remaining

__all__ = [
    "accept",
    "confirm",
    "edit",
    "erase",
    "forget",
    "later",
    "merge",
    "pin",
    "print_remaining",
    "reject",
    "remaining_documents",
    "remember",
    "removal_command",
    "review",
    "update",
]


_LONGEST = 160


def removal_command(item: "Remaining", options: "Sequence[str]" = ()) -> str:
    """Return the command that takes it out; `options` such as `--root` are added."""
    act = ["forget", item.id] if item.kind in {"memory", "fact"} else ["erase", "--text", item.text]
    return shlex.join(["ricordo", *act, *options])


def remaining_documents(remaining: "Sequence[Remaining]", options: "Sequence[str]") -> "list[JsonValue]":
    """Return what remains as JSON, each with its command."""
    return [
        {"kind": item.kind, "id": item.id, "text": item.text, "command": removal_command(item, options)}
        for item in remaining
    ]


def print_remaining(remaining: "Sequence[Remaining]", options: "Sequence[str]") -> None:
    """Print what still says it, where, and the command for each; nothing where that is nothing."""
    if not remaining:
        return
    print_line(f"{pluralize(len(remaining), 'place')} still {'says' if len(remaining) == 1 else 'say'} it, or nearly:")
    for item in remaining:
        text = " ".join(item.text.split())
        suffixes = {
            "memory": "",
            "fact": " (profile)",
            "file": f" ({item.id})",
            "todo": f" (todo of session {item.id})",
        }
        print_line(wrap(f"{text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}{suffixes[item.kind]}", "  "))
        # not wrapped: it is copied
        print_line(dim(f"    {escape(removal_command(item, options))}"))


_KIND_PATTERN = lazy_compile(r"[^\W_]+(?:-[^\W_]+)*")
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
    metadata: MetadataOption = None,
    shared: SharedOption = False,
    team: Annotated[bool, typer.Option("--team", help="Share it with your team; needs --reason.")] = False,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="NAME", help="For this session alone, until `ricordo session end NAME`."),
    ] = None,
    deny: _Deny = None,
    ask: _Ask = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Save a memory; without a root, one is created.

    It is yours alone in the project, unless --shared saves it for all who work there. With --deny or --ask an agent's
    tool calls are checked against it until it is forgotten.
    """
    from ricordo.scope import Scope

    _check_scope_options(everywhere=everywhere, shared=shared, team=team, reason=reason, session=session)
    if not _KIND_PATTERN.fullmatch(kind):
        raise InvalidEntry(f"{kind!r} is no kind: write letters, digits and dashes, such as decision or code-style.")
    rule, metadata_values = _build_rule(deny, ask), last_values(metadata)
    target = find_target(root, user, project, shared=shared, session=session)
    content = read_text(text)

    async def save(memory: "Memory") -> "tuple[Entry, FileLocation | None]":
        scope: Scope | ScopeName | None = "session" if session else "team" if team else None
        if everywhere:
            scope = Scope(user=target.user, tenant=memory.scope.tenant)
        entry = await memory.remember(
            content, kind=kind, tags=tag or (), scope=scope, reason=reason, rule=rule, metadata=metadata_values
        )
        return entry, await locate_new_entry(target, entry)

    entry, position = with_memory(target, save)
    if as_json:
        print_json(
            {
                "entry": entry_document(entry, target.settings.decay),
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


def _check_scope_options(
    *, everywhere: bool, shared: bool, team: bool, reason: str | None, session: str | None
) -> None:
    if team and not reason:
        raise typer.BadParameter("What a team shares needs a --reason.")
    if team and (everywhere or shared or session):
        raise typer.BadParameter("What a team shares is for the team: give --team alone.")
    if session is not None and (everywhere or shared):
        raise typer.BadParameter("What is for one session alone is seen nowhere else: give --session alone.")
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
        entry = read_memory(target, lambda memory: memory.entry(entry_id))
        print_line(wrap(entry.content, "  "))
        typer.confirm("Forget this?", abort=True)
    result = with_memory(target, lambda memory: memory.forget(entry_id, reason=reason))
    options = given_options(root, user, project)
    if as_json:
        remaining = remaining_documents(result.remaining, options)
        print_json({"forgotten": entry_document(result.entry, target.settings.decay), "remaining": remaining})
        return
    print_line(f"Forgot {result.entry.id}. `ricordo undo` brings it back.")
    print_remaining(result.remaining, options)


def update(
    *,
    entry_id: EntryId,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="What it says from now on; - reads standard input.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", metavar="KIND", help="Its kind, such as decision.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="A tag, in place of all that it has.")
    ] = None,
    metadata: MetadataOption = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a memory under its id; `ricordo undo` restores it.

    What is not given stays. A new text counts as confirmed by you; further data are added to those that it has.
    """
    if text is None and kind is None and not tag and not metadata:
        raise InvalidInput("Say what changes: --text, --kind, --tag or --metadata.")
    content = read_text(text) if text is not None else None
    metadata_values = last_values(metadata)

    async def change(memory: "Memory") -> "Entry":
        merged = {**(await memory.entry(entry_id)).metadata, **metadata_values} if metadata_values else None
        return await memory.update(entry_id, content=content, kind=kind, tags=tag or None, metadata=merged)

    target = require_target(root, user, project)
    entry = with_memory(target, change)
    if as_json:
        print_json({"updated": entry_document(entry, target.settings.decay)})
        return
    print_line(f"Updated {entry.id}. `ricordo undo` brings the earlier one back.")
    print_line(dim(wrap(entry.content, "  ")))


def read_text(text: str) -> str:
    """Return the text, or what standard input holds for `-`."""
    return sys.stdin.buffer.read().decode("utf-8", "replace").replace("\r\n", "\n") if text == "-" else text


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
    target = require_target(root, user, project)
    entry = with_memory(target, lambda memory: memory.pin(entry_id, on=not off))
    if as_json:
        print_json({"pinned": not off, "entry": entry_document(entry, target.settings.decay)})
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

    target = require_target(root, user, project)
    entry, others = with_memory(target, hold)
    if as_json:
        print_json({"confirmed": entry_document(entry, target.settings.decay, [other.id for other in others])})
        return
    print_line(f"Confirmed {entry.id}")
    print_line(dim(wrap(entry.content, "  ")))
    print_confirmation_effect(others)


_MAX_PATHS_SHOWN = 5


def erase(
    *,
    entry_id: OptionalEntryId = "",
    text: Annotated[
        str, typer.Option("--text", metavar="TEXT", help="Erase this text wherever it stands, in place of a memory.")
    ] = "",
    inside_words: Annotated[
        bool, typer.Option("--inside-words", help="Erase it as a part of longer words too.")
    ] = False,
    yes: YesOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a memory from every file, with transcripts, history and index; this can't be undone.

    It asks first, and without a terminal it needs --yes. A memory that is forgotten can be erased too.
    """
    if bool(entry_id.strip()) == bool(text.strip()):
        raise InvalidEntry("Name what is to be erased: the id of a memory, or a text with --text.")
    target = require_target(root, user, project)
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InvalidInput("Erasing can't be undone: give --yes.")
        for content in [text] if text else read_memory(target, lambda memory: _load_versions(memory, entry_id)):
            print_line(wrap(content, "  "))
        typer.confirm("Erase this from every file? Nothing brings it back.", abort=True)
    result = with_memory(target, lambda memory: memory.erase(entry_id, text=text, inside_words=inside_words))
    if as_json:
        print_json(
            {
                "erased": list(result.ids),
                "changed": result.changed,
                "deleted": result.deleted,
                "scanned": result.scanned,
                "inside_words": list(result.inside_words),
            }
        )
        return
    print_line(
        f"Erased {'the text' if text else result.ids[0]}: {pluralize(result.changed, 'file')} changed, "
        f"{pluralize(result.deleted, 'file')} deleted."
    )
    scanned_files = f"{pluralize(result.scanned, 'file')} that were looked through"
    if result.inside_words:
        print_line(f"As a part of longer words it is left in {len(result.inside_words)} of {scanned_files}:")
        for path in result.inside_words[:_MAX_PATHS_SHOWN]:
            print_line(f"  {path}")
        print_line("Give --inside-words to erase it there too.")
    else:
        print_line(f"Nothing of it is left in {scanned_files}.")


async def _load_versions(memory: "Memory", entry_id: str) -> list[str]:
    """Return the content of an entry, now and in earlier versions, also if it is forgotten."""
    return list(dict.fromkeys(each.content for each in await memory.versions(entry_id)))


_Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        "-k",
        metavar="KIND",
        help="Only proposal, quarantine, contradiction, stale, duplicate, fragment, outside, noise or unused; "
        "may be given again.",
    ),
]
_Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="The ids that `ricordo review` shows.")]
_KEYS: "dict[str, Verb]" = {"a": "accept", "r": "reject", "m": "merge", "e": "edit", "l": "later"}


def review(
    context: typer.Context,
    *,
    kind: _Kinds = None,
    limit: LimitOption = 20,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Walk through what is doubtful, and decide each by one key.

    Without a terminal, and with --json, it is listed. Each decision is one change, and `ricordo undo` reverses it.
    """
    if context.invoked_subcommand is not None:
        return
    target = require_target(root, user, project)
    doubts = read_memory(target, lambda memory: memory.review(kinds=kind or (), limit=limit))
    if as_json:
        print_json({"doubts": [_doubt_document(doubt, target) for doubt in doubts]})
        return
    if not doubts:
        print_line("Nothing is doubtful.")
    for number, doubt in enumerate(doubts, start=1):
        _print_doubt(doubt, f"{number} of {len(doubts)}")
        if sys.stdin.isatty() and not _ask_verb(doubt, target):
            break
    if doubts and not sys.stdin.isatty():
        print_line(dim("`ricordo review accept ID` decides one; also reject, merge, edit and later"))


def _ask_verb(doubt: "Doubt", target: "Target") -> bool:
    """Ask for one key and carry out its verb; return False for the end of the review."""
    print_line(dim("  [a]ccept  [r]eject  [m]erge  [e]dit  [l]ater  [s]kip  [q]uit"))
    while (key := typer.getchar(echo=False).lower()) not in {*_KEYS, "s", "q", "\x03", "\x04"}:
        pass
    if key in _KEYS:
        text = typer.prompt("  What it says from now on", default=doubt.entry.content) if key == "e" else ""
        try:
            _decide(target, [doubt.id], _KEYS[key], text=text, as_json=False)
        except InvalidInput as error:
            print_line(f"  {escape(str(error))}")
    return key in {*_KEYS, "s"}


def _print_doubt(doubt: "Doubt", position: str) -> None:
    print_line(f"{dim(position)}  {escape(doubt.id)}  {doubt.kind}: {escape(doubt.reason)}")
    print_line(wrap(doubt.entry.content, "  "))
    if doubt.entry.source.quote:
        print_line(dim(wrap(f"said: {doubt.entry.source.quote}", "  ")))
    if doubt.other:
        print_line(wrap(f"compared with {doubt.other.id}: {doubt.other.content}", "  "))


def _doubt_document(doubt: "Doubt", target: "Target") -> "JsonValue":
    return {
        "id": doubt.id,
        "kind": doubt.kind,
        "reason": doubt.reason,
        "entry": entry_document(doubt.entry, target.settings.decay),
        "other": entry_document(doubt.other, target.settings.decay) if doubt.other else None,
    }


def _decide(
    target: "Target", ids: "Sequence[str]", verb: "Verb", *, text: str = "", days: int = 7, as_json: bool
) -> None:
    async def decide_all(memory: "Memory") -> "list[Entry]":
        return [await memory.decide(entry_id, verb, text=text, days=days) for entry_id in ids]

    entries = with_memory(target, decide_all)
    if as_json:
        print_json({"verb": verb, "entries": [entry_document(entry, target.settings.decay) for entry in entries]})
        return
    for entry in entries:
        print_line(f"{_DECIDED[verb]} {escape(entry.id)}")


_DECIDED = {"accept": "Accepted", "reject": "Rejected", "merge": "Merged", "edit": "Edited", "later": "Put off"}


def accept(
    *, ids: _Ids, root: RootOption = None, user: UserOption = None, project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Say that doubtful memories hold, and what they are compared with too: they are confirmed.

    Of a memory that may be outdated, the newer one takes its place.
    """
    _decide(require_target(root, user, project), ids, "accept", as_json=as_json)


def reject(
    *, ids: _Ids, root: RootOption = None, user: UserOption = None, project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Forget doubtful memories; of a pair, the older one.

    Of a memory that may be outdated, both hold: they are confirmed, and not asked about again.
    """
    _decide(require_target(root, user, project), ids, "reject", as_json=as_json)


def merge(
    *, ids: _Ids, root: RootOption = None, user: UserOption = None, project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Let the newer memory of a pair take the place of the older one, which stays as superseded."""
    _decide(require_target(root, user, project), ids, "merge", as_json=as_json)


def edit(
    *, entry_id: EntryId,
    text: Annotated[str, typer.Option("--text", metavar="TEXT", help="What it says; - reads standard input.")],
    root: RootOption = None, user: UserOption = None, project: ProjectOption = None, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Give a doubtful memory another text."""
    _decide(require_target(root, user, project), [entry_id], "edit", text=read_text(text), as_json=as_json)


def later(
    *, ids: _Ids,
    days: Annotated[int, typer.Option("--days", metavar="N", help="For how many days; 0 shows it again.")] = 7,
    root: RootOption = None, user: UserOption = None, project: ProjectOption = None, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Put doubtful memories off for some days."""
    _decide(require_target(root, user, project), ids, "later", days=days, as_json=as_json)
