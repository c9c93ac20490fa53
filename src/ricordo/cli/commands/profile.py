"""`profile`: what is known of the user, to look at, to change, and to take out and in."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ricordo.cli.context import existing, find, with_memory
from ricordo.cli.editor import edited_text
from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption, YesOption
from ricordo.cli.render import bold, counted, dim, emit, note, say, shown
from ricordo.errors import AlreadyExists, FactNotFound, FileMissing, InvalidInput, StorageFailed, VersionConflict

if TYPE_CHECKING:
    from ricordo.cli.context import Target
    from ricordo.memory import Memory
    from ricordo.messages.types import JsonValue
    from ricordo.profile.contract import Saved
    from ricordo.profile.importing import Imported, Preferred
    from ricordo.profile.managing import ManagedProfile
    from ricordo.profile.migrating import Migrated
    from ricordo.workspace.profile import Fact, Profile

__all__ = ["add", "clear", "edit", "export", "import_", "migrate", "remove", "show"]

_FactId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of a fact as `ricordo profile show` shows it, or its beginning.")
]
_Prefer = Annotated[
    str | None, typer.Option("--prefer", metavar="SIDE", help="Who is right where they differ: document, profile.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would change.")]
_NOTHING = "Nothing is known of the user yet. `ricordo profile add` adds a fact."


def show(
    *,
    query: Annotated[str, typer.Argument(metavar="[WORDS]", help="Only facts that have to do with these words.")] = "",
    category: Annotated[
        str | None, typer.Option("--category", "-c", metavar="NAME", help="Only facts of this category.")
    ] = None,
    limit: LimitOption = 500,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is known of the user: the summaries, and the facts with their ids."""
    target = existing(root, user, project)

    async def look(memory: "Memory") -> "tuple[Profile, tuple[Fact, ...], int, list[str]]":
        profile = memory.profile()
        page = await profile.facts(query=query, category=category, limit=limit)
        return await profile.show(), page.facts, page.total, profile.unread

    profile, facts, total, unread = with_memory(target, look)
    if as_json:
        emit(_document(profile, facts, total, unread))
        return
    _print(profile, facts, with_summaries=not query and category is None)
    if len(facts) < total:
        say(dim(f"{counted(total - len(facts), 'more fact')}: --limit shows them."))
    if unread:
        note(f"{counted(len(unread), 'record')} of the profile can't be read: {', '.join(unread)}.")


def add(
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is known.")],
    category: Annotated[
        str, typer.Option("--category", "-c", metavar="NAME", help="preference, knowledge, goal, or any other.")
    ] = "context",
    confidence: Annotated[float, typer.Option("--confidence", metavar="SHARE", help="How sure it is, 0 to 1.")] = 1.0,
    avoid: Annotated[str | None, typer.Option("--avoid", metavar="TEXT", help="What was wrong before.")] = None,
    days: Annotated[int | None, typer.Option("--days", metavar="N", help="How long it holds.")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Keep it in view whatever else is known.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a fact to the profile; a root is created when there is none."""
    target = find(root, user, project)

    async def save(memory: "Memory") -> "Fact":
        return await memory.profile().add_fact(
            text, category=category, confidence=confidence, source_error=avoid, valid_days=days, pinned=pin
        )

    _tell_fact("Added", with_memory(target, save), as_json=as_json)


def remove(
    *,
    fact_id: _FactId,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")] = "",
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a fact; it is not learned again, and `ricordo undo` brings it back."""
    target = existing(root, user, project)

    async def take_out(memory: "Memory") -> "Fact":
        profile = memory.profile()
        return await profile.remove_fact(await _whole_id(profile, fact_id), why=reason)

    _tell_fact("Removed", with_memory(target, take_out), as_json=as_json)


def edit(
    *,
    given: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Take the changes from a text that was edited before."),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the profile as text in an editor, and take the changes back as changes of facts.

    The editor is the one that VISUAL or EDITOR names. A text that can't be read changes nothing, and is kept.
    """
    from ricordo.profile.editing import editable, is_text_of

    target = find(root, user, project)
    base = with_memory(target, lambda memory: memory.profile().show())
    if given is None:
        text, kept = edited_text(editable(base))
    else:
        text, kept = _content(given).decode("utf-8", "replace"), given
        if not is_text_of(base, text):
            raise VersionConflict(f"The profile was saved since {given} was made of it: `ricordo profile edit` again.")
    try:
        saved = _take_back(target, base, text)
    except (InvalidInput, VersionConflict) as error:
        told = f"{error} Your text is kept: `ricordo profile edit --from {kept}` takes it, once it is mended."
        raise type(error)(told) from error
    if given is None:
        kept.unlink(missing_ok=True)
    _tell_edit(saved, base, as_json=as_json)


def clear(
    *,
    yes: YesOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget the whole profile; nothing of it is learned again, and `ricordo undo` brings it back.

    A profile that can't be read is kept beside the new one. It asks first; without a terminal it needs --yes.
    """
    target = existing(root, user, project)
    if not yes:
        if not sys.stdin.isatty() or as_json:
            raise InvalidInput("Forgetting the whole profile needs a confirmation: give --yes.")
        typer.confirm("Forget all that is known of the user?", abort=True)
    saved = with_memory(target, lambda memory: memory.profile().clear())
    if as_json:
        emit({"revision": saved.profile.revision, "change": saved.change})
    else:
        say("The profile is empty.")
        say(dim(f"  `ricordo undo {saved.change}` brings it back"))


def export(
    *,
    to: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A new file; else standard output.")] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the whole profile as JSON, in the shape that DeerFlow's memory has; it loses nothing."""
    target = existing(root, user, project)
    document = with_memory(target, lambda memory: memory.profile().export_document())
    if to is None:
        typer.echo(document, nl=False)
        return
    try:
        # it tells of a person: nobody else may read it
        with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(document)
    except FileExistsError as error:
        raise AlreadyExists(f"{to} exists already and was left unchanged.") from error
    except OSError as error:
        raise StorageFailed(f"{to} can't be written: {error.strerror}.") from error
    if as_json:
        emit({"file": str(to)})
    else:
        say(f"Wrote {shown(str(to))}")


def import_(
    *,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A profile in JSON; - reads it from standard input.")],
    replace: Annotated[bool, typer.Option("--replace", help="Make the profile what the file says.")] = False,
    prefer: _Prefer = None,
    dry_run: _DryRun = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in a profile: one of `profile export`, or of DeerFlow's memory. What is missing is added."""
    target, side = find(root, user, project), _side(prefer)
    data = sys.stdin.buffer.read() if str(source) == "-" else _content(source)

    async def take_in(memory: "Memory") -> "Imported":
        return await memory.profile().import_document(
            data, mode="replace" if replace else "merge", prefer=side, dry_run=dry_run
        )

    _tell_import(with_memory(target, take_in), as_json=as_json)


def migrate(
    *,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[SOURCE]", help="A memory.json of DeerFlow, or the folder of one of its users."),
    ] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="Whose facts, in a folder of several.")] = "",
    prefer: _Prefer = None,
    dry_run: _DryRun = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in the memory of another system, or bring an older profile to this version.

    A copy of it is kept first, and it is not written to itself. A second time nothing changes.
    """
    from ricordo.profile.migrating import read_source
    from ricordo.runtime.assembly import files_of

    target, side = find(root, user, project), _side(prefer)
    folder, name = _place(source) if source else (None, "")

    async def take_in(memory: "Memory") -> "Migrated":
        found = await read_source(files_of(folder), name, agent=agent) if folder else None
        return await memory.profile().migrate(found, prefer=side, dry_run=dry_run)

    done = with_memory(target, take_in)
    _tell_import(done.imported, as_json=as_json, backup=target.file(done.backup) if done.backup else "")


def _place(source: Path) -> tuple[Path, str]:
    """Return the folder of a source, and its name in there; none where it is a folder."""
    return (source, "") if source.is_dir() else (source.absolute().parent, source.name)


def _side(named: str | None) -> "Preferred | None":
    if named not in {None, "document", "profile"}:
        raise typer.BadParameter("--prefer is document or profile.")
    return cast("Preferred | None", named)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileMissing(f"{path} can't be read: {error.strerror}.") from error


def _take_back(target: "Target", base: "Profile", text: str) -> "Saved":
    """Save what a text changes of the profile that it was made of."""
    from ricordo.clock import SystemClock
    from ricordo.profile.editing import edited
    from ricordo.workspace.profile import written

    profile = edited(base, text, now=written(SystemClock().now()))
    return with_memory(target, lambda memory: memory.profile().replace_all(profile, base=base, why="edited by hand"))


async def _whole_id(profile: "ManagedProfile", named: str) -> str:
    ids = [fact.id for fact in (await profile.show()).facts]
    found = [each for each in ids if each == named] or [each for each in ids if each.startswith(named) and named]
    if len(found) > 1:
        raise FactNotFound(f"{len(found)} facts have ids that begin with {named}: write more of it.")
    return found[0] if found else named


def _print(profile: "Profile", facts: "tuple[Fact, ...]", *, with_summaries: bool) -> None:
    from ricordo.profile.rendering import FACTS, HEADINGS, fact_line

    if profile.is_empty:
        say(_NOTHING)
        return
    for heading, names in HEADINGS if with_summaries else ():
        texts = [(label, profile.summaries[name].summary.strip()) for name, label in names]
        if any(text for _, text in texts):
            say(bold(heading))
            for label, text in texts:
                if text:
                    say(f"- {label}: {shown(text)}")
            say()
    if facts:
        say(bold(FACTS))
    for fact in facts:
        say(f"{shown(fact_line(fact))}  {dim(shown(fact.id) + ('  pinned' if fact.pinned else ''))}")


def _document(profile: "Profile", facts: "tuple[Fact, ...]", total: int, unread: list[str]) -> "dict[str, JsonValue]":
    from dataclasses import replace

    from ricordo.workspace.profile_codec import document_of

    told: list[JsonValue] = [*unread]
    return {"profile": document_of(replace(profile, facts=facts)), "total": total, "unread": told}


def _tell_fact(done: str, fact: "Fact", *, as_json: bool) -> None:
    from ricordo.profile.rendering import fact_line
    from ricordo.workspace.profile import Profile
    from ricordo.workspace.profile_codec import document_of

    if as_json:
        facts = document_of(Profile(facts=(fact,)))["facts"]
        emit({"fact": facts[0] if isinstance(facts, list) else None})
        return
    say(f"{done} {shown(fact.id)}")
    say(dim(f"  {shown(fact_line(fact)[2:])}"))


def _tell_edit(saved: "Saved", base: "Profile", *, as_json: bool) -> None:
    now = saved.profile
    before, after = ({fact.id: fact for fact in side.facts} for side in (base, now))
    counts = {
        "added": len(after.keys() - before.keys()),
        "changed": sum(after[name] != before[name] for name in after.keys() & before.keys()),
        "removed": len(before.keys() - after.keys()),
        "summaries": sum(each != now.summaries.get(name) for name, each in base.summaries.items()),
    }
    if as_json:
        emit({**counts, "change": saved.change})
    elif not any(counts.values()):
        say("Nothing was changed.")
    else:
        say(f"Saved: {', '.join(f'{count} {name}' for name, count in counts.items() if count)}.")


def _tell_import(found: "Imported", *, as_json: bool, backup: str = "") -> None:
    changes = {
        "added": found.added, "changed": found.changed, "removed": found.removed, "summaries": found.summaries,
        "conflicts": found.conflicts, "mended": found.mended,
    }  # fmt: skip
    if as_json:
        listed: dict[str, JsonValue] = {name: [*names] for name, names in changes.items()}
        emit({**listed, "known": found.known, "saved": found.is_saved, "backup": backup or None})
        return
    for name, names in changes.items():
        if names:
            say(f"{name}: {shown(', '.join(names))}")
    if backup:
        say(dim(f"  a copy of it is kept in {shown(backup)}"))
    if not found.changes_something:
        say("Nothing changes: all of it is known.")
    elif not found.is_saved:
        say(dim("Nothing was changed; without --dry-run it is."))
